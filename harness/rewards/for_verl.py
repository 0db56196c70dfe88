"""Rewards for verl: `compute_score` (verl 0.9.1, trainer/ppo/reward.py and its reward managers).

    reward.custom_reward_function.path=.../harness/rewards/for_verl.py
    reward.custom_reward_function.name=compute_score
    reward.custom_reward_function.reward_kwargs={url: "http://127.0.0.1:8000", on_unscored: raise}

or a file of your own that says `compute_score = verl_reward(make, on_unscored="raise")`. The column
`data_source` is the suite, `extra_info.question` the question's id; `ground_truth` is not read.

verl knows no missing reward. With `raise` the `naive` reward manager ends training; `rate_limited`
catches it and writes 0 without a word, so use `naive`, or `zero`, which at least says `unscored`.
"""

import math
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

from harness.errors import UserError
from harness.rewards.client import RewardClient
from harness.rewards.items import RewardItem, RewardOutcome
from harness.rewards.trainer import Made, OnUnscored, Source, checked, value_of

ComputeScore = Callable[..., Awaitable[dict[str, Any]]]


def verl_reward(scores: Source, *, on_unscored: OnUnscored) -> ComputeScore:
    """Return an `async def compute_score`: verl runs a mere callable object as if it were sync."""
    choice, made = checked(on_unscored), Made(scores)

    async def compute_score(
        data_source: str,
        solution_str: str,
        ground_truth: Any = None,
        extra_info: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        item = _item(data_source, solution_str, extra_info or {})
        (outcome,) = await made().score([item])
        return _said(outcome, choice)

    return compute_score


async def compute_score(
    *args: Any, url: str = "", on_unscored: Any = None, **kwargs: Any
) -> dict[str, Any]:
    """Score by the reward service at `url`; both it and `on_unscored` come by reward_kwargs."""
    return await _by_service(url, on_unscored)(*args, **kwargs)


@cache
def _by_service(url: str, on_unscored: OnUnscored) -> ComputeScore:
    return verl_reward(RewardClient(url), on_unscored=on_unscored)


def _item(suite: str, completion: str, extra: Mapping[str, Any]) -> RewardItem:
    if "question" not in extra:
        raise UserError("A row of the data set has no extra_info.question: the question's id.")
    epoch, replicate = int(extra.get("epoch", 1)), int(extra.get("replicate", 0))
    return RewardItem(suite, str(extra["question"]), completion, epoch, replicate)


def _said(outcome: RewardOutcome, on_unscored: OnUnscored) -> dict[str, Any]:
    """Return always the same keys: verl makes a column of each, and wants them all the same."""
    return {
        "score": value_of(outcome, on_unscored),
        "acc": outcome.components.get("correct") or 0.0,
        "unscored": float(outcome.value is None),
        "status": outcome.status.value,
        "usd": math.nan if outcome.usd is None else float(outcome.usd),
    }
