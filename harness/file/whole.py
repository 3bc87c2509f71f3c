"""Writing beside and renaming into place: a reader sees the old thing or the new one, never a part.

The part has a fixed name, so what a killed process left behind is overwritten by the next one.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.errors import Stopped


def write_bytes(path: Path, content: bytes) -> None:
    """Puts a file in place, whole. Raises Stopped when it cannot be written."""
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except OSError as refusal:
        with suppress(OSError):
            part.unlink()
        raise cannot_write(path, refusal) from refusal


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder to fill, which takes the place of `path` when the block ends without an error."""
    part = path.with_name(f".{path.name}.part")
    old = path.with_name(f".{path.name}.old")
    with alone(path):
        try:
            if old.exists() and not path.exists():  # killed between the two renamings
                old.rename(path)
            for left in (part, old):
                if left.exists():
                    shutil.rmtree(left)
            part.mkdir()
            yield part
            if path.exists():
                path.rename(old)
            part.rename(path)
            if old.exists():
                shutil.rmtree(old)
        except OSError as refusal:
            raise cannot_write(path, refusal) from refusal


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """One process at a time: two may write what is at this path at once. The folder around it is what they hold."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as refusal:
        raise cannot_write(path, refusal) from refusal
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def cannot_write(path: Path, refusal: OSError) -> Stopped:
    """What the system said, as a refusal about this path."""
    return Stopped(
        str(path),
        found=refusal.strerror or str(refusal),
        expected="a place that can be written",
        mend="Free some space or mend the permissions, then give the same command again; what is finished is kept.",
    )
