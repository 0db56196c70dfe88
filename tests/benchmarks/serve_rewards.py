"""Rewards per second of the reward service, next to the same reward in this process.

    PYTHONPATH=. python tests/benchmarks/serve_rewards.py [--rounds 5] [--workers 2]

The services are processes of their own (`podium reward serve`, and with `--workers`), asked over
connections that are kept: batches of 256 to /score by one client and by two, and single items to
/rm by eight. Every completion is new, so that no grade is remembered. Of each round the ratios to
the in-process rate are printed, and microseconds of processor an item: of the clients, the head
and the replicas, which a busy machine moves less; all of them share its cores. `integer` is a text
reward, `formula` one of math500 that math-verify looks at, in processes that are not counted.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import anyio

from podium.harness.rewards.outcome import RewardItem, items_json
from podium.harness.rewards.reward import Reward
from podium.harness.rewards.splits import SuiteSplit, load_training_split
from podium.suites import SUITES

BATCH = 256
COMMAND = "import sys; from podium.cli import main; sys.exit(main())"
NUMBER = count()
THOUGHT = "We add the terms one by one and keep the remainder in mind. " * 30


@dataclass(frozen=True, slots=True)
class Case:
    """Completions of one kind, about 1,800 characters long, each of which nobody graded before."""

    suite: str
    says: Callable[[int], str]
    batches: int
    singles: int

    def items(self, split: SuiteSplit, n: int) -> list[RewardItem]:
        """Return new items."""
        ids, numbers = list(split.questions), [next(NUMBER) for _ in range(n)]
        return [
            RewardItem(self.suite, ids[at % len(ids)], f"{THOUGHT}Draft {at}. {self.says(at)}")
            for at in numbers
        ]


CASES = {
    "integer": Case(
        "practice-integer", lambda n: f"The answer is \\boxed{{{n % 1000}}}.", 40, 2000
    ),
    "formula": Case(
        "math500",
        lambda n: rf"The answer is \boxed{{\frac{{{n + 3}}}{{\sqrt{{{n + 7}}}}}}}.",
        2,
        64,
    ),
}


def posts(url: str, path: str, bodies: list[bytes]) -> None:
    """Send bodies one after another over one connection."""
    connection = HTTPConnection(urlsplit(url).netloc)
    for body in bodies:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 200, reply.status
    connection.close()


def sent(url: str, path: str, bodies: list[bytes], clients: int) -> Callable[[], None]:
    """Return what sends bodies from some threads, each over a connection of its own."""

    def work() -> None:
        with ThreadPoolExecutor(clients) as pool:
            parts = [bodies[at::clients] for at in range(clients)]
            list(pool.map(lambda part: posts(url, path, part), parts))

    return work


@dataclass(frozen=True, slots=True)
class Rate:
    """Rewards a second of the wall clock, and microseconds of processor for each."""

    per_s: float
    own_us: float
    others_us: tuple[float, ...] = ()

    def __str__(self) -> str:
        """Return it for a line."""
        parts = "+".join(f"{us:.0f}" for us in (self.own_us, *self.others_us))
        return f"{self.per_s:.0f}/s ({parts} us)"


def timed(work: Callable[[], object], n: int, pids: Sequence[int] = ()) -> Rate:
    """Return the rate of n rewards, and what they take of this process and of others."""
    wall, cpu, others = time.perf_counter(), time.process_time(), [cpu_s(pid) for pid in pids]
    work()
    spent = [cpu_s(pid) - before for pid, before in zip(pids, others, strict=True)]
    per_item = 1e6 / n
    own = (time.process_time() - cpu) * per_item
    return Rate(n / (time.perf_counter() - wall), own, tuple(one * per_item for one in spent))


def cpu_s(pid: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def with_children(pid: int) -> list[int]:
    """Return a process and those it started: a service's head, then its replicas."""
    found = [file.read_text().split() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    return [pid, *(int(child) for children in found for child in children)]


@dataclass(frozen=True, slots=True)
class Served:
    """A running service: its URL, and its processes, the head first."""

    url: str
    pids: list[int]


def in_process(case: Case, split: SuiteSplit) -> Rate:
    """Score batches in this process."""
    reward = Reward({case.suite: split})
    made = [case.items(split, BATCH) for _ in range(case.batches)]

    async def work() -> None:
        for batch in made:
            await reward.score(batch)

    return timed(lambda: anyio.run(work), BATCH * case.batches)


def over_http(case: Case, split: SuiteSplit, served: Served) -> list[Rate]:
    """Send batches from one client and from two, and single items from eight."""
    rates, url = list[Rate](), served.url
    for clients in (1, 2):
        made = [items_json(case.items(split, BATCH)) for _ in range(case.batches)]
        bodies = [json.dumps(one).encode() for one in made]
        work = sent(url, "/score", bodies, clients)
        rates.append(timed(work, BATCH * case.batches, served.pids))
    singles = case.items(split, case.singles)
    said = [{"response": one.completion, "label": f"{one.suite}/{one.question}"} for one in singles]
    bodies = [json.dumps(one).encode() for one in said]
    return [*rates, timed(sent(url, "/rm", bodies, 8), case.singles, served.pids)]


@contextmanager
def service(case: Case, workers: int) -> Generator[Served]:
    """Yield a service; print what it says at its end."""
    words = ["reward", "serve", "--suite", case.suite, "--workers", str(workers)]
    command = [sys.executable, "-c", COMMAND, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        found = re.search(r"http://[\d.]+:\d+", server.stdout.readline())
        assert found
        yield Served(found.group(), with_children(server.pid) if workers > 1 else [server.pid])
        server.terminate()
        print(f"workers {workers}: {server.stdout.read().strip()}")


def measured(name: str, rounds: int, workers: Sequence[int]) -> None:
    """Measure a case in rounds, in which who begins alternates, and print each and the medians."""
    case = CASES[name]
    split = load_training_split(SUITES[case.suite])
    ratios: dict[int, list[list[float]]] = {n: [] for n in workers}
    with ExitStack() as stack:
        services = {n: stack.enter_context(service(case, n)) for n in workers}
        for at in range(rounds):
            before = in_process(case, split)
            asked = {
                n: over_http(case, split, services[n]) for n in workers[:: -1 if at % 2 else 1]
            }
            here = (before.per_s + in_process(case, split).per_s) / 2
            print(f"{name}, round {at + 1}: in process {here:.0f}/s ({before.own_us:.0f} us)")
            for n in workers:
                ratios[n].append([rate.per_s / here for rate in asked[n]])
                told = ", ".join(map(str, asked[n]))
                print(f"  workers {n}, batches by one, by two, singles by eight: {told}")
        for n in workers:
            middle = (f"{median(column):.2f}" for column in zip(*ratios[n], strict=True))
            print(f"{name}, workers {n}: of the in-process rate, medians: {', '.join(middle)}")


def main() -> None:
    """Measure every case, with one process and with replicas."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--case", choices=CASES, action="append")
    args = parser.parse_args()
    for name in args.case or CASES:
        measured(name, args.rounds, sorted({1, args.workers}))


if __name__ == "__main__":
    main()
