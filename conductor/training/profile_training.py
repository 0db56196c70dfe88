"""GRPO (arXiv 2402.03300) for a conductor that plans by profiles; each question has a random pool.

Profiles (a worker's results by kind of question) are sampled as a run would measure them: from some
calls on train questions, with kinds from k-means. No pool for evaluation is used in training.
"""
# pyright: basic, reportMissingImports=false
# torch's libraries have no types here: they are not installed in this environment.

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator, default_rng

from podium.conductor import profile_policy as policy
from podium.conductor.parse import PlanFormat
from podium.conductor.profile_policy import Plans
from podium.conductor.prompt import render_plan
from podium.conductor.training.job import RewardRecorder, TrainingJob
from podium.harness.profiles import ProfileTable, count_by_kind
from podium.harness.question_kinds import TrainKinds, find_kinds, form_of
from podium.harness.records import Question
from podium.harness.rewards.outcome import RewardItem, RewardOutcome
from podium.harness.rewards.trainers import run_in_loop

T = TypeVar("T")
HELD_OUT = 8  # one in this many drawn pools is held out for validation
KINDINGS = 24  # number of clusterings of the train questions, by suites and seeds
FEWEST, MOST = 6, 220  # range of questions per suite behind a profile
SIZES = (0.25, 0.45, 0.3)  # shares of plans of one, two and three steps in the first search
BETTER = 0.05  # minimum reward above the best single worker's for a plan to be imitated
BOTH = 0.15  # share of questions shown two drawn pools merged; as many are shown part of one
PARTS = ("right", "no_answer", "usd", "tokens_out")


