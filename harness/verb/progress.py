"""What takes its time, on stderr and only where a person is looking."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Shows what is being done for as long as it takes."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(what)):
        yield
