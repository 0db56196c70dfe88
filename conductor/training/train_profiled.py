"""A training of `conductor-profiled` from top to bottom: try workers, draw, plan, learn, keep."""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

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
LEAST_RATE = 0.05  # share of it at the last step; half a cosine between
SEARCHED_AT_ONCE = 50  # questions
ROUTING, WARM_ENTROPY = 40.0, 0.01  # weights of the warm start's terms beside imitation
TRIED = "trial.npz"  # what workers did alone: asked once for all sessions of a training
STATE = "state.npz"


def train_profiled(job: TrainingJob, say: Say) -> str:
    """Train and return one sentence about how it ended; UserError before anything is spent."""
    check_job(job)
    with quiet(), open_box(job) as box:
        anyio.run(refuse_gullible_graders, job, box and box.box)
        out = run_folder.prepare_folder(job)
        return _Training(job, make_rewards(job, box and box.box, out), say).run()


@dataclass(slots=True)
class _Learner:
    """Weights with the moments of Adam (arXiv 1412.6980): a step continues where one ended."""

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
        held: dict[str, Any] = self.arrays()
        for name, values in self.weights.items():
            moments = self.optimiser.state[values]
            held["updates"] = np.array(float(moments["step"]))  # those of the warm start, too
            held[f"mean/{name}"] = moments["exp_avg"].numpy()
            held[f"square/{name}"] = moments["exp_avg_sq"].numpy()
        return held

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
        done = int(newest["step"]) if newest else 0
        lines = run_folder.rewind_lines(out / run_folder.METRICS, done if newest else -1)
        self.state = run_folder.replay_state(lines)
        if not lines:
            first_usd = self.searched_usd + sum(float(np.nansum(usd)) for usd in trial.usd.values())
            self._validated(learner, rows, {"step": 0, "usd": first_usd})
        with stopping(self.state, self.say):
            done = self._steps(learner, teaches, rows, done)
        self._write(learner, run_folder.LAST, done)
        best = "No validation has picked a policy"
        if self.state.best is not None:
            where = out / run_folder.BEST
            best = (
                f"Best validation {self.state.best:.3f} at step {self.state.best_step}, in {where}"
            )
        again = "; --resume goes on" if self.state.ended.startswith("stopped") else ""
        return f"Step {done}: {self.state.ended or 'all steps are made'}. {best}{again}."

    def _trial(self) -> Trial:
        """Return what every worker does alone; asked once, and read by later sessions."""
        given, path = self._given, self.job.out / TRIED
        if path.is_file():
            return Trial.read(self.job, given.questions, dict(np.load(path, allow_pickle=False)))
        count = len(self.job.spec.names) * given.questions * len(self.job.splits)
        self.say(f"Trying {len(self.job.spec.names)} workers: {count:,} calls.")
        trial = try_workers(self.job, self.rewards.training, given.questions)
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
        """Learn whom to ask alone, by what was tried; and own right plans of a first search."""
        import torch

        given, rng = self._given, default_rng([self.job.config.run.seed, 0, 2])
        lessons = self._search(trial, teaches, rng)
        for step in range(given.warm_steps):
            part = step / given.warm_steps
            drawn = rng.integers(len(trial.questions), size=given.warm_batch)
            rows = [draw_row(teaches, trial.questions[at], rng) for at in drawn.tolist()]
            worth = np.zeros((len(rows), max(len(row.workers) for row in rows)))
            for number, (at, row) in enumerate(zip(drawn.tolist(), rows, strict=True)):
                values = [self._alone(trial, who, at, row) for who in row.workers]
                worth[number, : len(values)] = np.array(values) - np.mean(values)
            loss = ROUTING * routing_loss(learner.weights, rows, worth, torch)
            some = [lessons[at] for at in rng.integers(len(lessons), size=given.warm_batch)]
            again = [teaches.shown_again(one.row, rng) for one in some]
            plans = policy.Plans(
                np.concatenate([one.plans.tasks for one in some]),
                np.concatenate([one.plans.workers for one in some]),
            )
            at = np.repeat(np.arange(len(some)), [len(one.shares) for one in some])
            shares = torch.from_numpy(np.concatenate([one.shares for one in some])).float()
            logs, entropy = self._chances(learner, show_rows(again), at, plans)
            loss = loss - (shares * logs).sum() / len(some) - WARM_ENTROPY * entropy.mean()
            norm = learner.learn(loss, _rate(step + 1, part) * given.warm_rate)
            if step % 20 == 0:
                line = {"step": step, "loss": round(loss.item(), 5), "grad_norm": round(norm, 4)}
                run_folder.append_line(self.job.out / run_folder.WARM, line)

    def _search(self, trial: Trial, teaches: Sampler, rng: Any) -> list[Lesson]:
        """Draw plans evenly for questions that were tried; keep those that beat a worker alone."""
        given, size, found = self._given, batch_sizes(self.job.config)["group"], list[Lesson]()
        self.say(f"Searching: {given.searched} questions, {size} plans each.")
        chance = self._chance([name for name, _ in trial.questions])
        for start in range(0, given.searched, SEARCHED_AT_ONCE):
            count = min(SEARCHED_AT_ONCE, given.searched - start)
            drawn = rng.choice(len(trial.questions), count, p=chance).tolist()
            rows = [draw_row(teaches, trial.questions[at], rng) for at in drawn]
            plans = [random_plans(size, len(row.workers), rng) for row in rows]
            at = np.repeat(np.arange(count), size)
            both = zip(*plans, strict=True)
            items = self._items(rows, at, policy.Plans(*map(np.concatenate, both)))
            said = run_in_loop(self.rewards.training.score(items))
            self.rewards.training.take()
            self.searched_usd += float(sum(one.usd or 0 for one in said))
            values = [self._value(one, rows[on]) for one, on in zip(said, at, strict=True)]
            every = np.array(values).reshape(count, size)
            for asked, row, some, worth in zip(drawn, rows, plans, every, strict=True):
                best = teaches.best_alone(row.suite, row.workers)
                alone = best, self._alone(trial, row.workers[best], asked, row)
                found.append(lesson_of(row, some, worth, alone))
        return found

    def _chance(self, suites: Sequence[str]) -> Any:
        """Return how likely each question is drawn, given the suites that they are of."""
        weights = np.array([self.job.config.suites.weights.get(name, 1.0) for name in suites])
        weights /= np.array([suites.count(name) for name in suites])
        return weights / weights.sum()

    def _chances(
        self, learner: _Learner, shown: policy.Shown, at: Any, plans: policy.Plans
    ) -> tuple[Any, Any]:
        import torch

        seen = read_shown(learner.weights, shown, torch).at(torch.from_numpy(at))
        return log_chances(learner.weights, seen, plans, torch)

    def _alone(self, trial: Trial, who: str, at: int, row: Row) -> float:
        grade = float(np.nan_to_num(trial.right[who][at]))
        usd = Decimal(float(np.nan_to_num(trial.usd[who][at])))
        return self._worth(row).of(Status.SCORED, grade, Effort(usd, 1)) or 0.0

    def _worth(self, row: Row) -> CostAware:
        """Return what answers are worth in a row's pool: dollars count beside its usual call."""
        return CostAware(self._given.cost_weight, self._given.cost_calls * row.usual_usd)

    @property
    def _given(self) -> ProfiledPart:
        given = self.job.config.model.profiled
        assert given is not None, "train() came here for it"
        return given

    def _validation_rows(self, held_out: Sampler) -> list[Row]:
        """Return the held-out questions, each with one of the pools that never teach."""
        rng, pools = default_rng([self.job.config.run.seed, 0, 1]), held_out.groups
        return [
            draw_row(held_out, (name, question), rng, pools[at % len(pools)])
            for name, split in self.job.held_out.items()
            for at, question in enumerate(split.questions.values())
        ]

    def _steps(self, learner: _Learner, teaches: Sampler, rows: Sequence[Row], done: int) -> int:
        config, state = self.job.config, self.state
        last = int(config.grpo["max_steps"])
        with tqdm(total=last, initial=done, disable=None, dynamic_ncols=True) as bar:
            while done < last and not state.ended:
                try:
                    line = self._step(learner, teaches, done + 1)
                except SpendLimit as error:
                    state.ended = f"stopped, for the money is spent ({error})"
                    break
                done += 1
                bar.update(1)
                if run_folder.validation_due(config, done):
                    self._validated(learner, rows, line)
                else:
                    run_folder.append_line(self.job.out / run_folder.METRICS, line)
                if state.asked_to_stop:
                    state.ended = "stopped as asked"
                if state.ended or done % config.run.save_every == 0 or done == last:
                    self._save(learner, done)
        return done

    def _step(self, learner: _Learner, teaches: Sampler, step: int) -> dict[str, Any]:
        """Make one step: draw questions and plans, reward them, update."""
        import torch

        config, began = self.job.config, monotonic()
        sizes, rng = batch_sizes(config), default_rng([config.run.seed, step])
        rows = self._drawn(teaches, sizes["questions"], rng)
        at = np.repeat(np.arange(len(rows)), sizes["group"])
        shown, weights = show_rows(rows), learner.arrays()
        plans = policy.write(weights, policy.read(weights, shown, np).at(at), rng)
        wrote = monotonic()
        found = run_in_loop(self.rewards.training.score(self._items(rows, at, plans)))
        if any(one.status is Status.BUDGET for one in found):
            raise SpendLimit(self.rewards.stopped() or "no call is left")
        results, rewarded = self.rewards.training.take(), monotonic()
        values = np.array([self._value(one, rows[on]) for one, on in zip(found, at, strict=True)])
        logs, entropy = self._chances(learner, shown, at, plans)
        worth = torch.from_numpy(advantages_of(values, at)).float()
        part = step / int(config.grpo["max_steps"])
        bonus = float(config.grpo.get("entropy_coef", 0.0)) * (1 - part)
        loss = -(worth * logs).mean() - bonus * entropy.mean()
        norm = learner.learn(loss, config.grpo["learning_rate"] * _rate(step, part))
        line = {
            "step": step,
            **run_folder.step_summary(results, self.job.read_plan),
            "workers": _programs(run_folder.worker_shares(results, self.job.read_plan)),
            "reward": run_folder.mean([one for one in values.tolist() if not math.isnan(one)]),
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
        asked = {name: [*split.questions.values()] for name, split in splits.items()}
        return [
            draw_row(teaches, (str(name), asked[name][rng.integers(len(asked[name]))]), rng)
            for name in names
        ]

    def _items(self, rows: Sequence[Row], at: Any, plans: policy.Plans) -> list[RewardItem]:
        """Return what is rewarded; equal plans of a question get replies of their own."""
        seen, items = Counter[tuple[int, str]](), list[RewardItem]()
        for number, on in enumerate(at.tolist()):
            row, text = rows[on], completion(self.job.config.form, plans.steps(number))
            again = seen[on, text]
            seen[on, text] += 1
            items.append(
                RewardItem(row.suite, row.question, text, replicate=again, workers=row.workers)
            )
        return items

    def _value(self, found: RewardOutcome, row: Row) -> float:
        """Return what a plan is worth; NaN for what has no value."""
        grade = found.components.get("correct") or 0.0
        value = self._worth(row).of(found.status, grade, Effort(found.usd, found.calls))
        return math.nan if value is None else value

    def _validated(self, learner: _Learner, rows: Sequence[Row], line: dict[str, Any]) -> None:
        """Write a step's line with what the likeliest plans come to; keep the best policy."""
        weights = learner.arrays()
        plans = policy.write(weights, policy.read(weights, show_rows(rows), np))
        form = self.job.config.form
        texts = [completion(form, plans.steps(at)) for at in range(len(rows))]
        asked = [TrainingRow(row.suite, row.question, workers=row.workers) for row in rows]
        found = run_folder.judged(self.job, self.rewards.validation, asked, texts)
        if run_folder.cut_short(found):
            self.state.ended = (
                f"stopped, for the money ended within the validation of step {line['step']}"
            )
            return
        found["workers"] = _programs(found["workers"])
        if run_folder.note_validation(self.state, line["step"], found):
            self._write(learner, run_folder.BEST, line["step"])
        whole = {**line, "validation": found}
        run_folder.append_line(self.job.out / run_folder.METRICS, whole)
        self.say(run_folder.validation_text(whole))

    def _newest(self) -> dict[str, Any] | None:
        path = self.job.out / CHECKPOINTS / STATE
        return dict(np.load(path, allow_pickle=False)) if path.is_file() else None

    def _save(self, learner: _Learner, step: int) -> None:
        _write_arrays(
            self.job.out / CHECKPOINTS / STATE, learner.state() | {"step": np.array(step)}
        )

    def _write(self, learner: _Learner, name: str, step: int) -> None:
        """Write a policy's file: its weights, and what taught it."""
        config, splits = self.job.config, self.job.splits
        asked = [one for split in splits.values() for one in split.questions.values()]
        about = ArtifactSource(
            system=TRAINING,
            rows_sha256="",
            suites=tuple(splits),
            questions=taught_digests(asked, self.job.bare),
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


def _rate(step: int, part: float) -> float:
    cosine = 0.5 * (1 + math.cos(math.pi * part))
    return min(1.0, step / WARM_UP) * (LEAST_RATE + (1 - LEAST_RATE) * cosine)


def _programs(shares: Mapping[str, float]) -> dict[str, float]:
    """Return shares of workers by their programs: each pool has workers of its own.

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
