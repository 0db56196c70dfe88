"""MANIFEST.json: the files of a run's directory when the run ended, and one digest over them.

It lists the files that `podium run` writes and later commands read. The digest is a Merkle root
(RFC 6962, section 2.1). Its leaves: the head (versions, price books, earlier manifests), then each
file by path, a log followed by its samples, so that a partial or redacted log can be checked by
sample.
"""

import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import TypeAdapter, ValidationError

from podium.harness.errors import UserError, first_fault
from podium.harness.files import DOCUMENT, parse_json, read_limited, regular_size, replace_file
from podium.harness.ledger.call import canonical
from podium.harness.ledger.journal import FOLDER, read_chain
from podium.harness.ledger.logs import heed_private, open_log
from podium.harness.records import EMPTY, PODIUM
from podium.harness.reply_cache import FOLDER as STORE
from podium.harness.shards.plan import FIGURES, outside_shards, shard_dirs
from podium.harness.shards.plan import FILE as PLAN
from podium.harness.shards.plan import FOLDER as SHARDS
from podium.harness.text import pluralise

EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf(data: bytes) -> bytes:
    """Return the RFC 6962 hash of a Merkle leaf with this data."""
    return hashlib.sha256(b"\x00" + data).digest()


def node(left_digest: bytes, right_digest: bytes) -> bytes:
    """Return the RFC 6962 hash of an inner node with these two children."""
    return hashlib.sha256(b"\x01" + left_digest + right_digest).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """Return the Merkle root of leaf hashes, in the given order."""
    # RFC 6962 splits n leaves at the largest power of two below n. Pairing neighbours on each level
    # and moving an odd last node up unchanged gives the same tree.
    level = list(leaves)
    while len(level) > 1:
        paired = [node(*level[index : index + 2]) for index in range(0, len(level) - 1, 2)]
        level = [*paired, level[-1]] if len(level) % 2 else paired
    return level[0] if level else EMPTY_ROOT


FileKind = Literal["log", "journal", "record", "beside"]
"""Kind of a file in a manifest. `beside`: a file that no run writes, listed as it was when the
manifest was written."""

RECORDS = ("experiment.json", "openings.jsonl", "agreed.jsonl", "oracle/*.json", "learned/*/*.npz")
"""Glob patterns of a run's files that are neither logs nor journals, in any folder of the run."""

OWN = ("MANIFEST.json", "MANIFEST.sig", "MANIFEST.tsr", "MANIFEST.tsq", "verify.py")
"""The manifest, its signature and time-stamp files, and the script that recomputes the table
without podium."""

LATER_FILES = re.compile(
    r"(?:.*/)?(?:logs\.json|eval-set\.json|\.eval-set-id)"
    r"|report/(?:(?:table|paper|references|plot|targets|against|gate)\.[a-z]+)"
)
"""Files that Inspect and `podium report` may rewrite after a run: a manifest omits them. The audit
recomputes a table's figures instead (invariant I13)."""

OF_SHARDS = (PLAN, "leases.jsonl")
BESIDE_SHARDS = ("lease-server.json",)
OF_A_SHARD = {FIGURES, "outcome.json"}
"""Files of a shard (a part of a run) that may be deleted: figures can be recomputed, and logs
record how the shard ended."""

ABOUT = ("suite", "suite_version", "data_revision")

SAMPLES = "samples/"
DEEP = 3
"""Nesting levels down to which a JSON record is split into parts, each with a digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """The manifest's entry for one file."""

    path: str
    """The file's path relative to the run's directory, with `/`."""
    kind: FileKind
    sha256: str
    size: int
    rows: int | None = None
    """Number of a journal's lines or a log's samples; None for other or unreadable files."""
    last: str | None = None
    faults: tuple[str, ...] = ()
    """Faults of a journal's hash chain at the time when the manifest was written."""
    samples: tuple[tuple[str, str], ...] = ()
    """Of a log: each sample's zip member and the sha256 of its unpacked bytes, in file order. Of a
    JSON record: each part's name and sha256, which tell an addition from a change."""
    rest: str | None = None
    about: Mapping[str, str] = field(default_factory=dict[str, str])
    link: bool = False
    """Whether the file, or a folder above it, was a symbolic link."""

    def facts(self) -> dict[str, Any]:
        """Return all fields except the samples, as plain JSON values."""
        names = ("path", "kind", "sha256", "size", "rows", "last", "faults", "rest", "about")
        facts = {"bytes" if name == "size" else name: getattr(self, name) for name in names}
        linked = {"link": True} if self.link else {}
        return {**facts, "faults": list(self.faults), "about": dict(self.about), **linked}

    def leaves(self) -> Iterator[bytes]:
        """Yield the data of the file's Merkle leaves: its entry, then each sample in file order."""
        yield canonical(self.facts())
        yield from (canonical([self.path, *sample]) for sample in self.samples)


