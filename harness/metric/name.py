"""Names of metrics. Of rankings, in ir_measures' grammar: `base`, `base(key=value,…)`, either with `@cutoff` behind.

The names that trec_eval, MTEB and ranx print are understood and turned into that grammar. All other metrics have
scikit-learn's names where it has one (harness/metric/task.py); the one class, or kind of case, that a metric is of
stands in square brackets: `f1[REFUND]`, `answer_f1[answerable]`.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal

from harness.errors import Misconfigured
from harness.metric.parameter import Parameter, Value
from harness.metric.task import TASK_METRICS, Form, TaskMetric, Use


@dataclass(frozen=True, slots=True)
class Grammar:
    """How a metric may be written, and what holds of it whatever the run.

    `needs_relevant`: without a relevant document the data allow no value. `span`: the largest possible loss.
    """

    cutoff: Literal["required", "allowed", "refused"] = "allowed"
    params: Mapping[str, Parameter] = field(default_factory=dict)
    needs_relevant: bool = True
    span: float = 1.0


REL = Parameter(1, "grade")
P = Parameter(0.8, "probability", shown=True)
DCG = Parameter("log2", "word", words=("log2", "exp-log2"))

METRICS: dict[str, Grammar] = {
    "nDCG": Grammar(params={"dcg": DCG}),
    "AP": Grammar(params={"rel": REL}),
    "RR": Grammar(params={"rel": REL}),
    "P": Grammar("required", params={"rel": REL}),
    "R": Grammar("required", params={"rel": REL}),
    "Success": Grammar("required", params={"rel": REL}),
    "Rprec": Grammar("refused", params={"rel": REL}),
    "Bpref": Grammar("refused", params={"rel": REL}),
    "ERR": Grammar(),
    "RBP": Grammar(params={"p": P, "rel": REL}),
    "Judged": Grammar(needs_relevant=False),
    "recall_ceiling": Grammar("refused", params={"rel": REL}),
}

ALIASES: dict[str, str] = {
    "ndcg": "nDCG",
    "NDCG": "nDCG",
    "ndcg_burges": "nDCG(dcg='exp-log2')",
    "map": "AP",
    "MAP": "AP",
    "mrr": "RR",
    "MRR": "RR",
    "recip_rank": "RR",
    "precision": "P",
    "Precision": "P",
    "P": "P",
    "recall": "R",
    "Recall": "R",
    "success": "Success",
    "hit_rate": "Success",
    "r-precision": "Rprec",
    "RPrec": "Rprec",
    "bpref": "Bpref",
    "BPref": "Bpref",
    "rbp": "RBP(p=0.9)",  # trec_eval's default; ir_measures' is 0.8
}

CANONICAL = re.compile(r"(?P<base>[A-Za-z]+(?:_[A-Za-z]+)*)(?:\((?P<params>[^()]*)\))?(?:@(?P<cutoff>.*))?", re.DOTALL)
ALIAS = re.compile(r"(?P<base>[A-Za-z]+(?:[-_][A-Za-z]+)*?)(?:(?P<mark>@|_at_|_cut[_.]|[_.])(?P<cutoff>-?[0-9]+))?")
CUTOFF = re.compile(r"0*[1-9][0-9]{0,8}")
TASK = re.compile(r"(?P<base>[a-z][a-z0-9_]*)(?:\((?P<params>[^()]*)\))?(?:\[(?P<label>.*)\])?", re.DOTALL)
RANKING_TASKS = ("retrieval", "reranking")


@dataclass(frozen=True, slots=True)
class MetricName:
    """A metric, its cutoff and its parameters by rising key, or its label; made by `parse`.

    `str()` is the canonical spelling.
    """

    base: str
    cutoff: int | None = None
    params: tuple[tuple[str, Value], ...] = ()
    label: str | None = None

    def __str__(self) -> str:
        known = _known_params(self.base)
        inside = ",".join(f"{value!r}" if known[key].bare else f"{key}={value!r}" for key, value in self.params)
        label = "" if self.label is None else f"[{self.label}]"
        cutoff = f"@{self.cutoff}" if self.cutoff else ""
        return self.base + (f"({inside})" if inside else "") + label + cutoff

    def param(self, key: str) -> Value:
        """The parameter's value, its default where the name leaves it out."""
        return dict(self.params).get(key, _known_params(self.base)[key].default)

    @property
    def rel(self) -> int:
        """The lowest grade that counts as relevant."""
        return int(self.param("rel")) if "rel" in METRICS[self.base].params else 1

    @property
    def task_metric(self) -> TaskMetric | None:
        """What is known of it beforehand; None for a metric of rankings."""
        return None if self.base in METRICS else TASK_METRICS[self.base]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks whose outputs it reads."""
        return self.task_metric.tasks if self.task_metric else RANKING_TASKS

    @property
    def form(self) -> Form:
        """How cases make it: a mean, a finish of summed rows, or a rank statistic."""
        if self.task_metric is None:
            return "mean"
        return "rank" if dict(self.params).get("by") == "mass" else self.task_metric.form

    @property
    def use(self) -> Use:
        """What may be demanded of it."""
        return self.task_metric.use if self.task_metric else "rule"

    @property
    def higher_is_better(self) -> bool:
        return self.task_metric.higher_is_better if self.task_metric else True

    @property
    def target(self) -> float | None:
        """The right value of a metric of which neither side is better; None of every other."""
        return self.task_metric.target if self.task_metric else None

    @property
    def needs_relevant(self) -> bool:
        """Whether a case without relevant documents can have no value (trec_eval scores it 0)."""
        return self.base in METRICS and METRICS[self.base].needs_relevant

    @property
    def span(self) -> float:
        """How far it can fall at most: a mean's case, or the whole of any other metric."""
        return self.task_metric.span if self.task_metric else METRICS[self.base].span

    @property
    def lowest(self) -> float:
        return self.task_metric.lowest if self.task_metric else 0.0

    @property
    def highest(self) -> float:
        return self.task_metric.highest if self.task_metric else METRICS[self.base].span


