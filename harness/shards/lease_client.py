"""A shard's side of its lease: requests dollars and start times for calls, and renews the lease."""

import os
import signal
import time
from collections import Counter, defaultdict, deque
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import anyio
import httpx
import orjson

from podium.harness.budget import Spend
from podium.harness.errors import SpendLimit, UserError
from podium.harness.ledger.system_runs import spent_so_far
from podium.harness.prices import Book
from podium.harness.run.experiment import lock_experiment
from podium.harness.shards.launcher import LOST
from podium.harness.shards.lease import ADDRESS, TTL_S, TURNS_S, RunLimits, is_limited, open_book
from podium.harness.shards.plan import parent_of, shard_dir
from podium.harness.text import say

PATIENCE_S = 60.0
"""Maximum seconds to wait for a new lease server after the old one was killed."""
PAUSE_S = 0.3
LOOK_S = 0.05
KERNEL = Path("/proc/sys/kernel/random/boot_id")
"""File with the id of the machine's boot. If a shard's last process was on the same machine, a free
file lock proves that the process has ended."""


class LeaseLost(Exception):
    """Raised if a newer process has the shard's lease, or if no lease server answers any more."""


def _client() -> httpx.Client:
    """Return a client for the lease server: plain HTTP, with one connection per request."""
    alone = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(trust_env=False, timeout=10.0, verify=False, limits=alone)


