"""Rewards for TRL, verl, verifiers and OpenRLHF: a callable for each, over one reward.

Standard library only: it runs in a trainer's own environment, and imports no trainer.
"""

import asyncio
import math
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import nan
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

from harness.errors import PodiumError, UserError
from harness.rewards.client import RewardClient, completion_of, item_of
from harness.rewards.outcome import VALUED, RewardItem, RewardOutcome, RewardScorer, Status

if TYPE_CHECKING:
    from harness.rewards.reward import AskedSplit


# § What the adapters to trainers share; each of them is a file of its own, for_*.py.
# §
# § Standard library only, here and in the adapters: they run in a trainer's own environment,
# § where
# § podium may be no more than a folder on the path, and its rewards come from a service.


OnUnscored = Literal["raise", "zero"]
"""For trainers that have no word for "no value": fail, or call it 0 and say so beside it."""

ScorerSource = RewardScorer | Callable[[], RewardScorer]
"""A reward, or a function that makes it: the latter can be handed to another process."""

ResultT = TypeVar("ResultT")


class NoValue(PodiumError):
    """An item has no value, and its trainer has no word for that."""


class LazyScorer:
    """The reward of a source: made when it is first wanted, once, and not pickled when made."""

    def __init__(self, source: ScorerSource) -> None:
        """Keep the reward, or the function that makes it."""
        self._source = source
        self._made: RewardScorer | None = None
        self._lock = Lock()

    def __call__(self) -> RewardScorer:
        """Return the reward."""
        with self._lock:
            if self._made is None:
                source: Any = self._source
                self._made = cast(RewardScorer, source if hasattr(source, "score") else source())
            return self._made

    def __reduce__(self) -> tuple[type["LazyScorer"], tuple[ScorerSource]]:
        return LazyScorer, (self._source,)


def valid_on_unscored(on_unscored: OnUnscored) -> OnUnscored:
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


def completion_text(completion: Any) -> str:
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


def batch_metrics(outcomes: Sequence[RewardOutcome]) -> dict[str, float]:
    """Return shares of the batch by status, the share without a value, and dollars.

    Always the same keys: a metric that only one rank logs has stopped trainers for good.
    """
    count = Counter(outcome.status for outcome in outcomes)
    n = len(outcomes) or 1
    shares = {status.value: count[status] / n for status in Status}
    masked = 1 - sum(count[status] for status in VALUED) / n if outcomes else 0.0
    usd = sum(float(outcome.usd or 0) for outcome in outcomes)
    return {**shares, "masked": masked, "usd": usd}