def covered(log_dir: Path) -> dict[str, FileKind]:
    """Return the paths and kinds of the files that a run itself wrote, sorted by path."""
    patterns: dict[str, FileKind] = {f"**/{record}": "record" for record in RECORDS}
    patterns |= {f"{FOLDER}/**/*.jsonl": "journal", "**/*.eval": "log"}
    kinds: dict[Path, FileKind] = {}
    for pattern, kind in patterns.items():
        for path in outside_shards(log_dir, log_dir.glob(pattern)):
            kinds[path] = kind
    if shards := shard_dirs(log_dir):
        shard_files = (*(shard / FILE for shard in shards), *(log_dir / name for name in OF_SHARDS))
        for path in shard_files:
            kinds[path] = "record"
    # Reading a pipe could block for ever, and a device has no end.
    return {
        path.relative_to(log_dir).as_posix(): kinds[path]
        for path in sorted(kinds)
        if path.is_file()
    }


def uncovered(log_dir: Path) -> list[str]:
    """Return the files in a run's directory that no run wrote, sorted, hidden files last."""
    # Omits `OWN`, which `podium` checks, and the reply cache, which a run removes when it finishes.
    shards = shard_dirs(log_dir)
    files = (path for path in log_dir.rglob("*") if path.is_symlink() or not path.is_dir())
    names = (path.relative_to(log_dir).as_posix() for path in outside_shards(log_dir, files))
    paths = (path for path in names if not path.startswith(f"{STORE}/"))
    outside = {*paths} - covered(log_dir).keys() - {*OWN, *(BESIDE_SHARDS if shards else ())}
    for shard in shards:
        shard_files = {*uncovered(shard)} - OF_A_SHARD
        outside |= {f"{SHARDS}/{shard.name}/{path}" for path in shard_files}
    return sorted(outside, key=lambda path: (path.startswith("."), path))


def beside(log_dir: Path) -> list[str]:
    """Return the files that neither a run nor a report writes (kind `beside` in a manifest)."""
    inside_shards = f"{SHARDS}/" if shard_dirs(log_dir) else "\0"
    return [
        path
        for path in uncovered(log_dir)
        if not LATER_FILES.fullmatch(path)
        and path not in OF_A_SHARD
        and not path.startswith(inside_shards)
    ]


def is_link(log_dir: Path, path: str) -> bool:
    """Return whether a file below `log_dir`, or a folder in between, is a symbolic link."""
    places = (log_dir / path, *(log_dir / path).parents)
    return any(place.is_symlink() for place in places if log_dir in place.parents)


def file_digest(path: Path, size: int | None = None) -> str:
    """Return the sha256 of a file, or of its first `size` bytes."""
    with path.open("rb") as file:
        if size is None:
            return hashlib.file_digest(file, "sha256").hexdigest()
        digest = hashlib.sha256()
        while size > 0 and (chunk := file.read(min(size, 1 << 20))):
            digest.update(chunk)
            size -= len(chunk)
        return digest.hexdigest()


def read_entry(log_dir: Path, path: str, kind: FileKind) -> FileEntry:
    """Return the manifest entry of a file in its present state; `path` is relative to `log_dir`."""
    file = log_dir / path
    digest, size = file_digest(file), file.stat().st_size
    link = is_link(log_dir, path)
    plain = FileEntry(path=path, kind=kind, sha256=digest, size=size, link=link)
    if kind == "beside":
        return plain
    if kind == "journal":
        chain = read_chain(file)
        faults = tuple(f"line {fault.line}: {fault.kind}: {fault.said}" for fault in chain.faults)
        return replace(plain, rows=chain.lines, last=chain.last, faults=faults)
    if file.name == FILE:
        return replace(plain, last=_root_of(file))
    if path.endswith(".json"):
        return replace(plain, samples=_parts(file))
    return _read_log(file, plain) if kind == "log" else plain


def _root_of(file: Path) -> str | None:
    """Return the Merkle root that a shard's manifest states, unchecked; None if unreadable."""
    try:
        return read_manifest(file).root
    except UserError:
        return None


