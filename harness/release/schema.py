"""The manifest's JSON Schema, as it stands in docs: `python -m harness.release.schema > docs/manifest.schema.json`."""

import json

from harness.release.manifest import Manifest


def schema_text() -> str:
    """The schema in JSON, its keys sorted."""
    return json.dumps(Manifest.model_json_schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(schema_text(), end="")
