"""Everything else stands in pyproject.toml; this puts the embedded suite and its releases into the wheel."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

EMBEDDED = (
    "suites/help-center",
    "releases/minilm-128",
    "releases/minilm-256",
    "releases/minilm-256-cls",
    "releases/minilm-rows",
    "releases/minilm-two-stage",
)
LEFT_OUT = shutil.ignore_patterns("bundles", "lifecycle.jsonl", "exposures.jsonl", ".*")


class BuildWithSuite(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for folder in EMBEDDED:
                target = Path(self.build_lib, "harness", "embedded", folder)
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(folder, target, ignore=LEFT_OUT)


setup(cmdclass={"build_py": BuildWithSuite})
