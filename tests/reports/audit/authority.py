"""A time stamping authority of this machine: openssl behind a real HTTP server."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.providers.server import hosted

SETTINGS = """\
[tsa]
default_tsa=own
[own]
serial={0}/serial
signer_cert={0}/signer.pem
certs={0}/roots.pem
signer_key={0}/signer.key
signer_digest=sha256
default_policy=1.2.3.4.1
digests=sha256
ess_cert_id_alg=sha256
"""
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority's folder: its keys, its settings and the certificates to trust."""

    home: Path

    @property
    def roots(self) -> Path:
        """Return what it publishes."""
        return self.home / "roots.pem"

    def stamp(self, query: bytes) -> bytes:
        """Return its reply to a query."""
        asked, reply = self.home / "asked.tsq", self.home / "reply.tsr"
        asked.write_bytes(query)
        command = ["openssl", "ts", "-reply", "-config", str(self.home / "settings")]
        command += ["-queryfile", str(asked), "-out", str(reply)]
        subprocess.run(command, check=True, capture_output=True)
        return reply.read_bytes()

    @contextmanager
    def served(self, status: int = 200) -> Generator[str]:
        """Yield its address, until the block ends."""

        async def answer(request: Request) -> Response:
            assert request.headers["content-type"] == "application/timestamp-query"
            reply = self.stamp(await request.body())
            return Response(reply, status, media_type="application/timestamp-reply")

        with hosted(Starlette(routes=[Route("/stamp", answer, methods=["POST"])])) as url:
            yield f"{url}/stamp"


def make_authority(home: Path, ends: datetime | None = None) -> Authority:
    """Make an authority whose stamps' certificate ends then (in an hour)."""
    home.mkdir()
    now = datetime.now(UTC)
    root_key, signer_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ends = ends or now + HOUR
    root = _certificate("Root", root_key, "Root", root_key, now + HOUR)
    signer = _certificate("Stamps", signer_key, "Root", root_key, ends)
    pem, plain = form.Encoding.PEM, form.NoEncryption()
    (home / "roots.pem").write_bytes(root.public_bytes(pem))
    (home / "signer.pem").write_bytes(signer.public_bytes(pem))
    private = signer_key.private_bytes(pem, form.PrivateFormat.PKCS8, plain)
    (home / "signer.key").write_bytes(private)
    (home / "serial").write_text("01\n")
    (home / "settings").write_text(SETTINGS.format(home))
    return Authority(home)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    by: ec.EllipticCurvePrivateKey,
    ends: datetime,
) -> x509.Certificate:
    def named(one: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, one)])

    made = x509.CertificateBuilder().subject_name(named(name)).issuer_name(named(issuer))
    made = made.public_key(key.public_key()).serial_number(x509.random_serial_number())
    made = made.not_valid_before(ends - 48 * HOUR).not_valid_after(ends)
    if name == issuer:
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    else:
        stamps = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING])
        made = made.add_extension(stamps, critical=True)
    return made.sign(by, hashes.SHA256())
