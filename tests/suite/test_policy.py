"""What a suite may demand, and what may be frozen."""

from pathlib import Path

import pytest

from harness.errors import Misconfigured
from harness.suite.definition import SuiteDefinition
from harness.suite.demand import check_demands
from harness.suite.load import DEFINITION, read_definition
from harness.suite.slices import declare

from .conftest import HEAD, METRICS, RULE, Write

SLICE = """[[slices]]
name = "typo"
where = "kind = 'typo'"
"""


def refused(folder: Path) -> Misconfigured:
    with pytest.raises(Misconfigured) as caught:
        read_definition(folder)
    return caught.value


def unfreezable(definition: SuiteDefinition, folder: Path) -> Misconfigured:
    with pytest.raises(Misconfigured) as caught:
        demanded(definition, folder)
    return caught.value


def demanded(definition: SuiteDefinition, folder: Path) -> None:
    named = [(str(each.name), i, each) for i, each in enumerate(definition.slices)]
    check_demands(definition, folder / DEFINITION, [declare(*each) for each in named])


def line_of(folder: Path, text: str, nth: int = 1) -> str:
    lines = (folder / DEFINITION).read_text().split("\n")
    return f"line {[number for number, line in enumerate(lines, 1) if text in line][nth - 1]}"


class TestDefaults:
    def test_they_are_those_of_the_contract(self, write: Write) -> None:
        """What a suite leaves out is as documented."""
        definition = read_definition(write())
        assert definition.cases.model_dump() == {
            "role": None, "group": None, "window_parent": None, "unjudged": "refuse",
            "dangling": "refuse", "missing": "undecided",
        }  # fmt: skip
        assert definition.ranking.model_dump() == {
            "depth": 100, "ties": "expected", "self_match": "keep", "no_relevant": "not-applicable", "grid": 1e-6,
            "max_judged_gap": None, "candidates": "shared",
        }  # fmt: skip
        assert definition.metrics.policy.model_dump() == {
            "empty": "one", "absent": "leave-out", "division": None, "per_metric": {}, "scheme": "IOB2",
            "reading": "strict", "articles": "en", "punctuation": "ascii", "cjk": "word", "empty_answer": "as-written",
            "costs": {}, "clip": None, "boundary_gap": 0.1,
        }  # fmt: skip
        assert definition.uncertainty.model_dump() == {
            "method": "bca", "draws": 10_000, "level": 0.95, "seed": 20261201, "family": "holm",
        }  # fmt: skip
        assert definition.guards is None
        assert definition.budget.promotion_reads is None

    def test_every_metric_is_measured_once(self, write: Write) -> None:
        """Primary, reported, ruled and guarded metrics together, without repeats and in order of mention."""
        rules = RULE + RULE.replace("headline", "recall").replace("nDCG@10", "R@100")
        guards = '[guards]\nmetrics = ["P@5", "RR@10"]\nslices = ["all"]\n'
        assert read_definition(write(rest=METRICS + rules + guards)).metric_names == (
            "nDCG@10",
            "RR@10",
            "R@100",
            "P@5",
        )


class TestFormats:
    @pytest.mark.parametrize(("right", "other"), [("retrieval", "entity"), ("beir", "squad")])
    def test_a_format_is_of_a_corpus_or_of_cases(self, write: Write, right: str, other: str) -> None:
        """Cases by themselves have no BEIR form, a corpus none of questions with their text."""
        error = refused(write(head=HEAD.replace(f'"{right}"', f'"{other}"')))
        assert "for a suite of" in error.found

    @pytest.mark.parametrize(("format", "task"), [("squad", "classification"), ("conll", "answer")])
    def test_questions_and_columns_are_of_one_task(self, write: Write, format: str, task: str) -> None:
        folder = write(head=HEAD.replace("retrieval", task).replace("beir", format))
        error = refused(folder)
        assert error.subject.endswith(line_of(folder, "source")) and format not in error.expected

    def test_any_other_word_is_a_misspelling(self, write: Write) -> None:
        """A word that the contract doesn't have gets the nearest one that it has."""
        assert "'retrieval'" in refused(write(head=HEAD.replace('"retrieval"', '"retreival"'))).mend


