"""The invariants that a manifest keeps by itself: widths, labels, score, rows, and how its parts fit together."""

from collections.abc import Iterator, Mapping

from harness.identity import Json
from harness.release.admit.check import Check, held, listed
from harness.release.describe.labels import GENERIC
from harness.release.describe.prompts import SETTINGS, SIDES, saved_prompts
from harness.release.folder import ModelFolder
from harness.release.manifest import Manifest, Meaning, Tower
from harness.release.threshold import converted

PROBABLE = ("sigmoid", "softmax")


def meaning_findings(manifest: Manifest) -> tuple[Check, ...]:
    """Whether a manifest's own values agree with one another, one check for each law."""
    meaning = manifest.meaning
    return (
        listed(
            "widths-chain", _chain(meaning), sound=f"{meaning.output.dimension} numbers",
            expected="each map as wide as what it is given, and the output as wide as the last",
            mend="Restore the files, or take the pooling override out of release.toml.",
        ),
        listed(
            "towers-agree", _towers(meaning), sound=", ".join(meaning.towers) or "none",
            expected="the encoders that the interaction has", mend="Restore the files: an encoder is missing.",
        ),
        listed(
            "score-fits", _score(meaning), sound=meaning.score.type,
            expected="a range, a sum and a normalisation as the type of score has them",
            mend="Correct what departs: the type of score, its activation or the normalisation.",
        ),
        listed(
            "threshold-per-label", _threshold(meaning), sound="holds",
            expected="one threshold, or one for each label, inside the range of the score",
            mend="Correct `threshold` in [score] of release.toml.",
        ),
        listed(
            "threshold-type", _threshold_type(meaning), sound="holds",
            expected="a threshold of the score that it meets",
            mend="Write the threshold in the release's own score, and its `type` in [decision] as that.",
        ),
        listed(
            "labels-count", _labels(meaning), sound=f"{len(meaning.output.labels or ())} labels",
            expected="a name for every number, each its own", mend="Correct `labels` in [output] of release.toml.",
        ),
        _generic(meaning),
        listed(
            "decoder-fits", _decoder(meaning), sound=meaning.output.decoder,
            expected="rows that lead back to words and characters, and transitions where a CRF decodes",
            mend="Save the model with a fast tokenizer (tokenizer.json); IDs are never rebuilt from decoded text.",
        ),
        listed(
            "content-rows", _content(meaning), sound="holds", expected="room for text beside the special tokens",
            mend="Raise [input] max_length in release.toml.",
        ),
        listed(
            "prompts-by-side", _prompts(meaning), sound="holds", expected="a prompt, if an empty one, for each side",
            mend="Add [prompts] with `query` and `document` to release.toml.",
        ),
        listed(
            "mixture-fits", _mixture(meaning), sound="holds", expected="one layer, or a weight for each of several",
            mend="Restore the file that says the layers.",
        ),
        listed(
            "members-weighted", _members(meaning), sound="holds", expected="a weight and a scale for each member",
            mend="Correct [fusion] in release.toml.",
        ),
    )  # fmt: skip


def label_findings(config: Mapping[str, Json]) -> tuple[Check, ...]:
    """Of a configuration's label maps, each the other's inverse."""
    return (
        listed(
            "label-bijection", _bijection(config), sound="holds",
            expected="id2label and label2id, each the other's inverse",
            mend="Give every row one name and every name one row, in both maps of config.json.",
        ),
    )  # fmt: skip


def prompt_findings(manifest: Manifest, folder: ModelFolder) -> tuple[Check, ...]:
    """Of the prompts that the folder has, and for which nobody says when they are used."""
    return (
        listed(
            "prompt-names", _named(manifest, folder), sound="holds", expected="prompts that a side's texts are given",
            mend="Say in [prompts] of release.toml what `query` and `document` are given, if an empty text.",
        ),
    )  # fmt: skip


def _chain(meaning: Meaning) -> Iterator[str]:
    for name, tower in meaning.towers.items():
        width = tower.state.width * max(1, len(tower.readout.modes) if tower.readout.family == "pooled" else 1)
        for place, step in enumerate(tower.readout.projections):
            if step.width_in != width:
                yield f"{name}: map {place} takes {step.width_in} dimensions and is given {width} dimensions"
            width = step.width_out
        cut = tower.readout.truncate_dim
        if cut is not None and cut > width:
            yield f"{name}: cut to {cut} dimensions, of {width}"
        width = min(width, cut) if cut is not None else width
        if width != meaning.output.dimension:
            yield f"{name}: {width} dimensions of {meaning.output.dimension}"


