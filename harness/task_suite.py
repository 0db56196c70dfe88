"""Any Inspect task as a suite, with its own dataset, solver, tools, sandbox and scorer.

The suite's name is Inspect's: `PACKAGE/TASK`, or `FILE.py@TASK`. The system is the task's model
(system_api.py). The grade is the value of the task's first scorer as a number; other scorers and
metrics stay in the log. The data revision covers each question's id, input and target.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from inspect_ai import Task
from inspect_ai import task_with as _task_with  # pyright: ignore[reportUnknownVariableType]
from inspect_ai._eval.loader import (
    load_tasks,  # used by Inspect's command; not public
)
from inspect_ai._util.entrypoints import ensure_entry_points
from inspect_ai._util.registry import (
    registry_find,
    registry_info,
    registry_params,
    set_registry_info,
    set_registry_params,
)
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import Model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr, value_to_float
from inspect_ai.solver import TaskState

from podium.harness.errors import UserError
from podium.harness.inspect_adapters import as_score, graded_note, suite_facts, unscored
from podium.harness.ledger.hooks import refuse_calls_past_ledger
from podium.harness.ledger.recorder import TaskJournal
from podium.harness.records import BARE, PODIUM, Grade, Question
from podium.harness.single_turn import asked_of, score_of
from podium.harness.suite import FIRST_SCORER, NONE_PUBLISHED, Card, Split
from podium.harness.text import columns, first_line, records

UNKNOWN = "unknown"


@dataclass(frozen=True)
class TaskSuite:
    """An Inspect task as a suite, by its name and its arguments (Inspect's `-T`)."""

    name: str
    """The task's name in tables: `PACKAGE/TASK`, or `FILE.py@TASK` without folders."""
    path: str = ""
    """`FILE.py@TASK` with the file's folders; empty if the task is in a package."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    splits: tuple[Split, ...] = ("eval",)
    needs_box: bool = False
    image: str = ""
    dates: str = UNKNOWN

    @cached_property
    def _task(self) -> Task:
        return self.made()

    def made(self) -> Task:
        """Return a new instance of the task; UserError if it cannot be made or used by systems."""
        try:
            tasks = load_tasks([self.path or self.name], dict(self.arguments))
            if len(tasks) != 1:
                raise LookupError("there is no such task: `podium suites --inspect` lists some")
            (task,) = tasks
        except Exception as error:
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise UserError(
                f"The task {self.name} cannot be made ({reason}): make sure that `inspect eval "
                f"{self.path or self.name}` works."
            ) from error
        if reason := _unfit(task):
            raise UserError(f"The task {self.name} {reason}.")
        return task

    @property
    def unused(self) -> Set[str]:
        """Names of arguments that the task does not have."""
        return self.arguments.keys() - registry_params(self._task)

    @property
    def version(self) -> str:
        """The version that the task itself states."""
        return str(self._task.version)

    @property
    def data_revision(self) -> str:
        """Digest of the samples' ids, inputs and targets; then the task's package and version."""
        return self._revision

    @cached_property
    def _revision(self) -> str:
        facts = sorted([question.id, question.text, question.target] for question in self.load())
        digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
        package = self.name.partition("/")[0]
        return digest if self.path else f"{digest}, {package} {_version(package)}"

    @property
    def publishable(self) -> bool:
        """Whether the task's texts may be shown: only if its metadata sets `publishable`."""
        return bool((self._task.metadata or {}).get("publishable"))

    @property
    def epochs(self) -> int:
        """Number of times that the Inspect task asks each question."""
        return self._task.epochs or 1

    @property
    def card(self) -> Card:
        """The suite's card: sizes and description; all else about a task is unknown."""
        about = (
            getattr(self._task, "description", None) or "An Inspect task, as its author wrote it."
        )
        sizes: Mapping[Split, int] = {"eval": len(self._task.dataset)}
        return Card(self.name, self.name, sizes, UNKNOWN, NONE_PUBLISHED, about, (self.version,))

    @cached_property
    def _samples(self) -> Mapping[str, Sample]:
        return _samples_of(self._task)

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return the samples as questions, in the task's order, or by id if the task shuffles them.

        The texts of the train split include all that the task's solver adds.
        """
        rows = [_question(id, sample) for id, sample in self._samples.items()]
        if split == "train":
            texts = {id: asked_of(self._task, sample) for id, sample in self._samples.items()}
            rows = [replace(row, text=texts[row.id], metadata={BARE: row.text}) for row in rows]
        return sorted(rows, key=_by_id) if self._task.dataset.shuffled else rows

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Raise UserError, because an Inspect task reads its own data."""
        raise UserError(
            f"{self.name} is an Inspect task, which reads its own data. Leave --problems out."
        )

    def at_epoch(self, question: Question, epoch: int) -> Question:
        """Return the question itself, because an Inspect task asks the same in each epoch."""
        return question

    def grade(self, question: Question, reply: str, box: object = None) -> Grade:
        """Grade a reply by the task's first scorer; TypeError if its value is not in [0, 1]."""
        return _as_grade(score_of(self._task, self._samples[question.id], reply))

    def for_training(self) -> "TaskSuite":
        """Return the suite to train on; UserError if the task cannot grade single replies."""
        taught = replace(self, splits=("train",))
        if taught.why_not_single:
            raise UserError(
                f"{self.name} cannot grade a single reply: use `podium run --suite {self.name}`. "
                f"{taught.why_not_single}"
            )
        return taught

    @cached_property
    def why_not_single(self) -> str:
        """Why the task cannot grade a single reply, in one sentence; empty if it can."""
        task = self._task  # its errors are not caught
        try:
            if task.sandbox or any(sample.sandbox for sample in task.dataset):
                raise UserError("It uses an Inspect sandbox, and a single reply has none.")
            sample = next(iter(self._samples.values()))
            asked_of(task, sample)
            _as_grade(score_of(task, sample, ""))
        except Exception as error:
            prefix = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
            return f"{prefix}{first_line(error)}"
        return ""


def show_tasks() -> tuple[list[dict[str, Any]], str]:
    """Return (records, table as text) of the Inspect tasks that installed packages register."""
    ensure_entry_points()
    tasks = registry_find(lambda info: info.type == "task")
    names = sorted({registry_info(task).name for task in tasks})
    foreign = [name for name in names if "/" in name and name.partition("/")[0] not in OURS]
    packages = [name.partition("/")[0] for name in foreign]
    rows = [(name, f"{pkg} {_version(pkg)}") for name, pkg in zip(foreign, packages, strict=True)]
    heads = ("task", "from")
    none = "No installed package provides Inspect tasks: pip install '.[evals]'."
    return records(heads, rows), columns(heads, rows) if rows else none


OURS = (PODIUM, "suites")
"""Prefixes of the names of podium's own tasks, now and before podium 0.2."""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def played(
    suite: TaskSuite,
    model: Model,
    journal: TaskJournal | None,
    *,
    name: str,
    epochs: int,
    only: Sequence[str] | None,
    metadata: Mapping[str, Any],
) -> Task:
    """Return the suite's task with a system as model, and its first scorer also named `podium`."""
    task = suite.made()
    by_id = _samples_of(task)
    samples = [by_id[id] for id in only or [question.id for question in suite.load()]]
    main, *extra = cast(list[Scorer], task.scorer)
    if journal:
        refuse_calls_past_ledger(name)
    facts = {**suite_facts(suite, "eval"), **metadata}
    if epochs != suite.epochs:  # otherwise the task keeps its own reducer
        task = _task_with(task, epochs=epochs)
    return _task_with(
        task,
        dataset=MemoryDataset(samples, name=task.dataset.name),
        model=model,
        scorer=[*graded_once(main, journal), *extra],
        name=name,
        metadata={**(task.metadata or {}), PODIUM: facts},
    )


def graded_once(task_scorer: Scorer, journal: TaskJournal | None) -> tuple[Scorer, Scorer]:
    """Return two scorers with the same scores, computed once: `podium`'s, and the task's own."""
    scores: dict[str, Score | None] = {}

    @scorer(metrics=[mean(), stderr()], name=PODIUM)
    def graded() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            scores[state.uuid] = task_score = await task_scorer(state, target)
            result = _as_number(task_score)
            if journal:
                journal.note("grade", graded_note(state, target, result))
            return result

        return score

    async def given(state: TaskState, target: Target) -> Score | None:
        return scores.pop(state.uuid, None)

    set_registry_info(given, registry_info(task_scorer))
    set_registry_params(given, registry_params(task_scorer))
    return graded(), cast(Scorer, given)


def _as_number(score: Score | None) -> Score:
    try:
        grade = _as_grade(score)
    except TypeError as error:
        return unscored(error)
    return as_score(grade).model_copy(update={"metadata": {**grade.metadata, "parsed": True}})


def _as_grade(score: Score | None) -> Grade:
    value = score.value if score else None
    if score is None or isinstance(value, dict | list):
        kind = "nothing" if score is None else f"a {type(value).__name__}"
        raise TypeError(f"{FIRST_SCORER}{kind}, not one value")
    if isinstance(value, str) and value not in VALUES and not _is_number(value):
        raise TypeError(f"{FIRST_SCORER}the text {value[:40]!r}")
    number = value_to_float()(cast(Any, value))
    if not 0 <= number <= 1:
        raise TypeError(
            f"{FIRST_SCORER}a value of {number:g}, and podium compares values from 0 to 1"
        )
    return Grade(number, score.answer, score.explanation or "", score.metadata or {})


VALUES = frozenset("CIPNcipn") | {"yes", "no", "true", "false", "correct", "incorrect"}
"""Texts that Inspect converts to numbers if they are a scorer's value."""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _unfit(task: Task) -> str:
    """Return why systems cannot answer an Inspect task; empty if they can."""
    if not task.scorer:
        return "has no scorer: add one, because podium compares scores"
    if not len(task.dataset):
        return "has no samples: see its arguments (-T)"
    ids = Counter(_id(number, sample) for number, sample in enumerate(task.dataset, start=1))
    twice = next((id for id, count in ids.items() if count > 1), None)
    return f"has two samples with the id {twice!r}: give each its own" if twice else ""


def _by_id(question: Question) -> tuple[int, str]:
    return (int(question.id) if question.id.isdecimal() else -1), question.id


def _samples_of(task: Task) -> Mapping[str, Sample]:
    return {_id(number, sample): sample for number, sample in enumerate(task.dataset, start=1)}


def _id(number: int, sample: Sample) -> str:
    return str(sample.id if sample.id is not None else number)


def _question(id: str, sample: Sample) -> Question:
    turns = sample.input
    text = turns if isinstance(turns, str) else "\n\n".join(turn.text for turn in turns)
    target = sample.target if isinstance(sample.target, str) else json.dumps(sample.target)
    return Question(id, text, "text", target)
