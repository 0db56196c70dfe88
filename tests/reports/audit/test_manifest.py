"""A manifest: when it is written, what it keeps, and what its command says."""

import json
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.journal import Journal, read_chain, read_lines
from podium.harness.ledger.manifest import FILE, covered, read_manifest, write_manifest
from podium.reports.audit.verify import verify
from tests.reports.audit.tampered_run import (
    add_call,
    copied,
    first_journal,
    journal,
    journals,
    logs,
    made_run,
    members,
    only,
    repack,
    rewrite,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("made") / "run"
    made_run(home)
    return home


@pytest.fixture
def home(run: Path, tmp_path: Path) -> Path:
    """Return a copy of the run that a test may spoil."""
    return copied(run, tmp_path / "run")


def test_a_run_that_nobody_touched_holds(home: Path) -> None:
    assert verify(home) == ()
    manifest = read_manifest(home / FILE)
    assert [one.kind for one in manifest.files].count("log") == 2
    assert [one.kind for one in manifest.files].count("journal") == 2
    assert {one.rows for one in manifest.files if one.kind == "log"} == {4}
    assert {one.rows for one in manifest.files if one.kind == "journal"} == {7}
    assert [one["book"] for one in manifest.books] == ["test-book"]
    assert manifest.suites[0]["data_revision"] == "generated-1"
    assert manifest.root == manifest.computed()


def test_a_manifest_is_not_written_again_when_nothing_has_changed(home: Path) -> None:
    before = (home / FILE).read_bytes()
    (home / "report").mkdir()
    (home / "report" / "table.md").write_text("made from the logs")
    write_manifest(home)
    assert (home / FILE).read_bytes() == before
    assert verify(home) == ()


def test_a_run_writes_its_manifest_and_a_second_one_that_asks_nothing_leaves_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "logs"
    asked = ["run", "--suite", "practice-integer", "--limit", "2", "--log-dir", str(home)]
    assert main([*asked, "--system", "moa-lite"]) == 0
    before = (home / FILE).read_bytes()
    assert verify(home) == ()
    assert main([*asked, "--system", "moa-lite"]) == 0
    assert (home / FILE).read_bytes() == before
    assert main([*asked, "--system", "moa-lite", "--system", "random-worker"]) == 0
    assert verify(home) == ()
    manifest = read_manifest(home / FILE)
    assert [one.root in before.decode() for one in manifest.history] == [True]
    assert [one.changed for one in manifest.history] == [()]
    assert main(["regrade", str(home), "--all"]) == 0
    assert verify(home) == ()
    assert len(read_manifest(home / FILE).history) == 2
    capsys.readouterr()


def test_a_run_that_grew_keeps_its_earlier_roots(home: Path) -> None:
    before = read_manifest(home / FILE)
    path, lines, _ = first_journal(home)
    with path.open("ab") as file:
        again = Journal(path, file.fileno(), json.loads(lines[-1])["hash"])
        add_call(again.intent, again.outcome)
    journal(home, "other", calls=1)
    after = write_manifest(home)
    assert verify(home) == ()
    (earlier,) = after.history
    assert (earlier.root, earlier.files, earlier.changed) == (before.root, len(before.files), ())
    (found,) = verify(home, before.root)
    assert "lists that as earlier root 1 of 1, which only a copy can show" in found.said


def test_a_run_that_was_changed_before_it_was_extended_says_so_for_good(home: Path) -> None:
    path, lines, name = first_journal(home)
    rewrite(path, lines[:-2])
    logs(home)[0].unlink()
    write_manifest(home)
    found = verify(home)
    assert [one.where for one in found] == ["history 1", "history 1"]
    assert f"{name}: changed" in " ".join(one.said for one in found)


def test_a_journal_broken_when_it_was_taken_in_stays_broken(home: Path) -> None:
    added = journal(home, "other", calls=2)
    lines = added.read_bytes().splitlines(keepends=True)
    rewrite(added, [lines[0], *lines[2:]])
    write_manifest(home)
    assert "when the manifest was written: line 2: deleted" in only(home).said


def test_a_manifest_that_did_not_match_itself_is_replaced_and_remembered(home: Path) -> None:
    text = (home / FILE).read_text()
    (home / FILE).write_text(text.replace('"rows": 7', '"rows": 8', 1))
    write_manifest(home)
    assert "did not match itself" in only(home).said


def test_a_part_of_a_run_can_be_checked_sample_by_sample(home: Path) -> None:
    log, other = logs(home)
    other.unlink()
    repack(log, [one for one in members(log) if "q3" not in one[0]])
    assert verify(home) != ()
    assert verify(home, shared=True) == ()
    contents = members(log)
    repack(log, [(name, data + b" " if "q1" in name else data) for name, data in contents])
    assert only(home, shared=True).where == "samples/q1_epoch_1.json"


def test_the_tree_covers_selection_and_openings_and_no_report(home: Path) -> None:
    (home / "selection").mkdir()
    for name in ("openings.jsonl", "logs.json", "selection/experiment.json", "notes.txt"):
        (home / name).write_text("{}")
    found = covered(home)
    assert {"openings.jsonl", "selection/experiment.json"} <= found.keys()
    assert not {"logs.json", "notes.txt", FILE} & found.keys()


def test_a_journal_s_lines_are_all_read_by_the_chain(home: Path) -> None:
    for path in journals(home):
        assert read_chain(path).lines == len(list(read_lines(path)))


def test_the_command_says_what_holds_and_what_is_not_proved(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["manifest", "verify", str(home)]) == 0
    said = capsys.readouterr().out
    assert "Integrity: holds." in said
    assert "Authenticity: not signed; no published root was named." in said
    assert "anyone who can write to this directory can rewrite all of it" in said
    assert main(["manifest", "verify", str(home), "--root", "0" * 64]) == 1
    assert "is not the published" in capsys.readouterr().out


def test_the_command_fails_where_something_was_changed_or_is_absent(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs(home)[0].unlink()
    assert main(["manifest", "verify", str(home)]) == 1
    said = capsys.readouterr().out
    assert "deleted: " in said
    assert "Publish this root" not in said, "of files that are others nothing is published"
    (tmp_path / "empty").mkdir()
    assert main(["manifest", "verify", str(tmp_path / "empty")]) == 2
    assert main(["manifest", "write", str(tmp_path / "empty")]) == 2
    assert "holds no run" in capsys.readouterr().err
    assert list((tmp_path / "empty").iterdir()) == []


def test_the_command_writes_a_manifest_and_names_its_root(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / FILE).unlink()
    assert main(["manifest", "write", str(home)]) == 0
    root = read_manifest(home / FILE).root
    written = capsys.readouterr().out
    assert f"Root: {root}\n  Publish this root" in written
    assert main(["manifest", "verify", str(home)]) == 0
    assert f"Root: {root}\n  Publish this root" in capsys.readouterr().out


def test_the_command_names_the_files_that_no_manifest_covers(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "report").mkdir()
    for name in ("logs.json", "notes.txt", "report/report.md", "report/rows.csv"):
        (home / name).write_text("made up")
    assert main(["manifest", "verify", str(home)]) == 0
    said = capsys.readouterr().out
    outside = "eval-set.json, logs.json, notes.txt, report/report.md, report/rows.csv and 1 more"
    assert f"6 files here are not covered: {outside}" in said
    assert (
        "reports and exports, which are outside this directory: write them again from the logs"
        in said
    )
    assert "that grades are right (--regrade checks them, podium regrade writes them)" in said


def test_a_file_that_is_no_manifest_is_refused_in_a_sentence(home: Path) -> None:
    for content in (b"", b"[]", b'{"files": 3}', b'{"files": [{"samples": 3}]}', b"\xff"):
        (home / FILE).write_bytes(content)
        with pytest.raises(UserError, match=r"MANIFEST\.json is not a manifest"):
            read_manifest(home / FILE)
