"""Rewards per second of the reward service, next to the same reward in this process.

    PYTHONPATH=. python tests/benchmarks/serve_rewards.py [--rounds 3]

The service is a process of its own (`podium reward serve --suite practice-integer`), asked over
connections that are kept: batches of 256 to /score by one client, then single items to /rm by one
client and by eight. Every completion is new, so that no grade is remembered. Times are wall.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from itertools import count
from urllib.parse import urlsplit

import anyio

from harness.rewards.outcome import RewardItem, items_json
from harness.rewards.reward import Reward
from harness.rewards.splits import load_training_split
from suites import SUITES

SUITE = "practice-integer"
BATCH, BATCHES, SINGLES = 256, 40, 2000
COMMAND = "import sys; from harness.cli import main; sys.exit(main())"
NUMBER = count()
EXAM = load_training_split(SUITES[SUITE])
IDS = list(EXAM.questions)
THOUGHT = "We add the terms one by one and keep the remainder in mind. " * 30


def item() -> RewardItem:
    """Return a completion of about 1,800 characters that nobody graded before."""
    number = next(NUMBER)
    reply = f"{THOUGHT}Draft {number}. The answer is \\boxed{{{number % 1000}}}."
    return RewardItem(SUITE, IDS[number % len(IDS)], reply)


def posts(url: str, path: str, bodies: list[bytes]) -> None:
    """Send bodies one after another over one connection."""
    connection = HTTPConnection(urlsplit(url).netloc)
    for body in bodies:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 200, reply.status
    connection.close()


def batches(url: str) -> int:
    """Send batches of 256 and return how many rewards that were."""
    bodies = [
        json.dumps(items_json([item() for _ in range(BATCH)])).encode() for _ in range(BATCHES)
    ]
    return timed(lambda: posts(url, "/score", bodies), BATCH * BATCHES)


def singles(url: str, clients: int) -> int:
    """Send single items from some threads and return how many rewards a second that was."""
    made = [item() for _ in range(SINGLES)]
    bodies = [
        json.dumps({"response": one.completion, "label": f"{one.suite}/{one.question}"}).encode()
        for one in made
    ]
    parts = [bodies[at::clients] for at in range(clients)]

    def work() -> None:
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(lambda part: posts(url, "/rm", part), parts))

    return timed(work, SINGLES)


def here() -> int:
    """Score the same batches in this process."""
    reward = Reward({SUITE: EXAM})
    made = [[item() for _ in range(BATCH)] for _ in range(BATCHES)]

    async def work() -> None:
        for batch in made:
            await reward.score(batch)

    return timed(lambda: anyio.run(work), BATCH * BATCHES)


def timed(work: Callable[[], object], n: int) -> int:
    """Return n per second."""
    began = time.perf_counter()
    work()
    return round(n / (time.perf_counter() - began))


def main() -> None:
    """Measure in rounds and print each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    command = [sys.executable, "-c", COMMAND, "reward", "serve", "--suite", SUITE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        found = re.search(r"http://[\d.]+:\d+", server.stdout.readline())
        assert found
        url = found.group()
        for at in range(rounds):
            print(
                f"round {at + 1}: in process {here()}/s, batches of {BATCH} over HTTP "
                f"{batches(url)}/s, single items {singles(url, 1)}/s by one client, "
                f"{singles(url, 8)}/s by eight"
            )
        server.terminate()
        print(server.stdout.read().strip())


if __name__ == "__main__":
    main()
