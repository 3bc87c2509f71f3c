"""Whether the parts of a suite's definition speak of one another, and of its task."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from harness.errors import Misconfigured
from harness.file.toml import Key, nearest, place
from harness.gate.rule import Rule
from harness.identity import canonical_json
from harness.metric.name import parse
from harness.output.diagnostic import MEANINGS, base
from harness.suite.definition import ALL, RANKED, SuiteDefinition
from harness.suite.demand import check_bounds, refuse_diagnostics
from harness.suite.slices import has_own_names, nearest_slice, static_names

COUNTS = ("missing", "failed", "non-finite", "truncated", "tied", "illegal")
"""Counts that an invariant rule may hold to a value."""
ONE_FORECAST = {
    "multiple-choice": "the likeliest choice",
    "similarity": "whether a pair is the same",
    "retrieval": "whether a question is answerable",
    "reranking": "whether a question is answerable",
}
"""Tasks that forecast one thing of a case, and what."""
OF_TWO = {
    "brier_binary": "Write brier_sum, which is over all classes (and twice as large for two).",
    "ece_positive": "Write ece_classwise, which is over all classes, or ece_positive[CLASS].",
}
"""Metrics that are bare of two classes alone, and what is written of more."""


def check(definition: SuiteDefinition, path: Path) -> None:
    """Raises Misconfigured, with the line in `path`, for parts of a definition that contradict each other."""
    _unique(path, [(("slices", i, "name"), each.name) for i, each in enumerate(definition.slices) if each.name])
    _unique(path, [(("rules", i, "id"), rule.id) for i, rule in enumerate(definition.rules)])
    guarded = _listed(definition)
    _unique(path, [(("guards", "slices"), name) for name in guarded])
    for position, each in enumerate(definition.slices):
        if each.name == ALL:
            raise Misconfigured(
                place(path, "slices", position, "name"), found=f"a slice called {ALL!r}",
                expected=f"another name: {ALL!r} is every case of a role and always there", mend="Rename the slice.",
            )  # fmt: skip
    for position, rule in enumerate(definition.rules):
        _check_rule(definition, path, position, rule)
    if has_own_names(definition):
        check_slices(definition, static_names(definition), path)
    for keys, name in _metrics(definition):
        _check_metric(definition, path, keys, name)
    check_bounds(definition, path)
    refuse_diagnostics(definition, path)
    # By meaning: two spellings of one metric would count it twice in the family of guards.
    _unique(path, [(("metrics", "report"), str(parse(name))) for name in definition.metrics.report])
    if definition.guards:
        _unique(path, [(("guards", "metrics"), str(parse(name))) for name in definition.guards.metrics])
    _check_words(definition, path)
    _check_candidates(definition, path)
    _check_right(definition, path)
    _check_own_labels(definition, path)
    try:
        canonical_json(definition.model_dump(mode="json"))
    except ValueError as error:
        raise Misconfigured(
            str(path), found=str(error), expected="numbers that JSON can hold (whole ones below 2**53)",
            mend="Use a smaller number.",
        ) from error  # fmt: skip


def _check_right(definition: SuiteDefinition, path: Path) -> None:
    right = definition.metrics.right
    if right is not None and not (parse(right).form == "mean" and parse(right).highest == 1):
        raise Misconfigured(
            place(path, "metrics", "right"), found=f"{right!r}, which is no case right or wrong",
            expected="a metric that is 1 of a case that is right", mend="Name another, or leave `right` out.",
        )  # fmt: skip


def _check_own_labels(definition: SuiteDefinition, path: Path) -> None:
    if definition.labels is None:
        return
    _unique(path, [(("labels",), label) for label in definition.labels])
    if definition.task not in ("classification", "multilabel", "entity"):
        raise Misconfigured(
            place(path, "labels"), found=f"`labels` of a {definition.task} suite",
            expected="labels of classification, multilabel or entity", mend="Take `labels` out.",
        )  # fmt: skip


def check_labels(definition: SuiteDefinition, labels: Sequence[str], path: Path) -> None:
    """Raises Misconfigured, with the line in `path`, for what speaks of a label that the data cannot give."""
    for keys, name in _metrics(definition):
        metric = parse(name)
        if metric.label is not None and metric.label not in labels:
            _refuse_label(path, keys, name, metric.label, labels)
        if definition.task == "classification" and len(labels) > 2 and metric.label is None and metric.base in OF_TWO:
            raise Misconfigured(
                place(path, *keys), found=f"{name!r} of {len(labels)} classes", expected="two classes",
                mend=OF_TWO[metric.base],
            )  # fmt: skip
    for gold in definition.metrics.policy.costs:
        if gold not in labels:
            _refuse_label(path, ("metrics", "policy", "costs"), f"costs of {gold}", gold, labels)


def _refuse_label(path: Path, keys: Sequence[Key], what: str, label: str, labels: Sequence[str]) -> NoReturn:
    meant = nearest(label, labels)
    raise Misconfigured(
        place(path, *keys), found=f"{what!r}, and no label {label!r}",
        expected=f"one of {', '.join(repr(each) for each in labels)}",
        mend=f"Did you mean {meant!r}?" if meant else "Correct it, or declare the label under `labels`.",
    )  # fmt: skip


def check_slices(definition: SuiteDefinition, names: Sequence[str], path: Path) -> None:
    """Raises Misconfigured, with the line in `path`, for a slice that a rule or a guard names and that isn't there."""
    for position, rule in enumerate(definition.rules):
        _known_slice(names, path, ("rules", position, "slice"), rule.slice)
    for name in _listed(definition):
        _known_slice(names, path, ("guards", "slices"), name)


