"""A small network that plans from profiles: workers' scores and prices by kind of question.

The network reads a table of profiles (kinds of question by workers) and writes a plan step by step:
first a task, then the worker for it, by a pointer network (Vinyals et al. 2015, arXiv 1506.03134).
No weight depends on a worker's name or index, so the network plans for 2 to 12 workers in any
order. The same code runs in NumPy for planning and in torch for training: `xp` is either module.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from podium.harness.profiles import ProfileTable
from podium.harness.question_kinds import FORMS
from podium.harness.workflow import MAX_STEPS, Step, Workflow

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


class Task(NamedTuple):
    """A task that a step of a plan can have; the wording of its subtask fits any suite."""

    name: str
    subtask: str
    reads: bool  # True: all earlier replies; False: none
    answers: bool  # whether its reply may be the answer


TASKS = (
    Task("solve", "", reads=False, answers=True),
    Task(
        "gather",
        "Write down the facts and intermediate results that answering the question needs.",
        reads=False,
        answers=False,
    ),
    Task(
        "plan",
        "Take the question apart: name the steps that lead to its answer.",
        reads=False,
        answers=False,
    ),
    Task("use", "Use the work above to answer the question.", reads=True, answers=True),
    Task(
        "check",
        "Find any error in the answer above, correct it, and give the right answer.",
        reads=True,
        answers=True,
    ),
    Task(
        "finish",
        "State the final answer of the work above, in the form the question asks for.",
        reads=True,
        answers=True,
    ),
)
END = len(TASKS)  # index of the choice to end the plan
CHOICES = len(TASKS) + 1
CELL = 14  # features of one worker on one kind of question
ASKED = len(FORMS) + 1  # features of a question: its answer form (one-hot) and length
HIDDEN, WIDE = 48, 64
MOST_WORKERS = 12
ENDS = 4.5  # initial bias of the choice to end, in logits: early training runs short, cheap plans


def cells_of(table: ProfileTable, kind: int) -> Floats:
    """Return the features of a profile, (kinds, workers, CELL), for a question of kind `kind`."""
    forms, mean = table.kinds.forms, table.mean
    kinds, workers = mean.shape
    cells = np.zeros((kinds, workers, CELL), np.float32)
    cells[kind, :, 0] = 1
    cells[np.arange(kinds), :, 1 + forms] = 1
    cells[..., 4] = np.log1p(table.asked) / 6
    cells[..., 5] = mean
    cells[..., 6] = 2 * table.spread
    cells[..., 7] = mean - mean.max(axis=1, keepdims=True)
    cells[..., 8], cells[..., 9] = _relative(table.usd)
    cells[..., 10], _ = _relative(table.tokens_out)
    cells[..., 11] = (table.no_answer + 0.5) / (table.asked + 2)
    cells[..., 12] = mean.mean(axis=1, keepdims=True)
    cells[..., 13] = _length(table.kinds.lengths)[:, None]
    return cells


def _relative(values: Any) -> tuple[Any, Any]:
    """Return scaled logarithms less their row's mean (0 if unknown), and a mask of known values."""
    valid = np.isfinite(values) & (values > 0)
    logs = np.log(np.where(valid, values, 1.0))
    counts = np.maximum(valid.sum(axis=1, keepdims=True), 1)
    middle = (logs * valid).sum(axis=1, keepdims=True) / counts
    return (np.where(valid, logs - middle, 0.0) / 3).astype(np.float32), valid


def _length(characters: Any) -> Any:
    return np.clip(np.log(np.maximum(characters, 1.0)) / 10, 0, 1)


def question_numbers(form: int, characters: int) -> Floats:
    """Return the network's features of a question (ASKED,): answer form (one-hot) and length."""
    numbers = np.zeros(ASKED, np.float32)
    numbers[form] = 1
    numbers[-1] = _length(float(characters))
    return numbers


Weights = Mapping[str, Any]
SHAPES: Mapping[str, tuple[int, ...]] = {
    "cell1": (CELL, HIDDEN),
    "cell1_bias": (HIDDEN,),
    "cell2": (HIDDEN, HIDDEN),
    "cell2_bias": (HIDDEN,),
    "worker": (2 * HIDDEN, WIDE),
    "worker_bias": (WIDE,),
    "among": (2 * WIDE, WIDE),
    "among_bias": (WIDE,),
    "context": (WIDE + ASKED, WIDE),
    "context_bias": (WIDE,),
    "done": (WIDE + CHOICES, WIDE),
    "done_bias": (WIDE,),
    "state": (2 * WIDE + WIDE + MAX_STEPS, WIDE),
    "state_bias": (WIDE,),
    "choice": (WIDE, CHOICES),
    "choice_bias": (CHOICES,),
    "ask": (WIDE + CHOICES, WIDE),
    "ask_bias": (WIDE,),
    "direct": (HIDDEN, CHOICES),
    "again": (CHOICES,),
}
WEIGHTS = sum(map(prod, SHAPES.values()))


