"""The embedded suite: what its README says of its questions, groups and judgements, and that its lock holds."""

import json
import shutil
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import harness

SUITE = Path(__file__).parents[1] / "suites" / "help-center"
ROLES = ("development", "calibration", "promotion")

Row = dict[str, Any]


@cache
def lines(name: str) -> list[Row]:
    return [json.loads(line) for line in (SUITE / name).read_text(encoding="utf-8").splitlines()]


@cache
def judgements() -> dict[str, dict[str, int]]:
    """Grades by question and article."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (SUITE / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, article, grade = line.split("\t")
        found[question][article] = int(grade)
    return found


def of_kind(kind: str) -> list[Row]:
    return [row for row in lines("queries.jsonl") if row["kind"] == kind]


def groups(role: str) -> set[str]:
    return {row["article"] for row in lines("queries.jsonl") if row["role"] == role}


def best(question: Row) -> set[str]:
    """The articles that were judged to answer it."""
    return {article for article, grade in judgements()[question["_id"]].items() if grade == 2}


class TestSize:
    def test_it_is_as_large_as_its_readme_says(self) -> None:
        """The table of sizes, row by row."""
        rows, readme = lines("queries.jsonl"), (SUITE / "README.md").read_text(encoding="utf-8")
        assert f"There are {len(lines('corpus.jsonl'))} articles." in readme
        counts = [sum(row["role"] == role for row in rows) for role in ROLES]
        assert f"| questions | {' | '.join(map(str, counts))} | {len(rows)} |" in readme
        of_groups = [len(groups(role)) for role in ROLES]
        assert f"| groups | {' | '.join(map(str, of_groups))} | {sum(of_groups)} |" in readme
        for kind in {row["kind"] for row in rows}:
            counts = [sum(row["role"] == role for row in of_kind(kind)) for role in ROLES]
            assert f"| {kind} | {' | '.join(map(str, counts))} | {sum(counts)} |" in readme
        graded = [grade for each in judgements().values() for grade in each.values()]
        told = f"{len(graded):,} judgements: {graded.count(2)} of grade 2, {graded.count(1)} of grade 1"
        assert f"{told} and {graded.count(0):,} of grade 0" in readme

    def test_there_are_enough_to_decide_and_to_fit(self) -> None:
        sizes = {role: sum(row["role"] == role for row in lines("queries.jsonl")) for role in ROLES}
        assert len(lines("corpus.jsonl")) >= 130 and sum(sizes.values()) >= 360
        assert sizes["promotion"] >= 200 and len(groups("promotion")) >= 80
        assert sizes["calibration"] >= 110


class TestRoles:
    def test_a_group_has_one_role(self) -> None:
        assert sum(len(groups(role)) for role in ROLES) == len({row["article"] for row in lines("queries.jsonl")})

    def test_no_question_and_no_article_stands_there_twice(self) -> None:
        for name in ("queries.jsonl", "corpus.jsonl"):
            texts = [" ".join(row["text"].lower().split()) for row in lines(name)]
            assert len(set(texts)) == len(texts)


class TestJudgements:
    def test_a_question_has_an_answer_or_says_that_it_has_none(self) -> None:
        for row in lines("queries.jsonl"):
            assert bool(best(row)) is row["answerable"], row["_id"]
            assert row["answerable"] or not any(judgements()[row["_id"]].values()), row["_id"]

    def test_every_article_answers_some_question(self) -> None:
        answering = set[str]().union(*map(best, lines("queries.jsonl")))
        assert {row["_id"] for row in lines("corpus.jsonl")} == answering

    def test_each_question_names_the_group_of_an_article_that_answers_it(self) -> None:
        """Or of that family; a group is called by an article, a family by a name of its own."""
        names = {row["_id"] for row in lines("corpus.jsonl")}
        assert all(
            row["article"] in best(row)
            for row in lines("queries.jsonl")
            if row["answerable"] and row["article"] in names
        )


class TestKinds:
    def test_two_articles_are_needed_and_neither_belongs_to_another_role(self) -> None:
        roles = {row["article"]: row["role"] for row in lines("queries.jsonl")}
        for row in of_kind("two-articles"):
            assert len(best(row)) >= 2, row["_id"]
        main = [(row, article) for row in of_kind("two-articles") for article in best(row) if article in roles]
        assert [row["_id"] for row, article in main if roles[article] != row["role"]] == ["q350"]  # its third one

    def test_a_near_miss_has_an_article_that_was_judged_not_to_answer(self) -> None:
        """In the group of which it is, where others find their answer."""
        answered = {row["article"] for row in lines("queries.jsonl") if row["answerable"]}
        for row in of_kind("near-miss"):
            assert not row["answerable"] and row["article"] in answered
            assert judgements()[row["_id"]]

    def test_the_other_languages_are_there_in_each_role(self) -> None:
        for role in ROLES:
            rows = [row for row in of_kind("cross-language") if row["role"] == role]
            assert len({row["language"] for row in rows}) == 4

    def test_a_late_answer_says_where_it_stands(self) -> None:
        for row in lines("queries.jsonl"):
            depths = ("within-256", "beyond-256") if row["late"] else ("elsewhere",) if row["answerable"] else ("none",)
            assert row["depth"] in depths, row["_id"]
            assert row["words"] == len(row["text"].split()), row["_id"]


class TestLock:
    def test_freezing_it_again_gives_the_committed_lock(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        copy = tmp_path / "suites" / "help-center"
        shutil.copytree(SUITE, copy, ignore=shutil.ignore_patterns("exposures.jsonl"))
        monkeypatch.chdir(tmp_path)
        harness.check("help-center")
        harness.freeze("help-center")
        assert (copy / "suite.lock.json").read_bytes() == (SUITE / "suite.lock.json").read_bytes()