def parse(text: str) -> MetricName:
    """Read a metric's name; `parse(str(name)) == name`, and a parameter at its default reads as one left out.

    Raises Misconfigured, with the nearest right spelling, for an unknown metric or parameter, a value out of
    range, and a cutoff that is not positive, missing where it is needed, or given where there is none.
    """
    canonical = CANONICAL.fullmatch(text)
    if canonical and canonical["base"] in METRICS:
        return _checked(text, canonical["base"], canonical["params"], canonical["cutoff"])
    task = TASK.fullmatch(text)
    if task and task["base"] in TASK_METRICS and (task["label"] is not None or task["base"] not in ALIASES):
        return _task_metric(text, task["base"], task["params"], task["label"])
    alias = ALIAS.fullmatch(text)
    if alias is None or alias["base"] not in ALIASES:
        raise _refusal(text, "no metric has this name", _nearest(text))
    if alias["base"] == "rbp" and alias["mark"] == ".":  # ranx writes p = 0.80 as rbp.80
        return _checked(text, "RBP", f"p=0.{alias['cutoff']}", None)
    base, _, inside = ALIASES[alias["base"]].rstrip(")").partition("(")
    return _checked(text, base, inside or None, alias["cutoff"])


def _known_params(base: str) -> Mapping[str, Parameter]:
    return METRICS[base].params if base in METRICS else TASK_METRICS[base].params


def _task_metric(text: str, base: str, inside: str | None, label: str | None) -> MetricName:
    params = _params(text, base, inside, "")
    parts = TASK_METRICS[base].parts
    if label is not None and not TASK_METRICS[base].label and label not in parts:
        near = get_close_matches(label, parts, n=1)
        found = f"{base} has no part {label!r}" if parts else f"{base} is not of one label"
        raise _refusal(text, found, f"{base}[{near[0]}]" if near else base)
    if TASK_METRICS[base].label == "optional" and label == "":
        raise _refusal(text, "no label stands in the brackets", base)
    if TASK_METRICS[base].label is True and not label:
        raise _refusal(text, f"{base} needs an average or a label", f"{base}_macro")
    return MetricName(base, params=params, label=label)


