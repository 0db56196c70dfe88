"""A replica: one of the processes that `podium reward serve --workers N` scores in.

It scores what the head (`replica_set`) sends and tells each outcome as it comes. Both write frames,
four bytes of length and then JSON, over one socket, which is the replica's standard input: it ends
with the head, however that ends. Nothing but the two of them can write to it.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from typing import Any, Protocol, cast, runtime_checkable

import anyio
import orjson
from pydantic import TypeAdapter

from podium.harness.budget import Lease
from podium.harness.errors import UserError
from podium.harness.rewards.outcome import RewardItem, RewardOutcome
from podium.harness.rewards.reward import Reward
from podium.harness.text import make_storable

PAUSE_S = 0.2
"""Between two requests for dollars that another replica may give back."""
SIZE_BYTES = 4
Frame = dict[str, Any]
Tell = Callable[[Frame], None]
_ANY = TypeAdapter(Any)


@runtime_checkable
class LeasedSampler(Protocol):
    """A sampler that spends, and can be told to spend what it is lent and no more."""

    before: Decimal
    """Dollars that earlier sittings have spent of the same limit."""

    def borrow(self, lease: Lease) -> None:
        """Spend from now on what is lent."""
        ...


def encode(value: object) -> bytes:
    """Return items or outcomes as JSON; dollars are strings, for they are exact."""
    try:
        return orjson.dumps(value, default=_plain)
    except TypeError:  # half of a surrogate pair in a reason, which no UTF-8 holds
        return orjson.dumps(make_storable(_ANY.dump_python(value, mode="json", fallback=_plain)))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):  # which cannot be changed, and is no dict
        return dict(cast(Mapping[str, object], value))
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError


def encode_frame(frame: Frame) -> bytes:
    """Return a frame's bytes."""
    raw = encode(frame)
    return len(raw).to_bytes(SIZE_BYTES, "big") + raw


def receive_frame(taken: socket.socket) -> Frame:
    """Return the next frame of a socket that blocks; EOFError where there is none."""

    def exactly(size: int) -> bytes:
        raw = taken.recv(size, socket.MSG_WAITALL)
        if len(raw) < size:
            raise EOFError
        return raw

    return orjson.loads(exactly(int.from_bytes(exactly(SIZE_BYTES), "big")))


async def frames_of(reader: asyncio.StreamReader) -> AsyncIterator[Frame]:
    """Yield frames until the other side has ended."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            size = int.from_bytes(await reader.readexactly(SIZE_BYTES), "big")
            yield orjson.loads(await reader.readexactly(size))


@dataclass(slots=True)
class _AskedGrant:
    future: "asyncio.Future[str]"
    overtaken: bool = False
    """Something was given back since it was asked: what it grants is no longer so."""


@dataclass(slots=True)
class ReplicaLease:
    """Dollars of the service's `--max-usd`: each call's part is asked for and given back."""

    tell: Tell
    granted: Decimal | None = Decimal(0)
    _numbers: "count[int]" = field(default_factory=count)
    _asked: dict[int, _AskedGrant] = field(default_factory=dict[int, _AskedGrant])

    async def more(self, most: Decimal | None, *, idle: bool) -> bool:
        """Ask for dollars up to `most`, None for all there are; say whether to ask again."""
        if most is not None and self.granted is not None and most <= self.granted:
            return True
        number, asked = next(self._numbers), _AskedGrant(asyncio.Future())
        self._asked[number] = asked
        self.tell({"did": "ask", "id": number, "most": most, "idle": idle})
        how = await asked.future
        if how == "wait" and idle:
            await anyio.sleep(PAUSE_S)
        return how == "granted" or (how == "wait" and idle)

    def keep(self, usd: Decimal) -> None:
        """Give back what is over this much."""
        if self.granted is not None and usd < self.granted:
            self.granted = usd
            for asked in self._asked.values():
                asked.overtaken = True
            self.tell({"did": "keep", "usd": usd})

    def answered(self, frame: Frame) -> None:
        """Take what the head has granted."""
        asked = self._asked.pop(frame["id"])
        if not asked.overtaken:
            self.granted = Decimal(frame["granted"])
        if not asked.future.done():  # its item's time was over
            asked.future.set_result(frame["how"])


@dataclass(slots=True)
class _Told:
    """The outcomes of one request that wait to be told: those of one moment are one frame."""

    number: int
    tell: Tell
    places: list[int] = field(default_factory=list[int])
    outcomes: list[RewardOutcome] = field(default_factory=list[RewardOutcome])

    def add(self, at: int, outcome: RewardOutcome) -> None:
        if not self.places:
            asyncio.get_running_loop().call_soon(self._send)
        self.places.append(at)
        self.outcomes.append(outcome)

    def _send(self) -> None:
        said = {"at": self.places, "outcomes": self.outcomes}
        self.tell({"did": "score", "id": self.number, **said})
        self.places, self.outcomes = [], []


@dataclass(slots=True)
class _Requests:
    """What a replica is scoring, by number."""

    reward: Reward
    tell: Tell
    scopes: dict[int, anyio.CancelScope] = field(default_factory=dict[int, anyio.CancelScope])

    async def score(self, number: int, rows: Sequence[Frame]) -> None:
        workers = [tuple(row.pop("workers")) for row in rows]
        items = [RewardItem(**row, workers=one) for row, one in zip(rows, workers, strict=True)]
        with self.scopes.setdefault(number, anyio.CancelScope()):
            try:
                await self.reward.score_each(items, _Told(number, self.tell).add)
            except UserError as error:
                self.tell({"did": "refuse", "id": number, "said": str(error)})
        self.scopes.pop(number, None)

    def cancel(self, number: int) -> None:
        if number in self.scopes:
            self.scopes[number].cancel()


async def answer_head(taken: socket.socket, reward: Reward, answer: object) -> None:
    """Score what the head sends until it ends."""
    reader, writer = await asyncio.open_unix_connection(sock=taken)

    def tell(frame: Frame) -> None:
        writer.write(encode_frame(frame))

    requests, lease = _Requests(reward, tell), ReplicaLease(tell)
    if isinstance(answer, LeasedSampler):
        answer.borrow(lease)
    async with anyio.create_task_group() as group:
        async for frame in frames_of(reader):
            match frame["do"]:
                case "score":
                    group.start_soon(requests.score, frame["id"], frame["items"])
                case "grant":
                    lease.answered(frame)
                case _:
                    requests.cancel(frame["id"])
        group.cancel_scope.cancel()
