"""Run a conductor's plan, and ask it again as often as its rounds and their limits allow.

All rounds are one workflow: `Answer.plan` holds its steps in order, and `Answer.noted["rounds"]`
how many steps each round had, so that a log alone says who read what, and how deep the work was:
the sum over rounds, since a later plan waits for the whole earlier one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from inspect_ai.model import ChatMessage

from conductor.asking import Planned, Seat, ask_for_plan, usd_of
from conductor.recursion import KEEP, Rounds, again, join, kept
from harness.execute import Begun, Budget, execute_more
from harness.records import FALLBACK, Answer, Question, Reply
from harness.workflow import Workflow

STANDS = "a later plan could not be read, so the answer before it stands"


@dataclass(slots=True)
class Work:
    """What a conductor has done on one question so far."""

    seat: Seat
    question: Question
    rounds: Rounds
    plan: Workflow = field(default_factory=lambda: Workflow(()))
    sizes: list[int] = field(default_factory=list[int])
    """Steps of each round."""
    spent: list[Reply] = field(default_factory=list[Reply])
    """The conductor's own replies."""
    forgave: list[str] = field(default_factory=list[str])
    answer: Answer = field(default_factory=lambda: Answer(""))
    ended: str = "rounds"
    """Why there was no further round: `kept`, `malformed`, or the limit that was reached."""

    def heard(self, planned: Planned) -> None:
        """Take down what the conductor said."""
        self.spent += planned.replies
        self.forgave += [one for one in planned.reading.forgave if one not in self.forgave]

    async def carry_out(self, plan: Workflow) -> None:
        """Run one more round of steps, within what is left."""
        whole = join(self.plan, plan) if self.sizes else plan
        begun = Begun(whole, self.answer.replies, self.answer.depth)
        usd = self.rounds.max_usd
        budget = Budget(usd=None if usd is None else usd - usd_of(self.spent))
        self.answer = await execute_more(begun, self.question, self.seat.pool, budget)
        self.plan = whole
        self.sizes.append(len(plan.steps))

    def limit(self) -> str | None:
        """Return the limit that forbids a further round."""
        if self.answer.stopped:
            return self.answer.stopped
        if self.steps_left() < 1:
            return "calls"
        usd = self.rounds.max_usd
        over = usd is not None and usd_of((*self.spent, *self.answer.replies)) >= usd
        return "usd" if over else None

    def steps_left(self) -> int:
        """Return how many steps the next round may have."""
        form = self.seat.form
        return min(form.max_steps, self.rounds.calls(form) - len(self.plan.steps))

    def noted(self) -> dict[str, Any]:
        """Return what the log shall say of it."""
        said: dict[str, Any] = {"forgave": self.forgave} if self.forgave else {}
        if self.rounds.further and self.sizes:
            said |= {"rounds": self.sizes, "ended": self.ended}
            said |= {FALLBACK: STANDS} if self.ended == "malformed" else {}
        return said


async def further_rounds(work: Work, request: Sequence[ChatMessage], said: str) -> None:
    """Ask the conductor again until it keeps the answer, or its rounds or their limits end.

    `request` is what it was sent for the first round, `said` its text.
    """
    seat = work.seat
    for number in range(2, work.rounds.further + 2):
        limit = work.limit()
        if limit:
            work.ended = limit
            return
        form = replace(seat.form, max_steps=work.steps_left())
        request = again(form, request, said, work.answer.text)
        planned = await ask_for_plan(replace(seat, form=form), request, number)
        work.heard(planned)
        plan, said = kept(planned.reading.plan), planned.said
        if not isinstance(plan, Workflow):
            work.ended = "kept" if plan is KEEP else "malformed"
            return
        await work.carry_out(plan)