def first_weights(seed: int) -> dict[str, Floats]:
    """Return random initial weights (He et al. 2015); all tasks are about equally likely."""
    rng = np.random.default_rng(seed)
    weights: dict[str, Floats] = {}
    for name, shape in SHAPES.items():
        scale = 0.0 if len(shape) == 1 else np.sqrt(2 / shape[0])
        scale *= 0.1 if name in ("choice", "ask", "direct") else 1.0
        weights[name] = (rng.standard_normal(shape) * scale).astype(np.float32)
    weights["choice_bias"][END] = ENDS
    return weights


class Shown(NamedTuple):
    """An input batch of the network: questions with workers' profiles, padded to equal size."""

    cells: Any  # (questions, kinds, workers, CELL)
    own: Any  # (questions, kinds): 1 at the question's own kind
    kinds: Any  # (questions, kinds): 0 for padding, else 1
    workers: Any  # (questions, workers): 0 for padding, else 1
    asked: Any  # (questions, ASKED): features of the questions


class Read(NamedTuple):
    """The network's encoding of a batch of questions."""

    workers: Any  # (questions, workers, WIDE): from all kinds of question
    alone: Any  # (questions, workers, HIDDEN): from the question's own kind only
    context: Any  # (questions, WIDE): from all workers and the question's features
    there: Any  # (questions, workers): 0 for padding, else 1

    def at(self, rows: Any) -> "Read":
        """Return the encoding of the questions with these indices."""
        return Read(*(array[rows] for array in self))


def show(pairs: Sequence[tuple[ProfileTable, int, Floats]]) -> Shown:
    """Return the network's input for triples (profile, question's kind, question's features)."""
    kinds = max(len(table.kinds) for table, _, _ in pairs)
    workers = max(table.asked.shape[1] for table, _, _ in pairs)
    size = len(pairs)
    batch = Shown(
        np.zeros((size, kinds, workers, CELL), np.float32),
        np.zeros((size, kinds), np.float32),
        np.zeros((size, kinds), np.float32),
        np.zeros((size, workers), np.float32),
        np.stack([numbers for _, _, numbers in pairs]),
    )
    for row, (table, kind, _) in enumerate(pairs):
        rows, columns = table.asked.shape
        batch.cells[row, :rows, :columns] = cells_of(table, kind)
        batch.own[row, kind] = batch.kinds[row, :rows] = batch.workers[row, :columns] = 1
    return batch


def _layer(weights: Weights, name: str, rows: Any) -> Any:
    return (rows @ weights[name] + weights[f"{name}_bias"]).clip(min=0)


def read(weights: Weights, batch: Shown, xp: Any) -> Read:
    """Return the network's encoding of a batch, before any step of a plan."""
    cells = _layer(weights, "cell2", _layer(weights, "cell1", batch.cells))
    alone = (cells * batch.own[:, :, None, None]).sum(1)
    share = batch.kinds / batch.kinds.sum(1)[:, None]
    every = (cells * share[:, :, None, None]).sum(1)
    workers = _layer(weights, "worker", xp.concatenate([alone, every], -1))
    there = batch.workers[:, :, None]
    middle = (workers * there).sum(1) / batch.workers.sum(1)[:, None]
    beside = xp.concatenate([workers, workers * 0 + middle[:, None, :]], -1)
    context = _layer(weights, "context", xp.concatenate([middle, batch.asked], -1))
    return Read(_layer(weights, "among", beside), alone, context, batch.workers)


class Written(NamedTuple):
    """The network's encoding of the steps that each plan of a batch has so far."""

    sums: Any  # (plans, WIDE): sum over all steps
    last: Any  # (plans, WIDE): the last step
    used: Any  # (plans, workers): number of steps of each worker


def begin(reading: Read) -> Written:
    """Return the network's encoding of plans that have no steps yet."""
    return Written(reading.context * 0, reading.context * 0, reading.there * 0)


def after(
    weights: Weights, reading: Read, written: Written, task_hot: Any, worker_hot: Any, xp: Any
) -> Written:
    """Add a step to the encoding of each plan: a one-hot task (CHOICES), and a one-hot worker."""
    worker = (reading.workers * worker_hot[:, :, None]).sum(1)
    step = _layer(weights, "done", xp.concatenate([worker, task_hot], -1))
    return Written(written.sums + step, step, written.used + worker_hot)


