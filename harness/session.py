"""A workflow that is written while it runs: what it asks next may depend on what it was told.

Retrying until the tests pass, a cascade, a debate, a tree search: each asks by the same steps and
requests as `execute`, and its answer carries the workflow that was really run. A system whose plan
stands before the first call uses `harness.system.planned` instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from harness.execute import first_failure, messages
from harness.pool import Pool
from harness.records import EMPTY, Answer, Question, Reply
from harness.workflow import Step, Workflow


@dataclass(slots=True)
class Session:
    """The steps asked so far on one question, and their replies."""

    question: Question
    pool: Pool
    steps: list[Step] = field(default_factory=list[Step])
    replies: list[Reply] = field(default_factory=list[Reply])

    async def ask(self, step: Step) -> Reply:
        """Ask one more step, which may read those before it, and return its reply."""
        return (await self.ask_all([step]))[0]

    async def ask_all(self, steps: Sequence[Step]) -> list[Reply]:
        """Ask several steps side by side; each may read what was there before, none the others.

        Raises what `Pool.ask` raises, once, after all of them have ended.
        """
        start = len(self.steps)
        spelled = [replace(step, reads=self._readable(step)) for step in steps]
        found: dict[int, Reply] = {}

        async def one(at: int, step: Step) -> None:
            reads = step.reads if step.reads != "all" else ()
            history = [(self.steps[read], self.replies[read]) for read in reads]
            request = messages(self.question, step, history)
            name = f"step {start + at + 1}: {step.worker}"
            found[at] = await self.pool.ask(step.worker, request, name, step.sampling)

        try:
            async with anyio.create_task_group() as tasks:
                for at, step in enumerate(spelled):
                    tasks.start_soon(one, at, step)
        except* Exception as group:
            raise first_failure(group) from None
        replies = [found[at] for at in range(len(spelled))]
        self.steps += spelled
        self.replies += replies
        return replies

    def answer(self, text: str, noted: Mapping[str, Any] = EMPTY) -> Answer:
        """Return the answer `text`, with the workflow that led to it and what the log shall say."""
        done = Workflow(tuple(self.steps))
        return Answer(
            text=text,
            replies=tuple(self.replies),
            depth=max(done.depths(), default=0),
            plan=done.as_json(),
            noted=noted,
        )

    def _readable(self, step: Step) -> tuple[int, ...]:
        """Return what a step reads, with "all" spelled out; steps asked beside it do not count."""
        reads = tuple(range(len(self.steps))) if step.reads == "all" else step.reads
        assert all(0 <= read < len(self.steps) for read in reads), "a step reads what has replied"
        return reads
