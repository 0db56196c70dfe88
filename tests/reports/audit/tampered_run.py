"""A run's directory to tamper with: real logs, real journals, a manifest; and zip surgery."""

import shutil
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from podium.harness.ledger.journal import CallOutcome, Head, open_journal
from podium.harness.ledger.logs import open_log
from podium.harness.ledger.manifest import Manifest, write_manifest
from podium.harness.records import Usage
from podium.reports.audit.verify import Finding, verify
from tests.harness.runs import Exam, sit

EXAM = Exam()
Members = list[tuple[str, bytes]]


def made_run(home: Path, exam: Exam = EXAM) -> Manifest:
    """Let two systems sit an exam, write two journals and a record, and take them in."""
    sit(home, "single:sage", exam=exam)
    sit(home, "single:clerk", exam=exam)
    for name in ("single:sage", "single:clerk"):
        journal(home, name, calls=3)
    (home / "experiment.json").write_text('{"schema": 1}\n')
    return write_manifest(home)


def journal(home: Path, system: str, calls: int) -> Path:
    """Write the journal of so many calls."""
    head = Head(f"numbers {system}", "numbers", system, "live", "test-book", "0" * 64)
    made = open_journal(home, head)
    for _ in range(calls):
        add_call(made.intent, made.outcome)
    made.close()
    return made.path


def intent_of(**changes: Any) -> dict[str, Any]:
    """Return a call of 5 bytes that is about to be dispatched."""
    return {
        "scope": "inference",
        "sample": None,
        "role": "sage",
        "step": None,
        "model": "scripted/sage",
        "price_ref": "scripted/sage",
        "service": "standard",
        "prompt_sha256": "0" * 64,
        "prompt_bytes": 5,
        "max_tokens": None,
        "span": None,
        **changes,
    }


def add_call(
    intent: Callable[[dict[str, Any]], str], outcome: Callable[[str, CallOutcome], None]
) -> None:
    """Write down one call; its usage has a key that looks like a digest."""
    call = intent(intent_of())
    said = {"hash": "f" * 64, "input": 3}
    outcome(call, CallOutcome(event=None, usage=Usage(input=3, output=1), raw_usage=said))


def logs(home: Path) -> list[Path]:
    return sorted(home.rglob("*.eval"))


def journals(home: Path) -> list[Path]:
    return sorted(home.rglob("ledger/**/*.jsonl"))


def members(log: Path) -> Members:
    """Return what a log holds, unpacked, in its order."""
    with open_log(log) as opened:
        return [(one.filename, opened.zip.read(one)) for one in opened.zip.infolist()]


def repack(log: Path, contents: Sequence[tuple[str, bytes]]) -> None:
    """Write a log anew."""
    scratch = log.with_suffix(".scratch")
    with zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in contents:
            out.writestr(name, content)
    scratch.replace(log)


def copied(run: Path, to: Path) -> Path:
    """Return a copy of a run that a test may spoil."""
    shutil.copytree(run, to)
    return to


def only(home: Path, *, shared: bool = False) -> Finding:
    """Return the one thing that verifying finds."""
    (found,) = verify(home, shared=shared)
    return found


def rewrite(path: Path, lines: list[bytes]) -> None:
    """Put lines where a file was."""
    path.write_bytes(b"".join(lines))


def first_journal(home: Path) -> tuple[Path, list[bytes], str]:
    """Return a journal, its lines, and its name below the run."""
    path = journals(home)[0]
    return path, path.read_bytes().splitlines(keepends=True), path.relative_to(home).as_posix()
