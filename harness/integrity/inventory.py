"""What lies in a run's directory, as digests: its logs sample by sample, its journals, its records.

Covered is what `podium run` writes and later commands read. Not covered: what is made from it
(reports, exports) and Inspect's own listings, which change with every visit of its viewer.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from harness.errors import UserError
from harness.ledger.chain import read_chain
from harness.ledger.journal import FOLDER
from harness.ledger.raw_log import open_log
from harness.ledger.row import canonical
from harness.records import EMPTY, PODIUM
from harness.reply_cache import FOLDER as STORE

FileKind = Literal["log", "journal", "record"]

RECORDS = ("experiment.json", "openings.jsonl", "oracle/*.json", "learned/*/*.npz")
"""What a run writes down beside logs and journals, here, in `selection/` and below `tuning/`."""

OWN = ("MANIFEST.json", "MANIFEST.sig")
"""What stands for the manifest itself."""

ABOUT = ("suite", "suite_version", "data_revision")

SAMPLES = "samples/"
DEEP = 3
"""Levels of a record that are told apart: an experiment's entries, each by its fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file as it was found."""

    path: str
    """Below the directory, with `/`."""
    kind: FileKind
    sha256: str
    size: int
    """In bytes."""
    rows: int | None = None
    """Lines of a journal, samples of a log; None where it could not be read."""
    last: str | None = None
    """Digest of a journal's last line."""
    faults: tuple[str, ...] = ()
    """What was wrong with a journal's chain already when it was taken in."""
    samples: tuple[tuple[str, str], ...] = ()
    """A log's samples in file order: member, sha256 of its bytes unpacked. Of a record in JSON, its
    parts by name, so that one that took something in is told from one that was changed."""
    rest: str | None = None
    """One digest over a log's other members."""
    about: Mapping[str, str] = field(default_factory=dict[str, str])
    """What a log says of exam, prices and versions."""

    def facts(self) -> dict[str, Any]:
        """Return all but the samples, as plain JSON values."""
        return {
            "path": self.path,
            "kind": self.kind,
            "sha256": self.sha256,
            "bytes": self.size,
            "rows": self.rows,
            "last": self.last,
            "faults": list(self.faults),
            "rest": self.rest,
            "about": dict(self.about),
        }

    def leaves(self) -> Iterator[bytes]:
        """Yield what the tree holds of the file: itself, then each sample, in file order."""
        yield canonical(self.facts())
        for member, digest in self.samples:
            yield canonical([self.path, member, digest])


def covered(log_dir: Path) -> dict[str, FileKind]:
    """Return the files that a manifest is about, in the order of their paths."""
    found: dict[str, FileKind] = {}
    for path in log_dir.rglob("*.eval"):
        found[path.relative_to(log_dir).as_posix()] = "log"
    for path in log_dir.glob(f"{FOLDER}/**/*.jsonl"):
        found[path.relative_to(log_dir).as_posix()] = "journal"
    for pattern in RECORDS:
        for path in log_dir.rglob(pattern):
            found.setdefault(path.relative_to(log_dir).as_posix(), "record")
    # A pipe in the place of a file would be waited for, and a device has no end.
    return {path: found[path] for path in sorted(found) if (log_dir / path).is_file()}


def uncovered(log_dir: Path) -> list[str]:
    """Return the files below a directory that no manifest is about, sorted, hidden ones last.

    The manifest and its signature are left out: `OWN` names them, and `podium` checks them itself.
    So is the store of replies that no log has yet: a run that finishes leaves none.
    """
    files = (path.relative_to(log_dir).as_posix() for path in log_dir.rglob("*") if path.is_file())
    kept = (path for path in files if not path.startswith(f"{STORE}/"))
    outside = {*kept} - covered(log_dir).keys() - set(OWN)
    return sorted(outside, key=lambda path: (path.startswith("."), path))


def inventory(log_dir: Path, known: Mapping[str, Entry]) -> tuple[Entry, ...]:
    """Return every covered file; one whose bytes are those of a `known` entry is not unpacked."""
    made: list[Entry] = []
    for path, kind in covered(log_dir).items():
        file = log_dir / path
        digest, before = file_digest(file), known.get(path)
        same = before is not None and before.sha256 == digest and before.kind == kind
        made.append(before if before is not None and same else _read(file, path, kind, digest))
    return tuple(made)


def file_digest(path: Path, first: int | None = None) -> str:
    """Return the sha256 of a file, or of its first bytes only."""
    with path.open("rb") as file:
        if first is None:
            return hashlib.file_digest(file, "sha256").hexdigest()
        found = hashlib.sha256()
        while first > 0 and (part := file.read(min(first, 1 << 20))):
            found.update(part)
            first -= len(part)
        return found.hexdigest()


