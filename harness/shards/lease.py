"""Who may spend what of a run's `--max-usd`: grants to shards, each written down before it counts.

The sum of what all shards were granted, and of what those that ended have spent, never passes the
limit. A shard that is lost keeps its grant until it opens again with what its journals have. Turns
to ask a provider are shared out as well (`--rpm`); nobody writes those down.
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
"""How long a lease holds that was not renewed: a shard asks nobody after that, and its next process
on another machine begins after that."""
TURNS_S = 2.0
"""How far ahead turns are given out: as long a server that was killed is waited for."""
ZERO, MICRO = Decimal(0), Decimal("0.000001")


class Fenced(Exception):
    """A shard has a newer process, and this one may make no more calls."""


class Held(Exception):
    """A process of the shard on another machine may still be there: its lease has to run out."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What all shards of a run may do together; of None and of who is not there, any number."""

    usd: Decimal | None = None
    rpm: Mapping[str, int] = field(default_factory=dict[str, int])
    """Provider -> calls a minute."""


@dataclass(slots=True)
class ShardLease:
    """Up to how many dollars a shard may come, all of its processes together."""

    generation: int = 0
    granted: Decimal = ZERO
    closed: bool = True
    seen: float = 0.0
    hungry: bool = False
    """It has nothing in flight, and its next call costs more than it has left."""
    machine: str = ""
    """Of the process that holds it."""


@dataclass(slots=True)
class LeaseBook:
    """The leases of a run; safe for one thread."""

    journal: Journal
    limits: RunLimits
    turns: RateLimiter
    shards: dict[str, ShardLease] = field(default_factory=dict[str, ShardLease])
    clock: Callable[[], float] = time.monotonic

    @property
    def assigned(self) -> Decimal:
        """What shards may spend, and what those that ended have spent."""
        return sum((one.granted for one in self.shards.values()), ZERO)

    @property
    def short(self) -> bool:
        """Whether a shard waits for what others may give back."""
        return any(one.hungry for one in self._live())

    def open(self, shard: str, spent: Decimal, machine: str = "") -> ShardLease:
        """Begin a shard's next generation; what its last one was granted is what it has spent."""
        old = self.shards.get(shard, ShardLease())
        if not old.closed and old.machine != machine and self.clock() - old.seen < TTL_S:
            raise Held(shard)
        made = ShardLease(old.generation + 1, spent, False, self.clock(), machine=machine)
        self._write("open", shard, made)
        return made

    def extend(self, shard: str, generation: int, most: Decimal | None, idle: bool) -> str:
        """Grant a shard dollars up to `most`, None for all there are; say how that went."""
        one, limit = self._of(shard, generation), self.limits.usd
        if limit is None:
            return "granted"
        left = limit - self.assigned
        wanted = left if most is None else most - one.granted
        if wanted > left or left <= 0:
            one.hungry = idle
            others = (other for other in self._live() if other is not one)
            return "wait" if any(not other.hungry for other in others) else "none"
        one.hungry = False
        share = (left / (2 * max(len([*self._live()]), 1))).quantize(MICRO, ROUND_DOWN)
        if wanted > 0:
            one.granted += max(wanted, share)
            self._write("grant", shard, one)
        return "granted"

    def reserve(self, shard: str, generation: int, provider: str, calls: int) -> list[float]:
        """Return in how many seconds each of some calls may begin, as many as do so soon."""
        self._of(shard, generation)
        return self.turns.reserve(provider, calls, TURNS_S)

    def beat(self, shard: str, generation: int, keeps: Decimal | None = None) -> ShardLease:
        """Note that a shard is there, and that it needs no more than what it `keeps`."""
        one = self._of(shard, generation)
        if keeps is not None and keeps < one.granted:
            one.granted = keeps
            self._write("return", shard, one)
        return one

    def close(self, shard: str, generation: int, spent: Decimal) -> None:
        """End a shard's generation: what it did not spend is free."""
        one = self._of(shard, generation)
        one.granted, one.closed = spent, True
        self._write("close", shard, one)

    def _of(self, shard: str, generation: int) -> ShardLease:
        one = self.shards.get(shard)
        if one is None or one.closed or one.generation != generation:
            raise Fenced(shard)
        one.seen = self.clock()
        return one

    def _live(self) -> Iterator[ShardLease]:
        now = self.clock()
        for one in self.shards.values():
            if not one.closed and now - one.seen < TTL_S:
                yield one

    def _write(self, kind: str, shard: str, one: ShardLease) -> None:
        said = {"shard": shard, "generation": one.generation, "granted": f"{one.granted:f}"}
        self.journal.write(kind, said | {"machine": one.machine} if kind == "open" else said)
        self.journal.sync()
        self.shards[shard] = one


def open_book(log_dir: Path, limits: RunLimits) -> LeaseBook:
    """Return the leases of a run as its journal has them; UserError where it was changed."""
    path = log_dir / FILE
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    fcntl.flock(handle, fcntl.LOCK_EX)  # an earlier server, whose launcher was killed, ends
    whole = path.read_bytes().rfind(b"\n") + 1
    os.ftruncate(handle, whole)  # a line that is torn was never answered
    chain = read_chain(path)
    for fault in chain.faults:
        os.close(handle)
        raise UserError(
            f"{path} line {fault.line} is not as it was written: put the file back, or name "
            "another --log-dir."
        )
    journal = Journal(path, handle, chain.last, whole)
    book = LeaseBook(journal, limits, RateLimiter(limits.rpm))
    for line in read_lines(path):
        if line["kind"] in KINDS:
            before = book.shards.get(line["shard"])
            book.shards[line["shard"]] = lease_of(line, before, book.clock())
    if whole:  # an earlier server may have given out turns that are still to come
        for provider, rpm in limits.rpm.items():
            book.turns.next[provider] = book.turns.clock() + TURNS_S + MINUTE_S / rpm
    usd = None if limits.usd is None else f"{limits.usd:f}"
    journal.write(LIMIT, {"usd": usd, "rpm": dict(limits.rpm)})
    journal.sync()
    return book


def _lines(log_dir: Path) -> Iterator[dict[str, Any]]:
    yield from read_lines(log_dir / FILE) if (log_dir / FILE).exists() else ()


def is_limited(log_dir: Path) -> bool:
    """Say whether the last command that cut a run gave it a limit."""
    limits = [line for line in _lines(log_dir) if line.get("kind") == LIMIT]
    return bool(limits and (limits[-1].get("usd") is not None or limits[-1].get("rpm")))


def assigned(log_dir: Path) -> Decimal:
    """Return what the shards of a run were granted, or have spent where they ended."""
    lines = (line for line in _lines(log_dir) if line["kind"] in KINDS)
    last = {line["shard"]: Decimal(line["granted"]) for line in lines}
    return sum(last.values(), ZERO)


KINDS = frozenset({"open", "grant", "return", "close"})


def lease_of(
    line: Mapping[str, Any], before: ShardLease | None = None, seen: float = 0.0
) -> ShardLease:
    """Return the lease that a line of the journal leaves of the one before it."""
    closed, machine = line["kind"] == "close", line.get("machine", before.machine if before else "")
    granted = Decimal(line["granted"])
    return ShardLease(line["generation"], granted, closed, seen, machine=machine)
