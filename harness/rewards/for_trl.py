"""Rewards for TRL: a picklable async callable for `reward_funcs` (trl 1.16, grpo_trainer.py).

    trainer = GRPOTrainer(model, reward_funcs=TrlReward(make), train_dataset=..., args=...)

None becomes NaN there, and such a row is left out of its group's mean. An exception ends training.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.errors import UserError
from harness.rewards.batch import Prompt, columns_of, groups_of, numbered_in_groups, plan_metrics
from harness.rewards.items import RewardItem, RewardOutcome, Status
from harness.rewards.trainer import Made, Source, at_step, metrics, text_of

if TYPE_CHECKING:
    from harness.rewards.core import Sat


USUAL: Mapping[str, Any] = {"epoch": 1, "workers": (), "first": ""}
"""What a data set's columns hold where it has none of them."""


class TrlReward:
    """Rewards completions by the columns `suite`, `question` and, where there are, the others.

    Given a function that makes the reward, it can be pickled; that is then made where it is used.
    Where the money is spent in a step, all of that step has no value: half a step teaches whatever
    came first. Who trains looks at `stopped`, or ends with TooManyMasked.
    """

    def __init__(
        self, scores: Source, name: str = "podium", names: Sequence[str] = (), *, again: bool = True
    ) -> None:
        """Keep the reward, or the function that makes it.

        `name` is what TRL logs it under, `names` are the pool's workers, for their shares. With
        `again`, every completion of a step is carried out with replies of its own, equal ones too;
        without, those that ask the same of the same worker share its reply.
        """
        self.__name__ = name
        self._made = Made(scores)
        self._names, self._again = tuple(names), again
        self.stopped = ""
        """Why nothing is scored any more: the money is spent. Empty while it is not."""
        self.constant: tuple[Prompt, ...] = ()
        """The prompts of the latest batch whose completions all had one value, or none."""

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
        items = self._items(completions, columns)
        outcomes = await self._scored(items)
        groups = groups_of(items, outcomes)
        self.constant = tuple(group.prompt for group in groups if group.constant)
        if log_extra:
            for key, column in columns_of(outcomes).items():
                log_extra(f"{self.__name__}_{key}", column)
        if log_metric:
            shares = plan_metrics(items, outcomes, self._names)
            for key, value in {**metrics(outcomes), **shares}.items():
                log_metric(f"{self.__name__}/{key}", value)
        over = next((one for one in outcomes if one.status is Status.BUDGET), None)
        self.stopped = over.reason if over else ""
        return [None if over else outcome.value for outcome in outcomes]

    async def _scored(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Score every different item once; equal ones are numbered, or share an outcome."""
        different = list(dict.fromkeys(items))
        found = await self._made().score(different)
        known = dict(zip(different, found, strict=True))
        return [known[item] for item in items]

    def _items(self, completions: Sequence[Any], columns: dict[str, Any]) -> list[RewardItem]:
        items = _items(completions, columns)
        numbered = numbered_in_groups(items) if self._again else items
        state = columns.get("trainer_state")
        return at_step(numbered, getattr(state, "global_step", 0))


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
    n = len(completions)
    given = (columns["suite"], columns["question"], completions)
    others = (columns.get(name) or [usual] * n for name, usual in USUAL.items())
    return [
        RewardItem(suite, question, text_of(said), epoch, workers=tuple(workers), first=first)
        for suite, question, said, epoch, workers, first in zip(*given, *others, strict=True)
    ]
