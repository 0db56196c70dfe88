"""The adapters from a `System` to an Inspect solver, and from a `TaskState` to a `Question`.

    @solver
    def single(worker: str, pool: str | None = None) -> Solver:
        return as_solver(planned(...), pool)

A solver made this way fills absent model roles from `pool` (the name of a pool file), so that
Inspect's own command line stays short; with `pool=None` the workers are the user's model roles.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import asdict, replace
from time import monotonic
from typing import Any, cast

from inspect_ai.model import ChatMessageAssistant, ModelOutput
from inspect_ai.solver import Generate, Solver, TaskState, solver

from harness.ledger.asking import recording
from harness.ledger.journal import SampleRef
from harness.ledger.texts import SHAPE, facts_digest, text_digest
from harness.place import PLACE
from harness.pool import active_pool
from harness.pool_file import PoolSpec, WorkerSpec, read_pool
from harness.records import EMPTY, PODIUM, SECONDS, Answer, Question
from harness.seating import seated
from harness.system import System
from harness.trials import TRIAL

MADE: ContextVar[list[System] | None] = ContextVar("podium_systems_made", default=None)
"""Where systems are listed as solvers are made of them, for who wants the system of a solver."""


def system_of(make: Callable[[], Solver]) -> System:
    """Return the system inside a solver of ours; LookupError when `make` made none."""
    made: list[System] = []
    token = MADE.set(made)
    try:
        make()
    finally:
        MADE.reset(token)
    if not made:
        raise LookupError("this solver was not made by as_solver")
    return made[-1]


def as_solver(system: System, pool: str | None = None, seat: WorkerSpec | None = None) -> Solver:
    """Return the Inspect solver that lets a system answer each sample.

    The pool file is read here, so an unknown pool is refused before any sample starts. `seat` is
    the conductor that the system brings along, whoever the pool's is.
    """
    spec, journal = named_pool(pool), PLACE.get().journal
    spec = seated(spec, seat) if spec and seat else spec
    trial, listed = PLACE.get().trial, MADE.get()
    if listed is not None:
        listed.append(system)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        begun = monotonic()
        with recording(journal, "inference", sample_ref(state)) as recorder:
            pool = active_pool(spec, state.epoch, seat)
            pool.trial = trial or TRIAL.get()
            answer = await system(asked_in(state), pool)
        took = None if recorder and recorder.replays else round(monotonic() - begun, 6)
        state.output = ModelOutput.from_content(model=PODIUM, content=answer.text)
        state.messages.append(ChatMessageAssistant(content=answer.text, source="generate"))
        state.metadata[PODIUM] = shape = {**_shape(answer), SECONDS: took}
        if journal:
            journal.note("answer", _answered(state, answer, shape))
        return state

    return solve


def named_pool(pool: str | None) -> PoolSpec | None:
    """Return the pool that a solver was given by name; None where the user's roles are the workers.

    Inside a run it is the run's own, which its name alone might not find again.
    """
    known = PLACE.get().spec
    return known if known and known.name == pool else read_pool(pool) if pool else None


def sample_ref(state: TaskState) -> SampleRef:
    """Return who a running sample is, for the journal."""
    return SampleRef(str(state.sample_id), state.epoch, state.uuid)


ASKED = "asked"
"""Key in a sample's metadata: how this epoch puts the question, where it differs from epoch 1."""


@solver
def ask_differently(vary: Callable[[Question, int], Question]) -> Solver:
    """Put the question as its epoch asks it; it runs before the solver, whoever wrote that."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.epoch > 1:
            question = vary(question_of(state), state.epoch)
            state.metadata[ASKED] = {"text": question.text, **question.metadata}
            state.user_prompt.text = question.text
        return state

    return solve


def asked_in(state: TaskState) -> Question:
    """Return the sealed question of a running sample as its epoch puts it."""
    question = question_of(state).sealed()
    asked = dict(state.metadata.get(ASKED, {}))
    return replace(question, text=asked.pop("text"), metadata=asked) if asked else question


def question_of(state: TaskState) -> Question:
    """Return the question of a running sample as epoch 1 puts it, target included.

    Any Inspect dataset will do.
    """
    question = question_from(str(state.sample_id), state.input_text, state.metadata)
    return replace(question, target=state.target.text)


def question_from(id: str, text: str, metadata: Mapping[str, Any]) -> Question:
    """Return the sealed question that `harness.task.sample` wrote into a sample's metadata."""
    stored = metadata.get("question")
    return Question(
        id=id,
        text=text,
        kind=metadata.get("kind", "text"),
        topic=metadata.get("topic", ""),
        metadata=cast(Mapping[str, Any], stored) if isinstance(stored, dict) else EMPTY,
    )


def _answered(state: TaskState, answer: Answer, shape: Mapping[str, object]) -> dict[str, object]:
    """Return what a journal keeps of an answer: digests, so that its log cannot change unseen."""
    return {
        "sample": asdict(sample_ref(state)),
        "answer_sha256": text_digest(answer.text),
        "shape_sha256": facts_digest(*(shape[name] for name in SHAPE)),
    }


def _shape(answer: Answer) -> dict[str, object]:
    """Return what the log keeps of an answer beside its text: the shape of the work."""
    shape: dict[str, object] = {
        "depth": answer.depth,
        "steps": len(answer.replies),
        "stopped": answer.stopped,
        "plan": answer.plan,
    }
    return {**shape, "noted": dict(answer.noted)} if answer.noted else shape
