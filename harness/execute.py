"""Run a workflow on a pool: every step starts as soon as the steps it reads have replied.

The Conductor paper runs steps one by one (arXiv 2512.04388, section 3.1), with the same replies. A
workflow that is written while it runs (retries, a cascade, a debate) is a `Session`.
"""

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import anyio
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

from podium.harness.context import run_context
from podium.harness.envelope import BudgetSpent
from podium.harness.errors import WorkerError
from podium.harness.extract import normalised
from podium.harness.pool import Pool
from podium.harness.records import EMPTY, Answer, Kind, Question, Reply
from podium.harness.workflow import REPLIES, Step, Workflow

EARLIER = "Replies of earlier steps:"
"""The heading of earlier replies, in the message that follows a conversation."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on the work for one answer, such as the number of calls; None is no limit."""

    calls: int | None = None
    tokens: int | None = None
    """Maximum input and output tokens together."""
    usd: Decimal | None = None
    depth: int | None = None


def vote(kind: Kind, replies: Sequence[str]) -> str:
    """Return the first reply with the most frequent answer; in a tie, the earliest answer wins."""
    answers = [normalised(kind, reply) for reply in replies]
    votes = Counter(answer for answer in answers if answer is not None)
    if not votes:
        return replies[0] if replies else ""
    winner = votes.most_common(1)[0][0]
    return replies[answers.index(winner)]


async def execute(
    workflow: Workflow,
    question: Question,
    pool: Pool,
    budget: Budget | None = None,
    begun: Answer | None = None,
    *,
    keeps: int = 0,
) -> Answer:
    """Run every step of a checked workflow and return the last step's reply as the answer.

    `begun` is the answer of the workflow's first steps, if a later round adds steps: the first
    steps count against every limit. If a limit ends the work early (`stopped`), the answer is the
    latest reply in step order. `keeps` is 1 for a workflow whose last step combines all other
    replies: one call of an equal budget is reserved for this step, and it reads the replies so far.
    Raises what `Pool.ask` raises, once, after all other steps have ended.
    """
    earlier = begun.replies if begun else ()
    # The rest was planned after all earlier replies, so its depth adds to theirs.
    depths = workflow.depths(replied=len(earlier), depth=begun.depth if begun else 0)
    remaining = range(len(earlier), len(depths))
    pool.has_planned(len(depths))
    events = [anyio.Event() for _ in depths]
    replies = [*earlier, *(None for _ in remaining)]
    run = _Run(workflow, depths, question, pool, budget or Budget(), len(earlier), replies, events)
    run.began_s, run.keeps = pool.envelope.now_s if pool.envelope else 0.0, keeps
    await _side_by_side(run.step, remaining)
    results = [reply for reply in run.replies if reply is not None]
    deep = (depth for depth, reply in zip(depths, run.replies, strict=True) if reply)
    answer = Answer(
        text=_text(run, results),
        replies=tuple(results),
        depth=max(deep, default=0),
        stopped=run.stopped,
        plan=workflow.as_json(),
    )
    pool.so_far = lambda: answer
    return answer


def _text(run: "_Run", results: Sequence[Reply]) -> str:
    """Return the latest reply; the majority vote if the last step, which combines, did not run."""
    if run.keeps and run.spent and run.replies[-1] is None:
        return vote(run.question.kind, [reply.text for reply in results])
    return results[-1].text if results else ""


async def _side_by_side(
    work: Callable[[int], Coroutine[Any, Any, None]], numbers: Iterable[int]
) -> None:
    """Run `work` for all numbers concurrently; after all have ended, raise the first failure."""
    try:
        async with anyio.create_task_group() as tasks:
            for number in numbers:
                tasks.start_soon(work, number)
    except* Exception as group:
        raise first_failure(group) from None


