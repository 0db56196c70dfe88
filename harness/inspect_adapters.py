"""The adapters to Inspect: a System becomes a Solver, a Suite a Task, a Grade a Score."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from time import monotonic
from typing import Any, cast

import anyio
import anyio.to_thread
from inspect_ai import Task
from inspect_ai._util.registry import is_registry_object, registry_info, set_registry_info
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver
from inspect_ai.viewer import TaskSamplesColumn, TaskSamplesView, ViewerConfig

from podium.harness.context import PublicTests, current, extend_context
from podium.harness.context_length import graded_refusal, is_refused
from podium.harness.envelope import BudgetSpent
from podium.harness.errors import UserError
from podium.harness.ledger.hooks import SHAPE, facts_digest, text_digest
from podium.harness.ledger.journal import SampleRef
from podium.harness.ledger.recorder import current_journal, recording
from podium.harness.parallel import cores
from podium.harness.pool import Pool, active_pool
from podium.harness.pool_config import PoolSpec, WorkerSpec, read_pool, with_conductor
from podium.harness.records import (
    ANSWER,
    EMPTY,
    PODIUM,
    SECONDS,
    UNUSED,
    WAVES,
    WRONG,
    Answer,
    Grade,
    Question,
)
from podium.harness.suite import (
    ModelGraded,
    PubliclyTested,
    Split,
    Suite,
    Varied,
    at_epoch,
    keep_files_private,
    prompt_of,
    usual_epochs,
)
from podium.harness.system import System

SYSTEM = "podium_system"  # attribute of a solver, which Inspect's decorator copies


def system_of(task_solver: Solver) -> System:
    """Return the system inside a solver; LookupError for one that `as_solver` did not make."""
    if not hasattr(task_solver, SYSTEM):
        raise LookupError("this solver was not made by as_solver")
    return getattr(task_solver, SYSTEM)


def as_solver(
    system: System, pool: str | None = None, override: WorkerSpec | None = None
) -> Solver:
    """Return a system's Inspect solver on pool `pool` (None: model roles are the workers).

    `override` replaces the pool's conductor; None keeps it.
    """
    spec, context = named_pool(pool), current()
    spec = spec and with_conductor(spec, override)
    journal = current_journal()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        started = monotonic()
        with recording(journal, "inference", sample_ref(state)) as recorder:
            pool = active_pool(spec, state.epoch, override)
            pool.public_tests = context.public_tests or current().public_tests
            answer = await best_within(system, asked_in(state), pool)
        took = None if recorder and recorder.replays else round(monotonic() - started, 6)
        stop = "model_length" if answer.too_long else "stop"  # as in the worker's own reply
        state.output = ModelOutput.from_content(PODIUM, answer.text, stop_reason=stop)
        state.messages.append(ChatMessageAssistant(content=answer.text, source="generate"))
        # After a kill, Inspect keeps this metadata, but derives the output from the calls.
        extra = {SECONDS: took, ANSWER: answer.text}
        extra |= {UNUSED: float(pool.envelope.unused)} if pool.envelope else {}
        state.metadata[PODIUM] = shape = {**_answer_shape(answer), **extra}
        if journal:
            journal.note("answer", answer_note(state, shape))
        return state

    setattr(solve, SYSTEM, system)
    return solve


async def best_within(system: System, question: Question, pool: Pool) -> Answer:
    """Return a system's answer, or its best answer so far if its equal budget is spent first."""
    try:
        answer = await system(question, pool)
    except BudgetSpent:
        answer = pool.so_far() if pool.so_far else Answer("")
    envelope = pool.envelope
    return (
        replace(answer, stopped=envelope.budget.unit) if envelope and envelope.refused else answer
    )


def named_pool(pool: str | None) -> PoolSpec | None:
    """Return the pool named `pool`, from its file unless the run has read it.

    Without a name return None: Inspect's model roles are then the workers.
    """
    spec = current().spec
    return spec if spec and spec.name == pool else read_pool(pool) if pool else None


def sample_ref(state: TaskState) -> SampleRef:
    """Return the identity of a running sample (question id, epoch, uuid), for the journal."""
    return SampleRef(str(state.sample_id), state.epoch, state.uuid)


def answer_note(state: TaskState, shape: Mapping[str, Any]) -> dict[str, Any]:
    """Return a journal entry with an answer's digests, by which the audit finds a changed log."""
    return {
        "sample": asdict(sample_ref(state)),
        "answer_sha256": text_digest(shape[ANSWER]),
        "shape_sha256": facts_digest(*(shape[name] for name in SHAPE)),
    }


ASKED = "asked"  # key in a sample's metadata: its epoch's variant of the question, if it differs