def _checked(text: str, base: str, inside: str | None, cutoff: str | None) -> MetricName:
    grammar = METRICS[base]
    tail = "" if grammar.cutoff == "refused" else f"@{cutoff}" if cutoff else ""
    params = _params(text, base, inside, tail)
    right = str(MetricName(base, None, params))
    if grammar.cutoff == "refused" and cutoff is not None:
        raise _refusal(text, f"{base} has no cutoff", right)
    if grammar.cutoff == "required" and cutoff is None:
        raise _refusal(text, f"{base} needs a cutoff", f"{right}@10")
    if cutoff is not None and not CUTOFF.fullmatch(cutoff):
        raise _refusal(text, f"the cutoff is {cutoff!r}, not a positive whole number", f"{right}@10")
    return MetricName(base, None if cutoff is None else int(cutoff), params)


def _params(text: str, base: str, inside: str | None, tail: str) -> tuple[tuple[str, Value], ...]:
    known = _known_params(base)
    given: dict[str, Value] = {key: each.default for key, each in known.items() if each.shown}
    seen = set[str]()
    for part in inside.split(",") if inside is not None else ():
        key, equals, written = (piece.strip() for piece in part.partition("="))
        bare = next((name for name, each in known.items() if each.bare), None)
        if bare is not None and not equals and key:
            key, equals, written = bare, "=", key
        if key not in known or not equals or key in seen:
            found = f"{key!r} is given twice" if key in seen else f"{base} has no parameter {part.strip()!r}"
            shown = next(iter(known), None)
            raise _refusal(text, found, f"{base}({_written(known, shown)}){tail}" if shown else f"{base}{tail}")
        seen.add(key)
        value = _literal(written)
        if not known[key].admits(value):
            right = f"{base}({_written(known, key)}){tail}"
            raise _refusal(text, f"{key} is {written}", f"{right}, where {key} is {known[key].expected}", mend=right)
        given[key] = float(value) if known[key].kind == "share" else value
    kept = {key: value for key, value in given.items() if known[key].shown or value != known[key].default}
    return tuple(sorted(kept.items()))


def _written(known: Mapping[str, Parameter], key: str) -> str:
    """A parameter as it may be written, at its default."""
    each = known[key]
    return f"{each.default!r}" if each.bare else f"{key}={each.default!r}"


def _literal(written: str) -> object:
    try:
        return ast.literal_eval(written)
    except (ValueError, SyntaxError):
        return None


def _nearest(text: str) -> str:
    """The right spelling that lies nearest to a wrong one, with its cutoff where it has one."""
    plain = text.lower().removeprefix("neg_")
    whole = [name for name, metric in TASK_METRICS.items() if metric.label is not True]
    if near := get_close_matches(plain, whole, n=1, cutoff=0.85):
        return near[0]
    known = {name.lower(): name for name in METRICS} | {alias.lower(): base for alias, base in ALIASES.items()}
    known |= {name: name for name in whole}
    stem = re.split(r"[(@.\d]|_at_|_cut|_(?=\d)", text, maxsplit=1)[0].lower()
    close = get_close_matches(stem, known, n=1, cutoff=0.5)
    if not close:
        ranking = (name + ("@10" if METRICS[name].cutoff == "required" else "") for name in METRICS)
        others = (name + ("[LABEL]" if metric.label is True else "") for name, metric in TASK_METRICS.items())
        return "one of " + ", ".join([*ranking, *others])
    right = known[close[0]]
    if right in TASK_METRICS:
        return right
    numbers = re.findall(r"(?:@|_at_|_|\.)([1-9][0-9]{0,8})$", text)
    allowed = METRICS[right.partition("(")[0]].cutoff
    if allowed == "refused" or (allowed == "allowed" and not numbers):
        return right
    return f"{right}@{numbers[0] if numbers else 10}"


def _refusal(text: str, found: str, expected: str, mend: str | None = None) -> Misconfigured:
    return Misconfigured(f"metric {text!r}", found=found, expected=expected, mend=f"Write {mend or expected}.")
