"""Leases of dollars: grants shards a part of `--max-usd`, each logged before it takes effect.

The sum of all grants, and of the spending of ended shards, never exceeds the limit. A lost shard
keeps its grant until it reopens and reports the spending in its journals. Start times (turns) for
the calls to a provider are assigned, too (`--rpm`); they are not logged.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Decimal
from pathlib import Path
from typing import Any

from podium.harness.errors import UserError
from podium.harness.ledger.journal import Journal, read_chain, read_lines
from podium.harness.parallel import MINUTE_S, RateLimiter

LIMIT = "limit"
FILE, ADDRESS = "leases.jsonl", "lease-server.json"
TTL_S = 15.0
"""How long a shard's lease lasts without renewal, in seconds. After that, the shard makes no more
calls, and its next process may start on another machine."""
TURNS_S = 2.0
"""How many seconds ahead calls' start times are assigned, at most; a new server waits as long."""
ZERO, MICRO = Decimal(0), Decimal("0.000001")


class Fenced(Exception):
    """Raised if the shard has a newer process: the older process may make no more calls."""


class Held(Exception):
    """Raised if a shard's process may still run on another machine: its lease must expire first."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of all shards of a run together: dollars (None: no limit) and calls per provider."""

    usd: Decimal | None = None
    rpm: Mapping[str, int] = field(default_factory=dict[str, int])
    """Provider -> maximum calls a minute; a provider that is not here has no limit."""


@dataclass(slots=True)
class ShardLease:
    """A shard's lease of dollars; the grant covers all processes that the shard has had."""

    generation: int = 0  # number of processes that the shard has had
    granted: Decimal = ZERO  # dollars; the spending once the lease is closed
    closed: bool = True
    seen: float = 0.0  # monotonic time of the last renewal, in seconds
    hungry: bool = False
    """Whether the shard is idle because its next call costs more than the rest of its grant."""
    machine: str = ""
    """Id of the machine whose process has the lease (`this_machine`)."""


@dataclass(slots=True)
class LeaseBook:
    """All shards' leases in a run, and the journal that logs them; for use in one thread."""

    journal: Journal
    limits: RunLimits
    turns: RateLimiter
    shards: dict[str, ShardLease] = field(default_factory=dict[str, ShardLease])
    clock: Callable[[], float] = time.monotonic

    @property
    def assigned(self) -> Decimal:
        """Dollars of the run that are taken: grants of running shards, spending of ended ones."""
        return sum((lease.granted for lease in self.shards.values()), ZERO)

    @property
    def short(self) -> bool:
        """Whether a running shard waits for dollars that other shards may return."""
        return any(lease.hungry for lease in self._live())

    def open(self, shard: str, spent: Decimal, machine: str = "") -> ShardLease:
        """Open a lease that grants the dollars spent so far; Held if the old one must expire."""
        old = self.shards.get(shard, ShardLease())
        if not old.closed and old.machine != machine and self.clock() - old.seen < TTL_S:
            raise Held(shard)
        lease = ShardLease(old.generation + 1, spent, False, self.clock(), machine=machine)
        self._write("open", shard, lease)
        return lease

    def extend(self, shard: str, generation: int, total: Decimal | None, idle: bool) -> str:
        """Raise a shard's grant to at least `total` dollars (None: all that are left).

        Returns `granted`; `wait` if other shards may return dollars; else `none`.
        """
        lease, limit = self._of(shard, generation), self.limits.usd
        if limit is None:
            return "granted"
        remaining = limit - self.assigned
        increase = remaining if total is None else total - lease.granted
        if increase > remaining or remaining <= 0:
            lease.hungry = idle
            rivals = (rival for rival in self._live() if rival is not lease)
            return "wait" if any(not rival.hungry for rival in rivals) else "none"
        lease.hungry = False
        share = (remaining / (2 * max(len([*self._live()]), 1))).quantize(MICRO, ROUND_DOWN)
        if increase > 0:
            lease.granted += max(increase, share)
            self._write("grant", shard, lease)
        return "granted"

    def reserve(self, shard: str, generation: int, provider: str, calls: int) -> list[float]:
        """Return the delays, in s, of up to `calls` calls to a provider; none exceeds `TURNS_S`."""
        self._of(shard, generation)
        return self.turns.reserve(provider, calls, TURNS_S)

    def beat(self, shard: str, generation: int, keeps: Decimal | None = None) -> ShardLease:
        """Renew a shard's lease; reduce its grant to `keeps` dollars, if that is less."""
        lease = self._of(shard, generation)
        if keeps is not None and keeps < lease.granted:
            lease.granted = keeps
            self._write("return", shard, lease)
        return lease

    def close(self, shard: str, generation: int, spent: Decimal) -> None:
        """End a shard's lease; its unspent dollars become available to other shards."""
        lease = self._of(shard, generation)
        lease.granted, lease.closed = spent, True
        self._write("close", shard, lease)

    def _of(self, shard: str, generation: int) -> ShardLease:
        lease = self.shards.get(shard)
        if lease is None or lease.closed or lease.generation != generation:
            raise Fenced(shard)
        lease.seen = self.clock()
        return lease

    def _live(self) -> Iterator[ShardLease]:
        now = self.clock()
        for lease in self.shards.values():
            if not lease.closed and now - lease.seen < TTL_S:
                yield lease

    def _write(self, kind: str, shard: str, lease: ShardLease) -> None:
        row = {"shard": shard, "generation": lease.generation, "granted": f"{lease.granted:f}"}
        self.journal.write(kind, row | {"machine": lease.machine} if kind == "open" else row)
        self.journal.sync()
        self.shards[shard] = lease


