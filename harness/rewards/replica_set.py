"""The head of `podium reward serve --workers N`: one counter and one limit over N replicas.

The head answers HTTP and hands every item to the replica that does least, an equal one to where the
first went, so that it is graded once. Outcomes are counted here and once, as they come: what a
replica had told when it was killed stays, the rest of its items goes to another one, and an item
that loses two replicas has no value.
"""

import asyncio
import socket
import subprocess
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count

from podium.harness.errors import UserError
from podium.harness.rewards.outcome import (
    RewardCounter,
    RewardCounts,
    RewardItem,
    RewardOutcome,
    Status,
    outcomes_from,
)
from podium.harness.rewards.replica import Frame, encode_frame, frames_of, receive_frame
from podium.harness.rewards.reward import REMEMBERED
from podium.harness.text import pluralise

TRIES = 2
"""Replicas that an item may lose: one that ends its process would end them all."""
LONGEST_PAUSE_S = 30.0
PATIENCE_S = 10.0
"""How long a replica may take to close its box before it is killed."""
LOST = "The process that scored it was lost, twice. Another try may do better."
ZERO = Decimal(0)


@dataclass(slots=True)
class SharedBudget:
    """What replicas may spend of one limit: the sum of what they hold never passes it."""

    limit: Decimal
    lent: dict[int, Decimal] = field(default_factory=dict[int, Decimal])
    lost: Decimal = ZERO
    """What killed replicas held: nobody knows how much of it they spent."""
    hungry: set[int] = field(default_factory=set[int])
    """Replicas that wait for dollars, with no call in flight."""

    def lend(self, number: int, most: Decimal | None, idle: bool, busy: set[int]) -> str:
        """Lend a replica dollars up to `most`, None for all there are; say how that went.

        `granted`; `wait` while one of the `busy` ones may give something back; `none`.
        """
        mine = self.lent.get(number, ZERO)
        left = self.limit - self.lost - sum(self.lent.values(), ZERO)
        wanted = left if most is None else most - mine
        if wanted <= left and left > 0:
            self.lent[number] = mine + max(wanted, ZERO)
            self.hungry.discard(number)
            return "granted"
        if idle:
            self.hungry.add(number)
        return "wait" if busy - self.hungry - {number} else "none"

    def keep(self, number: int, usd: Decimal) -> None:
        """Take back what is over this much."""
        self.lent[number] = min(usd, self.lent.get(number, ZERO))
        self.hungry.discard(number)

    def lose(self, number: int) -> None:
        """Count what a killed replica held as spent."""
        self.lost += self.lent.pop(number, ZERO)
        self.hungry.discard(number)


@dataclass(slots=True, eq=False)
class _Request:
    """Items that came together, and what has become of them."""

    items: Sequence[RewardItem]
    ended: "asyncio.Future[None]"
    made: dict[int, RewardOutcome] = field(default_factory=dict[int, RewardOutcome])

    def end(self, error: Exception | None = None) -> None:
        if self.ended.done():
            return
        if error:
            self.ended.set_exception(error)
        else:
            self.ended.set_result(None)


@dataclass(slots=True, eq=False)
class _Part:
    """What one replica does of a request."""

    request: _Request
    places: list[int]
    lost: int = 0
    """Replicas that its items have lost."""

    @property
    def left(self) -> list[int]:
        return [at for at in self.places if at not in self.request.made]