@dataclass(slots=True)
class _Run:
    """The state of one workflow that is running."""

    workflow: Workflow
    depths: Sequence[int]
    question: Question
    pool: Pool
    budget: Budget
    started: int
    replies: list[Reply | None]
    ended: list[anyio.Event]
    stopped: str | None = None
    began_s: float = 0.0
    keeps: int = 0
    spent: bool = False
    """Whether the question's equal budget was too small for a step."""

    async def step(self, index: int) -> None:
        steps, reads = self.workflow.steps, self.workflow.reads(index)
        for read in reads:
            if self.replies[read] is None:
                await self.ended[read].wait()
        self.stopped = self.stopped or self._over_budget(index)
        # All steps that it reads have replied, or a budget has stopped them.
        history = [(steps[read], reply) for read in reads if (reply := self.replies[read])]
        joins = self.keeps and index == len(steps) - 1
        lacks = self.spent and reads and len(history) < (1 if self.keeps else len(reads))
        if self.stopped is None and not lacks:
            self.started += 1
            began_s = latest_s((reply for _, reply in history), self.began_s)
            try:
                with run_context(begins_s=began_s, keeps=0 if joins else self.keeps):
                    self.replies[index] = await _ask(self, index, steps[index], history)
            except BudgetSpent:
                self.spent = True
        self.ended[index].set()

    def _over_budget(self, index: int) -> str | None:
        limits = self.budget
        if limits.calls is not None and self.started >= limits.calls:
            return "calls"
        if limits.depth is not None and self.depths[index] > limits.depth:
            return "depth"
        replies = [*filter(None, self.replies)]
        if limits.tokens is not None and sum(map(_tokens, replies)) >= limits.tokens:
            return "tokens"
        if limits.usd is not None and sum(map(_usd, replies)) >= limits.usd:
            return "usd"
        return None


def _tokens(reply: Reply) -> int:
    if reply.usage is None:
        raise WorkerError(f"{reply.worker} reported no usage, so a token budget cannot be enforced")
    return reply.usage.input + reply.usage.output


def _usd(reply: Reply) -> Decimal:
    if reply.usd is None:
        raise WorkerError(f"{reply.worker} has no price, so a dollar budget cannot be enforced")
    return reply.usd


def latest_s(replies: Iterable[Reply], began_s: float) -> float:
    """Return when the last reply ended, in critical-path seconds; `began_s` without replies."""
    return max((reply.ended_s for reply in replies if reply.ended_s is not None), default=began_s)


async def _ask(
    run: "_Run | Session", index: int, step: Step, history: Sequence[tuple[Step, Reply]]
) -> Reply:
    name, request = f"step {index + 1}: {step.worker}", messages(run.question, step, history)
    if isinstance(run, _Run) and index == len(run.replies) - 1:
        advice_text = advice(step, history)
        return await run.pool.act(step.worker, request, name, step.sampling, advice_text)
    return await run.pool.ask(step.worker, request, name, step.sampling)


def advice(step: Step, history: Sequence[tuple[Step, Reply]]) -> str:
    """Return what a worker reads besides the question: instructions, earlier replies, subtask."""
    numbered = "\n".join(f"{n}. {reply.text}" for n, (_, reply) in enumerate(history, start=1))
    system = step.system or ""
    replies = f"{EARLIER}\n{numbered}" if history and REPLIES not in system else ""
    texts = (system.replace(REPLIES, numbered), replies, step.subtask)
    return "\n\n".join(filter(None, texts))


def messages(
    question: Question, step: Step, history: Sequence[tuple[Step, Reply]]
) -> list[ChatMessage]:
    """Return a worker's messages: the question, the replies that the step reads, its subtask.

    Earlier steps are past turns of the conversation, as in the Conductor paper. If the system
    message has the placeholder `REPLIES`, the replies are numbered there instead, as in
    Mixture-of-Agents.
    """
    chat: list[ChatMessage] = []
    if step.system is not None:
        numbered = "\n".join(f"{n}. {reply.text}" for n, (_, reply) in enumerate(history, start=1))
        chat.append(ChatMessageSystem(content=step.system.replace(REPLIES, numbered)))
        if REPLIES in step.system:
            history = ()
    user_text = question.text
    for earlier, reply in history:
        chat.append(ChatMessageUser(content=_joined(user_text, earlier.subtask)))
        chat.append(ChatMessageAssistant(content=reply.text))
        user_text = ""
    chat.append(ChatMessageUser(content=_joined(user_text, step.subtask)))
    return chat


