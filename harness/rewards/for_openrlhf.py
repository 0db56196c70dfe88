"""Rewards for OpenRLHF: `reward_func` (openrlhf 0.11.2, utils/agent.py, SingleTurnAgentExecutor).

    # my_reward.py, for --reward.remote_url my_reward.py
    reward_func = openrlhf_reward(make, on_unscored="raise")

It is called in a thread with one decoded query (prompt and reply), its prompt and its label, which
is `suite/question`. OpenRLHF has no word for a missing value: it catches what is raised, carries on
with no reward, and fails on that when it makes its batch (trainer/ppo_utils/experience_maker.py).
That is `raise`: a run stops rather than learns from it. `zero` goes on, and logs `unscored`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from harness.rewards.items import RewardOutcome
from harness.rewards.labels import completion_of, item_of
from harness.rewards.trainer import (
    Made,
    OnUnscored,
    Source,
    checked,
    replicated,
    value_of,
    wait_for,
)


def openrlhf_reward(scores: Source, *, on_unscored: OnUnscored) -> Callable[..., dict[str, Any]]:
    """Return a `reward_func`, to be named so in a file of yours; threads share its one reward."""
    choice, made = checked(on_unscored), Made(scores)

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **_: Any
    ) -> dict[str, Any]:
        rows = zip(queries, prompts, labels, strict=True)
        items = [item_of(label, completion_of(query, prompt)) for query, prompt, label in rows]
        return _said(wait_for(made().score(replicated(items))), choice)

    return reward_func


def _said(outcomes: Sequence[RewardOutcome], on_unscored: OnUnscored) -> dict[str, Any]:
    """Return plain numbers for one query, for it makes a tensor of `[rewards]`; else lists."""
    rewards = [value_of(outcome, on_unscored) for outcome in outcomes]
    unscored = [float(outcome.value is None) for outcome in outcomes]
    if len(outcomes) == 1:
        return {
            "rewards": rewards[0],
            "scores": rewards[0],
            "extra_logs": {"unscored": unscored[0]},
        }
    return {"rewards": rewards, "scores": rewards, "extra_logs": {"unscored": unscored}}
