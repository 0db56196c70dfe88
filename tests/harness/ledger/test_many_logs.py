"""Many cloned logs: they are valid, and are read by several processes as by one."""

from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from podium.harness import parallel
from podium.harness.errors import UserError
from podium.harness.ledger.journal import read_chain
from podium.harness.ledger.system_runs import load_runs, read_figures
from podium.reports.audit import audit
from tests.harness.ledger.ledger_rows import rows_in
from tests.harness.ledger.many_logs import Size, copies, rehearse

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three logs of 8 samples, 5 calls each, cloned from one real log."""
    folder = tmp_path_factory.mktemp("many")
    source = rehearse(folder / "source")
    assert copies(source, folder / "many", Size(logs=3, samples=8)) == 120
    return folder / "many"


def logs_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.eval"))


def test_a_copy_is_a_log_that_inspect_reads_and_whose_totals_agree(many: Path) -> None:
    for path in logs_in(many):
        log = read_eval_log(str(path))
        assert len(log.samples or []) == 8
        assert audit(path).ok


def test_copies_share_no_call_and_no_task(many: Path) -> None:
    ids = {row.event for path in logs_in(many) for row in rows_in(path)}
    assert len(ids) == 120
    system_runs, _ = load_runs([many])
    assert len(system_runs) == len({system_run.facts.system for system_run in system_runs}) == 3


def test_each_copy_has_a_journal_whose_chain_holds(many: Path) -> None:
    journals = list(many.glob("ledger/*/*.jsonl"))
    assert len(journals) == 3
    for path in journals:
        chain = read_chain(path)
        assert (chain.lines, chain.faults) == (98, ())


def test_several_processes_read_what_one_reads(many: Path) -> None:
    groups = [[path] for path in logs_in(many)]
    one = list(map(read_figures, groups))
    assert [*parallel.map_over_processes(read_figures, groups, many=True)] == one
    assert [*parallel.map_over_processes(read_figures, groups, many=False)] == one


def test_a_damaged_log_is_named_by_whichever_process_reads_it(many: Path, tmp_path: Path) -> None:
    good, *_ = logs_in(many)
    bad = tmp_path / "cut.eval"
    bad.write_bytes(good.read_bytes()[:5000])
    with pytest.raises(UserError, match=r"cut\.eval is damaged"):
        list(parallel.map_over_processes(read_figures, [[good], [bad]], many=True))