@dataclass(frozen=True, slots=True)
class Trial:
    """The results of each worker alone on train questions; profiles are sampled from these."""

    questions: tuple[tuple[str, Question], ...]  # (suite, question)
    right: Mapping[str, np.ndarray]  # worker -> (questions,), NaN without a verdict
    no_answer: Mapping[str, np.ndarray]
    usd: Mapping[str, np.ndarray]
    tokens_out: Mapping[str, np.ndarray]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the results as named arrays, to be saved in a file."""
        every = ((name, getattr(self, name)) for name in PARTS)
        return {f"{name}/{worker}": values for name, of in every for worker, values in of.items()}

    @classmethod
    def read(cls, job: TrainingJob, each: int, arrays: Mapping[str, np.ndarray]) -> "Trial":
        """Return the trial that was saved as these arrays, with `each` questions per suite."""
        numbers = {
            name: {worker: arrays[f"{name}/{worker}"] for worker in job.spec.names}
            for name in PARTS
        }
        return cls(first_questions(job, each), **numbers)


def first_questions(job: TrainingJob, each: int) -> tuple[tuple[str, Question], ...]:
    """Return (suite, question) for the first `each` questions of each train split."""
    return tuple(
        (name, question)
        for name, split in job.splits.items()
        for question in [*split.questions.values()][:each]
    )


def try_workers(job: TrainingJob, rewards: RewardRecorder, each: int) -> Trial:
    """Return the results of each worker alone on the first `each` questions of each train split."""
    questions = first_questions(job, each)
    alone = render_plan(job.config.form, [0], [""], [[]])
    arrays: dict[str, dict[str, np.ndarray]] = {}
    for worker in job.spec.names:
        items = [RewardItem(name, q.id, alone, workers=(worker,)) for name, q in questions]
        outcomes = run_in_loop(rewards.score(items))
        rewards.take()
        for name, values in _measured(outcomes).items():
            arrays.setdefault(name, {})[worker] = values
    return Trial(questions, **arrays)


def _measured(outcomes: Sequence[RewardOutcome]) -> dict[str, np.ndarray]:
    def numbers(of: Callable[[RewardOutcome], Any]) -> np.ndarray:
        values = (of(outcome) for outcome in outcomes)
        return np.array([np.nan if value is None else float(value) for value in values])

    parsed = numbers(lambda outcome: outcome.components.get("parsed"))
    return {
        "right": numbers(lambda outcome: outcome.components.get("correct")),
        "no_answer": 1 - parsed,
        "usd": numbers(lambda outcome: outcome.usd),
        "tokens_out": numbers(lambda outcome: outcome.usage and outcome.usage.output),
    }


@dataclass(frozen=True, slots=True)
class Kinding:
    """One clustering of questions into kinds, made from train questions of some suites."""

    kinds: TrainKinds
    suites: frozenset[str]
    labels: np.ndarray  # (questions of the trial,), -1 for those of other suites
    known: dict[str, int] = field(default_factory=dict[str, int])  # question id -> its kind

    def kind_of(self, question: Question) -> int:
        """Return the kind of a question in this clustering, from a cache."""
        if question.id not in self.known:
            self.known[question.id] = int(self.kinds.of([question])[0])
        return self.known[question.id]


@dataclass(slots=True)
class Sampler:
    """Draws pools of workers, and their profiles from recorded results on questions (`trial`)."""

    trial: Trial
    kindings: Sequence[Kinding]
    groups: Sequence[tuple[str, ...]]
    by_suite: dict[str, np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        names = np.array([name for name, _ in self.trial.questions])
        self.by_suite = {name: np.flatnonzero(names == name) for name in {*names.tolist()}}

    def best_alone(self, suite: str, workers: Sequence[str]) -> int:
        """Return the index of the best worker on a suite, by mean grade; if equal, the cheapest."""
        rows = self.by_suite[suite]
        means = [
            (np.nanmean(self.trial.right[worker][rows]), -np.nanmean(self.trial.usd[worker][rows]))
            for worker in workers
        ]
        return max(range(len(means)), key=means.__getitem__)

    def workers(self, rng: Generator) -> tuple[str, ...]:
        """Return a pool's workers in random order: a random pool, a part of one, or two merged."""
        pool = [*_drawn(self.groups, rng)]
        draw = rng.random()
        if draw < BOTH:
            pool += _drawn(self.groups, rng)
        elif draw < 2 * BOTH:
            pool = [*rng.permutation(pool)[: rng.integers(2, 4)]]
        different = [*dict.fromkeys(pool)][: policy.MOST_WORKERS]
        return tuple(str(worker) for worker in rng.permutation(different))

    def shown_again(self, row: "Row", rng: Generator) -> "Row":
        """Return a row with the same question and workers, and newly sampled worker results."""
        kinding = _drawn(self.kindings, rng)
        table = self.profile(row.workers, kinding, _questions_each(rng), rng)
        kind = kinding.kind_of(row.asked)
        return replace(row, table=table, own=kind)

    def profile(
        self, workers: Sequence[str], kinding: Kinding, each: int, rng: Generator
    ) -> ProfileTable:
        """Sample a profile of some workers: their results on `each` questions of each suite."""
        rows = np.concatenate(
            [
                rng.choice(self.by_suite[name], each, replace=each > len(self.by_suite[name]))
                for name in sorted(kinding.suites)
            ]
        )
        columns = {name: _columns(getattr(self.trial, name), workers, rows) for name in PARTS}
        right, missing = columns.pop("right"), columns.pop("no_answer")
        unknown = {"seconds": np.full(right.shape, np.nan)}  # no durations: workers do not sleep
        return count_by_kind(kinding.kinds, kinding.labels[rows], right, missing, columns | unknown)


def _columns(of: Mapping[str, np.ndarray], workers: Sequence[str], rows: np.ndarray) -> np.ndarray:
    return np.stack([of[worker][rows] for worker in workers], axis=1)


