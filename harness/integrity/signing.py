"""Who vouches for a manifest: an Ed25519 key, and a signature over the manifest's bytes.

Needs the extra `signing`. A signature shows that whoever holds the key signed these bytes; that the
key is whose you think it is you must know from elsewhere. Not here: what a manifest says.
"""

import base64
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.errors import UserError
from harness.file_limits import DOCUMENT, SETTINGS, read_limited
from harness.integrity.manifest import FILE, SIGNATURE
from harness.parsing import read_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

SCHEMA = "podium-signature-1"
Verdict = Literal["unsigned", "signed", "known", "invalid", "other-key"]


@dataclass(frozen=True, slots=True)
class Signed:
    """What a directory's signature says.

    `known` is signed by the key that was asked for; `signed` by some key, named in `key`.
    """

    verdict: Verdict
    key: str = ""
    """Public key, base64 of its 32 bytes."""


def make_key(path: Path) -> Path:
    """Write a new private key that its owner alone can read; return the public one beside it.

    Neither is ever overwritten: UserError when one exists.
    """
    _need_cryptography()
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public = path.with_name(f"{path.name}.pub")
    for one in (path, public):
        if one.exists():
            raise UserError(f"{one} exists, and no key is ever overwritten; name another --out.")
    key = Ed25519PrivateKey.generate()
    private_form = (form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public_form = (form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    _write_new(path, key.private_bytes(*private_form), 0o600)
    _write_new(public, key.public_key().public_bytes(*public_form), 0o644)
    return public


def sign(log_dir: Path, key_file: Path) -> Path:
    """Sign a directory's manifest as it is; return the signature's file, beside it.

    A signature of an earlier manifest is replaced: it vouches for bytes that are gone.
    """
    key = _private_key(key_file)
    content = _manifest_bytes(log_dir)
    made = {
        "schema": SCHEMA,
        "algorithm": "Ed25519",
        "over": FILE,
        "public_key": _named(key.public_key()),
        "signature": base64.b64encode(key.sign(content)).decode(),
    }
    scratch = log_dir / f"{SIGNATURE}.new"
    scratch.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return scratch.replace(log_dir / SIGNATURE)


def check(log_dir: Path, key_file: Path | None = None) -> Signed:
    """Return who signed a directory's manifest; UserError for a key that cannot be read."""
    asked = _named(_public_key(key_file)) if key_file else ""
    path = log_dir / SIGNATURE
    if not path.exists():
        return Signed("unsigned")
    _need_cryptography()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        stored: dict[str, Any] = read_json(path)
        name = str(stored["public_key"])
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(name, validate=True))
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


def _private_key(path: Path) -> "Ed25519PrivateKey":
    _need_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _read(path)
    try:
        key = load_pem_private_key(content, password=None)
    except TypeError as error:
        raise UserError(f"{path} is protected by a password; take a key without one.") from error
    except Exception as error:  # cryptography names many, some of them its own
        raise UserError(f"{path} is no private key; `podium manifest key` makes one.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UserError(f"{path} is no Ed25519 key; `podium manifest key` makes one.")
    return key


def _public_key(path: Path) -> "Ed25519PublicKey":
    _need_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_read(path))
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{path} is no public key; take the .pub file of a key.") from error
    if not isinstance(key, Ed25519PublicKey):
        raise UserError(f"{path} is no Ed25519 key; take the .pub file of a key.")
    return key


def _read(path: Path) -> bytes:
    try:
        return read_limited(path, SETTINGS)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); name a key file.") from error


def _named(key: "Ed25519PublicKey") -> str:
    return base64.b64encode(key.public_bytes_raw()).decode()


def _write_new(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        os.write(handle, content)
    finally:
        os.close(handle)


def _need_cryptography() -> None:
    try:
        import cryptography  # noqa: F401  # pyright: ignore[reportUnusedImport] - is it there?
    except ImportError as error:
        raise UserError(
            "Signing needs an extra: `pip install '.[signing]'` in the checkout. "
            "All else works without."
        ) from error
