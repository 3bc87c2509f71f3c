"""The rules as a build server reads them."""

from dataclasses import replace
from xml.etree import ElementTree

from harness.output.decision import Outcome
from harness.report.junit import junit

ALLOWED = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "time", "tests", "failures", "errors", "skipped"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message", "type"},
}
"""Elements and attributes that Jenkins and GitLab both know."""


def _kinds(root: ElementTree.Element) -> dict[str, str]:
    return {case.attrib["name"]: case[0].tag if len(case) else "passed" for case in root.iter("testcase")}


class TestCases:
    def test_outcomes_become_what_a_build_server_shows(self, contents):
        """FAIL is red, critical UNDECIDED an error, what does not block is skipped."""
        kinds = _kinds(ElementTree.fromstring(junit(contents.failing())))
        assert kinds["typos-hold"] == "failure" and kinds["headline"] == "error"
        assert kinds["overlap-hold"] == "skipped" and kinds["german-floor"] == "skipped"
        assert kinds["late-answers-hold"] == "passed" and len(kinds) == 22

    def test_each_rule_has_its_reason_once(self, contents):
        """What is open says why; the suite's name is the class."""
        content = contents.failing()
        said = junit(content)
        for rule in content.answer.decision.rules:
            assert said.count(rule.reason) == (rule.outcome is not Outcome.PASS)
        assert {case.attrib["classname"] for case in ElementTree.fromstring(said).iter("testcase")} == {"help-center"}

    def test_a_run_that_may_not_be_released_is_never_green(self, contents):
        """Where every rule passed and the run is exploratory, the decision is a case of its own, and red."""
        content = contents.passing()
        assert "decision" not in _kinds(ElementTree.fromstring(junit(content)))
        decision = replace(content.answer.decision, exploratory=True)
        root = ElementTree.fromstring(junit(replace(content, answer=replace(content.answer, decision=decision))))
        assert _kinds(root)["decision"] == "error" and root.attrib["errors"] == "1"


class TestSchema:
    def test_elements_attributes_and_totals(self, any_content):
        """Nothing but what build servers know, in their order, without times; the totals are those of the cases."""
        root = ElementTree.fromstring(junit(any_content))
        for element in root.iter():
            assert set(element.attrib) <= ALLOWED[element.tag]
            assert element.attrib.get("time", "0") == "0"
        suite = root[0]
        assert [child.tag for child in suite] == ["properties"] + ["testcase"] * int(suite.attrib["tests"])
        for tag, total in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert len(list(root.iter(tag))) == int(suite.attrib[total])
        assert all(root.attrib[name] == suite.attrib[name] for name in ("tests", "failures", "errors"))

    def test_properties_name_the_run(self, contents):
        """Run, candidate, parent and suite are there, by content."""
        content = contents.failing()
        known = {each.attrib["value"] for each in ElementTree.fromstring(junit(content)).iter("property")}
        answer = content.answer
        assert {answer.run, answer.suite_digest, answer.candidate.content_id, answer.parent.content_id} <= known


class TestHostileText:
    def test_is_text(self, contents, hostile):
        """It parses, adds no element, and characters that XML forbids are replaced."""
        said = [junit(contents.everywhere(contents.failing(), text)) for text in (hostile, "harmless")]
        tags = [[element.tag for element in ElementTree.fromstring(each.encode())] for each in said]
        assert tags[0] == tags[1]
        case = next(ElementTree.fromstring(said[0]).iter("testcase"))
        assert "</script><script>alert(1)</script>" in case.attrib["name"] and "\ufffd" in case.attrib["name"]
