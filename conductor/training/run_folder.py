"""A training's folder: its manifest, a line per step, and what a resumed run must find again."""

import hashlib
import json
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from importlib import metadata
from pathlib import Path
from time import monotonic
from typing import Any, cast

from podium.conductor.checkpoint import INFO, MANIFEST, POLICY
from podium.conductor.training.config import TrainingConfig
from podium.conductor.training.grpo_options import CHECKPOINTS, is_main
from podium.conductor.training.job import RewardRecorder, StepResults, TrainingJob
from podium.conductor.training.training_rows import TrainingRow
from podium.harness.errors import UserError
from podium.harness.files import replace_file
from podium.harness.plan_habits import PlanHabits, plan_habits
from podium.harness.rewards.outcome import VALUED, RewardItem, Status
from podium.harness.rewards.trainers import run_in_loop
from podium.harness.run.experiment import is_new
from podium.harness.suite import moved_versions
from podium.harness.workflow import Workflow

METRICS = "metrics.jsonl"  # a line per step; with `validation` where one was made
WARM = "warm_start.jsonl"
START, BEST, LAST = "start", "best", "last"
MERGED = "adapter"  # holds adapters that were merged into the weights beside it

PINNED = (
    *("podium", "torch", "transformers", "trl", "accelerate", "peft", "vllm", "datasets"),
    *("tokenizers", "inspect-ai", "numpy"),
)

