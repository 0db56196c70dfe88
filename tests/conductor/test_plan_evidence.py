"""What tables of a conductor's plans are made of: shapes from logs."""

from pathlib import Path

import pytest

from podium.harness.pool import Pool
from podium.harness.records import Question
from podium.harness.system import planned
from podium.harness.workflow import Reads, Step, Workflow
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
