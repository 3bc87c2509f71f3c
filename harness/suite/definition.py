"""The schema of `suite.toml`."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from harness.gate.rule import Guards, Name, Rule, Uncertainty, Written

Strict = ConfigDict(extra="forbid", frozen=True, strict=True)
Text = Annotated[str, Field(min_length=1)]
Role: TypeAlias = Literal["train", "development", "calibration", "promotion"]
Task: TypeAlias = Literal[
    "retrieval",
    "reranking",
    "classification",
    "multilabel",
    "regression",
    "similarity",
    "entity",
    "answer",
    "multiple-choice",
]
Format: TypeAlias = Literal["beir", "trec", "mteb", "squad", "conll", "table", "jsonl"]
Column: TypeAlias = Text | int
Word: TypeAlias = Literal["zero", "one", "leave-out"]

ALL = "all"
RANKED = ("retrieval", "reranking")
"""Tasks in which documents of a corpus are ranked."""

CHOICES = ("where", "cases", "file", "by", "mechanism")
Mechanism: TypeAlias = Literal[
    "length",
    "language",
    "support",
    "entity-type",
    "entity-length",
    "answer-position",
    "truncation",
    "padding",
    "candidate-rank",
    "embedding-norm",
]
FROM_PARENT: tuple[Mechanism | None, ...] = ("truncation", "padding", "candidate-rank", "embedding-norm")
"""Mechanisms of which only a run knows, by what the parent did."""

RIGHT: dict[Task, str | None] = {
    "retrieval": "Success@1",
    "reranking": "Success@1",
    "classification": "accuracy",
    "multilabel": "subset_accuracy",
    "regression": None,
    "similarity": None,
    "entity": "sequence_accuracy",
    "answer": "exact_match",
    "multiple-choice": "choice_accuracy",
}
"""By which metric a case is right where suite.toml does not say; of numbers there is no such."""


class Columns(BaseModel):
    """`columns` of `source`: where a format without names of its own has what a case needs.

    A name, or a column's number, from 1; from the right by negative ones. Left out: the name of the field itself, in
    formats that name their columns.
    """

    model_config = Strict

    id: Column | None = None
    text: Column | None = None
    text_a: Column | None = None
    text_b: Column | None = None
    question: Column | None = None
    context: Column | None = None
    choices: Column | list[Column] | None = None
    tokens: Column | None = None
    label: Column | None = None
    labels: Column | None = None
    value: Column | None = None
    tags: Column | None = None
    answers: Column | None = None


class Source(BaseModel):
    """Where the data lie. `path` is from the suite's folder, the other files are from `path`.

    Of tasks without a corpus, `path` is the file, or the folder of the files that `[cases] role` names. `separator`
    stands between a table's columns, `quotes` says whether quotes enclose some, `header` whether the first line names
    them; `surplus`, what becomes of cells beyond them. `attributes`: which columns without a name are attributes, and
    what they are called. `between` stands between the labels of one cell; without it they are a JSON list. `comments`
    begins the lines of columns that are none. `task`: of MTEB's tasks, the one that is meant; `subset` of its data;
    `revision` of these, where their folder does not say it.
    """

    model_config = Strict

    format: Format
    path: Text = "."
    corpus: Text | None = None
    queries: Text | None = None
    qrels: Text | None = None
    columns: Columns = Columns()
    separator: Literal["tab", "comma", "semicolon", "blank"] | None = None
    quotes: bool | None = None
    header: bool | None = None
    surplus: Literal["refuse", "drop"] = "refuse"
    attributes: dict[Text, Column] = {}
    between: Text | None = None
    comments: Text | None = None
    task: Text | None = None
    subset: Text | None = None
    revision: Text | None = None


class CandidateLists(BaseModel):
    """`[candidates]`: what every release of a reranking suite is given to rank. `path` is from the suite's folder."""

    model_config = Strict

    path: Text
    format: Literal["tsv", "trec-run"] = "tsv"


