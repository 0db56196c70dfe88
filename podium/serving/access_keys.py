"""Clients' access keys: digests in a TOML file that is read again when it changes.

    [alice]
    sha256 = "64 hex digits"           # of the key, which is stored nowhere
    max_usd = "5.00"                   # in total; max_usd_per_day is for each day in UTC
    concurrency = 4                    # maximum of concurrent requests
    models = ["podium/moa-lite"]       # allowed models; default: all

A key is random, so its digest reveals nothing: no salt and no slow hash are needed.
"""

import hmac
import os
import re
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Annotated, BinaryIO

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from podium.harness.errors import UserError, first_fault
from podium.harness.files import SETTINGS, parse_toml, read_limited
from podium.serving.exchange import Refusal

PREFIX = "podium-"
NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
LONGEST = 4096
"""Maximum characters of an access key."""
Usd = Annotated[Decimal, Field(gt=0, le=1_000_000_000)]


class AccessKey(BaseModel):
    """The TOML table of one access key: the key's digest and its client's limits."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{64}$", to_lower=True)]
    max_usd: Usd | None = None
    max_usd_per_day: Usd | None = None
    concurrency: Annotated[int, Field(ge=1, strict=True)] | None = None
    models: tuple[str, ...] | None = None


FILE = TypeAdapter(dict[Annotated[str, StringConstraints(pattern=NAME)], AccessKey])


@dataclass(frozen=True, slots=True)
class Caller:
    """A client: the name of its access key (None if no keys are needed) and its limits."""

    name: str | None = None
    max_usd: Decimal | None = None
    max_usd_per_day: Decimal | None = None
    concurrency: int | None = None
    models: tuple[str, ...] | None = None

    def may_ask(self, *names: str) -> bool:
        """Return whether the client may use a model, given all ids (`names`) of this model."""
        return self.models is None or any(name in self.models for name in names)


class Keys:
    """The currently valid access keys; without a keys file, no client needs a key."""

    def __init__(self, path: Path | None, tell: Callable[[str], None]) -> None:
        """Read the keys file; UserError if it is invalid. `tell` prints warnings."""
        self._path, self._tell = path, tell
        self._keys: Mapping[str, AccessKey] = {}
        self._seen = _state(path) if path else None
        if path:
            self._read(path)

    def caller(self, headers: Mapping[str, str]) -> Caller:
        """Return the client that sent a request's headers; Refusal (401) if its key is invalid."""
        if self._path is None:
            return Caller()
        self._refresh(self._path)
        digest = sha256(_key_of(headers).encode("utf-8", "surrogatepass")).hexdigest()
        caller: Caller | None = None
        for name, key in self._keys.items():
            # All keys are compared, each in constant time: response times reveal no digest.
            if hmac.compare_digest(digest, key.sha256):
                caller = Caller(name, **{limit: getattr(key, limit) for limit in LIMITS})
        if caller is None:
            raise _unauthorised("the one sent is unknown or was removed. Ask for a new one.")
        return caller

    def _refresh(self, path: Path) -> None:
        """Read the keys file again if it changed; if invalid, warn once and keep the old keys."""
        # The state is stored before the file is read, so that later writes are noticed next time.
        if (now := _state(path)) == self._seen:
            return
        self._seen = now
        try:
            self._read(path)
        except UserError as error:
            self._tell(f"{str(error).rstrip('.')}; the server keeps the keys that it read before.")

    def _read(self, path: Path) -> None:
        self._keys = read_keys(path)
        with suppress(OSError):
            if path.stat().st_mode & 0o022:
                self._tell(f"Other users can write {path} and add keys. Run chmod go-w {path}.")


LIMITS = ("max_usd", "max_usd_per_day", "concurrency", "models")
"""Fields of an `AccessKey` that are copied to the client's `Caller`."""


