"""Each cause on a case of which it is seen, and on a like one of which it is not; the store is written by hand."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from harness.output.cause import Cause
from harness.store import write
from harness.store.cause import cause_counts, causes
from harness.store.connection import Connection, Store

RUN, SUITE, CASE = "ab12", "s-digest", "q"
RELEASE = {"candidate": "new", "parent": "old"}
UNEXPLAINED = ["unexplained"]


class Scene:
    """One run in which the promotion case `q` went from right to wrong. Nothing else of it is known until it is put
    there; what a side did is the same on both until a test says otherwise.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        texts = {name: ["x"] for name in ("suite", "data_digest", "policy_digest", "lock")}
        write.append(connection, "suites", {"suite_digest": SUITE}, texts)
        self.case("promotion", "how do I pay")
        key = {"run": RUN, "suite": "s", "suite_digest": SUITE, "suite_place": "suites/s", "version": "1"}
        at = pa.array([0], pa.timestamp("us"))
        write.append(connection, "runs", key, {"candidate": ["new"], "parent": ["old"], "updated_at": at})
        self.put("transitions", criterion="accuracy", case_id=CASE, transition="parent-only")

    def _put(self, table: str, values: dict[str, object]) -> None:
        write.append(self.connection, table, {}, {name: pa.array([value]) for name, value in values.items()})

    def put(self, table: str, **values: object) -> None:
        self._put(table, {"run": RUN, **values})

    def case(self, role: str, text: str) -> None:
        write.remove(self.connection, "cases", {"suite_digest": SUITE})
        self._put("cases", {
            "suite_digest": SUITE, "position": 0, "case_id": CASE, "role": role, "case_group": "g", "answerable": True,
            "text": text,
        })  # fmt: skip

    def output(
        self, side: str, *, status: str = "ok", broken: bool = False, digest: str = "t", lost: int | None = 0
    ) -> None:
        self.put(
            "outputs", side=side, release=RELEASE[side], case_id=CASE, status=status, reason="", non_finite=broken,
            input_digest=digest, tokens_kept=None if lost is None else 8, tokens_lost=lost, retrieved=0, crossing=0,
        )  # fmt: skip

    def outputs(self) -> None:
        self.output("parent")
        self.output("candidate")

    def relevant(self, document: str = "d1", grade: int = 1) -> None:
        self._put("judgements", {"suite_digest": SUITE, "case_id": CASE, "document_id": document, "grade": grade})

    def ranked(self, side: str, **scores: float) -> None:
        for position, (document, score) in enumerate(scores.items(), start=1):
            self.put(
                "rankings", side=side, release=RELEASE[side], case_id=CASE, position=position, document_id=document,
                score=score,
            )  # fmt: skip

    def given(self, side: str, *documents: str, lost: int | None = None) -> None:
        self.put("candidate_sets", side=side, digest="c", cases=1, pairs=len(documents))
        for position, document in enumerate(documents, start=1):
            self.put(
                "candidates", side=side, case_id=CASE, position=position, document_id=document, query_tokens_lost=lost,
                document_tokens_lost=lost,
            )  # fmt: skip

    def cut(self, side: str, document: str, lost: int) -> None:
        self.put("cut_documents", side=side, document_id=document, tokens_kept=8, tokens_lost=lost)

    def gold(self, **values: object) -> None:
        self._put("golds", {"suite_digest": SUITE, "case_id": CASE, "inputs": "{}", **values})

    def said(self, side: str, prediction: str | None, flags: Sequence[str] = (), **values: object) -> None:
        key = {"run": RUN, "side": side, "release": RELEASE[side], "case_id": CASE}
        write.append(self.connection, "predictions", key, {
            "prediction": pa.array([prediction], pa.string()),
            "flags": pa.array([list(flags)], pa.list_(pa.string())),
        })  # fmt: skip
        if values:
            self.put("task_outputs", side=side, release=RELEASE[side], case_id=CASE, **values)

    def labels(self, side: str, *names: str) -> None:
        for position, name in enumerate(names, start=1):
            self.put("output_labels", side=side, position=position, label=name, own_name=name)

    def prompts(self, side: str, part: str = "", **texts: str) -> None:
        for name, prompt in texts.items():
            self.put("prompts", side=side, part=part, texts=name, prompt=prompt)

    def metric(self, position: int, name: str, parent: float, candidate: float, *, followed: bool) -> None:
        self.put("metrics", position=position, metric=name, form="mean", higher_is_better=True, followed=followed)
        for side, value in (("parent", parent), ("candidate", candidate)):
            self.put(
                "case_metrics", side=side, release=RELEASE[side], metric=name, case_id=CASE, value=value,
                status="scored",
            )  # fmt: skip

    def found(self) -> list[str]:
        return [each.cause for each in causes(self.connection, RUN, CASE)]


