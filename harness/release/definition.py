"""The schema of `release.toml`, the file in which a person says what a release is.

A model's folder says most of it. What is asked for here is what no folder can say.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from harness.file.toml import nearest
from harness.release.manifest import Aggregation, Finite, Owner, Regression, ScoreType, Training, Which

Strict = ConfigDict(extra="forbid", frozen=True, strict=True)
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Text = Annotated[str, Field(min_length=1)]
PoolingMode: TypeAlias = Literal["cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
Interaction: TypeAlias = Literal["bi", "cross", "late", "sparse", "head", "two-stage", "fusion", "recorded"]
Scale: TypeAlias = Literal["none", "min-max", "z-score", "reciprocal-rank"]
Format: TypeAlias = Literal["trec-run", "jsonl", "squad", "conll"]
OutputKind: TypeAlias = Literal["classes", "multilabel", "value", "tags", "span", "choice"]

# The tables that say where an interaction's outputs come from: exactly one of them stands in a file.
ORIGINS: Mapping[str, tuple[str, ...]] = {
    "bi": ("model", "pair"),
    "cross": ("model",),
    "late": ("model",),
    "sparse": ("model",),
    "head": ("model",),
    "two-stage": ("stages",),
    "fusion": ("fusion",),
    "recorded": ("recorded",),
}
ABOUT_A_MODEL = ("input", "prompts", "override", "late", "output", "training", "runtime")
# What is trained to join windows, by the names that papers have for it.
LEARNED = ("learned", "attention", "self-attention", "gated", "transformer", "lstm", "gru", "cnn", "mlp", "linear")
# A pair of texts has no sides of its own, and a lone text none at all.
WITHOUT_PROMPTS = ("cross", "head")


class Model(BaseModel):
    """Where the model folder is: `package:NAME/FOLDER`, `path:FOLDER` from the release's own, `hf:ORG/NAME@COMMIT`.

    `revision` and `task_revision` are whatever names the training; `visibility` and `final_norm` are asked for where
    the architecture is not one that this version knows. `quantised`: weights of matrix products in eight bits, blocks
    of 32 sharing a scale, as the ONNX backend has them; another model than the folder's, so part of what it means.
    """

    model_config = Strict

    source: Annotated[str, Field(pattern=r"^(package:[A-Za-z_]\w*(/.+)?|path:.+|hf:[^/@]+/[^/@]+@.+)$")]
    revision: Text | None = None
    task_revision: Text | None = None
    visibility: Literal["bidirectional", "causal", "causal-made-bidirectional"] | None = None
    final_norm: bool | None = None
    quantised: Literal["int8"] | None = None

    @field_validator("source")
    @classmethod
    def _a_commit_and_no_branch(cls, source: str) -> str:
        place, _, commit = source.partition("@")
        if place.startswith("hf:") and not (len(commit) == 40 and set(commit) <= set("0123456789abcdef")):
            raise ValueError(
                f"{commit!r} is a branch or tag, which moves; name the commit by its 40 hexadecimal digits"
            )
        return source

    @property
    def scheme(self) -> str:
        return self.source.partition(":")[0]

    @property
    def place(self) -> str:
        return self.source.partition(":")[2]


class Window(BaseModel):
    """As in the manifest. `normalise` has to be said of a mean of normalised vectors; `owner` is `largest-context`
    unless said, and `text` the document, the context, or of a head of labels nothing.
    """

    model_config = Strict

    size: Annotated[int, Field(gt=0)]
    stride: Annotated[int, Field(gt=0)]
    aggregation: Aggregation
    normalise: Literal["before", "after"] | None = None
    owner: Owner | None = None
    text: Which | None = None

    @field_validator("aggregation", mode="before")
    @classmethod
    def _nothing_learned(cls, said: Any) -> Any:
        if said in LEARNED:
            raise ValueError(
                f"{said!r} is a learned aggregator, and a manifest has no place for the weights of one: what joins "
                "windows must stand in the tuple, so it is one of " + ", ".join(get_args(Aggregation))
            )
        return said


class Input(BaseModel):
    """`max_length` counts the model's own tokens, special ones included; a longer text is cut, or read in windows."""

    model_config = Strict

    max_length: Annotated[int, Field(gt=0)] | None = None
    window: Window | None = None