@solver
def ask_differently(vary: Callable[[Question, int], Question]) -> Solver:
    """Return a solver that replaces a question by its epoch's variant; it must run first."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.epoch > 1:
            question = vary(question_of(state), state.epoch)
            state.metadata[ASKED] = {"text": question.text, **question.metadata}
            state.user_prompt.text = question.text
        return state

    return solve


def asked_in(state: TaskState) -> Question:
    """Return a running sample's question in the variant of its epoch, without its target."""
    question = question_of(state).sealed()
    form = dict(state.metadata.get(ASKED, {}))
    return replace(question, text=form.pop("text"), metadata=form) if form else question


def question_of(state: TaskState) -> Question:
    """Return the question of a running sample in the variant of epoch 1, with its target."""
    question = question_from(str(state.sample_id), state.input_text, state.metadata)
    return replace(question, target=state.target.text)


def question_from(id: str, text: str, metadata: Mapping[str, Any]) -> Question:
    """Return a question, without its target, from the metadata that `sample` wrote."""
    stored = metadata.get("question")
    return Question(
        id=id,
        text=text,
        kind=metadata.get("kind", "text"),
        topic=metadata.get("topic", ""),
        metadata=cast(Mapping[str, Any], stored) if isinstance(stored, dict) else EMPTY,
    )


def _answer_shape(answer: Answer) -> dict[str, object]:
    """Return an answer's logged fields besides its text: depth, steps, plan and the like."""
    return {
        "depth": answer.depth,
        "steps": len(answer.replies),
        "stopped": answer.stopped,
        "plan": answer.plan,
        **({"noted": dict(answer.noted)} if answer.noted else {}),
        **({WAVES: list(answer.waves)} if len(answer.waves) > 1 else {}),
    }


ROOMS = ("baselines", "conductor")
"""Packages with solvers: up to podium 0.1, the solvers' names in Inspect began with the package."""


def named_by_room(task: Task, solver: str) -> Task:
    """Return a task, its steps renamed as in podium 0.1 if `solver` is a name of that version.

    Inspect resumes a log only if the names of all steps are the same; otherwise a resumed run
    would pay for every reply again.
    """
    room = solver.partition("/")[0]
    steps = ((task.setup, "harness"), (task.solver, room)) if room in ROOMS else ()
    for step, home in steps:
        if is_registry_object(step):
            info = registry_info(step)
            name = info.name.replace(f"{PODIUM}/", f"{home}/")
            set_registry_info(step, info.model_copy(update={"name": name}))
    return task


