"""What was changed since a manifest was written, and who signed it."""

import base64
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from podium.harness.errors import UserError
from podium.harness.files import DOCUMENT, SETTINGS, read_json, read_limited
from podium.harness.ledger.journal import read_chain
from podium.harness.ledger.manifest import (
    FILE,
    OLDER,
    SIGNATURE,
    WITNESS,
    FileEntry,
    Manifest,
    beside,
    changed_parts,
    covered,
    file_digest,
    is_link,
    originals,
    read_entry,
    read_manifest,
)
from podium.harness.shards.plan import FOLDER, shard_dirs

FindingKind = Literal["absent", "edited", "inserted", "deleted", "reordered", "truncated", "root"]

HEX = re.compile(r"[0-9a-fA-F]{64}")
LIMITS = (
    "whoever can write this directory can write all of it anew, manifest included: only a root\n  "
    "that was published earlier, a signature by a key you know or a time stamp shows that",
    "that a provider's numbers are true (podium audit --invoice compares them with a bill)",
    "that no call was made outside podium",
    "that grades are right (--regrade gives them anew, podium regrade writes them)",
    "reports and exports, which lie outside: make them again from the logs",
)
"""What a manifest that holds does not prove."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference from the manifest."""

    kind: FindingKind
    path: str
    where: str
    said: str
    grave: bool = True
    """False for what the run did not write: its figures do not rest on it."""

    @property
    def place(self) -> str:
        """The file, and where in it."""
        return f"{self.path}, {self.where}" if self.where else self.path

    def __str__(self) -> str:
        return f"{self.kind}: {self.place}: {self.said}"


def verify(log_dir: Path, published: str = "", *, shared: bool = False) -> tuple[Finding, ...]:
    """Return everything in which a directory differs from its `MANIFEST.json`; nothing if in none.

    `published` is a root that the manifest must have. `shared`: only a part of the run is here, so
    files may lack, and samples may be redacted as long as they keep the originals' digests.
    """
    if published and not HEX.fullmatch(published):
        raise UserError(f"{published!r} is no root: a root is 64 hex digits.")
    path = log_dir / FILE
    if not path.exists():
        return (Finding("absent", FILE, "", "there is none: whoever ran it should supply it"),)
    try:
        manifest = read_manifest(path)
    except UserError:
        return (Finding("edited", FILE, "", "it is no manifest, or was cut short"),)
    found = [*_of_manifest(manifest, path, published)]
    here = covered(log_dir)
    if manifest.schema != OLDER and not shared:
        found += (*_links(log_dir, manifest), *_of_others(log_dir, manifest))
    for entry in manifest.of_run:
        if entry.path in here:
            found.extend(_of_file(log_dir, entry, shared))
        elif not shared:
            found.append(Finding("deleted", entry.path, "", "it is in the manifest and not here"))
    said = "it is not in the manifest: put in, or of a run that was killed since"
    more = here.keys() - {one.path for one in manifest.of_run}
    found += (Finding("inserted", name, "", said) for name in more)
    found += (one for shard in shard_dirs(log_dir) for one in _of_shard(shard, shared))
    return tuple(sorted(found, key=lambda one: (one.path != FILE, one.path)))


def _links(log_dir: Path, manifest: Manifest) -> Iterator[Finding]:
    """Yield the files that have become symbolic links: what they lead to may change any time."""
    said = "it is a symbolic link, and was a file: put the file itself here"
    for one in manifest.files:
        if not one.link and is_link(log_dir, one.path):
            yield Finding("edited", one.path, "", said)


def _of_others(log_dir: Path, manifest: Manifest) -> Iterator[Finding]:
    """Yield in what files that the run did not write differ; verify.py is to be trusted, though."""
    sealed = {one.path: one for one in manifest.files if one.kind == "beside"}
    for path, one in sealed.items():
        grave, file = path == WITNESS, log_dir / path
        if not file.is_file():
            yield Finding("deleted", path, "", "it is in the manifest and not here", grave=grave)
        elif file_digest(file) != one.sha256:
            said = f"its sha256 is no longer {one.sha256}"
            yield Finding("edited", path, "", said, grave=grave)
    said = "no run wrote it, and it is not in the manifest (`podium manifest write` adds it)"
    for path in beside(log_dir):
        if path not in sealed:
            yield Finding("inserted", path, "", said, grave=False)