def _listed(definition: SuiteDefinition) -> list[str]:
    """Slices that the guards name themselves."""
    return definition.guards.slices if definition.guards and definition.guards.slices != "every" else []


def _check_words(definition: SuiteDefinition, path: Path) -> None:
    """`per_metric` goes by a metric's name as it is printed."""
    measured = [str(parse(name)) for name in definition.metric_names]
    for name in definition.metrics.policy.per_metric:
        if name not in measured:
            meant = nearest(name, measured)
            raise Misconfigured(
                place(path, "metrics", "policy", "per_metric", name), found=f"what {name!r} says of 0/0",
                expected=f"a metric of this suite: {', '.join(measured)}",
                mend=f"Did you mean {meant!r}?" if meant else "Name it under `report`, or take it out.",
            )  # fmt: skip


def _check_candidates(definition: SuiteDefinition, path: Path) -> None:
    # MTEB's tasks of that kind bring lists of their own.
    if definition.task == "reranking" and definition.candidates is None and definition.source.format != "mteb":
        raise Misconfigured(
            place(path, "task"), found="a reranking suite without [candidates]",
            expected="the documents that every release is given to rank",
            mend='Add [candidates] with path = "candidates.tsv": query, tab, document on each line.',
        )  # fmt: skip
    if definition.task != "reranking" and definition.candidates is not None:
        raise Misconfigured(
            place(path, "candidates"), found=f"[candidates] of a {definition.task} suite",
            expected="candidates in a reranking suite alone",
            mend='Write task = "reranking", or take [candidates] out.',
        )  # fmt: skip


def _check_rule(definition: SuiteDefinition, path: Path, position: int, rule: Rule) -> None:
    if rule.id.startswith(("guard:", "always:")):
        raise Misconfigured(
            place(path, "rules", position, "id"), found=f"rule ID {rule.id!r}",
            expected="an ID that doesn't begin with guard: or always:", mend="Rename the rule.",
        )  # fmt: skip
    if rule.kind != "invariant":
        return
    if rule.metric not in COUNTS:
        meant = nearest(rule.metric, COUNTS)
        raise Misconfigured(
            place(path, "rules", position, "metric"), found=f"an invariant over {rule.metric!r}",
            expected=f"a count: {', '.join(COUNTS)}",
            mend=f"Did you mean {meant!r}?" if meant else "A metric is held by at-least or at-most.",
        )  # fmt: skip
    if rule.value is None or rule.value < 0 or rule.value != int(rule.value):
        raise Misconfigured(
            place(path, "rules", position, "value"), found=f"a count of {rule.value}",
            expected="a whole number from 0", mend="Invariants are exact: write value = 0.",
        )  # fmt: skip


