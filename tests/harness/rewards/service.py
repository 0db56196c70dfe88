"""A real reward service on a free port of this machine, in a thread, and plain HTTP to it."""

import json
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from harness.rewards.outcome import Sampler, as_reply
from harness.rewards.reward import Reward, RewardSettings
from harness.rewards.server import RewardService, reward_app
from harness.rewards.splits import SuiteSplit
from harness.serving import Access, bound_socket, listen, with_access
from harness.suite import Suite
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