class CasePolicy(BaseModel):
    """`[cases]`: which attributes name role and group, and what becomes of cases that lack something.

    `role` is an attribute, or a role for every qrels file; without it every case is promotion. `window_parent` is the
    attribute that names the text of which a case is a window.
    """

    model_config = Strict

    role: Text | Annotated[dict[str, Role], Field(min_length=1)] | None = None
    group: Text | None = None
    window_parent: Text | None = None
    unjudged: Literal["refuse", "drop"] = "refuse"
    dangling: Literal["refuse", "drop"] = "refuse"
    missing: Literal["undecided", "zero"] = "undecided"


class RankingPolicy(BaseModel):
    """`[ranking]`: how scores become an order. A live score is rounded to `grid` before ordering.

    `max_judged_gap` is how far the candidate's Judged@k may fall below its parent's before a FAIL is UNDECIDED.
    `candidates`: whether the last stages of two releases must be given the same documents, or each its own.
    """

    model_config = Strict

    depth: Annotated[int, Field(gt=0, le=100_000)] = 100
    ties: Literal["expected", "trec"] = "expected"
    self_match: Literal["keep", "drop"] = "keep"
    no_relevant: Literal["not-applicable", "zero"] = "not-applicable"
    grid: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1e-6
    max_judged_gap: Annotated[float, Field(ge=0, le=1)] | None = None
    candidates: Literal["shared", "own"] = "shared"


class Words(BaseModel):
    """What one metric says of 0/0, where it departs from the suite's."""

    model_config = Strict

    empty: Word | None = None
    absent: Word | None = None
    division: Word | None = None


class MetricPolicy(BaseModel):
    """`[metrics.policy]`: what the metrics leave open.

    0/0: `absent`, a class neither gold nor predicted; `division`, the precision of what nobody is given and the recall
    of what nobody has (zero in averages, undefined of one class); `empty`, gold and prediction both empty;
    `per_metric` has what departs from it. `clip`: the range that numbers are put into. Of tags, `scheme`, and whether
    an illegal tag may open an entity (`conlleval`) or not (`strict`). Of answers, the `articles` and the
    `punctuation` that do not count, whether `cjk` characters are words by themselves, and what an answer of articles
    alone is compared as (`empty_answer`; `official` is SQuAD's). `costs`: of a confusion, by gold and predicted
    label, the rest 1. `boundary_gap`: how far in probability what is right may lie behind what was given for the case
    to be told as one at a boundary; it describes, and no metric reads it.
    """

    model_config = Strict

    empty: Word = "one"
    absent: Word = "leave-out"
    division: Word | None = None
    per_metric: dict[Text, Words] = {}
    scheme: Literal["IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU"] = "IOB2"
    reading: Literal["strict", "conlleval"] = "strict"
    articles: Literal["en", "de", "es", "vi", "ar", "none"] = "en"
    punctuation: Literal["ascii", "unicode"] = "ascii"
    cjk: Literal["word", "character"] = "word"
    empty_answer: Literal["as-written", "official"] = "as-written"
    costs: dict[Text, dict[Text, Annotated[float, Field(ge=0, allow_inf_nan=False)]]] = {}
    clip: Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=2, max_length=2)] | None = None
    boundary_gap: Annotated[float, Field(ge=0, le=1)] = 0.1

    @field_validator("clip")
    @classmethod
    def _rises(cls, clip: list[float] | None) -> list[float] | None:
        if clip is not None and not clip[0] < clip[1]:
            raise ValueError("the range that numbers are put into: a low, then a high")
        return clip


class Metrics(BaseModel):
    """`[metrics]`: names as in ir_measures and scikit-learn. A case is `right`, in the transitions, where this metric
    is 1; None where no metric says so.
    """

    model_config = Strict

    primary: Text
    report: list[Text] = []
    right: Text | None = None
    policy: MetricPolicy = MetricPolicy()