def _metrics(definition: SuiteDefinition) -> Iterator[tuple[tuple[Key, ...], str]]:
    yield ("metrics", "primary"), definition.metrics.primary
    for name in definition.metrics.report:
        yield ("metrics", "report"), name
    if definition.metrics.right is not None:
        yield ("metrics", "right"), definition.metrics.right
    for position, rule in enumerate(definition.rules):
        if rule.kind != "invariant":
            yield ("rules", position, "metric"), rule.metric
    for name in definition.guards.metrics if definition.guards else []:
        yield ("guards", "metrics"), name


def _check_metric(definition: SuiteDefinition, path: Path, keys: Sequence[Key], name: str) -> None:
    if base(name).lower() in MEANINGS:
        raise Misconfigured(
            place(path, *keys), found=f"{name!r}, a diagnostic of a space, by which nothing is decided",
            expected=f"a metric of {definition.task}",
            mend=f"Take it out; the report shows it without being asked. Hold {definition.metrics.primary} instead."
            if keys[0] != "metrics"
            else "Take it out; the report shows it without being asked.",
        )  # fmt: skip
    try:
        metric = parse(name)
    except Misconfigured as error:
        raise Misconfigured(
            place(path, *keys), found=f"{name!r}: {error.found}", expected=error.expected, mend=error.mend
        ) from error
    if definition.task not in metric.tasks:
        raise Misconfigured(
            place(path, *keys), found=f"{name!r}, a metric of {' and '.join(metric.tasks)}",
            expected=f"a metric of {definition.task}", mend="Name another metric, or mend `task`.",
        )  # fmt: skip
    if metric.label is not None and definition.task in ONE_FORECAST:
        raise Misconfigured(
            place(path, *keys), found=f"{name!r}, and cases here have no labels", expected=metric.base,
            mend=f"Write {metric.base}: it is of {ONE_FORECAST[definition.task]}.",
        )  # fmt: skip
    if definition.task in RANKED and dict(metric.params).get("ground") not in (None, "confidence"):
        raise Misconfigured(
            place(path, *keys), found=f"{name!r} of rankings, which have one score to be sure by",
            expected="the ground confidence: the probability that a question is answerable, else the top score",
            mend="Leave `ground` out.",
        )  # fmt: skip
    if definition.cases.missing == "zero" and not (metric.form == "mean" and metric.higher_is_better):
        raise Misconfigured(
            place(path, "cases", "missing"), found=f'missing = "zero" beside {name!r}',
            expected="metrics that are means of cases, of which 0 is the worst",
            mend='Write missing = "undecided", or record what is missing.',
        )  # fmt: skip
    if metric.cutoff is not None and metric.cutoff > definition.ranking.depth:
        raise Misconfigured(
            place(path, *keys), found=f"{name!r} looks at {metric.cutoff} documents",
            expected=f"a cut-off within [ranking] depth = {definition.ranking.depth}",
            mend=f"Lower the cut-off, or write depth = {metric.cutoff} under [ranking].",
        )  # fmt: skip


def _known_slice(names: Sequence[str], path: Path, keys: Sequence[Key], name: str) -> None:
    known = [ALL, *names]
    if name not in known:
        meant = nearest_slice(name, known)
        raise Misconfigured(
            place(path, *keys), found=f"slice {name!r}", expected=f"a declared slice: {', '.join(known)}",
            mend=f"Did you mean {meant!r}?" if meant else "Declare it under [[slices]].",
        )  # fmt: skip


def _unique(path: Path, names: Sequence[tuple[tuple[Key, ...], str]]) -> None:
    seen: dict[str, tuple[Key, ...]] = {}
    for keys, name in names:
        if name in seen:
            raise Misconfigured(
                place(path, *keys), found=f"{name!r} stands twice (first at {place(path, *seen[name])})",
                expected="names that are unique", mend="Rename or remove one of the two.",
            )  # fmt: skip
        seen[name] = keys
