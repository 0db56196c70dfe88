"""Models that judge: who must have one, and how it is asked, in the role `grader`.

A judge is no worker. No pool of a sample holds it, no plan can name it, and its calls are in the
log in the phase of scoring: they are no system's cost. What a judge is told is its suite's.
"""

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from inspect_ai.model import ChatMessageUser, Model, ModelOutput, ModelRole, model_roles
from inspect_ai.scorer import Score, Target, model_graded_qa
from inspect_ai.scorer._model import model_scoring_prompt
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import current_span_id, span

from harness.context import current
from harness.errors import PodiumError, UserError
from harness.ledger.hooks import last_event
from harness.ledger.recorder import next_draw, read_back, record_call
from harness.pool_config import PoolSpec
from harness.records import GRADER, Question
from harness.request import Request
from harness.suite import ModelGraded, Suite
from harness.text import make_storable

NO_JUDGE = (
    "Only a model can judge {} of the {} questions of suite {!r}: add a [grader] table to pool {}, "
    "or under `inspect eval` give --model-role grader=PROVIDER/MODEL."
)


class JudgeError(PodiumError):
    """We failed to judge: no model in the role, or one that gave no verdict. Never a 0."""


@dataclass(frozen=True, slots=True)
class JudgeCase:
    """What a judge is asked."""

    template: str
    """Of Inspect's `model_graded_qa`: `{question}`, `{answer}`, `{criterion}`; the suite's own."""
    verdicts: str
    """Pattern over the judge's reply; its one group is the verdict."""
    question: str
    answer: str
    """What is judged. Whoever wrote it may try to talk to the judge: the template fences it."""
    criterion: str


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a judge said."""

    verdict: str
    said: str
    judge: str
    """The model's name; several, joined by a comma, where the role is bound to a list."""


def refuse_unjudged(suite: Suite[Any], questions: Sequence[Question], spec: PoolSpec) -> None:
    """Raise UserError when only a model can grade some of the questions and the pool has none."""
    if spec.grader is None:
        _refuse(suite, questions, repr(spec.name))


def refuse_judged_plans(suite: Suite[Any], questions: Sequence[Question]) -> None:
    """Raise UserError for an oracle on questions that no rule grades: it grades every plan."""
    judged = judged_among(suite, questions)
    if judged:
        raise UserError(
            f"The oracle grades every plan that it tries, and only a model can judge {judged} of "
            f"the {len(questions)} questions of suite {suite.name!r}: name other systems with "
            "--system."
        )


def judged_among(suite: Suite[Any], questions: Sequence[Question]) -> int:
    """Return how many questions only a model can judge."""
    return sum(map(suite.needs_judge, questions)) if isinstance(suite, ModelGraded) else 0


@solver
def judge_required(suite: Suite[Any], questions: Sequence[Question]) -> Solver:
    """Return a task's setup that refuses to answer what nobody could grade.

    Without the role Inspect would let the model that is examined grade itself. The roles of an eval
    are known only once it runs, so every sample is refused, before its first model call.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if GRADER not in model_roles():
            _refuse(suite, questions, "file")
        return state

    return solve


def _refuse(suite: Suite[Any], questions: Sequence[Question], pool: str) -> None:
    judged = judged_among(suite, questions)
    if judged:
        raise UserError(NO_JUDGE.format(judged, len(questions), suite.name, pool))


async def judged_by_model(state: TaskState, case: JudgeCase) -> Ruling:
    """Let Inspect's own model-graded scorer ask the role `grader`, inside a running eval.

    Raises `JudgeError` without a model in that role, or when it gives no verdict; `SpendLimit`
    before a call that may not be paid for; and what the provider raises.
    """
    bound = model_roles().get(GRADER)
    if bound is None:
        raise JudgeError("no model has the role `grader`, and only a model can judge this reply")
    judges = bound if isinstance(bound, list) else [bound]
    score = await _paid(state, case, judges)
    if score is None or not isinstance(score.value, str):
        said = (score.explanation if score else None) or "nothing"
        raise JudgeError(f"the judge gave no verdict: {said[-SAID:]}")
    names = ", ".join(str(judge) for judge in judges)
    return Ruling(verdict=score.value, said=score.explanation or "", judge=names)


INSTRUCTIONS = "-"

SAID = 300
"""Characters of a judge's last words that go into a reason."""


async def _paid(state: TaskState, case: JudgeCase, judges: Sequence[Model]) -> Score | None:
    """Ask under the run's spending limit, if it has one; a judge is priced by its model id."""
    judge = judges[0]
    request = Request(GRADER, judge, [_prompt(state, case)], price_ref=str(judge))
    async with span("judge"):
        draw = next_draw(request) if len(judges) == 1 else None
        if draw and (event := draw.replayed(request)):
            read_back(request, event, current().spend)
            return _ruled(case, event.output.completion)
        async with record_call(request, current().spend) as asked:
            score = await _asked(state, case)
            call = last_event(current_span_id())
            asked.output = make_storable(call.output) if call else None
            if draw and asked.output and not asked.output.empty:
                draw.keep(asked.output)
    return score


def _ruled(case: JudgeCase, said: str) -> Score:
    """Return what Inspect's scorer makes of a judge's words: the verdict is the pattern's group."""
    found = re.search(case.verdicts, said)
    if found is None:
        return Score.unscored(reason="grader_failed", explanation=said)
    return Score(value=found.group(1), explanation=said)


def _prompt(state: TaskState, case: JudgeCase) -> ChatMessageUser:
    """Return what Inspect's scorer will send; it has no public name for this."""
    return model_scoring_prompt(
        template=case.template,
        question=case.question,
        output=_answer(state, case),
        criterion=case.criterion,
        instructions=INSTRUCTIONS,
        metadata={},
    )


def _answer(state: TaskState, case: JudgeCase) -> ModelOutput:
    return ModelOutput.from_content(model=str(state.model), content=case.answer)


async def _asked(state: TaskState, case: JudgeCase) -> Score | None:
    """Ask with a state that holds nothing but the case: no metadata, no history, no other reply."""
    shown = copy(state)
    shown.metadata = {}
    shown.output = _answer(state, case)
    scorer = model_graded_qa(
        template=case.template,
        instructions=INSTRUCTIONS,
        grade_pattern=case.verdicts,
        include_history=lambda _: case.question,
        model_role=ModelRole(GRADER, required=True),
    )
    return await scorer(shown, Target(case.criterion))