def _joined(question: str, subtask: str) -> str:
    return "\n\n".join(text for text in (question, subtask) if text) or "Continue."


def first_failure(group: BaseExceptionGroup[Exception]) -> Exception:
    """Return the first exception in a group, or in its nested groups, that is no group itself."""
    failure = group.exceptions[0]
    return first_failure(failure) if isinstance(failure, BaseExceptionGroup) else failure


@dataclass(slots=True)
class Session:
    """A workflow that is written while it runs: the steps sent so far, and their replies."""

    question: Question
    pool: Pool
    steps: list[Step] = field(default_factory=list[Step])
    replies: list[Reply] = field(default_factory=list[Reply])
    waves: list[int] = field(default_factory=list[int])
    """Number of steps in each wave: steps asked in parallel, after all earlier waves replied."""
    candidates: list[Reply] = field(default_factory=list[Reply])
    """Replies that may be the answer: those of the latest complete wave (steps sent in parallel),
    else of a wave that the budget cut off."""

    def __post_init__(self) -> None:
        self.pool.so_far = self.so_far

    async def ask(self, step: Step, *, quoted: bool = False, opinion: bool = False) -> Reply:
        """Send one step, which may read all earlier steps; return its reply (see `ask_all`)."""
        return (await self.ask_all([step], quoted=quoted, opinion=opinion))[0]

    async def ask_all(
        self,
        steps: Sequence[Step],
        *,
        quoted: bool = False,
        opinion: bool = False,
        partly: bool = False,
        keeps: int = 0,
    ) -> list[Reply]:
        """Send several steps in parallel; each may read earlier steps, but no step of this call.

        With `quoted`, the subtasks quote the earlier replies, so these are not sent again. An
        `opinion`, a judge's or a verifier's words, is no candidate for the answer. If an equal
        budget is too small for all steps, replies are kept and BudgetSpent is raised; with `partly`
        the replies, if any, are returned. `keeps` calls are reserved for later steps.
        """
        start = len(self.steps)
        every = tuple(range(start))  # earlier steps, none of this call
        reads = [every if step.reads == "all" else step.reads for step in steps]
        assert {read for ids in reads for read in ids} <= {*every}, "steps read what has replied"
        spelled = [replace(step, reads=ids) for step, ids in zip(steps, reads, strict=True)]
        reply_of: dict[int, Reply] = {}
        refused: list[BudgetSpent] = []
        envelope = self.pool.envelope
        began_s = latest_s(self.replies, envelope.now_s if envelope else 0.0)

        async def ask(number: int) -> None:
            history = [(self.steps[read], self.replies[read]) for read in reads[number]]
            context = () if quoted else history
            try:
                with run_context(begins_s=began_s, keeps=keeps):
                    reply_of[number] = await _ask(self, start + number, spelled[number], context)
            except BudgetSpent as spent:
                refused.append(spent)

        await _side_by_side(ask, range(len(spelled)))
        numbers = sorted(reply_of)
        replies = [reply_of[number] for number in numbers]
        self.steps += [spelled[number] for number in numbers]
        self.replies += replies
        self.waves += [len(replies)] if replies else []
        if replies and not opinion and not (refused and self.candidates):
            self.candidates = replies
        if refused and not (partly and replies):
            raise refused[0]
        return replies

    def so_far(self) -> Answer:
        """Return the best answer so far: the majority vote of the replies in `candidates`."""
        return self.answer(vote(self.question.kind, [reply.text for reply in self.candidates]))

    def answer(self, text: str, noted: Mapping[str, Any] = EMPTY) -> Answer:
        """Return `text` as the answer, with the steps that were run and notes for the log."""
        workflow = Workflow(tuple(self.steps))
        return Answer(
            text=text,
            replies=tuple(self.replies),
            depth=max(workflow.depths(), default=0),
            plan=workflow.as_json(),
            noted=noted,
            waves=tuple(self.waves),
        )
