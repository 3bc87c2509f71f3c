"""The files of a tokenizer, read without building one: vocabulary, special tokens, normaliser."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.file.unchanged import kept_while_unchanged
from harness.identity import Json, text_digest
from harness.release.describe.told import Told
from harness.release.folder import ModelFolder, damaged, read_json

FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt",
    "vocab.json", "merges.txt", "*.model", "chat_template.jinja", "chat_template.json",
)  # fmt: skip
ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
LONG = 256


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """`ids`: token to ID as far as the files say. `whole`: they give every token, not only the added ones.

    `empty`: there is a file for a vocabulary, and nothing in it. `stated`: the special tokens by role, and `stated_in`
    the source of each. `config` is tokenizer_config.json, and `config_file` its path in the folder. `fast`: rows can
    be led back to characters and words.
    """

    files: Mapping[str, str]
    config: Mapping[str, Json]
    config_file: str
    ids: Mapping[str, int]
    whole: bool
    empty: bool
    stated: Mapping[str, str]
    stated_in: Mapping[str, str]
    normaliser: Told
    fast: bool

    @property
    def special(self) -> dict[str, int]:
        """IDs by role, of those special tokens that the tokenizer has."""
        return {role: self.ids[token] for role, token in self.stated.items() if token in self.ids}

    @property
    def size(self) -> int | None:
        """One more than the largest ID; None where the files don't give every token."""
        return max(self.ids.values()) + 1 if self.whole and self.ids else None


def read_tokenizer(folder: ModelFolder, place: PurePosixPath) -> Tokenizer:
    """Raises NotAdmitted for files that cannot be read as a tokenizer's."""
    config = folder.json(place / "tokenizer_config.json") or {}
    special = folder.json(place / "special_tokens_map.json") or {}
    vocabulary = _vocabulary(folder, place)
    added = {
        str(about["content"]): int(token_id)
        for token_id, about in _object(config.get("added_tokens_decoder")).items()
        if token_id.isdecimal() and isinstance(about, Mapping) and "content" in about
    }
    extra = folder.json(place / "added_tokens.json") or {}
    ids = {**vocabulary.ids, **{token: each for token, each in extra.items() if isinstance(each, int)}, **added}
    file, special_file = str(place / "tokenizer_config.json"), str(place / "special_tokens_map.json")
    stated, stated_in = {}, {}
    for role in ROLES:
        for name, said in ((special_file, special), (file, config)):
            if role not in stated and (token := _token(said.get(role))):
                stated[role], stated_in[role] = token, f"{name}#/{role}"
    return Tokenizer(
        folder.digests(place, *FILES), config, file, ids, vocabulary.own > 0,
        vocabulary.file is not None and not vocabulary.own, stated, stated_in,
        _normaliser(config, file, vocabulary, place), vocabulary.file is not None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """`file`: what it was read from, None where there is none. `own`: tokens without those that were added.

    `stated`: tokenizer.json states a normaliser.
    """

    ids: Mapping[str, int]
    file: str | None
    own: int
    normaliser: Json = None
    stated: bool = False


def _vocabulary(folder: ModelFolder, place: PurePosixPath) -> _Vocabulary:
    for name, read in (("tokenizer.json", _whole), ("vocab.txt", _lines), ("vocab.json", _mapping)):
        path = folder.path / place / name
        if path.is_file() and str(place / name) not in folder.pointers:
            try:
                return read(path)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise damaged(path, f"no vocabulary ({type(error).__name__}: {error})", "a tokenizer's file") from error
    return _Vocabulary({}, None, 0)


@kept_while_unchanged(8)
def _whole(path: Path) -> _Vocabulary:
    read = read_json(path)
    if not isinstance(read, dict):
        raise TypeError("not a JSON object")
    entries = _object(read.get("model")).get("vocab") or {}
    if isinstance(entries, list):
        ids = {str(piece): position for position, (piece, _) in enumerate(entries)}
    else:
        ids = {str(token): int(each) for token, each in _object(entries).items() if isinstance(each, int)}
    own = len(ids)
    for token in read.get("added_tokens") or ():
        ids[str(token["content"])] = int(token["id"])
    return _Vocabulary(ids, path.name, own, _shortened(read.get("normalizer")), "normalizer" in read)


@kept_while_unchanged(8)
def _lines(path: Path) -> _Vocabulary:
    lines = path.read_text(encoding="utf-8").split("\n")
    ids = {token: position for position, token in enumerate(lines) if token}
    return _Vocabulary(ids, path.name, len(ids))


@kept_while_unchanged(8)
def _mapping(path: Path) -> _Vocabulary:
    read = read_json(path)
    if not isinstance(read, dict):
        raise TypeError("not a JSON object")
    ids = {str(token): each for token, each in read.items() if isinstance(each, int)}
    return _Vocabulary(ids, path.name, len(ids))


def _normaliser(config: Mapping[str, Json], file: str, vocabulary: _Vocabulary, place: PurePosixPath) -> Told:
    if vocabulary.stated:
        return Told(vocabulary.normaliser, f"{place / 'tokenizer.json'}#/normalizer")
    keys = ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "do_basic_tokenize", "keep_accents")
    stated = {key: config[key] for key in keys if key in config}
    return Told(stated or None, f"{file}#")


def _shortened(value: Json) -> Json:
    """With long strings (the tables of SentencePiece) replaced by their digests."""
    if isinstance(value, str):
        return value if len(value) <= LONG else f"sha256:{text_digest(value)}"
    if isinstance(value, Mapping):
        return {key: _shortened(each) for key, each in value.items()}
    return [_shortened(each) for each in value] if isinstance(value, list) else value


def _token(value: Json) -> str | None:
    """A special token is text, or an object that has it under `content`."""
    content = value.get("content") if isinstance(value, Mapping) else value
    return content if isinstance(content, str) and content else None


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def lower_cased(normaliser: Json) -> bool:
    """Whether a normaliser of tokenizer.json makes letters small."""
    if isinstance(normaliser, Mapping):
        if normaliser.get("type") == "Lowercase" or normaliser.get("lowercase") is True:
            return True
        return lower_cased(normaliser.get("normalizers"))
    return isinstance(normaliser, list) and any(lower_cased(each) for each in normaliser)
