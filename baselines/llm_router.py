"""A model as router: the pool's conductor is shown numbered workers and names one of them.

Its call is billed in the role `conductor`. The control for a learned router and for a conductor:
the same information, no training, and a plan of one step. Not here: plans (conductor/).
"""

import re
from collections.abc import Sequence

from inspect_ai.model import ChatMessageUser
from inspect_ai.solver import Solver, solver

from harness.errors import UserError
from harness.execute import Session
from harness.inspect_adapters import as_solver
from harness.pool import Pool
from harness.records import CONDUCTOR, Answer, Question
from harness.system import System, SystemCard, exactly
from harness.workflow import Step

ROUTE = """\
You send questions to language models. You never answer a question yourself: you name the one model
that will.

Below you find a user question and a numbered list of the available models. Choose at most 1 model,
the one that is most likely to answer the question correctly. Think briefly. Then end with exactly
one line of this form, where N is a whole number from the list:

model_id = [N]

USER QUESTION:
{question}

AVAILABLE LANGUAGE MODELS:
{models}"""
"""Our own wording, in the form in which conductors are asked (conductor/prompt.py)."""

_NAMED = re.compile(r"^\W*model_id\s*=\s*\[\s*(\d{1,6})\s*\]", re.MULTILINE)

ROUTER_LLM = SystemCard(
    name="router-llm",
    solver="baselines/router_llm",
    summary="The pool's conductor names one worker for each question, and it answers alone.",
    group="routers",
    source="podium (a common control); no training",
    calls="1, plus 1 of the conductor",
    expected=exactly(lambda _n, _args: 1),
    prompts=(ROUTE,),
    needs=frozenset({"conductor"}),
    conductor_calls=1,
    deviations=("a reply that names no worker of the list sends the question to the first worker",),
)


def routing_prompt(question: str, cards: Sequence[str]) -> str:
    """Return what the router is sent; `cards` has one entry per worker, empty to hide it."""
    models = [f"Model {at}: {card}" if card else f"Model {at}" for at, card in enumerate(cards)]
    return ROUTE.format(question=question, models="\n".join(models))


def named_worker(reply: str, workers: int) -> int | None:
    r"""Return the worker that a reply names last, counted from 0; None for none of the list.

    >>> named_worker("Model 2 is best.\nmodel_id = [2]", 3), named_worker("2", 3)
    (2, 2)
    >>> named_worker("model_id = [3]", 3)
    """
    found = _NAMED.findall(reply) or re.findall(r"\A\s*(\d{1,6})\s*\Z", reply)
    return int(found[-1]) if found and int(found[-1]) < workers else None


def llm_router_system(*, cards: bool = True) -> System:
    """Return the system in which the conductor chooses who answers."""

    async def answer(question: Question, pool: Pool) -> Answer:
        if CONDUCTOR not in pool.models:
            raise UserError(
                "This pool has no conductor to route with: add a [conductor] table to the pool "
                "file, or name one with --model-role conductor=PROVIDER/MODEL."
            )
        shown = [pool.card(worker) if cards else "" for worker in pool.workers]
        asked = [ChatMessageUser(content=routing_prompt(question.text, shown))]
        said = await pool.ask(CONDUCTOR, asked, f"{CONDUCTOR}: route")
        choice = named_worker(said.text, len(pool.workers))
        session = Session(question, pool)
        reply = await session.ask(Step(pool.workers[choice or 0]))
        return session.answer(reply.text, {"route": choice, "fallback": choice is None})

    return answer


@solver
def router_llm(cards: bool = True, pool: str | None = None) -> Solver:
    """Let the conductor name who answers; `cards` shows what each worker is good at."""
    return as_solver(llm_router_system(cards=cards), pool)
