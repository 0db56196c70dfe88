"""What the reward service answers three trainers; our own shape is wire.py.

A trainer that can leave an item out is told so; the others get an error, or an explicit 0 that they
asked for. Each shape is named with the file and version that was read for it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import PodiumError
from harness.rewards.bodies import OnUnscored
from harness.rewards.items import RewardOutcome, Status


class NoValue(PodiumError):
    """An item has no value and its trainer has no word for that: status 503, so that it retries."""


def valued(outcome: RewardOutcome) -> float:
    """Return the value; slime reads the whole reply as one number (`remote_rm`, at 0b420f1e).

    NoValue makes it try again, ten times, and then fail: it cannot leave one sample out.
    """
    if outcome.value is None:
        raise NoValue(f"No value ({outcome.status.value}): {outcome.reason}")
    return outcome.value


def get_reward_reply(outcomes: Sequence[RewardOutcome], on_unscored: OnUnscored) -> dict[str, Any]:
    """Return what OpenRLHF 0.11.2 reads (openrlhf/utils/agent.py, `execute`).

    `rewards` and `scores` are lists of numbers, as its own openrlhf/cli/serve_rm.py sends them, and
    every value of `extra_logs` becomes a tensor, so the keys never change and hold numbers only.
    With `error` a batch that has an item without a value fails whole; OpenRLHF tries five times and
    then carries on with no reward, on which it fails. With `zero` the item is 0 and marked.
    """
    zero = on_unscored == "zero"
    rewards = [0.0 if zero and one.value is None else valued(one) for one in outcomes]
    return {
        "rewards": rewards,
        "scores": rewards,
        "extra_logs": {
            "unscored": [float(one.value is None) for one in outcomes],
            "invalid_action": [float(one.status is Status.INVALID_ACTION) for one in outcomes],
            "worker_calls": [float(one.calls) for one in outcomes],
            "latency_s": [one.latency_s for one in outcomes],
        },
    }


KINDS: Mapping[Status, str] = {
    Status.WORKER_ERROR: "provider_unavailable",
    Status.SCORER_ERROR: "verifier_error",
    Status.TIMEOUT: "podium:timeout",
    Status.BUDGET: "provider_quota_exhausted",
}
"""Names of nemo_gym/failure_kinds.py at 00fa09c0; what it lacks goes by `server:kind`."""


def verify_reply(sent: Mapping[str, Any], outcome: RewardOutcome) -> dict[str, Any]:
    """Return NeMo-Gym's `BaseVerifyResponse`: the request, `reward`, and whether to leave it out.

    nemo_gym/base_resources_server.py beside that failure_kinds.py; older snapshots (473f503b) know
    `reward` alone and would take the 0 for a verdict.
    """
    failed = outcome.value is None
    return {
        **sent,
        "reward": 0.0 if outcome.value is None else outcome.value,
        "mask_sample": failed,
        "failure_kind": KINDS[outcome.status] if failed else None,
        "failure_reason": outcome.reason or None if failed else None,
        "status": outcome.status.value,
    }
