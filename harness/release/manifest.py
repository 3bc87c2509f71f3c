"""The manifest `numinens.readout.v1`: all that a release means, so that its vectors and scores can be rebuilt by hand.

Four siblings. `meaning` holds plain values alone, and the content ID is the digest of its canonical JSON: renaming or
moving a release changes nothing. Where each value comes from, and what an override departs from, is `evidence`. What
computes is `runtime`, and what the release is called is `identity`.

No field has a default: what a folder does not say is asked for, and what does not apply is said to be null.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from harness.identity import Json

Strict = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Width = Annotated[int, Field(gt=0)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Side: TypeAlias = Literal["query", "document", "pair", "text"]
PoolingMode: TypeAlias = Literal["cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", "sum"]
ScoreType: TypeAlias = Literal["logit", "probability", "cosine", "dot", "squared-l2", "maxsim", "value", "tags"]
Aggregation: TypeAlias = Literal["rows", "mean", "max", "best", "mean-of-logits", "mean-of-probabilities"]
Which: TypeAlias = Literal["first", "second"]
Owner: TypeAlias = Literal["first", "centre", "largest-context"]


class Artifact(BaseModel):
    """What was trained. Digests of tensors (name, type, shape, bytes), whatever files they lie in; an `adapter` counts
    as the backbone's.

    `head` is what turns contextual rows straight into scores; the weights of what makes a vector are its projections'.
    `config` is the model's configuration without what is said elsewhere (labels, activation) and what says nothing
    about outputs (names, versions). `quantised`: how the weights are rounded before they are used. `visibility` is
    which positions a row may attend to. `revision` and `task_revision` as declared.
    """

    model_config = Strict

    architecture: str
    model_type: str
    config: Digest
    backbone: Digest | None
    adapter: Digest | None
    head: Digest | None
    quantised: Literal["int8"] | None
    visibility: Literal["bidirectional", "causal", "causal-made-bidirectional"]
    revision: str | None
    task_revision: str | None


class Window(BaseModel):
    """A long text as overlapping parts, in tokens, and what becomes one of what they give.

    `size`: tokens that are read at once, special ones, prompt and question included; `stride`: from one window's start
    to the next, in tokens of the text. `aggregation`: the text's contextual `rows` out of all windows, the `mean` of
    their vectors, the `max` of each entry of their sparse vectors, the `best` of their scores, the `mean-of-logits` or
    the `mean-of-probabilities` of a head. `text`: which of two texts that are read together is in windows, behind or
    before the other; null where each is read alone.
    `normalise`: of a mean, whether the readout's normalisation stands before it or after it, null where it has none.
    `owner`: of rows, by which a token that several windows show is taken from one of them.
    """

    model_config = Strict

    size: Width
    stride: Width
    aggregation: Aggregation
    normalise: Literal["before", "after"] | None
    owner: Owner | None
    text: Which | None


class Input(BaseModel):
    """From a text to token IDs. `tokenizer`: digests of its files by bare name. `prompts` by side, put before the text
    as they are; `template` names how pairs join.

    `suite_prompts`: the prompts on those suites where they depart from `prompts`. `normaliser` as the tokenizer states
    it, long strings by their digest. `special_tokens`: IDs by role, where the tokenizer's files give one. `max_length`
    is the effective one, special tokens included. `truncated_first`: of a pair, the side cut first.
    """

    model_config = Strict

    tokenizer: dict[str, Digest]
    normaliser: JsonValue
    lower_case: bool | None
    max_length: Width
    truncation_side: Literal["left", "right"]
    truncation: Literal["longest_first", "only_first", "only_second"]
    truncated_first: Literal["first", "second", "longest"] | None
    padding_side: Literal["left", "right"]
    special_tokens: dict[str, int]
    prompts: dict[Side, str]
    suite_prompts: dict[str, dict[Side, str]]
    template: Literal["single", "pair", "choices"]
    window: Window | None


class Rows(BaseModel):
    """Which rows count. A mask is boolean and True counts.

    `skipped`: tokens whose rows are left out. `expansion`: the width to which a text is filled up with
    `expansion_token` (exactly, cutting longer ones, or at least), whether those rows count, and whether the other rows
    attend to them. `segments`: segment IDs are an input. `sequences`, `offsets` and `words`: whether the
    tokenizer gives them.
    """

    model_config = Strict

    mask: Literal["attention_mask"]
    polarity: Literal["1 counts"]
    special: bool
    prompt: bool
    skipped: dict[Side, list[str]]
    expansion: dict[Side, int]
    expansion_counts: bool | None
    expansion_strategy: Literal["fixed", "min"] | None
    expansion_token: str | None
    expansion_attended: bool | None
    segments: bool
    sequences: bool
    offsets: bool
    words: bool


class State(BaseModel):
    """Contextual rows [batch, row, width]: of one layer, or a weighted mixture of several."""

    model_config = Strict

    layers: list[int]
    mixture: list[float] | None
    scale: float | None
    final_norm: bool
    axes: Literal["batch, row, width"]
    width: Width


class Projection(BaseModel):
    """A linear map after the pooling (or of each row), in the order of the modules.

    `residual`: what went in is added to what comes out. `weights`: the digest of its tensors, null where
    they are the artifact's head.
    """

    model_config = Strict

    kind: Literal["dense", "layer-norm", "mlm", "pooler"]
    width_in: Width
    width_out: Width
    bias: bool
    activation: str
    residual: bool
    weights: Digest | None


class Normalisation(BaseModel):
    """To unit length. `stage`: after which step; `epsilon` is the smallest length divided by."""

    model_config = Strict

    kind: Literal["none", "l2"]
    epsilon: float | None
    stage: Literal["none", "after-pooling", "after-projection", "after-truncation", "per-row"]


class Readout(BaseModel):
    """From rows to what is kept of a text.

    `modes` in the order in which they are joined. `denominator`: what a mean divides by. `empty`: what becomes of a
    text without a counted row; libraries that clamp give `zero`. `max_active_dims`: how many of a sparse vector's
    largest values are kept. `stored`: how the vector is kept.
    """

    model_config = Strict

    family: Literal["pooled", "rows", "sparse", "cls-head", "token-head", "span-head", "choice-head"]
    modes: list[PoolingMode]
    denominator: Literal["counted rows", "square root of counted rows", "sum of weights", "none"]
    weights: Literal["none", "content-relative", "physical-position"]
    projections: list[Projection]
    normalisation: Normalisation
    truncate_dim: Width | None
    renormalised: bool | None
    max_active_dims: Width | None
    empty: Literal["reject", "learned", "fallback-row", "zero"]
    dropout: Literal["off"]
    stored: Literal["float32", "float16", "bfloat16", "int8", "binary"]


class Regression(BaseModel):
    """What a predicted number is in. The inverse transform is `value * scale + shift`."""

    model_config = Strict

    units: str
    scale: Finite
    shift: Finite


class Output(BaseModel):
    """What a number in the output is called. `labels` in the order of the head's rows.

    `null`: the label, of tags too, that stands for none of the others; of spans `first row`, whose score is that of
    there being no answer. `pieces`: which of a word's pieces speak for its tag, the `first`, all where they `all-agree`
    (else the word has the null tag), or the `mean` of their probabilities. `longest`: tokens of an answer at most.
    """

    model_config = Strict

    kind: Literal[
        "vector", "rows", "sparse-vector", "score", "classes", "multilabel", "value", "tags", "span", "choice"
    ]  # fmt: skip
    dimension: Width
    labels: list[str] | None
    generic_labels: bool
    null: str | None
    decoder: Literal["none", "argmax", "sigmoid-threshold", "constrained", "crf", "span-search"]
    pieces: Literal["first", "all-agree", "mean"] | None
    longest: Width | None
    transitions: Digest | None
    regression: Regression | None


class Calibrator(BaseModel):
    """A fitted map from scores to probabilities, by the digest of its file and the key it was fitted under."""

    model_config = Strict

    family: str
    digest: Digest
    fitted_under: Digest


class Decided(BaseModel):
    """By what a score becomes a decision, besides its threshold: `type`, of which score that is, null where it is the
    release's own; `ground` and `below`, when nothing is said; `digest` and `fitted_under`, of a file that says on what
    it was fitted, null where someone wrote the numbers.
    """

    model_config = Strict

    type: Literal["logit", "probability", "cosine", "dot", "squared-l2", "maxsim", "value", "gap"] | None
    ground: Literal["confidence", "margin", "entropy", "gap", "answerability"] | None
    below: float | None
    digest: Digest | None
    fitted_under: Digest | None


class Score(BaseModel):
    """What two texts, or a text and its labels, are worth to each other. `label`: of a head of several numbers, the
    class whose number ranks; null where there is one number, or where no documents are ranked.
    """

    model_config = Strict

    type: ScoreType
    low: float | None
    high: float | None
    higher_is_better: bool
    sums_to: float | None
    probability: bool
    activation: str
    label: str | None
    temperature: float | None
    index: Literal["none", "flat"]
    threshold: float | list[float] | None
    ties: Literal["expected", "trec", "label-order"]
    calibrator: Calibrator | None
    decision: Decided | None


class Interaction(BaseModel):
    """How texts meet. `maxsim`: what becomes of the query rows' largest similarities; `maxsim_ties`: which row wins
    among equals. `releases`: content IDs by role. `depth`: candidates a second stage is given. Of a fusion: `pool`, how
    many of each member's documents take part (with all that tie for the last place); `rank_constant`, what is added to
    a rank before its reciprocal is taken; `absent`, what a document beyond a member's own is taken to have there, 0 by
    reciprocal rank and else the member's lowest scaled score of that query.
    """

    model_config = Strict

    kind: Literal["bi", "cross", "late", "sparse", "two-stage", "fusion", "head", "recorded"]
    tied: bool | None
    releases: dict[str, Digest]
    depth: Width | None
    maxsim: Literal["sum", "mean"] | None
    maxsim_ties: Literal["first"] | None
    token_schema: str | None
    weights: dict[str, float]
    scales: dict[str, str]
    pool: Width | None
    rank_constant: float | None
    absent: Literal["lowest"] | None


class Tower(BaseModel):
    """One encoder, from text to what is kept of it."""

    model_config = Strict

    artifact: Artifact
    input: Input
    rows: Rows
    state: State
    readout: Readout


class Recording(BaseModel):
    """Outputs made elsewhere: what made them is declared by `revision` alone, not observed. `label_map`: what the data
    call a label of theirs; `column`: of files in columns, the one that is read; `null_scores`: the file of those.
    """

    model_config = Strict

    format: str
    outputs: Digest
    revision: str | None
    label_map: dict[str, str]
    column: int | None
    null_scores: Digest | None


class Training(BaseModel):
    """What is declared of the training; checked where the release gives the names."""

    model_config = Strict

    dataset_revision: str | None = None
    split: Digest | None = None
    objectives: list[str] = []
    positives: str | None = None
    admitted: str | None = None
    temperature: float | None = None
    margin: float | None = None
    margin_metric: str | None = None
    miner: str | None = None
    miner_revision: str | None = None
    gather: str | None = None
    denominators: str | None = None
    task_weights: dict[str, float] = {}
    sampler: str | None = None
    ignored_rows: str | None = None
    seed: int | None = None
    trainable: list[str] = []
    frozen: list[str] = []
    first_trainable: str | None = None
    last_trainable: str | None = None
    modes: dict[str, str] = {}
    schedule: str | None = None
    phase: str | None = None
    base: str | None = None
    adapter: str | None = None
    parent: str | None = None
    head_only: bool = False


class Meaning(BaseModel):
    """A to S. `towers`: one under `both` where the sides share it, else one for each; none for a recording."""

    model_config = Strict

    interaction: Interaction
    towers: dict[Literal["both", "query", "document", "pair", "text"], Tower]
    output: Output
    score: Score
    recording: Recording | None
    training: Training | None

    def as_json(self) -> Mapping[str, Json]:
        """The plain JSON whose canonical form is digested."""
        dumped: Mapping[str, Json] = self.model_dump(mode="json")
        return dumped


class Runtime(BaseModel):
    """What computes. `declared` by release.toml, `observed` when the release was opened or run."""

    model_config = Strict

    declared: dict[str, JsonValue]
    observed: dict[str, JsonValue]


class Evidence(BaseModel):
    """`sources`: for a path in the meaning, the file and JSON pointer it was read from, `declared`, `derived` or
    `library` (the installed library's own fixed behaviour). `overridden`: what the folder says where release.toml
    departs from it. `files`: every file that was read.
    """

    model_config = Strict

    sources: dict[str, str]
    overridden: dict[str, JsonValue]
    files: dict[str, Digest]


class Identity(BaseModel):
    """What the release is called here; no part of what it means."""

    model_config = Strict

    name: str
    parent: str | None
    content_id: Digest
    rollback_compatible: bool | None
    tests: list[str]


class Manifest(BaseModel):
    """The whole record of a release."""

    model_config = Strict

    schema_: Annotated[Literal["numinens.readout.v1"], Field(alias="schema")]
    meaning: Meaning
    runtime: Runtime
    evidence: Evidence
    identity: Identity

    def as_record(self) -> dict[str, Json]:
        dumped: dict[str, Json] = self.model_dump(mode="json", by_alias=True)
        return dumped

    def place(self, tower: str) -> PurePosixPath:
        """Where in the model folder an encoder's configuration, tokenizer and weights are."""
        source = self.evidence.sources[f"towers.{tower}.artifact.config"]
        return PurePosixPath(source.partition("#")[0]).parent
