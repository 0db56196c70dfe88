"""A small run with a journal, and every way to tamper with it, for tests of the ledger and audit.

`sat(tmp_path)` is `runs.sit` as `podium run` makes it: each call is written down before and after.
`edit_log` and `edit_journal` change single values of the files afterwards; a journal's chain is
made whole again unless the broken chain is what is tested.
"""

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalLog

from podium.harness.budget import Spend
from podium.harness.context import run_context
from podium.harness.ledger.call import Call, canonical
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.journal import BEGINNING, Head
from podium.harness.ledger.recorder import TaskJournal
from podium.harness.ledger.runs import system_runs_below
from podium.harness.system import System
from podium.reports.audit import Audit, audit
from tests.harness.runs import BOOK, Crew, Exam, sit, steps

Json = dict[str, Any]
CREW, EXAM = Crew(), Exam()


def sat(
    log_dir: Path,
    name: str = "pair",
    system: System | None = None,
    crew: Crew = CREW,
    *,
    label: str = "live",
    exam: Exam = EXAM,
    **more: Any,
) -> list[EvalLog]:
    """Let a system sit the exam, its calls written down; the same call again resumes."""
    task = f"{exam.name} {name}"
    head = Head(task, exam.name, name, label, BOOK.name, BOOK.sha256)
    journal = TaskJournal(log_dir, head)
    try:
        with run_context(log_dir=log_dir, journal=journal, spend=Spend(BOOK)):
            made = steps("sage", "clerk") if system is None else system
            return sit(log_dir, name, made, crew, exam=exam, label=label, **more)
    finally:
        journal.close()


def rows_below(folder: Path) -> list[Call]:
    """Return the rows of all sittings below a directory."""
    return [row for files in system_runs_below(folder) for row in rows_of(files)]


def failing(folder: Path, *, strict: bool = False) -> set[str]:
    """Return the invariants that fail."""
    return {one.invariant for one in audit(folder, strict=strict).verdicts if one.status == "fail"}


def said(found: Audit, invariant: str) -> str:
    """Return all that an audit says of one invariant."""
    (verdict,) = [one for one in found.verdicts if one.invariant == invariant]
    faults = [f"{one.where}: {one.said}" for one in verdict.faults]
    return "\n".join([verdict.status, *(reason for reason, _ in verdict.reasons), *faults])


def edit_log(path: Path, change: Callable[[str, Json], Json | None]) -> None:
    """Rewrite a log; `change` is given each JSON object and its name, None leaves a member out."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in members.items():
            found: Any = json.loads(data)
            kept = change(name, found) if isinstance(found, dict) else found
            if kept is not None:
                new.writestr(name, json.dumps(kept))


def edit_samples(folder: Path, change: Callable[[Json], None]) -> None:
    """Change the samples of every log below a directory."""

    def changed(name: str, found: Json) -> Json:
        if name.startswith("samples/"):
            change(found)
        return found

    for path in folder.glob("**/*.eval"):
        edit_log(path, changed)


def model_events(sample: Json) -> list[Json]:
    """Return the model events of a raw sample."""
    return [event for event in sample["events"] if event["event"] == "model"]


def edit_journal(
    folder: Path, change: Callable[[Json], Json | None], *, whole: bool = True
) -> None:
    """Rewrite the journals below a directory; `whole` gives them a chain that holds."""
    for path in folder.glob("**/ledger/*/*.jsonl"):
        last, lines = BEGINNING, list[bytes]()
        for text in path.read_text().splitlines():
            line = change(json.loads(text))
            if line is None:
                continue
            if whole:
                line = {**line, "prev": last}
                line.pop("hash")
                last = hashlib.sha256(canonical(line)).hexdigest()
                line["hash"] = last
            lines.append(canonical(line) + b"\n")
        path.write_bytes(b"".join(lines))


def of_kind(kind: str, change: Callable[[Json], Json | None]) -> Callable[[Json], Json | None]:
    """Return a change of lines of one kind only, the first of them."""
    done: list[str] = []

    def changed(line: Json) -> Json | None:
        if line["kind"] != kind or done:
            return line
        done.append(kind)
        return change(line)

    return changed