def _towers(meaning: Meaning) -> Iterator[str]:
    kind, names = meaning.interaction.kind, set(meaning.towers)
    allowed: Mapping[str, tuple[set[str], ...]] = {
        "bi": ({"both"}, {"query", "document"}), "sparse": ({"both"}, {"query", "document"}),
        "late": ({"both"}, {"query", "document"}), "cross": ({"pair"},), "head": ({"text"}, {"pair"}),
    }  # fmt: skip
    if names not in allowed.get(kind, (set(),)):
        yield f"a {kind} release with the encoders {', '.join(sorted(names)) or 'none'}"
    if kind in ("bi", "sparse") and meaning.interaction.tied != (names == {"both"}):
        yield f"tied is {meaning.interaction.tied}, with the encoders {', '.join(sorted(names))}"
    if (kind == "recorded") != (meaning.recording is not None):
        yield f"a {kind} release {'without' if meaning.recording is None else 'with'} a recording"


def _score(meaning: Meaning) -> Iterator[str]:
    score = meaning.score
    bounds = (score.low, score.high)
    if score.type == "probability" and bounds != (0.0, 1.0):
        yield f"a probability from {score.low} to {score.high}"
    if meaning.recording is None and score.type == "probability" and score.activation not in PROBABLE:
        yield f"a probability by the activation {score.activation}"
    if score.type == "logit" and score.activation != "identity":
        yield f"a logit by the activation {score.activation}"
    if score.probability and score.type != "probability" and score.calibrator is None:
        yield f"a {score.type} that claims to be a probability"
    if score.sums_to is not None and score.activation != "softmax":
        yield f"numbers that sum to {score.sums_to} by the activation {score.activation}"
    if score.activation == "softmax" and meaning.interaction.kind == "cross" and meaning.output.dimension == 1:
        yield "the softmax of one number, which is always 1"
    if score.type == "cosine" and bounds != (-1.0, 1.0) and meaning.interaction.kind != "sparse":
        yield f"a cosine from {score.low} to {score.high}"
    if score.type == "dot" and score.high is not None and not all(_unit(tower) for tower in meaning.towers.values()):
        yield f"a dot product up to {score.high} of vectors without unit length"
    if score.higher_is_better == (score.type == "squared-l2"):
        yield f"a {score.type} of which {'more' if score.higher_is_better else 'less'} is better"
    if score.type == "maxsim" and any(tower.readout.family != "rows" for tower in meaning.towers.values()):
        yield "maxsim of anything but rows"


def _unit(tower: Tower) -> bool:
    norm = tower.readout.normalisation
    last = norm.stage == "after-projection" or (norm.stage == "after-pooling" and not tower.readout.projections)
    cut = tower.readout.truncate_dim is not None and norm.stage != "after-truncation"
    return norm.kind == "l2" and (last or norm.stage == "after-truncation") and not cut


def _threshold(meaning: Meaning) -> Iterator[str]:
    said = meaning.score.threshold
    values = said if isinstance(said, list) else [] if said is None else [said]
    # How many labels a file of outputs has shows when it is read.
    if isinstance(said, list) and len(said) != meaning.output.dimension and meaning.recording is None:
        yield f"{len(said)} thresholds for {meaning.output.dimension} labels"
    low, high = meaning.score.low, meaning.score.high
    for value in values:
        if (low is not None and value < low) or (high is not None and value > high):
            yield f"the threshold {value} of scores from {low} to {high}"


def own_type(meaning: Meaning) -> str:
    """What a threshold meets: a calibrated probability, or the score as it is."""
    return "probability" if meaning.score.calibrator is not None else meaning.score.type


def _threshold_type(meaning: Meaning) -> Iterator[str]:
    """A number of one score says nothing of another; where it can be said in the other, it is."""
    decided, own = meaning.score.decision, own_type(meaning)
    if decided is None or decided.type in (None, own) or meaning.score.threshold is None:
        return
    if decided.type == "gap" and meaning.output.kind == "span":
        return
    said = meaning.score.threshold
    unit = own == "cosine" or (bool(meaning.towers) and all(_unit(tower) for tower in meaning.towers.values()))
    values = said if isinstance(said, list) else [said]
    offered = [converted(each, str(decided.type), own, unit=unit) for each in values]
    told = f"a threshold of {decided.type}, {said}, that meets a {own}"
    known = [f"{each:.12g}" for each in offered if each is not None]
    if len(known) == len(values):
        told += f"; the same of a {own} is {', '.join(known)}"
    elif {decided.type, own} <= {"cosine", "dot", "squared-l2"}:
        told += "; only of vectors of unit length is one the other"
    yield told