def _of_shard(shard: Path, shared: bool) -> Iterator[Finding]:
    """Yield in what a shard differs from its own manifest; one that has asked must have one."""
    if not (shard / FILE).exists() and not shared:
        names = [name for name, kind in covered(shard).items() if kind != "record"]
        said = "its shard has no manifest: put in, or of a process that was killed"
        found = [Finding("inserted", name, "", said) for name in names]
    else:
        found = [*verify(shard, shared=shared)] if (shard / FILE).exists() else []
    for one in found:
        yield replace(one, path=f"{FOLDER}/{shard.name}/{one.path}")


def _of_manifest(manifest: Manifest, path: Path, published: str) -> Iterator[Finding]:
    if manifest.computed() != manifest.root:
        yield Finding("edited", FILE, "", "its root does not follow from what it says")
    elif manifest.as_bytes() != path.read_bytes():
        yield Finding("edited", FILE, "", "it is not in the form that podium writes")
    published = published.lower()
    if published and manifest.root != published:
        said = f"its root {manifest.root} is not the published {published}"
        earlier = [one.root for one in manifest.history]
        if published in earlier:  # which proves nothing: who writes the manifest writes that too
            number = f"{earlier.index(published) + 1} of {len(earlier)}"
            said += f"; its history names that as earlier root {number}, which only a copy can show"
        yield Finding("root", FILE, "", said)
    for number, one in enumerate(manifest.history, 1):
        for said in one.changed:
            yield Finding("edited", FILE, f"history {number}", f"before it was extended, {said}")


def _of_file(log_dir: Path, old: FileEntry, shared: bool) -> Sequence[Finding]:
    """Return in what a file differs; what was wrong when it was taken in stays wrong."""
    file = log_dir / old.path
    stale = [Finding("edited", old.path, "", f"when it was taken in: {one}") for one in old.faults]
    if file_digest(file) == old.sha256:
        return stale
    if shared and old.kind == "log" and (kept := originals(file)) is not None:
        return _of_samples(old, kept)
    if old.kind == "journal":
        return [*stale, *_of_journal(file, old)]
    if old.kind == "log":
        return _of_log(log_dir, old, shared)
    if file.stat().st_size < old.size and not file.read_bytes().strip():
        return [Finding("truncated", old.path, "", "it is empty")]
    parts = ", ".join(changed_parts(old, read_entry(log_dir, old.path, old.kind)))
    where = f"{parts} changed, and " if parts and old.samples else ""
    return [Finding("edited", old.path, "", f"{where}its sha256 is no longer {old.sha256}")]


def _of_journal(file: Path, old: FileEntry) -> list[Finding]:
    chain, rows = read_chain(file), old.rows or 0
    found = [Finding(one.kind, old.path, f"line {one.line}", one.said) for one in chain.faults]
    if file.stat().st_size > old.size and file_digest(file, old.size) == old.sha256:
        said = f"{chain.lines - rows} lines were added after the manifest was written"
        return [*found, Finding("inserted", old.path, f"line {rows + 1}", said)]
    if not found and chain.lines < rows:
        said = f"{rows - chain.lines} of {rows} lines are cut off its end"
        return [Finding("truncated", old.path, f"line {chain.lines + 1}", said)]
    said = "its chain holds and is another one: the file was written anew"
    return found or [Finding("edited", old.path, "", said)]


def _of_log(log_dir: Path, old: FileEntry, shared: bool) -> list[Finding]:
    now = read_entry(log_dir, old.path, "log")
    if now.rows is None:
        cut = now.size < old.size
        said = f"it cannot be read; {now.size} of {old.size} bytes are here"
        return [Finding("truncated" if cut else "edited", old.path, "", said)]
    found = _of_samples(old, now.samples, part=shared)
    if now.rest != old.rest and not shared:
        found.append(Finding("edited", old.path, "", "its header or its summaries were changed"))
    same = "it was packed anew, its contents are unchanged"
    return found or ([] if shared else [Finding("edited", old.path, "", same)])


def _of_samples(
    old: FileEntry, now: Sequence[tuple[str, str]], *, part: bool = False
) -> list[Finding]:
    before, after, found = dict(old.samples), dict(now), list[Finding]()
    for member, digest in now:
        if member not in before:
            said = "the manifest has no such sample"
            found.append(Finding("inserted", old.path, member, said))
        elif digest != before[member] or digest == "damaged":
            changed = f"its digest is no longer {before[member]}"
            said = "it cannot be unpacked" if digest == "damaged" else changed
            found.append(Finding("edited", old.path, member, said))
    if not part:
        gone = [member for member in before if member not in after]
        found += [Finding("deleted", old.path, member, "it is gone") for member in gone]
    kept = [member for member, _ in now if member in before]
    order = [member for member in before if member in after]
    if kept != order and not found:
        first = next((one for one, should in zip(kept, order, strict=False) if one != should), "")
        found.append(Finding("reordered", old.path, first, "samples stand in another order"))
    return found