class TestNames:
    @pytest.mark.parametrize("name", ["", ".hidden", "a/b", "a\\\\b", " a", "a:b", "a\\nb"])
    def test_a_suites_name_can_name_a_folder(self, write: Write, name: str) -> None:
        """Names that would leave the folder they are put in, or hide there, are refused."""
        assert "name" in refused(write(head=HEAD.replace('"small"', f'"{name}"'))).found

    def test_rules_and_slices_are_called_once(self, write: Write) -> None:
        """A second rule or slice of the same name is refused at the second's line."""
        folder = write(rest=METRICS + RULE + RULE)
        assert refused(folder).subject.endswith(line_of(folder, 'id = "headline"', 2))
        folder = write(rest=METRICS + SLICE + SLICE + RULE)
        assert refused(folder).subject.endswith(line_of(folder, 'name = "typo"', 2))

    def test_all_is_taken(self, write: Write) -> None:
        """No slice may be called as the whole is."""
        assert "'all'" in refused(write(rest=METRICS + RULE + SLICE.replace('"typo"', '"all"'))).found

    @pytest.mark.parametrize("taken", ["guard:all:RR@10", "always:failed", "always:", "guard:"])
    def test_ids_of_undeclared_rules_are_taken(self, write: Write, taken: str) -> None:
        """No rule may pose as a guard, or as what always holds: the other of that name would hide behind it."""
        assert taken in refused(write(rest=METRICS + RULE.replace('"headline"', f'"{taken}"'))).found

    @pytest.mark.parametrize("name", ["", " ", " x", "x ", "a\\nb", "a\\u0007", "\\u202e"])
    @pytest.mark.parametrize("part", ["slice", "rule"])
    def test_names_can_be_printed(self, write: Write, name: str, part: str) -> None:
        """On one line, with nothing that a reader can't see."""
        rule, piece = (RULE, SLICE.replace('"typo"', f'"{name}"', 1)) if part == "slice" else (
            RULE.replace('"headline"', f'"{name}"'), SLICE)  # fmt: skip
        assert "suite.toml line" in refused(write(rest=METRICS + rule + piece)).subject

    def test_a_metric_under_two_spellings_is_one(self, write: Write) -> None:
        """Guards that name one metric twice would count it twice in the family."""
        guards = '[guards]\nmetrics = ["RR@10", "mrr@10"]\nslices = ["all"]\n'
        assert "twice" in refused(write(rest=METRICS + RULE + guards)).found

    @pytest.mark.parametrize("where", ["rule", "guards"])
    def test_a_slice_that_is_not_there_gets_the_nearest(self, write: Write, where: str) -> None:
        """Rules and guards may only name declared slices."""
        rule = RULE + 'slice = "tipo"\n' if where == "rule" else RULE
        guards = '[guards]\nmetrics = ["RR@10"]\nslices = ["tipo"]\n' if where == "guards" else ""
        error = refused(write(rest=METRICS + SLICE + rule + guards))
        assert "'typo'" in error.mend


