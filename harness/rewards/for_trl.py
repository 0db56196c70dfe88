"""Rewards for TRL: a picklable async callable for `reward_funcs` (trl 1.16, grpo_trainer.py).

    trainer = GRPOTrainer(model, reward_funcs=TrlReward(make), train_dataset=..., args=...)

None becomes NaN there, and such a row is left out of its group's mean. An exception ends training.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from harness.errors import UserError
from harness.rewards.items import RewardItem
from harness.rewards.trainer import Made, Source, metrics, replicated, text_of

if TYPE_CHECKING:
    from harness.rewards.core import Sat


class TrlReward:
    """Rewards completions by the columns `suite`, `question` and, where there is one, `epoch`.

    Given a function that makes the reward, it can be pickled; that is then made where it is used.
    """

    def __init__(self, scores: Source, name: str = "podium") -> None:
        """Keep the reward, or the function that makes it; `name` is what TRL logs it under."""
        self.__name__ = name
        self._made = Made(scores)

    async def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Any = None,
        *,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """Return one value per completion, None where there is none."""
        outcomes = await self._made().score(_items(completions, columns))
        if log_extra:
            log_extra(f"{self.__name__}_status", [outcome.status.value for outcome in outcomes])
            log_extra(f"{self.__name__}_reason", [outcome.reason for outcome in outcomes])
        if log_metric:
            for key, value in metrics(outcomes).items():
                log_metric(f"{self.__name__}/{key}", value)
        return [outcome.value for outcome in outcomes]


def rows(exam: "Sat", *, chat: bool = True) -> list[dict[str, Any]]:
    """Return the data set's rows, `prompt` as a chat or a text; a target is in none of them."""
    return [
        {
            "prompt": [{"role": "user", "content": question.text}] if chat else question.text,
            "suite": exam.suite.name,
            "question": question.id,
        }
        for question in exam.questions.values()
    ]


def _items(completions: Sequence[Any], columns: dict[str, Any]) -> list[RewardItem]:
    missing = [name for name in ("suite", "question") if name not in columns]
    if missing:
        raise UserError(f"The data set has no column {missing[0]!r}: make its rows with rows().")
    epochs = columns.get("epoch") or [1] * len(completions)
    named = zip(columns["suite"], columns["question"], completions, epochs, strict=True)
    return replicated([RewardItem(s, q, text_of(said), epoch) for s, q, said, epoch in named])
