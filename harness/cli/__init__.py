"""The command line: parse, call one verb, print, give its exit code."""

from harness.cli.ending import main

__all__ = ["main"]
