"""What an audit says of a record with gaps: weak, with words for whoever has only the files."""

import json
import shutil
from pathlib import Path

import pytest

from podium.cli import main
from podium.reports.audit import audit
from tests.harness.runs import Crew, failing_on
from tests.reports.audit.audited_run import Json, edit_log, failing, said, sat


def test_what_only_a_strict_audit_refuses_is_weak_and_never_a_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sat(tmp_path)
    out = tmp_path / "audit.json"
    assert main(["audit", str(tmp_path), "--json", str(out)]) == 0
    text = capsys.readouterr().out
    assert "weak           I14  integrity" in text
    assert "ask the person who ran it with podium for MANIFEST.json" in " ".join(text.split())
    assert "No invariant fails; 1 is weak: `--strict` fails on it." in text
    statuses = {
        one["invariant"]: one["status"] for one in json.loads(out.read_bytes())["invariants"]
    }
    assert statuses["I14"] == "weak"
    assert main(["audit", str(tmp_path), "--strict"]) == 1


def test_a_log_that_was_copied_without_its_ledger_says_so_once(tmp_path: Path) -> None:
    sat(tmp_path, journal=1)
    shutil.rmtree(tmp_path / "ledger")
    found = audit(tmp_path)
    (log,) = tmp_path.glob("*.eval")
    assert said(found, "I4").splitlines() == [
        "fail",
        f"log {log.name}: its calls were recorded in a journal that is missing: the `ledger/` "
        "folder belongs to the logs",
    ]
    assert "older than" not in said(found, "I14")
    assert "no journal: the `ledger/` folder, which belongs to the logs, is missing" in said(
        found, "I14"
    )


def test_run_directories_that_were_put_together_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sat(tmp_path / "0")
    shutil.copytree(tmp_path / "0", tmp_path / "1")
    main(["audit", str(tmp_path)])
    assert "put together from 2 run directories" in capsys.readouterr().out
    main(["audit", str(tmp_path / "0")])
    assert "put together" not in capsys.readouterr().out


def test_a_log_may_be_dated_later_than_its_calls(tmp_path: Path) -> None:
    for crew in (Crew(clerk=failing_on("Say 2")), Crew(clerk=failing_on("Say 2")), Crew()):
        sat(tmp_path, crew=crew)
    seconds = iter(range(10))

    def dated(name: str, found: Json) -> Json:
        if name in ("header.json", "_journal/start.json"):  # as Inspect dates quick retries
            found["eval"]["created"] = later
        return found

    for path in sorted(tmp_path.glob("*.eval"))[1:]:
        later = f"2099-01-01T00:00:0{next(seconds)}+00:00"
        edit_log(path, dated)
    (tmp_path / "MANIFEST.json").unlink(missing_ok=True)
    assert failing(tmp_path) == set()
