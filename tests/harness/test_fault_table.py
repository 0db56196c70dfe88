"""Every fault of a provider in every dialect: the ledger is held against the server's own bill."""

import pytest

from tests.harness.fault_table import Cell, Faulty, faulty
from tests.providers import CLIENTS_WARN
from tests.providers.faults import DIALECTS, FAULTS, Fault

pytestmark = [
    CLIENTS_WARN,
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings"),  # OpenAI's client, of usage
]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Faulty:
    return faulty(tmp_path_factory.mktemp("faults"))


@pytest.fixture
def cell(left: Faulty, fault: Fault, dialect: str) -> Cell:
    return left.cells[fault.name, dialect]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_counted_as_its_provider_bills_it_and_never_graded_as_an_answer(
    fault: Fault, dialect: str, cell: Cell
) -> None:
    assert len(cell.rows) == len(cell.lines), "every request that was served is one row"
    assert cell.tokens != "DIFFERENT"
    assert cell.in_range, f"{cell.low} <= {cell.billed} <= {cell.high}"
    assert cell.failing == cell.expected
    assert cell.verdict == fault.verdict_in(dialect)


def test_a_run_of_all_faults_adds_up_and_no_row_costs_less_than_nothing(left: Faulty) -> None:
    assert left.elsewhere == []
    assert len(left.rows) == len(left.lines)
    assert min(row.usd_low for row in left.rows if row.usd_low is not None) == 0
    cells = left.cells.values()
    assert sum(cell.low for cell in cells) <= sum(cell.billed for cell in cells)


def test_names_of_faults_are_unique_and_there_are_enough_of_them() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 38
