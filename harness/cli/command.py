"""The commands: parse, call one verb, print."""

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.stdout import print_json, reader_may_leave
from harness.errors import Misconfigured
from harness.identity import Json

if TYPE_CHECKING:
    from harness.output.answer import Answer

app = typer.Typer(
    help="Decide whether a retrieval model may be released.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, nothing else.")]
StorePath = Annotated[str | None, typer.Option("--store", help="The store file; .harness/store.duckdb by default.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run ID, a unique prefix, or `latest`.")]
SuiteName = Annotated[str, typer.Argument(metavar="SUITE", help="A suite's folder, or its name under ./suites.")]


class Form(StrEnum):
    table = "table"
    csv = "csv"
    json = "json"


class FamilyName(StrEnum):
    temperature = "temperature"
    vector = "vector"
    matrix = "matrix"
    platt = "platt"
    isotonic = "isotonic"
    beta = "beta"
    histogram = "histogram"


class SideName(StrEnum):
    candidate = "candidate"
    parent = "parent"


class RuleName(StrEnum):
    costs = "costs"
    capacity = "capacity"
    f1 = "f1"
    coverage = "coverage"
    risk = "risk"


class GroundName(StrEnum):
    confidence = "confidence"
    margin = "margin"
    entropy = "entropy"


class OfName(StrEnum):
    relevance = "relevance"
    answerability = "answerability"


class Export(StrEnum):
    trec = "trec"
    beir = "beir"
    mteb = "mteb"


@app.callback()
def harness() -> None:
    """Decide whether a retrieval model may be released."""