@dataclass(slots=True, eq=False)
class Replica:
    """A process, and what it has to do."""

    number: int
    hello: bytes
    """What it is to serve."""
    command: Sequence[str]
    """Starts a process that calls `run_replica` on standard input."""
    process: subprocess.Popen[bytes] | None = None
    head: socket.socket | None = None
    """Our end of its standard input, while nobody reads it."""
    writer: asyncio.StreamWriter | None = None
    """None while it is not there."""
    parts: dict[int, _Part] = field(default_factory=dict[int, _Part])
    load: int = 0
    """Items that it was handed and has not told of."""

    def start(self) -> None:
        """Start the process and wait until it is ready; UserError with what it refuses."""
        head, theirs = socket.socketpair()
        with theirs:
            # In a session of its own: Ctrl-C is for the head, which first ends what is in flight.
            self.process = subprocess.Popen(
                self.command, stdin=theirs.fileno(), start_new_session=True
            )
        self.head = head
        try:
            head.sendall(self.hello)
            said = receive_frame(head)
        except (EOFError, OSError):
            said = {"refused": f"Replica {self.number} ended before it could serve."}
        if refused := said.get("refused"):
            raise UserError(refused)

    def tell(self, frame: Frame) -> None:
        """Send a frame, if the replica is there."""
        if self.writer is not None and not self.writer.is_closing():
            self.writer.write(encode_frame(frame))

    def close(self) -> None:
        """Let the process end."""
        if self.writer is not None:
            self.writer.close()
        elif self.head is not None:
            self.head.close()

    def wait(self) -> None:
        """Wait for the process to end, and kill it where it does not."""
        if self.process is None:
            return
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class ReplicaSet:
    """Rewards by several processes, counted in this one; for one event loop."""

    def __init__(
        self,
        replicas: Sequence[Replica],
        counter: RewardCounter,
        say: Callable[[str], None],
        *,
        fresh: bool = False,
        budget: SharedBudget | None = None,
        check: Callable[[RewardItem], object] = bool,
    ) -> None:
        """Take started replicas, what counts, and what tells of losses.

        `fresh`: equal items may come to different outcomes, for workers are asked. `check` refuses
        an item before any of its request is scored.
        """
        self._check = check
        self._replicas, self._counter, self._say = replicas, counter, say
        self._fresh, self._budget = fresh, budget
        self._homes: OrderedDict[int, Replica] = OrderedDict()
        self._numbers = count()
        self._waiting: list[_Part] = []  # while no replica is there

    @property
    def counts(self) -> RewardCounts:
        """What has been rewarded so far, by all of them."""
        return self._counter.counts()

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return one outcome per item, in order; TooManyMasked from the first time on."""
        for item in items:
            self._check(item)
        if self._budget and self._counter.usd >= self._budget.limit:
            for _ in items:
                self._counter.note(_SPENT)
            self._counter.refuse()
            return [_SPENT] * len(items)
        request = _Request(items, asyncio.get_running_loop().create_future())
        self._hand_out(_Part(request, [*range(len(items))]))
        try:
            await request.ended
        finally:
            self._forget(request)
        self._counter.refuse()
        return [request.made[at] for at in range(len(items))]

    @asynccontextmanager
    async def run(self, application: object = None) -> AsyncGenerator[None]:
        """Read what the replicas say, and start those again that are lost, while the block runs."""
        tasks = [asyncio.create_task(self._attend(one)) for one in self._replicas]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for replica in self._replicas:
                if replica.writer is None and replica.process is not None:
                    replica.process.kill()  # it is being started, and a thread waits for it
                replica.close()

    def _hand_out(self, part: _Part) -> None:
        """Hand each item to a replica, or keep all until one is there."""
        there = [one for one in self._replicas if one.writer is not None]
        if not there:
            self._waiting.append(part)
            return
        items = part.request.items
        shares: dict[int, list[int]] = {}
        for at in part.left:
            replica = self._home(items[at], there)
            replica.load += 1
            shares.setdefault(replica.number, []).append(at)
        for replica in there:
            if places := shares.get(replica.number):
                number = next(self._numbers)
                replica.parts[number] = _Part(part.request, places, part.lost)
                rows = [items[at] for at in places]
                replica.tell({"do": "score", "id": number, "items": rows})

    def _home(self, item: RewardItem, there: Iterable[Replica]) -> Replica:
        """Return the replica that had an equal item, or else the one that has least to do."""
        own = item.replicate if self._fresh else 0
        key = hash((item.suite, item.question, item.epoch, item.completion, own))
        replica = self._homes.get(key)
        if replica is None or replica.writer is None:
            replica = min(there, key=_load)
            self._homes[key] = replica
            if len(self._homes) > REMEMBERED:
                self._homes.popitem(last=False)
        return replica

    def _forget(self, request: _Request) -> None:
        """Stop what is left of a request."""
        for replica in self._replicas:
            over = [number for number, one in replica.parts.items() if one.request is request]
            for number in over:
                replica.load -= len(replica.parts.pop(number).left)
                replica.tell({"do": "cancel", "id": number})

    async def _attend(self, replica: Replica) -> None:
        """Serve one replica's frames, and start it again whenever it is lost."""
        pause_s = 1.0
        while True:
            if replica.head is not None:
                await self._listen(replica)
                await asyncio.to_thread(replica.wait)
            try:
                await asyncio.to_thread(replica.start)
                pause_s = 1.0
            except UserError as error:
                self._say(f"Replica {replica.number} cannot be started again: {error}")
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _listen(self, replica: Replica) -> None:
        """Hand a replica what waits, and read what it says until it ends."""
        reader, replica.writer = await asyncio.open_unix_connection(sock=replica.head)
        replica.head = None  # the writer's now
        waiting, self._waiting = self._waiting, []
        for part in waiting:
            self._hand_out(part)
        async for frame in frames_of(reader):
            self._read(replica, frame)
        replica.writer.close()
        replica.writer = None
        self._lose(replica)

    def _lose(self, replica: Replica) -> None:
        """Hand what a lost replica had to others, at most as often as may be."""
        if self._budget:
            self._budget.lose(replica.number)
        parts, replica.parts, replica.load = [*replica.parts.values()], {}, 0
        lost = sum(len(part.left) for part in parts)
        self._say(
            f"Replica {replica.number} was lost; {pluralise(lost, 'item')} that it had go to "
            "others, and it is started again."
        )
        for part in parts:
            part.lost += 1
            if part.lost < TRIES:
                self._hand_out(part)
                continue
            for at in part.left:
                self._note(part.request, at, _LOST)

    def _read(self, replica: Replica, frame: Frame) -> None:
        kind = frame["did"]
        if kind == "ask" and self._budget:
            busy = {one.number for one in self._replicas if one.parts}
            most = None if frame["most"] is None else Decimal(frame["most"])
            how = self._budget.lend(replica.number, most, frame["idle"], busy)
            lent = self._budget.lent.get(replica.number, ZERO)
            replica.tell({"do": "grant", "id": frame["id"], "how": how, "granted": lent})
        elif kind == "keep" and self._budget:
            self._budget.keep(replica.number, Decimal(frame["usd"]))
        elif (part := replica.parts.get(frame.get("id", -1))) is None:
            return  # of a request that has ended
        elif kind == "score":
            replica.load -= len(frame["at"])
            for index, outcome in zip(frame["at"], outcomes_from(frame), strict=True):
                self._note(part.request, part.places[int(index)], outcome)
            if not part.left:
                del replica.parts[frame["id"]]
        elif kind == "refuse":
            part.request.end(UserError(frame["said"]))

    def _note(self, request: _Request, at: int, outcome: RewardOutcome) -> None:
        """Count an outcome; the last one, and one too many without a value, end their request."""
        if request.ended.done():
            return
        request.made[at] = outcome
        self._counter.pay(outcome.usd)
        self._counter.note(outcome)
        over = len(request.made) == len(request.items)
        if over or (outcome.value is None and self._counter.refusal):
            request.end()


def _load(replica: Replica) -> int:
    return replica.load


_NOTHING = {"correct": None, "parsed": None}
_SPENT = RewardOutcome(
    None, Status.BUDGET, _NOTHING, reason="The money was spent before its turn.", usd=ZERO
)
_LOST = RewardOutcome(None, Status.SCORER_ERROR, _NOTHING, reason=LOST)


@contextmanager
def started(hellos: Sequence[Frame], command: Sequence[str]) -> Generator[list[Replica]]:
    """Yield replicas that are ready, one for each hello; end them with the block."""
    replicas = [Replica(at, encode_frame(hello), command) for at, hello in enumerate(hellos, 1)]
    try:
        with ThreadPoolExecutor(len(replicas)) as pool:
            for _ in pool.map(Replica.start, replicas):
                pass  # raises what the first one refuses
        yield replicas
    finally:
        for replica in replicas:
            replica.close()
        for replica in replicas:
            replica.wait()