def run_in_loop(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Return what a coroutine returns, from a thread without a loop.

    All such threads share one loop: a reward's bounds are a loop's, so a loop each would lift them.
    """
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="podium rewards", daemon=True).start()
    return loop


# § What a batch of rewarded plans looked like: groups, means and shares for a trainer's log.
# §
# § A group is the completions of one prompt, whose rewards a GRPO trainer compares: where all
# § are equal
# § nothing is learnt from it. Pure and standard library only: it runs in a trainer's own
# § environment.
# § Not here: values (values.py) and counts of a whole training (tally.py).


@dataclass(frozen=True, slots=True)
class Prompt:
    """What tells the prompts of a batch apart: all columns of a data set's row."""

    suite: str
    question: str
    epoch: int
    workers: tuple[str, ...]
    first: str


@dataclass(frozen=True, slots=True)
class PromptGroup:
    """The completions of one prompt."""

    prompt: Prompt
    values: tuple[float | None, ...]

    @property
    def constant(self) -> bool:
        """Whether nothing can be learnt: fewer than two values, or all of them equal."""
        return len({value for value in self.values if value is not None}) < 2


def groups_of(items: Sequence[RewardItem], outcomes: Sequence[RewardOutcome]) -> list[PromptGroup]:
    """Return the groups of a batch, in the order in which their prompts come first."""
    found: dict[Prompt, list[float | None]] = {}
    for item, outcome in zip(items, outcomes, strict=True):
        found.setdefault(prompt_of(item), []).append(outcome.value)
    return [PromptGroup(prompt, tuple(values)) for prompt, values in found.items()]


def prompt_of(item: RewardItem) -> Prompt:
    """Return the prompt that an item is a completion of."""
    return Prompt(item.suite, item.question, item.epoch, item.workers, item.first)


def numbered_in_groups(items: Sequence[RewardItem]) -> list[RewardItem]:
    """Number the completions of each prompt: equal plans may stand in texts that differ."""
    seen: Counter[Prompt] = Counter()
    numbered: list[RewardItem] = []
    for item in items:
        prompt = prompt_of(item)
        numbered.append(replace(item, replicate=seen[prompt]))
        seen[prompt] += 1
    return numbered


def plan_metrics(
    items: Sequence[RewardItem], outcomes: Sequence[RewardOutcome], names: Sequence[str]
) -> dict[str, float]:
    """Return means over the batch and the shares of workers over steps; NaN where nothing is known.

    Always the same keys, one of them for every name of the pool. A leak counts where it is known,
    so programs do not count; dollars and calls are those of a reply's price, cached or not.
    """
    works = [outcome.work for outcome in outcomes if outcome.work is not None]
    steps = Counter(name for work in works for name in work.workers)
    total = sum(steps.values())
    groups = groups_of(items, outcomes)
    known = [float(work.leaked) for work in works if work.leaked is not None]
    prices = [outcome.usd for outcome in outcomes]
    return {
        "parsed": _mean([float(outcome.work is not None) for outcome in outcomes]),
        "steps": _mean([float(len(work.workers)) for work in works]),
        "calls": _mean([float(outcome.calls) for outcome in outcomes]),
        "cached": _mean([float(work.cached) for work in works]),
        "usd_per_plan": nan if None in prices else _mean([float(usd or 0) for usd in prices]),
        "zero_variance": _mean([float(group.constant) for group in groups]),
        "leaked": _mean(known),
        **{f"worker/{name}": steps[name] / total if total else nan for name in names},
    }


def plan_columns(outcomes: Sequence[RewardOutcome]) -> dict[str, list[object]]:
    """Return what is logged beside each completion: never a question's text, nor its target."""
    works = [outcome.work for outcome in outcomes]
    return {
        "status": [outcome.status.value for outcome in outcomes],
        "reason": [outcome.reason for outcome in outcomes],
        "plan": [work.plan if work else "" for work in works],
        "workers": [" ".join(work.workers) if work else "" for work in works],
        "steps": [len(work.workers) if work else None for work in works],
        "calls": [outcome.calls for outcome in outcomes],
        "usd": [None if outcome.usd is None else float(outcome.usd) for outcome in outcomes],
        "leaks_answer": [work.leaked if work else None for work in works],
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else nan


# § Rewards for TRL: a picklable async callable for `reward_funcs` (trl 1.16,
# § grpo_trainer.py).
# §
# §     trainer = GRPOTrainer(model, reward_funcs=TrlReward(make), train_dataset=...,
# § args=...)
# §
# § None becomes NaN there, and such a row is left out of its group's mean. An exception ends
# § training.


USUAL: Mapping[str, Any] = {"epoch": 1, "workers": (), "first": ""}
"""What a data set's columns hold where it has none of them."""


class TrlReward:
    """Rewards completions by the columns `suite`, `question` and, where there are, the others.

    Given a function that makes the reward, it can be pickled; that is then made where it is used.
    Where the money is spent in a step, all of that step has no value: half a step teaches whatever
    came first. Who trains looks at `stopped`, or ends with TooManyMasked.
    """

    def __init__(
        self,
        scores: ScorerSource,
        name: str = "podium",
        names: Sequence[str] = (),
        *,
        again: bool = True,
    ) -> None:
        """Keep the reward, or the function that makes it.

        `name` is what TRL logs it under, `names` are the pool's workers, for their shares. With
        `again`, every completion of a step is carried out with replies of its own, equal ones too;
        without, those that ask the same of the same worker share its reply.
        """
        self.__name__ = name
        self._made = LazyScorer(scores)
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
            for key, column in plan_columns(outcomes).items():
                log_extra(f"{self.__name__}_{key}", column)
        if log_metric:
            shares = plan_metrics(items, outcomes, self._names)
            for key, value in {**batch_metrics(outcomes), **shares}.items():
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
        items = _trl_items(completions, columns)
        numbered = numbered_in_groups(items) if self._again else items
        state = columns.get("trainer_state")
        return at_step(numbered, getattr(state, "global_step", 0))


def trl_rows(exam: "AskedSplit", *, chat: bool = True) -> list[dict[str, Any]]:
    """Return the data set's rows, `prompt` as a chat or a text; a target is in none of them."""
    return [
        {
            "prompt": [{"role": "user", "content": question.text}] if chat else question.text,
            "suite": exam.suite.name,
            "question": question.id,
        }
        for question in exam.questions.values()
    ]


def _trl_items(completions: Sequence[Any], columns: dict[str, Any]) -> list[RewardItem]:
    missing = [name for name in ("suite", "question") if name not in columns]
    if missing:
        raise UserError(f"The data set has no column {missing[0]!r}: make its rows with rows().")
    n = len(completions)
    given = (columns["suite"], columns["question"], completions)
    others = (columns.get(name) or [usual] * n for name, usual in USUAL.items())
    return [
        RewardItem(
            suite, question, completion_text(said), epoch, workers=tuple(workers), first=first
        )
        for suite, question, said, epoch, workers, first in zip(*given, *others, strict=True)
    ]


# § Rewards for verl: `compute_score` (verl 0.9.1, trainer/ppo/reward.py and its reward
# § managers).
# §
# §     reward.custom_reward_function.path=.../harness/rewards/for_verl.py
# §     reward.custom_reward_function.name=compute_score
# §     reward.custom_reward_function.reward_kwargs={url: "http://127.0.0.1:8000",
# § on_unscored: raise}
# §
# § or a file of your own that says `compute_score = verl_reward(make, on_unscored="raise")`.
# § The column
# § `data_source` is the suite, `extra_info.question` the question's id; `ground_truth` is not
# § read.
# §
# § verl knows no missing reward. With `raise` the `naive` reward manager ends training;
# § `rate_limited`
# § catches it and writes 0 without a word, so use `naive`, or `zero`, which at least says
# § `unscored`.


ComputeScore = Callable[..., Awaitable[dict[str, Any]]]


def verl_reward(scores: ScorerSource, *, on_unscored: OnUnscored) -> ComputeScore:
    """Return an `async def compute_score`: verl runs a mere callable object as if it were sync."""
    choice, made = valid_on_unscored(on_unscored), LazyScorer(scores)

    async def compute_score(
        data_source: str,
        solution_str: str,
        ground_truth: Any = None,
        extra_info: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        item = _verl_item(data_source, solution_str, extra_info or {})
        (outcome,) = await made().score([item])
        return _verl_result(outcome, choice)

    return compute_score


async def compute_score(
    *args: Any, url: str = "", on_unscored: Any = None, **kwargs: Any
) -> dict[str, Any]:
    """Score by the reward service at `url`; both it and `on_unscored` come by reward_kwargs."""
    return await _by_service(url, on_unscored)(*args, **kwargs)


@cache
def _by_service(url: str, on_unscored: OnUnscored) -> ComputeScore:
    return verl_reward(RewardClient(url), on_unscored=on_unscored)


def _verl_item(suite: str, completion: str, extra: Mapping[str, Any]) -> RewardItem:
    if "question" not in extra:
        raise UserError("A row of the data set has no extra_info.question: the question's id.")
    epoch, replicate = int(extra.get("epoch", 1)), int(extra.get("replicate", 0))
    return RewardItem(suite, str(extra["question"]), completion, epoch, replicate)


def _verl_result(outcome: RewardOutcome, on_unscored: OnUnscored) -> dict[str, Any]:
    """Return always the same keys: verl makes a column of each, and wants them all the same."""
    return {
        "score": value_of(outcome, on_unscored),
        "acc": outcome.components.get("correct") or 0.0,
        "unscored": float(outcome.value is None),
        "status": outcome.status.value,
        "usd": math.nan if outcome.usd is None else float(outcome.usd),
    }


# § Rewards for verifiers: a reward of its v1 tasks (verifiers 0.4.0, v1/task.py,
# § `Task.score`).
# §
# §     [env.taskset.task.rewards]
# §     podium = { fn = "my_rewards:podium" }     # podium = verifiers_reward(make)
# §
# § or a method of your task, `@vf.reward` over `await podium(self.data, trace)`. A task's
# § `id` is the
# § label `suite/question`. What has no value is raised: verifiers records a TaskError on the
# § trace,
# § which is then not ok, and prime-rl drops it. Its older Rubric is not in that release any
# § more.


TaskReward = Callable[[Any, Any], Awaitable[float]]


def verifiers_reward(scores: ScorerSource) -> TaskReward:
    """Return a reward of (task data, trace): the value of the last reply, or NoValue raised."""
    made = LazyScorer(scores)

    async def podium(task: Any, trace: Any) -> float:
        (outcome,) = await made().score([item_of(task.id or "", trace.last_reply)])
        return value_of(outcome, "raise")

    return podium


# § Rewards for OpenRLHF: `reward_func` (openrlhf 0.11.2, utils/agent.py,
# § SingleTurnAgentExecutor).
# §
# §     # my_reward.py, for --reward.remote_url my_reward.py
# §     reward_func = openrlhf_reward(make, on_unscored="raise")
# §
# § It is called in a thread with one decoded query (prompt and reply), its prompt and its
# § label, which
# § is `suite/question`. OpenRLHF has no word for a missing value: it catches what is raised,
# § carries on
# § with no reward, and fails on that when it makes its batch
# § (trainer/ppo_utils/experience_maker.py).
# § That is `raise`: a run stops rather than learns from it. `zero` goes on, and logs
# § `unscored`.


def openrlhf_reward(
    scores: ScorerSource, *, on_unscored: OnUnscored
) -> Callable[..., dict[str, Any]]:
    """Return a `reward_func`, to be named so in a file of yours; threads share its one reward."""
    choice, made = valid_on_unscored(on_unscored), LazyScorer(scores)

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **_: Any
    ) -> dict[str, Any]:
        rows = zip(queries, prompts, labels, strict=True)
        items = [item_of(label, completion_of(query, prompt)) for query, prompt, label in rows]
        return _openrlhf_result(run_in_loop(made().score(replicated(items))), choice)

    return reward_func


def _openrlhf_result(outcomes: Sequence[RewardOutcome], on_unscored: OnUnscored) -> dict[str, Any]:
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
