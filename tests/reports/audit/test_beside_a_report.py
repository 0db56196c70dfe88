"""What a report reads is not read again for the audit beside it, and the audit is the same."""

import os
import shutil
from pathlib import Path

import pytest

from podium.harness.errors import UserError
from podium.reports.audit import as_json, audit, beside_a_report
from podium.reports.report import report_of
from tests.harness.runs import Crew, sit
from tests.reports.audit.audited_run import sat
from tests.reports.small_reports import EXAM, right_up_to


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems with journals, one of them begun twice, and a selection without."""
    folder = tmp_path_factory.mktemp("beside") / "run"
    for crew in (Crew(sage=right_up_to(2)), Crew(sage=right_up_to(4))):
        sat(folder, "single:sage", crew=crew, exam=EXAM)
    sat(folder, "pair", exam=EXAM)
    sit(folder / "selection", "single:sage", exam=EXAM, purpose="selection", split="train")
    return folder


def test_an_audit_beside_a_report_is_that_of_the_files_alone(run: Path) -> None:
    beside = beside_a_report([run])
    report_of([run], beside=beside)
    assert len(beside.system_runs) == 3
    assert all(beside.made_of(one) for one in beside.system_runs)
    assert as_json(audit(run, beside=beside)) == as_json(audit(run))


def test_the_table_is_the_same_whatever_is_made_beside_it(run: Path) -> None:
    alone, audited = report_of([run]), report_of([run], beside=beside_a_report([run]))
    for name in ("table.md", "table.csv", "table.json"):
        assert audited.contents[name] == alone.contents[name]


def test_files_that_have_changed_since_are_read_again(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    beside = beside_a_report([copy])
    report_of([copy], beside=beside)
    journal = beside.system_runs[0].journals[0]
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    changed = [one for one in beside.system_runs if beside.made_of(one) is None]
    assert changed == [beside.system_runs[0]]
    found = audit(copy, beside=beside)
    assert not found.ok
    assert as_json(found) == as_json(audit(copy))


def test_a_file_that_only_was_touched_is_read_again(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    beside = beside_a_report([copy])
    report_of([copy], beside=beside)
    os.utime(beside.system_runs[0].logs[0], (1, 1))
    assert beside.made_of(beside.system_runs[0]) is None


def test_a_damaged_journal_is_named_before_pages_are_written(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "run")
    beside = beside_a_report([copy])
    beside.system_runs[0].journals[0].write_text('{"kind": "intent", "call": 3}\nno line\n{}\n')
    with pytest.raises(UserError, match="A log or journal of 'numbers pair'"):
        report_of([copy], beside=beside)
