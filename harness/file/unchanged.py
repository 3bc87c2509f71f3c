"""What was made of a file holds for as long as the file stays as it is."""

from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

Made = TypeVar("Made")


def kept_while_unchanged(files: int) -> Callable[[Callable[[Path], Made]], Callable[[Path], Made]]:
    """Decorates what reads a file: of so many files, what was made is kept while size and time of change stay.

    What reads is given the path without links.
    """

    def decorate(read: Callable[[Path], Made]) -> Callable[[Path], Made]:
        @lru_cache(maxsize=files)
        def once(path: Path, size: int, changed: int) -> Made:
            return read(path)

        @wraps(read)
        def kept(path: Path) -> Made:
            about = path.stat()
            return once(path.resolve(), about.st_size, about.st_mtime_ns)

        return kept

    return decorate
