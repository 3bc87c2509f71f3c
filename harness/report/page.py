"""One HTML page that needs nothing but itself: no script, nothing loaded, and a policy that says so."""

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from harness.output.answer import DeltaSummary, Summary
from harness.output.cause import MEANINGS
from harness.output.decision import Outcome
from harness.report import beside, cause, diagnostic, diagram, figure, number, text, verdict
from harness.report.content import Content

FOLDER = Path(__file__).parent
STYLE = "page.css"
METHODS = {"bca": "BCa bootstrap", "percentile": "percentile bootstrap"}
OPEN_CASES = 10
"""How many cases stand open; the others unfold."""
OPEN_ROWS = 200
"""Rows of a table beside the metrics that the page has; the store has them all."""
MANY_COLUMNS = 7
"""From so many columns on, two tables stand one after the other."""
OPEN_CHANGES = 12
"""More fields of encoders than these that only one release has are folded: the other has no such encoder."""

NOT_APPLICABLE = Markup('<abbr title="not applicable">{}</abbr>').format(number.NOTHING)


def html(content: Content) -> str:
    """The report of a run as one page."""
    style = (FOLDER / STYLE).read_text(encoding="utf-8")
    compared = content.answer.parent is not None
    return (
        _environment()
        .get_template("page.html")
        .render(
            content=content,
            answer=content.answer,
            decision=content.answer.decision,
            style=Markup(style),
            policy=_policy(style),
            why=Markup(verdict.why(content.answer, _name)),
            remarks=verdict.remarks(content.answer),
            declared=verdict.declared(content.answer),
            guards=verdict.guards(content.answer),
            guard_of={(rule.slice, rule.metric): rule for rule in verdict.guards(content.answer)},
            commands=verdict.commands(content.answer),
            followed=content.answer.followed,
            beside=beside.paired(content.companions),
            diagrams={
                pair.name: Markup(diagram.DIAGRAMS[pair.name](pair))
                for pair in beside.paired(content.companions)
                if pair.name in diagram.DIAGRAMS
            },
            causes=cause.columns(content.causes),
            caused=cause.lines(content.causes),
            cause_meanings=MEANINGS,
            causes_title=cause.TITLE,
            causes_lead=cause.LEAD,
            told=diagnostic.lines(content.diagnostics),
            silences=diagnostic.silences(content.diagnostics),
            diagnostics_title=diagnostic.TITLE,
            diagnostics_lead=diagnostic.LEAD,
            is_matrix=beside.is_matrix,
            open_rows=OPEN_ROWS,
            many_columns=MANY_COLUMNS,
            forest=Markup(figure.forest(content)) if compared and content.slices else None,
            histogram=Markup(figure.histogram(content)) if compared and content.case_deltas else None,
            symbol=verdict.SYMBOL,
            passed=Outcome.PASS,
            open_cases=OPEN_CASES,
            open_changes=OPEN_CHANGES,
            methods=METHODS,
            summary=lambda side, name, metric: _summary(content, side, name, metric),
            delta=lambda name, metric: _delta(content, name, metric),
            better=lambda metric, moved: verdict.better(content.answer, metric, moved),
            clear=lambda metric, before, moved: verdict.clear(
                content.answer, metric, before.value if before else None, moved
            ),
            direction=lambda metric: verdict.direction(content.answer, metric),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, finalize=_shown,
    )  # fmt: skip
    environment.filters |= {
        "value": lambda amount: _or_dash(number.value(amount)),
        "signed": lambda amount: _or_dash(number.signed(amount)),
        "probability": lambda amount: _or_dash(number.probability(amount)),
        "interval": lambda each, of_delta: _or_dash(number.interval(each.low, each.high, of_delta=of_delta)),
        "figure": lambda rule, amount: _or_dash(verdict.figure(rule, amount)),
        "count": number.count,
        "plural": number.plural,
        "clipped": text.clipped,
        "exact": text.exact,
        "said": lambda reason: Markup("<bdi>{}</bdi>").format(text.clipped(reason, text.LONGEST_REASON)),
        "short": text.short,
        "name": _name,
    }
    return environment


def _policy(style: str) -> str:
    """A Content-Security-Policy under which nothing is loaded or run and this very style sheet alone applies."""
    pin = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'sha256-{pin}'; base-uri 'none'; form-action 'none'"


def _shown(value: object) -> object:
    """Every text on its way into the page; `clean` where it isn't markup of our own."""
    return text.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _name(written: str) -> str:
    """A name, ID or metric, kept from turning the direction of the text around it."""
    return Markup("<bdi>{}</bdi>").format(text.clipped(written, text.LONGEST_NAME))


def _or_dash(said: str) -> str:
    return NOT_APPLICABLE if said == number.NOTHING else escape(said)


def _summary(content: Content, side: str, name: str, metric: str) -> Summary | None:
    return content.answer.metrics.get(side, {}).get(name, {}).get(metric)


def _delta(content: Content, name: str, metric: str) -> DeltaSummary | None:
    return content.deltas.get(name, {}).get(metric)