def _parts(file: Path) -> tuple[tuple[str, str], ...]:
    try:
        values = dict(_named("", json.loads(file.read_bytes()), DEEP))
        texts = [(name, canonical(values[name])) for name in sorted(values)]
    except (OSError, ValueError, RecursionError):
        return ()
    return tuple((name, hashlib.sha256(text).hexdigest()) for name, text in texts)


def _named(name: str, value: object, levels: int) -> Iterator[tuple[str, object]]:
    """Yield (path, value) of each part of a JSON value, down to `levels` levels of nesting."""
    # An empty dict or list has no part, since it can only be added to.
    if not levels or not isinstance(value, dict | list):
        yield name, value
        return
    if isinstance(value, dict):
        inside = cast(Mapping[str, object], value)
    else:
        rows = cast(Sequence[object], value)
        inside = {_row_name(index, row): row for index, row in enumerate(rows)}
    for key, child in inside.items():
        yield from _named(f"{name}/{key}" if name else key, child, levels - 1)


def _row_name(index: int, row: object) -> str:
    if not isinstance(row, dict):
        return str(index)
    fields = cast(Mapping[str, object], row)
    labels = (str(fields.get(name) or "") for name in ("suite", "system", "part"))
    return " ".join(labels).rstrip() or str(index)


def _read_log(file: Path, plain: FileEntry) -> FileEntry:
    try:
        with open_log(file) as log:
            infos = log.zip.infolist()
            members = [(info.filename, _member_digest(log.zip, info)) for info in infos]
            about = _about(log.header)
    except UserError:
        return plain
    samples = tuple(member for member in members if member[0].startswith(SAMPLES))
    other_members = [[*member] for member in members if not member[0].startswith(SAMPLES)]
    rest_digest = hashlib.sha256(canonical(other_members)).hexdigest()
    return replace(plain, rows=len(samples), samples=samples, rest=rest_digest, about=about)