class TestMetrics:
    def test_a_metric_of_another_task_is_refused(self, write: Write) -> None:
        """Rankings have no accuracy."""
        folder = write(rest=METRICS + RULE.replace("nDCG@10", "accuracy"))
        error = refused(folder)
        assert "'accuracy', a metric of classification" in error.found
        assert error.subject.endswith(line_of(folder, "accuracy"))

    @pytest.mark.parametrize("where", ["primary", "report", "rule", "guards"])
    def test_a_name_that_is_none_is_refused_where_it_stands(self, write: Write, where: str) -> None:
        """Every place that names a metric is checked, and the line is that place's."""
        metrics, rule, guards = METRICS, RULE, '[guards]\nmetrics = ["RR@10"]\nslices = ["all"]\n'
        match where:
            case "primary":
                metrics = metrics.replace('primary = "nDCG@10"', 'primary = "nDGC@10"')
            case "report":
                metrics = metrics.replace('["nDCG@10"', '["nDGC@10"')
            case "rule":
                rule = rule.replace("nDCG@10", "nDGC@10")
            case "guards":
                guards = guards.replace("RR@10", "nDGC@10")
        folder = write(rest=metrics + rule + guards)
        error = refused(folder)
        assert error.subject.endswith(line_of(folder, "nDGC@10"))
        assert "nDCG@10" in error.mend

    def test_a_cutoff_above_depth_is_refused(self, write: Write) -> None:
        """What is not kept can't be measured; at depth it can."""
        assert read_definition(write(rest=METRICS.replace("RR@10", "RR@100") + RULE))
        error = refused(write(rest=METRICS.replace("RR@10", "RR@101") + RULE))
        assert "depth = 101" in error.mend

    def test_an_invariant_is_over_a_count(self, write: Write) -> None:
        """A count by name and exactly; metrics and broken numbers are refused."""
        count = '[[rules]]\nid = "none missing"\nkind = "invariant"\nmetric = "missing"\nvalue = 0\n'
        assert read_definition(write(rest=METRICS + count)).rules[0].value == 0
        assert "'missing'" in refused(write(rest=METRICS + count.replace('"missing"', '"mising"'))).mend
        assert "RR@10" in refused(write(rest=METRICS + count.replace('"missing"', '"RR@10"'))).found
        assert "0.5" in refused(write(rest=METRICS + count.replace("= 0", "= 0.5"))).found
        assert "-1" in refused(write(rest=METRICS + count.replace("= 0", "= -1"))).found

    @pytest.mark.parametrize(
        ("policy", "told"),
        [
            ("clip = [3.0, 1.0]", "a low, then a high"),
            ("clip = [0.0, inf]", "a finite number"),
            ("per_metric = { mea = { division = 'one' } }", "Did you mean 'mae'?"),
        ],
    )
    def test_a_policy_that_says_nothing_is_refused(self, write: Write, policy: str, told: str) -> None:
        """A range without room, and what holds of a metric that nobody measures."""
        head = HEAD.replace('"retrieval"', '"regression"').replace("beir", "jsonl")
        rest = (METRICS + RULE).replace("nDCG@10", "mae").replace("RR@10", "rmse")
        folder = write(head=head, rest=rest + f"[metrics.policy]\n{policy}\n")
        error = refused(folder)
        assert error.subject.endswith(line_of(folder, policy.split(" ")[0]))
        assert told in f"{error.found} {error.expected} {error.mend}"

    def test_numbers_must_fit_into_the_lock(self, write: Write) -> None:
        """A seed that JSON can't hold exactly is refused before anything is frozen."""
        assert "2**53" in refused(write(rest=METRICS + RULE + f"[uncertainty]\nseed = {2**60}\n")).expected


class TestDemands:
    def test_a_suite_without_rules_is_not_frozen(self, write: Write) -> None:
        """A gate that demands nothing would pass everything; guards count as rules."""
        folder = write(rest=METRICS)
        assert "no rule" in unfreezable(read_definition(folder), folder).found
        folder = write(rest=METRICS + '[guards]\nmetrics = ["RR@10"]\nslices = ["all"]\n')
        demanded(read_definition(folder), folder)

    def test_a_critical_slice_needs_a_headline_or_floor_rule(self, write: Write) -> None:
        """An invariant or a rule over another slice doesn't do."""
        critical = SLICE + "critical = true\n"
        invariant = '[[rules]]\nid = "i"\nkind = "invariant"\nmetric = "missing"\nvalue = 0\nslice = "typo"\n'
        folder = write(rest=METRICS + critical + RULE + invariant)
        error = unfreezable(read_definition(folder), folder)
        assert "'typo'" in error.found
        assert error.subject.endswith(line_of(folder, "critical"))
        folder = write(rest=METRICS + critical + RULE + 'slice = "typo"\n')
        demanded(read_definition(folder), folder)

    @pytest.mark.parametrize(("members", "level", "least"), [(3, 0.95, 120), (6, 0.9, 120), (3, 0.98, 300)])
    def test_guards_need_draws_enough_to_reject(self, write: Write, members: int, level: float, least: int) -> None:
        """A family of m guards at alpha needs 2 x m / alpha draws."""
        metrics = ", ".join(f'"P@{k}"' for k in range(1, members + 1))

        def suite(draws: int) -> Path:
            uncertainty = f"[uncertainty]\nlevel = {level}\ndraws = {draws}\n"
            return write(rest=METRICS + SLICE + RULE + f"[guards]\nmetrics = [{metrics}]\n" + uncertainty)

        folder = suite(least)
        demanded(read_definition(folder), folder)
        folder = suite(least - 1)
        error = unfreezable(read_definition(folder), folder)
        assert f"draws = {least}" in error.mend
        assert error.subject.endswith(line_of(folder, "draws"))

    def test_guards_over_no_slice_guard_nothing(self, write: Write) -> None:
        """`every` of no slices is refused."""
        folder = write(rest=METRICS + RULE + '[guards]\nmetrics = ["RR@10"]\n')
        assert "no slice" in unfreezable(read_definition(folder), folder).found


