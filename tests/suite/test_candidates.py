"""The documents that a reranking suite gives: read strictly, frozen, and held against the lock."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.errors import Misconfigured, NotFound, Tampered
from harness.suite.case import Candidate, Case
from harness.suite.freeze import freeze, open_frozen
from harness.suite.load import load
from harness.suite.lock import write_lock

from .conftest import HEAD, METRICS, RULE, Write

RERANKING = HEAD.replace('"retrieval"', '"reranking"')
LISTS = '[candidates]\npath = "candidates.tsv"\n'
PLAIN = "q1\td2\nq1\td1\nq2\td2\n"

Members = Callable[[Sequence[Case], str], list[str]]


@pytest.fixture
def given(write: Write) -> Callable[..., Path]:
    """The small suite with candidates: two for the first case, one for the second."""

    def make(candidates: str | None = PLAIN, *, lists: str = LISTS, cases: str = "", **more: object) -> Path:
        folder = write(head=RERANKING, cases=lists + cases, **more)
        if candidates is not None:
            (folder / "candidates.tsv").write_bytes(candidates.encode())
        return folder

    return make


def refused(folder: Path) -> Misconfigured:
    with pytest.raises(Misconfigured) as caught:
        load(folder)
    return caught.value


def ids(folder: Path) -> dict[str, list[str]]:
    return {case: [each.document_id for each in some] for case, some in (load(folder).candidates or {}).items()}


class TestReading:
    @pytest.mark.parametrize("header", ["", "query-id\tdocument-id\n", "Query_ID\tcorpus-id\n"])
    def test_lists_stand_by_case_in_file_order(self, given: Callable[..., Path], header: str) -> None:
        """With a header or without; a score that isn't there is none."""
        suite = load(given(header + PLAIN))
        assert suite.candidates == {
            "q1": (Candidate("d2", None), Candidate("d1", None)),
            "q2": (Candidate("d2", None),),
        }
        assert "candidates.tsv" in suite.files

    def test_a_third_column_is_the_first_stages_score(self, given: Callable[..., Path]) -> None:
        """It is kept, and orders nothing."""
        suite = load(given("q1\td2\t0.5\nq1\td1\t1e1\nq2\td2\t-3\n"))
        assert suite.candidates is not None
        assert [each.score for each in (*suite.candidates["q1"], *suite.candidates["q2"])] == [0.5, 10.0, -3.0]

    def test_a_trec_run_is_read_where_it_is_named(self, given: Callable[..., Path]) -> None:
        """Six columns between blanks; rank and tag play no part."""
        lists = LISTS + 'format = "trec-run"\n'
        assert ids(given("q1 Q0 d2 9 0.5 x\nq1 Q0 d1 1 0.25 x\nq2 Q0 d2 1 7 x\n", lists=lists)) == {
            "q1": ["d2", "d1"], "q2": ["d2"],
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("text", "line", "said"),
        [
            ("q1 d1\n", 1, "1 tab-separated columns"),
            ("q1\td1\t1\t2\n", 1, "4 tab-separated columns"),
            (PLAIN + "q2\td1\t3\n", 4, "3 columns, where those before have 2"),
            ("q1\td1\tbest\n", 1, "the score 'best'"),
            ("q1\td1\t1e999\n", 1, "the score '1e999'"),
            ("q1\td1\tnan\n", 1, "the score 'nan'"),
            ("q1\t \n", 1, "a blank ID"),
            (PLAIN + "q1\td2\n", 4, "'d2' stands twice for query 'q1' (first at line 1)"),
        ],
    )
    def test_what_cannot_be_read_is_refused_with_its_line(
        self, given: Callable[..., Path], text: str, line: int, said: str
    ) -> None:
        error = refused(given(text))
        assert error.subject.endswith(f"candidates.tsv line {line}")
        assert said in error.found

    def test_a_file_that_is_not_there_is_not_found(self, given: Callable[..., Path]) -> None:
        with pytest.raises(NotFound, match=r"candidates\.tsv"):
            load(given(None))

    def test_a_path_that_is_absolute_is_refused(self, given: Callable[..., Path]) -> None:
        assert "absolute" in refused(given(lists='[candidates]\npath = "/candidates.tsv"\n')).found


