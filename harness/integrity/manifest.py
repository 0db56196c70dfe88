"""`MANIFEST.json`: what a run's directory held when the run ended, and one digest over all of it.

The root is a Merkle root (harness/integrity/merkle.py) over everything the manifest says but the
root itself: first the head (versions, books, history), then each file by path, each log followed by
its samples. So one published line of hex fixes a whole run, and a log that is shared in part, or
redacted, can still be checked sample by sample. Finding what was changed is tampering.py; who
vouches for the manifest is signing.py.
"""

import json
import re
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from harness.atomic_write import replace_file
from harness.errors import UserError
from harness.file_limits import DOCUMENT, read_limited, regular
from harness.integrity import merkle
from harness.integrity.inventory import OWN, Entry, covered, file_digest, inventory
from harness.ledger.row import canonical
from harness.parsing import parse_json
from harness.plural import counted

FILE, SIGNATURE = OWN
SCHEMA = "podium-manifest-1"
ORDER = "head, then files by path, each log followed by its samples in file order"


@dataclass(frozen=True, slots=True)
class Earlier:
    """A manifest that stood here before this one."""

    root: str
    """Empty when it did not match itself."""
    written: str
    files: int
    leaves: int
    changed: tuple[str, ...] = ()
    """What this one had and its successor has no more, or has otherwise: not merely grown."""
    added: tuple[str, ...] = ()
    """Files of its successor that it lacks."""
    grown: tuple[str, ...] = ()
    """Files that go on where it ends, as a run that goes on makes them."""

    def facts(self) -> dict[str, Any]:
        """Return it as plain values; what was not told in older manifests only where there is any.

        The root of an older manifest stays what it was.
        """
        return {name: value for name, value in asdict(self).items() if value or name not in LATER}

    def __str__(self) -> str:
        said = f"root {self.root or 'none'} of {self.written or 'an unknown time'}"
        changes = (("changed or gone", self.changed), ("added", self.added), ("grown", self.grown))
        return f"{said}: " + "; ".join(
            f"{counted(len(names), 'file')} {what} since" for what, names in changes if names
        )


LATER = ("added", "grown")
GROWS = re.compile(r"(?:limit|box|train_calls|train_on)|(?:epochs|suite_versions|images)/.*")
"""Parts of an experiment's record that a run which goes on, or is graded again, may change: what
was asked, and by which version it was graded, the logs say for themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A run's files and what they are about; `root` is over all of the rest."""

    schema: Literal["podium-manifest-1"] = SCHEMA
    podium: str
    """Version that wrote the manifest."""
    inspect: str
    order: str = ORDER
    written: str
    books: tuple[Mapping[str, str], ...]
    suites: tuple[Mapping[str, str], ...]
    history: tuple[Earlier, ...]
    """Oldest first: a run that is resumed or extended appends to it."""
    files: tuple[Entry, ...]
    root: str = ""

    def head(self) -> dict[str, Any]:
        """Return what the first leaf says: all but the files and the root."""
        return {
            "schema": self.schema,
            "podium": self.podium,
            "inspect": self.inspect,
            "order": self.order,
            "written": self.written,
            "books": [dict(one) for one in self.books],
            "suites": [dict(one) for one in self.suites],
            "history": [one.facts() for one in self.history],
        }

    def leaves(self) -> list[bytes]:
        """Return the digests of all leaves, in the declared order."""
        parts = [canonical(self.head())]
        parts += (part for entry in self.files for part in entry.leaves())
        return [merkle.leaf(part) for part in parts]

    def computed(self) -> str:
        """Return the root as it follows from the rest."""
        return merkle.root(self.leaves()).hex()

    def as_bytes(self) -> bytes:
        """Return the file's one form: a line to a sample."""
        files = [
            {**one.facts(), "samples": [f"{digest}  {name}" for name, digest in one.samples]}
            for one in self.files
        ]
        data = {**self.head(), "files": files, "root": self.root}
        return json.dumps(data, indent=1, ensure_ascii=False).encode() + b"\n"


_FILE = TypeAdapter(Manifest)