@pytest.fixture
def scene(empty: Store) -> Iterator[Scene]:
    with empty.writing() as connection:
        yield Scene(connection)


class TestUnexplained:
    def test_a_case_of_which_nothing_is_seen(self, scene: Scene) -> None:
        scene.outputs()
        assert scene.found() == UNEXPLAINED

    def test_not_beside_another_cause(self, scene: Scene) -> None:
        scene.output("parent")
        scene.output("candidate", lost=3)
        assert scene.found() == ["truncated"]

    def test_a_case_that_did_not_get_worse_has_no_cause(self, scene: Scene) -> None:
        scene.outputs()
        write.update(scene.connection, "transitions", {"run": RUN}, {"transition": "both-right"})
        assert scene.found() == []

    def test_counted_as_a_class_of_its_own(self, scene: Scene) -> None:
        scene.outputs()
        assert [(each.slice, each.cause, each.cases) for each in cause_counts(scene.connection, RUN)] == [
            ("all", "unexplained", 1)
        ]


class TestWithoutOutput:
    @pytest.mark.parametrize(("status", "broken", "named"), [
        ("failed", True, ["non-finite"]), ("failed", False, ["no-output"]), ("missing", False, ["no-output"]),
    ])  # fmt: skip
    def test_by_why_there_is_none(self, scene: Scene, status: str, broken: bool, named: list[str]) -> None:
        scene.output("parent")
        scene.output("candidate", status=status, broken=broken)
        assert scene.found() == named

    def test_not_of_the_parents_failure(self, scene: Scene) -> None:
        scene.output("parent", status="failed", broken=True)
        scene.output("candidate")
        assert scene.found() == UNEXPLAINED


class TestTruncated:
    @pytest.mark.parametrize(("parent", "candidate", "named"), [
        (0, 3, True), (2, 3, True), (3, 3, False), (3, 2, False), (None, 3, False), (0, None, False),
    ])  # fmt: skip
    def test_of_the_cases_own_text(self, scene: Scene, parent: int | None, candidate: int | None, named: bool) -> None:
        """Cut more than the parent's; of a side that does not tell, nothing is said."""
        scene.output("parent", lost=parent)
        scene.output("candidate", lost=candidate)
        assert scene.found() == (["truncated"] if named else UNEXPLAINED)

    @pytest.mark.parametrize(("document", "parent", "named"), [
        ("d1", 0, True), ("d1", 4, False), ("d2", 0, False),
    ])  # fmt: skip
    def test_of_a_relevant_document(self, scene: Scene, document: str, parent: int, named: bool) -> None:
        """Not where the parent cut as much, nor of a document that is not relevant."""
        scene.outputs()
        scene.relevant("d1")
        scene.cut("candidate", document, 4)
        if parent:
            scene.cut("parent", document, parent)
        assert scene.found() == (["truncated"] if named else UNEXPLAINED)

    def test_not_of_a_document_where_the_parent_does_not_tell(self, scene: Scene) -> None:
        scene.output("parent", lost=None)
        scene.output("candidate")
        scene.relevant("d1")
        scene.cut("candidate", "d1", 4)
        assert scene.found() == UNEXPLAINED

    @pytest.mark.parametrize(("parent", "named"), [(0, True), (4, False), (None, False)])
    def test_of_a_pair(self, scene: Scene, parent: int | None, named: bool) -> None:
        scene.outputs()
        scene.relevant("d1")
        scene.given("parent", "d1", lost=parent)
        scene.given("candidate", "d1", lost=4)
        assert scene.found() == (["truncated"] if named else UNEXPLAINED)

    @pytest.mark.parametrize(("flags", "named"), [(["short"], False), ([], True)])
    def test_of_tags_that_end_early(self, scene: Scene, flags: list[str], named: bool) -> None:
        scene.outputs()
        scene.said("parent", "x", flags)
        scene.said("candidate", "y", ["short"])
        assert scene.found() == (["truncated"] if named else UNEXPLAINED)


