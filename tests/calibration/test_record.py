import numpy as np
import pytest
from pydantic import ValidationError

from harness.calibration.record import CalibratorRecord, Family, FittedOn, Parameters, worth_telling

DIGEST = "0" * 64


def record(family: Family, *maps: Parameters, labels: tuple[str, ...] = ("no", "yes")) -> CalibratorRecord:
    return CalibratorRecord(
        family=family,
        objective="negative log-likelihood",
        maps=list(maps),
        labels=list(labels),
        score_type="logit",
        fitted_under=DIGEST,
        fitted_on=FittedOn(suite="s", data=DIGEST, n=1, case_digests=["a"]),
        software={},
    )


class TestAnEditedCalibrator:
    """What no fit gives is refused when it is read, before any score is taken through it."""

    @pytest.mark.parametrize(
        ("family", "maps"),
        [
            ("temperature", []),
            ("temperature", [Parameters(temperature=2.0), Parameters(temperature=2.0)]),
            ("platt", [Parameters(slope=1.0, intercept=0.0)]),
        ],
    )
    def test_has_one_map_for_all_labels_or_one_a_label(self, family: Family, maps: list[Parameters]):
        with pytest.raises(ValidationError, match="maps in place of"):
            record(family, *maps)

    @pytest.mark.parametrize(
        ("family", "map_"),
        [
            ("temperature", Parameters(temperature=-0.8)),
            ("temperature", Parameters(temperature=0.0)),
            ("temperature", Parameters(slope=1.0, intercept=0.0)),
            ("vector", Parameters(weights=[[1.0, 0.0]], bias=[0.0, 0.0])),
            ("matrix", Parameters(weights=[[1.0, 0.0], [0.0]], bias=[0.0, 0.0])),
            ("matrix", Parameters(weights=[[1.0, 0.0], [0.0, 1.0]], bias=[0.0])),
        ],
    )
    def test_of_classes_has_the_numbers_of_its_family(self, family: Family, map_: Parameters):
        with pytest.raises(ValidationError, match="no fit of"):
            record(family, map_)

    @pytest.mark.parametrize(
        ("family", "map_"),
        [
            ("platt", Parameters(slope=1.0)),
            ("platt", Parameters(slope=-1.0, intercept=0.0)),
            ("beta", Parameters(a=-1.0, b=1.0, c=0.0)),
            ("isotonic", Parameters(at=[], values=[])),
            ("isotonic", Parameters(at=[0.0, 1.0], values=[0.2])),
            ("isotonic", Parameters(at=[0.0, 1.0], values=[0.2, 1.5])),
            ("isotonic", Parameters(at=[1.0, 0.0], values=[0.2, 0.5])),
            ("histogram", Parameters(at=[0.0, 1.0], values=[0.2, 0.5])),
        ],
    )
    def test_of_one_score_has_the_numbers_of_its_family(self, family: Family, map_: Parameters):
        with pytest.raises(ValidationError, match="no fit of"):
            record(family, map_, labels=("yes",))

    def test_as_fits_give_it_is_read(self):
        record("temperature", Parameters(temperature=0.8))
        record("histogram", Parameters(at=[0.5], values=[0.2, 0.7]), labels=("yes",))
        record("histogram", Parameters(at=[], values=[0.2]), labels=("yes",))
        record("isotonic", Parameters(at=[0.5], values=[0.2]), labels=("yes",))


class TestWhatTheCasesDidNotDecide:
    def test_a_cut_that_tells_a_label_from_the_rest_is_told(self):
        """Platt's prior keeps its slope finite; of the other label a case is on the wrong side."""
        scores = np.array([[0.1, 0.1], [0.2, 0.9], [0.8, 0.8], [0.9, 0.2]])
        gold = np.array([[0, 0], [0, 0], [1, 1], [1, 1]])
        [told] = worth_telling("platt", ["refund", "card"], scores, gold)
        assert "refund" in told and "card" not in told and "prior" in told
        assert worth_telling("platt", ["card"], scores[:, 1:], gold[:, 1:]) == []
