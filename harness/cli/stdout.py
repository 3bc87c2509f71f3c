"""What goes to stdout, and what follows where nobody takes it."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from harness.errors import Stopped
from harness.identity import Json


def print_json(value: Json) -> None:
    """One object, on one line."""
    # ASCII escapes: what comes out is the same whatever the terminal's encoding.
    with reader_may_leave():
        typer.echo(json.dumps(value, ensure_ascii=True, allow_nan=False))


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """A reader such as `head` that closes the pipe changes no exit code.

    Raises Stopped where nothing can be written, as on a full disk.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        give_up_stdout()
    except OSError as refusal:
        give_up_stdout()
        raise Stopped(
            "stdout", found=refusal.strerror or str(refusal), expected="an output that can be written",
            mend="Write it elsewhere; the store has the result, and the same command gives it again.",
        ) from refusal  # fmt: skip


def give_up_stdout() -> None:
    """Nothing more can be written there; what is still buffered must not raise at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