class TestCandidateRecall:
    @pytest.mark.parametrize(("parent", "candidate", "named"), [
        (["d1", "d2"], ["d2"], True), (["d2"], ["d2"], False), (["d1"], ["d1"], False), (["d2"], ["d1"], False),
    ])  # fmt: skip
    def test_a_relevant_document_that_the_parents_stage_was_given(
        self, scene: Scene, parent: list[str], candidate: list[str], named: bool
    ) -> None:
        scene.outputs()
        scene.relevant("d1")
        scene.given("parent", *parent)
        scene.given("candidate", *candidate)
        assert scene.found() == (["candidate-recall"] if named else UNEXPLAINED)

    @pytest.mark.parametrize("ranked", [True, False])
    def test_or_that_a_parent_of_one_stage_ranked(self, scene: Scene, ranked: bool) -> None:
        scene.outputs()
        scene.relevant("d1")
        scene.ranked("parent", **({"d1": 1.0} if ranked else {"d2": 1.0}))
        scene.given("candidate", "d2")
        assert scene.found() == (["candidate-recall"] if ranked else UNEXPLAINED)


class TestFollowed:
    """A case lost by the metric that the report follows cases by, wherever that stands among the suite's."""

    @pytest.mark.parametrize(("followed", "named"), [("first", []), ("second", UNEXPLAINED)])
    def test_by_that_metric_alone(self, scene: Scene, followed: str, named: list[str]) -> None:
        """It rose by the first and fell by the second."""
        scene.outputs()
        write.remove(scene.connection, "transitions", {"run": RUN})
        scene.metric(1, "first", 0.5, 1.0, followed=followed == "first")
        scene.metric(2, "second", 1.0, 0.5, followed=followed == "second")
        assert scene.found() == named


class TestCalibrationOnly:
    def labelled(self, scene: Scene, scores: list[float], parent: list[float], prediction: str = "B") -> None:
        scene.gold(label="A")
        scene.labels("parent", "C", "B", "A")
        scene.labels("candidate", "A", "B", "C")
        scene.said("parent", "A", scores=parent)
        scene.said("candidate", prediction, scores=scores)

    @pytest.mark.parametrize(("scores", "named"), [
        ([2.0, 1.0, -1.0], True), ([2.0, 1.00001, -1.0], True), ([20.0, 1.0, 0.5], True), ([2.0, 1.0, 1.00001], True),
        ([2.0, 1.0, 1.1], False), ([1.0, 2.0, -1.0], False),
    ])  # fmt: skip
    def test_labels_in_one_order(self, scene: Scene, scores: list[float], named: bool) -> None:
        """Whatever the order of columns and the distances; 1e-5 of the largest is no difference."""
        scene.outputs()
        self.labelled(scene, scores, [-1.0, 1.0, 2.0])
        assert scene.found() == (["calibration-only"] if named else UNEXPLAINED)

    @pytest.mark.parametrize(("third", "named"), [(1.00001, True), (0.9, True), (1.2, False)])
    def test_what_the_parent_ties_may_stand_in_either_order(self, scene: Scene, third: float, named: bool) -> None:
        """The parent has B and C alike: C a little below is one order, and what stands above A is another."""
        scene.outputs()
        self.labelled(scene, [1.1, 1.0, third], [1.0, 1.0, 2.0])
        assert scene.found() == (["calibration-only"] if named else UNEXPLAINED)

    @pytest.mark.parametrize(("digest", "named"), [("t", ["calibration-only"]), ("u", ["prompt-changed"])])
    def test_other_numbers_of_another_text_are_no_calibration(
        self, scene: Scene, digest: str, named: list[str]
    ) -> None:
        scene.output("parent", digest="t")
        scene.output("candidate", digest=digest)
        self.labelled(scene, [4.0, 1.0, -1.0], [-1.0, 1.0, 2.0])
        assert scene.found() == named

    def test_of_a_set_an_order_says_nothing(self, scene: Scene) -> None:
        """Each label is given or not by itself: A rose over its threshold, and stands where it stood."""
        scene.outputs()
        scene.gold(labels=["B"])
        for side, score in (("parent", 0.4), ("candidate", 0.9)):
            scene.labels(side, "A", "B")
            scene.said(side, "x", scores=[score, 0.95])
        assert scene.found() == UNEXPLAINED

    def test_other_labels_are_no_one_order(self, scene: Scene) -> None:
        scene.outputs()
        scene.labels("parent", "A", "B")
        scene.labels("candidate", "A", "Z")
        for side in RELEASE:
            scene.said(side, "A", scores=[2.0, 1.0])
        assert scene.found() == UNEXPLAINED

    @pytest.mark.parametrize(("value", "named"), [(50.0, True), (50.0004, True), (50.001, False), (-50.0, False)])
    def test_equal_values(self, scene: Scene, value: float, named: bool) -> None:
        """1e-5 of 50 is .0005."""
        scene.outputs()
        scene.said("parent", "1", value=50.0)
        scene.said("candidate", "2", value=value)
        assert scene.found() == (["calibration-only"] if named else UNEXPLAINED)

    @pytest.mark.parametrize(("answer", "null_score", "named"), [
        ("blue", 1.0, True), ("red", 1.0, False), ("blue", 2.0, False), ("blue", None, False),
    ])  # fmt: skip
    def test_equal_answers(self, scene: Scene, answer: str, null_score: float | None, named: bool) -> None:
        """The same words with the same scores, of which a threshold makes something else."""
        scene.outputs()
        scene.gold(answers=["blue"])
        scene.said("parent", "blue", answer="blue", score=3.0, null_score=1.0)
        scene.said("candidate", answer, answer=answer, score=3.0, null_score=null_score)
        assert scene.found() == (["calibration-only"] if named else UNEXPLAINED)

    def test_tags_are_no_numbers(self, scene: Scene) -> None:
        scene.outputs()
        for side in RELEASE:
            scene.said(side, "x", tags=["O"])
        assert scene.found() == UNEXPLAINED


