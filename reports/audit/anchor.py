"""RFC 3161 time stamps: an authority certifies that a manifest's root digest existed at a time.

The root is a SHA-256 digest and the stamp's message imprint: `openssl ts -verify -digest ROOT`
checks the stamp without podium. Podium calls openssl, too; only a digest leaves the machine.
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
NO_STAMP = "The authority's reply is not a time stamp"
WRITABLE = "Check that the directory of the run is writable"
ASK_AGAIN = "Name the certificate that the authority publishes, or ask it again"
NO_OPENSSL = "Time stamps need the program openssl on PATH (Debian: apt-get install openssl)."
DATED = re.compile(r"^Time stamp: (\w{3} +\d+ [\d:]{8})(?:\.\d+)? (\d{4}) GMT$", re.MULTILINE)
ADDRESS = re.compile(r"https?://[^/\s]")
REFUSED = re.compile(r"^Status: (?!Granted)(.+)$", re.MULTILINE)
NOTICE = "Using configuration from"  # a line of openssl's stderr that is no error
WHY = (re.compile(r"Verify error:(.+)"), re.compile(r":error:\w+:[^:]*:[^:]*:([^:]+):"))


@dataclass(frozen=True, slots=True)
class Stamped:
    """The verdict on the time stamp of a directory's manifest."""

    verdict: Time
    said: str = ""
    """The certified time (ISO 8601), or why the stamp proves none; empty if absent or unchecked."""


def request(log_dir: Path) -> Path:
    """Write a query for a time stamp beside a run's manifest; return the query's path."""
    root = _unstamped(log_dir)
    query = log_dir / QUERY
    if not query.exists():
        _ask_openssl("-query", "-digest", root, "-sha256", "-cert", "-out", str(query))
    elif not _names(query, root):
        raise UserError(f"{query} is not for the root of this manifest. Move it elsewhere.")
    return query


def store(log_dir: Path, reply: bytes, authority: Path) -> datetime:
    """Store a time-stamp authority's reply as the manifest's stamp; return the certified time.

    `authority`: file with the authority's certificate. UserError if the reply does not certify the
    manifest's root.
    """
    root, query = _unstamped(log_dir), log_dir / QUERY
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / STAMP
        file.write_bytes(reply)
        query_arguments = ("-queryfile", str(query)) if query.exists() else ("-digest", root)
        when = _verified(file, query_arguments, authority)
        if query.exists():  # the query could be for another root
            _verified(file, ("-digest", root), authority)
        with (log_dir / STAMP).open("xb") as stamp:
            stamp.write(reply)
    query.unlink(missing_ok=True)  # the query has been answered
    return when


def ask(url: str, query: bytes) -> bytes:
    """Send a query to the time-stamp authority at `url`; return its reply, at most 1 MiB."""
    import httpx  # a slow import

    if not ADDRESS.match(url):
        raise UserError(
            f"{url!r} is not the address of a time-stamp authority. Name one that "
            "begins with https://."
        )
    kind = {"content-type": "application/timestamp-query"}
    try:
        with httpx.stream("POST", url, content=query, headers=kind, timeout=LIMIT_S) as answer:
            reply = b""
            for chunk in answer.iter_bytes():
                reply += chunk
                if len(reply) > MIB:
                    raise UserError(
                        f"{url} sends a reply that is too long for a time stamp. Name "
                        "another authority."
                    )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise UserError(
            f"{url} gave no answer ({first_line(error)}). Try again, or name another authority."
        ) from error
    if answer.status_code != 200:
        raise UserError(
            f"{url} answers {answer.status_code}. Name the address of a time-stamp authority."
        )
    return reply


def stamp_of(log_dir: Path, authority: Path | None = None) -> Stamped:
    """Return the verdict on the time stamp of a run's manifest.

    `authority`: file with the authority's certificate; None: check only that the stamp is for the
    manifest's root digest.
    """
    file = log_dir / STAMP
    if not file.exists():
        return Stamped("none")
    try:
        manifest = read_manifest(log_dir / FILE)
    except UserError as error:  # an unreadable manifest is a verdict, not an error
        return Stamped("invalid", str(error))
    if not _names(file, manifest.root):
        earlier = [_names(file, entry.root) for entry in manifest.history]
        text = f"earlier root {earlier.index(True) + 1} of {len(earlier)}" if any(earlier) else ""
        return Stamped("other-root", text or "a root that this manifest never had")
    if authority is None:
        return Stamped("unchecked")
    _openssl()
    try:
        when = _verified(file, ("-digest", manifest.root), authority)
    except UserError as error:
        return Stamped("invalid", str(error))
    return Stamped("stamped", when.isoformat())


def _unstamped(log_dir: Path) -> str:
    """Return the root digest of a manifest; UserError if the manifest already has a stamp."""
    if (log_dir / STAMP).exists():
        advice = "and stamps are never overwritten; move it elsewhere to get a new stamp"
        raise UserError(f"{log_dir / STAMP} exists, {advice}.")
    return read_manifest(log_dir / FILE).root


def _names(file: Path, root: str) -> bool:
    """Return whether a file with a query or a stamp contains the bytes of a root digest."""
    return bool(HEX.fullmatch(root)) and bytes.fromhex(root) in read_limited(file, MIB)


def _verified(file: Path, imprint: tuple[str, str], authority: Path) -> datetime:
    """Return the time that an authority's reply certifies; UserError if openssl rejects the reply.

    `imprint`: openssl's option and value for what was stamped, a digest or a query file.
    """
    text = _ask_openssl("-reply", "-in", str(file), "-text", fault=NO_STAMP, fix=ASK_AGAIN)
    if refused := REFUSED.search(text):
        raise UserError(f"The authority refused ({refused[1]}). Ask another authority.")
    if not (dated := DATED.search(text)):
        raise UserError(f"{NO_STAMP}: it contains no time. Ask another authority.")
    when = datetime.strptime(" ".join(dated.groups()), "%b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    trusted = ("-CAfile", str(authority), "-attime", str(int(when.timestamp())))
    fault = f"The stamp does not hold against {authority}"
    _ask_openssl("-verify", "-in", str(file), *imprint, *trusted, fault=fault, fix=ASK_AGAIN)
    return when


def _openssl() -> str:
    if (program := shutil.which("openssl")) is None:
        raise UserError(NO_OPENSSL)
    return program


def _ask_openssl(*words: str, fault: str = "No query was written", fix: str = WRITABLE) -> str:
    command = [_openssl(), "ts", *words]
    process = subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=LIMIT_S
    )
    if process.returncode:
        reasons = [reason for pattern in WHY for reason in pattern.findall(process.stderr)]
        lines = [line for line in process.stderr.splitlines() if not line.startswith(NOTICE)]
        detail = f" ({reason})" if (reason := next(iter([*reasons, *lines]), "")) else ""
        raise UserError(f"{fault}{detail}. {fix}.")
    return process.stdout