SCHEMA = "podium-signature-1"
Verdict = Literal["unsigned", "signed", "known", "invalid", "other-key"]


@dataclass(frozen=True, slots=True)
class Signed:
    """What a directory's signature says: `known` is by the key that was asked for."""

    verdict: Verdict
    key: str = ""


def make_key(path: Path) -> Path:
    """Write a new private key, its owner's alone, and the public one beside it; return that.

    UserError when one exists: neither is ever overwritten.
    """
    form, ed25519 = _cryptography()
    public = path.with_name(f"{path.name}.pub")
    for one in (path, public):
        if one.exists():
            raise UserError(f"{one} exists, and no key is ever overwritten; name another --out.")
    key = ed25519.Ed25519PrivateKey.generate()
    private_form = (form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public_form = (form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    path.parent.mkdir(parents=True, exist_ok=True)
    for one, content, mode in (
        (path, key.private_bytes(*private_form), 0o600),
        (public, key.public_key().public_bytes(*public_form), 0o644),
    ):
        handle = os.open(one, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
    return public


def sign(log_dir: Path, key_file: Path) -> Path:
    """Sign a directory's manifest as it is; return the signature's file, beside it."""
    # A signature of an earlier manifest is replaced: it vouches for bytes that are gone.
    key = _read_key(key_file, "private", "`podium manifest key` makes one")
    made = {
        "schema": SCHEMA,
        "algorithm": "Ed25519",
        "over": FILE,
        "public_key": _named(key.public_key()),
        "signature": base64.b64encode(key.sign(_manifest_bytes(log_dir))).decode(),
    }
    scratch = log_dir / f"{SIGNATURE}.new"
    scratch.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return scratch.replace(log_dir / SIGNATURE)


def check(log_dir: Path, key_file: Path | None = None) -> Signed:
    """Return who signed a directory's manifest; UserError for a key that cannot be read."""
    fix = "take the .pub file of a key"
    asked = _named(_read_key(key_file, "public", fix)) if key_file else ""
    path = log_dir / SIGNATURE
    if not path.exists():
        return Signed("unsigned")
    _, ed25519 = _cryptography()
    from cryptography.exceptions import InvalidSignature

    try:
        stored: dict[str, Any] = read_json(path)
        name = str(stored["public_key"])
        key = ed25519.Ed25519PublicKey.from_public_bytes(base64.b64decode(name, validate=True))
        given = base64.b64decode(str(stored["signature"]), validate=True)
        key.verify(given, _manifest_bytes(log_dir))
    except (ValueError, KeyError, TypeError, InvalidSignature):
        return Signed("invalid")
    if asked and name != asked:
        return Signed("other-key", name)
    return Signed("known" if asked else "signed", name)


def _manifest_bytes(log_dir: Path) -> bytes:
    path = log_dir / FILE
    if not path.is_file():
        raise UserError(f"There is no {path}; `podium manifest write {log_dir}` makes one.")
    return read_limited(path, DOCUMENT)


def _read_key(path: Path, name: Literal["private", "public"], fix: str) -> Any:
    """Return an Ed25519 key of the optional package; UserError with the fix where it is none."""
    form, ed25519 = _cryptography()
    try:
        content = read_limited(path, SETTINGS)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); name a key file.") from error
    load, kind = {
        "private": (partial(form.load_pem_private_key, password=None), ed25519.Ed25519PrivateKey),
        "public": (form.load_pem_public_key, ed25519.Ed25519PublicKey),
    }[name]
    try:
        key = load(content)
    except TypeError as error:
        raise UserError(f"{path} is protected by a password; take a key without one.") from error
    except Exception as error:  # cryptography names many, some of them its own
        raise UserError(f"{path} is no {name} key; {fix}.") from error
    if not isinstance(key, kind):
        raise UserError(f"{path} is no Ed25519 key; {fix}.")
    return key


def _named(key: Any) -> str:
    return base64.b64encode(key.public_bytes_raw()).decode()


def _cryptography() -> tuple[Any, Any]:
    """Return its modules of key formats and of Ed25519; UserError where it is not installed."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise UserError(
            "Signing needs an extra: `pip install '.[signing]'` in the checkout. "
            "All else works without."
        ) from error
    return serialization, ed25519
