"""The rules as a JUnit report: what a build server shows beside its tests."""

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from harness.output.answer import Answer
from harness.output.decision import Outcome, RuleResult
from harness.report import text, verdict
from harness.report.content import Content


def junit(content: Content) -> str:
    """One test case a rule, without times.

    A FAIL is a failure and a critical UNDECIDED an error, so that both make the build red; another UNDECIDED and a
    WAIVED are skipped. Where the run isn't releasable though no rule says so, a last case, `decision`, is an error.
    """
    answer = content.answer
    cases = [_case(answer, rule) for rule in verdict.ordered(answer.decision.rules)]
    if answer.exit_code != 0 and not any(_red(case) for case in cases):
        cases.append(_decision(answer))
    totals = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
    }
    counted = {key: str(amount) for key, amount in totals.items()}
    root = Element("testsuites", {"name": "harness", "time": "0", **counted})
    skipped = str(sum(case.find("skipped") is not None for case in cases))
    suite = SubElement(
        root, "testsuite", {"name": text.clean(answer.suite), "time": "0", **counted, "skipped": skipped}
    )
    properties = SubElement(suite, "properties")
    for name, known in _properties(answer).items():
        SubElement(properties, "property", {"name": name, "value": text.clean(known)})
    suite.extend(cases)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(answer: Answer, rule: RuleResult) -> Element:
    case = Element("testcase", {"classname": text.clean(answer.suite), "name": text.clean(rule.id), "time": "0"})
    reason = text.clipped(rule.reason, text.LONGEST_REASON)
    said = {"message": reason, "type": str(rule.outcome)}
    match rule.outcome:
        case Outcome.FAIL:
            found = f"A waiver names this finding: {rule.finding}" if rule.finding else ""
            SubElement(case, "failure", said).text = found
        case Outcome.UNDECIDED if rule.critical:
            SubElement(case, "error", said)
        case Outcome.UNDECIDED | Outcome.WAIVED:
            SubElement(case, "skipped", {**said, "message": f"{rule.outcome}: {reason}"})
    return case


def _decision(answer: Answer) -> Element:
    case = Element("testcase", {"classname": text.clean(answer.suite), "name": "decision", "time": "0"})
    kind = "EXPLORATORY" if answer.decision.exploratory else str(answer.decision.outcome)
    SubElement(case, "error", {"message": verdict.why(answer, text.clean), "type": kind})
    return case


def _red(case: Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def _properties(answer: Answer) -> dict[str, str]:
    parent = {"parent": answer.parent.name, "parent content ID": answer.parent.content_id} if answer.parent else {}
    return {
        "run": answer.run,
        "decision": str(answer.decision.outcome),
        "exploratory": "true" if answer.decision.exploratory else "false",
        "candidate": answer.candidate.name,
        "candidate content ID": answer.candidate.content_id,
        **parent,
        "suite digest": answer.suite_digest,
    }
