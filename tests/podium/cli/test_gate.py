"""A gate: three outcomes and what they exit with, its digest in the logs, its files, its action."""

import json
import os
import subprocess
import sys
from contextvars import copy_context
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from xml.etree import ElementTree

import pytest
import yaml

from podium.cli import main
from podium.reports.blocks import DEFAULTS
from podium.reports.derived import compare
from podium.reports.gate import gate_checks, gate_result, read_gate
from podium.reports.report import Report
from tests import ROOT
from tests.reports.made_runs import graded, made_run

PAIR = '[[rule]]\nsystem = "pair"\nnot_worse_than = "single:sage"\npoints = 2\n'
COLUMN = '[[rule]]\nsystem = "pair"\ncolumn = "{}"\n{}\n'
ALIKE, LOST = (1.0, 1.0), (0.0, 1.0)


def judged(path: Path, rule: str, grades: list[tuple[float, float]]) -> tuple[str, str]:
    """Return what a rule comes to if `pair` and `single:sage` have these grades."""
    path.write_text(rule)
    ours, theirs = zip(*grades, strict=True)
    runs = (made_run("pair", graded(*ours)), made_run("single:sage", graded(*theirs)))
    report = Report(compare(runs), (), (), (), DEFAULTS, {}, runs)
    (found,) = gate_result("", "", gate_checks(read_gate(path)[0], report, None), ()).results
    return found.outcome, found.why


@pytest.mark.parametrize(
    ("grades", "outcome", "why"),
    [
        ([ALIKE] * 149, "holds", "difference +0.0 points"),
        ([ALIKE] * 148, "cannot be shown", "about 150 questions would show that it holds"),
        (
            [LOST] * 3 + [ALIKE] * 7,
            "cannot be shown",
            "about 24 questions would show that it fails",
        ),
        ([LOST] * 20, "fails", "p <0.001, 20 questions"),
        ([LOST] + [ALIKE] * 49, "cannot be shown", "on the limit itself no number"),
    ],
)
def test_not_worse_is_shown_refuted_or_open(
    grades: list[tuple[float, float]], outcome: str, why: str, tmp_path: Path
) -> None:
    found, said = judged(tmp_path / "gate.toml", PAIR, grades)
    assert (found, why in said) == (outcome, True), said


@pytest.mark.parametrize(
    ("column", "limit", "questions", "outcome", "why"),
    [
        ("n_unparsed", "at_most = 0.01", 381, "holds", "0 (95 %: 0 to 0.009982)"),
        ("n_unparsed", "at_most = 0.01", 370, "cannot be shown", "about 380 questions"),
        ("n_unparsed", "at_most = 0", 2, "holds", "0 as measured"),
        ("accuracy", "at_least = 0.9", 20, "cannot be shown", "about 35 questions"),
        ("accuracy", "at_most = 0.5", 20, "fails", "1 (95 %: 0.8389 to 1)"),
        ("conductor_s", "at_most = 1", 2, "cannot be shown", "unknown"),
    ],
)
def test_a_column_is_held_by_its_interval(
    column: str, limit: str, questions: int, outcome: str, why: str, tmp_path: Path
) -> None:
    rule = COLUMN.format(column, limit)
    found, said = judged(tmp_path / "gate.toml", rule, [ALIKE] * questions)
    assert (found, why in said) == (outcome, True), said


def podium(*words: object) -> int:
    return copy_context().run(main, [*map(str, words)])


