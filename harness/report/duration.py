"""How long a deployment's plan takes, as Markdown: a file of its own, for its bytes follow a clock."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.output.duration import Encoding, Pace
from harness.report import number, text
from harness.report.markdown import code

FILE = "time.md"
FEW = 100
"""Texts below which a rate is no more than an order of magnitude."""


@dataclass(frozen=True, slots=True)
class Timed:
    """An action that encodes, and what such a pass was measured to take; `pace` None where nothing was measured."""

    encoding: Encoding
    pace: Pace | None

    @property
    def reads(self) -> float | None:
        """Tokens that are read: the plan's, else as many for each item as a measured text has."""
        tokens, items = self.encoding.tokens, self.encoding.items
        if tokens is not None or items == 0:
            return float(tokens or 0)
        if items is None or self.pace is None or not self.pace.texts:
            return None
        return items * self.pace.tokens / self.pace.texts

    @property
    def guessed(self) -> bool:
        """Whether the plan does not know the tokens that are read."""
        return self.encoding.tokens is None and bool(self.reads)

    @property
    def seconds(self) -> float | None:
        return None if self.reads is None or self.pace is None else self.reads / self.pace.rate


@dataclass(frozen=True, slots=True)
class Durations:
    """What is known of how long a run's plan takes; `encodings` None where the run has no plan."""

    run: str
    candidate: str
    parent: str | None
    encodings: tuple[Timed, ...] | None


def duration(told: Durations) -> str:
    """Each action that encodes, what it reads, how fast that was measured to go, and so how long it takes."""
    lines = ["# How long the plan takes", "", *_subject(told)]
    if told.encodings:
        paces = list(dict.fromkeys(each.pace for each in told.encodings if each.pace is not None))
        lines += ["", *_table(told.encodings, paces), "", _together(told.encodings), ""]
        lines += [f"{at}. {_measured(pace, told.run)}" for at, pace in enumerate(paces, start=1)]
        lines += ["", *_caveats(told.encodings)]
    return "\n".join(lines) + "\n"


def _subject(told: Durations) -> Iterator[str]:
    if told.parent is None:
        yield f"{code(told.candidate)} was run without a parent, so there is nothing to plan."
        return
    between = f"{code(told.parent)} to {code(told.candidate)}"
    if told.encodings is None:
        yield (
            f"No plan from {between} is kept of this run. "
            f"{code(f'harness diff {told.parent} {told.candidate}')} tells it, or why there is none."
        )
    elif not told.encodings:
        yield f"The plan from {between} encodes nothing."
    else:
        yield (
            f"From {between}, run {code(text.short(told.run))}: those actions of the plan for which texts are encoded. "
            "What this file says follows clocks; no digest and no bundle holds it."
        )


def _table(encodings: Sequence[Timed], paces: Sequence[Pace]) -> Iterator[str]:
    yield "| action | namespace | items | tokens | tokens per second | about |"
    yield "|---|---|--:|--:|--:|--:|"
    for each in encodings:
        asked = each.encoding
        of = "" if asked.of_items is None else f" of {number.count(asked.of_items)}"
        items = number.NOTHING if asked.items is None else f"{number.count(asked.items)}{of}"
        guessed = "≈ " if each.guessed else ""
        reads = number.NOTHING if each.reads is None else f"{guessed}{number.count(round(each.reads))}"
        cells = (asked.action, code(asked.namespace), items, reads, *_estimate(each, paces))
        yield f"| {' | '.join(cells)} |"


def _estimate(each: Timed, paces: Sequence[Pace]) -> tuple[str, str]:
    if each.encoding.made_from is not None:
        return number.NOTHING, f"no pass of its own: from the rows of {code(each.encoding.made_from)}"
    if each.pace is None:
        return number.NOTHING, "no model reads it here" if each.encoding.pass_key is None else "nothing was measured"
    rate = f"{number.count(round(each.pace.rate))} ({paces.index(each.pace) + 1})"
    return rate, number.NOTHING if each.seconds is None else clock(each.seconds)


def _together(encodings: Sequence[Timed]) -> str:
    passes = [each for each in encodings if each.encoding.made_from is None]
    known = [each.seconds for each in passes if each.seconds is not None]
    lacking = len(passes) - len(known)
    without = f", without {number.plural(lacking, 'action')} of which that is not known" if lacking else ""
    return f"Together about {clock(sum(known))}{without}." if known else "How long they take is not known."


def _measured(pace: Pace, run: str) -> str:
    where = "in this run" if pace.run == run else f"in run {code(text.short(pace.run))}, the latest that computed any"
    few = ". So few texts tell no more than an order of magnitude" if pace.texts < FEW else ""
    return (
        f"{number.count(pace.tokens)} tokens of {number.plural(pace.texts, 'text')} ({pace.side}, "
        f"{pace.tokens / pace.texts if pace.texts else 0:.0f} tokens each) in {clock(pace.seconds)}, {where}, "
        f"{pace.measured_at:%Y-%m-%d %H:%M} UTC; {number.plural(pace.threads, 'thread')}, "
        f"{code(pace.backend)}; {code(pace.machine)}{few}."
    )


def _caveats(encodings: Sequence[Timed]) -> Iterator[str]:
    yield "- Forward passes alone: loading, tokenising, writing, search and whatever lies between machines come to it."
    yield "- One machine, in the company that it had then. What was in the cache was not computed, so not measured."
    yield (
        "- A text of twice the tokens takes more than twice as long, and padding is not counted: the rate holds for "
        "texts of the lengths that were measured."
    )
    if any(each.guessed for each in encodings):
        yield "- ≈: the plan does not know these tokens; each item is taken to be as long as a text that was measured."
    if any(each.pace is not None and each.pace.side != each.encoding.side for each in encodings):
        yield "- Where nothing was measured of a side's own texts, the other side's stand in, of another length."


def clock(seconds: float) -> str:
    """To two figures: `0.8 s`, `42 s`, `3.5 min`, `12 h`, `2.1 days`."""
    for unit, size, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48)):
        if seconds < most * size:
            return _two(seconds / size, unit)
    return _two(seconds / 86400, "days")


def _two(amount: float, unit: str) -> str:
    if amount == 0:
        return f"0 {unit}"
    if unit == "s" and amount < 0.1:
        return "less than 0.1 s"
    return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:,.0f} {unit}"
