"""A gate's result for a terminal, for a CI job (JUnit XML), and as a comment for people."""

from pathlib import Path
from xml.etree import ElementTree

from podium.harness.files import not_overwritten, refuse_other_suffix, refuse_unwritable_file
from podium.harness.text import escape_controls
from podium.reports import render
from podium.reports.gate import GateResult
from podium.reports.report import Report

MARK = "<!-- podium gate -->"
BEGIN = {"--junit": (".xml", '<testsuites name="podium gate"'), "--comment": (".md", MARK)}
"""Option -> suffix of its file, and the first characters of such files that podium wrote."""


def refuse_gate_file(path: Path, option: str) -> None:
    """Raise UserError if `path` lacks the option's suffix, or is a file that no gate wrote."""
    end, begin = BEGIN[option]
    refuse_unwritable_file(path, f"{option} FILE{end}")
    refuse_other_suffix(path, option, end)
    if path.is_file() and not path.read_bytes().startswith(begin.encode()):
        raise not_overwritten(path, "a gate", f"{option} FILE{end}")


def gate_text(result: GateResult) -> str:
    """Return a gate's result as lines for a terminal."""
    rules = (f"{rule.outcome}: {rule.sentence}: {rule.why}" for rule in result.results)
    paragraphs = map(render.wrapped, (f"{result.headline}; {result.stated}", *rules))
    return "\n".join(line for paragraph in paragraphs for line in paragraph)


def junit_xml(result: GateResult, inconclusive: str) -> str:
    """Return JUnit XML, a case per rule; `inconclusive`: do undecided rules `fail` or `pass`."""
    root = ElementTree.Element("testsuites", name="podium gate")
    suite = ElementTree.SubElement(root, "testsuite", name=f"{result.headline}; {result.stated}")
    for place, sentence, outcome, reason in result.results:
        names = {"classname": escape_controls(place), "name": escape_controls(sentence)}
        case = ElementTree.SubElement(suite, "testcase", names)
        if outcome != "holds":
            kind = "failure" if outcome == "fails" or inconclusive == "fail" else "skipped"
            ElementTree.SubElement(case, kind, type=outcome, message=escape_controls(reason))
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def comment(result: GateResult, report: Report, page: str | None) -> str:
    """Return a gate's result as Markdown: outcome, headlines, rules that do not hold, page link."""
    lines = [MARK, f"**{result.headline}**; {result.stated}.", ""]
    lines += [f"- {block.headline}." for block in report.shown.fields if block.headline]
    rules = (rule for rule in result.results if rule.outcome != "holds")
    lines += [f"- **{rule.outcome}**: {rule.sentence}: {rule.why}" for rule in rules]
    return "\n".join([*lines, *(["", f"[The comparison]({page})"] if page else []), ""])