FREE = (
    *(
        "run.save_every",
        "run.keep",
        "run.tensorboard",
        "run.report_to",
        "run.threads",
        "title",
        "name",
    ),
    *("reward.max_usd", "reward.concurrency", "reward.rpm", "reward.ahead", "reward.time_scale"),
)  # of a configuration that is resumed: it changes no step
SHAPE = ("architectures", "hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
ReadPlan = Callable[[RewardItem], Workflow | None]  # an item's workflow, None where there is none
NESTED = {"suites": "suite", "workers": "worker"}
Validation = Mapping[str, Any]  # what a validation came to, as a line of metrics.jsonl has it
UNREAD = 5  # steps on end without a plan that can be read: then all rewards are alike for good
NOTHING_READ = (
    f"no plan of {UNREAD} steps could be read, so nothing is learnt: begin with a warm start "
    '([warm_start] kind="random-plans"), or raise max_completion_length where cut_off in '
    f"{METRICS} says that plans do not end"
)
CUT_OFF = 0.5  # share of plans that run on to the limit, from which on it is said
GRADED = {f"status/{status.value}" for status in VALUED}
"""Of what a line counts; the others have no value."""


def validation_text(line: Mapping[str, Any]) -> str:
    """Return what a person is told of a step with a validation; empty for one without.

    An entropy bonus may teach a policy to write on behind its plan, which no reward prices: two of
    six trainings of the practice recipes did, and the best plans of one have 97 tokens, not 28.
    """
    said: Validation = line.get("validation") or {}
    if said.get("correct") is None:
        return ""
    text = f"step {line['step']}: validation {said['correct']:.3f}, "
    text += f"{said['calls']:.2f} calls a question"
    cut_off = line.get("cut_off") or 0.0
    if cut_off < CUT_OFF:
        return text
    return (
        f"{text}; {cut_off:.0%} of plans run on to max_completion_length: raise it where fewer can "
        "be read, else lower entropy_coef, for what stands behind a plan is only paid for"
    )


def job_manifest(training: TrainingJob) -> dict[str, Any]:
    """Return what a run's manifest says; plain JSON values."""
    config, spec, book, versions = training.config, training.spec, training.book, dict[str, str]()
    for name in PINNED:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    data = {
        name: {
            "version": split.suite.version,
            "data_revision": split.suite.data_revision,
            "publishable": split.suite.publishable,
            "train_questions": len(split.questions),
            "train_ids_sha256": _sha256_of("\n".join(split.questions)),
            "validation_questions": len(held := training.held_out[name].questions),
            "validation_ids_sha256": _sha256_of("\n".join(held)),
        }
        for name, split in training.splits.items()
    }
    return {
        "schema": 1,
        "config": config.model_dump(mode="json"),
        "seed": config.run.seed,
        "reward": config.reward.name,
        "pool": {
            "name": spec.name,
            "label": spec.label,
            "sha256": spec.sha256,
            "workers": list(spec.names),
            "cards_sha256": _sha256_of(json.dumps([one.card for one in spec.workers])),
        },
        "prices": {"name": book.name, "date": book.date, "sha256": book.sha256},
        "data": data,
        "questions_left_out": training.left_out,
        "versions": versions,
        "code_revision": code_revision(),
    }


def _sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def code_revision() -> str:
    """Return the commit of this checkout, `+` when it has changes; empty where there is none."""
    root = Path(__file__).resolve().parents[2]

    def git(*words: str) -> str:
        command = ["git", "-C", str(root), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "HEAD")
        if not commit or git("rev-parse", "--show-toplevel") != str(root):
            return ""
        return commit + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def prepare_folder(training: TrainingJob) -> Path:
    """Make the run folder or check the one to resume; UserError where neither will do."""
    out, resume, said = training.out, training.resume, job_manifest(training)
    if not is_main():  # the first process has looked, or is about to
        return out
    begun = (out / MANIFEST).is_file()
    if resume and not begun:
        raise UserError(f"There is nothing to resume in {out}: it has no {MANIFEST}.")
    if begun and not resume:
        raise UserError(f"{out} holds a training already: --resume goes on, or name another --out.")
    if not begun and not is_new(out):
        raise UserError(f"{out} is there already and no training: name another with --out.")
    if not begun:
        write_json(out / MANIFEST, said)
        return out
    before = read_manifest(out)
    refuse_moved_graders(before, said)
    refuse_changed({**before, "config": config_of(before).model_dump(mode="json")}, said)
    return out


def refuse_moved_graders(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise UserError where a manifest's graders are not those that would reward from now on."""
    here = graders_in(now)
    then = {name: version for name, version in graders_in(before).items() if name in here}
    if unknown := [name for name, version in then.items() if not version]:
        raise UserError(
            f"This training's manifest does not say which version of {', '.join(unknown)} rewarded "
            "it, and two graders are two rewards: begin anew with --out."
        )
    if what := moved_versions(then, here):
        version, commit = before.get("versions", {}).get("podium"), before.get("code_revision")
        podium = f"podium {version}" if version else "the podium that it began with"
        podium += f" (commit {commit[:12]})" if commit else ""
        raise UserError(
            f"This training was rewarded by {what}, and two graders are two rewards: resume it "
            f"with {podium}, or begin anew with --out."
        )


def graders_in(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the version of each suite's grader by a manifest; empty where that says none."""
    return {name: one.get("version") or "" for name, one in manifest.get("data", {}).items()}


def refuse_changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise UserError, naming the first field, when a resumed run is not the one that began."""
    for key in ("config", "pool", "prices", "data"):
        old, new = flatten(before.get(key), key), flatten(now.get(key), key)
        changed = (name for name in sorted({*old, *new}) if old.get(name) != new.get(name))
        for name in changed:
            plain = name.removeprefix("config.")
            if key == "config" and plain in FREE:
                continue
            said = f"{plain} = {old.get(name)!r}, not {new.get(name)!r}: resume it as it began"
            if plain.endswith("sha256"):
                said = _another(plain, before)
            raise UserError(f"This run began with {said}, or begin anew with --out.")


def _another(name: str, before: Mapping[str, Any]) -> str:
    kind, _, rest = name.partition(".")
    if kind == "data":
        suite, _, which = rest.removesuffix("_ids_sha256").rpartition(".")
        return f"other {which} questions of suite {suite!r}: put its data back as they were"
    what = {"pool": "pool", "prices": "price book"}.get(kind, kind)
    part = "its workers' cards" if "cards" in rest else "the file"
    named = before.get(kind, {}).get("name", "")
    return f"another {what} {named!r}, whose file was edited since: put {part} back"


def flatten(value: Any, prefix: str) -> dict[str, Any]:
    """Return nested tables as one, with dotted names."""
    if not isinstance(value, dict):
        return {prefix: value}
    found: dict[str, Any] = {}
    for key, inner in cast("dict[str, Any]", value).items():
        found |= flatten(inner, f"{prefix}.{key}")
    return found


def write_json(path: Path, value: Any) -> None:
    """Write JSON so that a reader finds the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    said = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    replace_file(path, f"{said}\n".encode())


def append_line(path: Path, value: Mapping[str, Any]) -> None:
    """Add one JSON object to a file of lines."""
    with path.open("a") as file:
        file.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of lines; a last line that was cut short is left out."""
    found: list[dict[str, Any]] = []
    if path.is_file():
        with suppress(json.JSONDecodeError):
            for line in path.read_text().splitlines():
                found.append(json.loads(line))
    return found


def rewind_lines(path: Path, step: int) -> list[dict[str, Any]]:
    """Drop the lines after a step, which a resumed run writes anew; return those that stay."""
    kept = [line for line in read_lines(path) if line["step"] <= step]
    if path.is_file():
        lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in kept)
        replace_file(path, "".join(lines).encode())
    return kept


def newest_checkpoint(out: Path) -> Path | None:
    """Return the newest whole checkpoint; a killed run may have left half of a newer one."""
    found = (out / CHECKPOINTS).glob("checkpoint-*")
    whole = [one for one in found if (one / "trainer_state.json").is_file()]
    return max(whole, key=lambda one: int(one.name.rpartition("-")[2]), default=None)


def refuse_foreign_checkpoint(checkpoint: Path, shape: Mapping[str, Any], tokens: int) -> None:
    """Raise UserError for a checkpoint of another architecture or tokenizer than is trained."""
    path = checkpoint / "config.json"
    if not path.is_file():
        return
    said, anew = json.loads(path.read_text()), "Restore the checkpoint, or begin anew with --out."
    for name in SHAPE:
        if said.get(name) != shape.get(name):
            raise UserError(
                f"{checkpoint} is of another model: its {name} is {said.get(name)!r}, and this "
                f"training's {shape.get(name)!r}. {anew}"
            )
    found = json.loads((checkpoint / "tokenizer.json").read_text())
    known = {*found["model"]["vocab"], *(one["content"] for one in found["added_tokens"])}
    if len(known) != tokens:
        raise UserError(
            f"{checkpoint} has another tokenizer, of {len(known)} tokens and not {tokens}. {anew}"
        )


def read_manifest(run: Path) -> dict[str, Any]:
    """Return a run's manifest; UserError where there is none."""
    if not (run / MANIFEST).is_file():
        raise UserError(f"{run} is no training: it has no {MANIFEST}.")
    return json.loads((run / MANIFEST).read_text())


def config_of(manifest: Mapping[str, Any]) -> TrainingConfig:
    """Return the configuration that a manifest holds."""
    return TrainingConfig.model_validate(manifest["config"])


def training_finished(config: TrainingConfig, out: Path) -> bool:
    """Say whether a training kept its last model, by its last step or by its own rule."""
    lines, patience = read_lines(out / METRICS), config.validation.patience
    if not lines or not any((out / LAST / name).is_file() for name in (INFO, POLICY)):
        return False
    if patience is not None and replay_state(lines).since >= patience:
        return True
    return lines[-1]["step"] >= int(config.grpo["max_steps"]) and "validation" in lines[-1]


def peak_gib() -> float:
    """Return the most memory that this process has held so far, in GiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30, 3)


# --- what a line says ---------------------------------------------------------------------------


def step_summary(seen: StepResults, read: ReadPlan) -> dict[str, float | None]:
    """Return what a step's plans came to: means over its items, shares of workers over steps."""
    n = len(seen.items) or 1
    statuses = Counter(outcome.status for outcome in seen.outcomes)
    plans = [*map(read, seen.items)]
    parsed = [plan for plan in plans if plan is not None]
    values = [one.value for one in seen.outcomes if one.value is not None]
    right = [one.components.get("correct") for one in seen.outcomes if one.value is not None]
    dollars = [one.usd for one in seen.outcomes]
    return {
        "reward": mean(values),
        "correct": mean([one for one in right if one is not None]),
        "parsed": len(parsed) / n,
        "steps": mean([float(len(plan.steps)) for plan in parsed]),
        "depth": mean([float(max(plan.depths())) for plan in parsed]),
        "calls": sum(one.calls for one in seen.outcomes) / n,
        "usd": None if None in dollars else float(sum(usd for usd in dollars if usd)),
        "masked": 1 - sum(statuses[status] for status in VALUED) / n,
        **{f"status/{status.value}": statuses[status] / n for status in Status},
        **_habits(seen, plans),
        "different": len({replace(item, replicate=0) for item in seen.items}) / n,
        **seconds_of(seen),
    }


def judged(
    training: TrainingJob,
    watching: RewardRecorder,
    rows: Sequence[TrainingRow],
    texts: Sequence[str],
) -> dict[str, Any]:
    """Return what plans for held-out rows came to, over all and by suite."""
    started = monotonic()
    items = [
        RewardItem(row.suite, row.question, text, row.epoch, 0, row.workers, row.first)
        for row, text in zip(rows, texts, strict=True)
    ]
    run_in_loop(watching.score(items))
    seen, read = watching.take(), training.read_plan
    grades: dict[str, list[float]] = {suite: [] for suite in training.held_out}
    for item, outcome in zip(items, seen.outcomes, strict=True):
        grade = outcome.components.get("correct")
        grades[item.suite] += [] if grade is None else [grade]
    return {
        **step_summary(seen, read),
        "suites": {suite: mean(found) for suite, found in grades.items()},
        "workers": worker_shares(seen, read),
        "questions": len(items),
        "seconds": round(monotonic() - started, 3),
    }


def _habits_of(plans: Iterable[Workflow | None]) -> PlanHabits | None:
    return plan_habits([plan.shape for plan in plans if plan is not None and plan.steps])


def _habits(seen: StepResults, plans: Sequence[Workflow | None]) -> dict[str, float | None]:
    """Return whether more is learnt than the format: right given a plan, and how plans differ."""
    pairs = zip(plans, seen.outcomes, strict=True)
    right = [outcome.components.get("correct") for plan, outcome in pairs if plan is not None]
    habits = _habits_of(plans)
    return {
        "given_valid": mean([value for value in right if value is not None]),
        "one_step": habits and habits.one_step,
        "distinct": habits and float(habits.distinct),
        "commonest": habits and habits.commonest,
        "worker_entropy": habits and habits.worker_entropy,
    }


def seconds_of(seen: StepResults) -> dict[str, float]:
    """Return the seconds that training waited for rewards: for workers, and for grading."""
    waited = sum(outcome.latency_s for outcome in seen.outcomes)
    graded = sum(outcome.grading_s for outcome in seen.outcomes)
    grading = seen.seconds * (graded / waited if waited else 1.0)
    return {
        "reward_seconds": round(seen.seconds, 3),
        "ahead_seconds": round(seen.ahead, 3),
        "worker_seconds": round(seen.seconds - grading, 3),
        "grading_seconds": round(grading, 3),
    }


def validation_scalars(validation: Mapping[str, Any]) -> dict[str, float]:
    """Return what a validation came to under flat names; what is unknown has none."""
    flat = {key: value for key, value in validation.items() if key not in NESTED}
    for name, one in NESTED.items():
        flat |= {f"{one}/{part}": value for part, value in validation.get(name, {}).items()}
    return {f"validation/{key}": float(one) for key, one in flat.items() if one is not None}


def worker_shares(seen: StepResults, read: ReadPlan) -> dict[str, float]:
    """Return each worker's share of the steps of the plans that could be read."""
    habits = _habits_of(map(read, seen.items))
    return dict(habits.workers) if habits else {}


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None of nothing.

    >>> mean([]), mean([1.0, 2.0])
    (None, 1.5)
    """
    return sum(values) / len(values) if values else None


@dataclass
class TrainingState:
    """What a training knows of itself beyond TRL's state."""

    best: float | None = None
    best_step: int = 0
    since: int = 0  # validations without a better one, of those graded whole
    unread: int = 0  # steps on end of which no plan could be read
    validation: Validation | None = None  # the latest step's; None where none was made
    spent: Decimal = Decimal(0)  # dollars when the running step began
    dearest: Decimal = Decimal(0)  # dollars of this session's dearest step, not validated
    validating: Decimal = Decimal(0)  # dollars of the dearest validation, at full price
    ended: str = ""  # why training ended before its last step; empty while it has not
    asked_to_stop: bool = False
    generating: float = 0.0  # seconds of generation in the running step
    resampled: dict[str, float] = field(default_factory=dict[str, float])  # by `Resampling`
    line: dict[str, Any] = field(default_factory=dict[str, Any])


def replay_state(lines: Sequence[Mapping[str, Any]]) -> TrainingState:
    """Return the state at the end of these lines."""
    state = TrainingState()
    for line in lines:
        note_step(state, line)
        note_validation(state, line["step"], line.get("validation"))
    return state


def note_step(state: TrainingState, line: Mapping[str, Any]) -> None:
    """Count steps on end without a plan that could be read; a line without plans is no step."""
    if "parsed" in line:
        state.unread = 0 if line["parsed"] else state.unread + 1


def note_validation(state: TrainingState, step: int, validation: Validation | None) -> bool:
    """Note a validation; return whether it is the best so far. The earliest of equals stays."""
    state.validation = validation
    if validation is None:
        return False
    state.validating = max(state.validating, Decimal(str(validation.get("usd") or 0)))
    worth = sure_share(validation)
    if worth is not None and (state.best is None or worth > state.best):
        state.best, state.best_step, state.since = worth, step, 0
        return True
    state.since += not validation.get("masked")
    return False


def sure_share(validation: Validation) -> float | None:
    """Return the share of all held-out questions that is right for sure; None without a grade.

    Over those alone that happened to be graded, a few lucky ones would be the best for good.

    >>> sure_share({"correct": 1.0, "masked": 0.75}), sure_share({"correct": 0.5, "masked": 0.0})
    (0.25, 0.5)
    """
    correct = validation.get("correct")
    return None if correct is None else correct * (1 - (validation.get("masked") or 0.0))


def cut_short(validation: Validation) -> bool:
    """Say whether the money ended within a validation."""
    return bool(validation.get("status/budget"))


def validation_due(config: TrainingConfig, step: int) -> bool:
    """Say whether a step is validated: some are, and the last one always."""
    return step % config.validation.every == 0 or step == int(config.grpo["max_steps"])


def owed_validation(
    config: TrainingConfig, lines: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the last line where it lacks a validation that the money did not last for."""
    if not lines or "validation" in lines[-1] or not validation_due(config, lines[-1]["step"]):
        return None
    return lines[-1]


def ungraded_text(validation: Validation) -> str:
    """Return how many questions have no grade, and why, for a person."""
    count = round(validation["masked"] * validation["questions"])
    why = [
        name.removeprefix("status/").replace("_", " ")
        for name, share in validation.items()
        if name.startswith("status/") and share and name not in GRADED
    ]
    return (
        f"{count} of {validation['questions']} held-out questions have no grade ({', '.join(why)})"
    )
