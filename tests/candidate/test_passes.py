"""What a forward pass took: computed texts alone, one measurement for whoever shares the pass."""

from types import SimpleNamespace

import pytest

from harness.candidate import encoder as room
from harness.candidate.cross import Pair, load_cross
from harness.candidate.encoder import encode
from harness.candidate.head import Sample, load_head
from harness.candidate.load import load
from harness.candidate.open import pass_key
from harness.candidate.passes import Pass, Spent, joined, listening, shared_out

from .conftest import Memory, bare_bert, save_cross, save_tiny
from .late_folder import save_late
from .test_head import KINDS
from .tiny import save_sparse

TEXTS = ["heat", "drag of the wing", "heat"]


class TestHeard:
    def test_each_distinct_text_once_with_its_tokens_and_its_side(self, encoder) -> None:
        made = encoder()
        with listening() as heard:
            made.encode(TEXTS, "query")
        [told] = heard
        lengths = [len(each) for each in made.sides["query"].tokenise(TEXTS[:2])]
        assert (told.key, told.side, told.texts) == (made.sides["query"].keys.rows, "query", 2)
        assert told.tokens == sum(lengths) and told.seconds > 0 and told.threads >= 1

    def test_nothing_of_what_is_kept(self, encoder) -> None:
        made, kept = encoder(), Memory()
        side = made.sides["document"]
        encode([side], TEXTS, kept)
        with listening() as heard:
            encode([side], TEXTS, kept)
        assert heard == []
        with listening() as heard:
            encode([side], [*TEXTS, "jet"], kept)
        assert [(each.texts, each.tokens) for each in heard] == [(1, len(side.tokenise(["jet"])[0]))]

    def test_two_readouts_of_one_pass_share_one_measurement(self, encoder) -> None:
        mean, cls = encoder(), encoder('[override.readout]\npooling = "cls"\n')
        with listening() as heard:
            encode([mean.sides["query"], cls.sides["query"]], TEXTS)
        assert [each.texts for each in heard] == [2]

    def test_a_text_that_two_releases_cut_otherwise_is_two(self, encoder) -> None:
        whole, short = encoder(), encoder("[input]\nmax_length = 4\n")
        with listening() as heard:
            encode([each.sides["query"] for each in (whole, short)], TEXTS)
        [told] = heard
        long, cut = (len(each.sides["query"].tokenise([TEXTS[1]])[0]) for each in (whole, short))
        # "heat" is read alike by both: [CLS] heat [SEP].
        assert cut == 4 < long
        assert told.texts == 3 and told.tokens == 3 + long + cut

    def test_a_text_in_windows_is_one(self, encoder) -> None:
        made = encoder('[input.window]\nsize = 8\nstride = 4\naggregation = "best"\n')
        with listening() as heard:
            made.encode(["the flow of heat over a plate " * 3], "document")
        assert [each.texts for each in heard] == [1]

    def test_nobody_listens_outside(self, encoder) -> None:
        made = encoder()
        with listening() as heard:
            pass
        made.encode(TEXTS, "query")
        assert heard == []

    def test_outputs_do_not_depend_on_it(self, encoder) -> None:
        made = encoder()
        plain = made.encode(TEXTS, "query")
        with listening():
            assert made.encode(TEXTS, "query").values.tobytes() == plain.values.tobytes()


class TestClock:
    def test_it_runs_in_the_forward_pass_and_nowhere_else(self, encoder, monkeypatch) -> None:
        """A clock that only tokens make go on stands still while the readout pools."""
        now = [0.0]
        monkeypatch.setattr(room, "time", SimpleNamespace(perf_counter=lambda: now[0]))
        side = encoder().sides["query"]
        rows, read_out = type(side).rows, type(side).read_out

        def slow(kind, seconds):
            def through(self, *arguments, **options):
                now[0] += seconds
                return kind(self, *arguments, **options)

            return through

        monkeypatch.setattr(type(side), "rows", slow(rows, 2.0))
        monkeypatch.setattr(type(side), "read_out", slow(read_out, 40.0))
        with listening() as heard:
            encode([side], ["heat"])
        assert [each.seconds for each in heard] == [pytest.approx(2.0)]

    def test_threads_side_by_side_share_the_wall(self) -> None:
        """Four seconds of two threads in two by the wall: one of them for a's rows, half of one for b's."""
        spent = [Spent("a", 10, 1.0, 1.0), Spent("a", 10, 1.0, 1.0), Spent("b", 5, 1.0, 2.0)]
        found = shared_out(2.0, spent)
        assert (found["a"].tokens, found["a"].seconds) == (20, 1.0)
        assert (found["b"].tokens, found["b"].seconds) == (5, 0.5)

    def test_what_was_heard_of_one_pass_is_added_up(self) -> None:
        heard = [
            Pass("k", "query", 1, 3, 0.5, 2),
            Pass("k", "document", 1, 9, 1.0, 2),
            Pass("k", "query", 2, 7, 0.5, 2),
        ]
        assert joined(heard) == (Pass("k", "document", 1, 9, 1.0, 2), Pass("k", "query", 3, 10, 1.0, 2))


class TestKey:
    """What a release's pass is measured under can be told without loading it."""

    def test_of_what_keeps_something_of_a_text(self, release, tmp_path) -> None:
        folders = {
            "bi": save_tiny(tmp_path / "bi"), "late": save_late(tmp_path / "late"),
            "sparse": save_sparse(tmp_path / "sparse"),
        }  # fmt: skip
        for kind, folder in folders.items():
            opened = release(f"path:{folder}", "", kind)
            for side, own in load(opened, opened.prompts_for()).sides.items():
                assert pass_key(opened, side) == own.keys.rows, (kind, side)
                assert own.side == side

    def test_of_what_reads_texts_together(self, release, tmp_path) -> None:
        opened = release(f"path:{save_cross(tmp_path)}", "", "cross")
        model = load_cross(opened)
        assert pass_key(opened, "pair") == model.keys.rows
        with listening() as heard:
            model.encode([Pair("heat", "the jet")])
        assert [(each.side, each.texts) for each in heard] == [("pair", 1)]

    def test_of_a_head(self, release, tmp_path) -> None:
        kind = KINDS["classes"]
        folder = bare_bert(tmp_path / "head", head=f"For{kind.head}", **kind.config)
        opened = release(f"path:{folder}", kind.extra, "head")
        model = load_head(opened)
        [side] = opened.manifest.meaning.towers
        assert pass_key(opened, side) == model.keys.rows
        with listening() as heard:
            encode([model], [Sample("heat")])
        assert [(each.side, each.texts) for each in heard] == [("text", 1)]