def _state(path: Path) -> tuple[int, ...] | None:
    """Return a file's inode, size and times, to detect changes; None if the file does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _key_of(headers: Mapping[str, str]) -> str:
    """Return a request's key, from `Authorization`, else `x-api-key`; Refusal (401) if none."""
    header = headers.get("authorization")
    if header is None:
        key = headers.get("x-api-key", "").strip()
    else:
        scheme, _, key = header.strip().partition(" ")
        key = key.strip() if scheme.lower() == "bearer" else ""
    if not key or len(key) > LONGEST:
        raise _unauthorised("send one as `Authorization: Bearer KEY` or as `x-api-key: KEY`.")
    return key


def _unauthorised(reason: str) -> Refusal:
    return Refusal(401, "unauthorised", f"A key is needed: {reason}")


def read_keys(path: Path) -> Mapping[str, AccessKey]:
    """Return a file's access keys by name; UserError names the line and field of a mistake."""
    try:
        return _parsed(read_limited(path, SETTINGS), path)
    except OSError as error:
        raise UserError(
            f"Keys file {path} cannot be read ({error.strerror}). Check its path and permissions."
        ) from error


def _parsed(content: bytes, path: Path) -> Mapping[str, AccessKey]:
    try:
        tables = parse_toml(content)
    except ValueError as error:
        raise UserError(f"Keys file {path} is not valid TOML: {error}. Correct it.") from None
    try:
        keys = FILE.validate_python(tables)
    except ValidationError as error:
        field, problem = first_fault(error)
        field = field.removesuffix(".[key]")
        place = f"line {_line_of(content.decode('utf-8-sig'), field)}, field {field}"
        raise UserError(f"Keys file {path}, {place}: {problem}. Correct it.") from None
    by_digest: dict[str, str] = {}
    for name, key in keys.items():
        if (owner := by_digest.setdefault(key.sha256, name)) != name:
            problem = f"{owner!r} and {name!r} have the same sha256; make a key for each"
            raise UserError(f"Keys file {path}, field {name}.sha256: {problem}.")
    return keys


def _line_of(text: str, field: str) -> int:
    """Return the line number, from 1, of a key's field in a keys file; if absent, of its table."""
    name, _, inner = field.partition(".")
    head = re.compile(rf"""\s*\[?\s*["']?{re.escape(name)}\b""")
    lines = text.splitlines()
    start = next((index for index, line in enumerate(lines) if head.match(line)), 0)
    for index, line in enumerate(lines[start + 1 :], start + 1):
        if line.lstrip().startswith("["):
            break
        if inner and line.partition("=")[0].strip() == inner.split(".")[0]:
            return index + 1
    return start + 1


def new_key(path: Path, name: str) -> str:
    """Append the digest of a new access key to a file and return the key, which is shown once."""
    if not re.fullmatch(NAME, name):
        raise UserError(
            f"{name!r} is not a valid key name. Use at most 64 letters, digits, - and _."
        )
    path, key = path.resolve(), f"{PREFIX}{secrets.token_urlsafe(32)}"
    table = f'[{name}]\nsha256 = "{sha256(key.encode()).hexdigest()}"\n'.encode()
    with _replacing(path) as file:
        old = read_limited(path, SETTINGS) if path.exists() else b""
        if name in _parsed(old, path):
            raise UserError(
                f"{path} already has a key {name!r}. Use another name, or remove that key."
            )
        gap = b"" if not old else b"\n" if old.endswith(b"\n") else b"\n\n"
        file.write(old + gap + table)
    return key


@contextmanager
def _replacing(path: Path) -> Generator[BinaryIO]:
    """Let one process at a time write a new version of a file, and replace it atomically."""
    scratch = path.with_name(f"{path.name}.new")
    try:
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UserError(
            f"{scratch} exists: another process is adding a key. Try again, or remove the "
            "file if no other podium process is running."
        ) from None
    except OSError as error:
        raise UserError(
            f"{scratch} cannot be written ({error.strerror}). Use --keys FILE in a writable folder."
        ) from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            with suppress(FileNotFoundError, PermissionError):
                old = path.stat()
                os.fchmod(handle, old.st_mode & 0o777)
                os.fchown(handle, old.st_uid, old.st_gid)
            file.flush()
            os.fsync(handle)
        scratch.replace(path)
    except BaseException:  # no `finally`: once replaced, this name is free for other processes
        scratch.unlink()
        raise