def _member_digest(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> str:
    """Return the sha256 of a zip member's unpacked bytes; `damaged` if it cannot be unpacked."""
    try:
        return hashlib.sha256(archive.read(member)).hexdigest()
    except Exception:  # a damaged member may fail anywhere in zip or zstd
        return "damaged"


def _about(header: Mapping[str, Any]) -> dict[str, str]:
    ran = _table(header, "eval")
    facts = _table(_table(ran, "metadata"), PODIUM)
    book = _table(facts, "prices")
    values = {name: facts.get(name) for name in ABOUT}
    values |= {"book": book.get("name"), "book_date": book.get("date")}
    values |= {"book_sha256": book.get("sha256")}
    values |= {"inspect": _table(ran, "packages").get("inspect_ai")}
    values |= {"commit": _table(ran, "revision").get("commit")}
    return {name: str(value) for name, value in values.items() if value}


def originals(file: Path) -> tuple[tuple[str, str], ...] | None:
    """Return the digests of original samples that a redacted log holds; None for other logs."""
    try:
        with open_log(file) as log:
            facts = _table(_table(_table(log.header, "eval"), "metadata"), PODIUM)
    except UserError:
        return None
    digests = _table(facts, "originals")
    return tuple((name, str(digests[name])) for name in digests) if facts.get("redacted") else None


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value: object = data.get(name)
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else EMPTY


FILE, SIGNATURE, STAMP, QUERY, WITNESS = OWN
WITNESS_SOURCE = Path(__file__).with_name("witness.py")
SCHEMA = "podium-manifest-2"
OLDER = "podium-manifest-1"
"""Earlier schema: without verify.py, files of the kind `beside` and the field `link`."""
ORDER = "head, then files by path, each log followed by its samples in file order"


@dataclass(frozen=True, slots=True)
class EarlierRoot:
    """A manifest that a later one replaced: its Merkle root, and the changes until the next one."""

    root: str
    """Merkle root; empty if that manifest was unreadable or did not match its own root."""
    written: str
    files: int
    leaves: int
    changed: tuple[str, ...] = ()
    """Files of that manifest that the next one lacks or has changed, beyond expected changes."""
    added: tuple[str, ...] = ()
    """Files that only the next manifest lists."""
    grown: tuple[str, ...] = ()
    """Files with only such changes as a resumed run makes, e.g. lines added at the end."""

    def facts(self) -> dict[str, Any]:
        """Return all fields as plain values; the newer `added` and `grown` only if not empty."""
        # Older manifests lack those fields; without empty ones, their root stays the same.
        return {name: value for name, value in asdict(self).items() if value or name not in LATER}

    def __str__(self) -> str:
        heading = f"root {self.root or 'none'} of {self.written or 'an unknown time'}"
        changes = (("changed or gone", self.changed), ("added", self.added), ("grown", self.grown))
        return f"{heading}: " + "; ".join(
            f"{pluralise(len(names), 'file')} {change} since" for change, names in changes if names
        )


LATER = ("added", "grown")
GROWS = re.compile(
    r"(?:limit|box|train_calls|train_on|overflows)|(?:epochs|suite_versions|images)/.*"
)
"""Parts of experiment.json that a resumed or regraded run may change; logs record them, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A run's files, price books and suites; `root` is the Merkle root of all other fields."""

    schema: Literal["podium-manifest-1", "podium-manifest-2"] = SCHEMA
    podium: str
    inspect: str
    order: str = ORDER
    written: str
    books: tuple[Mapping[str, str], ...]
    suites: tuple[Mapping[str, str], ...]
    history: tuple[EarlierRoot, ...]
    """Earlier manifests, oldest first: a resumed or extended run appends the replaced manifest."""
    files: tuple[FileEntry, ...]
    root: str = ""

    @property
    def of_run(self) -> tuple[FileEntry, ...]:
        """The entries of the files that the run wrote."""
        return tuple(entry for entry in self.files if entry.kind != "beside")

    def head(self) -> dict[str, Any]:
        """Return the content of the first Merkle leaf: all fields but the files and the root."""
        names = ("schema", "podium", "inspect", "order", "written")
        return {name: getattr(self, name) for name in names} | {
            "books": [dict(book) for book in self.books],
            "suites": [dict(suite) for suite in self.suites],
            "history": [earlier.facts() for earlier in self.history],
        }

    def leaves(self) -> list[bytes]:
        """Return the hashes of all Merkle leaves, in the order that `order` states."""
        leaf_data = [canonical(self.head())]
        leaf_data += (data for entry in self.files for data in entry.leaves())
        return [leaf(data) for data in leaf_data]

    def computed(self) -> str:
        """Return the Merkle root, in hex, computed from all other fields."""
        return root(self.leaves()).hex()

    def as_bytes(self) -> bytes:
        """Return the bytes of MANIFEST.json, with one line per sample."""
        files = [
            {**entry.facts(), "samples": [f"{digest}  {name}" for name, digest in entry.samples]}
            for entry in self.files
        ]
        data = {**self.head(), "files": files, "root": self.root}
        return json.dumps(data, indent=1, ensure_ascii=False).encode() + b"\n"


_FILE = TypeAdapter(Manifest)


def write_manifest(log_dir: Path, *, anew: bool = False) -> Manifest:
    """Return a directory's manifest, rewritten if a file of the run (`anew`: any file) changed."""
    # The earlier manifest goes into the history, with the files changed, added or grown since.
    previous, damaged = _before(log_dir)
    heed_private(log_dir.glob("**/*.eval"))
    previous_entries = {file.path: file for file in previous.of_run} if previous else {}
    entries: list[FileEntry] = []
    for path, kind in covered(log_dir).items():
        entry = previous_entries.get(path)
        if not entry or entry.kind != kind or file_digest(log_dir / path) != entry.sha256:
            entry = read_entry(log_dir, path, kind)  # an unchanged log is not unpacked again
        entries.append(entry)
    same = previous is not None and previous.of_run == tuple(entries) and not damaged
    if previous is not None and same and not anew:
        return previous
    replace_file(log_dir / WITNESS, WITNESS_SOURCE.read_bytes())
    regular = (path for path in (WITNESS, *beside(log_dir)) if (log_dir / path).is_file())
    extra_entries = [read_entry(log_dir, path, "beside") for path in regular]
    files = tuple(sorted((*entries, *extra_entries), key=lambda file: file.path))
    if previous is not None and previous.files == files and not damaged:
        return previous
    history = previous.history if previous else ()
    if previous is not None:
        history += (_earlier(previous, log_dir, entries),)
    if damaged:
        history += (EarlierRoot("", "", 0, 0, (damaged,)),)
    manifest = Manifest(
        podium=version("podium"),
        inspect=version("inspect-ai"),
        written=datetime.now(UTC).isoformat(timespec="seconds"),
        books=_distinct(files, ("book", "book_date", "book_sha256")),
        suites=_distinct(files, ABOUT),
        history=history,
        files=files,
    )
    manifest = replace(manifest, root=manifest.computed())
    replace_file(log_dir / FILE, manifest.as_bytes())
    return manifest


def read_manifest(path: Path) -> Manifest:
    """Return a manifest without checking it; UserError if the file is no manifest."""
    try:
        content = read_limited(path, DOCUMENT)
        data = parse_json(content)
        if b"\\ud" in content.lower():  # a lone surrogate has no bytes, and so no digest
            json.dumps(data, ensure_ascii=False).encode()
        for entry in data["files"]:
            entry["size"] = entry.pop("bytes")
            entry["samples"] = [tuple(reversed(line.split("  ", 1))) for line in entry["samples"]]
        return _FILE.validate_python(data)
    except FileNotFoundError as error:
        raise UserError(f"There is no {path}. Make one with `podium manifest write`.") from error
    except ValidationError as error:
        field_path, message = first_fault(error)
        raise UserError(
            f"{path} is not a manifest (field {field_path}: {message}). Restore it."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not a manifest, or is incomplete. Restore it.") from error


def changed(log_dir: Path, old: Iterable[FileEntry], new: Iterable[FileEntry]) -> tuple[str, ...]:
    """Return a line for each file that is gone or changed, except if the change `is_expected`."""
    here = {entry.path: entry for entry in new}
    lines: list[str] = []
    for entry in old:
        now = here.get(entry.path)
        if now is None:
            lines.append(f"{entry.path}: gone (it was sha256 {entry.sha256})")
        elif now.sha256 != entry.sha256 and not is_expected(log_dir, entry, now):
            names = ", ".join(changed_parts(entry, now))
            change = f"{names} changed" if names else "changed"
            lines.append(f"{entry.path}: {change} (it was sha256 {entry.sha256})")
    return tuple(lines)


def changed_parts(old: FileEntry, now: FileEntry) -> tuple[str, ...]:
    """Return a JSON record's parts that are gone or changed, except those in `GROWS`."""
    if old.kind != "record":
        return ()
    here = dict(now.samples)
    names = (name for name, digest in old.samples if here.get(name) != digest)
    return tuple(name for name in names if not GROWS.fullmatch(name))


def is_expected(log_dir: Path, old: FileEntry, now: FileEntry) -> bool:
    """Return whether a file's change is one that a resumed or regraded run makes."""
    # Journals and access logs grow at their end; experiment.json gains systems, an oracle's record
    # gains plans. Entries of older manifests cannot tell such an addition from a change.
    if now.path.endswith(f"/{FILE}"):  # a shard's manifest lists the roots that it replaced
        return any(entry.root == old.last for entry in read_manifest(log_dir / now.path).history)
    if now.path.endswith(".json"):
        return not changed_parts(old, now) and bool(now.samples)
    return now.size > old.size and file_digest(log_dir / now.path, old.size) == old.sha256


def _before(log_dir: Path) -> tuple[Manifest | None, str]:
    path = log_dir / FILE
    if not path.exists():
        return None, ""
    regular_size(path)
    try:
        manifest = read_manifest(path)
    except UserError:
        manifest = None
    if manifest is not None and manifest.computed() == manifest.root:
        return manifest, ""
    return None, f"{FILE}: did not match itself (sha256 {file_digest(path)}) and was replaced"


def _earlier(previous: Manifest, log_dir: Path, files: Iterable[FileEntry]) -> EarlierRoot:
    by_path = {entry.path: entry for entry in previous.of_run}
    pairs = [(by_path[entry.path], entry) for entry in files if entry.path in by_path]
    return EarlierRoot(
        root=previous.root,
        written=previous.written,
        files=len(previous.files),
        leaves=1 + sum(1 + len(entry.samples) for entry in previous.files),
        changed=changed(log_dir, previous.of_run, files),
        added=tuple(entry.path for entry in files if entry.path not in by_path),
        grown=tuple(
            now.path
            for old, now in pairs
            if now.sha256 != old.sha256 and is_expected(log_dir, old, now)
        ),
    )


def _distinct(files: Iterable[FileEntry], names: tuple[str, ...]) -> tuple[dict[str, str], ...]:
    rows = {tuple(entry.about.get(name, "") for name in names) for entry in files if entry.about}
    return tuple(dict(zip(names, row, strict=True)) for row in sorted(rows) if any(row))
