"""`harness explain`: why a run was decided as it was, in words."""

from collections.abc import Iterator

from harness.errors import NotFound
from harness.output.answer import Answer
from harness.output.change import Prediction
from harness.output.decision import Outcome, RuleResult
from harness.report.text import clipped, visible
from harness.report.verdict import GRAVITY
from harness.store import account
from harness.store.case import Given, SideAccount, ValueAccount, case_account
from harness.verb.answer import answer
from harness.verb.place import Place, find_place

SHOWN = 5
SHOWN_CHARACTERS = 100


def explain(run: str, *, rule: str | None = None, case: str | None = None, store: str | None = None) -> str:
    """Why, in words: of the decision, of one rule, or of one case. Raises NotFound for what the run doesn't have."""
    return "\n".join(visible(line) for line in _lines(find_place(store=store), run, rule, case))


def _lines(place: Place, run: str, rule: str | None, case: str | None) -> Iterator[str]:
    found = answer(place, run)
    if case is not None:
        yield from _case(place, found, case)
        return
    if rule is not None:
        results = [result for result in found.decision.rules if result.id == rule]
        if not results:
            raise NotFound(
                f"rule {rule!r}", found="no such rule in this run", expected="a rule's ID",
                mend=f"There is: {', '.join(result.id for result in found.decision.rules[:20])}.",
            )  # fmt: skip
        for result in results:
            yield from _rule(place, found, result)
        return
    yield from _decision(found)


def _decision(found: Answer) -> Iterator[str]:
    against = f"against {found.parent.name}" if found.parent else "without a parent"
    yield f"{found.decision.outcome}: {found.candidate.name} {against} on {found.suite} (run {found.run[:12]})."
    yield from found.decision.remarks
    for outcome in GRAVITY:
        results = [result for result in found.decision.rules if result.outcome is outcome]
        if not results:
            continue
        yield ""
        yield f"{outcome} ({len(results)})"
        for result in results if outcome is not Outcome.PASS else results[:SHOWN]:
            yield f"  {result.id}: {result.metric} on {result.slice}: {result.reason}"
        if outcome is Outcome.PASS and len(results) > SHOWN:
            yield f"  and {len(results) - SHOWN} more"


def _rule(place: Place, found: Answer, result: RuleResult) -> Iterator[str]:
    yield f"{result.id} ({result.kind}{', critical' if result.critical else ''}): {result.outcome}"
    yield f"  {result.metric} on {result.slice}: {result.reason}"
    yield f"  {result.n_cases} cases in {result.n_groups} groups"
    if result.mde is not None:
        yield f"  the smallest true change it would see four times in five: {result.mde:.4f}"
    if result.method:
        yield f"  interval by {result.method}"
    if result.finding:
        yield f"  finding {result.finding}"
    if result.kind == "invariant":
        with place.store.reading() as connection:
            cases = account.counted(connection, found.run, result.metric, result.slice, SHOWN)
        if cases:
            yield "  the first of them:"
        for each in cases:
            yield f"    {each.case_id}  {clipped(each.text, SHOWN_CHARACTERS)}"
    if result.delta is None:
        return
    with place.store.reading() as connection:
        losses = account.lost_most(connection, found.run, result.metric, result.slice, SHOWN)
    if losses:
        yield "  lost most:"
    for loss in losses:
        yield f"    {loss.case_id} {loss.delta:+.4f}  {clipped(loss.text, SHOWN_CHARACTERS)}"


def _case(place: Place, found: Answer, case: str) -> Iterator[str]:
    with place.store.reading() as connection:
        told = case_account(connection, found.run, case, SHOWN)
    if told is None:
        raise NotFound(
            f"case {case!r}", found="no such case in this run's suite", expected="a case ID",
            mend='`harness sql "SELECT case_id, text FROM cases"` lists them.',
        )  # fmt: skip
    yield f"{case} ({told.role}, group {told.group}): {clipped(told.text, SHOWN_CHARACTERS)}"
    yield f"  slices: {', '.join(told.slices) or 'none besides all'}"
    if told.predicted:
        yield f"  gold: {'not known' if told.predicted.gold is None else _said(told.predicted.gold)}"
    for side in told.sides:
        yield from _side(side, getattr(told.predicted, side.side, None))
    for value in told.values:
        yield f"  {value.metric}: {_value(value)}"
    if told.causes:
        yield "  it got worse; seen, the first is what it is counted under:"
    for each in told.causes:
        yield f"    {each.cause}: {each.seen}"


def _side(side: SideAccount, prediction: Prediction | None) -> Iterator[str]:
    lost = side.tokens_lost or 0
    cut = f", {lost} of {(side.tokens_kept or 0) + lost} tokens cut" if lost else ""
    yield f"  {side.side} {side.release}: {side.status}{cut}{f' ({side.reason})' if side.reason else ''}"
    if prediction:
        yield f"    {_prediction(prediction)}"
    if side.given:
        yield f"    {_given(side.given)}"
    for each in side.documents:
        judged = "not judged" if each.grade is None else f"grade {each.grade}"
        head = clipped(each.head, SHOWN_CHARACTERS)
        yield f"    {each.position}. {each.document_id} {each.score:.6g} ({judged})  {head}"


def _prediction(prediction: Prediction) -> str:
    sure = "" if prediction.probability is None else f" with probability {prediction.probability:.4f}"
    flags = f" ({', '.join(prediction.flags)})" if prediction.flags else ""
    return f"predicted: {_said(prediction.said)}{sure}{flags}"


def _said(text: str | None) -> str:
    """A gold or a prediction; of a set of labels it may be empty."""
    return "nothing" if text is None else clipped(text) or "none of the labels"


def _given(given: Given) -> str:
    """What a last stage could reach."""
    documents = f"{given.documents} document{'' if given.documents == 1 else 's'}"
    relevant = given.relevant + len(given.out_of_reach)
    if not relevant:
        return f"its last stage was given {documents}; no document is judged relevant"
    among = f"{given.relevant} of {relevant} relevant" if given.out_of_reach else f"all {relevant} relevant"
    beyond = [clipped(name, SHOWN_CHARACTERS) for name in given.out_of_reach[:SHOWN]]
    more = len(given.out_of_reach) - len(beyond)
    lacking = f"; not {', '.join(beyond)}{f' and {more} more' if more else ''}" if beyond else ""
    return f"its last stage was given {documents}, {among} among them{lacking}"


def _value(value: ValueAccount) -> str:
    if value.candidate_value is None:
        return value.status
    if value.parent_value is None or value.delta is None:
        return f"{value.candidate_value:.4f}"
    return f"{value.parent_value:.4f} to {value.candidate_value:.4f} ({value.delta:+.4f})"
