"""Contents of reports written by hand: a failing run, a passing one, and the odd ones."""

import random
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.identity import text_digest
from harness.output.answer import Answer, Counts, DeltaSummary, Named, Summary
from harness.output.change import CaseChange, FirstAnswer, Predicted, Prediction, TransitionCount
from harness.output.companion import Companion
from harness.output.decision import Decision, Outcome, RuleResult
from harness.report.content import Content, MeaningChange, SliceInfo

METRICS = ("nDCG@10", "RR@10", "R@100", "P@5")
SLICES = (
    ("all", "", False, 412, 188, -0.0213),
    ("typing-mistakes", "kind = 'typo'", True, 64, 41, -0.0871),
    ("exact-terms", "exact", False, 71, 52, 0.0042),
    ("late-answers", "late", True, 58, 40, 0.0518),
    ("numbers", "kind = 'number'", False, 49, 33, -0.0064),
    ("german", "language = 'de'", False, 83, 47, -0.0302),
    ("long-questions", "words > 20", False, 37, 29, 0.0011),
    ("no-overlap", "kind = 'paraphrase' AND NOT exact", False, 22, 17, None),
)
FINDING = text_digest("a finding")

FAILED = RuleResult(
    "typos-hold", "no-worse", METRICS[0], "typing-mistakes", Outcome.FAIL,
    "the whole interval lies below the margin: typing-mistakes lost between 0.0482 and 0.1303", True, 0.5134, 0.6005,
    -0.0871, -0.1303, -0.0482, 0.02, 64, 41, mde=0.0594, method="bca", finding=FINDING,
)  # fmt: skip
UNDECIDED = RuleResult(
    "headline", "no-worse", METRICS[0], "all", Outcome.UNDECIDED,
    "the interval spans the margin: neither no worse nor worse is shown", True, 0.6112, 0.6325, -0.0213, -0.0367,
    -0.0071, 0.02, 412, 188, mde=0.0218, method="bca",
)  # fmt: skip
WAIVED = RuleResult(
    "german-floor", "at-least", "RR@10", "german", Outcome.WAIVED,
    "waived by R. Okafor until 2027-03-01: the German help articles are being rewritten (0.4410 is below 0.4800)",
    True, 0.4410, 0.4712, low=0.4021, high=0.4788, margin=0.48, n_cases=83, n_groups=47, mde=0.0503, method="bca",
    finding=text_digest("another"),
)  # fmt: skip
HELD = RuleResult(
    "late-answers-hold", "no-worse", METRICS[0], "late-answers", Outcome.PASS, "no worse than the parent by 0.0200",
    True, 0.6021, 0.5503, 0.0518, 0.0187, 0.0893, 0.02, 58, 40, mde=0.0487, method="bca",
)  # fmt: skip
COUNTED = RuleResult(
    "invariant:failed", "invariant", "failed", "all", Outcome.PASS, "0 cases failed, at most 0 may be", True, 0.0,
    margin=0.0, n_cases=412, n_groups=188,
)  # fmt: skip
IDLE = RuleResult(
    "overlap-hold", "no-worse", "R@100", "no-overlap", Outcome.UNDECIDED,
    "17 groups, and below 20 no interval rule decides", False, margin=0.05, n_cases=22, n_groups=17,
)  # fmt: skip


def _guards(slices=SLICES, metrics=METRICS[:2]) -> tuple[RuleResult, ...]:
    chance = random.Random(7)
    found = []
    for name, _, critical, cases, groups, delta in slices:
        for metric in metrics:
            fails = (name, metric) == ("typing-mistakes", "RR@10")
            p = 0.0004 if fails else chance.uniform(0.02, 1)
            found.append(
                RuleResult(
                    f"guard:{name}:{metric}", "guard", metric, name, Outcome.FAIL if fails else Outcome.PASS,
                    f"guard of {metric} on {name}: " + ("shown worse" if fails else "not shown worse"), critical, 0.61,
                    None if delta is None else 0.61 - delta, delta, None, None, 0.0, cases, groups,
                    None if delta is None else p, None if delta is None else min(1.0, 8 * p), 0.07, "sign flips",
                    text_digest(name + metric) if fails else None,
                )
            )  # fmt: skip
    return tuple(found)


