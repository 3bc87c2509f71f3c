"""Every refusal says what it is about, what was found, what was expected, and how to mend it.

The kinds are apart because their mends are: a misconfigured file is edited, a tampered one is restored,
a stopped run is started again. The exit code belongs to the kind (docs/design.md, Exit codes).
"""

from collections.abc import Callable
from functools import partial
from typing import ClassVar


class HarnessError(Exception):
    """A refusal. `str()` gives the sentence a user reads; `as_record()` what `--json` prints."""

    kind: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 70

    def __init__(self, subject: str, *, found: str, expected: str, mend: str) -> None:
        super().__init__(subject, found, expected, mend)
        self.subject = subject
        self.found = found
        self.expected = expected
        self.mend = mend

    def __reduce__(self) -> tuple[Callable[[], "HarnessError"], tuple[()]]:
        """A refusal goes from process to process as it is."""
        return partial(type(self), self.subject, found=self.found, expected=self.expected, mend=self.mend), ()

    def __str__(self) -> str:
        ends = "\n" if "\n" in self.found else " " if self.found.endswith((".", "?")) else ". "
        return f"{self.subject}: {self.found}{ends}Expected: {self.expected}.\n{self.mend}"

    def as_record(self) -> dict[str, str]:
        return {
            "kind": self.kind,
            "subject": self.subject,
            "found": self.found,
            "expected": self.expected,
            "mend": self.mend,
        }


class Misconfigured(HarnessError):
    """The request, or a file that people write, is invalid."""

    kind = "misconfigured"
    exit_code = 2


class NotFound(HarnessError):
    """A path, release, suite or run that isn't there."""

    kind = "not-found"
    exit_code = 2


class Unpairable(HarnessError):
    """Two sets of values that do not speak of the same cases."""

    kind = "unpairable"
    exit_code = 2


class EmptySlice(HarnessError):
    """A statistic was asked of no cases."""

    kind = "empty-slice"
    exit_code = 2


class Tampered(HarnessError):
    """A frozen thing no longer is what its digest says."""

    kind = "tampered"
    exit_code = 4


class Leaked(HarnessError):
    """Cases that depend on one another stand in two roles."""

    kind = "leaked"
    exit_code = 4


class NotAdmitted(HarnessError):
    """A release that may not be run."""

    kind = "not-admitted"
    exit_code = 4


class Stopped(HarnessError):
    """The run could not go on; what is done is kept."""

    kind = "stopped"
    exit_code = 5


class Interrupted(HarnessError):
    """The user broke it off; what is done is kept."""

    kind = "interrupted"
    exit_code = 130