RUN = ("run", "--suite", "practice-integer", "--system", "single:sage", "--system", "moa-lite")
RUN += ("--pool", "rehearsal", "--limit", "20")
HOLDS = PAIR.replace("pair", "moa-lite").replace("2\n", "40\n") + 'suite = "practice-integer"\n'
OPEN, FAILS = HOLDS.replace("40", "1"), COLUMN.format("accuracy", "at_least = 0.99")
FAILS = FAILS.replace("pair", "moa-lite")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where a gate is, and a run that noted it."""
    home = tmp_path_factory.mktemp("gate")
    (home / "gate.toml").write_text(f'audit = "clean"\n{HOLDS}')
    assert podium(*RUN, "--log-dir", home / "logs", "--gate", home / "gate.toml") == 0
    return home


def test_a_gate_that_the_run_noted_holds_and_its_files_say_so(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ("--junit", tmp_path / "gate.xml", "--comment", tmp_path / "gate.md")
    words = ("report", home / "logs", "--out", tmp_path, "--gate", home / "gate.toml", *files)
    assert podium(*words, "--page", "https://pages.example/") == 0
    assert "Gate gate.toml: holds (2 of 2 rules hold); written before the run" in " ".join(
        capsys.readouterr().out.split()
    )
    cases = ElementTree.parse(tmp_path / "gate.xml").findall("testsuite/testcase")
    assert [[*one] for one in cases] == [[], []]
    comment = (tmp_path / "gate.md").read_text()
    assert "- Nothing is shown to beat single:sage" in comment
    assert comment.endswith("[The comparison](https://pages.example/)\n")
    assert podium(*RUN, "--log-dir", home / "logs", "--gate", __file__) == 2
    (tmp_path / "other.toml").write_text(OPEN)
    assert podium(*RUN, "--log-dir", home / "logs", "--gate", tmp_path / "other.toml") == 2
    assert "another experiment: its gate is" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rules", "option", "code", "tags"),
    [
        (OPEN, "fail", 3, ["failure"]),
        (OPEN, "pass", 0, ["skipped"]),
        (OPEN + FAILS, "pass", 1, ["skipped", "failure"]),
    ],
)
def test_exit_codes_tell_a_failure_from_too_few_questions(
    rules: str, option: str, code: int, tags: list[str], home: Path, tmp_path: Path
) -> None:
    gate, file = tmp_path / "late.toml", tmp_path / "gate.xml"
    gate.write_text(rules)
    words = ("--out", tmp_path, "--gate", gate, "--inconclusive", option, "--junit", file)
    assert podium("report", home / "logs", *words) == code
    (suite,) = ElementTree.parse(file).getroot()
    assert [one.tag for case in suite for one in case] == tags
    assert suite.attrib["name"].endswith("written after the run: no log has its digest")


def test_a_run_is_held_against_an_earlier_one(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = tmp_path / "twice.toml"
    gate.write_text(HOLDS.replace("single:sage", "itself"))
    assert podium(*RUN, "--log-dir", tmp_path / "later") == 0
    words = ("report", tmp_path / "later", "--gate", gate)
    assert podium(*words, "--against", home / "logs", "--out", tmp_path / "out") == 0
    assert "not worse than itself by more than 40 points" in capsys.readouterr().out
    assert podium(*words) == 2
    assert "needs an earlier run: add --against DIR" in capsys.readouterr().err


MISTAKES = {
    "": "has no rule. Add a [[rule]], or audit = 'clean'.",
    "audit = ": "is not valid TOML",
    "audti = 'clean'": "at audti: Extra inputs are not permitted. A rule states system",
    PAIR.replace("points", "point"): "at rule.0.point: Extra inputs are not permitted",
    PAIR.replace("points = 2\n", ""): "at rule.0: Value error, Something is missing",
    PAIR: "There is no system 'pair'; on practice-integer the gate may name: ",
    HOLDS.replace("integer", "intger"): "Did you mean 'practice-integer'? There is no suite",
    FAILS.replace("accuracy", "acuracy"): "Did you mean 'accuracy'? There is no column of numbers",
    FAILS.replace("accuracy", "notes"): "There is no column of numbers 'notes'",
}


@pytest.mark.parametrize("rules", MISTAKES)
def test_a_mistake_is_one_sentence_and_nothing_is_written(
    rules: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = tmp_path / "gate.toml"
    gate.write_text(rules)
    assert podium("report", home / "logs", "--out", tmp_path / "out", "--gate", gate) == 2
    said = capsys.readouterr().err
    assert MISTAKES[rules] in said
    assert said.count("\n") == 1
    assert [*tmp_path.iterdir()] == [gate]


def test_options_without_a_gate_and_files_of_others_are_refused(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("report", home / "logs", "--out", tmp_path / "out", "--junit", tmp_path / "a.xml")
    (tmp_path / "a.xml").write_text("<mine/>")
    assert podium(*words) == podium(*words, "--gate", home / "gate.toml") == 2
    said = capsys.readouterr().err
    assert "go with --gate: add it." in said
    assert "a.xml is no .xml file of a gate" in said
    assert [one.name for one in tmp_path.iterdir()] == ["a.xml"]


@pytest.mark.parametrize(("rules", "code"), [(HOLDS, 0), (OPEN, 3)])
def test_the_steps_of_the_action_run_as_they_are_written(
    rules: str, code: int, home: Path, tmp_path: Path
) -> None:
    """As a runner does: bash with -e and pipefail, expressions in `env` alone."""
    posted = list[str]()

    class Api(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])
            self.send_response(201)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "gate.toml").write_text(rules)
    action = yaml.safe_load((ROOT / "docs" / "deploy" / "action.yml").read_text())
    values = {f"inputs.{name}": one.get("default", "") for name, one in action["inputs"].items()}
    values |= {"inputs.logs": str(home / "logs"), "inputs.gate": "gate.toml", "inputs.token": "t"}
    values |= {"github.event.pull_request.number": "7"}
    runner = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    runner |= {"GITHUB_API_URL": f"http://127.0.0.1:{server.server_address[1]}"}
    runner |= {"GITHUB_SERVER_URL": "https://h", "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "5"}
    runner |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for step in (one for one in action["runs"]["steps"] if "run" in one):
        env = {name: values[one[3:-2].strip()] for name, one in step["env"].items()}
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(words, cwd=tmp_path, env={**os.environ, **runner, **env}, check=False)
        if "id" in step:
            written = dict([(tmp_path / "GITHUB_OUTPUT").read_text().strip().split("=")])
            values |= {f"steps.{step['id']}.outputs.{name}": one for name, one in written.items()}
    server.shutdown()
    server.server_close()
    assert done.returncode == code
    (comment,) = posted
    assert comment == (tmp_path / "GITHUB_STEP_SUMMARY").read_text()
    assert comment.endswith("[The comparison](https://h/o/r/actions/runs/5)\n")
    assert (tmp_path / "podium-gate" / "site" / "index.html").exists()
