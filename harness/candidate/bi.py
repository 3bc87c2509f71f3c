"""A bi-encoder, run so that a text's vector depends on that text alone.

A text is padded to a width that follows from its own length, a batch holds one width, and every batch is computed by
one thread, several batches at a time. So neither company, order, batch size nor the number of threads changes a bit
on a CPU. (Splitting one product among threads would: the split, and with it the order of summation, follows the
number of rows.)
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured, NotAdmitted, Stopped
from harness.identity import Json
from harness.release.bi import BiMeaning, Prompts
from harness.release.open import Release

Side: TypeAlias = Literal["query", "document"]
Item = TypeVar("Item")
Result = TypeVar("Result")

MULTIPLE = 8
# Below sixteen rows of tokens, matrix products take another path with other rounding.
NARROWEST = 16
PADDED_TOKENS = {"cpu": 2048, "cuda": 32768}


@dataclass(frozen=True, slots=True)
class Forwarded:
    """One batch of n texts in r columns, as the model was given it and what came of it.

    Shapes: rows [n, r, d] float32, the contextual rows before pooling; attended [n, r], False where padding stands;
    ids [n, r], the tokens; vectors [n, w] float32, as `encode` gives them.
    """

    rows: NDArray[np.float32]
    attended: NDArray[np.bool_]
    ids: NDArray[np.int64]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Encoded:
    """What the model made of n texts, in their order.

    Shapes: vectors [n, d] float32, a row of NaN where the text failed; input_digests [n], SHA-256 of the rendered
    text; tokens_kept and tokens_lost [n], special tokens included, lost by truncation. `failed`: position to reason.
    A vector that isn't finite is left as the model gave it.
    """

    vectors: NDArray[np.float32]
    input_digests: tuple[str, ...]
    tokens_kept: NDArray[np.int64]
    tokens_lost: NDArray[np.int64]
    failed: Mapping[int, str]


def runtime() -> Mapping[str, Json]:
    """What computes, as far as it can change a bit of an output. The number of threads cannot."""
    go_offline()
    import torch

    device = _device()
    return {
        "device": device,
        "unit": torch.cuda.get_device_name() if device == "cuda" else torch.backends.cpu.get_cpu_capability(),
        "dtype": "float32",
        **{name: version(name) for name in ("sentence-transformers", "transformers", "tokenizers", "torch", "numpy")},
    }


def load(release: Release, prompts: Prompts) -> "BiEncoder":
    """The model of an opened release, offline and without remote code, in float32, on CUDA where there is a device.

    Raises Stopped where the libraries cannot load it, NotAdmitted where what they load isn't what the release means,
    Misconfigured for a maximum length that leaves no room for text.
    """
    if release.bi is None or release.model_folder is None:
        raise Misconfigured(
            f"release {release.name}", found=f"a {release.definition.interaction} release", expected="a bi-encoder",
            mend="Only a bi-encoder can encode texts.",
        )  # fmt: skip
    go_offline()
    try:
        model = _loaded(str(release.model_folder))
    except Exception as error:
        raise Stopped(
            f"release {release.name}", found=f"the model does not load ({_said(error)})",
            expected=f"a folder that Sentence Transformers {version('sentence-transformers')} loads offline",
            mend=f"Try it by hand: SentenceTransformer({str(release.model_folder)!r}, local_files_only=True).",
        ) from error  # fmt: skip
    _apply(release, model)
    special = model.tokenizer.num_special_tokens_to_add()
    if release.bi.max_length.value <= special:
        raise Misconfigured(
            f"release {release.name}", found=f"max_length {release.bi.max_length.value}",
            expected=f"more than the model's {special} special tokens",
            mend="Raise [input] max_length in release.toml.",
        )  # fmt: skip
    return BiEncoder(model, release.bi, prompts, release.model_folder)


class BiEncoder:
    """A loaded bi-encoder. It is given texts and their side, and nothing else. `folder` is its model's."""

    def __init__(self, model: Any, meaning: BiMeaning, prompts: Prompts, folder: Path) -> None:
        self.folder = folder
        self._model = model
        self._tokenizer = model.tokenizer
        self._device = _device()
        self._meaning = meaning
        self._prompts: Mapping[Side, str] = {"query": prompts.query, "document": prompts.document}

    def encode(self, texts: Sequence[str], side: Side) -> Encoded:
        """Vectors of texts. A text that makes the model raise fails alone; equal texts are computed once."""
        prompt = self._prompts[side]
        once: dict[str, int] = {}
        rows = np.array([once.setdefault(prompt + text, len(once)) for text in texts], dtype=np.int64)
        rendered = list(once)
        tokens = _each(self._tokenise, rendered)
        found = self._vectors(tokens.results, len(rendered), self._excluded(prompt))
        failed = found.failed | tokens.reasons
        digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in rendered]
        kept, lost = np.zeros((2, len(rendered)), dtype=np.int64)
        for row, text in tokens.results.items():
            kept[row], lost[row] = len(text), text.lost
        return Encoded(
            found.rows[rows],
            tuple(digests[row] for row in rows),
            kept[rows],
            lost[rows],
            {position: failed[row] for position, row in enumerate(rows.tolist()) if row in failed},
        )

    def forward(
        self,
        texts: Sequence[str],
        prompt: str,
        *,
        width: int | None = None,
        padding_side: Literal["left", "right"] | None = None,
        max_length: int | None = None,
    ) -> Forwarded:
        """One batch exactly as asked, for whoever probes the model.

        `width` in columns, at least that of the longest text; that of `encode` where None. `padding_side` and
        `max_length` as the release has them where None. Raises Stopped where the model raises.
        """
        try:
            tokens = self._tokenise([prompt + text for text in texts], max_length)
            longest = max(tokens, key=len)
            columns = self._width(longest) if width is None else max(width, len(longest))
            features = self._forward(tokens, self._excluded(prompt), columns, padding_side)
        except Exception as error:
            raise Stopped(
                f"model {self.folder}", found=f"{len(texts)} texts make it raise {_said(error)}",
                expected="a vector for each", mend="Try them by hand with SentenceTransformer(…).encode(…).",
            ) from error  # fmt: skip
        rows, ids = features["token_embeddings"].float().cpu().numpy(), features["input_ids"].cpu().numpy()
        return Forwarded(rows, features["attended"].cpu().numpy(), ids, self._cut(features))

    def read_out(self, rows: NDArray[np.float32], attended: NDArray[np.bool_], prompt: str) -> NDArray[np.float32]:
        """Vectors [n, w] that the modules behind the encoder make of contextual rows [n, r, d]."""
        import torch

        features: dict[str, Any] = {
            "token_embeddings": torch.from_numpy(rows).to(self._model.device),
            "attention_mask": torch.from_numpy(attended.astype(np.int64)).to(self._model.device),
        }
        if excluded := self._excluded(prompt):
            features["prompt_length"] = excluded
        with torch.inference_mode():
            for module in list(self._model.children())[1:]:
                features = module(features)
        return self._cut(features)

    def prompt_length(self, prompt: str) -> int:
        """Tokens that a prompt takes up at the start of a text, special ones before it included."""
        if not prompt:
            return 0
        ids = self._tokenise([prompt])[0].features["input_ids"]
        return len(ids) - (ids[-1] in self._tokenizer.all_special_ids)

    @property
    def layers(self) -> int | None:
        """Layers of the encoder, as its configuration says."""
        count = getattr(self._model[0].model.config, "num_hidden_layers", None)
        return count if isinstance(count, int) else None

    @property
    def widest(self) -> int:
        """Columns that a batch may have: padding may pass the maximum length, but not the model's positions."""
        length = self._meaning.max_length
        return max(length.value, length.folder or 0)

    def _vectors(self, tokens: Mapping[int, "_Tokens"], count: int, excluded: int) -> "_Vectors":
        """Batches computed side by side and scattered back to their rows."""
        rows = np.full((count, self._meaning.width), np.nan, dtype=np.float32)
        failed: dict[int, str] = {}
        batches = self._batches(tokens)

        def embed(batch: Sequence[int]) -> "_Tried[NDArray[np.float32]]":
            return _each(lambda some: self._embed(some, excluded), [tokens[row] for row in batch])

        with _one_thread_each() as threads, ThreadPoolExecutor(threads if self._device == "cpu" else 1) as pool:
            for batch, tried in zip(batches, pool.map(embed, batches), strict=True):
                for position, vector in tried.results.items():
                    rows[batch[position]] = vector
                failed |= {batch[position]: reason for position, reason in tried.reasons.items()}
        return _Vectors(rows, failed)

    def _tokenise(self, texts: Sequence[str], limit: int | None = None) -> list["_Tokens"]:
        limit = limit or self._meaning.max_length.value
        whole = self._features(texts, truncation=False)
        long = [row for row, features in enumerate(whole) if len(features["input_ids"]) > limit]
        found = [_Tokens(features, 0) for features in whole]
        if long:
            cut = self._features([texts[row] for row in long], truncation="longest_first", max_length=limit)
            for row, features in zip(long, cut, strict=True):
                found[row] = _Tokens(features, len(found[row]) - len(features["input_ids"]))
        return found

    def _features(self, texts: Sequence[str], **options: Any) -> list[Mapping[str, list[int]]]:
        found = self._tokenizer(list(texts), padding=False, verbose=False, **options)
        return [{key: found[key][row] for key in found} for row in range(len(texts))]

    def _excluded(self, prompt: str) -> int:
        """Tokens at the start that the pooling leaves out."""
        return 0 if self._meaning.include_prompt else self.prompt_length(prompt)

    def _batches(self, tokens: Mapping[int, "_Tokens"]) -> list[list[int]]:
        """Rows by width, the widest first, each batch of one width and about a fixed number of padded tokens."""
        by_width: dict[int, list[int]] = {}
        for row, text in tokens.items():
            by_width.setdefault(self._width(text), []).append(row)
        batches = []
        for width in sorted(by_width, reverse=True):
            size = max(1, PADDED_TOKENS[self._device] // width)
            batches += [by_width[width][start : start + size] for start in range(0, len(by_width[width]), size)]
        return batches

    def _width(self, tokens: "_Tokens") -> int:
        """Of the padded text."""
        rounded = max(NARROWEST, -(-len(tokens) // MULTIPLE) * MULTIPLE)
        return max(len(tokens), min(rounded, self.widest))

    def _embed(self, tokens: Sequence["_Tokens"], excluded: int) -> list[NDArray[np.float32]]:
        return list(self._cut(self._forward(tokens, excluded, self._width(tokens[0]))))

    def _forward(
        self, tokens: Sequence["_Tokens"], excluded: int, width: int, padding_side: str | None = None
    ) -> dict[str, Any]:
        """What the modules leave behind, and the mask as the encoder was given it, which pooling may narrow."""
        import torch

        options = {"padding": "max_length", "max_length": width, "return_tensors": "pt", "padding_side": padding_side}
        padded = self._tokenizer.pad([text.features for text in tokens], **options)
        features = {key: value.to(self._model.device) for key, value in padded.items()}
        attended = features["attention_mask"] == 1
        if excluded:
            features["prompt_length"] = excluded
        with torch.inference_mode():
            found = self._model(features)
        return {**found, "attended": attended}

    def _cut(self, features: Mapping[str, Any]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = (
            features["sentence_embedding"][:, : self._meaning.truncate_dim].float().cpu().numpy()
        )
        return vectors


@dataclass(frozen=True, slots=True)
class _Tokens:
    """One text as the tokenizer gives it, each feature a list, and how many tokens were cut off."""

    features: Mapping[str, list[int]]
    lost: int

    def __len__(self) -> int:
        return len(self.features["input_ids"])


@dataclass(frozen=True, slots=True)
class _Vectors:
    """Shape: rows [n, d], NaN where a row failed."""

    rows: NDArray[np.float32]
    failed: dict[int, str]


@dataclass(frozen=True, slots=True)
class _Tried(Generic[Result]):
    """What came of each item by position: a result, or the reason why there is none."""

    results: dict[int, Result]
    reasons: dict[int, str]


def _each(compute: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item]) -> _Tried[Result]:
    """All items at once, or where that raises, one by one."""
    try:
        return _Tried(dict(enumerate(compute(items))), {})
    except Exception as error:
        if len(items) == 1:
            return _Tried({}, {0: _said(error)})
    alone = [_each(compute, [item]) for item in items]
    return _Tried(
        {position: tried.results[0] for position, tried in enumerate(alone) if tried.results},
        {position: tried.reasons[0] for position, tried in enumerate(alone) if tried.reasons},
    )


def _loaded(folder: str) -> Any:
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer

    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    model = SentenceTransformer(
        folder,
        device=_device(),
        local_files_only=True,
        trust_remote_code=False,
        model_kwargs={"dtype": torch.float32, "use_safetensors": True},
    )
    # The warning's advice, to pad while tokenizing, would pad all texts to one width.
    model.tokenizer.deprecation_warnings["Asking-to-pad-a-fast-tokenizer"] = True
    return model.float().eval()


def _apply(release: Release, model: Any) -> None:
    """Puts the override in place, and holds what was loaded against the release's meaning."""
    meaning, pooling = release.bi, model[1]
    if meaning is None:
        return
    if meaning.pooling.source == "declared":
        pooling.pooling_mode = meaning.pooling.value
        pooling.pooling_output_dimension = pooling.embedding_dimension
    modes = [pooling.pooling_mode] if isinstance(pooling.pooling_mode, str) else list(pooling.pooling_mode)
    expected = (meaning.pooling.value, meaning.include_prompt, meaning.width)
    found = ("+".join(modes), bool(pooling.include_prompt), model.get_embedding_dimension())
    if found != expected:
        raise NotAdmitted(
            f"release {release.name}", found="pooling {}, include_prompt {}, width {}".format(*found),
            expected="pooling {}, include_prompt {}, width {}".format(*expected),
            mend="The installed library reads the folder otherwise; install the version it was made for.",
        )  # fmt: skip


@contextmanager
def _one_thread_each() -> Iterator[int]:
    """One thread for each batch; gives how many threads there were, so that as many batches can run at once."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


def go_offline() -> None:
    """No library reaches the network from here on, whatever a folder asks for."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ[name] = "1"


def _device() -> Literal["cpu", "cuda"]:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