def _metrics(slices, metrics, shift):
    return {
        name: {
            metric: Summary(
                None if delta is None else 0.6325 - 0.07 * at + shift * delta, 0.55 - 0.07 * at, 0.69 - 0.07 * at,
                cases, cases + 2, groups,
            )
            for at, metric in enumerate(metrics)
        }
        for name, _, _, cases, groups, delta in slices
    }  # fmt: skip


def _deltas(slices, metrics):
    def summary(at, delta, cases, groups):
        if delta is None:
            return DeltaSummary(None, None, None, None, cases, groups, 2)
        moved, half = delta * (1 - 0.3 * at), 0.9 * groups**-0.8
        return DeltaSummary(moved, moved - half, moved + half, 1.4 * half, cases, groups, groups // 3)

    return {
        name: {metric: summary(at, delta, cases, groups) for at, metric in enumerate(metrics)}
        for name, _, _, cases, groups, delta in slices
    }


TEXTS = (
    ("how do i now if the sadle is at the rihgt hight for me", "riding", "Before you set off: saddle, brakes, lights"),
    ("I unlocked a bike and put it straight back because I didn't want it after all. Will I be charged?", "fees",
     "Every ride begins with an unlocking fee; a ride of under two minutes that ends where it began is free."),
    ("Wie viele Tage haben Neukunden Zeit, den Willkommensgutschein einzulösen?", "vouchers",
     "Vouchers and promotions: how long they last, and where to enter the code"),
    ("كيف أعيد الدراجة إذا كانت المحطة ممتلئة؟", "stations", "At a full station you get 15 minutes."),
    ("app says my card is declinde but bank says its fine", "payment", "Why a payment may be declined"),
    ("helmet", "safety", "Helmets: what we advise, what the law says"),
)  # fmt: skip


def _cases(sign, many=6):
    found = []
    for at in range(many):
        words, document, head = TEXTS[at % len(TEXTS)]
        low, high = 0.1 * (at % 4), min(1.0, 0.3 + 0.17 * (at % 5))
        right, wrong = FirstAnswer(f"{document}-guide", head, 2), FirstAnswer("first-ride-guide", TEXTS[1][2], None)
        before, after = (high, low) if sign < 0 else (low, high)
        found.append(
            CaseChange(
                f"q{at + 17:03}", words, ("typing-mistakes", "german")[: at % 3], before, after,
                right if sign < 0 else wrong, (None if at == 4 else wrong) if sign < 0 else right,
            )
        )  # fmt: skip
    return tuple(found)


def _content(rules, outcome, *, slices=SLICES, metrics=METRICS, bundle=None) -> Content:
    chance = random.Random(3)
    answer = Answer(
        run=text_digest("run"),
        decision=Decision(outcome, False, tuple(rules), ("Judged@10 of both sides is 1.0000.",)),
        suite="help-center",
        suite_digest=text_digest("suite"),
        candidate=Named("minilm-256", text_digest("candidate")),
        parent=Named("minilm-128", text_digest("parent")),
        metrics={"candidate": _metrics(slices, metrics, 1), "parent": _metrics(slices, metrics, 0)},
        counts=Counts(412, 0, 0, 3, 12, 4),
        store=".harness/store.duckdb",
        report="reports/ab/index.html",
        bundle=bundle,
        reading=3,
        deltas=_deltas(slices, metrics),
        followed=metrics[0],
    )
    return Content(
        answer=answer,
        primary=metrics[0],
        metrics=tuple(metrics),
        slices=tuple(SliceInfo(*each[:5]) for each in slices),
        criterion="RR@10 = 1",
        transitions=tuple(
            TransitionCount(name, int(0.5 * n), int(0.12 * n), int(0.07 * n), int(0.2 * n), n - int(0.89 * n))
            for name, _, _, n, _, _ in slices
        ),
        regressions=_cases(-1),
        improvements=_cases(1, 3),
        changes=(
            MeaningChange("T.max_length", "128", "256"),
            MeaningChange("T.prompts.query", None, "query: "),
            MeaningChange("R.pooling", "mean", "mean over unmasked rows, then L2"),
        ),
        case_deltas=tuple(
            0.0 if chance.random() < 0.6 else max(-1, min(1, chance.gauss(-0.05, 0.3))) for _ in range(412)
        ),
        method="BCa bootstrap over groups",
        draws=10_000,
        level=0.95,
        limits=(
            "These intervals speak of questions like these, under these weights, this corpus and these judgements.",
            "Documents that nobody judged count as not relevant.",
        ),
    )


def failing() -> Content:
    """A run with one rule of every outcome, and a guard that failed."""
    return _content((HELD, UNDECIDED, FAILED, COUNTED, WAIVED, IDLE, *_guards()), Outcome.FAIL)


def passing() -> Content:
    """A run in which every rule holds."""
    headline = replace(
        UNDECIDED, outcome=Outcome.PASS, reason="no worse by 0.0200", delta=0.0113, low=-0.0031, high=0.0262
    )
    rules = (
        headline,
        HELD,
        COUNTED,
        *(replace(each, outcome=Outcome.PASS, finding=None, p_adjusted=1.0) for each in _guards()),
    )
    slices = tuple((*each[:5], abs(each[5] or 0.01)) for each in SLICES)
    return _content(rules, Outcome.PASS, slices=slices, bundle="releases/minilm-256/bundles/ab")


CLASSES = (
    "REFUND",
    "لم يصل الطلب",
    "a class of which the name is rather long, as they are in the wild",
    "X" * 90,
    "login",
)


def _class_tables(shift: int, classes=CLASSES) -> tuple[Companion, ...]:
    """A table by class with a cell that says nothing, the confusions, and a single row of large and tiny numbers."""
    counts = [
        [(40 if i == j else 3 * ((i + 2 * j + shift) % 4)) for j in range(len(classes))] for i in range(len(classes))
    ]
    return (
        Companion(
            "classes", "Classes", "0/0: zero.", ("class", "support", "f1"),
            tuple((name, 1200 + at, None if at == 1 else 0.5 + shift / 100) for at, name in enumerate(classes)),
        ),
        Companion(
            "confusion", "Confusion", "Gold in rows, predicted in columns.", ("gold", *classes),
            tuple((name, *row) for name, row in zip(classes, counts, strict=True)),
        ),
        Companion(
            "targets", "Targets", f"In hours, {shift} apart.", ("cases", "high", "low"),
            ((412, 5953.2345 + shift, 0.00012),),
        ),
    )  # fmt: skip


def labelled() -> Content:
    """A classifier under a metric that has no values by case, and a loss that rose; cases are followed by accuracy."""
    metrics = ("f1_macro", "accuracy", "log_loss")
    content = _content((HELD, UNDECIDED, FAILED), Outcome.FAIL, metrics=metrics)
    answer = replace(content.answer, task="classification", ranks=False, losses=("log_loss",), followed="accuracy")
    rose = DeltaSummary(0.2, 0.1, 0.3, 0.1, 412, 188, 60)
    answer = replace(answer, deltas={**answer.deltas, "all": {**answer.deltas["all"], "log_loss": rose}})
    right, wrong = Prediction("REFUND", 0.75, ()), Prediction("login", 0.625, ("tied",))
    moved = [
        [
            replace(each, parent_first=None, candidate_first=None, predicted=Predicted("REFUND", before, after))
            for each in cases
        ]
        for cases, before, after in ((content.regressions, right, wrong), (content.improvements, wrong, right))
    ]
    return replace(
        content, answer=answer, regressions=tuple(moved[0]), improvements=tuple(moved[1]),
        companions={"candidate": _class_tables(1), "parent": _class_tables(0)},
    )  # fmt: skip


def unfollowed() -> Content:
    """A run that has no metric with values by case."""
    content = labelled()
    return replace(
        content, answer=replace(content.answer, followed=None), regressions=(), improvements=(), case_deltas=()
    )


def alone() -> Content:
    """A run without a parent: floors and invariants alone."""
    content = _content((replace(WAIVED, outcome=Outcome.PASS, reason="above 0.4800"), COUNTED), Outcome.PASS)
    answer = replace(
        content.answer, parent=None, metrics={"candidate": content.answer.metrics["candidate"]}, reading=1, deltas={}
    )
    return replace(
        content, answer=answer, transitions=(), regressions=(), improvements=(), changes=(),
        case_deltas=(),
    )  # fmt: skip


def bare() -> Content:
    """A run without slices, cases that moved or figures; every number that may be None is."""
    rules = (
        RuleResult("r", "no-worse", "nDCG@10", "all", Outcome.UNDECIDED, "no case has a value", True),
        RuleResult("guard:all:nDCG@10", "guard", "nDCG@10", "all", Outcome.UNDECIDED, "p is undefined", True),
    )
    content = _content(rules, Outcome.UNDECIDED)
    nothing = DeltaSummary(None, None, None, None, 0, 0, 0)
    summaries = {"all": {"nDCG@10": Summary(None, None, None, 0, 0, 0)}}
    answer = replace(
        content.answer, metrics={"candidate": summaries, "parent": summaries}, report=None,
        deltas={"all": {"nDCG@10": nothing}},
    )  # fmt: skip
    return replace(
        content, answer=answer, slices=(), transitions=(), regressions=(),
        improvements=(), changes=(), case_deltas=(), limits=(),
    )  # fmt: skip


def large() -> Content:
    """Sixty slices, eight metrics, a guard for each pair, many cases."""
    slices = tuple(
        (f"slice-{at:02}", f"part = {at}", at % 9 == 0, 40 + at, 20 + at, 0.05 - at / 600) for at in range(60)
    )
    metrics = (*METRICS, "AP@100", "Success@1", "P(rel=2)@5", "nDCG(dcg='exp-log2')@10")
    content = _content(
        (UNDECIDED, COUNTED, *_guards(slices, metrics)), Outcome.UNDECIDED, slices=slices, metrics=metrics
    )
    return replace(content, regressions=_cases(-1, 40))


def everywhere(content: Content, said: str) -> Content:
    """The content with `said` in each place where a user's text may stand."""
    answer = content.answer
    rules = tuple(
        replace(
            each,
            id=("guard:" if each.id.startswith("guard:") else "") + f"{said}{at}",
            metric=said,
            slice=said,
            reason=said,
        )
        for at, each in enumerate(answer.decision.rules)
    )
    summaries = {side: {said: {said: Summary(0.5, 0.4, 0.6, 1, 1, 1)}} for side in answer.metrics}
    first = FirstAnswer(said, said, None)
    answer = replace(
        answer, decision=replace(answer.decision, rules=rules, remarks=(said,)), suite=said, metrics=summaries,
        store=said, bundle=said, report=said, candidate=Named(said, said), parent=Named(said, said), suite_digest=said,
        deltas={said: {said: DeltaSummary(0.1, 0.0, 0.2, 0.1, 1, 1, 1)}}, task=said, losses=(said,), followed=said,
    )  # fmt: skip
    side = Prediction(said, 0.5, (said,))
    cases = (
        CaseChange(said, said, (said,), 1.0, 0.0, first, first),
        CaseChange(said, said, (said,), 1.0, 0.0, None, None, Predicted(said, side, side)),
    )
    tables = (
        Companion("one", said, said, (said, f"{said}2"), ((said, 1),)),
        Companion("two", said, said, (f"{said}0", said, f"{said}2"), ((said, 1, 2), (f"{said}2", 3, 4))),
    )
    return replace(
        content, answer=answer, primary=said, metrics=(said,), slices=(SliceInfo(said, said, True, 1, 1),),
        criterion=said,
        transitions=(TransitionCount(said, 1, 1, 1, 1, 1),), regressions=cases, improvements=cases,
        changes=(MeaningChange(said, said, None),), method=said, limits=(said,),
        companions={"candidate": tables, "parent": tables},
    )  # fmt: skip


CONTENTS: dict[str, Callable[[], Content]] = {
    each.__name__: each for each in (failing, passing, labelled, unfollowed, alone, bare, large)
}  # fmt: skip


@pytest.fixture(params=CONTENTS)
def any_content(request: pytest.FixtureRequest) -> Content:
    """Each of the contents in turn."""
    return CONTENTS[request.param]()


@pytest.fixture
def contents() -> SimpleNamespace:
    """The builders by name."""
    return SimpleNamespace(**CONTENTS, everywhere=everywhere)


HOSTILE = (
    "</script><script>alert(1)</script></style></title><!-- ]]> <img src=http://evil.example/x onerror=alert(1)>"
    '" onmouseover="alert(1)" \' | `code` **bold** [a](http://evil.example) @someone $x^2$ {{ 7*7 }} {% x %}'
    "[red]x[/red]\n\r\t\x00\x07\x1b[31m\x85\u202egnp.exe\u2066\ud800\uffff&amp;&#60;"
)
"""Everything that a text may do to the page, feed, comment or screen that it stands in."""


@pytest.fixture
def hostile() -> str:
    """A text that tries to leave its element."""
    return HOSTILE