class TestWhatIsNotThere:
    TEXT = PLAIN + "q2\td9\nq9\td1\n"

    def test_it_is_refused_counted_and_named(self, given: Callable[..., Path]) -> None:
        error = refused(given(self.TEXT))
        assert error.subject.endswith("candidates.tsv line 4")
        assert "2 candidates name what isn't there: document 'd9', query 'q9'" in error.found
        assert 'dangling = "drop"' in error.mend

    def test_dropped_it_is_counted(self, given: Callable[..., Path]) -> None:
        """Under the same key as judgements of what isn't there."""
        folder = given(self.TEXT, cases='[cases]\ndangling = "drop"\n')
        suite = load(folder)
        assert ids(folder) == {"q1": ["d2", "d1"], "q2": ["d2"]}
        assert suite.counts.candidates_dropped == 2
        assert any("2 candidates" in warning for warning in suite.warnings)

    def test_a_case_without_candidates_is_refused(self, given: Callable[..., Path]) -> None:
        """Nothing could be ranked for it, and a release would be blamed."""
        assert "1 queries without a candidate: 'q2'" in refused(given("q1\td1\n")).found

    def test_candidates_of_a_query_that_was_dropped_go_with_it(self, given: Callable[..., Path]) -> None:
        """They are no strangers: their query is in the file."""
        queries = [{"_id": name, "text": "x"} for name in ("q1", "q2", "unjudged")]
        folder = given(PLAIN + "unjudged\td1\n", queries=queries, cases='[cases]\nunjudged = "drop"\n')
        assert set(ids(folder)) == {"q1", "q2"}


class TestTask:
    def test_reranking_needs_candidates_and_nothing_else_has_them(self, write: Write) -> None:
        assert "without [candidates]" in refused(write(head=RERANKING)).found
        error = refused(write(cases=LISTS))
        assert "[candidates] of a retrieval suite" in error.found

    def test_relevant_documents_that_are_no_candidates_are_warned_of(self, given: Callable[..., Path]) -> None:
        """Of two, one cannot be found by any order."""
        warnings = load(given("q1\td2\nq2\td2\n")).warnings
        assert any("1 of 2 relevant documents are no candidates, in 1 cases: 'q1'" in each for each in warnings)


class TestLock:
    def frozen(self, folder: Path, members: Members) -> Path:
        write_lock(freeze(load(folder), members), folder)
        return folder

    def test_it_holds_every_list(self, given: Callable[..., Path], members: Members) -> None:
        """By case, in order; beside the digest of their file."""
        frozen = open_frozen(self.frozen(given(), members))
        assert frozen.lock.candidates == {"q1": ("d2", "d1"), "q2": ("d2",)}
        assert "candidates.tsv" in frozen.lock.files

    def test_a_changed_list_is_traced_to_its_case(self, given: Callable[..., Path], members: Members) -> None:
        folder = self.frozen(given(), members)
        (folder / "candidates.tsv").write_text(PLAIN + "q2\td1\n")
        with pytest.raises(Tampered, match=r"candidates\.tsv changed; 1 cases changed \('q2'\)"):
            open_frozen(folder)

    def test_candidates_are_data_and_whether_they_are_shared_is_policy(
        self, given: Callable[..., Path], members: Members
    ) -> None:
        """Another list makes other outputs; who must share one does not."""
        first = freeze(load(given()), members)
        other = freeze(load(given(PLAIN + "q2\td1\n")), members)
        own = freeze(load(given(rest='[ranking]\ncandidates = "own"\n' + METRICS + RULE)), members)
        assert first.data_digest != other.data_digest
        assert first.data_digest == own.data_digest and first.policy_digest != own.policy_digest