def as_task(
    suite: Suite[Any],
    *,
    split: Split = "eval",
    limit: int | None = None,
    only: Sequence[str] | None = None,
    epochs: int | None = None,
    box: Any | None = None,
    max_sandboxes: int | None = None,
    solver: Solver | None = None,
    name: str | None = None,
    sandbox: str | tuple[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Task:
    """Return the Inspect task of one suite.

    `only` lists the ids of the questions to ask, in that order (None: all), `epochs` times each
    (None: the suite's default). `metadata` is added to the log header. UserError if the split does
    not exist, the limit is below 1, or the suite needs a box and `box` is None.
    """
    questions = pick(suite, split, limit)
    if only is not None:
        by_id = {question.id: question for question in questions}
        questions = [by_id[id] for id in only]
    if suite.needs_box and box is None:
        raise UserError(
            f"Suite {suite.name!r} runs programs: name a sandbox with --box, or under "
            "`inspect eval` with -T box=subprocess."
        )
    refuse_no_epochs(epochs)
    facts = {**suite_facts(suite, split), **(metadata or {})}
    return Task(
        dataset=MemoryDataset([sample(question) for question in questions], name=suite.name),
        setup=ask_differently(suite.at_epoch) if isinstance(suite, Varied) else None,
        solver=solver or generate(),
        scorer=as_scorer(suite, box, max_sandboxes),
        epochs=epochs or usual_epochs(suite),
        name=name or suite.name,
        description=suite.card.about,
        sandbox=sandbox,
        version=suite.version,
        headline_metric=PODIUM,
        viewer=VIEW,
        metadata={PODIUM: facts},
        **_names(facts),
    )


FIRST = ("sampleStatus", "sampleId", "input", "target", "answer", "cost")
COLUMNS = [TaskSamplesColumn(id=column) for column in FIRST]
VIEW = ViewerConfig(task_samples_view=TaskSamplesView(name=PODIUM, columns=COLUMNS))
"""Columns that Inspect's viewer shows first; by default it hides the cost."""


def _names(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the name and tags that Inspect's viewer shows; empty if the system is unknown."""
    if "system" not in facts:
        return {}
    tags = (facts[name] for name in ("label", "split", "purpose") if name in facts)
    return {"display_name": f"{facts['system']} on {facts['suite']}", "tags": [*tags]}


def pick(suite: Suite[Any], split: Split = "eval", limit: int | None = None) -> Sequence[Question]:
    """Return the first `limit` questions of a split; UserError if the suite lacks the split."""
    if limit is not None and limit < 1:
        raise UserError(f"--limit must be at least 1, not {limit}; leave it out for all questions.")
    if split not in suite.splits:
        splits = ", ".join(suite.splits)
        raise UserError(f"Suite {suite.name!r} has no {split!r} split; it has: {splits} (--split).")
    if not suite.publishable:
        keep_files_private()
    return suite.load(split)[:limit]


def suite_facts(suite: Suite[Any], split: Split) -> dict[str, Any]:
    """Return the facts about a suite that a log's header stores."""
    return {
        "schema": 1,  # version of podium's log metadata
        "suite": suite.name,
        "suite_version": suite.version,
        "data_revision": suite.data_revision,
        "dates": suite.dates,
        "paper": suite.card.paper,
        "publishable": suite.publishable,
        "split": split,
        "prompt": prompt_of(suite),
        "overflows": WRONG,
    }


def refuse_no_epochs(epochs: int | None) -> None:
    """Raise UserError if `--epochs` is below 1."""
    if epochs is not None and epochs < 1:
        raise UserError(f"--epochs must be at least 1, not {epochs}.")


def sample(question: Question) -> Sample:
    """Return a question as an Inspect sample; `question_of` is the inverse."""
    facts = {"kind": question.kind, "topic": question.topic, "question": dict(question.metadata)}
    return Sample(id=question.id, input=question.text, target=question.target or "", metadata=facts)


def public_tests_of(
    suite: Suite[Any], box: Any | None, programs: anyio.CapacityLimiter
) -> PublicTests | None:
    """Return a function that grades by a suite's public tests; None without tests or a box."""
    if box is None or not isinstance(suite, PubliclyTested):
        return None

    async def tests(question: Question, reply: str) -> Grade:
        return await anyio.to_thread.run_sync(
            suite.try_public, question.sealed(), reply, box, limiter=programs
        )

    return tests


@solver
def offer_public_tests(tests: PublicTests) -> Solver:
    """Return a solver that lets later solvers run public tests; used under `inspect eval`."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        extend_context(public_tests=tests)
        return state

    return solve


def as_scorer(suite: Suite[Any], box: Any = None, max_sandboxes: int | None = None) -> Scorer:
    """Return the Inspect scorer of a suite; at most `max_sandboxes` programs run in parallel."""
    context = current()
    programs = context.programs or anyio.CapacityLimiter(max_sandboxes or cores())
    journal = current_journal()

    @scorer(metrics=[mean(), stderr()], name=PODIUM)
    def graded() -> Scorer:
        async def verdict(state: TaskState, target: Target) -> Score:
            question = replace(question_of(state), target=target.text)
            question = at_epoch(suite, question, state.epoch)
            reply = state.output.completion
            try:
                if isinstance(suite, ModelGraded) and suite.needs_judge(question):
                    with recording(journal, "scoring", sample_ref(state)):
                        return as_score(await suite.judged(state, question))
                if box is None and question.kind != "text":  # quick: no program, no algebra
                    return as_score(suite.grade(question, reply))
                grade = await anyio.to_thread.run_sync(
                    suite.grade, question, reply, box, limiter=programs
                )
            except Exception as error:
                return unscored(error)
            return as_score(grade)

        async def score(state: TaskState, target: Target) -> Score:
            _count_answer()
            refused = is_refused(state.output) and current().overflows == WRONG
            words = state.output.completion
            result = as_score(graded_refusal(words)) if refused else await verdict(state, target)
            if journal:
                journal.note("grade", graded_note(state, target, result))
            return result

        return score

    return graded()


def _count_answer() -> None:
    if line := current().progress:
        line.tick()


def graded_note(state: TaskState, target: Target, score: Score) -> dict[str, Any]:
    """Return a journal entry with a verdict; a digest replaces its texts, which may be secret."""
    value = score.value if isinstance(score.value, int | float) else None
    text = state.input if isinstance(state.input, str) else ""  # it may be a conversation
    return {
        "sample": asdict(sample_ref(state)),
        "value": value if value == value else None,
        "graded_sha256": facts_digest(text, target.text, score.answer),
    }


def as_score(grade: Grade) -> Score:
    """Return a grade as Inspect's score; `parsed` in it tells "wrong" from "no answer found"."""
    return Score(
        value=grade.value,
        answer=grade.extracted,
        explanation=grade.explanation,
        metadata={**grade.metadata, "parsed": grade.extracted is not None},
    )


def unscored(error: Exception) -> Score:
    """Return the score of a reply that could not be graded: the reason, without a value."""
    return Score.unscored(reason="scoring_failed", explanation=f"{type(error).__name__}: {error}")
