"""Finds changes of files since a manifest was written; signs manifests and checks signatures."""

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
    "anyone who can write to this directory can rewrite all of it, manifest included: only a "
    "root\n  that was published earlier, a signature by a key you know or a time stamp shows that",
    "that a provider's numbers are true (podium audit --invoice compares them with a bill)",
    "that no call was made outside podium",
    "that grades are right (--regrade checks them, podium regrade writes them)",
    "reports and exports, which are outside this directory: write them again from the logs",
)
"""Sentences on what a valid manifest does not prove."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference between a directory and its manifest."""

    kind: FindingKind
    path: str
    where: str
    said: str
    grave: bool = True
    """False if the file was not written by the run and no figure of the run depends on it."""

    @property
    def place(self) -> str:
        """The file, and the position in the file if known."""
        return f"{self.path}, {self.where}" if self.where else self.path

    def __str__(self) -> str:
        return f"{self.kind}: {self.place}: {self.said}"


def verify(log_dir: Path, published: str = "", *, shared: bool = False) -> tuple[Finding, ...]:
    """Return all differences between a directory and its `MANIFEST.json`.

    `published`: the root digest that the manifest must have. `shared`: the directory is a partial
    copy, so files may be missing, and samples may be redacted if they keep the original digests.
    """
    if published and not HEX.fullmatch(published):
        raise UserError(
            f"{published!r} is not a root. Give the 64 hex digits of `podium manifest write`."
        )
    path = log_dir / FILE
    if not path.exists():
        return (Finding("absent", FILE, "", "there is none: ask the person who ran it for it"),)
    try:
        manifest = read_manifest(path)
    except UserError:
        return (Finding("edited", FILE, "", "it is not a manifest, or it is incomplete"),)
    findings = [*_of_manifest(manifest, path, published)]
    here = covered(log_dir)
    if manifest.schema != OLDER and not shared:
        findings += (*_links(log_dir, manifest), *_of_others(log_dir, manifest))
    for entry in manifest.of_run:
        if entry.path in here:
            findings.extend(_of_file(log_dir, entry, shared))
        elif not shared:
            findings += [
                Finding("deleted", entry.path, "", "it is in the manifest but missing here")
            ]
    text = "it is not in the manifest: it was added, or a run that was killed later wrote it"
    names = here.keys() - {entry.path for entry in manifest.of_run}
    findings += (Finding("inserted", name, "", text) for name in names)
    findings += (finding for shard in shard_dirs(log_dir) for finding in _of_shard(shard, shared))
    return tuple(sorted(findings, key=lambda finding: (finding.path != FILE, finding.path)))


def _links(log_dir: Path, manifest: Manifest) -> Iterator[Finding]:
    """Yield files that symbolic links replaced: a link's target may change at any time."""
    text = "it was a file and is now a symbolic link: put the file itself here"
    for entry in manifest.files:
        if not entry.link and is_link(log_dir, entry.path):
            yield Finding("edited", entry.path, "", text)


def _of_others(log_dir: Path, manifest: Manifest) -> Iterator[Finding]:
    """Yield changes of files that no run wrote; only a change of `verify.py` is grave."""
    sealed = {entry.path: entry for entry in manifest.files if entry.kind == "beside"}
    for path, entry in sealed.items():
        grave, file = path == WITNESS, log_dir / path
        if not file.is_file():
            yield Finding(
                "deleted", path, "", "it is in the manifest but missing here", grave=grave
            )
        elif file_digest(file) != entry.sha256:
            text = f"its sha256 is no longer {entry.sha256}"
            yield Finding("edited", path, "", text, grave=grave)
    text = "no run wrote it, and it is not in the manifest (`podium manifest write` adds it)"
    for path in beside(log_dir):
        if path not in sealed:
            yield Finding("inserted", path, "", text, grave=False)


def _of_shard(shard: Path, shared: bool) -> Iterator[Finding]:
    """Yield a shard's differences from its own manifest; a shard that made calls must have one."""
    if not (shard / FILE).exists() and not shared:
        names = [name for name, kind in covered(shard).items() if kind != "record"]
        text = "its shard has no manifest: it was added, or its process was killed"
        findings = [Finding("inserted", name, "", text) for name in names]
    else:
        findings = [*verify(shard, shared=shared)] if (shard / FILE).exists() else []
    for finding in findings:
        yield replace(finding, path=f"{FOLDER}/{shard.name}/{finding.path}")


