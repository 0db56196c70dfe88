"""A real reward service on a free port of this machine, in a thread or a process of its own."""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from podium.harness.listener import Access, bound_socket, listen, with_access
from podium.harness.rewards.outcome import Sampler, as_reply
from podium.harness.rewards.reward import Reward, RewardSettings
from podium.harness.rewards.server import RewardService, reward_app
from podium.harness.rewards.splits import SuiteSplit
from podium.harness.suite import Suite
from tests import ROOT
from tests.harness.in_thread import served

PLAINLY = RewardSettings()


def train(*suites: Suite[Any], first: int = 20) -> dict[str, SuiteSplit]:
    """Return the first train questions of some suites."""
    return {
        suite.name: SuiteSplit(suite, {one.id: one for one in suite.load("train")[:first]})
        for suite in suites
    }


def service_of(
    exams: Mapping[str, SuiteSplit],
    settings: RewardSettings = PLAINLY,
    *,
    answer: Sampler = as_reply,
    box: Any = None,
) -> RewardService:
    """Return the service of some exams, as `podium reward serve` makes it."""
    reward = Reward(exams, answer, settings, box)
    return RewardService(reward, exams, fresh=answer is not as_reply)


@contextmanager
def listening(service: RewardService, token: str = "", *names: str) -> Generator[str]:
    """Yield the URL of a service that runs until the block ends, as `podium reward serve` does."""
    with bound_socket("127.0.0.1", 0) as taken:
        url = listen(taken)
        access = Access("127.0.0.1", taken.getsockname()[1], frozenset(names), token)
        with served(with_access(reward_app(service), access), taken):
            yield url


def get(url: str) -> tuple[int, Any]:
    """Return status and JSON of a GET."""
    return _sent(urllib.request.Request(url))


def post(url: str, body: object) -> tuple[int, Any]:
    """Return status and JSON of a POST; bytes go as they are, all else as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return _sent(urllib.request.Request(url, raw, {"Content-Type": "application/json"}))


def _sent(request: urllib.request.Request) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@dataclass(frozen=True, slots=True)
class Process:
    """A running `podium reward serve`."""

    process: subprocess.Popen[str]
    first: str
    url: str

    def stopped(self, number: int) -> tuple[str, str, int]:
        """Send a signal and return what was printed after the first line, and the exit code."""
        self.process.send_signal(number)
        out, error = self.process.communicate(timeout=30)
        return out, error, self.process.returncode


COMMAND = "import sys; from podium.cli import main; sys.exit(main())"


@contextmanager
def started(*arguments: str) -> Generator[Process]:
    command = [sys.executable, "-c", COMMAND, "reward", "serve", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first, process.communicate()[1]
            found = re.search(r"http://[\d.]+:\d+", first)
            assert found
            yield Process(process, first, found.group())
        finally:
            process.kill()
