"""Releases made of others: pairs of encoders, two stages, fusions."""

import pytest

from harness.errors import Misconfigured, NotFound
from harness.release.open import open_release

from .conftest import Folder, toml

HEAD = 'schema = "harness.release.v1"\nname = "whole"\ninteraction = "{}"\n'
PAIR = HEAD.format("bi") + '[pair]\nquery = "a"\ndocument = "b"\n'
STAGES = HEAD.format("two-stage") + 'retriever = "a"\nreranker = "cross"\ndepth = 50\n'
FUSION = HEAD.format("fusion") + '[fusion.weights]\na = 0.5\nold = 2.0\n[fusion.scales]\na = "min-max"\nold = "none"\n'


@pytest.fixture
def whole(tmp_path):
    """A release beside those that it names."""

    def make(text):
        return Folder(tmp_path / "whole", text)

    return make


def opened(folder):
    return open_release(folder.path)


class TestPair:
    def test_each_side_has_the_encoder_and_prompt_of_its_release(self, bi, whole):
        """As DPR has two: one prompt each, and the pair is not tied."""
        (
            bi("a", '[prompts]\nquery = "q: "\n'),
            bi("b").change("model/1_Pooling/config.json", include_prompt=False),
        )
        release = opened(whole(PAIR))
        meaning = release.manifest.meaning
        assert meaning.towers["query"].input.prompts == {"query": "q: "}
        assert meaning.towers["document"].input.prompts == {"document": ""}
        assert meaning.interaction.tied is False and set(meaning.interaction.releases) == {"query", "document"}
        assert meaning.interaction.releases["query"] == release.members["query"].content_id
        assert "query/model.safetensors" in release.files

    def test_encoders_that_do_not_fit_are_refused(self, bi, whole):
        """Another width, another score."""
        bi("a"), bi("b").write("model/config_sentence_transformers.json", {"truncate_dim": 4})
        with pytest.raises(Misconfigured, match="width 8 of queries and 4"):
            opened(whole(PAIR))
        bi("b").write("model/config_sentence_transformers.json", {"similarity_fn_name": "dot"})
        with pytest.raises(Misconfigured, match="score cosine of queries and dot"):
            opened(whole(PAIR))


class TestTwoStages:
    def test_the_score_is_the_rerankers_and_the_depth_is_declared(self, bi, sequence, whole):
        """Its stages stand as content IDs."""
        bi("a"), sequence(name="cross")
        release = opened(whole(STAGES))
        meaning = release.manifest.meaning
        assert (meaning.interaction.depth, meaning.score.type, meaning.towers) == (50, "probability", {})
        assert meaning.interaction.releases == {role: each.content_id for role, each in release.members.items()}

    def test_a_changed_stage_is_another_release(self, bi, sequence, whole):
        """Whatever changed in it."""
        bi("a"), sequence(name="cross")
        before = opened(whole(STAGES)).content_id
        bi("a", "[input]\nmax_length = 5\n")
        assert opened(whole(STAGES)).content_id != before

    def test_what_runs_a_stage_is_part_of_its_identity_and_not_of_its_content(self, bi, sequence, whole):
        """Else the same model on two backends could not be held against each other."""
        bi("a"), sequence(name="cross")
        before = opened(whole(STAGES))
        assert before.on_torch and before.identity == opened(whole(STAGES)).identity
        bi("a", '[runtime]\nbackend = "onnx"\n')
        after = opened(whole(STAGES))
        assert after.content_id == before.content_id
        assert after.identity != before.identity and not after.on_torch

    def test_a_retriever_that_ranks_nothing_is_refused(self, bi, sequence, whole):
        """A cross-encoder searches no corpus, and a fusion is no last stage."""
        bi("a"), sequence(name="cross")
        with pytest.raises(Misconfigured, match="a cross release as its retriever"):
            opened(whole(STAGES.replace('"a"', '"cross"')))
        Folder(whole(STAGES).path.parent / "sum", FUSION.replace("whole", "sum").replace("old", "cross"))
        with pytest.raises(Misconfigured, match="a fusion release as its reranker"):
            opened(whole(STAGES.replace('"cross"', '"sum"')))

    def test_a_stage_that_is_not_there_is_not_found(self, bi, whole):
        """Who names it is said, and what is near."""
        bi("a"), bi("crass")
        with pytest.raises(NotFound, match=r"release whole: no release 'cross', its reranker.*\n.*mean 'crass'"):
            opened(whole(STAGES))

    def test_a_release_made_of_itself_is_refused(self, bi, whole):
        """Also round a corner."""
        bi("a")
        with pytest.raises(Misconfigured, match="made of itself"):
            opened(whole(STAGES.replace('"cross"', '"whole"')))


class TestFusion:
    def test_members_are_weighed_and_scaled_by_name(self, bi, recorded, whole):
        """A live one and a recorded one."""
        bi("a"), recorded()
        interaction = opened(whole(FUSION)).manifest.meaning.interaction
        assert (interaction.weights, interaction.scales) == ({"a": 0.5, "old": 2.0}, {"a": "min-max", "old": "none"})
        assert set(interaction.releases) == {"a", "old"}

    def test_a_member_that_ranks_nothing_is_refused(self, sequence, recorded, whole):
        """A classifier has no documents."""
        sequence("head", 3, "a", '[output]\nkind = "classes"\n'), recorded()
        with pytest.raises(Misconfigured, match="a head release as its a"):
            opened(whole(FUSION))


class TestWhatCanBeRun:
    def test_every_kind_is_opened_and_what_cannot_be_run_says_what_it_is(self, bi, sequence, recorded, whole):
        """By name."""
        a, cross = bi("a"), sequence(name="cross")
        assert opened(a).cannot_run is None and opened(recorded()).cannot_run is None
        assert opened(cross).cannot_run is None and opened(cross).unranked is None
        assert opened(whole(STAGES)).cannot_run is None
        assert opened(bi("rows").toml(toml("late", "[late]\nskip = []\n", "rows"))).cannot_run is None
        sequence(name="cross", extra="[score]\ntemperature = 2.0\n")
        assert opened(whole(STAGES)).cannot_run == "a release whose scores have a temperature as its reranker"
        bi("b")
        assert opened(whole(PAIR)).cannot_run is None
        head = sequence("head", 3, "head", '[output]\nkind = "classes"\n')
        assert opened(head).cannot_run is None

    def test_declarations_that_a_run_would_not_honour_keep_it_from_running(self, bi, sequence, whole):
        """Ways to join windows that are not built, and temperatures, a member's among them."""
        window = '[output]\nkind = "classes"\n[input.window]\nsize = 32\nstride = 16\naggregation = "best"\n'
        assert "windows by best" in opened(sequence("head", 3, "head", window)).cannot_run
        bi("a", "[score]\ntemperature = 2.0\n"), sequence(name="cross")
        assert "temperature as its retriever" in opened(whole(STAGES)).cannot_run

    def test_a_pair_runs_on_what_its_members_say(self, bi, whole):
        """It says nothing of it for itself, and neither do stages."""
        bi("a"), bi("b", '[runtime]\nbackend = "onnx"\n')
        pair = opened(whole(PAIR))
        assert pair.cannot_run is None and (pair.backend, pair.encoder_of("document").backend) == (None, "onnx")

    def test_classes_none_of_which_is_the_score_rank_nothing(self, sequence):
        """They are named, and the one that release.toml names ranks."""
        assert "LABEL_0, LABEL_1, LABEL_2" in opened(sequence(labels=3)).unranked
        assert opened(sequence(labels=3, name="b", extra='[score]\nlabel = "LABEL_1"\n')).unranked is None
