"""A time stamp (RFC 3161) of a manifest's root: an authority's word that it was there by then.

The root is a SHA-256 digest, and it is the stamp's own imprint: `openssl ts -verify -digest ROOT`
checks what is kept here without podium. openssl makes and checks; only a digest leaves the machine.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from podium.harness.errors import UserError
from podium.harness.files import MIB, first_line, read_limited
from podium.harness.ledger.manifest import FILE, QUERY, STAMP, read_manifest
from podium.reports.audit.verify import HEX

Time = Literal["none", "unchecked", "stamped", "other-root", "invalid"]
LIMIT_S = 60.0
NO_STAMP = "What the authority answered is no time stamp"
NO_OPENSSL = "Time stamps need the program openssl on PATH (Debian: apt-get install openssl)."
DATED = re.compile(r"^Time stamp: (\w{3} +\d+ [\d:]{8})(?:\.\d+)? (\d{4}) GMT$", re.MULTILINE)
ADDRESS = re.compile(r"https?://[^/\s]")
REFUSED = re.compile(r"^Status: (?!Granted)(.+)$", re.MULTILINE)
NOTICE = "Using configuration from"  # which is no reason
WHY = (re.compile(r"Verify error:(.+)"), re.compile(r":error:\w+:[^:]*:[^:]*:([^:]+):"))


@dataclass(frozen=True, slots=True)
class Stamped:
    """What a directory's time stamp says."""

    verdict: Time
    said: str = ""
    """When the root was there, or why that is not shown."""


def request(log_dir: Path) -> Path:
    """Write the query for an authority beside a manifest that nobody has stamped; return it."""
    root = _unstamped(log_dir)
    query = log_dir / QUERY
    if not query.exists():
        _ask_openssl("-query", "-digest", root, "-sha256", "-cert", "-out", str(query))
    elif not _names(query, root):
        raise UserError(f"{query} is not for the root of this manifest; move it elsewhere.")
    return query


def store(log_dir: Path, reply: bytes, authority: Path) -> datetime:
    """Keep an authority's reply to `request` as the manifest's stamp, if it holds; say its time."""
    root, query = _unstamped(log_dir), log_dir / QUERY
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / STAMP
        file.write_bytes(reply)
        asked = ("-queryfile", str(query)) if query.exists() else ("-digest", root)
        when = _verified(file, asked, authority)
        if query.exists():  # which could be for another root
            _verified(file, ("-digest", root), authority)
        with (log_dir / STAMP).open("xb") as kept:
            kept.write(reply)
    query.unlink(missing_ok=True)  # it is answered
    return when


def ask(url: str, query: bytes) -> bytes:
    """Return what an authority answers to a query, sent to its address and nowhere else."""
    import httpx  # it takes a moment to load

    if not ADDRESS.match(url):
        raise UserError(f"{url!r} is no authority's address: name one that begins with https://.")
    kind = {"content-type": "application/timestamp-query"}
    try:
        with httpx.stream("POST", url, content=query, headers=kind, timeout=LIMIT_S) as answer:
            found = b""
            for part in answer.iter_bytes():
                found += part
                if len(found) > MIB:
                    raise UserError(f"{url} answers with more than any time stamp: name another.")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise UserError(
            f"{url} gave no answer ({first_line(error)}): try again, or another."
        ) from error
    if answer.status_code != 200:
        raise UserError(f"{url} answers {answer.status_code}: name an authority's address.")
    return found


def stamp_of(log_dir: Path, authority: Path | None = None) -> Stamped:
    """Return what the time stamp beside a manifest shows; without `authority` little is checked."""
    file = log_dir / STAMP
    if not file.exists():
        return Stamped("none")
    try:
        manifest = read_manifest(log_dir / FILE)
    except UserError as error:  # which is a finding
        return Stamped("invalid", str(error))
    if not _names(file, manifest.root):
        earlier = [_names(file, one.root) for one in manifest.history]
        found = f"earlier root {earlier.index(True) + 1} of {len(earlier)}" if any(earlier) else ""
        return Stamped("other-root", found or "a root that this manifest never had")
    if authority is None:
        return Stamped("unchecked")
    _openssl()
    try:
        when = _verified(file, ("-digest", manifest.root), authority)
    except UserError as error:
        return Stamped("invalid", str(error))
    return Stamped("stamped", when.isoformat())


def _unstamped(log_dir: Path) -> str:
    """Return the root of a manifest that has no stamp."""
    if (log_dir / STAMP).exists():
        said = "and no stamp is ever overwritten; move it elsewhere to have another"
        raise UserError(f"{log_dir / STAMP} is there, {said}.")
    return read_manifest(log_dir / FILE).root


def _names(file: Path, root: str) -> bool:
    """Say whether a query or a stamp holds a root's bytes, as all that are of it do."""
    return bool(HEX.fullmatch(root)) and bytes.fromhex(root) in read_limited(file, MIB)


def _verified(file: Path, asked: tuple[str, str], authority: Path) -> datetime:
    """Return when a reply was stamped; UserError if it is not of the request, or not trusted."""
    told = _ask_openssl("-reply", "-in", str(file), "-text", said=NO_STAMP)
    if refused := REFUSED.search(told):
        raise UserError(f"The authority refused ({refused[1]}): ask another.")
    if not (dated := DATED.search(told)):
        raise UserError(f"{NO_STAMP}: it names no time.")
    when = datetime.strptime(" ".join(dated.groups()), "%b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    trusted = ("-CAfile", str(authority), "-attime", str(int(when.timestamp())))
    said = f"The stamp does not hold against {authority}"
    _ask_openssl("-verify", "-in", str(file), *asked, *trusted, said=said)
    return when


def _openssl() -> str:
    if (program := shutil.which("openssl")) is None:
        raise UserError(NO_OPENSSL)
    return program


def _ask_openssl(*words: str, said: str = "openssl could not") -> str:
    command = [_openssl(), "ts", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S
    )
    if done.returncode:
        found = [one for pattern in WHY for one in pattern.findall(done.stderr)]
        lines = [line for line in done.stderr.splitlines() if not line.startswith(NOTICE)]
        why = f" ({one})" if (one := next(iter([*found, *lines]), "")) else ""
        raise UserError(f"{said}{why}; name what the authority publishes, or ask it again.")
    return done.stdout
