"""Freezing fixes data and policy, and anything that changes afterwards is named."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.errors import HarnessError, Misconfigured, NotFound, Stopped, Tampered
from harness.identity import canonical_json, digest
from harness.suite import freeze as freezing
from harness.suite.case import Case
from harness.suite.freeze import check_members, freeze, open_frozen, report
from harness.suite.load import load
from harness.suite.lock import LOCK, Lock, parse_lock, read_lock, write_lock

from .conftest import CORPUS, METRICS, QRELS, QUERIES, RULE, Write

Members = Callable[[Sequence[Case], str], list[str]]
SLICE = '[[slices]]\nname = "typo"\nwhere = "kind = \'typo\'"\nmin_support = 1\n'
REST = METRICS + RULE + SLICE


@pytest.fixture
def frozen(write: Write, members: Members) -> Path:
    """The small suite with one slice, frozen."""
    folder = write(rest=REST)
    write_lock(freeze(load(folder), members), folder)
    return folder


def tampered(folder: Path) -> Tampered:
    with pytest.raises(Tampered) as caught:
        open_frozen(folder)
    assert caught.value.exit_code == 4
    return caught.value


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


class TestLock:
    def test_it_holds_what_the_contract_lists(self, frozen: Path) -> None:
        """Files, definition, cases, slices, grades, policies, what each role may tune, and the scorers."""
        lock = json.loads((frozen / LOCK).read_bytes())
        assert lock["schema"] == "harness.suite-lock.v1"
        assert lock["definition"]["rules"][0]["id"] == "headline"
        assert set(lock["files"]) == {"corpus.jsonl", "queries.jsonl", "qrels/test.tsv"}
        assert lock["case_ids"] == ["q1", "q2"]
        assert lock["roles"] == ["promotion", "promotion"]
        assert lock["groups"] == ["q1", "q2"]
        assert all(len(each) == 16 for each in lock["case_digests"])
        assert lock["slices"] == {"typo": ["q2"]}
        assert (lock["grades"], lock["top_grade"], lock["documents"]) == ([0, 1, 2], 2, 2)
        assert lock["tunes"]["promotion"] == []
        assert "threshold" in lock["tunes"]["calibration"]
        assert lock["scorers"] == {"ranking": "1"}
        assert (lock["label_schema"], lock["window_parents"]) == (None, {})

    def test_freezing_twice_gives_the_same_bytes(self, frozen: Path, members: Members) -> None:
        """Same suite, same lock; also where the folder has another name."""
        before = (frozen / LOCK).read_bytes()
        write_lock(freeze(load(frozen), members), frozen)
        assert (frozen / LOCK).read_bytes() == before
        moved = frozen.rename(frozen.parent / "moved")
        assert freeze(load(moved), members).to_json() == before

    def test_it_is_canonical_json_and_reads_back(self, frozen: Path) -> None:
        """The file is canonical, its digest is that of the rest, and parsing gives an equal lock."""
        data = (frozen / LOCK).read_bytes()
        record = json.loads(data)
        assert data == canonical_json(record) + b"\n"
        own = record.pop("digest")
        lock = parse_lock(data, "the lock")
        assert lock.digest == own == digest(record)
        assert lock.to_json() == data

    def test_nothing_is_left_beside_it(self, frozen: Path) -> None:
        """It is written beside and renamed."""
        assert {path.name for path in frozen.iterdir()} == {
            "corpus.jsonl", "queries.jsonl", "qrels", "suite.toml", LOCK,
        }  # fmt: skip

    def test_what_cannot_be_written_stops_without_a_trace(self, frozen: Path) -> None:
        """No folder, or something else in the lock's place; no part of the lock stays behind."""
        lock = open_frozen(frozen).lock
        with pytest.raises(Stopped):
            write_lock(lock, frozen / "corpus.jsonl")
        (frozen / LOCK).unlink()
        (frozen / LOCK).mkdir()
        with pytest.raises(Stopped):
            write_lock(lock, frozen)
        assert {path.name for path in frozen.glob(f"*{LOCK}*")} == {LOCK}

    def test_data_and_policy_have_digests_apart(self, write: Write, members: Members) -> None:
        """A margin moves the policy, a judgement the data, a budget or gap never the data; how rankings are cut, both.

        Depth, ties and grid change outputs and are a choice: were they data alone, changing one would be a new start.
        """

        def lock(**changes: object) -> Lock:
            return freeze(load(write(**{"rest": REST, **changes})), members)

        before = lock()
        margin = lock(rest=REST.replace("0.02", "0.03"))
        grade = lock(qrels=QRELS.replace("d1\t2", "d1\t1"))
        depth, ties, grid, own = (
            lock(rest=f"{REST}[ranking]\n{line}\n")
            for line in ("depth = 50", 'ties = "trec"', "grid = 1e-4", 'self_match = "drop"')
        )
        gap = lock(rest=REST + "[ranking]\nmax_judged_gap = 0.1\n")
        budget = lock(rest=REST + "[budget]\npromotion_reads = 3\n")
        slices = lock(rest=REST.replace("'typo'", "'plain'"))
        member = lock(queries=[{**QUERIES[0], "kind": "typo"}, QUERIES[1]])
        assert member.policy_digest != before.policy_digest
        assert member.slices == {"typo": ("q1", "q2")}
        changed = (margin, grade, gap, budget, slices, depth, ties, grid, own)
        data = [each.data_digest == before.data_digest for each in changed]
        policy = [each.policy_digest == before.policy_digest for each in changed]
        assert data == [True, False, True, True, True, False, False, False, False]
        assert policy == [False, True, False, False, False, False, False, False, False]
        assert len({each.digest for each in (before, *changed)}) == 10


