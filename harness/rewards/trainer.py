"""What the adapters to trainers share; each of them is a file of its own, for_*.py.

Standard library only, here and in the adapters: they run in a trainer's own environment, where
podium may be no more than a folder on the path, and its rewards come from a service.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import cache
from threading import Lock, Thread
from typing import Any, Literal, TypeVar, cast, get_args

from harness.errors import PodiumError, UserError
from harness.rewards.items import VALUED, RewardItem, RewardOutcome, Scores, Status

OnUnscored = Literal["raise", "zero"]
"""For trainers that have no word for "no value": fail, or call it 0 and say so beside it."""

Source = Scores | Callable[[], Scores]
"""A reward, or a function that makes it: the latter can be handed to another process."""

ResultT = TypeVar("ResultT")


class NoValue(PodiumError):
    """An item has no value, and its trainer has no word for that."""


class Made:
    """The reward of a source: made when it is first wanted, once, and not pickled when made."""

    def __init__(self, source: Source) -> None:
        """Keep the reward, or the function that makes it."""
        self._source = source
        self._made: Scores | None = None
        self._lock = Lock()

    def __call__(self) -> Scores:
        """Return the reward."""
        with self._lock:
            if self._made is None:
                source: Any = self._source
                self._made = cast(Scores, source if hasattr(source, "score") else source())
            return self._made

    def __reduce__(self) -> tuple[type["Made"], tuple[Source]]:
        return Made, (self._source,)


def checked(on_unscored: OnUnscored) -> OnUnscored:
    """Return the choice; UserError where there is none, for nobody can guess it."""
    if on_unscored not in get_args(OnUnscored):
        raise UserError(
            f"on_unscored is 'raise' or 'zero', not {on_unscored!r}: this trainer cannot leave an "
            "item out, so say whether one without a value fails or counts as 0."
        )
    return on_unscored


def value_of(outcome: RewardOutcome, on_unscored: OnUnscored) -> float:
    """Return the value; NoValue, or a 0 that was asked for, where there is none."""
    if outcome.value is None and on_unscored == "raise":
        raise NoValue(f"No value ({outcome.status.value}): {outcome.reason}")
    return outcome.value or 0.0


def text_of(completion: Any) -> str:
    """Return what the policy said: a text, or what the assistant's last message says.

    >>> text_of([{"role": "assistant", "content": [{"type": "text", "text": "Answer: C"}]}])
    'Answer: C'
    """
    if isinstance(completion, str):
        return completion
    said = [turn.get("content") for turn in completion if turn.get("role") == "assistant"]
    last = said[-1] if said else None
    if last is None or isinstance(last, str):
        return last or ""
    return "".join(part.get("text", "") for part in last)


def replicated(items: Sequence[RewardItem]) -> list[RewardItem]:
    """Number equal items, so that a workflow sampled twice is carried out twice."""
    seen: Counter[RewardItem] = Counter()
    numbered: list[RewardItem] = []
    for item in items:
        numbered.append(replace(item, replicate=seen[item]) if seen[item] else item)
        seen[item] += 1
    return numbered


EQUAL = 1 << 12
"""Equal completions of one step and process that can be told apart."""
RANKS = 1 << 10
"""Processes of one training that can be."""


def at_step(items: Sequence[RewardItem], step: int) -> list[RewardItem]:
    """Number items by training step and process too: a plan sampled again later is a draw anew.

    The first one of step 0 in the first process keeps the number 0, as in an evaluation. The
    process is `RANK` of the environment, which launchers set.
    """
    rank = int(os.environ.get("RANK", "0"))
    begins = (step * RANKS + rank % RANKS) * EQUAL
    return [replace(item, replicate=begins + item.replicate) for item in items]


def once_in_its_step(item: RewardItem) -> RewardItem:
    """Return the item as the first of its equals: they share a draw, and a later step has its own.

    >>> once_in_its_step(RewardItem("s", "q", "", replicate=3 * EQUAL + 2)).replicate == 3 * EQUAL
    True
    """
    return replace(item, replicate=item.replicate - item.replicate % EQUAL)


def metrics(outcomes: Sequence[RewardOutcome]) -> dict[str, float]:
    """Return shares of the batch by status, the share without a value, and dollars.

    Always the same keys: a metric that only one rank logs has stopped trainers for good.
    """
    count = Counter(outcome.status for outcome in outcomes)
    n = len(outcomes) or 1
    shares = {status.value: count[status] / n for status in Status}
    masked = 1 - sum(count[status] for status in VALUED) / n if outcomes else 0.0
    usd = sum(float(outcome.usd or 0) for outcome in outcomes)
    return {**shares, "masked": masked, "usd": usd}


def wait_for(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Return what a coroutine returns, from a thread without a loop.

    All such threads share one loop: a reward's bounds are a loop's, so a loop each would lift them.
    """
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="podium rewards", daemon=True).start()
    return loop