def _labels(meaning: Meaning) -> Iterator[str]:
    output = meaning.output
    if output.labels is None:
        # What a file of outputs calls its labels shows when it is read.
        if output.kind in ("classes", "multilabel", "tags") and meaning.recording is None:
            yield f"no labels for {output.dimension} {output.kind}"
        return
    if len(output.labels) != output.dimension:
        yield f"{len(output.labels)} labels for {output.dimension} numbers"
    twice = sorted({label for label in output.labels if output.labels.count(label) > 1})
    if twice:
        yield f"labels that stand twice: {', '.join(twice)}"
    if output.null is not None and output.kind in ("classes", "tags") and output.null not in output.labels:
        yield f"the null label {output.null!r}, which is none of them"
    if output.generic_labels != any(GENERIC.fullmatch(label) for label in output.labels):
        yield f"generic_labels is {output.generic_labels}"


def _generic(meaning: Meaning) -> Check:
    """Names that nobody gave are no fault, but they say nothing of what they mean."""
    generic = [label for label in meaning.output.labels or () if GENERIC.fullmatch(label)]
    expected = "labels with a meaning"
    if generic:
        return Check(
            "label-names", True, f"generic names: {', '.join(generic)}", expected,
            "Name them with `labels` in [output] of release.toml, in the order of the head's rows.",
        )  # fmt: skip
    return held("label-names", ", ".join(meaning.output.labels or ()) or "no labels", expected)


def _decoder(meaning: Meaning) -> Iterator[str]:
    output = meaning.output
    if (output.decoder == "crf") != (output.transitions is not None):
        yield f"the decoder {output.decoder} {'without' if output.transitions is None else 'with'} transitions"
    if output.decoder in ("crf", "constrained") and output.kind != "tags":
        yield f"the decoder {output.decoder} of {output.kind}"
    needed = {"tags": ("offsets", "words"), "span": ("offsets", "sequences")}.get(output.kind, ())
    for tower in meaning.towers.values():
        lacking = [each for each in needed if not getattr(tower.rows, each)]
        if lacking:
            yield f"{output.kind} of rows without {' and '.join(lacking)}"


def _content(meaning: Meaning) -> Iterator[str]:
    for name, tower in meaning.towers.items():
        special = tower.input.special_tokens
        around = sum(role in special for role in ("cls_token", "sep_token"))
        around += tower.input.template == "pair" and "sep_token" in special
        if tower.input.max_length <= around:
            yield f"{name}: {tower.input.max_length} tokens, of which {around} are special"


def _prompts(meaning: Meaning) -> Iterator[str]:
    for name, tower in meaning.towers.items():
        for side in SIDES.get(name, ()):
            if side not in tower.input.prompts:
                yield f"{name}: no prompt for {side}"


def _mixture(meaning: Meaning) -> Iterator[str]:
    for name, tower in meaning.towers.items():
        layers, mixture = tower.state.layers, tower.state.mixture
        if len(layers) != (1 if mixture is None else len(mixture)):
            yield f"{name}: {len(layers)} layers, {'no' if mixture is None else len(mixture)} weights"


def _members(meaning: Meaning) -> Iterator[str]:
    interaction = meaning.interaction
    if interaction.kind == "fusion":
        for what, names in (("weights", interaction.weights), ("scales", interaction.scales)):
            if names.keys() != interaction.releases.keys():
                yield f"{what} for {', '.join(names)}, of the members {', '.join(interaction.releases)}"
    if interaction.kind == "two-stage" and interaction.depth is None:
        yield "no depth"


def _bijection(config: Mapping[str, Json]) -> Iterator[str]:
    names, rows = config.get("id2label"), config.get("label2id")
    if not isinstance(names, Mapping):
        return
    twice = sorted({str(label) for label in names.values() if list(names.values()).count(label) > 1})
    if twice:
        yield f"rows that share a name: {', '.join(twice)}"
    if isinstance(rows, Mapping):
        for row, label in names.items():
            if str(rows.get(str(label))) != str(row):
                yield f"row {row} is {label!r}, and {label!r} is row {rows.get(str(label))}"
        for label in rows:
            if label not in names.values():
                yield f"{label!r} is row {rows[label]}, which has another name"


def _named(manifest: Manifest, folder: ModelFolder) -> Iterator[str]:
    settings = folder.json(SETTINGS) or {}
    known, usual = saved_prompts(settings), settings.get("default_prompt_name")
    if usual is not None and usual not in known:
        yield f"the default prompt {usual!r}, which is none of {', '.join(known) or 'no prompts'}"
    sources = manifest.evidence.sources
    for name in manifest.meaning.towers:
        for side in SIDES.get(name, ()):
            if sources.get(f"towers.{name}.input.prompts.{side}") == "library" and any(known.values()):
                said = [each for each, text in known.items() if text]
                if not set(known) & {"query", "document", "passage", "corpus"}:
                    yield f"the prompts {', '.join(said)}, none of them for {side}"