class TestRefusals:
    def refused(self, folder: Path, members: Members) -> Misconfigured:
        with pytest.raises(Misconfigured) as caught:
            freeze(load(folder), members)
        return caught.value

    def test_a_suite_without_rules(self, write: Write, members: Members) -> None:
        """The policy's own demands are checked here."""
        assert "no rule" in self.refused(write(rest=METRICS), members).found

    def test_no_promotion_case(self, write: Write, members: Members) -> None:
        """The gate would have nothing to decide over."""
        queries = [{**row, "split": "calibration"} for row in QUERIES]
        assert "promotion" in self.refused(write(queries=queries, cases='[cases]\nrole = "split"\n'), members).found

    def test_an_empty_slice(self, write: Write, members: Members) -> None:
        """A slice that holds no case, or none of the promotion role."""
        error = self.refused(write(rest=REST.replace("'typo'", "'other'")), members)
        assert "'typo' holds no case" in error.found
        assert "suite.toml line" in error.subject
        queries = [{**QUERIES[0], "split": "promotion"}, {**QUERIES[1], "split": "calibration"}]
        error = self.refused(write(rest=REST, queries=queries, cases='[cases]\nrole = "split"\n'), members)
        assert "1 cases of other roles" in error.found


class TestReport:
    def test_it_counts_cases_roles_and_support(self, write: Write, members: Members) -> None:
        """Slices count promotion cases and their groups."""
        queries = [
            {
                "_id": f"q{i}",
                "text": f"t{i}",
                "kind": "typo",
                "article": i % 3,
                "split": "promotion" if i % 3 else "train",
            }
            for i in range(9)
        ]
        folder = write(
            rest=REST.replace("min_support = 1", "min_support = 3"), queries=queries,
            qrels="".join(f"q{i}\td1\t1\n" for i in range(9)), cases='[cases]\nrole = "split"\ngroup = "article"\n',
        )  # fmt: skip
        suite = load(folder)
        lock = freeze(suite, members)
        found = report(suite, lock)
        assert (found.suite, found.digest, found.cases) == ("small", lock.digest, 9)
        assert found.roles == {"train": 3, "promotion": 6}
        assert (found.slices["typo"].cases, found.slices["typo"].groups) == (6, 2)
        assert any("2 promotion groups, fewer than its min_support of 3" in warning for warning in found.warnings)

    def test_enough_support_is_not_warned_of(self, write: Write, members: Members) -> None:
        """At min_support exactly, nothing is said."""
        suite = load(write(rest=REST))
        assert report(suite, freeze(suite, members)).warnings == ()

    def test_a_policy_of_guards_alone_is_warned_of(self, write: Write, members: Members) -> None:
        """It holds, but says that nothing is demanded."""
        suite = load(write(rest=METRICS + SLICE + '[guards]\nmetrics = ["RR@10"]\n'))
        assert any("no headline" in warning for warning in report(suite, freeze(suite, members)).warnings)