class SidePrompts(BaseModel):
    """What is put before a query's or a document's text; None where release.toml does not say."""

    model_config = Strict

    query: str | None = None
    document: str | None = None

    def of(self, side: Literal["query", "document"]) -> str | None:
        return self.query if side == "query" else self.document


class PromptTable(SidePrompts):
    """The prompts, and under a suite's name those that depart from them on that suite."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    __pydantic_extra__: dict[str, SidePrompts]

    @property
    def suites(self) -> dict[str, SidePrompts]:
        return self.__pydantic_extra__

    @model_validator(mode="before")
    @classmethod
    def _sides_or_suites(cls, written: Any) -> Any:
        for key, value in written.items() if isinstance(written, dict) else ():
            if key not in cls.model_fields and not isinstance(value, dict):
                meant = nearest(str(key), list(cls.model_fields))
                raise ValueError(
                    f"`{key}` is neither `query`, `document` nor the table of a suite"
                    + (f"; did you mean `{meant}`?" if meant else "")
                )
        return written


class ReadoutOverride(BaseModel):
    """How rows become a vector, where it is not as the model folder says."""

    model_config = Strict

    pooling: PoolingMode | None = None


class ScoreOverride(BaseModel):
    """How two vectors are compared, where it is not as the model folder says."""

    model_config = Strict

    type: Literal["cosine", "dot"] | None = None


class Override(BaseModel):
    """What departs from the model folder's own files."""

    model_config = Strict

    readout: ReadoutOverride = ReadoutOverride()
    score: ScoreOverride = ScoreOverride()


class Late(BaseModel):
    """A bi-encoder's own rows as late interaction. `skip`: tokens of documents whose rows do not count."""

    model_config = Strict

    skip: Literal["punctuation"] | list[Text]


class Output(BaseModel):
    """What a head's numbers are called. `labels` in the order of its rows; `transitions` is a file of a CRF's.

    `null`, `pieces` and `longest` as in the manifest.
    """

    model_config = Strict

    kind: OutputKind | None = None
    labels: Annotated[list[Text], Field(min_length=1)] | None = None
    null: Text | None = None
    decoder: Literal["constrained", "crf"] | None = None
    pieces: Literal["first", "all-agree", "mean"] | None = None
    longest: Annotated[int, Field(gt=0)] | None = None
    transitions: Text | None = None
    regression: Regression | None = None

    @model_validator(mode="after")
    def _transitions_are_a_crfs(self) -> "Output":
        if (self.transitions is None) == (self.decoder == "crf"):
            raise ValueError('`transitions` names the file of a CRF: `decoder = "crf"` needs it, and no other has it')
        return self


class Score(BaseModel):
    """`threshold`: one, or one for each label. `type`: what a head's numbers are said to be. `label`: the class of a
    cross-encoder by whose number documents rank.
    """

    model_config = Strict

    type: Literal["logit", "probability"] | None = None
    label: Text | None = None
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    threshold: Finite | list[Finite] | None = None


class CalibratorFile(BaseModel):
    """`path` counts from the release folder."""

    model_config = Strict

    path: Text


class Abstain(BaseModel):
    """When nothing is said: where a case is less sure than `below`, by the greatest probability, its lead over the
    second, minus the entropy in nats, (of answers) how far the score is above the null score, or (of rankings) the
    calibrated probability that the corpus answers the question.
    """

    model_config = Strict

    ground: Literal["confidence", "margin", "entropy", "gap", "answerability"]
    below: Finite

    @model_validator(mode="after")
    def _within(self) -> "Abstain":
        """A bar that none, or all, can reach is no bar."""
        if self.ground == "entropy" and self.below > 0:
            raise ValueError("`below` is held against minus the entropy, which is never above 0")
        if self.ground not in ("entropy", "gap") and not 0 <= self.below <= 1:
            raise ValueError(f"`below` of {self.ground} is from 0 to 1")
        return self


