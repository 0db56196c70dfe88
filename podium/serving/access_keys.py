"""Keys of our clients: who may ask, as digests in a TOML file that is read again when it changes.

    [alice]
    sha256 = "64 hex digits"           # of the key, which stands nowhere
    max_usd = "5.00"                   # in all; max_usd_per_day is for each day in UTC
    concurrency = 4                    # requests at once
    models = ["podium/moa-lite"]       # without it, all

A key is made at random, so its digest tells nothing: no salt, and no slow hash.
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
"""Characters of a key that is looked up at all."""
Usd = Annotated[Decimal, Field(gt=0, le=1_000_000_000)]


class AccessKey(BaseModel):
    """One table of a keys file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{64}$", to_lower=True)]
    max_usd: Usd | None = None
    max_usd_per_day: Usd | None = None
    concurrency: Annotated[int, Field(ge=1, strict=True)] | None = None
    models: tuple[str, ...] | None = None


FILE = TypeAdapter(dict[Annotated[str, StringConstraints(pattern=NAME)], AccessKey])


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what they may: by the name of their key; None where no key is needed."""

    name: str | None = None
    max_usd: Decimal | None = None
    max_usd_per_day: Decimal | None = None
    concurrency: int | None = None
    models: tuple[str, ...] | None = None

    def may_ask(self, *names: str) -> bool:
        """Return whether they may ask a model, which may have several names."""
        return self.models is None or any(name in self.models for name in names)


class Keys:
    """The keys that are valid now; without a file everybody is the caller without a name."""

    def __init__(self, path: Path | None, tell: Callable[[str], None]) -> None:
        """Read a file; UserError names what is wrong with it. `tell` hears what comes up later."""
        self._path, self._tell = path, tell
        self._keys: Mapping[str, AccessKey] = {}
        self._seen = _state(path) if path else None
        if path:
            self._read(path)

    def caller(self, headers: Mapping[str, str]) -> Caller:
        """Return who asks, by lower-case headers; Refusal (401) where no valid key is shown."""
        if self._path is None:
            return Caller()
        self._refresh(self._path)
        shown = sha256(_key_of(headers).encode("utf-8", "surrogatepass")).hexdigest()
        found: Caller | None = None
        for name, key in self._keys.items():
            # Every entry is compared, to the end: how long it takes says nothing of any digest.
            if hmac.compare_digest(shown, key.sha256):
                found = Caller(name, **{one: getattr(key, one) for one in LIMITS})
        if found is None:
            raise _unauthorised("this key is not known here, or not any more.")
        return found

    def _refresh(self, path: Path) -> None:
        """Read the file again if it has changed; one that is broken is told once, and not used."""
        # What is seen is noted before it is read: whatever is written after that is seen next time.
        if (now := _state(path)) == self._seen:
            return
        self._seen = now
        try:
            self._read(path)
        except UserError as error:
            self._tell(f"{str(error).rstrip('.')}; the keys read before stay valid.")

    def _read(self, path: Path) -> None:
        self._keys = read_keys(path)
        with suppress(OSError):
            if path.stat().st_mode & 0o022:
                self._tell(f"Others can write {path}, and so let themselves in: chmod go-w {path}.")


LIMITS = ("max_usd", "max_usd_per_day", "concurrency", "models")
"""What a caller has of a key."""


def _state(path: Path) -> tuple[int, ...] | None:
    """Return what changes whenever a file does; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _key_of(headers: Mapping[str, str]) -> str:
    """Return the key that a request shows: `Authorization` first, then Anthropic's `x-api-key`."""
    said = headers.get("authorization")
    if said is None:
        key = headers.get("x-api-key", "").strip()
    else:
        scheme, _, key = said.strip().partition(" ")
        key = key.strip() if scheme.lower() == "bearer" else ""
    if not key or len(key) > LONGEST:
        raise _unauthorised("send one as `Authorization: Bearer KEY` or as `x-api-key: KEY`.")
    return key


def _unauthorised(why: str) -> Refusal:
    return Refusal(401, "unauthorised", f"A key is needed: {why}")


def read_keys(path: Path) -> Mapping[str, AccessKey]:
    """Return a file's keys by name; UserError names the line and the field of a mistake."""
    try:
        return _parsed(read_limited(path, SETTINGS), path)
    except OSError as error:
        raise UserError(f"Keys file {path} cannot be read ({error.strerror}).") from error


def _parsed(content: bytes, path: Path) -> Mapping[str, AccessKey]:
    try:
        tables = parse_toml(content)
    except ValueError as error:
        raise UserError(f"Keys file {path} is not valid TOML: {error}.") from None
    try:
        keys = FILE.validate_python(tables)
    except ValidationError as error:
        field, said = first_fault(error)
        field = field.removesuffix(".[key]")
        where = f"line {_line_of(content.decode('utf-8-sig'), field)}, field {field}"
        raise UserError(f"Keys file {path}, {where}: {said}.") from None
    by_digest: dict[str, str] = {}
    for name, key in keys.items():
        if (other := by_digest.setdefault(key.sha256, name)) != name:
            said = f"{other!r} and {name!r} have the same sha256; make a key for each"
            raise UserError(f"Keys file {path}, field {name}.sha256: {said}.")
    return keys


def _line_of(text: str, field: str) -> int:
    """Return the 1-based line of a field, or of its table where the table lacks it."""
    name, _, inner = field.partition(".")
    head = re.compile(rf"""\s*\[?\s*["']?{re.escape(name)}\b""")
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if head.match(line)), 0)
    for at, line in enumerate(lines[start + 1 :], start + 1):
        if line.lstrip().startswith("["):
            break
        if inner and line.partition("=")[0].strip() == inner.split(".")[0]:
            return at + 1
    return start + 1


def new_key(path: Path, name: str) -> str:
    """Append a new key to a file, as its digest, and return the key: it is to be shown once."""
    if not re.fullmatch(NAME, name):
        raise UserError(f"{name!r} is no name of a key: give letters, digits, - and _, at most 64.")
    path, key = path.resolve(), f"{PREFIX}{secrets.token_urlsafe(32)}"
    table = f'[{name}]\nsha256 = "{sha256(key.encode()).hexdigest()}"\n'.encode()
    with _replacing(path) as file:
        old = read_limited(path, SETTINGS) if path.exists() else b""
        if name in _parsed(old, path):
            raise UserError(f"{path} has a key {name!r} already; give another name, or remove it.")
        gap = b"" if not old else b"\n" if old.endswith(b"\n") else b"\n\n"
        file.write(old + gap + table)
    return key


@contextmanager
def _replacing(path: Path) -> Generator[BinaryIO]:
    """Let one process at a time write a new version of a file, and put it there at once."""
    scratch = path.with_name(f"{path.name}.new")
    try:
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UserError(
            f"{scratch} is there: another key is being made; try again, or remove it if none is."
        ) from None
    except OSError as error:
        raise UserError(f"{scratch} cannot be written ({error.strerror}).") from error
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
    except BaseException:  # once it is in place, a file of this name is another process's
        scratch.unlink()
        raise
