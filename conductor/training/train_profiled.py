"""Trains the network (policy) of `conductor-profiled` on plans that are run on practice workers."""
# pyright: basic, reportMissingImports=false
# torch's libraries have no types here: they are not installed in this environment.

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import numpy as np
from numpy.random import default_rng
from tqdm import tqdm

from podium.conductor import profile_policy as policy
from podium.conductor.checkpoint import POLICY, taught_digests
from podium.conductor.grpo_reward import CostAware
from podium.conductor.profiled import TRAINING
from podium.conductor.training import run_folder
from podium.conductor.training.config import ProfiledPart
from podium.conductor.training.grpo_options import CHECKPOINTS, batch_sizes
from podium.conductor.training.job import (
    TrainingJob,
    TrainingRewards,
    check_job,
    make_rewards,
    open_box,
    refuse_gullible_graders,
)
from podium.conductor.training.model_card import policy_card
from podium.conductor.training.profile_training import (
    HELD_OUT,
    Lesson,
    Row,
    Sampler,
    Trial,
    advantages_of,
    completion,
    draw_row,
    lesson_of,
    log_chances,
    make_kindings,
    random_plans,
    read_shown,
    routing_loss,
    show_rows,
    try_workers,
)
from podium.conductor.training.train import Say, quiet, stopping
from podium.conductor.training.training_rows import TrainingRow
from podium.harness.errors import SpendLimit
from podium.harness.files import replace_file
from podium.harness.learning import Artifact, ArtifactSource, write_artifact
from podium.harness.rewards.outcome import Effort, RewardItem, RewardOutcome, Status
from podium.harness.rewards.trainers import run_in_loop

WARM_UP = 10  # steps in which the learning rate rises
LEAST_RATE = 0.05  # final share of the learning rate, reached by half a cosine
SEARCHED_AT_ONCE = 50  # questions per batch of the first search
ROUTING, WARM_ENTROPY = 40.0, 0.01  # weights of the warm start's losses besides imitation
TRIED = "trial.npz"  # each worker's own results, measured once for all sessions of a training
STATE = "state.npz"


def train_profiled(job: TrainingJob, say: Say) -> str:
    """Run a policy's training; return how it ended, in words. UserError if it must not begin."""
    check_job(job)
    with quiet(), open_box(job) as box:
        anyio.run(refuse_gullible_graders, job, box and box.box)
        out = run_folder.prepare_folder(job)
        return _Training(job, make_rewards(job, box and box.box, out), say).run()


@dataclass(slots=True)
class _Learner:
    """A policy's weights and Adam's moments (arXiv 1412.6980); a resumed training reads both."""

    weights: dict[str, Any]  # name -> torch tensor
    optimiser: Any

    @classmethod
    def begun(cls, arrays: Mapping[str, Any], rate: float) -> "_Learner":
        import torch

        weights = {name: torch.tensor(arrays[name], requires_grad=True) for name in policy.SHAPES}
        optimiser = torch.optim.Adam(weights.values(), lr=rate)
        if "updates" in arrays:
            for name, values in weights.items():
                optimiser.state[values] = {
                    "step": torch.tensor(float(arrays["updates"])),
                    "exp_avg": torch.tensor(arrays[f"mean/{name}"]),
                    "exp_avg_sq": torch.tensor(arrays[f"square/{name}"]),
                }
        return cls(weights, optimiser)

    def arrays(self) -> dict[str, Any]:
        return {name: values.detach().numpy().copy() for name, values in self.weights.items()}

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = self.arrays()
        for name, values in self.weights.items():
            moments = self.optimiser.state[values]
            state["updates"] = np.array(float(moments["step"]))  # with the warm start's
            state[f"mean/{name}"] = moments["exp_avg"].numpy()
            state[f"square/{name}"] = moments["exp_avg_sq"].numpy()
        return state

    def learn(self, loss: Any, rate: float) -> float:
        import torch

        self.optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.weights.values(), 1.0)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        return float(norm)


