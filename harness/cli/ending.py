"""How a command ends: one message and the exit code of the contract, whatever happened."""

import os
import sys
from pathlib import Path

import typer

from harness.cli.command import app
from harness.cli.stdout import give_up_stdout, print_json
from harness.errors import HarnessError, Interrupted, Misconfigured, Stopped

INTERRUPTED = Interrupted.exit_code


def main() -> None:
    """The console script. Every refusal is one message and an exit code; a user's mistake shows no traceback."""
    as_json = "--json" in sys.argv[1:]
    if sys.stdout is None:  # closed by the shell
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115  # for as long as the process lives
    try:
        code = app(standalone_mode=False) or 0
        sys.exit(code if code != INTERRUPTED else _refuse(_interrupted(), as_json))
    except HarnessError as refusal:
        sys.exit(_refuse(refusal, as_json))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(_refuse(_interrupted(), as_json))
    except Exception as fault:
        if isinstance(fault, OSError) and fault.filename is not None:
            sys.exit(_refuse(_unreachable(fault), as_json))
        if message := getattr(fault, "format_message", None):  # what typer raises for a command line it can't parse
            usage = Misconfigured(
                "the command line", found=message().replace("Value error, ", ""),
                expected="a command of harness with its own options",
                mend="`harness --help` lists the commands, `harness COMMAND --help` the options.",
            )  # fmt: skip
            sys.exit(_refuse(usage, as_json))
        if os.environ.get("HARNESS_TRACEBACK"):
            raise
        internal = HarnessError(
            "harness itself", found=f"{type(fault).__name__}: {fault}", expected="no internal error",
            mend="Please report it, with what HARNESS_TRACEBACK=1 prints.",
        )  # fmt: skip
        sys.exit(_refuse(internal, as_json))


def _refuse(refusal: HarnessError, as_json: bool) -> int:
    try:
        if as_json:
            print_json({"error": refusal.as_record(), "exit_code": refusal.exit_code})
        else:
            typer.echo(str(refusal), err=True)
    except OSError:
        give_up_stdout()  # a full disk behind stdout: the exit code is all that can still be said
    return refusal.exit_code


def _unreachable(fault: OSError) -> Stopped:
    return Stopped(
        os.fsdecode(fault.filename), found=fault.strerror or str(fault),
        expected="a file or a folder that can be read and written",
        mend="Mend the path or the permissions, or free some space; then give the same command again.",
    )  # fmt: skip


def _interrupted() -> Interrupted:
    return Interrupted(
        "the command", found="it was interrupted", expected="that it may finish",
        mend="What is finished is kept; give the same command again.",
    )  # fmt: skip
