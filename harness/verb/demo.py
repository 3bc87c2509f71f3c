"""`harness demo`: the whole job on the embedded suite, and a pair that must be refused."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from harness.errors import NotFound
from harness.output.answer import Answer
from harness.verb.place import Place, find_place, shown
from harness.verb.run import run_in

SUITE = "help-center"


@dataclass(frozen=True, slots=True)
class Pair:
    """A candidate against its parent, and what is shown by it, in words."""

    candidate: str
    parent: str
    told: str


PAIRS = (
    Pair("minilm-256", "minilm-128", "A release that reads further than its parent:"),
    Pair("minilm-rows", "minilm-256", "The same encoder by late interaction, row by row instead of one vector:"),
    Pair("minilm-two-stage", "minilm-256", "Two stages: the vectors find twenty articles, the rows put them in order:"),
    Pair(
        "minilm-256-cls", "minilm-256",
        "The same weights with another pooling. It loads, every shape fits, and it must FAIL, as planned:",
    ),
)  # fmt: skip
FOLDER = "harness-demo"


def demo(dir: str | Path | None = None) -> tuple[Answer, ...]:
    """Runs four pairs over the embedded suite: 256 tokens against 128; late interaction of the same encoder's rows, and
    two stages of both, against its vectors; and last the encoder with its pooling overridden, a release that loads,
    keeps every shape and must FAIL. That planned FAIL is no error.

    Works in `dir`, else in the current project where it has the suite, else in ./harness-demo; what is missing there
    is copied from the package. Raises NotFound where the model's package is not installed.
    """
    place = _place(dir)
    suite, releases = place.root / "suites" / SUITE, place.root / "releases"
    return tuple(
        run_in(place, str(suite), str(releases / pair.candidate), str(releases / pair.parent)) for pair in PAIRS
    )


def _place(dir: str | Path | None) -> Place:
    here = find_place()
    if dir is None and (here.root / "suites" / SUITE / "suite.toml").is_file():
        return here
    root = Path(dir or FOLDER).resolve()
    embedded = _embedded()
    for name in (
        f"suites/{SUITE}",
        *(f"releases/{name}" for name in sorted({name for pair in PAIRS for name in (pair.candidate, pair.parent)})),
    ):
        if not (root / name).exists():
            shutil.copytree(
                embedded / name,
                root / name,
                ignore=shutil.ignore_patterns("bundles", "lifecycle.jsonl", "exposures.jsonl", ".*"),
            )
    return find_place(root)


def _embedded() -> Path:
    """Where suite and releases lie: in the installed package, or in the checkout beside it."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "embedded", package.parent):
        if (folder / "suites" / SUITE / "suite.toml").is_file():
            return folder
    raise NotFound(
        f"suite {SUITE!r}", found=f"neither in {package / 'embedded'} nor in {package.parent}",
        expected="the embedded suite", mend="Install the package again, or run the demo in a checkout.",
    )  # fmt: skip


def working_folder(dir: str | Path | None = None) -> str:
    """Where the demo works, as a user types it; `.` for the project at hand."""
    return shown(_place(dir).root)