def _of_manifest(manifest: Manifest, path: Path, published: str) -> Iterator[Finding]:
    if manifest.computed() != manifest.root:
        yield Finding("edited", FILE, "", "its root does not match its contents")
    elif manifest.as_bytes() != path.read_bytes():
        yield Finding("edited", FILE, "", "it is not in the form that podium writes")
    published = published.lower()
    if published and manifest.root != published:
        text = f"its root {manifest.root} is not the published {published}"
        earlier = [entry.root for entry in manifest.history]
        if published in earlier:  # no proof: the author of the manifest writes its history, too
            number = f"{earlier.index(published) + 1} of {len(earlier)}"
            text += f"; its history lists that as earlier root {number}, which only a copy can show"
        yield Finding("root", FILE, "", text)
    for number, entry in enumerate(manifest.history, 1):
        for text in entry.changed:
            yield Finding("edited", FILE, f"history {number}", f"before it was extended, {text}")


def _of_file(log_dir: Path, old: FileEntry, shared: bool) -> Sequence[Finding]:
    """Return a file's differences from its entry in the manifest, and faults in the entry."""
    file, path = log_dir / old.path, old.path
    before = "when the manifest was written"
    stale = [Finding("edited", path, "", f"{before}: {fault}") for fault in old.faults]
    if file_digest(file) == old.sha256:
        return stale
    if shared and old.kind == "log" and (digests := originals(file)) is not None:
        return _of_samples(old, digests)
    if old.kind == "journal":
        return [*stale, *_of_journal(file, old)]
    if old.kind == "log":
        return _of_log(log_dir, old, shared)
    if file.stat().st_size < old.size and not file.read_bytes().strip():
        return [Finding("truncated", old.path, "", "it is empty")]
    changes = ", ".join(changed_parts(old, read_entry(log_dir, old.path, old.kind)))
    prefix = f"{changes} changed, and " if changes and old.samples else ""
    return [Finding("edited", old.path, "", f"{prefix}its sha256 is no longer {old.sha256}")]


def _of_journal(file: Path, old: FileEntry) -> list[Finding]:
    chain, rows = read_chain(file), old.rows or 0
    faults, place = chain.faults, old.path
    findings = [Finding(fault.kind, place, f"line {fault.line}", fault.said) for fault in faults]
    if file.stat().st_size > old.size and file_digest(file, old.size) == old.sha256:
        text = f"{chain.lines - rows} lines were added after the manifest was written"
        return [*findings, Finding("inserted", old.path, f"line {rows + 1}", text)]
    if not findings and chain.lines < rows:
        text = f"{rows - chain.lines} of {rows} lines are cut off its end"
        return [Finding("truncated", old.path, f"line {chain.lines + 1}", text)]
    text = "its chain is valid but different: the file was rewritten"
    return findings or [Finding("edited", old.path, "", text)]


def _of_log(log_dir: Path, old: FileEntry, shared: bool) -> list[Finding]:
    now = read_entry(log_dir, old.path, "log")
    if now.rows is None:
        cut = now.size < old.size
        text = f"it cannot be read; {now.size} of {old.size} bytes are here"
        return [Finding("truncated" if cut else "edited", old.path, "", text)]
    findings = _of_samples(old, now.samples, subset=shared)
    if now.rest != old.rest and not shared:
        findings.append(Finding("edited", old.path, "", "its header or its summaries were changed"))
    same = "it was packed again, its contents are unchanged"
    return findings or ([] if shared else [Finding("edited", old.path, "", same)])


def _of_samples(
    old: FileEntry, now: Sequence[tuple[str, str]], *, subset: bool = False
) -> list[Finding]:
    old_digests, new_digests, findings = dict(old.samples), dict(now), list[Finding]()
    for member, digest in now:
        if member not in old_digests:
            text = "the manifest has no such sample"
            findings.append(Finding("inserted", old.path, member, text))
        elif digest != old_digests[member] or digest == "damaged":
            changed = f"its digest is no longer {old_digests[member]}"
            text = "it cannot be unpacked" if digest == "damaged" else changed
            findings.append(Finding("edited", old.path, member, text))
    if not subset:
        gone = [member for member in old_digests if member not in new_digests]
        findings += [Finding("deleted", old.path, member, "it is gone") for member in gone]
    members = [member for member, _ in now if member in old_digests]
    order = [member for member in old_digests if member in new_digests]
    if members != order and not findings:
        pairs = zip(members, order, strict=False)
        member = next((name for name, old_name in pairs if name != old_name), "")
        findings.append(Finding("reordered", old.path, member, "samples are in a different order"))
    return findings