@app.command()
def demo(
    dir: Annotated[str | None, typer.Option(help="Where to work; the current project by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """The whole job on the embedded suite: a pair that passes, and a pair that must not."""
    from harness.verb.demo import demo as verb

    answers = verb(dir)
    if as_json:
        print_json({"runs": [answer.as_record() for answer in answers]})
        return
    from harness.report.terminal import print_answer
    from harness.verb.demo import PAIRS, working_folder

    for answer, pair in zip(answers, PAIRS, strict=True):
        with reader_may_leave():
            typer.echo(f"\n{pair.told}\n")
            print_answer(answer)
    if (folder := working_folder(dir)) != ".":
        typer.echo(f"\nThe project is in {folder}: cd there before the next commands.")


Download = Annotated[bool, typer.Option("--download", help="Fetch what the local hub cache lacks.")]


@app.command()
def describe(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model folder, package:NAME/FOLDER or hf:ORG/NAME@COMMIT.")
    ],
    name: Annotated[str, typer.Option(help="What the release is called: releases/NAME.")],
    download: Download = False,
    as_json: AsJson = False,
) -> None:
    """Read a model folder, write its release.toml, show what it means, value by value."""
    from harness.verb.describe import describe as verb

    found = verb(model, name=name, download=download)
    if as_json:
        print_json(found.as_record())
        return
    from harness.report.terminal import print_manifest

    with reader_may_leave():
        print_manifest(found.manifest)
        typer.echo(f"{'wrote' if found.written else 'read'} {found.path}", err=True)


@app.command()
def admit(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="A release's folder, or its name under ./releases.")
    ],
    download: Download = False,
    as_json: AsJson = False,
) -> None:
    """Derive, check and prove a release: DRAFT to RECONCILED."""
    from harness.verb.admit import admit as verb

    found = verb(release, download=download)
    if as_json:
        print_json(found.as_record())
    else:
        from harness.report.terminal import print_checks

        with reader_may_leave():
            print_checks(found.as_record())
    raise typer.Exit(0 if found.ok else 4)


@app.command()
def diff(
    parent: Annotated[str, typer.Argument(metavar="PARENT", help="The release that is deployed.")],
    candidate: Annotated[str, typer.Argument(metavar="CANDIDATE", help="The release that would replace it.")],
    store: StorePath = None,
    as_json: AsJson = False,
) -> None:
    """What changed between two releases, what stays valid, and what must be thrown away."""
    from harness.verb.diff import diff as verb

    found = verb(parent, candidate, store=store)
    if as_json:
        print_json(found.as_record())
        return
    from harness.report.terminal import print_difference

    with reader_may_leave():
        print_difference(found.as_record())


@app.command()
def freeze(suite: SuiteName, as_json: AsJson = False) -> None:
    """Write suite.lock.json: from here on the suite's data and rules stand still."""
    from harness.verb.freeze import freeze as verb

    _suite(asdict(verb(suite)), as_json, "frozen")


@app.command()
def check(suite: SuiteName, as_json: AsJson = False) -> None:
    """Hold a suite against its lock."""
    from harness.verb.check import check as verb

    _suite(asdict(verb(suite)), as_json, "holds")


@app.command()
def run(
    suite: SuiteName,
    candidate: Annotated[str, typer.Option(help="The release to judge: its folder, or its name under ./releases.")],
    parent: Annotated[
        str | None, typer.Option(help="Its rollback parent, or `none`; by default the one its release.toml names.")
    ] = None,
    cache: Annotated[bool, typer.Option(help="Take vectors that earlier runs computed, and keep new ones.")] = True,
    store: StorePath = None,
    as_json: AsJson = False,
) -> None:
    """The main job: run both releases, measure, decide, report, and bundle on PASS."""
    from harness.verb.run import run as verb

    _answer(verb(suite, candidate=candidate, parent=parent, store=store, cache=cache), as_json)


@app.command()
def decide(run: RunName, store: StorePath = None, as_json: AsJson = False) -> None:
    """Measure and decide a stored run again; no model is loaded."""
    from harness.verb.decide import decide as verb

    _answer(verb(run, store=store), as_json)


@app.command()
def report(run: RunName, store: StorePath = None, as_json: AsJson = False) -> None:
    """Write a stored run's report again."""
    from harness.verb.report import report as verb

    _answer(verb(run, store=store), as_json)


@app.command()
def bundle(run: RunName, store: StorePath = None, as_json: AsJson = False) -> None:
    """Write the bundle of a stored run that passed."""
    from harness.verb.bundle import bundle as verb

    _answer(verb(run, store=store), as_json)


@app.command()
def explain(
    run: RunName,
    rule: Annotated[str | None, typer.Option(help="One rule, by its ID.")] = None,
    case: Annotated[str | None, typer.Option(help="One case, by its ID.")] = None,
    store: StorePath = None,
    as_json: AsJson = False,
) -> None:
    """Say in words why a run was decided as it was."""
    from harness.verb.explain import explain as verb

    text = verb(run, rule=rule, case=case, store=store)
    if as_json:
        print_json({"text": text})
        return
    with reader_may_leave():
        typer.echo(text)


@app.command()
def verify(
    bundle: Annotated[str, typer.Argument(metavar="BUNDLE", help="A bundle's folder.")], as_json: AsJson = False
) -> None:
    """Hold a bundle against its checksums: every changed, missing and extra file by name."""
    from harness.verb.verify import verify as verb

    result = verb(bundle)
    if as_json:
        print_json(result.as_record())
    else:
        with reader_may_leave():
            for finding in result.findings:
                typer.echo(f"{finding.kind:8} {finding.path}   {finding.detail}")
            typer.echo(
                "the bundle holds" if result.ok else f"{len(result.findings)} findings: do not deploy this bundle"
            )
    raise typer.Exit(0 if result.ok else 4)


@app.command()
def sql(
    text: Annotated[str, typer.Argument(metavar="SQL", help="One statement that reads.")],
    format: Annotated[Form, typer.Option(help="How to print it.")] = Form.table,
    store: StorePath = None,
    as_json: AsJson = False,
) -> None:
    """Read-only SQL over the store; `SHOW TABLES` lists tables and views."""
    from harness.verb.sql import print_rows
    from harness.verb.sql import sql as verb

    found = verb(text, store=store)
    with reader_may_leave():
        print_rows(found, "json" if as_json else format.value)


@app.command()
def calibrate(
    run: RunName,
    family: Annotated[
        FamilyName | None, typer.Option(help="temperature, vector, matrix for classes; else for one score at a time.")
    ] = None,
    save: Annotated[str | None, typer.Option(help="The file to write, beside release.toml, which names it.")] = None,
    side: Annotated[SideName, typer.Option(help="Whose scores.")] = SideName.candidate,
    of: Annotated[
        OfName | None,
        typer.Option(help="Of rankings: relevance of judged documents (the default), or answerability by top score."),
    ] = None,
    threshold: Annotated[
        RuleName | None,
        typer.Option(help="Instead of a map: a threshold by costs, capacity or f1, or abstention by coverage or risk."),
    ] = None,
    false_positive: Annotated[float | None, typer.Option(help="costs: what a false alarm costs.")] = None,
    false_negative: Annotated[float | None, typer.Option(help="costs: what a miss costs.")] = None,
    label_costs: Annotated[
        list[str] | None, typer.Option(help="costs: LABEL=FALSE_ALARM:MISS, once for each such label.")
    ] = None,
    capacity: Annotated[float | None, typer.Option(help="capacity: the share of cases that can be taken.")] = None,
    coverage: Annotated[float | None, typer.Option(help="coverage: the share that is answered at least.")] = None,
    risk: Annotated[float | None, typer.Option(help="risk: the share of answers that may be wrong.")] = None,
    ground: Annotated[
        GroundName | None, typer.Option(help="coverage, risk: how sure is measured (confidence unless said).")
    ] = None,
    store: StorePath = None,
    as_json: AsJson = False,
) -> None:
    """Fit a map from a run's raw scores to probabilities, or a threshold, on its calibration cases alone."""
    from harness.verb.calibrate import calibrate as verb

    if threshold is not None and family is None:
        from harness.verb.threshold import threshold as choose

        if of is not None:
            raise Misconfigured(
                "--of", found=f"--of {of.value} beside --threshold", expected="--of beside --family alone",
                mend="Leave it out: what a threshold is of follows from the task.",
            )  # fmt: skip
        chosen = choose(
            run, rule=threshold.value, false_positive=false_positive, false_negative=false_negative,
            label_costs=_label_costs(label_costs or []) or None, capacity=capacity, coverage=coverage, risk=risk,
            ground=None if ground is None else ground.value, side=side.value, save=save, store=store,
        )  # fmt: skip
        _print_fitted(chosen.as_record(), as_json)
        return
    if family is None or threshold is not None:
        raise Misconfigured(
            "calibrate", found="both --family and --threshold" if family else "neither --family nor --threshold",
            expected="one of them", mend="Give --family to fit a map, or --threshold to choose a threshold.",
        )  # fmt: skip
    found = verb(run, family=family.value, side=side.value, of=None if of is None else of.value, save=save, store=store)
    _print_fitted(found.as_record(), as_json)


def _label_costs(written: list[str]) -> dict[str, tuple[float, float]]:
    found = {}
    for each in written:
        label, _, costs = each.rpartition("=")
        try:
            alarm, miss = (float(cost) for cost in costs.split(":"))
        except ValueError:
            raise Misconfigured(
                f"--label-costs {each}", found="no label with two costs", expected="LABEL=FALSE_ALARM:MISS",
                mend='Write it like --label-costs "REFUND=4:1".',
            ) from None  # fmt: skip
        found[label] = (alarm, miss)
    return found


def _print_fitted(record: dict[str, Json], as_json: bool) -> None:
    if as_json:
        print_json(record)
        return
    from harness.report.fitted import fitted_lines

    with reader_may_leave():
        typer.echo("\n".join(fitted_lines(record)))


@app.command()
def export(
    run: RunName,
    format: Annotated[Export, typer.Option(help="trec and beir have the rankings, mteb the metrics.")] = Export.trec,
    to: Annotated[str | None, typer.Option(help="The folder to write; by default exports/RUN/FORMAT.")] = None,
    store: StorePath = None,
    as_json: AsJson = False,
) -> None:
    """Write a stored run in the forms that other tools read."""
    from harness.verb.export import export as verb

    found = verb(run, format=format.value, to=to, store=store)
    if as_json:
        print_json(found.as_record())
        return
    with reader_may_leave():
        for file in found.files:
            typer.echo(f"wrote  {file}")


@app.command()
def selftest(
    run: RunName,
    trials: Annotated[int, typer.Option(help="How often the decision is made again, for every share.")] = 300,
    drop: Annotated[
        float | None,
        typer.Option(help="The loss to be planted, in the metric's units; by default each rule's own: margin and MDE."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the exchanges and plants.")] = 1,
    store: StorePath = None,
    as_json: AsJson = False,
) -> None:
    """How often this gate would block by chance, and how often it would find a loss of a stated size."""
    from harness.verb.selftest import selftest as verb

    found = verb(run, trials=trials, drop=drop, seed=seed, store=store)
    if as_json:
        print_json(found.as_record())
        return
    with reader_may_leave():
        typer.echo(found.text)


@app.command()
def runs(store: StorePath = None, as_json: AsJson = False) -> None:
    """List the store's runs, the latest first."""
    from harness.verb.runs import runs as verb

    found = verb(store=store)
    if as_json:
        print_json({"runs": [entry.as_record() for entry in found]})
        return
    with reader_may_leave():
        for entry in found:
            against = f"against {entry.parent}" if entry.parent else "without a parent"
            typer.echo(f"{entry.run[:12]}  {entry.decision:10} {entry.suite}: {entry.candidate} {against}")


@app.command()
def cache(
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove what was used least recently, down to --limit.")
    ] = False,
    limit: Annotated[
        str | None, typer.Option(help="500MB, 2GiB, …; by default HARNESS_CACHE_BYTES, else 2GiB.", metavar="SIZE")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all of it.")] = False,
    store: StorePath = None,
    as_json: AsJson = False,
) -> None:
    """List the vectors that runs keep beside the store, the last used first, or throw some away."""
    from harness.verb.cache import cache as verb

    found = verb(prune=prune, limit=limit, clear=clear, store=store)
    if as_json:
        print_json({"entries": [entry.as_record() for entry in found]})
        return
    from harness.report.terminal import print_cache

    with reader_may_leave():
        print_cache([entry.as_record() for entry in found])


def _answer(answer: "Answer", as_json: bool) -> None:
    if as_json:
        print_json(answer.as_record())
    else:
        from harness.report.terminal import print_answer

        with reader_may_leave():
            print_answer(answer)
    raise typer.Exit(answer.exit_code)


def _suite(record: dict[str, Json], as_json: bool, word: str) -> None:
    if as_json:
        print_json(record)
        return
    from harness.report.terminal import print_suite

    with reader_may_leave():
        print_suite(record, word)