@dataclass(slots=True)
class _Training:
    job: TrainingJob
    rewards: TrainingRewards
    say: Say
    state: run_folder.TrainingState = field(default_factory=run_folder.TrainingState)
    searched_usd: float = 0.0

    def run(self) -> str:
        import torch

        config, out = self.job.config, self.job.out
        torch.set_num_threads(config.run.threads)
        newest = self._newest() if self.job.resume else None
        trial = self._trial()
        teaches, held_out = self._samplers(trial)
        rows = self._validation_rows(held_out)
        learner = _Learner.begun(
            newest or policy.first_weights(config.run.seed), config.grpo["learning_rate"]
        )
        if newest is None:
            self._warm_start(learner, trial, teaches)
        step = int(newest["step"]) if newest else 0
        lines = run_folder.rewind_lines(out / run_folder.METRICS, step if newest else -1)
        self.state = run_folder.replay_state(lines)
        if not lines:
            first_usd = self.searched_usd + sum(float(np.nansum(usd)) for usd in trial.usd.values())
            self._validated(learner, rows, {"step": 0, "usd": first_usd})
        with stopping(self.state, self.say):
            step = self._steps(learner, teaches, rows, step)
        self._write(learner, run_folder.LAST, step)
        best = "No validation has selected a policy"
        if self.state.best is not None:
            folder = out / run_folder.BEST
            best = f"Best at step {self.state.best_step}, in {folder} (reward less what dollars "
            best += f"weigh: {self.state.best:.3f})"
        again = "; continue with --resume" if self.state.ended.startswith("stopped") else ""
        return f"Step {step}: {self.state.ended or 'all steps are made'}. {best}{again}."

    def _trial(self) -> Trial:
        """Return the results of each worker alone: measured once, then read from a file."""
        options, path = self._given, self.job.out / TRIED
        if path.is_file():
            return Trial.read(self.job, options.questions, dict(np.load(path, allow_pickle=False)))
        count = len(self.job.spec.names) * options.questions * len(self.job.splits)
        self.say(f"Trying {len(self.job.spec.names)} workers: {count:,} calls.")
        trial = try_workers(self.job, self.rewards.training, options.questions)
        _write_arrays(path, trial.arrays())
        return trial

    def _samplers(self, trial: Trial) -> tuple[Sampler, Sampler]:
        kindings, groups = make_kindings(trial, self.job.config.run.seed), self.job.groups
        teaching = len(groups) - max(1, len(groups) // HELD_OUT)
        return (
            Sampler(trial, kindings, groups[:teaching]),
            Sampler(trial, kindings, groups[teaching:]),
        )

    def _warm_start(self, learner: _Learner, trial: Trial, teaches: Sampler) -> None:
        """Train on the trial's best single workers, and on the best plans of a random search."""
        import torch

        options, rng = self._given, default_rng([self.job.config.run.seed, 0, 2])
        lessons = self._search(trial, teaches, rng)
        for step in range(options.warm_steps):
            progress = step / options.warm_steps
            drawn = rng.integers(len(trial.questions), size=options.warm_batch)
            rows = [draw_row(teaches, trial.questions[index], rng) for index in drawn.tolist()]
            worth = np.zeros((len(rows), max(len(row.workers) for row in rows)))
            for number, (index, row) in enumerate(zip(drawn.tolist(), rows, strict=True)):
                values = [self._alone(trial, worker, index, row) for worker in row.workers]
                worth[number, : len(values)] = np.array(values) - np.mean(values)
            loss = ROUTING * routing_loss(learner.weights, rows, worth, torch)
            some = [lessons[index] for index in rng.integers(len(lessons), size=options.warm_batch)]
            again = [teaches.shown_again(lesson.row, rng) for lesson in some]
            plans = policy.Plans(
                np.concatenate([lesson.plans.tasks for lesson in some]),
                np.concatenate([lesson.plans.workers for lesson in some]),
            )
            lesson_index = np.repeat(np.arange(len(some)), [len(lesson.shares) for lesson in some])
            shares = torch.from_numpy(np.concatenate([lesson.shares for lesson in some])).float()
            logs, entropy = self._chances(learner, show_rows(again), lesson_index, plans)
            loss = loss - (shares * logs).sum() / len(some) - WARM_ENTROPY * entropy.mean()
            norm = learner.learn(loss, _rate(step + 1, progress) * options.warm_rate)
            if step % 20 == 0:
                line = {"step": step, "loss": round(loss.item(), 5), "grad_norm": round(norm, 4)}
                run_folder.append_line(self.job.out / run_folder.WARM, line)

    def _search(self, trial: Trial, teaches: Sampler, rng: Any) -> list[Lesson]:
        """Run random plans for questions of the trial; return each question's plans to imitate."""
        options, size, lessons = self._given, batch_sizes(self.job.config)["group"], list[Lesson]()
        self.say(f"Searching: {options.searched} questions, {size} plans each.")
        chance = self._chance([name for name, _ in trial.questions])
        for start in range(0, options.searched, SEARCHED_AT_ONCE):
            count = min(SEARCHED_AT_ONCE, options.searched - start)
            drawn = rng.choice(len(trial.questions), count, p=chance).tolist()
            rows = [draw_row(teaches, trial.questions[index], rng) for index in drawn]
            plans = [random_plans(size, len(row.workers), rng) for row in rows]
            row_index = np.repeat(np.arange(count), size)
            both = zip(*plans, strict=True)
            items = self._items(rows, row_index, policy.Plans(*map(np.concatenate, both)))
            outcomes = run_in_loop(self.rewards.training.score(items))
            self.rewards.training.take()
            self.searched_usd += float(sum(outcome.usd or 0 for outcome in outcomes))
            values = [self._value(o, rows[i]) for o, i in zip(outcomes, row_index, strict=True)]
            every = np.array(values).reshape(count, size)
            for question, row, row_plans, worth in zip(drawn, rows, plans, every, strict=True):
                best = teaches.best_alone(row.suite, row.workers)
                alone = best, self._alone(trial, row.workers[best], question, row)
                lessons.append(lesson_of(row, row_plans, worth, alone))
        return lessons

    def _chance(self, suites: Sequence[str]) -> Any:
        """Return each question's probability of being drawn; `suites` has each one's suite."""
        weights = np.array([self.job.config.suites.weights.get(name, 1.0) for name in suites])
        weights /= np.array([suites.count(name) for name in suites])
        return weights / weights.sum()

    def _chances(
        self, learner: _Learner, inputs: policy.Shown, row_index: Any, plans: policy.Plans
    ) -> tuple[Any, Any]:
        import torch

        hidden = read_shown(learner.weights, inputs, torch).at(torch.from_numpy(row_index))
        return log_chances(learner.weights, hidden, plans, torch)

    def _alone(self, trial: Trial, worker: str, index: int, row: Row) -> float:
        grade = float(np.nan_to_num(trial.right[worker][index]))
        usd = Decimal(float(np.nan_to_num(trial.usd[worker][index])))
        return self._worth(row).of(Status.SCORED, grade, Effort(usd, 1)) or 0.0

    def _worth(self, row: Row) -> CostAware:
        """Return a row's reward rule; its cost scale is a multiple of the pool's mean call cost."""
        return CostAware(self._given.cost_weight, self._given.cost_calls * row.usual_usd)

    @property
    def _given(self) -> ProfiledPart:
        options = self.job.config.model.profiled
        assert options is not None, "train() came here for it"
        return options

    def _validation_rows(self, held_out: Sampler) -> list[Row]:
        """Return the held-out questions, each with one of the pools that training never uses."""
        rng, pools = default_rng([self.job.config.run.seed, 0, 1]), held_out.groups
        return [
            draw_row(held_out, (name, question), rng, pools[number % len(pools)])
            for name, split in self.job.held_out.items()
            for number, question in enumerate(split.questions.values())
        ]

    def _steps(self, learner: _Learner, teaches: Sampler, rows: Sequence[Row], step: int) -> int:
        config, state = self.job.config, self.state
        last_step = int(config.grpo["max_steps"])
        with tqdm(total=last_step, initial=step, disable=None, dynamic_ncols=True) as bar:
            while step < last_step and not state.ended:
                try:
                    line = self._step(learner, teaches, step + 1)
                except SpendLimit as error:
                    state.ended = f"stopped, because the budget is spent ({error})"
                    break
                step += 1
                bar.update(1)
                if run_folder.validation_due(config, step):
                    self._validated(learner, rows, line)
                else:
                    run_folder.append_line(self.job.out / run_folder.METRICS, line)
                if state.asked_to_stop:
                    state.ended = "stopped on request"
                if state.ended or step % config.run.save_every == 0 or step == last_step:
                    self._save(learner, step)
        return step

    def _step(self, learner: _Learner, teaches: Sampler, step: int) -> dict[str, Any]:
        """Make one step: draw questions and plans, reward the plans, update the weights."""
        import torch

        config, began = self.job.config, monotonic()
        sizes, rng = batch_sizes(config), default_rng([config.run.seed, step])
        rows = self._drawn(teaches, sizes["questions"], rng)
        row_index = np.repeat(np.arange(len(rows)), sizes["group"])
        inputs, weights = show_rows(rows), learner.arrays()
        plans = policy.write(weights, policy.read(weights, inputs, np).at(row_index), rng)
        wrote = monotonic()
        outcomes = run_in_loop(self.rewards.training.score(self._items(rows, row_index, plans)))
        if any(outcome.status is Status.BUDGET for outcome in outcomes):
            raise SpendLimit(self.rewards.stopped() or "no call is left")
        results, rewarded = self.rewards.training.take(), monotonic()
        values = [self._value(o, rows[i]) for o, i in zip(outcomes, row_index, strict=True)]
        logs, entropy = self._chances(learner, inputs, row_index, plans)
        worth = torch.from_numpy(advantages_of(np.array(values), row_index)).float()
        progress = step / int(config.grpo["max_steps"])
        bonus = float(config.grpo.get("entropy_coef", 0.0)) * (1 - progress)
        loss = -(worth * logs).mean() - bonus * entropy.mean()
        norm = learner.learn(loss, config.grpo["learning_rate"] * _rate(step, progress))
        line = {
            "step": step,
            **run_folder.step_summary(results, self.job.read_plan),
            "workers": _programs(run_folder.worker_shares(results, self.job.read_plan)),
            "reward": run_folder.mean([value for value in values if not math.isnan(value)]),
            "entropy": round(entropy.mean().item(), 4),
            "loss": round(loss.item(), 5),
            "grad_norm": round(norm, 4),
            "generation_seconds": round(wrote - began, 3),
            "update_seconds": round(monotonic() - rewarded, 3),
            "seconds": round(monotonic() - began, 3),
            "peak_memory_gib": run_folder.peak_gib(),
        }
        run_folder.note_step(self.state, line)
        self.state.validation = None
        return line

    def _drawn(self, teaches: Sampler, count: int, rng: Any) -> list[Row]:
        splits = self.job.splits
        names = rng.choice([*splits], count, p=self._chance([*splits]))
        questions = {name: [*split.questions.values()] for name, split in splits.items()}
        return [
            draw_row(teaches, (str(name), questions[name][rng.integers(len(questions[name]))]), rng)
            for name in names
        ]

    def _items(self, rows: Sequence[Row], row_index: Any, plans: policy.Plans) -> list[RewardItem]:
        """Return plans as items to reward; equal plans of a question get separate replies."""
        repeats, items = Counter[tuple[int, str]](), list[RewardItem]()
        for number, index in enumerate(row_index.tolist()):
            row, text = rows[index], completion(self.job.config.form, plans.steps(number))
            again = repeats[index, text]
            repeats[index, text] += 1
            items.append(
                RewardItem(row.suite, row.question, text, replicate=again, workers=row.workers)
            )
        return items

    def _value(self, outcome: RewardOutcome, row: Row) -> float:
        """Return a plan's reward, which falls with its cost; NaN if the reward is unknown."""
        grade = outcome.components.get("correct") or 0.0
        value = self._worth(row).of(outcome.status, grade, Effort(outcome.usd, outcome.calls))
        return math.nan if value is None else value

    def _validated(self, learner: _Learner, rows: Sequence[Row], line: dict[str, Any]) -> None:
        """Validate with greedy plans, log the step's line, save the policy if it is the best."""
        weights = learner.arrays()
        plans = policy.write(weights, policy.read(weights, show_rows(rows), np))
        form = self.job.config.form
        texts = [completion(form, plans.steps(index)) for index in range(len(rows))]
        training_rows = [TrainingRow(row.suite, row.question, workers=row.workers) for row in rows]
        validation = run_folder.judged(
            self.job,
            self.rewards.validation,
            training_rows,
            texts,
            lambda index, outcome: self._value(outcome, rows[index]),  # dollars count, as in a step
        )
        if run_folder.cut_short(validation):
            self.state.ended = (
                f"stopped, because the budget ran out during the validation of step {line['step']}"
            )
            return
        validation["workers"] = _programs(validation["workers"])
        if run_folder.note_validation(self.state, line["step"], validation):
            self._write(learner, run_folder.BEST, line["step"])
        step_line = {**line, "validation": validation}
        run_folder.append_line(self.job.out / run_folder.METRICS, step_line)
        self.say(run_folder.validation_text(step_line))

    def _newest(self) -> dict[str, Any] | None:
        path = self.job.out / CHECKPOINTS / STATE
        return dict(np.load(path, allow_pickle=False)) if path.is_file() else None

    def _save(self, learner: _Learner, step: int) -> None:
        _write_arrays(
            self.job.out / CHECKPOINTS / STATE, learner.state() | {"step": np.array(step)}
        )

    def _write(self, learner: _Learner, name: str, step: int) -> None:
        """Write a policy's file (weights, digests of its training questions) and its model card."""
        config, splits = self.job.config, self.job.splits
        questions = [question for split in splits.values() for question in split.questions.values()]
        about = ArtifactSource(
            system=TRAINING,
            rows_sha256="",
            suites=tuple(splits),
            questions=taught_digests(questions, self.job.bare),
            workers=(),
            settings={
                "seed": config.run.seed,
                "step": step,
                "pools": config.pool.drawn,
                "code": run_folder.code_revision(),
                "graders": {name: split.suite.version for name, split in splits.items()},
            },
        )
        write_artifact(Artifact(about, learner.arrays()), self.job.out / name / POLICY)
        card = policy_card(self.job, step, self.state.validation)
        (self.job.out / name / "README.md").write_text(card, encoding="utf-8")


def _rate(step: int, progress: float) -> float:
    cosine = 0.5 * (1 + math.cos(math.pi * progress))
    return min(1.0, step / WARM_UP) * (LEAST_RATE + (1 - LEAST_RATE) * cosine)


def _programs(shares: Mapping[str, float]) -> dict[str, float]:
    """Sum workers' shares by rehearsal program, as the names of workers differ between pools.

    >>> _programs({"sage.0": 0.25, "sage.11": 0.5, "swift.0": 0.25})
    {'sage': 0.75, 'swift': 0.25}
    """
    sums = Counter[str]()
    for name, share in shares.items():
        sums[name.partition(".")[0]] += share  # pyright: ignore[reportArgumentType]
    return dict(sums)


def _write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = BytesIO()
    np.savez(buffer, **arrays)
    replace_file(path, buffer.getvalue())