def read_entry(log_dir: Path, path: str, kind: FileKind) -> Entry:
    """Return one file as it is now."""
    file = log_dir / path
    return _read(file, path, kind, file_digest(file))


def _read(file: Path, path: str, kind: FileKind, digest: str) -> Entry:
    size = file.stat().st_size
    if kind == "journal":
        chain = read_chain(file)
        faults = tuple(f"line {one.line}: {one.kind}: {one.said}" for one in chain.faults)
        return Entry(
            path=path,
            kind=kind,
            sha256=digest,
            size=size,
            rows=chain.lines,
            last=chain.last,
            faults=faults,
        )
    plain = Entry(path=path, kind=kind, sha256=digest, size=size)
    if path.endswith(".json"):
        return replace(plain, samples=tuple(_parts(file)))
    return _read_log(file, plain) if kind == "log" else plain


def _parts(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the parts of a record in JSON, none of what cannot be read: name, sha256."""
    try:
        parts = dict(_named("", json.loads(file.read_bytes()), DEEP))
        texts = {name: canonical(parts[name]) for name in sorted(parts)}
    except (OSError, ValueError, RecursionError):
        return
    for name, text in texts.items():
        yield name, hashlib.sha256(text).hexdigest()


def _named(name: str, value: object, levels: int) -> Iterator[tuple[str, object]]:
    """Yield what lies in a JSON value, by its path; entries of an experiment go by their names.

    What is empty holds nothing that could be changed later, only added to.
    """
    inside: Mapping[str, object] = EMPTY
    if isinstance(value, dict):
        inside = cast(Mapping[str, object], value)
    elif isinstance(value, list):
        rows = cast(Sequence[object], value)
        inside = {_row_name(at, row): row for at, row in enumerate(rows)}
    if not levels or not isinstance(value, dict | list):
        yield name, value
        return
    for key, one in inside.items():
        yield from _named(f"{name}/{key}" if name else key, one, levels - 1)


def _row_name(at: int, row: object) -> str:
    if not isinstance(row, dict):
        return str(at)
    known = cast(Mapping[str, object], row)
    told = (str(known.get(name) or "") for name in ("suite", "system", "part"))
    return " ".join(told).rstrip() or str(at)


def _read_log(file: Path, plain: Entry) -> Entry:
    """Return a log's entry; one that cannot be read has no rows."""
    try:
        with open_log(file) as log:
            members = [(one.filename, member_digest(log.zip, one)) for one in log.zip.infolist()]
            about = _about(log.header)
    except UserError:
        return plain
    samples = tuple(one for one in members if one[0].startswith(SAMPLES))
    others = [one for one in members if not one[0].startswith(SAMPLES)]
    return Entry(
        path=plain.path,
        kind="log",
        sha256=plain.sha256,
        size=plain.size,
        rows=len(samples),
        samples=samples,
        rest=rest_digest(others),
        about=about,
    )


def rest_digest(members: Sequence[tuple[str, str]]) -> str:
    """Return one digest over members that hold no sample."""
    return hashlib.sha256(canonical([list(one) for one in members])).hexdigest()


def member_digest(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> str:
    """Return the sha256 of a member's bytes, unpacked; `damaged` when they cannot be unpacked."""
    try:
        return hashlib.sha256(archive.read(member)).hexdigest()
    except Exception:  # a damaged member may fail anywhere in zip or zstd
        return "damaged"


def _about(header: Mapping[str, Any]) -> dict[str, str]:
    ran = _table(header, "eval")
    facts = _table(_table(ran, "metadata"), PODIUM)
    book = _table(facts, "prices")
    found = {name: facts.get(name) for name in ABOUT}
    found |= {"book": book.get("name"), "book_date": book.get("date")}
    found |= {"book_sha256": book.get("sha256")}
    found |= {"inspect": _table(ran, "packages").get("inspect_ai")}
    found |= {"commit": _table(ran, "revision").get("commit")}
    return {name: str(value) for name, value in found.items() if value}


def originals(file: Path) -> tuple[tuple[str, str], ...] | None:
    """Return the digests that a redacted copy keeps of its original samples; None in others."""
    try:
        with open_log(file) as log:
            facts = _table(_table(_table(log.header, "eval"), "metadata"), PODIUM)
    except UserError:
        return None
    kept = _table(facts, "originals")
    return tuple((name, str(kept[name])) for name in kept) if facts.get("redacted") else None


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a table within a header; an empty one where a log has something else."""
    found: object = data.get(name)
    return cast(Mapping[str, Any], found) if isinstance(found, Mapping) else EMPTY
