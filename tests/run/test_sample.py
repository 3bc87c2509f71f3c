"""Which vectors are looked at, and that no order of the data changes them."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from harness.output.judgement import Judgement
from harness.release.open import Release
from harness.run import sample
from harness.run.ranking import Cut
from harness.run.retrieve import Retrieval, retrieve
from harness.run.sample import VectorSample, chosen
from harness.suite.case import Suite
from tests.run.conftest import suite_of

JUDGED = (Judgement("q0", "d00", 1), Judgement("q0", "d08", 2), Judgement("q1", "d02", 1), Judgement("q2", "d01", 0))


def told(release: Release, suite: Suite) -> VectorSample | None:
    return retrieve({"it": Retrieval(release, Cut(5, "expected", False))}, suite, {}, 1e-6)["it"].sample


@pytest.fixture
def suite() -> Suite:
    return replace(suite_of(), judgements=JUDGED)


class TestChosen:
    def test_it_follows_the_ids_alone(self):
        ids = [f"d{i}" for i in range(50)]
        assert chosen(ids, 10) == chosen(ids[::-1], 10)
        assert chosen(ids, 10) == chosen(ids, 20)[:10]
        assert chosen(ids, 10) != sorted(ids)[:10]

    def test_of_few_all_are_taken(self):
        assert sorted(chosen(["b", "a"], 10)) == ["a", "b"]


class TestSample:
    def test_any_order_of_cases_and_documents_gives_the_same_bytes(
        self, releases: Callable[..., Release], suite: Suite
    ) -> None:
        one = told(releases("bi"), suite)
        turned = replace(suite, cases=suite.cases[::-1], documents=suite.documents[::-1], judgements=JUDGED[::-1])
        other = told(releases("bi"), turned)
        assert one is not None and other is not None
        for name in VectorSample.__dataclass_fields__:
            mine, yours = getattr(one, name), getattr(other, name)
            assert mine == yours if isinstance(mine, frozenset) else (mine == yours).all()

    def test_relevant_documents_are_there_though_chance_left_them_out(
        self, releases: Callable[..., Release], suite: Suite, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A document judged 0 is no reason to be there."""
        monkeypatch.setattr(sample, "DOCUMENTS", 2)
        found = told(releases("bi"), suite)
        assert found is not None
        drawn = set(chosen((each.id for each in suite.documents), 2))
        assert set(found.document_ids) == {"d00", "d08", "d02"} | drawn
        assert set(found.document_ids[found.by_chance]) == drawn
        assert found.relevant == {("q0", "d00"), ("q0", "d08"), ("q1", "d02")}

    def test_vectors_are_as_the_model_gave_them_and_so_are_the_norms_of_cases(
        self, releases: Callable[..., Release], suite: Suite
    ) -> None:
        """Of a model without a normalisation."""
        executed = retrieve({"it": Retrieval(releases("other"), Cut(5, "expected", False))}, suite, {}, 1e-6)["it"]
        assert executed.sample is not None
        exact = np.linalg.norm(executed.sample.queries.astype(np.float64), axis=1)
        kept = {each.case_id: each.norm for each in executed.outputs}
        assert [kept[case] for case in executed.sample.query_ids] == pytest.approx(exact.tolist())
        assert not np.allclose(exact, 1)
