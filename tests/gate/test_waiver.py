"""A waiver lets one finding pass, for a reason, until a date; one that does nothing is an error."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.errors import Misconfigured
from harness.gate.decide import conclude
from harness.gate.waiver import FILE, Waiver, apply, places, read
from harness.output.decision import Outcome, RuleResult

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
ENTRY = {
    "rule": '"headline"', "slice": '"all"', "reason": '"Known, ticket 7"', "approver": '"R. Lee"',
    "expires": "2026-12-31T00:00:00Z", "finding": f'"{"a" * 64}"',
}  # fmt: skip


def write(folder: Path, *entries: dict[str, str], schema: str = "harness.waivers.v1") -> None:
    tables = ["\n".join(f"{key} = {value}" for key, value in entry.items()) for entry in entries]
    (folder / FILE).write_text(f'schema = "{schema}"\n' + "".join(f"\n[[waivers]]\n{table}\n" for table in tables))


def waiver(**changes: object) -> Waiver:
    fields = {"rule": "headline", "slice": "all", "reason": "Known.", "approver": "R. Lee"}
    return Waiver.model_validate({**fields, "expires": NOW + timedelta(days=30), "finding": "a" * 64, **changes})


def failed(**changes: object) -> RuleResult:
    fields = {"id": "headline", "kind": "no-worse", "metric": "RR@10", "slice": "all", "outcome": Outcome.FAIL}
    return RuleResult(**{**fields, "reason": "worse", "critical": True, "finding": "a" * 64, **changes})


def waived(results: Sequence[RuleResult], waivers: Sequence[Waiver], *others: str) -> tuple[RuleResult, ...]:
    return apply(results, waivers, frozenset(others), [f"waivers.toml line {4 + i}" for i in range(len(waivers))])


class TestReading:
    def test_no_file_is_no_waiver(self, tmp_path: Path) -> None:
        """Most suites have none."""
        assert read(tmp_path, NOW) == ()

    def test_what_is_written(self, tmp_path: Path) -> None:
        """In its order."""
        write(tmp_path, ENTRY, {**ENTRY, "rule": '"guard:typos:RR@10"', "finding": f'"{"b" * 64}"'})
        found = read(tmp_path, NOW)
        assert [each.rule for each in found] == ["headline", "guard:typos:RR@10"]
        assert (found[0].approver, found[0].expires) == ("R. Lee", datetime(2026, 12, 31, tzinfo=UTC))

    @pytest.mark.parametrize(
        ("expires", "holds"),
        [
            ("2026-12-01T12:00:00Z", False), ("2026-12-01T12:00:01Z", True), ("2026-12-01T11:59:59Z", False),
            ("2026-12-01T13:30:00+02:00", False), ("2026-12-01T11:00:00-02:00", True),
        ],
    )  # fmt: skip
    def test_the_expiry_is_exclusive(self, tmp_path: Path, expires: str, holds: bool) -> None:
        """At that very instant it no longer holds; instants compare whatever their offset."""
        write(tmp_path, {**ENTRY, "expires": expires})
        if holds:
            assert len(read(tmp_path, NOW)) == 1
        else:
            with pytest.raises(Misconfigured, match="expired at 2026-12-01T1"):
                read(tmp_path, NOW)

    @pytest.mark.parametrize("expires", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
    def test_a_time_that_utc_has_no_year_for(self, tmp_path: Path, expires: str) -> None:
        """A date that cannot be compared is a mistake in the file, not a fault of ours."""
        write(tmp_path, {**ENTRY, "expires": expires})
        with pytest.raises(Misconfigured, match="headline"):
            read(tmp_path, NOW)

    def test_one_expired_among_others(self, tmp_path: Path) -> None:
        """It is an error by its own name, not left out."""
        write(tmp_path, ENTRY, {**ENTRY, "rule": '"old"', "expires": "2026-11-01T00:00:00Z"})
        with pytest.raises(Misconfigured, match="the waiver of old"):
            read(tmp_path, NOW)

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            *((key, blank) for key in ("rule", "slice", "reason", "approver") for blank in ('""', '"  "', '"\\t\\n"')),
            *((key, f'"{blank}"') for key in ("reason", "approver") for blank in ("\u200b", "\u3164", "\u2800", "—")),
            ("finding", '""'), ("finding", f'"{"a" * 63}"'), ("finding", f'"{"a" * 65}"'), ("finding", f'"{"A" * 64}"'),
            ("finding", f'"{"a" * 64}\\n"'), ("reason", "7"), ("expires", '"2026-12-31T00:00:00Z"'),
            ("expires", "2026-12-31"), ("expires", "2026-12-31T00:00:00"), ("expired", "2026-12-31T00:00:00Z"),
        ],
    )  # fmt: skip
    def test_a_blank_or_misspelt_field(self, tmp_path: Path, key: str, value: str) -> None:
        """Nothing said is no reason, a date without a zone is no instant, an unknown key is a misspelt one."""
        write(tmp_path, {**ENTRY, key: value})
        with pytest.raises(Misconfigured, match=FILE):
            read(tmp_path, NOW)

    @pytest.mark.parametrize("key", ENTRY)
    def test_a_field_left_out(self, tmp_path: Path, key: str) -> None:
        """All six are needed."""
        write(tmp_path, {name: value for name, value in ENTRY.items() if name != key})
        with pytest.raises(Misconfigured, match=key):
            read(tmp_path, NOW)

    def test_another_schema(self, tmp_path: Path) -> None:
        """Read as what it says it is, or not at all."""
        write(tmp_path, ENTRY, schema="harness.waivers.v2")
        with pytest.raises(Misconfigured):
            read(tmp_path, NOW)


class TestApplying:
    def test_a_waived_fail_is_waived_and_the_decision_passes(self) -> None:
        """Who, until when and why stand in its reason, what it found as well."""
        [found] = waived([failed()], [waiver()])
        assert found.outcome is Outcome.WAIVED
        assert found.reason == "waived by R. Lee until 2026-12-31: Known. (worse)"
        assert (found.finding, found.critical) == ("a" * 64, True)
        assert conclude([found]) is Outcome.PASS

    def test_the_others_stay_as_they_are(self) -> None:
        """In their order; one waived FAIL hides no other."""
        others = [failed(id="x", finding="b" * 64), failed(id="y", outcome=Outcome.UNDECIDED, finding=None)]
        found = waived([others[0], failed(), others[1]], [waiver()])
        assert [found[0], found[2]] == others
        assert conclude(found) is Outcome.FAIL

    @pytest.mark.parametrize(
        "changes",
        [{"finding": "b" * 64}, {"rule": "Headline"}, {"slice": "typos"}, {"rule": "guard:all:RR@10"}],
        ids=lambda each: next(iter(each)),
    )
    def test_one_that_matches_no_finding(self, changes: dict[str, str]) -> None:
        """Rule, slice and finding must all be those of the FAIL."""
        with pytest.raises(Misconfigured, match=r"waivers\.toml line 4: the waiver of"):
            waived([failed()], [waiver(**changes)])

    def test_a_misspelt_rule_is_told_the_right_one(self) -> None:
        """The finding says whose it is, also where another run has the same finding."""
        for others in ((), ("a" * 64,)):
            with pytest.raises(Misconfigured, match='Write rule = "headline" and slice = "all"'):
                waived([failed()], [waiver(rule="headlin")], *others)

    def test_an_error_names_the_line(self, tmp_path: Path) -> None:
        """Of the entry that is meant, the second of two."""
        write(tmp_path, ENTRY, {**ENTRY, "rule": '"old"', "expires": "2026-11-01T00:00:00Z"})
        with pytest.raises(Misconfigured, match=r"waivers\.toml line 16: the waiver of old"):
            read(tmp_path, NOW)
        write(tmp_path, ENTRY, {**ENTRY, "rule": '"old"'})
        assert [each.rpartition(" ")[2] for each in places(tmp_path, read(tmp_path, NOW))] == ["9", "17"]

    def test_one_for_the_finding_of_another_run(self) -> None:
        """A suite judges many candidates: it is no error and waives nothing here; one that no run found is."""
        other = waiver(finding="b" * 64)
        assert waived([failed()], [other], "b" * 64) == (failed(),)
        [found] = waived([failed()], [other, waiver()], "b" * 64)
        assert found.outcome is Outcome.WAIVED
        with pytest.raises(Misconfigured, match="b" * 16):
            waived([failed()], [other], "c" * 64)

    @pytest.mark.parametrize("outcome", [Outcome.PASS, Outcome.UNDECIDED])
    def test_only_a_fail_is_waived(self, outcome: Outcome) -> None:
        """What no longer fails needs no waiver, so it is an error to keep one; missing evidence can't be waived."""
        with pytest.raises(Misconfigured):
            waived([failed(outcome=outcome)], [waiver()])

    def test_two_for_one_finding(self) -> None:
        """The second meets nothing, also where the first names another slice."""
        for pair in ([waiver(), waiver()], [waiver(slice="typos"), waiver()], [waiver(), waiver(rule="x")]):
            with pytest.raises(Misconfigured):
                waived([failed()], pair)

    def test_each_finding_its_own(self) -> None:
        """The same rule over two slices."""
        results = [failed(), failed(slice="typos", finding="b" * 64)]
        found = waived(results, [waiver(slice="typos", finding="b" * 64), waiver()])
        assert [each.outcome for each in found] == [Outcome.WAIVED] * 2

    def test_no_waivers(self) -> None:
        """Change nothing."""
        assert waived([failed()], []) == (failed(),)

    def test_the_date_is_that_of_utc(self) -> None:
        """One in the morning in Berlin is still the day before."""
        expires = datetime.fromisoformat("2027-01-01T00:30:00+01:00")
        [found] = waived([failed()], [waiver(expires=expires)])
        assert "until 2026-12-31" in found.reason