class TestNoAnswer:
    @pytest.mark.parametrize(("parent", "candidate", "named"), [
        ("blue", None, True), (None, "red", True), ("blue", "red", False), (None, None, False),
    ])  # fmt: skip
    def test_one_side_alone_answers(self, scene: Scene, parent: str | None, candidate: str | None, named: bool) -> None:
        scene.outputs()
        scene.gold(answers=["blue"] if parent else [])
        for side, answer in (("parent", parent), ("candidate", candidate)):
            scene.said(side, answer or "(no answer)", answer=answer)
        assert scene.found() == (["no-answer"] if named else UNEXPLAINED)

    @pytest.mark.parametrize("parent", [(), ("abstained",)])
    def test_a_class_that_one_side_does_not_say(self, scene: Scene, parent: tuple[str, ...]) -> None:
        scene.outputs()
        scene.said("parent", "A", parent)
        scene.said("candidate", "A", ["abstained"])
        assert scene.found() == (UNEXPLAINED if parent else ["no-answer"])


class TestEntities:
    @pytest.mark.parametrize(("flag", "cause"), [("wrong-type", "type"), ("wrong-boundary", "label-boundary")])
    @pytest.mark.parametrize("also", [False, True])
    def test_an_error_that_the_parent_has_not(self, scene: Scene, flag: str, cause: str, also: bool) -> None:
        scene.outputs()
        scene.said("parent", "x", [flag] if also else [])
        scene.said("candidate", "y", [flag])
        assert scene.found() == (UNEXPLAINED if also else [cause])


class TestLabelBoundary:
    @pytest.mark.parametrize(("parent", "candidate", "named"), [
        ([], ["near-boundary"], True), (["near-boundary"], ["near-boundary"], False), ([], [], False),
        (["near-boundary"], [], False),
    ])  # fmt: skip
    def test_wrong_by_little_where_the_parent_is_not(
        self, scene: Scene, parent: list[str], candidate: list[str], named: bool
    ) -> None:
        scene.outputs()
        scene.said("parent", "A", parent)
        scene.said("candidate", "B", candidate)
        assert scene.found() == (["label-boundary"] if named else UNEXPLAINED)


class TestTied:
    @pytest.mark.parametrize(("other", "second", "named"), [
        ("d2", 1.0, True), ("d2", 0.5, False), ("also-relevant", 1.0, False),
    ])  # fmt: skip
    def test_a_relevant_document_with_one_that_is_not(
        self, scene: Scene, other: str, second: float, named: bool
    ) -> None:
        scene.outputs()
        scene.relevant("d1")
        scene.relevant("also-relevant")
        scene.ranked("candidate", **{"d1": 1.0, other: second})
        assert scene.found() == (["tied"] if named else UNEXPLAINED)

    def test_not_on_the_parents_side(self, scene: Scene) -> None:
        scene.outputs()
        scene.relevant("d1")
        scene.ranked("parent", d1=1.0, d2=1.0)
        scene.said("parent", "A", ["tied"])
        scene.said("candidate", "B")
        assert scene.found() == UNEXPLAINED

    def test_a_label_that_ties(self, scene: Scene) -> None:
        scene.outputs()
        scene.said("parent", "A")
        scene.said("candidate", "B", ["tied"])
        assert scene.found() == ["tied"]


