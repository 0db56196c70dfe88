"""A signature shows which key signed a manifest, and is of no other manifest and no other key."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.manifest import FILE, SIGNATURE, write_manifest
from podium.reports.audit.verify import check, make_key, sign
from tests.reports.audit.tampered_run import journal


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "keys" / "mine.pem"
    make_key(path)
    return path


def public(key: Path) -> Path:
    return key.with_name(f"{key.name}.pub")


def test_a_private_key_is_its_owner_s_alone_and_never_overwritten(key: Path) -> None:
    assert key.stat().st_mode & 0o777 == 0o600
    assert b"BEGIN PRIVATE KEY" in key.read_bytes()
    assert b"BEGIN PUBLIC KEY" in public(key).read_bytes()
    before = key.read_bytes(), public(key).read_bytes()
    with pytest.raises(UserError, match="keys are never overwritten"):
        make_key(key)
    key.unlink()
    with pytest.raises(UserError, match="keys are never overwritten"):
        make_key(key)
    assert (not key.exists(), public(key).read_bytes()) == (True, before[1])


def test_a_signed_manifest_names_its_key(home: Path, key: Path) -> None:
    assert check(home).verdict == "unsigned"
    sign(home, key)
    assert check(home).verdict == "signed"
    assert check(home, public(key)).verdict == "known"
    assert check(home).key == check(home, public(key)).key != ""


def test_a_signature_of_another_key_is_told(home: Path, key: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    make_key(other)
    sign(home, other)
    assert check(home, public(key)).verdict == "other-key"
    stored = json.loads((home / SIGNATURE).read_text())
    sign(home, key)
    mine = json.loads((home / SIGNATURE).read_text())
    (home / SIGNATURE).write_text(json.dumps({**stored, "public_key": mine["public_key"]}))
    assert check(home, public(key)).verdict == "invalid"


def test_a_signature_is_of_no_other_manifest(home: Path, key: Path) -> None:
    sign(home, key)
    journal(home, "single:clerk", calls=1)
    write_manifest(home)
    assert check(home).verdict == "invalid"
    sign(home, key)
    assert check(home).verdict == "signed"


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"public_key": 3, "signature": 4}', '{"public_key": "AAAA"}']
)
def test_a_damaged_signature_is_invalid(home: Path, content: str) -> None:
    (home / SIGNATURE).write_text(content)
    assert check(home).verdict == "invalid"


def test_a_key_that_cannot_sign_is_refused_in_a_sentence(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    pem, pkcs8 = form.Encoding.PEM, form.PrivateFormat.PKCS8
    locked = form.BestAvailableEncryption(b"secret")
    ours = ed25519.Ed25519PrivateKey.generate()
    path.write_bytes(ours.private_bytes(pem, pkcs8, locked))
    with pytest.raises(UserError, match="protected by a password"):
        sign(home, path)
    curve = ec.generate_private_key(ec.SECP256R1())
    path.write_bytes(curve.private_bytes(pem, pkcs8, form.NoEncryption()))
    with pytest.raises(UserError, match="is not an Ed25519 key"):
        sign(home, path)
    path.write_bytes(curve.public_key().public_bytes(pem, form.PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(UserError, match="is not an Ed25519 key"):
        check(home, path)
    path.write_bytes(b"not a key")
    with pytest.raises(UserError, match="is not a private key"):
        sign(home, path)
    with pytest.raises(UserError, match="is not a public key"):
        check(home, path)
    with pytest.raises(UserError, match="cannot be read"):
        sign(home, tmp_path / "absent.pem")


def test_the_commands_make_a_key_sign_and_verify(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "mine.pem"
    assert main(["manifest", "key", "--out", str(key)]) == 0
    assert main(["manifest", "verify", str(home), "--public-key", str(public(key))]) == 1
    assert "Authenticity: not signed" in capsys.readouterr().out
    assert main(["manifest", "sign", str(home), "--key", str(key)]) == 0
    assert main(["manifest", "verify", str(home)]) == 0
    assert "check that you know this key" in capsys.readouterr().out
    assert main(["manifest", "verify", str(home), "--public-key", str(public(key))]) == 0
    assert "signed by the key you named" in capsys.readouterr().out


def test_what_does_not_hold_is_not_signed(
    home: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal(home, "single:clerk", calls=1)
    assert main(["manifest", "sign", str(home), "--key", str(key)]) == 2
    assert "A manifest that does not match is not signed" in capsys.readouterr().err
    (home / FILE).unlink()
    with pytest.raises(UserError, match="podium manifest write"):
        sign(home, key)


@pytest.mark.slow
def test_without_the_extra_a_sentence_says_so(home: Path, tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from podium.cli import main\n"
        f"assert main(['manifest', 'verify', {str(home)!r}]) == 0\n"
        f"sys.exit(main(['manifest', 'key', '--out', {str(tmp_path / 'k')!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "`pip install '.[signing]'` in the checkout" in done.stderr
    assert done.stderr.count("\n") == 1