SCHEMA = "podium-signature-1"
Verdict = Literal["unsigned", "signed", "known", "invalid", "other-key"]


@dataclass(frozen=True, slots=True)
class Signed:
    """The verdict on a manifest's signature; `known`: the requested key made the signature."""

    verdict: Verdict
    key: str = ""


def make_key(path: Path) -> Path:
    """Write a new pair of key files; return the public file. UserError if one of them exists."""
    form, ed25519 = _cryptography()
    public = path.with_name(f"{path.name}.pub")
    for target in (path, public):
        if target.exists():
            raise UserError(f"{target} exists, and keys are never overwritten. Name another --out.")
    key = ed25519.Ed25519PrivateKey.generate()
    private_form = (form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public_form = (form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    path.parent.mkdir(parents=True, exist_ok=True)
    for target, content, mode in (
        (path, key.private_bytes(*private_form), 0o600),
        (public, key.public_key().public_bytes(*public_form), 0o644),
    ):
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
    return public


def sign(log_dir: Path, key_file: Path) -> Path:
    """Sign a directory's MANIFEST.json without checking it; return the signature file beside it."""
    # A signature of an earlier manifest is overwritten: that manifest no longer exists.
    key = _read_key(key_file, "private", "Make one with `podium manifest key`")
    document = {
        "schema": SCHEMA,
        "algorithm": "Ed25519",
        "over": FILE,
        "public_key": _named(key.public_key()),
        "signature": base64.b64encode(key.sign(_manifest_bytes(log_dir))).decode(),
    }
    scratch = log_dir / f"{SIGNATURE}.new"
    scratch.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return scratch.replace(log_dir / SIGNATURE)


def check(log_dir: Path, key_file: Path | None = None) -> Signed:
    """Return the verdict on a manifest's signature; UserError if `key_file` is no public key."""
    fix = "Give the .pub file of a key"
    requested = _named(_read_key(key_file, "public", fix)) if key_file else ""
    path = log_dir / SIGNATURE
    if not path.exists():
        return Signed("unsigned")
    _, ed25519 = _cryptography()
    from cryptography.exceptions import InvalidSignature

    try:
        stored: dict[str, Any] = read_json(path)
        name = str(stored["public_key"])
        key = ed25519.Ed25519PublicKey.from_public_bytes(base64.b64decode(name, validate=True))
        signature = base64.b64decode(str(stored["signature"]), validate=True)
        key.verify(signature, _manifest_bytes(log_dir))
    except (ValueError, KeyError, TypeError, InvalidSignature):
        return Signed("invalid")
    if requested and name != requested:
        return Signed("other-key", name)
    return Signed("known" if requested else "signed", name)


def _manifest_bytes(log_dir: Path) -> bytes:
    path = log_dir / FILE
    if not path.is_file():
        raise UserError(f"There is no {path}. Write it with `podium manifest write {log_dir}`.")
    return read_limited(path, DOCUMENT)


def _read_key(path: Path, name: Literal["private", "public"], fix: str) -> Any:
    """Return a file's Ed25519 key as an object of package cryptography; UserError if invalid."""
    form, ed25519 = _cryptography()
    try:
        content = read_limited(path, SETTINGS)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}). Name a key file.") from error
    load, kind = {
        "private": (partial(form.load_pem_private_key, password=None), ed25519.Ed25519PrivateKey),
        "public": (form.load_pem_public_key, ed25519.Ed25519PublicKey),
    }[name]
    try:
        key = load(content)
    except TypeError as error:
        raise UserError(f"{path} is protected by a password. Use an unprotected key.") from error
    except Exception as error:  # cryptography raises many types, some of them its own
        raise UserError(f"{path} is not a {name} key. {fix}.") from error
    if not isinstance(key, kind):
        raise UserError(f"{path} is not an Ed25519 key. {fix}.")
    return key


def _named(key: Any) -> str:
    return base64.b64encode(key.public_bytes_raw()).decode()


def _cryptography() -> tuple[Any, Any]:
    """Return modules `serialization` and `ed25519` of package cryptography; UserError if absent."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise UserError(
            "Signing needs the extra `signing`. Install it with `pip install '.[signing]'` in the "
            "checkout. Everything else works without it."
        ) from error
    return serialization, ed25519
