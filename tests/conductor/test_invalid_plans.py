"""Plans of a model that cannot be carried out: how many, mostly why, in every table."""

import csv
import json
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from podium.cli import main
from podium.conductor.parse import PlanFormat, read_plan
from podium.harness.ledger.logs import find_logs
from podium.harness.ledger.system_runs import FAULTS, OTHER_FAULT, fault_of
from podium.harness.redact import redacted
from podium.harness.system import malformed
from podium.harness.workflow import Malformed, Step, Workflow, check
from tests.conductor.toy_checkpoint import parrot

OUT_OF_RANGE = 'model_id = [99]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
WORKERS = ("ada", "bo")


def lists(models: str = "[0]", subtasks: str = '["a"]', access: str = "[[]]") -> str:
    return f"model_id = {models}\nsubtasks = {subtasks}\naccess_list = {access}"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("I would ask model 1.", "no complete plan"),
        ("access_list = []\nsubtasks = []\nmodel_id = []", "no complete plan"),
        (lists(models="[len]"), "lists that cannot be read"),
        (lists(models='["a" "b" 3]'), "lists that cannot be read"),
        (lists(models="[0, 1]"), "lists of different lengths"),
        (lists("[]", "[]", "[]"), "no step"),
        (lists("[0,0,0,0,0,0]", str(["a"] * 6), str([[]] * 6)), "too many steps"),
        (lists(models="[2]"), "worker number out of range"),
        (lists(models='["ada"]'), "a worker that is no number"),
        (lists(subtasks="[3]"), "a subtask that is no text"),
        (lists(access="[[0]]"), "access to a step that has not run"),
        (lists(access="[3]"), "access that cannot be read"),
        (lists(access='[["x"]]'), "access that cannot be read"),
        (lists("[0, 1]", '["a", "b"]', "[[], [0, 0]]"), "access that cannot be read"),
    ],
)
def test_a_plan_that_cannot_be_read_has_a_kind_of_fault(text: str, fault: str) -> None:
    plan = read_plan(PlanFormat(), text, WORKERS)
    assert isinstance(plan, Malformed)
    assert fault_of(malformed(plan).plan) == fault


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "{}",
        '{"model_id": [0], "subtasks": ["a"]}',
        '{"model_id": 0, "subtasks": ["a"], "access_list": [[]]}',
        '{"model_id": [NaN], "subtasks": ["a"], "access_list": [[]]}',
        '{"model_id": [0], "model_id": [1], "subtasks": ["a"], "access_list": [[]]}',
        '{"steps": 3}',
        '{"steps": [3]}',
        '{"steps": [{"model_id": 0}]}',
        '{"model_id": [9], "subtasks": ["a"], "access_list": [[]]}',
    ],
)
def test_a_plan_in_json_that_cannot_be_read_has_a_kind_of_fault(text: str) -> None:
    plan = read_plan(PlanFormat(reply="json"), text, WORKERS)
    assert isinstance(plan, Malformed)
    assert fault_of(malformed(plan).plan) in FAULTS


def test_a_plan_that_a_form_or_a_pool_refuses_has_a_kind_of_fault() -> None:
    named = read_plan(
        PlanFormat(access="binary"), lists("[0, 1]", '["a", "b"]', "[[], [0]]"), WORKERS
    )
    wrong = (Workflow(()), Workflow((Step("cy"),)), Workflow((Step("bo", reads=(3,)),)))
    for plan in (named, *(check(one, WORKERS) for one in wrong)):
        assert isinstance(plan, Malformed)
        assert fault_of(malformed(plan).plan) in FAULTS


def test_a_kind_of_fault_quotes_nobody() -> None:
    said = "malformed: step 1: the secret of the question is \x1b[31m forty-two"
    assert fault_of(said) == OTHER_FAULT
    assert fault_of('[{"worker": "ada"}]') is None
    assert fault_of(None) is None


@pytest.fixture(scope="module")
def sat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a conductor whose every plan names a worker that is not there, beside others."""
    folder = tmp_path_factory.mktemp("invalid")
    logs, lost = folder / "logs", parrot(folder / "lost", OUT_OF_RANGE)
    asked = ["run", "--suite", "practice-integer", "--pool", "rehearsal", "--limit", "2"]
    named = ["--system", f"conductor@{lost}", "--system", "conductor-prompted"]
    several = [*asked, *named, "--system", "single:sage", "--system", "router-llm"]
    assert main([*several, "--log-dir", str(logs), "--display", "none"]) == 0
    assert main(["report", str(logs)]) == 0
    return logs


def test_csv_and_json_say_how_many_plans_were_invalid_and_mostly_why(sat: Path) -> None:
    folder = sat / "report"
    for rows in (
        [*csv.DictReader((folder / "table.csv").read_text().splitlines())],
        json.loads((folder / "table.json").read_text())["rows"],
    ):
        found = {row["system"].partition("@")[0]: row for row in rows}
        names = ("n_invalid_plans", "invalid_plan_pct", "invalid_plan_reason")
        told = {who: [str(row[name] or "") for name in names] for who, row in found.items()}
        assert told["conductor"] == ["2", "100.0", "worker number out of range"]
        assert told["single:sage"] == told["router-llm"] == ["", "", ""]
        assert int(found["conductor-prompted"]["n_invalid_plans"]) == 0
        assert int(found["conductor"]["n_unparsed"]) == 0
        assert float(found["conductor"]["conductor_s"]) > 0


def test_the_tables_for_people_have_the_column_too(
    sat: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(sat)]) == 0
    printed = capsys.readouterr().out
    assert "  invalid  " in printed
    row = next(line for line in printed.splitlines() if line.startswith("conductor@"))
    assert "  100.0 %  " in row
    said = " ".join(printed.split())
    assert "invalid plans, graded wrong, with the most frequent fault: conductor@" in said
    assert "no answer found: conductor@" not in said
    assert max(map(len, printed.partition("Written to")[0].splitlines())) <= 120
    assert "| 100.0 % (worker number out of range) |" in (sat / "report" / "table.md").read_text()


def test_a_copy_without_texts_says_the_kind_of_fault_alone(sat: Path) -> None:
    logs = [read_eval_log(str(path)) for path in find_logs([sat], recursive=False)]
    shapes = [
        (sample.metadata["podium"]["plan"], copy.metadata["podium"]["plan"])
        for log in logs
        for sample, copy in zip(log.samples or [], redacted(log).samples or [], strict=True)
    ]
    broken = {copy for plan, copy in shapes if plan.startswith("malformed")}
    assert broken == {"malformed: worker number out of range"}
    assert fault_of(broken.pop()) == "worker number out of range"