class Decision(BaseModel):
    """`path`: a threshold or a rule of abstention as `harness calibrate --threshold` saves it, from the release folder.
    `type`: of which score [score] `threshold` is; left out: of the release's own.
    """

    model_config = Strict

    path: Text | None = None
    type: Literal["logit", "probability", "cosine", "dot", "squared-l2", "maxsim", "value", "gap"] | None = None
    abstain: Abstain | None = None

    @model_validator(mode="after")
    def _one_source(self) -> "Decision":
        if self.path is not None and (self.type is not None or self.abstain is not None):
            raise ValueError("a [decision] has a `path`, or says itself what it is")
        return self


class Runtime(BaseModel):
    """What the release says that it runs on. `backend`: what runs the model, torch unless said."""

    model_config = Strict

    backend: Literal["torch", "onnx", "openvino"] | None = None
    device: Text | None = None
    parameters: Text | None = None
    compute: Text | None = None
    accumulation: Text | None = None
    threads: Annotated[int, Field(gt=0)] | None = None
    export: Text | None = None


class DeclaredTraining(Training):
    """As in the manifest, and the `files` that were trained on, from the release folder: where they lie is no part of
    what the release means.
    """

    files: Annotated[list[Text], Field(default_factory=list)]


class Rollback(BaseModel):
    """Whether the parent may be put back in this release's place."""

    model_config = Strict

    compatible: bool


class Pair(BaseModel):
    """Two releases, each the encoder of one side."""

    model_config = Strict

    query: Name
    document: Name


class Stages(BaseModel):
    """Two releases, and how many of the first one's documents the second one is given."""

    model_config = Strict

    retriever: Name
    reranker: Name
    depth: Annotated[int, Field(gt=0)]


class Fusion(BaseModel):
    """Releases by name: the weight of each one's scores, and how they are scaled before they are added up.

    `depth`: how many of each one's documents take part. `k` is what is added to a rank before its reciprocal is taken.
    """

    model_config = Strict

    # No sum of weighted scores leaves a double by far.
    weights: Annotated[dict[Name, Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]], Field(min_length=2)]
    scales: dict[Name, Scale]
    depth: Annotated[int, Field(gt=0)] = 100
    k: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 60.0

    @model_validator(mode="after")
    def _of_the_same_releases(self) -> "Fusion":
        if self.weights.keys() != self.scales.keys():
            raise ValueError("`weights` and `scales` name the same releases")
        if "k" in self.model_fields_set and not self.ranked:
            raise ValueError("`k` belongs to the scale reciprocal-rank, which no release has")
        return self

    @property
    def ranked(self) -> bool:
        """Whether any member is taken by its ranks."""
        return "reciprocal-rank" in self.scales.values()


class Recorded(BaseModel):
    """Outputs made elsewhere. `path` counts from the release folder; `revision` is part of the release's meaning.

    `label_map` says for labels of the outputs what the data call them. `column` is that of the tags in columns, from 1,
    or from the right by negative numbers; `null_scores` a file of SQuAD's null odds.
    """

    model_config = Strict

    format: Format
    path: Text
    score_type: ScoreType
    revision: str | None = None
    label_map: dict[Text, Text] = {}
    column: int | None = None
    null_scores: Text | None = None

    @model_validator(mode="after")
    def _ranked_by_a_number(self) -> "Recorded":
        if self.format == "trec-run" and self.score_type == "tags":
            raise ValueError("a TREC run ranks documents by a number, so its `score_type` cannot be tags")
        return self


