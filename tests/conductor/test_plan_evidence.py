"""What tables of a conductor's plans are made of: shapes from logs, two plans, forms taken away."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from podium.conductor.checkpoint import read_info
from podium.harness.pool import Pool
from podium.harness.records import Question
from podium.harness.system import planned
from podium.harness.workflow import Reads, Step, Workflow
from tests import ROOT
from tests.benchmarks.plan_shapes import access, shape, table
from tests.harness.runs import sit


def plan(*reads: Reads) -> Workflow:
    return Workflow(tuple(Step("sage", "Say it.", one) for one in reads))


@pytest.mark.parametrize(
    ("reads", "kind"),
    [
        (((),), "single"),
        (((), (0,)), "chain"),
        (((), (0,), (0, 1)), "chain"),
        (((), ()), "apart"),
        (((), (), (0, 1)), "judge"),
        (((), (), "all"), "judge"),
        (((), (), (1,)), "tree"),
        (((), (0,), (0,), (1, 2)), "judge"),
    ],
)
def test_a_shape_is_named_by_who_reads_whom(reads: tuple[Reads, ...], kind: str) -> None:
    assert access(plan(*reads)) == kind


def test_a_shape_names_workers_in_order_and_no_words() -> None:
    assert shape(plan((), (0,))) == "sage, sage<1 (chain)"


def test_a_table_counts_the_plans_of_conductors_in_logs(tmp_path: Path) -> None:
    def by_number(question: Question, pool: Pool) -> Workflow:
        return plan((), (0,)) if question.id == "q1" else plan(())

    sit(tmp_path, "conductor@x", planned(by_number))
    sit(tmp_path, "moa-lite", planned(by_number))
    lines = table([tmp_path], "conductor", joined=False).splitlines()
    assert len(lines) == 3
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[:6] == ["conductor@x", "numbers", "4", "0", "sage (single)", "75 %"]
    assert cells[7:11] == ["sage, sage<1 (chain)", "25 %", "2", "2"]
    assert cells[11:] == ["75 %", "25 %", "0 %", "0 %", "0 %"]


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let benchmarks find each other, as they do when they are run."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "benchmarks"))


def test_a_checkpoint_with_a_part_of_its_form_taken_away_is_else_the_same(tmp_path: Path) -> None:
    taken: Any = import_module("form_taken_away")
    for name, (_, changes) in taken.FORMS.items():
        taken.with_form(taken.RELEASED, tmp_path / name, changes)
    forms = {name: read_info(tmp_path / name) for name in taken.FORMS}
    known = read_info(taken.RELEASED)
    assert forms["as-trained"] == known
    assert replace(forms["no-access"].form, access=known.form.access) == known.form
    assert (known.form.access, forms["no-access"].form.access) == ("fine", "off")
    assert {one.weights_sha256 for one in forms.values()} == {known.weights_sha256}


def test_two_plans_sit_beside_a_conductor_and_are_compared_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two: Any = import_module("two_plans")
    few = ["--limit", "2", "--suites", "practice-integer"]
    assert two.main(["--out", f"{tmp_path / 'logs'}", *few]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("| two-plans@abacus") for line in lines) == 3
    assert sum(line.startswith("| conductor") for line in lines) == 4
    program = Question("p", "Write a program.", "program")
    assert [step.worker for step in two.written(program, "abacus").steps] == ["scribe"]