class Slice(BaseModel):
    """One slice: the cases for which an SQL condition holds (`where`), a list (`cases`), or the lines of a `file`. Or
    several: one a value of the attribute `by`, or a pair of values of two; one a bin of a `mechanism`. These name
    themselves. `min_support` counts groups.
    """

    model_config = Strict

    name: Name | None = None
    where: Text | None = None
    cases: Annotated[list[Text], Field(min_length=1)] | None = None
    file: Text | None = None
    by: Text | Annotated[list[Text], Field(min_length=1, max_length=2)] | None = None
    mechanism: Mechanism | None = None
    critical: bool = False
    min_support: Annotated[int, Field(ge=1)] = 20

    @model_validator(mode="after")
    def _one_choice(self) -> "Slice":
        said = [name for name in CHOICES if getattr(self, name) is not None]
        if len(said) != 1:
            raise ValueError(f"a slice needs one of {', '.join(CHOICES)}; there is {' and '.join(said) or 'none'}")
        if (self.name is None) == (said[0] in ("where", "cases", "file")):
            raise ValueError(
                f"a slice by `{said[0]}` needs a `name`"
                if self.name is None
                else f"slices by `{said[0]}` are named by what they hold: take `name` out"
            )
        if len(set(self.crossed)) < len(self.crossed):
            raise ValueError("`by` names one attribute twice")
        return self

    @property
    def kind(self) -> str:
        """The key that says which cases are meant."""
        return next(name for name in CHOICES if getattr(self, name) is not None)

    @property
    def crossed(self) -> tuple[str, ...]:
        """The attributes of `by`."""
        return () if self.by is None else (self.by,) if isinstance(self.by, str) else tuple(self.by)


class LeakWaiver(BaseModel):
    """Why one finding may stand. `finding` is the digest that `freeze` or `run` prints; `release` names the one whose
    training files hold the case's text.
    """

    model_config = Strict

    finding: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    reason: Written
    release: Text | None = None


class Leakage(BaseModel):
    """`[leakage]`: texts of two roles are nearly the same where the Jaccard likeness of their sets of `shingle` words
    in a row reaches `threshold`.
    """

    model_config = Strict

    threshold: Annotated[float, Field(gt=0, le=1)] = 0.8
    shingle: Annotated[int, Field(ge=1, le=20)] = 3
    waivers: list[LeakWaiver] = []


class Budget(BaseModel):
    """`[budget]`: how many runs may read the promotion outcomes before further ones are UNDECIDED."""

    model_config = Strict

    promotion_reads: Annotated[int, Field(ge=1)] | None = None


class SuiteDefinition(BaseModel):
    """`suite.toml` as it was written, defaults filled in."""

    model_config = Strict

    schema_: Annotated[Literal["harness.suite.v1"], Field(alias="schema")]
    name: Text
    task: Task
    source: Source
    candidates: CandidateLists | None = None
    license: str | None = None
    revision: str | None = None
    labels: Annotated[list[Text], Field(min_length=1)] | None = None
    cases: CasePolicy = CasePolicy()
    ranking: RankingPolicy = RankingPolicy()
    metrics: Metrics
    slices: list[Slice] = []
    uncertainty: Uncertainty = Uncertainty()
    rules: list[Rule] = []
    guards: Guards | None = None
    budget: Budget = Budget()
    leakage: Leakage = Leakage()

    @field_validator("name")
    @classmethod
    def _file_name(cls, name: str) -> str:
        if not name.isprintable() or name != name.strip() or name.startswith(".") or set(name) & set("/\\:"):
            raise ValueError("a suite's name must be able to name a folder: no slash, colon, leading dot or blank")
        return name

    @model_validator(mode="before")
    @classmethod
    def _right_by_task(cls, written: Any) -> Any:
        """Where suite.toml does not say when a case is right, its task does."""
        metrics = written.get("metrics") if isinstance(written, dict) else None
        if isinstance(metrics, dict) and "right" not in metrics:
            # By comparison: what stands there may be anything, also what no dictionary can look up.
            right = next((by for task, by in RIGHT.items() if task == written.get("task")), None)
            return {**written, "metrics": {**metrics, "right": right}}
        return written

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Every metric that a run must measure, as written, each once: primary, reported, ruled, guarded."""
        ruled = [rule.metric for rule in self.rules if rule.kind != "invariant"]
        guarded = self.guards.metrics if self.guards else []
        return tuple(dict.fromkeys([self.metrics.primary, *self.metrics.report, *ruled, *guarded]))
