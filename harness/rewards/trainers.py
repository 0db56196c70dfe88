"""Rewards for TRL, verl, verifiers and OpenRLHF: a callable in the form that each trainer expects.

The module needs the standard library only, and imports no trainer: it runs in a trainer's own
environment, where podium may be just a folder on the path. A completion without a value gets None
in TRL, which leaves it out of its group's mean; other trainers fail or use 0 (`OnUnscored`).
"""

import asyncio
import math
import os
from collections import Counter, defaultdict
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Hashable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import count
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

from podium.harness.errors import UserError
from podium.harness.rewards.outcome import (
    VALUED,
    NoValue,
    RewardClient,
    RewardItem,
    RewardOutcome,
    RewardScorer,
    Status,
    completion_of,
    item_of,
)
from podium.harness.rules import DECIDING

if TYPE_CHECKING:
    from podium.harness.rewards.splits import SuiteSplit

OnUnscored = Literal["raise", "zero"]
"""Choice for trainers that cannot mask an item without a value: fail, or use 0 and mark it."""

ScorerSource = RewardScorer | Callable[[], RewardScorer]
"""A reward, or a function that makes one (a `Reward` cannot be sent to another process)."""

ResultT = TypeVar("ResultT")


class _LazyScorer:
    """A reward that `source` makes on first use; only `source` is pickled."""

    def __init__(self, source: ScorerSource) -> None:
        self._source = source
        self._made: RewardScorer | None = None
        self._lock = Lock()

    def __call__(self) -> RewardScorer:
        with self._lock:
            if self._made is None:
                source: Any = self._source
                self._made = cast(RewardScorer, source if hasattr(source, "score") else source())
            return self._made

    def __reduce__(self) -> tuple[type["_LazyScorer"], tuple[ScorerSource]]:
        return _LazyScorer, (self._source,)