class ReleaseDefinition(BaseModel):
    """release.toml as written. What its outputs come from stands in one table: [model], [pair] (two encoders),
    [stages], [fusion] or [recorded].
    """

    model_config = Strict

    schema_: Annotated[Literal["harness.release.v1"], Field(alias="schema")]
    name: Name
    parent: Name | None = None
    interaction: Interaction
    model: Model | None = None
    pair: Pair | None = None
    stages: Stages | None = None
    fusion: Fusion | None = None
    recorded: Recorded | None = None
    input: Input = Input()
    prompts: PromptTable = PromptTable()
    override: Override = Override()
    late: Late | None = None
    output: Output = Output()
    score: Score = Score()
    training: DeclaredTraining | None = None
    runtime: Runtime = Runtime()
    calibrator: CalibratorFile | None = None
    decision: Decision = Decision()
    rollback: Rollback | None = None
    tests: list[Text] = []

    @model_validator(mode="before")
    @classmethod
    def _stages_at_the_top(cls, written: Any) -> Any:
        """A two-stage release names its stages beside its own name."""
        keys = ("retriever", "reranker", "depth")
        if isinstance(written, dict) and written.get("interaction") == "two-stage" and "stages" not in written:
            stages = {key: written[key] for key in keys if key in written}
            return {key: value for key, value in written.items() if key not in keys} | {"stages": stages}
        return written

    @model_validator(mode="after")
    def _whole(self) -> "ReleaseDefinition":
        if self.parent == self.name:
            raise ValueError("a release cannot be its own `parent`")
        if self.model is not None and self.model.quantised and self.runtime.backend != "onnx":
            raise ValueError('`quantised` weights need [runtime] backend = "onnx"')
        if self.model is not None and self.model.quantised and self.interaction == "sparse":
            raise ValueError("a sparse encoder has no `quantised` weights: no reference tells what its head would give")
        if self.model is None and self.runtime.backend in ("onnx", "openvino"):
            raise ValueError("[runtime] `backend` stands in the release that has a [model]")
        origins = ORIGINS[self.interaction]
        every = {origin for some in ORIGINS.values() for origin in some}
        there = [origin for origin in sorted(every) if getattr(self, origin) is not None]
        for origin in there:
            if origin not in origins:
                raise ValueError(f"a {self.interaction} release has no [{origin}]")
        if not there:
            raise ValueError(f"a {self.interaction} release needs {' or '.join(map(_with_its_keys, origins))}")
        if len(there) > 1:
            raise ValueError(f"a release has one of {' and '.join(f'[{each}]' for each in there)}, not both")
        self._fits_its_origin(there[0])
        return self

    def _fits_its_origin(self, origin: str) -> None:
        for table in ABOUT_A_MODEL if origin != "model" else ():
            if table in self.model_fields_set:
                reason = "how its outputs were made is not observed" if origin == "recorded" else "its members say that"
                raise ValueError(f"a {self.interaction} release has no [{table}]: {reason}")
        if "prompts" in self.model_fields_set and self.interaction in WITHOUT_PROMPTS:
            raise ValueError(f"a {self.interaction} release has no [prompts]: its texts have no sides")
        if self.override != Override() and self.interaction != "bi":
            raise ValueError("only a bi release has an [override]")
        if self.late is not None and self.interaction != "late":
            raise ValueError("only a late release has a [late]")
        if self.output != Output() and self.interaction not in ("head", "cross"):
            raise ValueError(f"a {self.interaction} release has no [output]: it has no labels")
        if self.decision.path is not None and self.score.threshold is not None:
            raise ValueError("a threshold stands in [score] or in the file that [decision] names, not in both")
        if self.score.type is not None and self.interaction != "head":
            raise ValueError(f"the score type of a {self.interaction} release is its model's own")
        if self.score.label is not None and self.interaction != "cross":
            raise ValueError(f"a {self.interaction} release has no [score] `label`: no class of it ranks documents")

    def prompts_for(self, suite_name: str) -> SidePrompts:
        """What release.toml says of the prompts on one suite."""
        special = self.prompts.suites.get(suite_name, SidePrompts())
        return SidePrompts(
            query=self.prompts.query if special.query is None else special.query,
            document=self.prompts.document if special.document is None else special.document,
        )


def _with_its_keys(origin: str) -> str:
    """`[pair] with query, document`: a table that a release's outputs come from, and the keys that it must have."""
    tables: Mapping[str, type[BaseModel]] = {
        "model": Model, "pair": Pair, "stages": Stages, "fusion": Fusion, "recorded": Recorded,
    }  # fmt: skip
    needed = (name for name, field in tables[origin].model_fields.items() if field.is_required())
    return f"[{origin}] with {', '.join(needed)}"
