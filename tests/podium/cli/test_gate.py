"""A gate: three outcomes and what they exit with, its digest in the logs, its files, its action."""

import json
import os
import subprocess
import sys
from contextvars import copy_context
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar
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
COLUMN = '[[rule]]\nsystem = "pair"\ncolumn = '
SHARE, RIGHT = f'{COLUMN}"n_unparsed"\nat_most = 0.01', f'{COLUMN}"accuracy"\nat_least = 0.9\n'
ALIKE, LOST = (1.0, 1.0), (0.0, 1.0)
CASES = [
    (PAIR, [ALIKE] * 149, "holds", "difference +0.0 points"),
    (PAIR, [ALIKE] * 148, "cannot be shown", "about 150 questions would show that it holds"),
    (PAIR, [LOST] * 3 + [ALIKE] * 7, "cannot be shown", "24 questions would show that it fails"),
    (PAIR, [LOST] * 20, "fails", "p <0.001, 20 questions"),
    (PAIR, [LOST] + [ALIKE] * 49, "cannot be shown", "the value equals the limit, so no number"),
    (SHARE, [ALIKE] * 381, "holds", "0 (95 %: 0 to 0.009982)"),
    (SHARE, [ALIKE] * 370, "cannot be shown", "about 380 questions"),
    (f'{COLUMN}"n_unparsed"\nat_most = 0', [ALIKE] * 2, "holds", "0 as measured"),
    (RIGHT, [ALIKE] * 20, "cannot be shown", "about 35 questions would show that it holds"),
    (RIGHT, [LOST] * 20, "fails", "0 (95 %: 0 to 0.1611)"),
    (f'{COLUMN}"conductor_s"\nat_most = 1', [ALIKE] * 2, "cannot be shown", "unknown"),
]


@pytest.mark.parametrize(("rule", "grades", "outcome", "why"), CASES)
def test_a_rule_is_shown_refuted_or_open(
    rule: str, grades: list[tuple[float, float]], outcome: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "gate.toml").write_text(rule)
    ours, theirs = zip(*grades, strict=True)
    runs = (made_run("pair", graded(*ours)), made_run("single:sage", graded(*theirs)))
    report = Report(compare(runs), (), (), (), DEFAULTS, {}, runs)
    checks = gate_checks(read_gate(tmp_path / "gate.toml")[0], report, None)
    (found,) = gate_result("", "", checks, {}).results
    assert (found.outcome, why in found.why) == (outcome, True), found.why


def podium(*words: object) -> int:
    return copy_context().run(main, [*map(str, words)])


