"""A guard around other people's code: what it opens to the network is refused and written down.

A framework's model calls go through our pool (bridge.py). Whatever else it tries to reach
would be spent past the ledger, so that is refused by a hook of the interpreter (`sys.addaudithook`)
while the framework's code runs, told by a context variable: its tasks and the threads that carry
its context are covered. Not covered: a thread without that context (`threading.Thread`, `submit` of
a thread pool), sockets that an extension module opens without Python (grpc), and the look-up of a
name by the event loop, whose connection is then refused. Such code belongs in a sandbox without a
network (bridged_script.py). The hook stays for the life of the process; it sees few events.
"""

import platform
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from harness.errors import Escaped

_NETWORK = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
}
"""Audit events that leave the process, and which of their arguments says where to
(docs.python.org/3/library/audit_events.html)."""
_PROGRAMS = frozenset(
    {"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.fork", "os.forkpty"}
)
"""Audit events that start another program: no guard would go with it."""


@dataclass(slots=True, eq=False)
class Watch:
    """One framework at work on one question."""

    framework: str
    trouble: Exception | None = None
    """What went wrong first, whatever the framework then made of it."""

    def note(self, error: Exception) -> Exception:
        """Keep an error if it is the first one; return it."""
        self.trouble = self.trouble or error
        return error


_WATCH: ContextVar[Watch | None] = ContextVar("podium_watch", default=None)
_installed = threading.Lock()


@contextmanager
def guarded(watch: Watch) -> Generator[None]:
    """Refuse every connection and program that the code within starts; `watch` keeps the first."""
    if _installed.acquire(blocking=False):  # once, for it cannot be taken out again
        platform.platform()  # OpenAI's client asks; Python runs a program the first time
        sys.addaudithook(_hook)
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


@contextmanager
def unguarded() -> Generator[None]:
    """Let our own code within reach its provider."""
    token = _WATCH.set(None)
    try:
        yield
    finally:
        _WATCH.reset(token)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event not in _NETWORK and event not in _PROGRAMS:
        return
    watch = _WATCH.get()
    if watch is None:
        return
    if event in _PROGRAMS:
        said = f"{watch.framework} tried to start a program ({event}); its calls cannot be seen."
    else:
        place = _place(args[_NETWORK[event]])
        said = f"{watch.framework} tried to reach {place} past the ledger; nothing was sent."
    raise watch.note(Escaped(said))


def _place(address: Any) -> str:
    """Return an address as people write it."""
    if isinstance(address, tuple):
        return ":".join(str(part) for part in address[:2])  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - whatever a socket was given
    return str(address)