def make_kindings(trial: Trial, seed: int, count: int = KINDINGS) -> list[Kinding]:
    """Return clusterings of the trial's questions: half over all suites, half over some of them."""
    rng = default_rng([seed, 7])
    names = np.array([name for name, _ in trial.questions])
    different = sorted({*names.tolist()})
    ways: list[Kinding] = []
    for number in range(count):
        size = len(different) if number % 2 == 0 else rng.integers(1, len(different) + 1)
        suites = frozenset(rng.permutation(different)[:size].tolist())
        rows = np.flatnonzero(np.isin(names, sorted(suites)))
        rows = rng.permutation(rows)[: max(24, rng.integers(len(rows) // 4, len(rows) + 1))]
        pairs = [trial.questions[int(index)] for index in rows]
        start = int(rng.integers(1 << 30))
        kinds = find_kinds([q for _, q in pairs], [name for name, _ in pairs], start)
        labels = kinds.of([q for _, q in trial.questions])
        ways.append(Kinding(kinds, suites, np.where(np.isin(names, sorted(suites)), labels, -1)))
    return ways


@dataclass(frozen=True, slots=True)
class Row:
    """One training question, with the workers and their profile in the policy's input."""

    suite: str
    question: str
    workers: tuple[str, ...]
    table: ProfileTable
    own: int  # the question's kind in that profile
    asked: Question
    numbers: Any  # the network's features of the question
    usual_usd: float  # mean dollars of a call in this pool


def _questions_each(rng: Generator) -> int:
    return int(np.exp(rng.uniform(np.log(FEWEST), np.log(MOST))))


def _drawn(among: Sequence[T], rng: Generator) -> T:
    return among[int(rng.integers(len(among)))]


def draw_row(
    sampler: Sampler,
    suite_question: tuple[str, Question],
    rng: Generator,
    pool: Sequence[str] | None = None,
) -> Row:
    """Return a row: a question, a random pool (or `pool`, shuffled), and a random profile."""
    suite, question = suite_question
    workers = sampler.workers(rng) if pool is None else tuple(map(str, rng.permutation(pool)))
    kinding = _drawn(sampler.kindings, rng)
    table = sampler.profile(workers, kinding, _questions_each(rng), rng)
    kind = kinding.kind_of(question)
    numbers = policy.question_numbers(form_of(question.kind), len(question.text))
    scale = float(np.nanmean(table.usd))
    return Row(suite, question.id, workers, table, kind, question, numbers, scale)


def show_rows(rows: Sequence[Row]) -> policy.Shown:
    """Return the network's input batch for some rows (questions with profiles)."""
    return policy.show([(row.table, row.own, row.numbers) for row in rows])


def read_shown(weights: Any, inputs: policy.Shown, torch: Any) -> policy.Read:
    """Return the network's encoding of its inputs, computed in torch for gradients."""
    return policy.read(weights, policy.Shown(*map(torch.from_numpy, inputs)), torch)


def completion(form: PlanFormat, steps: Sequence[tuple[policy.Task, int]]) -> str:
    """Return a plan as text in the format that the reward parses."""
    access = [["all"] if i and task.reads else [] for i, (task, _) in enumerate(steps)]
    return render_plan(form, [n for _, n in steps], [task.subtask for task, _ in steps], access)


def routing_loss(weights: Any, rows: Sequence[Row], worth: np.ndarray, torch: Any) -> Any:
    """Return the negated expected value of the policy's choice of one worker per row.

    `worth` (rows, workers) is each worker's value less its row's mean, 0 for absent workers.
    """
    hidden = read_shown(weights, show_rows(rows), torch)
    history = policy.begin(hidden)
    task = torch.zeros(len(rows), policy.CHOICES)
    task[:, 0] = 1
    state = policy.state_of(weights, hidden, history, 0, torch)
    scores = policy.worker_scores(weights, hidden, history, state, task, torch)
    return -(torch.softmax(scores, -1) * torch.from_numpy(worth).float()).sum(-1).mean()


def random_plans(count: int, workers: int, rng: Generator) -> Plans:
    """Return random plans of one to three steps; workers and allowed tasks are drawn uniformly."""
    plans = Plans(
        np.full((count, policy.MAX_STEPS), policy.END),
        np.zeros((count, policy.MAX_STEPS), np.int64),
    )
    for index, size in enumerate(rng.choice([1, 2, 3], count, p=SIZES).tolist()):
        for step in range(size):
            is_last = step == size - 1
            fits = [
                number
                for number, task in enumerate(policy.TASKS)
                if not (step == 0 and task.reads) and (task.answers or not is_last)
            ]
            plans.tasks[index, step] = rng.choice(fits)
            plans.workers[index, step] = rng.integers(workers)
    return plans


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question with random plans, and with each plan's weight when the policy imitates them."""

    row: Row
    plans: Plans
    shares: np.ndarray  # (plans,), 1 in sum


def lesson_of(row: Row, plans: Plans, values: np.ndarray, alone: tuple[int, float]) -> Lesson:
    """Return a lesson: imitate plans that beat the best single worker, or else that worker's plan.

    `alone`: the index of the worker with the best mean, and its reward on this question.
    """
    single = Plans(*(np.full((1, policy.MAX_STEPS), fill) for fill in (policy.END, 0)))
    single.tasks[0, 0], single.workers[0, 0] = 0, alone[0]
    gains = np.append(np.nan_to_num(values - alone[1]).clip(min=0), 0.0)
    gains[gains < BETTER] = 0
    shares = gains / gains.sum() if gains.any() else np.eye(len(gains))[-1]
    both = zip(plans, single, strict=True)
    return Lesson(row, Plans(*(np.concatenate(pair) for pair in both)), shares)


def log_chances(weights: Any, hidden: Any, plans: Plans, torch: Any) -> tuple[Any, Any]:
    """Return each plan's log probability, and the mean entropy of its choices, both (plans,).

    The entropy is a mean, because a bonus on its sum would reward longer plans.
    """
    history = policy.begin(hidden)
    size, workers = plans.tasks.shape[0], hidden.there.shape[1]
    last_tasks = np.zeros(size, np.int64)
    total, entropy, choices = torch.zeros(size), torch.zeros(size), torch.zeros(size)
    for step in range(policy.MAX_STEPS):
        tasks = plans.tasks[:, step]
        live = torch.from_numpy((last_tasks != policy.END) if step else np.ones(size, bool)).float()
        ends = torch.from_numpy(tasks != policy.END).float() * live
        task = torch.eye(policy.CHOICES)[torch.from_numpy(tasks)]
        worker = torch.eye(workers)[torch.from_numpy(plans.workers[:, step])]
        state = policy.state_of(weights, hidden, history, step, torch)
        open_ = torch.from_numpy(policy.allowed_tasks(step, last_tasks))
        task_logs = torch.log_softmax(policy.task_scores(weights, state) + open_, -1)
        whom_logs = torch.log_softmax(
            policy.worker_scores(weights, hidden, history, state, task, torch), -1
        )
        total = total + live * (task_logs * task).sum(-1) + ends * (whom_logs * worker).sum(-1)
        entropy = entropy - live * (task_logs.exp() * task_logs.clip(min=-50)).sum(-1)
        entropy = entropy - ends * (whom_logs.exp() * whom_logs.clip(min=-50)).sum(-1)
        choices = choices + live + ends
        if not ends.any():
            break
        history = policy.after(weights, hidden, history, task, worker, torch)
        last_tasks = tasks
    return total, entropy / choices


def advantages_of(values: np.ndarray, row_index: np.ndarray) -> np.ndarray:
    """Return each plan's value less its question's mean, divided by the whole batch's deviation.

    If it were divided by its own question's deviation, small differences in cost would weigh as
    much as right or wrong. NaN (no value) becomes 0.
    """
    centred = np.full(len(values), np.nan)
    for row in np.unique(row_index):
        rows = row_index == row
        if not np.isnan(values[rows]).all():
            centred[rows] = values[rows] - np.nanmean(values[rows])
    spread = np.sqrt(np.nanmean(centred**2)) if not np.isnan(centred).all() else 0.0
    return np.nan_to_num(centred / spread if spread > 1e-6 else centred * 0)
