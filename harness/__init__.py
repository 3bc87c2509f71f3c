"""The release gate for retrieval models.

Every command is a function here with the same name, typed arguments and a typed result, and `mteb_model` makes of a
release what MTEB evaluates; each is imported when it is first asked for, so that `import harness` stays cheap.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from harness.verb.admit import admit
    from harness.verb.bundle import bundle
    from harness.verb.cache import cache
    from harness.verb.calibrate import calibrate
    from harness.verb.check import check
    from harness.verb.decide import decide
    from harness.verb.demo import demo
    from harness.verb.describe import describe
    from harness.verb.diff import diff
    from harness.verb.explain import explain
    from harness.verb.export import export
    from harness.verb.freeze import freeze
    from harness.verb.mteb_model import mteb_model
    from harness.verb.report import report
    from harness.verb.run import run
    from harness.verb.runs import runs
    from harness.verb.selftest import selftest
    from harness.verb.sql import sql
    from harness.verb.threshold import threshold
    from harness.verb.verify import verify

__all__ = [
    "admit",
    "bundle",
    "cache",
    "calibrate",
    "check",
    "decide",
    "demo",
    "describe",
    "diff",
    "explain",
    "export",
    "freeze",
    "mteb_model",
    "report",
    "run",
    "runs",
    "selftest",
    "sql",
    "threshold",
    "verify",
]


class _Package(ModuleType):
    """Some verbs share their name with a room; here the name is the verb's, whichever is imported first."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    return getattr(import_module(f"harness.verb.{name}"), name)


sys.modules[__name__].__class__ = _Package