def state_of(weights: Weights, reading: Read, written: Written, step: int, xp: Any) -> Any:
    """Return (plans, WIDE): the network's state of each plan before step number `step`."""
    place = np.zeros(MAX_STEPS, np.float32)
    place[step] = 1
    number = written.sums[:, :MAX_STEPS] * 0 + xp.asarray(place)
    return _layer(weights, "state", xp.concatenate([reading.context, *written[:2], number], -1))


def task_scores(weights: Weights, state: Any) -> Any:
    """Return logits (plans, CHOICES) for the task of the next step."""
    return state @ weights["choice"] + weights["choice_bias"]


def worker_scores(
    weights: Weights, reading: Read, written: Written, state: Any, task_hot: Any, xp: Any
) -> Any:
    """Return logits (plans, workers) for the next task's worker; absent workers get about -1e9."""
    query = xp.concatenate([state, task_hot], -1) @ weights["ask"] + weights["ask_bias"]
    scores = (reading.workers * query[:, None, :]).sum(-1) / WIDE**0.5
    scores = scores + ((reading.alone @ weights["direct"]) * task_hot[:, None, :]).sum(-1)
    scores = scores + written.used * (task_hot * weights["again"]).sum(-1)[:, None]
    return scores + (reading.there - 1) * 1e9


def allowed_tasks(step: int, previous: Ints) -> Floats:
    """Return a mask to add to logits (plans, CHOICES): 0 for tasks that may come next, else -1e9.

    `previous` has each plan's last task, or `END`. A first task does not read other steps; a plan
    may end only after a task that answers, and a task at step `MAX_STEPS` must answer.
    """
    open_ = np.zeros((len(previous), CHOICES), np.float32)
    for index, task in enumerate(TASKS):
        if (step == 0 and task.reads) or (step == MAX_STEPS - 1 and not task.answers):
            open_[:, index] = -1e9
    answered = np.array([choice.answers for choice in TASKS] + [True])
    open_[:, END] = -1e9 if step == 0 else np.where(answered[previous], 0, -1e9)
    over = previous == END if step else np.zeros(len(previous), bool)
    open_[over] = -1e9
    open_[over, END] = 0
    return open_


class Plans(NamedTuple):
    """A batch of plans as two arrays: indices of tasks, and indices of workers."""

    tasks: Ints  # (plans, MAX_STEPS): index in TASKS, END after the last step
    workers: Ints  # (plans, MAX_STEPS): index of the worker, 0 after the last step

    def steps(self, index: int) -> list[tuple[Task, int]]:
        """Return the steps of plan `index`: each task and its worker's index."""
        pairs = zip(self.tasks[index].tolist(), self.workers[index].tolist(), strict=True)
        return [(TASKS[task], worker) for task, worker in pairs if task != END]


def write(weights: Weights, reading: Read, rng: Generator | None = None) -> Plans:
    """Return a plan for each encoded question: sampled if `rng` is given, else greedy.

    This function runs in NumPy only, not in torch.
    """
    size, workers = reading.there.shape
    written, previous = begin(reading), np.zeros(size, np.int64)
    plans = Plans(np.full((size, MAX_STEPS), END), np.zeros((size, MAX_STEPS), np.int64))
    for step in range(MAX_STEPS):
        state = state_of(weights, reading, written, step, np)
        tasks = _chosen(task_scores(weights, state) + allowed_tasks(step, previous), rng)
        task_hot = np.eye(CHOICES, dtype=np.float32)[tasks]
        whom = _chosen(worker_scores(weights, reading, written, state, task_hot, np), rng)
        worker_hot = np.eye(workers, dtype=np.float32)[whom]
        plans.tasks[:, step], plans.workers[:, step] = tasks, np.where(tasks == END, 0, whom)
        if (tasks == END).all():
            break
        written, previous = after(weights, reading, written, task_hot, worker_hot, np), tasks
    return plans


def _chosen(logits: Floats, rng: Generator | None) -> Ints:
    noise = 0.0 if rng is None else rng.gumbel(size=logits.shape)  # Gumbel-max sampling
    return np.argmax(logits + noise, axis=1)


def as_workflow(steps: Sequence[tuple[Task, int]], workers: Sequence[str]) -> Workflow:
    """Return a plan's steps, each given as a task and its worker's index, as a workflow."""
    plan = [
        Step(workers[worker], task.subtask, "all" if index and task.reads else ())
        for index, (task, worker) in enumerate(steps)
    ]
    return Workflow(tuple(plan))