class TestDiagnostics:
    """A measure that is biased by how few cases there are decides nothing; a right value has no better side."""

    @pytest.mark.parametrize("name", ["ece_top_label", "ece_classwise(by='mass')", "mce", "brier_reliability"])
    @pytest.mark.parametrize("more", ['[[rules]]\nid = "r"\nkind = "at-most"\nmetric = "NAME"\nvalue = 0.1\n',
                                      '[guards]\nmetrics = ["NAME"]\nslices = ["all"]\n'])  # fmt: skip
    def test_no_rule_may_be_made_of_one(self, tmp_path, name, more):
        with pytest.raises(Misconfigured, match="diagnostic") as refusal:
            labelled(tmp_path, more.replace("NAME", name))
        assert "log_loss" in str(refusal.value) and "calibration_slope" in str(refusal.value)

    def test_it_may_be_reported(self, tmp_path):
        labelled(tmp_path, "", report='["log_loss", "ece_top_label", "aurc", "risk_at_coverage(0.8)"]')

    def test_a_slope_is_held_from_both_sides(self, tmp_path):
        bound = '[[rules]]\nid = "{0}"\nkind = "{0}"\nmetric = "calibration_slope"\nvalue = {1}\n'
        labelled(tmp_path, bound.format("at-least", 0.8) + bound.format("at-most", 1.2))
        with pytest.raises(Misconfigured, match="neither side of 1 is better"):
            labelled(tmp_path, '[[rules]]\nid = "r"\nkind = "no-worse"\nmetric = "calibration_slope"\nmargin = 0.1\n')

    def test_how_far_it_is_from_1_may_be_held_by_any_rule(self, tmp_path):
        for kind, bound in (("no-worse", "margin"), ("at-most", "value")):
            rule = f'[[rules]]\nid = "r"\nkind = "{kind}"\nmetric = "calibration_slope_error"\n{bound} = 0.2\n'
            labelled(tmp_path, rule + '[guards]\nmetrics = ["calibration_intercept_error"]\nslices = ["all"]\n')
        with pytest.raises(Misconfigured, match="calibration_slope_error"):
            labelled(tmp_path, '[guards]\nmetrics = ["calibration_slope"]\nslices = ["all"]\n')


class TestRankingsAreSureByOneScore:
    @pytest.mark.parametrize(
        "name", ["aurc(ground='margin')", "risk_at_coverage(0.8,ground='entropy')", "ece_positive[yes]", "mce[yes]"]
    )
    def test_so_no_other_ground_and_no_label(self, write, name):
        folder = write(rest=METRICS.replace("report = [", f'report = ["{name}", ') + RULE)
        with pytest.raises(Misconfigured, match=r"rankings|no labels"):
            read_definition(folder)

    def test_what_hangs_on_their_order_and_on_a_probability_may_be_named(self, write):
        names = ("aurc", "risk_at_coverage(0.8)", "coverage", "answered_accuracy", "log_loss", "calibration_slope")
        told = "".join(f'"{name}", ' for name in names)
        read_definition(write(rest=METRICS.replace("report = [", f"report = [{told}") + RULE))


def labelled(folder, more, report='["log_loss"]'):
    (folder / "cases.jsonl").write_text('{"id": "a", "text": "t", "label": "yes"}\n')
    (folder / "suite.toml").write_text(
        'schema = "harness.suite.v1"\nname = "s"\ntask = "classification"\nlabels = ["yes", "no"]\n'
        'source = { format = "jsonl", path = "cases.jsonl" }\n'
        f'[metrics]\nprimary = "log_loss"\nreport = {report}\n[uncertainty]\ndraws = 1000\n'
        '[[rules]]\nid = "headline"\nkind = "no-worse"\nmetric = "log_loss"\nmargin = 0.1\n' + more
    )
    return read_definition(folder)
