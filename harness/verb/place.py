"""Where a command looks: the project's folder, its suites and releases, the store, what is written for a run."""

import difflib
import os
from dataclasses import dataclass
from pathlib import Path

from harness.errors import Misconfigured, NotFound
from harness.store.connection import Store
from harness.suite.lock import LOCK, Lock, read_lock

ROOMS = ("suites", "releases")


@dataclass(frozen=True, slots=True)
class Place:
    """A project: the nearest folder upwards that holds `suites/` or `releases/`, else the current one."""

    root: Path
    store: Store

    def suite(self, name: str) -> Path:
        """The folder of a suite, by path or by name. Raises NotFound."""
        return self._find("suite", name, "suite.toml")

    def release(self, name: str) -> Path:
        """The folder of a release, by path or by name. Raises NotFound."""
        return self._find("release", name, "release.toml")

    @property
    def cache(self) -> Path:
        """The folder of what models made of texts, beside the store."""
        return self.store.path.with_name("cache")

    def report(self, run: str) -> Path:
        """The folder of a run's report."""
        return self.root / "reports" / run

    def bundle(self, release_folder: Path, run: str) -> Path:
        """The folder of the bundle that a run gave a release."""
        return release_folder / "bundles" / run

    def kept(self, path: Path) -> str:
        """A path as the store keeps it: from the project's root where it lies below it."""
        return _below(path, self.root)

    def locks(self) -> tuple[Lock, ...]:
        """Those of the project's suites, by folder. Raises Tampered for one that is none."""
        return tuple(read_lock(each.parent) for each in sorted((self.root / "suites").glob(f"*/{LOCK}")))

    def _find(self, what: str, name: str, file: str) -> Path:
        for folder in (Path(name), self.root / f"{what}s" / name):
            if _is_there(folder / file):
                return folder.resolve()
        shelf = self.root / f"{what}s"
        there = sorted(entry.parent.name for entry in shelf.glob(f"*/{file}"))
        near = difflib.get_close_matches(name, there, n=1)
        raise NotFound(
            f"{what} {name!r}",
            found=f"no {file} in {name} or {shown(shelf / name)}",
            expected=f"a folder that holds {file}",
            mend=f"Did you mean {near[0]!r}?" if near else f"There is: {', '.join(there) or f'no {what} yet'}.",
        )


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:
        raise NotFound(
            str(path), found=error.strerror or str(error), expected="a place that can be looked into",
            mend="Mend the path or the permissions.",
        ) from error  # fmt: skip


def shown(path: Path) -> str:
    """A path as a user can type it: from the current folder where it lies below it."""
    return _below(path, Path.cwd())


def find_place(start: Path | None = None, store: str | None = None) -> Place:
    """The project that `start` (the current folder) lies in; `store` names another store file."""
    start = (start or Path.cwd()).resolve()
    root = next(
        (folder for folder in (start, *start.parents) if any((folder / room).is_dir() for room in ROOMS)), start
    )
    return Place(root, Store(Path(os.path.realpath(store)) if store else root / ".harness" / "store.duckdb"))


def _below(path: Path, folder: Path) -> str:
    # Links that lead in a circle have no end, but a name.
    path = Path(os.path.realpath(path))
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


def require_folder(path: Path) -> None:
    """Raises NotFound for a file that would be the first in its folder: a release that isn't there is a slip."""
    if not path.parent.is_dir():
        raise NotFound(
            f"--save {path}", found=f"no folder {path.parent}", expected="one that is there, a release's as a rule",
            mend="Correct the path, or make the folder.",
        )  # fmt: skip
    if path.is_dir():
        raise Misconfigured(
            f"--save {path}", found="a folder", expected="the file to write", mend=f"Write {path / 'calibrator.json'}.",
        )  # fmt: skip
