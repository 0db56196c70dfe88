"""What a manifest of today sees beside the files of a run: edits, strangers, links, verify.py."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.ledger.manifest import FILE, SCHEMA, read_manifest, write_manifest
from podium.reports.audit.verify import verify
from tests.reports.audit.tampered_run import copied

RUN = (
    *("run", "--suite", "practice-integer", "--limit", "2", "--system", "moa-lite"),
    *("--time-scale", "0"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with its report."""
    home = tmp_path_factory.mktemp("sealed") / "run"
    assert main([*RUN, "--log-dir", str(home)]) == 0
    assert main(["report", str(home)]) == 0
    return home


@pytest.fixture
def home(run: Path, tmp_path: Path) -> Path:
    """Return a copy of the run that a test may spoil."""
    return copied(run, tmp_path / "run")


def edit(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" \n")


def link(path: Path) -> None:
    """Put a link in the place of a file or a folder, which leads to the same bytes."""
    away = path.parents[3] / f"{path.name}-elsewhere"
    shutil.move(path, away)
    path.symlink_to(away)


def first(home: Path, pattern: str) -> Path:
    return next(home.glob(pattern))


def sealed(home: Path) -> None:
    """Put a file of the user's beside a run, and take it in."""
    (home / "notes.txt").write_text("mine")
    assert main(["manifest", "write", str(home)]) == 0


def sealed_and(change: Callable[[Path], object]) -> Callable[[Path], None]:
    def both(home: Path) -> None:
        sealed(home)
        change(home / "notes.txt")

    return both


SPOILT: dict[str, tuple[str, Callable[[Path], object], int]] = {
    "table.md": ("table.md: it was edited", lambda home: edit(home / "report/table.md"), 1),
    "table.csv": ("table.csv: it was edited", lambda home: edit(home / "report/table.csv"), 1),
    "verify.py": ("edited", lambda home: edit(home / "verify.py"), 1),
    "no verify.py": ("deleted", lambda home: (home / "verify.py").unlink(), 1),
    "linked log": ("symbolic link", lambda home: link(first(home, "*.eval")), 1),
    "linked journal": ("symbolic link", lambda home: link(first(home, "ledger/*/*.jsonl")), 1),
    "linked folder": ("symbolic link", lambda home: link(first(home, "ledger/*")), 1),
    "linked verify.py": ("symbolic link", lambda home: link(home / "verify.py"), 1),
    "extra json": ("extra.json: inserted", lambda home: (home / "extra.json").write_text("{}"), 0),
    "deep extra": ("ledger/x: inserted", lambda home: (home / "ledger/x").write_text(""), 0),
    "in the report": ("inserted", lambda home: (home / "report/x.json").write_text("{}"), 0),
    "extra link": ("inserted", lambda home: (home / "away").symlink_to("/"), 0),
    "edited notes": ("notes.txt: edited", sealed_and(edit), 0),
    "removed notes": ("notes.txt: deleted", sealed_and(Path.unlink), 0),
}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_strict_audit_names_what_was_changed_beside_a_run(
    home: Path, spoilt: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named, change, plain = SPOILT[spoilt]
    change(home)
    capsys.readouterr()
    assert main(["audit", str(home), "--strict"]) == 1
    assert named in " ".join(capsys.readouterr().out.split())
    assert main(["audit", str(home)]) == plain


def test_a_run_with_a_report_and_notes_that_were_taken_in_is_strictly_clean(home: Path) -> None:
    assert main(["audit", str(home), "--strict"]) == 0
    sealed(home)
    assert verify(home) == ()
    assert main(["report", str(home), "--latex"]) == 0
    assert main(["audit", str(home), "--strict"]) == 0
    assert [one.changed for one in read_manifest(home / FILE).history] == [()]


def test_a_hard_link_and_a_link_that_was_there_from_the_start_are_no_findings(home: Path) -> None:
    log = first(home, "*.eval")
    (home.parent / "hard").hardlink_to(log)
    assert verify(home) == ()
    (home / FILE).unlink()
    link(first(home, "ledger/*/*.jsonl"))
    write_manifest(home)
    assert verify(home) == ()


def test_a_manifest_of_before_is_held_to_what_it_lists(home: Path) -> None:
    stored = json.loads((home / FILE).read_text())
    assert stored["schema"] == SCHEMA
    (home / FILE).unlink()
    made = write_manifest(home)
    older = old_form(home)
    edit(home / "verify.py")
    (home / "extra.json").write_text("{}")
    assert verify(home) == ()
    assert main(["manifest", "verify", str(home)]) == 0
    assert older != made.root
    assert write_manifest(home).root == older, "a run that asks nothing leaves it"
    assert main(["manifest", "write", str(home)]) == 0
    assert read_manifest(home / FILE).schema == SCHEMA
    assert verify(home) == ()


def old_form(home: Path) -> str:
    """Rewrite a manifest as it was before it listed files beside the run; return its root."""
    from dataclasses import replace

    now = read_manifest(home / FILE)
    then = replace(now, schema="podium-manifest-1", files=now.of_run)
    then = replace(then, root=then.computed())
    (home / FILE).write_bytes(then.as_bytes())
    return then.root