@dataclass(slots=True)
class HeldLease:
    """A lease of dollars held by a shard's process; it sends the server one request at a time."""

    folder: Path
    granted: Decimal | None = None  # dollars; None: no limit
    short: bool = False
    """Whether other shards wait for dollars that this shard may return."""
    lost: bool = False
    generation: int = 0
    patience_s: float = PATIENCE_S
    _http: httpx.Client = field(default_factory=_client)
    _lock: Lock = field(default_factory=Lock)
    _keeps: Decimal | None = None
    _over: Event = field(default_factory=Event)
    _holds_until: float = 0.0
    _limited: frozenset[str] = frozenset()  # providers whose calls need a start time
    _turns: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque[float]))
    _waiting: Counter[str] = field(default_factory=Counter[str])
    _asking: set[str] = field(default_factory=set[str])

    async def more(self, most: Decimal | None, *, idle: bool) -> bool:
        """Ask that the grant rise to `most` dollars (None: all); return whether to check it again.

        `idle`: whether the shard has no call in flight; then it may wait for other shards' dollars.
        """
        if self.granted is None:
            return False
        if most is not None and most <= self.granted:
            return True
        try:
            reply = await anyio.to_thread.run_sync(self._extend, most, idle, abandon_on_cancel=True)
        except LeaseLost:
            raise self._ended() from None
        if reply == "wait" and idle:
            await anyio.sleep(PAUSE_S)
        return reply == "granted" or (reply == "wait" and idle)

    async def turn(self, who: str) -> None:
        """Wait until the lease is valid and the rate limit allows a call to the provider `who`."""
        while time.monotonic() > self._holds_until:
            if self.lost or self._over.is_set():
                raise self._ended()
            await anyio.sleep(LOOK_S)
        if who not in self._limited:
            return
        self._waiting[who] += 1
        try:
            while (start := self._next_turn(who)) is None:
                await self._ask_for_turns(who)
        finally:
            self._waiting[who] -= 1
        await anyio.sleep(max(0.0, start - time.monotonic()))

    def _next_turn(self, provider: str) -> float | None:
        turns = self._turns[provider]
        while turns and turns[0] < time.monotonic() - TURNS_S:
            turns.popleft()  # its call was cancelled; a late use would exceed the rate limit
        return turns.popleft() if turns else None

    async def _ask_for_turns(self, provider: str) -> None:
        """Request start times for all waiting calls to a provider in one request."""
        if provider in self._asking:
            await anyio.sleep(LOOK_S)
            return
        self._asking.add(provider)
        try:
            count = await anyio.to_thread.run_sync(self._reserve, provider, abandon_on_cancel=True)
        except LeaseLost:
            raise self._ended() from None
        finally:
            self._asking.discard(provider)
        if not count:
            await anyio.sleep(PAUSE_S)

    def _reserve(self, provider: str) -> int:
        with self._lock:
            waits = self._ask("turns", provider=provider, calls=self._waiting[provider])["waits"]
            now = time.monotonic()
            self._turns[provider].extend(now + wait_s for wait_s in waits)
            return len(waits)

    def keep(self, usd: Decimal) -> None:
        """Give granted dollars above `usd` back to the run if other shards wait for dollars."""
        if not (self.short and self.granted and usd < self.granted) or not self._lock.acquire(
            blocking=False
        ):
            return
        try:
            self.granted = self._keeps = usd
        finally:
            self._lock.release()

    def open(self, spent: Decimal) -> None:
        """Open the lease, and report the dollars that earlier processes of the shard have spent."""
        with self._lock:
            self._ask("open", spent=spent, machine=this_machine())

    def close(self, spent: Decimal, *, at_once: bool = False) -> None:
        """End the lease, return unspent dollars; `at_once`: do not wait for a lost lease server."""
        self._over.set()
        if at_once:
            self.patience_s = PAUSE_S
        with self._lock, suppress(LeaseLost):  # else the next command ends it (`settle`)
            if not self.lost:
                self._ask("close", spent=spent)

    def beat(self) -> None:
        """Renew the lease periodically until `close` is called or the lease is lost."""
        while not self._over.wait(1.0 if self.short else TTL_S / 3):
            try:
                with self._lock:
                    self._ask("beat")
            except LeaseLost:
                self._end_process()

    def _ended(self) -> SpendLimit:
        self._end_process()
        return SpendLimit("The lease of this shard was lost: it is started again.")

    def _end_process(self) -> None:
        if not self._over.is_set():
            self._over.set()
            os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C: it can be resumed

    def _extend(self, total: Decimal | None, idle: bool) -> str:
        with self._lock:
            if total is not None and self.granted is not None and total <= self.granted:
                return "granted"  # another call has requested it meanwhile
            return self._ask("extend", most=total, idle=idle)["how"]

    def _ask(self, path: str, **args: Any) -> dict[str, Any]:
        """Send the lease server a request; return its reply. If no server runs, retry a while."""
        if self.lost:
            raise LeaseLost
        started = time.monotonic()
        while time.monotonic() - started < self.patience_s:
            keeps, body = self._keeps, {"shard": self.folder.name, "generation": self.generation}
            if keeps is not None and path != "beat":
                self._ask_once("beat", body | {"keeps": keeps})
            reply = self._ask_once(path, body | args | ({"keeps": keeps} if path == "beat" else {}))
            if reply is not None:
                self._keeps = None
                return reply
            time.sleep(PAUSE_S)
        self.lost = True
        raise LeaseLost

    def _ask_once(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        parent, sent = parent_of(self.folder), time.monotonic()
        try:
            server = orjson.loads(((parent or self.folder) / ADDRESS).read_bytes())
            response = self._http.post(
                f"{server['url']}/{path}",
                content=orjson.dumps(body, default=str),
                headers={"authorization": f"Bearer {server['token']}"},
            )
        except (OSError, LookupError, ValueError, httpx.HTTPError):
            return None
        if response.status_code == 409:
            self.lost = True
            raise LeaseLost
        if response.status_code != 200:
            return None
        answer = response.json()
        if path in ("open", "extend"):
            self.granted = None if answer["granted"] is None else Decimal(answer["granted"])
        self.generation = answer.get("generation", self.generation)
        self.short = answer.get("short", self.short)
        self._limited = frozenset(answer.get("limited", self._limited))
        self._holds_until = sent + TTL_S
        return answer


def this_machine() -> str:
    """Return an id of this machine that is valid until the machine reboots."""
    return KERNEL.read_text().strip()


def is_leased(folder: Path) -> bool:
    """Return whether a shard's calls need a lease: its run has limits, or has a lease server."""
    parent = parent_of(folder)
    return bool(parent and ((parent / ADDRESS).exists() or is_limited(parent)))


@contextmanager
def open_lease(folder: Path, book: Book) -> Generator[HeldLease]:
    """Open a shard's lease and renew it during the block; UserError if no lease server answers."""
    lease, parent = HeldLease(folder), parent_of(folder)
    try:
        if parent is None or not (parent / ADDRESS).exists():
            raise LeaseLost
        lease.open(_gone(folder, book))
    except LeaseLost:
        raise UserError(
            f"no process grants leases to {folder}: start the whole run again with its `podium run "
            "--shards` command."
        ) from None
    Thread(target=lease.beat, daemon=True).start()
    at_once = False
    try:
        yield lease
    except KeyboardInterrupt:
        if lease.lost:
            raise SystemExit(LOST) from None
        at_once = True  # the lease server may have been ended, too
        raise
    finally:
        lease.close(_gone(folder, book), at_once=at_once)


def settle(log_dir: Path, book: Book, limits: RunLimits) -> None:
    """End the leases of ended processes: each grant becomes the spending in its journals."""
    (log_dir / ADDRESS).unlink(missing_ok=True)  # this ends a server whose launcher was killed
    leases = open_book(log_dir, limits)
    running = {name: lease for name, lease in leases.shards.items() if not lease.closed}
    if any(lease.machine != this_machine() for lease in running.values()):
        say(f"Waiting {TTL_S:.0f} s, until the leases of shards on other machines have expired.")
        time.sleep(TTL_S)  # an unreachable machine may still make calls
    for name, lease in running.items():
        folder = shard_dir(log_dir, name)
        with ExitStack() as stack:
            try:
                stack.enter_context(lock_experiment(folder))
            except UserError:
                continue  # a process that outlived its launcher may still spend its whole grant
            leases.close(name, lease.generation, _gone(folder, book))
    leases.journal.close()


def _gone(folder: Path, book: Book) -> Decimal:
    so_far = spent_so_far(folder, book)
    return Spend(book, None, so_far.usd, unbounded=so_far.unbounded).gone