class TestOpening:
    def test_what_was_frozen_opens(self, frozen: Path, members: Members) -> None:
        """Untouched, and with the files beside it that a suite gathers."""
        before = open_frozen(frozen)
        for name in ("README.md", "exposures.jsonl", "waivers.toml", "qrels/notes.txt"):
            (frozen / name).write_text("more\n")
        after = open_frozen(frozen)
        assert after == before
        check_members(after, members)

    def test_without_a_lock_it_says_freeze(self, write: Write) -> None:
        """Exit 2, and the command to run."""
        folder = write()
        with pytest.raises(NotFound) as caught:
            open_frozen(folder)
        assert caught.value.exit_code == 2
        assert f"harness freeze {folder}" in caught.value.mend

    @pytest.mark.parametrize(
        ("name", "old", "new", "said"),
        [
            ("qrels/test.tsv", "q1\td1\t2", "q1\td1\t1", "1 cases changed ('q1')"),
            ("qrels/test.tsv", "q2\td1\t0\n", "q2\td1\t0\nq1\td2\t1\n", "1 cases changed ('q1')"),
            ("queries.jsonl", "money back", "money gone", "1 cases changed ('q1')"),
            ("queries.jsonl", "plain", "odd", "1 cases changed ('q1')"),
            ("corpus.jsonl", "Refunds", "Returns", "2 cases changed ('q1', 'q2')"),
            ("corpus.jsonl", "Shipping", "Shipping!", "1 cases changed ('q2')"),
            ("corpus.jsonl", '"text": "Shipping"', '"text":  "Shipping"', "no case, judgement or judged document"),
            ("queries.jsonl", '{"_id": "q1"', '{"_id": "q3"', "no longer read"),
            ("corpus.jsonl", "{", "", "no longer read"),
        ],
    )
    def test_a_changed_file_is_traced_to_cases(self, frozen: Path, name: str, old: str, new: str, said: str) -> None:
        """File and cases are named, or that the file no longer reads."""
        replaced(frozen / name, old, new)
        found = tampered(frozen).found
        assert f"{name} changed" in found
        assert said in found

    def test_added_and_removed_cases_are_told_apart(self, frozen: Path) -> None:
        """A renamed case is one removed and one added."""
        replaced(frozen / "queries.jsonl", '"q1"', '"q3"')
        replaced(frozen / "qrels" / "test.tsv", "q1\t", "q3\t")
        found = tampered(frozen).found
        assert "1 cases added ('q3')" in found
        assert "1 cases removed ('q1')" in found

    def test_a_removed_file_is_named(self, frozen: Path) -> None:
        """A file that is gone is tampering, not a missing file."""
        (frozen / "corpus.jsonl").unlink()
        assert "corpus.jsonl is gone" in tampered(frozen).found
        (frozen / "corpus.jsonl").mkdir()
        assert "corpus.jsonl can't be read" in tampered(frozen).found

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("0.02", "0.05", "rules[1].margin 0.02 → 0.05"),
            ("kind = 'typo'", "kind = 'plain'", "slices[1].where"),
            ("min_support = 1", "min_support = 2", "slices[1].min_support 1 → 2"),
            ('path = "."', 'path = "./."', "source.path"),
            ('report = ["nDCG@10", "RR@10"]', 'report = ["nDCG@10"]', "metrics.report"),
        ],
    )
    def test_a_changed_policy_is_named(self, frozen: Path, old: str, new: str, said: str) -> None:
        """Every changed key with both values."""
        replaced(frozen / "suite.toml", old, new)
        error = tampered(frozen)
        assert said in error.found
        assert "suite.toml" in error.subject

    def test_a_comment_or_a_default_written_out_is_no_change(self, frozen: Path) -> None:
        """The definition counts, not its spelling."""
        replaced(frozen / "suite.toml", "[metrics]", "# as agreed\n[ranking]\ndepth = 100\n[metrics]")
        open_frozen(frozen)

    def test_a_second_file_of_judgements_is_refused(self, frozen: Path) -> None:
        """It would be ambiguous which was frozen."""
        (frozen / "qrels" / "more.tsv").write_text("q1\td2\t1\n")
        with pytest.raises(HarnessError, match=r"more\.tsv"):
            open_frozen(frozen)

    @pytest.mark.parametrize(
        ("old", "new"),
        [('"typo":["q2"]', '"typo":["q1"]'), ('"top_grade":2', '"top_grade":3'), ("}\n", "\n"), ('"files"', '"fils"')],
    )
    def test_an_edited_lock_is_found(self, frozen: Path, old: str, new: str) -> None:
        """Its own digest, or its schema, no longer fits."""
        replaced(frozen / LOCK, old, new)
        assert LOCK in tampered(frozen).subject

    def test_a_lock_of_other_cases_is_found(self, frozen: Path) -> None:
        """Also when its own digest was made to fit."""
        for key, value in (("groups", ["q1", "q1"]), ("roles", ["train", "promotion"]), ("groups", ["q1"])):
            record = json.loads((frozen / LOCK).read_bytes())
            original = (frozen / LOCK).read_bytes()
            record.pop("digest")
            record[key] = value
            (frozen / LOCK).write_bytes(canonical_json({**record, "digest": digest(record)}) + b"\n")
            tampered(frozen)
            (frozen / LOCK).write_bytes(original)

    def test_a_condition_that_picks_other_cases_now_is_found(self, frozen: Path, members: Members) -> None:
        """The SQL engine may have changed where the suite did not."""
        opened = open_frozen(frozen)
        check_members(opened, members)
        with pytest.raises(Tampered, match="'typo'"):
            check_members(opened, lambda cases, where: [case.id for case in cases])

    def test_other_metrics_ask_for_freezing_anew(self, frozen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing was tampered with: the mend is to freeze again."""
        monkeypatch.setitem(freezing.VERSIONS, "ranking", "2")
        with pytest.raises(Misconfigured, match="freeze"):
            open_frozen(frozen)


class TestCaseDigest:
    def test_the_order_of_lines_does_not_enter(self, write: Write, members: Members) -> None:
        """Judgements and documents in another order give the same digests of cases."""
        before = freeze(load(write(rest=REST)), members).case_digests
        header, *rows = QRELS.splitlines(keepends=True)
        folder = write(rest=REST, qrels=header + "".join(reversed(rows)), corpus=list(reversed(CORPUS)))
        assert freeze(load(folder), members).case_digests == before

    def test_an_unjudged_document_does_not_enter(self, write: Write, members: Members) -> None:
        """It changes the file's digest and no case's."""
        before = freeze(load(write(rest=REST)), members)
        after = freeze(load(write(rest=REST, corpus=[*CORPUS, {"_id": "d3", "text": "more"}])), members)
        assert after.case_digests == before.case_digests
        assert after.data_digest != before.data_digest


class TestLater:
    def test_a_key_that_came_later_changes_no_digest(self, frozen: Path) -> None:
        """A lock that was written before a key was known reads with its default, under the digests that it had."""
        record = json.loads((frozen / LOCK).read_text())
        before = read_lock(frozen)
        del record["definition"]["metrics"]["policy"]["reading"], record["definition"]["ranking"]["candidates"]
        del record["digest"]
        older = canonical_json({**record, "digest": digest(record)})
        lock = parse_lock(older, "an older lock")
        assert lock.definition == before.definition
        assert lock.digest == digest(record) != before.digest
        assert lock.data_digest == before.data_digest
        assert parse_lock(lock.to_json(), "again").policy_digest == lock.policy_digest

    def test_what_was_changed_by_hand_is_still_seen(self, frozen: Path) -> None:
        text = (frozen / LOCK).read_text()
        with pytest.raises(Tampered):
            parse_lock(text.replace('"depth":100', '"depth":101').encode(), "edited")