def write_manifest(log_dir: Path) -> Manifest:
    """Write what a directory holds now; a manifest that still says so is left as it is.

    The manifest that stood here before goes into the history, with what was changed since then
    apart from files that were added and journals that have grown.
    """
    before, damaged = _before(log_dir)
    known = {one.path: one for one in before.files} if before else {}
    files = inventory(log_dir, known)
    if before is not None and before.files == files and not damaged:
        return before
    history = before.history if before else ()
    if before is not None:
        history += (_earlier(before, log_dir, files),)
    if damaged:
        history += (Earlier("", "", 0, 0, (damaged,)),)
    made = Manifest(
        podium=version("podium"),
        inspect=version("inspect-ai"),
        written=datetime.now(UTC).isoformat(timespec="seconds"),
        books=_distinct(files, ("book", "book_date", "book_sha256")),
        suites=_distinct(files, ("suite", "suite_version", "data_revision")),
        history=history,
        files=files,
    )
    made = replace(made, root=made.computed())
    replace_file(log_dir / FILE, made.as_bytes())
    return made


@contextmanager
def manifested(log_dir: Path) -> Generator[None]:
    """Write the manifest when the run within ends, whether it finished or can be resumed."""
    try:
        yield
    finally:
        if covered(log_dir):
            write_manifest(log_dir)


def read_manifest(path: Path) -> Manifest:
    """Return a manifest as it stands, true or not; UserError when it is none."""
    try:
        content = read_limited(path, DOCUMENT)
        data = parse_json(content)
        if b"\\ud" in content.lower():  # half a character has no bytes, and so no digest
            json.dumps(data, ensure_ascii=False).encode()
        for one in data["files"]:
            one["size"] = one.pop("bytes")
            one["samples"] = [tuple(reversed(line.split("  ", 1))) for line in one["samples"]]
        return _FILE.validate_python(data)
    except FileNotFoundError as error:
        raise UserError(f"There is no {path}; `podium manifest write` makes one.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{path} is no manifest (field {where}: {first['msg']}).") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is no manifest, or was cut short; restore it.") from error


def changed(log_dir: Path, old: Iterable[Entry], new: Iterable[Entry]) -> tuple[str, ...]:
    """Return which files are gone or changed; files that only grew at their end are left out."""
    here = {one.path: one for one in new}
    said: list[str] = []
    for one in old:
        now = here.get(one.path)
        if now is None:
            said.append(f"{one.path}: gone (it was sha256 {one.sha256})")
        elif now.sha256 != one.sha256 and not is_expected(log_dir, one, now):
            parts = ", ".join(changed_parts(one, now))
            what = f"{parts} changed" if parts else "changed"
            said.append(f"{one.path}: {what} (it was sha256 {one.sha256})")
    return tuple(said)


def changed_parts(old: Entry, now: Entry) -> tuple[str, ...]:
    """Return the parts of a record in JSON that are gone or others than may be raised."""
    if old.kind != "record":
        return ()
    here = dict(now.samples)
    parts = (name for name, digest in old.samples if here.get(name) != digest)
    return tuple(name for name in parts if not GROWS.fullmatch(name))


def is_expected(log_dir: Path, old: Entry, now: Entry) -> bool:
    """Say whether a file differs as a run makes it differ.

    Journals and openings grow at their end; an experiment takes in more systems, an oracle more
    plans. Of what older manifests say of those two, nothing tells that from a change.
    """
    if now.path.endswith(".json"):
        return not changed_parts(old, now) and bool(now.samples)
    return now.size > old.size and file_digest(log_dir / now.path, old.size) == old.sha256


def _before(log_dir: Path) -> tuple[Manifest | None, str]:
    """Return the manifest that stands here if it matches itself, else what is wrong with it."""
    path = log_dir / FILE
    if not path.exists():
        return None, ""
    regular(path)
    try:
        found = read_manifest(path)
    except UserError:
        found = None
    if found is not None and found.computed() == found.root:
        return found, ""
    return None, f"{FILE}: did not match itself (sha256 {file_digest(path)}) and was replaced"


def _earlier(before: Manifest, log_dir: Path, files: Iterable[Entry]) -> Earlier:
    """Return what becomes of a manifest that another one replaces."""
    known = {one.path: one for one in before.files}
    here = [one for one in files if one.path in known]
    return Earlier(
        root=before.root,
        written=before.written,
        files=len(before.files),
        leaves=1 + sum(1 + len(one.samples) for one in before.files),
        changed=changed(log_dir, before.files, files),
        added=tuple(one.path for one in files if one.path not in known),
        grown=tuple(
            one.path
            for one in here
            if one.sha256 != known[one.path].sha256 and is_expected(log_dir, known[one.path], one)
        ),
    )


def _distinct(files: Iterable[Entry], names: tuple[str, ...]) -> tuple[dict[str, str], ...]:
    """Return what logs say under some names, each combination once, sorted."""
    found = {tuple(one.about.get(name, "") for name in names) for one in files if one.about}
    return tuple(dict(zip(names, row, strict=True)) for row in sorted(found) if any(row))