def open_book(log_dir: Path, limits: RunLimits) -> LeaseBook:
    """Return a run's leases, read from their journal; UserError if the journal was changed."""
    path = log_dir / FILE
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    fcntl.flock(handle, fcntl.LOCK_EX)  # waits for an earlier server, whose launcher was killed
    size = path.read_bytes().rfind(b"\n") + 1
    os.ftruncate(handle, size)  # the request of an incomplete line got no reply
    chain = read_chain(path)
    for fault in chain.faults:
        os.close(handle)
        raise UserError(
            f"{path} line {fault.line} was changed after it was written: restore the file, or name "
            "another --log-dir."
        )
    journal = Journal(path, handle, chain.last, size)
    book = LeaseBook(journal, limits, RateLimiter(limits.rpm))
    for line in read_lines(path):
        if line["kind"] in KINDS:
            prior = book.shards.get(line["shard"])
            book.shards[line["shard"]] = lease_of(line, prior, book.clock())
    if size:  # an earlier server may have assigned future start times
        for provider, rpm in limits.rpm.items():
            book.turns.next[provider] = book.turns.clock() + TURNS_S + MINUTE_S / rpm
    usd = None if limits.usd is None else f"{limits.usd:f}"
    journal.write(LIMIT, {"usd": usd, "rpm": dict(limits.rpm)})
    journal.sync()
    return book


def _lines(log_dir: Path) -> Iterator[dict[str, Any]]:
    yield from read_lines(log_dir / FILE) if (log_dir / FILE).exists() else ()


def is_limited(log_dir: Path) -> bool:
    """Return whether the last command that divided the run into shards set a limit."""
    limits = [line for line in _lines(log_dir) if line.get("kind") == LIMIT]
    return bool(limits and (limits[-1].get("usd") is not None or limits[-1].get("rpm")))


def assigned(log_dir: Path) -> Decimal:
    """Return the sum of shards' grants, in dollars; for ended shards, their spending."""
    lines = (line for line in _lines(log_dir) if line["kind"] in KINDS)
    granted = {line["shard"]: Decimal(line["granted"]) for line in lines}
    return sum(granted.values(), ZERO)


KINDS = frozenset({"open", "grant", "return", "close"})


def lease_of(
    line: Mapping[str, Any], prior: ShardLease | None = None, last_seen: float = 0.0
) -> ShardLease:
    """Return a shard's lease as one line of the leases' journal changes it from `prior`."""
    closed, machine = line["kind"] == "close", line.get("machine", prior.machine if prior else "")
    granted = Decimal(line["granted"])
    return ShardLease(line["generation"], granted, closed, last_seen, machine=machine)
