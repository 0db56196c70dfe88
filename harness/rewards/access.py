"""Who may talk to a reward service: whom a request names as its host, and who it says it is.

A web page that is open on this machine can send requests here. Through a name of its own that
resolves to this address (DNS rebinding) it could even read the answers, and so the questions; such
a request names the page's host in `Host`. Whoever has the token is let in from elsewhere, too. Not
here: what is answered (service.py), the port (hosting.py).
"""

import hmac
import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from harness.errors import UserError
from harness.file_limits import read_limited

LONGEST = 4096
"""Bytes of a token file."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a request must say."""

    address: str
    """Where the service is bound."""
    port: int
    names: frozenset[str] = frozenset()
    """Other names under which it is known."""
    token: str = ""
    """What `Authorization: Bearer` must hold; empty where nobody is asked."""

    def refusal(self, headers: Headers) -> JSONResponse | None:
        """Return the answer to a request that is not let in; None to one that is."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            said = f"This is no host of this service: {host!r:.80} (--allow-host NAME allows one)."
            return _refused(421, said, "misdirected")
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(urlsplit(origin).netloc):
            return _refused(403, "Web pages may not ask this service.", "foreign_origin")
        if self.token and not self._is_known(headers.get("authorization", "")):
            said = "Send the token of the service: `Authorization: Bearer TOKEN`."
            return _refused(401, said, "unauthorised", {"WWW-Authenticate": "Bearer"})
        return None

    def _is_ours(self, host: str) -> bool:
        name, port = _split(host)
        if name in self.names:
            return True
        return port == self.port and (name == self.address or _is_here(name, self.address))

    def _is_known(self, said: str) -> bool:
        scheme, _, token = said.partition(" ")
        given, wanted = token.strip().encode(), self.token.encode()
        return scheme.lower() == "bearer" and hmac.compare_digest(given, wanted)


def _split(host: str) -> tuple[str, int]:
    """Return name and port of a `Host` header; port 80 where it has none, -1 where it is none."""
    try:
        parts = urlsplit(f"//{host}")
        return (parts.hostname or "").lower(), parts.port or 80
    except ValueError:
        return "", -1


def _is_here(name: str, bound: str) -> bool:
    """Say whether a name is this machine's, or an address where all of them are listened on.

    No page can have an address for its name, so addresses are no door for one.
    """
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name)
        return address.is_loopback or ipaddress.ip_address(bound).is_unspecified
    except ValueError:
        return False


def _refused(
    status: int, said: str, kind: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    return JSONResponse({"error": said, "kind": kind}, status, headers)


def restricted(application: ASGIApp, access: Access) -> ASGIApp:
    """Return an application that answers only those who are let in."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refusal = access.refusal(Headers(scope=scope))
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await application(scope, receive, send)

    return answer


def is_loopback(host: str) -> bool:
    """Say whether an address or name reaches this machine alone."""
    try:
        found = socket.getaddrinfo(host, None)
        return all(ipaddress.ip_address(str(one[4][0])).is_loopback for one in found)
    except (OSError, ValueError, UnicodeError):
        return False


def refuse_open_door(host: str, token: str) -> None:
    """Raise UserError for a service that others could reach and that asks for no token."""
    if not token and not is_loopback(host):
        raise UserError(
            f"--host {host} lets other machines in: name a --token-file, which holds what they "
            "must send, or leave --host out."
        )


def read_token(path: Path | None, say: Callable[[str], object]) -> str:
    """Return the token in a file, empty for no file; UserError for one that holds none."""
    if path is None:
        return ""
    try:
        token = read_limited(path, LONGEST).decode("ascii").strip()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name a file.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} holds no token: letters and digits on one line.") from error
    if not token or len(token.split()) > 1 or not token.isprintable():
        raise UserError(f"{path} holds no token: letters and digits on one line.")
    if path.stat().st_mode & 0o077:
        say(f"Others on this machine can read the token: chmod 600 {path}.")
    return token