RUN = ("run", "--suite", "practice-integer", "--system", "single:sage", "--system", "moa-lite")
RUN += ("--pool", "rehearsal", "--limit", "20")
HOLDS = PAIR.replace("pair", "moa-lite").replace("2\n", '40\nsuite = "practice-integer"\n')
OPEN, FAILS = HOLDS.replace("40", "1"), RIGHT.replace("pair", "moa-lite")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where a gate is, and a run that noted it."""
    home = tmp_path_factory.mktemp("gate")
    (home / "gate.toml").write_text(f'audit = "clean"\n{HOLDS}')
    assert podium(*RUN, "--log-dir", home / "logs", "--gate", home / "gate.toml") == 0
    return home


@pytest.mark.slow
def test_a_run_notes_its_gate_and_takes_no_other(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("report", home / "logs", "--out", tmp_path, "--gate", home / "gate.toml")
    words += ("--comment", tmp_path / "gate.md", "--page", "https://pages.example/")
    assert podium(*words) == 0
    comment = (tmp_path / "gate.md").read_text()
    assert "**Gate gate.toml: holds (2 of 2 rules hold)**; written before the run." in comment
    assert "- Nothing is shown to beat single:sage" in comment
    assert comment.endswith("[The comparison](https://pages.example/)\n")
    (tmp_path / "other.toml").write_text(OPEN)
    assert podium(*RUN, "--log-dir", home / "logs", "--gate", tmp_path / "other.toml") == 2
    assert "a run with other settings: its gate is" in capsys.readouterr().err


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


@pytest.mark.slow
def test_a_run_is_held_against_an_earlier_one(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gate.toml").write_text(HOLDS.replace("single:sage", "itself"))
    assert podium(*RUN, "--log-dir", tmp_path / "later") == 0
    words = ("report", tmp_path / "later", "--gate", tmp_path / "gate.toml")
    assert podium(*words, "--against", home / "logs") == 0
    assert "not worse than itself by more than 40 points" in capsys.readouterr().out
    assert podium(*words) == 2
    assert "needs an earlier run: add --against DIR" in capsys.readouterr().err


MISTAKES = {
    "": "has no rule. Add a [[rule]] or audit = 'clean'.",
    "audit = ": "is not valid TOML",
    "audti = 'clean'": "at audti: Extra inputs are not permitted. A rule has system",
    PAIR.replace("points = 2\n", ""): "at rule.0: Keys are missing",
    PAIR: "There is no system 'pair'; on practice-integer the gate can name: ",
    HOLDS.replace("integer", "intger"): "Did you mean 'practice-integer'? There is no suite",
    FAILS.replace("accuracy", "acuracy"): "Did you mean 'accuracy'? There is no numeric column",
    FAILS.replace("accuracy", "notes"): "There is no numeric column 'notes'",
    FAILS.replace(
        "0.9", "90"
    ): "accuracy is a fraction of 1, so a limit of 90 decides nothing. For",
}


def test_a_mistake_is_one_sentence_and_nothing_is_written(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate, foreign = tmp_path / "gate.toml", tmp_path / "mine.xml"
    words = ("report", home / "logs", "--out", tmp_path / "out", "--gate", gate)
    for rules, said in MISTAKES.items():
        gate.write_text(rules)
        assert podium(*words) == 2
        assert said in (line := capsys.readouterr().err)
        assert line.count("\n") == 1
    gate.write_text(HOLDS)
    foreign.write_text("<mine/>")
    assert podium(*words, "--junit", foreign) == podium(*words[:4], "--junit", foreign) == 2
    assert "mine.xml exists and was not written by a gate" in (line := capsys.readouterr().err)
    assert "go with --gate: add it." in line
    assert sorted(tmp_path.iterdir()) == [gate, foreign]


class CommentHandler(BaseHTTPRequestHandler):
    """GitHub's API as far as the action needs it: keeps comments on pull request 7."""

    comments: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        self.comments.append(body)
        self.send_response(201 if self.path == "/repos/o/r/issues/7/comments" else 404)
        self.end_headers()


@pytest.mark.slow
def test_the_steps_of_the_action_run_as_they_are_written(home: Path, tmp_path: Path) -> None:
    """As a runner does: bash with -e and pipefail, expressions in `env` alone."""
    server = HTTPServer(("127.0.0.1", 0), CommentHandler)
    Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "gate.toml").write_text(OPEN)
    output, summary = tmp_path / "output", tmp_path / "summary"
    runner = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}",
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_SERVER_URL": "https://h",
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_RUN_ID": "5",
    }
    action = yaml.safe_load((ROOT / "docs" / "deploy" / "action.yml").read_text())
    values = {f"inputs.{name}": one.get("default", "") for name, one in action["inputs"].items()}
    values |= {"inputs.logs": str(home / "logs"), "inputs.gate": "gate.toml", "inputs.token": "t"}
    values |= {"github.event.pull_request.number": "7"}
    codes = list[int]()
    for step in (one for one in action["runs"]["steps"] if "run" in one):
        env = {name: values[one[3:-2].strip()] for name, one in step["env"].items()}
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(words, cwd=tmp_path, env={**os.environ, **runner, **env}, check=False)
        codes.append(done.returncode)
        values["steps.gate.outputs.code"] = output.read_text().strip().removeprefix("code=")
    server.shutdown()
    server.server_close()
    assert codes == [0, 0, 3]
    assert CommentHandler.comments == [summary.read_text()]
    assert summary.read_text().endswith("[The comparison](https://h/o/r/actions/runs/5)\n")
    assert (tmp_path / "podium-gate" / "site" / "index.html").exists()