class TestEncoding:
    @pytest.mark.parametrize(("text", "named"), [
        ("how do I pay \ufffd5", True), ("caf\u00c3\u00a9", True), ("it\u00e2\u20acs", True), ("a\x07b", True),
        ("caf\u00e9, \u00a35, na\u00efve \u4e2d\u6587", False), ("\u00c3o", False), ("a\tb\nc", False),
    ])  # fmt: skip
    def test_characters_that_no_one_wrote(self, scene: Scene, text: str, named: bool) -> None:
        scene.outputs()
        scene.case("promotion", text)
        assert scene.found() == (["encoding"] if named else UNEXPLAINED)


class TestPromptChanged:
    @pytest.mark.parametrize(("digest", "named"), [("u", True), ("t", False)])
    def test_the_cases_text_is_rendered_otherwise(self, scene: Scene, digest: str, named: bool) -> None:
        scene.output("parent", digest="t")
        scene.output("candidate", digest=digest)
        assert scene.found() == (["prompt-changed"] if named else UNEXPLAINED)

    @pytest.mark.parametrize(("document", "named"), [("passage: ", True), ("", False)])
    @pytest.mark.parametrize("part", ["", "retriever", "both/reranker"])
    def test_documents_have_another_prompt(self, scene: Scene, part: str, document: str, named: bool) -> None:
        """Also those of a release that this one is made of."""
        scene.outputs()
        scene.relevant("d1")
        scene.prompts("parent", part, query="", document="")
        scene.prompts("candidate", part, query="", document=document)
        assert scene.found() == (["prompt-changed"] if named else UNEXPLAINED)

    def test_a_query_that_one_part_reads_otherwise(self, scene: Scene) -> None:
        """What the reranker read, and so the digest, is the same; the retriever's query is not."""
        scene.outputs()
        scene.relevant("d1")
        for side, said in (("parent", ""), ("candidate", "query: ")):
            scene.prompts(side, "retriever", query=said)
            scene.prompts(side, "reranker", query="")
        assert causes(scene.connection, RUN, CASE) == (
            Cause("prompt-changed", "its text is put to retriever with another prompt"),
        )

    def test_parts_that_change_places(self, scene: Scene) -> None:
        """Each is held against its own counterpart."""
        scene.outputs()
        scene.relevant("d1")
        for side, first, second in (("parent", "a: ", "b: "), ("candidate", "b: ", "a: ")):
            scene.prompts(side, "retriever", document=first)
            scene.prompts(side, "reranker", document=second)
        assert scene.found() == ["prompt-changed"]

    @pytest.mark.parametrize(("first", "named"), [("", False), ("passage: ", True)])
    def test_a_stage_that_the_parent_has_not(self, scene: Scene, first: str, named: bool) -> None:
        """A second stage brings its own prompt; that of the one release is changed where no stage has it any more."""
        scene.output("parent", digest="t")
        scene.output("candidate", digest="u")
        scene.relevant("d1")
        scene.prompts("parent", document="")
        scene.prompts("candidate", "retriever", document=first)
        scene.prompts("candidate", "reranker", document="[D] ")
        assert scene.found() == (["prompt-changed"] if named else UNEXPLAINED)

    def test_nothing_of_a_side_that_does_not_tell(self, scene: Scene) -> None:
        scene.outputs()
        scene.relevant("d1")
        scene.prompts("candidate", document="passage: ")
        assert scene.found() == UNEXPLAINED


class TestOrder:
    def test_what_befell_the_case_stands_before_what_holds_of_all(self, scene: Scene) -> None:
        """All that hold are kept, and the case is counted once, under the first."""
        scene.case("promotion", "pay \ufffd")
        scene.output("parent", digest="t")
        scene.output("candidate", digest="u", lost=2)
        scene.relevant("d1")
        scene.ranked("candidate", d1=1.0, d2=1.0)
        assert scene.found() == ["truncated", "tied", "encoding", "prompt-changed"]
        assert [(each.cause, each.cases) for each in cause_counts(scene.connection, RUN)] == [("truncated", 1)]

    def test_another_role_is_never_told(self, scene: Scene) -> None:
        scene.case("calibration", "how do I pay")
        scene.output("parent")
        scene.output("candidate", status="missing")
        write.remove(scene.connection, "transitions", {"run": RUN})
        assert scene.found() == []


def test_a_cause_is_a_name_and_what_was_seen(scene: Scene) -> None:
    scene.output("parent", lost=1)
    scene.output("candidate", lost=3)
    assert causes(scene.connection, RUN, CASE) == (Cause("truncated", "2 more tokens of it are cut"),)
