"""From a model's own files, and what release.toml adds to them, to the manifest of a release."""

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from pydantic import ValidationError

from harness.errors import Misconfigured, NotAdmitted
from harness.identity import digest
from harness.release.definition import ReleaseDefinition
from harness.release.describe.beside import Beside
from harness.release.describe.composed import fusion, paired, recorded, two_stage
from harness.release.describe.cross import LEGACY, cross
from harness.release.describe.head import head
from harness.release.describe.late import STANFORD, late
from harness.release.describe.pooled import pooled
from harness.release.describe.prompts import SETTINGS
from harness.release.describe.sparse import sparse
from harness.release.describe.told import DECLARED, Told, Tree, each_from, settle
from harness.release.field import join
from harness.release.folder import ModelFolder
from harness.release.manifest import Evidence, Identity, Manifest, Meaning, Runtime, Training

Family: TypeAlias = Literal["bi", "cross", "late", "sparse", "head"]
FAMILIES: Mapping[str, Callable[[ReleaseDefinition, ModelFolder], Tree]] = {
    "bi": pooled, "cross": cross, "late": late, "sparse": sparse
}  # fmt: skip
OF_MODEL_TYPES: Mapping[str, Family] = {
    "SentenceTransformer": "bi", "CrossEncoder": "cross", "SparseEncoder": "sparse", "MultiVectorEncoder": "late",
    "ColBERT": "late",
}  # fmt: skip


def describe(definition: ReleaseDefinition, folder: ModelFolder, beside: Beside | None = None) -> Manifest:
    """The manifest of a release with a model, from its files alone; whether it may be run is `admit`'s to say.

    Raises NotAdmitted for a folder that cannot be understood, Misconfigured for what release.toml has to say and
    does not.
    """
    beside = beside or Beside()
    if definition.interaction == "head":
        tree = head(definition, folder, beside)
    else:
        tree = FAMILIES[definition.interaction](definition, folder)
    return manifest_of(definition, tree, folder.files, beside)


def describe_composed(
    definition: ReleaseDefinition, members: Mapping[str, Manifest], beside: Beside | None = None
) -> Manifest:
    """The manifest of a release made of others, by their roles. Raises Misconfigured for members that don't fit."""
    beside = beside or Beside()
    make = {"two-stage": two_stage, "fusion": fusion, "bi": paired}[definition.interaction]
    return manifest_of(definition, make(definition, members), {}, beside)


def describe_recorded(
    definition: ReleaseDefinition, outputs: str, beside: Beside | None = None, *, null_scores: str | None = None
) -> Manifest:
    """The manifest of recorded outputs; `outputs` and `null_scores` are their files' digests.

    Raises Misconfigured for a release without [recorded].
    """
    said = definition.recorded
    if said is None:
        raise Misconfigured(
            f"release {definition.name}", found="no [recorded]", expected="recorded outputs",
            mend="Name their file in release.toml.",
        )  # fmt: skip
    tree = recorded(definition, said, outputs, null_scores)
    return manifest_of(definition, tree, {said.path: outputs}, beside or Beside())


def interaction_of(folder: ModelFolder) -> Family:
    """What a model folder is for, by what its files say. Raises NotAdmitted where they don't say it."""
    settings, config = folder.json(SETTINGS) or {}, folder.json("config.json") or {}
    named = config.get("architectures")
    first = str(named[0]) if isinstance(named, list) and named else ""
    if family := OF_MODEL_TYPES.get(str(settings.get("model_type"))):
        return family
    if first == "HF_ColBERT" or (folder.path / STANFORD).is_file():
        return "late"
    if (folder.path / "modules.json").is_file() or (folder.path / "1_Pooling").exists():
        return "bi"
    if first.endswith("ForSequenceClassification"):
        labels = config.get("id2label")
        one = isinstance(labels, Mapping) and len(labels) == 1 and not config.get("problem_type")
        return "cross" if one or LEGACY in config or "sentence_transformers" in config else "head"
    if first.endswith(("ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice")):
        return "head"
    if first.endswith("ForMaskedLM"):
        raise NotAdmitted(
            str(folder.path), found=f"no modules.json, and the architecture {first!r}",
            expected="files that say what a masked language model is used for: one library pools its logits into a "
            "sparse vector, another its rows into a dense one",
            mend='Save the model with the library that runs it, or write release.toml with interaction = "sparse".',
        )  # fmt: skip
    raise NotAdmitted(
        str(folder.path), found=f"no modules.json, and the architecture {first or None!r}",
        expected="a model of Sentence Transformers, or one of transformers with a head",
        mend="Save the model with the library that runs it.",
    )  # fmt: skip


def manifest_of(definition: ReleaseDefinition, tree: Tree, files: Mapping[str, str], beside: Beside) -> Manifest:
    """Settles a tree of told values into a manifest. Raises NotAdmitted where a value is none that it can hold."""
    settled = settle(_whole(definition, tree, beside))
    try:
        meaning = Meaning.model_validate(settled.plain)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = join(tuple(str(key) for key in first["loc"]))
        raise NotAdmitted(
            f"release {definition.name}, {path} ({settled.sources.get(path, 'its files')})",
            found=f"{first['input']!r}", expected=first["msg"],
            mend="Correct the file that says so; no value is guessed in its place.",
        ) from error  # fmt: skip
    return Manifest(
        schema_="numinens.readout.v1",
        meaning=meaning,
        runtime=Runtime(declared=definition.runtime.model_dump(exclude_none=True), observed={}),
        evidence=Evidence(
            sources=dict(settled.sources), overridden=dict(settled.overridden), files=dict(files)
        ),
        identity=Identity(
            name=definition.name,
            parent=definition.parent,
            content_id=digest(meaning.as_json()),
            rollback_compatible=None if definition.rollback is None else definition.rollback.compatible,
            tests=list(definition.tests),
        ),
    )  # fmt: skip


def _whole(definition: ReleaseDefinition, tree: Tree, beside: Beside) -> Tree:
    """With what every kind of release has in the same way: a calibrator, and what is declared of its training."""
    if not isinstance(tree, Mapping):
        return tree
    score = tree["score"]
    calibrator: Tree = Told(None, DECLARED)
    if beside.calibrator is not None:
        calibrator = each_from(beside.calibrator.model_dump(), "declared")
    decision: Tree = Told(None, DECLARED)
    if beside.decision is not None:
        decision = each_from(beside.decision.model_dump(), DECLARED)
    said = None if definition.training is None else definition.training.model_dump(mode="json", exclude={"files"})
    # An empty table says as much as none.
    training: Tree = (
        Told(None, DECLARED) if said in (None, Training().model_dump(mode="json")) else each_from(said, DECLARED)
    )
    return {**tree, "score": {**(score if isinstance(score, Mapping) else {}), "calibrator": calibrator,
                              "decision": decision},
            "training": training}  # fmt: skip