class TrlReward:
    """Rewards for TRL: a picklable async callable for `reward_funcs` (trl 1.16, grpo_trainer.py).

    A call returns a coroutine, which TRL awaits; elsewhere: `list(reward(prompts, texts, ...))`.

        trainer = GRPOTrainer(model, reward_funcs=TrlReward(make), train_dataset=..., args=...)

    It reads the data set's columns `suite` and `question` and, if present, the optional ones of
    `USUAL`. The value None becomes NaN in TRL; an exception ends training. If a step reaches the
    dollar limit, the whole step has no value: half a step would teach only its first items. A
    training loop should check `stopped`.
    """

    def __init__(
        self,
        scores: ScorerSource,
        name: str = "podium",
        names: Sequence[str] = (),
        *,
        again: bool = True,
    ) -> None:
        """Take a reward or its maker, a name for TRL, and workers' names; `again`: see `items`."""
        self.__name__ = name
        self._scorer = _LazyScorer(scores)
        self._names, self._again = tuple(names), again
        self.stopped = ""
        """The message of the dollar limit if scoring has stopped at it; empty before that."""
        self.constant: tuple[Prompt, ...] = ()
        """Prompts of the latest batch whose completions all have the same value or no value."""
        vars(self)["__call__"] = self._values  # TRL checks here whether to await a call

    def __call__(self, *args: Any, **columns: Any) -> "TrlValues":
        """Return the values of completions (None: no value); await them, or read them as a list."""
        return TrlValues(self._values(*args, **columns))

    async def _values(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Any = None,
        *,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        items = self.items(completions, columns)
        different = list(dict.fromkeys(items))
        scored = await self._scorer().score(different)
        by_item = dict(zip(different, scored, strict=True))
        outcomes = [by_item[item] for item in items]
        groups = constant_groups(items, outcomes)
        self.constant = tuple(prompt for prompt, constant in groups.items() if constant)
        if log_extra:
            for key, column in _plan_columns(outcomes).items():
                log_extra(f"{self.__name__}_{key}", column)
        if log_metric:
            shares = plan_metrics(items, outcomes, self._names)
            for key, value in {**batch_metrics(outcomes), **shares}.items():
                log_metric(f"{self.__name__}/{key}", value)
        over = next((outcome for outcome in outcomes if outcome.status is Status.BUDGET), None)
        self.stopped = over.reason if over else ""
        return [None if over else outcome.value for outcome in outcomes]

    def items(self, completions: Sequence[Any], columns: dict[str, Any]) -> list[RewardItem]:
        """Return a batch's items; `again` numbers them per prompt, so that equal plans run anew."""
        items = _trl_items(completions, columns)
        return replicated(items, prompt_of) if self._again else items


class TrlValues(Coroutine[Any, Any, list[float | None]], Sequence[float | None]):
    """Reward values that TRL awaits; reading them as a list blocks until all are scored."""

    def __init__(self, work: Coroutine[Any, Any, list[float | None]]) -> None:
        """Take the coroutine that scores; it runs once: when awaited, or on first access."""
        self._work = work

    def send(self, value: Any) -> Any:
        """Resume the scoring coroutine; `asyncio.run` calls this method."""
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the scoring coroutine; `asyncio.run` calls this when it is stopped."""
        return self._work.throw(*error)

    def close(self) -> None:
        """Close the scoring coroutine; nothing is scored."""
        self._work.close()

    def __await__(self) -> Generator[Any, Any, list[float | None]]:
        return self._work.__await__()

    @cached_property
    def _scored(self) -> list[float | None]:
        return run_in_loop(self._work)

    def __len__(self) -> int:
        return len(self._scored)

    def __getitem__(self, index: Any) -> Any:
        scored: Any = self._scored
        return scored[index]

    def __repr__(self) -> str:
        return "<TrlValues: await them, or take list(...) of them>"


def trl_rows(split: "SuiteSplit", *, chat: bool = True) -> list[dict[str, Any]]:
    """Return rows, without targets, for TRL's data set; `prompt` is chat messages or text."""
    return [
        {
            "prompt": [{"role": "user", "content": question.text}] if chat else question.text,
            "suite": split.suite.name,
            "question": question.id,
        }
        for question in split.questions.values()
    ]


USUAL: Mapping[str, Any] = {"epoch": 1, "workers": (), "first": ""}
"""Optional columns of a data set -> values used if the data set lacks them."""


def _trl_items(completions: Sequence[Any], columns: dict[str, Any]) -> list[RewardItem]:
    missing = next((name for name in ("suite", "question") if name not in columns), None)
    if missing:
        raise UserError(f"The data set has no column {missing!r}: make its rows with trl_rows().")
    required = (columns["suite"], columns["question"], map(completion_text, completions))
    optional = (columns.get(name) or [usual] * len(completions) for name, usual in USUAL.items())
    # Numbered by step and process (launchers set RANK), too: a later equal plan is sampled anew.
    step = getattr(columns.get("trainer_state"), "global_step", 0)
    begins = (step * RANKS + int(os.environ.get("RANK", "0")) % RANKS) * EQUAL
    return [
        RewardItem(suite, question, text, epoch, begins, tuple(workers), earlier)
        for suite, question, text, epoch, workers, earlier in zip(*required, *optional, strict=True)
    ]


def completion_text(completion: Any) -> str:
    """Return the text of a policy's completion, which is a text or a list of chat messages.

    >>> completion_text([{"role": "assistant", "content": [{"type": "text", "text": "Answer: C"}]}])
    'Answer: C'
    """
    if isinstance(completion, str):
        return completion
    contents = [turn.get("content") for turn in completion if turn.get("role") == "assistant"]
    content = contents[-1] if contents else None
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(block.get("text", "") for block in content)


EQUAL = 1 << 12  # maximum of distinct numbers for equal completions of one step and process
RANKS = 1 << 10  # maximum of distinct processes of one training


def once_in_its_step(item: RewardItem) -> RewardItem:
    """Remove an item's number within its training step: equal items of a step then share replies.

    >>> once_in_its_step(RewardItem("s", "q", "", replicate=3 * EQUAL + 2)).replicate == 3 * EQUAL
    True
    """
    return replace(item, replicate=item.replicate - item.replicate % EQUAL)


def replicated(
    items: Sequence[RewardItem], key: Callable[[RewardItem], Hashable] = lambda item: item
) -> list[RewardItem]:
    """Number items with equal keys, so that a workflow sampled twice is executed twice."""
    counters: dict[Hashable, Iterator[int]] = defaultdict(count)
    return [replace(item, replicate=item.replicate + next(counters[key(item)])) for item in items]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt in a batch of completions, identified by columns of its row in the data set."""

    suite: str
    question: str
    epoch: int
    workers: tuple[str, ...]
    first: str


def prompt_of(item: RewardItem) -> Prompt:
    """Return the prompt that an item's completion answers."""
    return Prompt(item.suite, item.question, item.epoch, item.workers, item.first)


def constant_groups(
    items: Sequence[RewardItem], outcomes: Sequence[RewardOutcome]
) -> dict[Prompt, bool]:
    """Return for each prompt whether its completions' values are all equal: nothing to learn."""
    by_prompt: dict[Prompt, set[float | None]] = {}
    for item, outcome in zip(items, outcomes, strict=True):
        by_prompt.setdefault(prompt_of(item), set()).add(outcome.value)
    return {prompt: len(values - {None}) < 2 for prompt, values in by_prompt.items()}


def batch_metrics(outcomes: Sequence[RewardOutcome]) -> dict[str, float]:
    """Return a batch's share of each status, counts by grading rule, masked share, and dollars."""
    # Always the same keys: a metric that only one rank logs can block all ranks for ever.
    counts = Counter(outcome.status for outcome in outcomes)
    n = len(outcomes) or 1
    shares = {status.value: counts[status] / n for status in Status}
    masked = 1 - sum(counts[status] for status in VALUED) / n if outcomes else 0.0
    usd = sum(float(outcome.usd or 0) for outcome in outcomes)
    return {**shares, **rule_counts(outcomes), "masked": masked, "usd": usd}


def rule_counts(outcomes: Sequence[RewardOutcome]) -> dict[str, float]:
    """Return how many replies each answer-reading rule decided, to show if one rule takes over."""
    counts = Counter(outcome.rule for outcome in outcomes)
    decided = {f"rule/{name}": float(counts[name]) for name in DECIDING}
    unlisted = sum(count for name, count in counts.items() if name and name not in DECIDING)
    return {**decided, "rule/no-answer": float(unlisted)}


def plan_metrics(
    items: Sequence[RewardItem], outcomes: Sequence[RewardOutcome], names: Sequence[str]
) -> dict[str, float]:
    """Return a batch's mean workflow figures, and each worker's share of steps; NaN: unknown."""
    works = [outcome.work for outcome in outcomes if outcome.work is not None]
    steps = Counter(name for work in works for name in work.workers)
    total = sum(steps.values())
    prices = [outcome.usd for outcome in outcomes]
    return {
        "parsed": _mean([outcome.work is not None for outcome in outcomes]),
        "steps": _mean([len(work.workers) for work in works]),
        "calls": _mean([outcome.calls for outcome in outcomes]),
        "cached": _mean([work.cached for work in works]),
        "usd_per_plan": math.nan if None in prices else _mean([float(usd or 0) for usd in prices]),
        "zero_variance": _mean([*constant_groups(items, outcomes).values()]),
        "leaked": _mean([work.leaked for work in works if work.leaked is not None]),
        **{f"worker/{name}": steps[name] / total if total else math.nan for name in names},
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _plan_columns(outcomes: Sequence[RewardOutcome]) -> dict[str, list[object]]:
    """Return the columns logged with each completion, without a question's text or target."""
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


ComputeScore = Callable[..., Awaitable[dict[str, Any]]]


def verl_reward(scores: ScorerSource, *, on_unscored: OnUnscored) -> ComputeScore:
    """Return verl's `compute_score` (verl 0.9.1, trainer/ppo/reward.py and its reward managers).

    The column `data_source` is the suite, `extra_info.question` the question's id. The function is
    async because verl runs a callable object as if it were sync. If `raise` is set, verl's `naive`
    reward manager ends training, but `rate_limited` silently writes 0: use `naive`, or `zero`.
    """
    choice, scorer = _valid(on_unscored), _LazyScorer(scores)

    async def compute_score(
        data_source: str,
        solution_str: str,
        ground_truth: Any = None,
        extra_info: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        extra = extra_info or {}
        if "question" not in extra:
            raise UserError(
                "A row of the data set has no extra_info.question. Set it to the question's id."
            )
        epoch, replicate = int(extra.get("epoch", 1)), int(extra.get("replicate", 0))
        item = RewardItem(data_source, str(extra["question"]), solution_str, epoch, replicate)
        (outcome,) = await scorer().score([item])
        return {  # always the same keys: verl makes a column of each, and needs it in every row
            "score": value_of(outcome, choice),
            "acc": outcome.components.get("correct") or 0.0,
            "unscored": float(outcome.value is None),
            "status": outcome.status.value,
            "usd": math.nan if outcome.usd is None else float(outcome.usd),
        }

    return compute_score


async def compute_score(
    *args: Any, url: str = "", on_unscored: Any = None, **kwargs: Any
) -> dict[str, Any]:
    """Score for verl by the reward service at `url`; set it and `on_unscored` in reward_kwargs.

    reward.custom_reward_function.path=.../harness/rewards/trainers.py
    reward.custom_reward_function.name=compute_score
    reward.custom_reward_function.reward_kwargs={url: "http://127.0.0.1:8000", on_unscored: raise}
    """
    return await _by_service(url, on_unscored)(*args, **kwargs)


@cache
def _by_service(url: str, on_unscored: OnUnscored) -> ComputeScore:
    return verl_reward(RewardClient(url), on_unscored=on_unscored)


TaskReward = Callable[[Any, Any], Awaitable[float]]


def verifiers_reward(scores: ScorerSource) -> TaskReward:
    """Return a reward of verifiers' v1 tasks (verifiers 0.4.0, v1/task.py, `Task.score`).

        [env.taskset.task.rewards]
        podium = { fn = "my_rewards:podium" }     # podium = verifiers_reward(make)

    or a method of your task, `@vf.reward` over `await podium(self.data, trace)`. A task's `id` is
    the label `suite/question`. An item without a value raises `NoValue`: verifiers records a
    TaskError on the trace, which is then not ok, and prime-rl drops it.
    """
    scorer = _LazyScorer(scores)

    async def podium(task: Any, trace: Any) -> float:
        (outcome,) = await scorer().score([item_of(task.id or "", trace.last_reply)])
        return value_of(outcome, "raise")

    return podium


def openrlhf_reward(
    scores: ScorerSource, *, on_unscored: OnUnscored
) -> Callable[..., dict[str, Any]]:
    """Return a `reward_func` (openrlhf 0.11.2, utils/agent.py, SingleTurnAgentExecutor).

        # my_reward.py, for --reward.remote_url my_reward.py
        reward_func = openrlhf_reward(make, on_unscored="raise")

    OpenRLHF calls the function in a thread with one decoded query (prompt and reply), its prompt
    and its label, `suite/question`; threads share one reward. OpenRLHF catches an exception, goes
    on without a reward, then fails to make its batch (trainer/ppo_utils/experience_maker.py): with
    `raise` a run stops and learns nothing from the failure. `zero` continues, and logs `unscored`.
    """
    choice, scorer = _valid(on_unscored), _LazyScorer(scores)

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **_: Any
    ) -> dict[str, Any]:
        rows = zip(queries, prompts, labels, strict=True)
        items = [item_of(label, completion_of(query, prompt)) for query, prompt, label in rows]
        outcomes = run_in_loop(scorer().score(replicated(items)))
        rewards: Any = [value_of(outcome, choice) for outcome in outcomes]
        unscored: Any = [float(outcome.value is None) for outcome in outcomes]
        if len(outcomes) == 1:  # plain numbers: OpenRLHF makes a tensor of `[rewards]`
            rewards, unscored = rewards[0], unscored[0]
        return {"rewards": rewards, "scores": rewards, "extra_logs": {"unscored": unscored}}

    return reward_func


def _valid(on_unscored: OnUnscored) -> OnUnscored:
    """Return `on_unscored`; UserError if it is not `raise` or `zero`: there is no default."""
    if on_unscored not in get_args(OnUnscored):
        raise UserError(
            f"on_unscored must be 'raise' or 'zero', not {on_unscored!r}: this trainer cannot "
            "leave an item out, so choose whether an item without a value fails or counts as 0."
        )
    return on_unscored


def value_of(outcome: RewardOutcome, on_unscored: OnUnscored) -> float:
    """Return an outcome's value; if it is None, return 0 for `zero`, else raise NoValue."""
    if outcome.value is None and on_unscored == "raise":
        raise NoValue(f"No value ({outcome.status.value}): {outcome.reason}")
    return outcome.value or 0.0


def run_in_loop(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine from a thread without an event loop; all such threads share one loop."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


@cache  # a reward's limits hold per loop: a loop for each thread would multiply them
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="podium rewards", daemon=True).start()
    return loop
