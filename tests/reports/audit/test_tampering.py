"""Every attack on a run's directory is found and named."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from podium.harness.ledger.call import canonical
from podium.harness.ledger.journal import Journal, read_chain
from podium.harness.ledger.manifest import FILE, read_manifest, write_manifest
from podium.reports.audit.verify import verify
from tests.reports.audit.tampered_run import (
    add_call,
    copied,
    first_journal,
    journal,
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


def test_a_flipped_byte_in_a_journal_is_found_in_its_line(home: Path) -> None:
    path, lines, name = first_journal(home)
    lines[3] = lines[3].replace(b'"prompt_bytes":5', b'"prompt_bytes":4')
    rewrite(path, lines)
    found = only(home)
    assert (found.kind, found.path, found.where) == ("edited", name, "line 4")


@pytest.mark.parametrize("at", [0, 1, 3, 5])
def test_every_flipped_byte_of_a_line_is_found(home: Path, at: int) -> None:
    path, lines, _ = first_journal(home)
    for byte in range(0, len(lines[at]) - 1, 37):
        flipped = bytearray(lines[at])
        flipped[byte] ^= 1
        rewrite(path, [*lines[:at], bytes(flipped), *lines[at + 1 :]])
        assert verify(home) != ()


def test_a_line_taken_out_of_a_journal_is_found(home: Path) -> None:
    path, lines, name = first_journal(home)
    rewrite(path, lines[:2] + lines[3:])
    found = only(home)
    assert (found.kind, found.path, found.where) == ("deleted", name, "line 3")


def test_the_first_line_taken_out_of_a_journal_is_found(home: Path) -> None:
    path, lines, _ = first_journal(home)
    rewrite(path, lines[1:])
    assert (only(home).kind, only(home).where) == ("deleted", "line 1")


def test_two_lines_that_changed_places_are_found(home: Path) -> None:
    path, lines, name = first_journal(home)
    rewrite(path, [*lines[:2], lines[3], lines[2], *lines[4:]])
    found = only(home)
    assert (found.kind, found.path, found.where) == ("reordered", name, "line 3")


def test_a_line_put_into_a_journal_is_found(home: Path) -> None:
    path, lines, name = first_journal(home)
    row = json.loads(lines[2])
    row |= {"prev": json.loads(lines[1])["hash"], "prompt_bytes": 9}
    del row["hash"]
    row["hash"] = hashlib.sha256(canonical(row)).hexdigest()
    rewrite(path, [*lines[:2], canonical(row) + b"\n", *lines[2:]])
    found = only(home)
    assert (found.kind, found.path, found.where) == ("inserted", name, "line 3")


def test_the_end_cut_off_a_journal_is_found_though_its_chain_holds(home: Path) -> None:
    path, lines, name = first_journal(home)
    rewrite(path, lines[:-2])
    assert read_chain(path).faults == ()
    found = only(home)
    assert (found.kind, found.path, found.where) == ("truncated", name, "line 6")
    assert "2 of 7 lines" in found.said


def test_a_line_cut_in_its_middle_is_found(home: Path) -> None:
    path, lines, _ = first_journal(home)
    rewrite(path, [*lines[:-1], lines[-1][:20]])
    assert (only(home).kind, only(home).where) == ("truncated", "line 7")


def test_an_emptied_journal_is_found(home: Path) -> None:
    path, _, name = first_journal(home)
    path.write_bytes(b"")
    found = only(home)
    assert (found.kind, found.path, found.where) == ("truncated", name, "line 1")


def test_a_journal_written_anew_is_found_by_the_manifest_alone(home: Path) -> None:
    path, _, name = first_journal(home)
    other = journal(home, "other", calls=3)
    other.replace(path)
    assert read_chain(path).faults == ()
    found = only(home)
    assert (found.kind, found.path, "was rewritten" in found.said) == ("edited", name, True)


def test_a_journal_taken_out_and_one_put_in_are_found(home: Path) -> None:
    path, _, name = first_journal(home)
    path.unlink()
    assert (only(home).kind, only(home).path) == ("deleted", name)
    added = journal(home, "other", calls=1)
    kinds = {(one.kind, one.path) for one in verify(home)}
    assert kinds == {("deleted", name), ("inserted", added.relative_to(home).as_posix())}


def test_lines_added_after_the_manifest_are_found(home: Path) -> None:
    path, lines, _ = first_journal(home)
    with path.open("ab") as file:
        again = Journal(path, file.fileno(), json.loads(lines[-1])["hash"])
        add_call(again.intent, again.outcome)
    found = only(home)
    assert (found.kind, found.where) == ("inserted", "line 8")
    assert "2 lines were added" in found.said


def test_a_changed_sample_is_found_by_name(home: Path) -> None:
    log = logs(home)[0]
    contents = [
        (name, data.replace(b'"value":1', b'"value":0') if "q2" in name else data)
        for name, data in members(log)
    ]
    assert contents != members(log)
    repack(log, contents)
    found = only(home)
    assert (found.kind, found.path) == ("edited", log.name)
    assert found.where == "samples/q2_epoch_1.json"


def test_a_sample_taken_out_and_one_put_in_are_found_by_name(home: Path) -> None:
    log = logs(home)[0]
    contents = members(log)
    repack(log, [one for one in contents if "q3" not in one[0]])
    assert (only(home).kind, only(home).where) == ("deleted", "samples/q3_epoch_1.json")
    repack(log, [*contents, ("samples/q9_epoch_1.json", contents[1][1])])
    assert (only(home).kind, only(home).where) == ("inserted", "samples/q9_epoch_1.json")


def test_samples_in_another_order_are_found(home: Path) -> None:
    log = logs(home)[0]
    contents = members(log)
    repack(
        log,
        list(reversed([one for one in contents if one[0].startswith("samples/")]))
        + [one for one in contents if not one[0].startswith("samples/")],
    )
    assert only(home).kind == "reordered"


def test_a_changed_header_and_a_log_packed_anew_are_found(home: Path) -> None:
    log = logs(home)[0]
    contents = members(log)
    repack(log, contents)
    assert "packed again" in only(home).said
    repack(log, [(name, data + b" " if name == "header.json" else data) for name, data in contents])
    assert "header" in only(home).said


def test_a_log_cut_short_and_a_flipped_byte_within_one_are_found(home: Path) -> None:
    log = logs(home)[0]
    content = log.read_bytes()
    log.write_bytes(content[: len(content) // 2])
    assert (only(home).kind, only(home).path) == ("truncated", log.name)
    at = content.index(b"samples/q1") + 60
    log.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    assert {(one.kind, one.path) for one in verify(home)} == {("edited", log.name)}


def test_a_log_and_a_record_taken_out_or_changed_are_found(home: Path) -> None:
    logs(home)[0].unlink()
    (home / "experiment.json").write_text('{"schema": 2}\n')
    assert [one.kind for one in verify(home)] == ["deleted", "edited"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r'"rows": 7', '"rows": 8'),
        (r'"book": "test-book"', '"book": "another"'),
        (r'"written": "2', '"written": "1'),
        (r'"root": "[0-9a-f]{4}', '"root": "0000'),
        (r'"history": \[\]', '"history":  []'),
        (r'"schema": "podium-manifest-2"', '"schema": "podium-manifest-9"'),
        (r'"samples": \[\n.*?\n', '"samples": [\n'),
    ],
)
def test_an_edited_manifest_is_found(home: Path, old: str, new: str) -> None:
    text = (home / FILE).read_text()
    edited = re.sub(old, new, text, count=1)
    assert edited != text
    (home / FILE).write_text(edited)
    assert ("edited", FILE) in {(one.kind, one.path) for one in verify(home)}


def test_a_manifest_cut_short_and_one_taken_away_are_found(home: Path) -> None:
    text = (home / FILE).read_text()
    (home / FILE).write_text(text[: len(text) // 2])
    assert (only(home).kind, only(home).path) == ("edited", FILE)
    (home / FILE).unlink()
    assert only(home).kind == "absent"


def test_a_wholesale_rewrite_is_found_by_a_published_root_alone(home: Path) -> None:
    published = read_manifest(home / FILE).root
    logs(home)[0].unlink()
    (home / FILE).unlink()
    write_manifest(home)
    assert verify(home) == ()
    (found,) = verify(home, published)
    assert (found.kind, published in found.said) == ("root", True)
