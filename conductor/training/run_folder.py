"""A training's folder: its manifest, its metrics by step, and the state that a resume needs."""

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
from math import isnan
from pathlib import Path
from time import monotonic
from typing import Any, cast

from pydantic import ValidationError

from podium.conductor.checkpoint import INFO, MANIFEST, POLICY
from podium.conductor.training.config import TrainingConfig
from podium.conductor.training.grpo_options import CHECKPOINTS, is_main
from podium.conductor.training.job import RewardRecorder, StepResults, TrainingJob
from podium.conductor.training.training_rows import TrainingRow
from podium.harness.errors import UserError, first_fault
from podium.harness.files import json_lines, json_with_nan, replace_file
from podium.harness.plan_habits import PlanHabits, plan_habits
from podium.harness.rewards.outcome import VALUED, RewardItem, RewardOutcome, Status
from podium.harness.rewards.trainers import run_in_loop
from podium.harness.run.experiment import is_new
from podium.harness.suite import moved_versions
from podium.harness.workflow import Workflow

METRICS = "metrics.jsonl"  # a line per step; with `validation` if one was made
WARM = "warm_start.jsonl"
START, BEST, LAST = "start", "best", "last"
MERGED = "adapter"  # folder of the adapters that were merged into the weights

PINNED = (
    *("podium", "torch", "transformers", "trl", "accelerate", "peft", "vllm", "datasets"),
    *("tokenizers", "inspect-ai", "numpy"),
)

FREE = (
    *("title", "name"),
    *("run.save_every", "run.keep", "run.tensorboard", "run.report_to", "run.threads"),
    *("reward.max_usd", "reward.concurrency", "reward.rpm", "reward.ahead", "reward.time_scale"),
)  # settings that may differ on resume, because they change no step
SHAPE = ("architectures", "hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
ReadPlan = Callable[[RewardItem], Workflow | None]  # an item's workflow, None if it has none
NESTED = {"suites": "suite", "workers": "worker"}
Validation = Mapping[str, Any]  # a validation's figures, as in a line of metrics.jsonl
UNREAD = 5  # consecutive steps without a readable plan, after which a training stops
NOTHING_READ = (
    f"no plan of {UNREAD} steps could be read, so nothing is learnt. Begin with a warm start "
    '([warm_start] kind="random-plans"), or raise max_completion_length if cut_off in '
    f"{METRICS} shows that plans do not end"
)
CUT_OFF = 0.5  # share of plans cut off at the limit, from which a hint is printed
GRADED = {f"status/{status.value}" for status in VALUED}
"""Keys in a line of metrics.jsonl for the statuses whose outcomes have a reward."""


def validation_text(line: Mapping[str, Any]) -> str:
    """Return a step's validation as text to print; empty if the step has no graded validation.

    The text warns of long plans: an entropy bonus may teach a model to keep writing after its plan,
    as no reward penalises that. It happened in two of six trainings on practice suites; the best
    plans of one have 97 tokens, not 28.
    """
    validation: Validation = line.get("validation") or {}
    if validation.get("correct") is None:
        return ""
    text = f"step {line['step']}: validation {validation['correct']:.3f}, "
    text += f"{validation['calls']:.2f} calls a question"
    cut_off = line.get("cut_off") or 0.0
    if cut_off < CUT_OFF:
        return text
    return (
        f"{text}; {cut_off:.0%} of plans reach max_completion_length: raise it if few plans can be "
        "read, else lower entropy_coef, because tokens after a plan are paid for but not used"
    )


def job_manifest(training: TrainingJob) -> dict[str, Any]:
    """Return a training's manifest (settings, pool, prices, data, versions) as JSON values."""
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
            "validation_questions": len(held_out := training.held_out[name].questions),
            "validation_ids_sha256": _sha256_of("\n".join(held_out)),
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
            "cards_sha256": _sha256_of(json.dumps([worker.card for worker in spec.workers])),
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
    """Return the commit of podium's code, with `+` if files changed; empty if not a checkout."""
    root = Path(__file__).resolve().parents[2]

    def git(*words: str) -> str:
        command = ["git", "-C", str(root), *words]
        process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
        return process.stdout.strip()

    try:
        commit = git("rev-parse", "HEAD")
        if not commit or git("rev-parse", "--show-toplevel") != str(root):
            return ""
        return commit + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def prepare_folder(training: TrainingJob) -> Path:
    """Make a training's folder, or check the one to resume; UserError if neither is possible."""
    out, resume, manifest = training.out, training.resume, job_manifest(training)
    if not is_main():  # the first process checks the folder
        return out
    has_manifest = (out / MANIFEST).is_file()
    if resume and not has_manifest:
        raise UserError(
            f"There is nothing to resume in {out}: it has no {MANIFEST}. Leave --resume out, or "
            "name the training's folder with --out."
        )
    if has_manifest and not resume:
        raise UserError(f"{out} already has a training. Add --resume, or name another --out.")
    if not has_manifest and not is_new(out):
        raise UserError(f"{out} exists and is not a training. Name another folder with --out.")
    if not has_manifest:
        write_json(out / MANIFEST, manifest)
        return out
    earlier = read_manifest(out)
    refuse_moved_graders(earlier, manifest)
    refuse_changed({**earlier, "config": config_of(earlier).model_dump(mode="json")}, manifest)
    return out


def refuse_moved_graders(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise UserError if graders of a resumed training have other versions than in its manifest."""
    here = graders_in(now)
    then = {name: version for name, version in graders_in(earlier).items() if name in here}
    if unknown := [name for name, version in then.items() if not version]:
        raise UserError(
            f"This training's manifest does not say which version of suite {', '.join(unknown)} "
            "graded its rewards, and one training must use one version. Start a new training with "
            "--out."
        )
    if versions := moved_versions(then, here):
        version, commit = earlier.get("versions", {}).get("podium"), earlier.get("code_revision")
        podium = f"podium {version}" if version else "the podium that it began with"
        podium += f" (commit {commit[:12]})" if commit else ""
        raise UserError(
            f"Graders of this training have changed since it began: {versions}. All its rewards "
            f"must be of one version. Resume it with {podium}, or begin anew with --out."
        )


def graders_in(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return suite -> grader version in a training's manifest; "" if a version is missing."""
    return {name: entry.get("version") or "" for name, entry in manifest.get("data", {}).items()}


def refuse_changed(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise UserError, with the first change, if a resumed training has other settings or data."""
    for key in ("config", "pool", "prices", "data"):
        old, new = flatten(earlier.get(key), key), flatten(now.get(key), key)
        changed = (name for name in sorted({*old, *new}) if old.get(name) != new.get(name))
        for name in changed:
            plain = name.removeprefix("config.")
            if key == "config" and plain in FREE:
                continue
            text = f"{plain} = {old.get(name)!r}, not {new.get(name)!r}. Use that value again"
            if plain.endswith("sha256"):
                text = _another(plain, earlier)
            raise UserError(f"This run began with {text}, or begin anew with --out.")


def _another(name: str, earlier: Mapping[str, Any]) -> str:
    kind, _, key = name.partition(".")
    if kind == "data":
        suite, _, split = key.removesuffix("_ids_sha256").rpartition(".")
        return f"other {split} questions of suite {suite!r}. Restore its data"
    label = {"pool": "pool", "prices": "price book"}.get(kind, kind)
    piece = "its workers' cards" if "cards" in key else "the file"
    title = earlier.get(kind, {}).get("name", "")
    return f"another {label} {title!r}, whose file was edited since. Restore {piece}"


def flatten(value: Any, prefix: str) -> dict[str, Any]:
    """Return nested tables as one flat table with dotted keys, which begin with `prefix`."""
    if not isinstance(value, dict):
        return {prefix: value}
    flat: dict[str, Any] = {}
    for key, inner in cast("dict[str, Any]", value).items():
        flat |= flatten(inner, f"{prefix}.{key}")
    return flat


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically: a reader finds the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    replace_file(path, f"{text}\n".encode())


def append_line(path: Path, value: Mapping[str, Any]) -> None:
    """Append one object to a JSON Lines file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return a JSON Lines file's objects up to its first incomplete line; [] if it is missing."""
    objects: list[dict[str, Any]] = []
    if path.is_file():
        with suppress(ValueError):  # half a line, perhaps half a character
            for line in json_lines(path):
                objects.append(json.loads(line))
    return objects


def rewind_lines(path: Path, step: int) -> list[dict[str, Any]]:
    """Delete the lines of steps after `step`, which a resumed training repeats; return the rest."""
    remaining = [line for line in read_lines(path) if line["step"] <= step]
    if path.is_file():
        lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in remaining)
        replace_file(path, "".join(lines).encode())
    return remaining


def newest_checkpoint(out: Path) -> Path | None:
    """Return the folder of a training's newest complete checkpoint; None if it has none."""
    candidates = (out / CHECKPOINTS).glob("checkpoint-*")
    checkpoints = [folder for folder in candidates if (folder / "trainer_state.json").is_file()]
    return max(checkpoints, key=lambda folder: int(folder.name.rpartition("-")[2]), default=None)


def refuse_foreign_checkpoint(checkpoint: Path, shape: Mapping[str, Any], tokens: int) -> None:
    """Raise UserError if a checkpoint's architecture or tokenizer differs from the model's."""
    path = checkpoint / "config.json"
    if not path.is_file():
        return
    config, anew = json.loads(path.read_text()), "Restore the checkpoint, or begin anew with --out."
    for name in SHAPE:
        if config.get(name) != shape.get(name):
            raise UserError(
                f"{checkpoint} is of another model: its {name} is {config.get(name)!r}, but this "
                f"training's is {shape.get(name)!r}. {anew}"
            )
    data = json.loads((checkpoint / "tokenizer.json").read_text())
    vocab = {*data["model"]["vocab"], *(token["content"] for token in data["added_tokens"])}
    if len(vocab) != tokens:
        raise UserError(
            f"{checkpoint} has another tokenizer, with {len(vocab)} tokens instead of {tokens}. "
            f"{anew}"
        )


def read_manifest(run: Path) -> dict[str, Any]:
    """Return a training's manifest; UserError if its folder has none, or if it is damaged."""
    path = run / MANIFEST
    if not path.is_file():
        raise UserError(f"{run} is not a training: it has no {MANIFEST}. Name another folder.")
    try:
        manifest, reason = json_with_nan(path.read_bytes()), "it is no JSON object"
    except ValueError as error:
        manifest, reason = None, f"{error}"
    if not isinstance(manifest, dict):
        raise UserError(f"{path} is damaged ({reason}). Restore it, or train again.")
    return cast("dict[str, Any]", manifest)


def config_of(manifest: Mapping[str, Any]) -> TrainingConfig:
    """Return the training configuration in a manifest; UserError if it has none or a bad one."""
    try:
        return TrainingConfig.model_validate(manifest.get("config"))
    except ValidationError as error:
        raise UserError(
            f"The training's manifest has no configuration that this podium can read "
            f"({': '.join(first_fault(error))}). Train again."
        ) from None


def training_finished(config: TrainingConfig, out: Path) -> bool:
    """Return whether a training saved its last model: at its last step or ended by `patience`."""
    lines, patience = read_lines(out / METRICS), config.validation.patience
    if not lines or not any((out / LAST / name).is_file() for name in (INFO, POLICY)):
        return False
    if patience is not None and replay_state(lines).since >= patience:
        return True
    return lines[-1]["step"] >= int(config.grpo["max_steps"]) and "validation" in lines[-1]


def peak_gib() -> float:
    """Return this process's peak memory so far, in GiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30, 3)


# --- figures of a line --------------------------------------------------------------------------


def step_summary(results: StepResults, read: ReadPlan) -> dict[str, float | None]:
    """Return a step's figures: means and shares over its plans; a figure is None if unknown."""
    n = len(results.items) or 1
    statuses = Counter(outcome.status for outcome in results.outcomes)
    plans = [*map(read, results.items)]
    parsed = [plan for plan in plans if plan is not None]
    values = [outcome.value for outcome in results.outcomes if outcome.value is not None]
    right = [
        outcome.components.get("correct")
        for outcome in results.outcomes
        if outcome.value is not None
    ]
    dollars = [outcome.usd for outcome in results.outcomes]
    return {
        "reward": mean(values),
        "correct": mean([grade for grade in right if grade is not None]),
        "parsed": len(parsed) / n,
        "steps": mean([float(len(plan.steps)) for plan in parsed]),
        "depth": mean([float(max(plan.depths())) for plan in parsed]),
        "calls": sum(outcome.calls for outcome in results.outcomes) / n,
        "usd": None if None in dollars else float(sum(usd for usd in dollars if usd)),
        "masked": 1 - sum(statuses[status] for status in VALUED) / n,
        **{f"status/{status.value}": statuses[status] / n for status in Status},
        **_habits(results, plans),
        "different": len({replace(item, replicate=0) for item in results.items}) / n,
        **seconds_of(results),
    }


def judged(
    training: TrainingJob,
    watching: RewardRecorder,
    rows: Sequence[TrainingRow],
    texts: Sequence[str],
    value: Callable[[int, RewardOutcome], float] | None = None,
) -> dict[str, Any]:
    """Reward plans for held-out rows; return figures over all rows and by suite.

    `value`, if given, returns the figure by which `best/` is chosen, from a row's index and its
    outcome (NaN counts as 0). By default, that figure is the share of right answers.
    """
    started = monotonic()
    items = [
        RewardItem(row.suite, row.question, text, row.epoch, 0, row.workers, row.first)
        for row, text in zip(rows, texts, strict=True)
    ]
    run_in_loop(watching.score(items))
    results, read = watching.take(), training.read_plan
    grades: dict[str, list[float]] = {suite: [] for suite in training.held_out}
    for item, outcome in zip(items, results.outcomes, strict=True):
        grade = outcome.components.get("correct")
        grades[item.suite] += [] if grade is None else [grade]
    worth: dict[str, float] = {}
    if value:
        values = [value(index, outcome) for index, outcome in enumerate(results.outcomes)]
        worth["worth"] = sum(number for number in values if not isnan(number)) / len(values)
    return {
        **step_summary(results, read),
        **worth,
        "suites": {suite: mean(values) for suite, values in grades.items()},
        "workers": worker_shares(results, read),
        "questions": len(items),
        "seconds": round(monotonic() - started, 3),
    }


def _habits_of(plans: Iterable[Workflow | None]) -> PlanHabits | None:
    return plan_habits([plan.shape for plan in plans if plan is not None and plan.steps])


def _habits(results: StepResults, plans: Sequence[Workflow | None]) -> dict[str, float | None]:
    """Return the share of right answers among valid plans, and figures on how the plans differ."""
    pairs = zip(plans, results.outcomes, strict=True)
    right = [outcome.components.get("correct") for plan, outcome in pairs if plan is not None]
    habits = _habits_of(plans)
    return {
        "given_valid": mean([value for value in right if value is not None]),
        "one_step": habits and habits.one_step,
        "distinct": habits and float(habits.distinct),
        "commonest": habits and habits.commonest,
        "worker_entropy": habits and habits.worker_entropy,
    }


def seconds_of(results: StepResults) -> dict[str, float]:
    """Return the seconds that training waited for rewards, in parts: for workers, for grading."""
    waited = sum(outcome.latency_s for outcome in results.outcomes)
    graded = sum(outcome.grading_s for outcome in results.outcomes)
    grading = results.seconds * (graded / waited if waited else 1.0)
    return {
        "reward_seconds": round(results.seconds, 3),
        "ahead_seconds": round(results.ahead, 3),
        "worker_seconds": round(results.seconds - grading, 3),
        "grading_seconds": round(grading, 3),
    }


def validation_scalars(validation: Mapping[str, Any]) -> dict[str, float]:
    """Return a validation's known figures by flat names, such as `validation/suite/NAME`."""
    flat = {key: value for key, value in validation.items() if key not in NESTED}
    for name, prefix in NESTED.items():
        flat |= {f"{prefix}/{key}": value for key, value in validation.get(name, {}).items()}
    return {f"validation/{key}": float(value) for key, value in flat.items() if value is not None}


def worker_shares(results: StepResults, read: ReadPlan) -> dict[str, float]:
    """Return each worker's share of all steps in the plans that could be read."""
    habits = _habits_of(map(read, results.items))
    return dict(habits.workers) if habits else {}


def mean(values: Sequence[float]) -> float | None:
    """Return the mean of some values; None if there are no values.

    >>> mean([]), mean([1.0, 2.0])
    (None, 1.5)
    """
    return sum(values) / len(values) if values else None


@dataclass
class TrainingState:
    """A training's state that TRL does not keep: best validation, spending, reason to end."""

    best: float | None = None
    best_step: int = 0
    since: int = 0  # fully graded validations since the best one
    unread: int = 0  # consecutive steps without a readable plan
    validation: Validation | None = None  # the latest step's; None if none was made
    spent: Decimal = Decimal(0)  # dollars when the running step began
    dearest: Decimal = Decimal(0)  # maximum dollars of a step in this session, without validation
    validating: Decimal = Decimal(0)  # maximum dollars of a validation, cached calls included
    ended: str = ""  # why training ended before its last step; empty while it has not
    asked_to_stop: bool = False
    generating: float = 0.0  # seconds of generation in the running step
    resampled: dict[str, float] = field(default_factory=dict[str, float])  # figures of `Resampling`
    line: dict[str, Any] = field(default_factory=dict[str, Any])


def replay_state(lines: Sequence[Mapping[str, Any]]) -> TrainingState:
    """Return a training's state after the steps in these lines of metrics.jsonl."""
    state = TrainingState()
    for line in lines:
        note_step(state, line)
        note_validation(state, line["step"], line.get("validation"))
    return state


def note_step(state: TrainingState, line: Mapping[str, Any]) -> None:
    """Count successive steps without a readable plan, in `state`; ignore lines without plans."""
    if "parsed" in line:
        state.unread = 0 if line["parsed"] else state.unread + 1


def note_validation(state: TrainingState, step: int, validation: Validation | None) -> bool:
    """Record a step's validation in `state`; return whether it is the best so far."""
    state.validation = validation
    if validation is None:
        return False
    state.validating = max(state.validating, Decimal(str(validation.get("usd") or 0)))
    worth = validation.get("worth", sure_share(validation))
    if worth is not None and (state.best is None or worth > state.best):
        state.best, state.best_step, state.since = worth, step, 0
        return True
    state.since += not validation.get("masked")
    return False


def sure_share(validation: Validation) -> float | None:
    """Return right answers as a share of all held-out questions; None if no question has a grade.

    As a share of graded questions alone, a validation with few, lucky grades could stay the best.

    >>> sure_share({"correct": 1.0, "masked": 0.75}), sure_share({"correct": 0.5, "masked": 0.0})
    (0.25, 0.5)
    """
    correct = validation.get("correct")
    return None if correct is None else correct * (1 - (validation.get("masked") or 0.0))


def cut_short(validation: Validation) -> bool:
    """Return whether the spending limit cut a validation short."""
    return bool(validation.get("status/budget"))


def validation_due(config: TrainingConfig, step: int) -> bool:
    """Return whether a step has a validation: every `validation.every`-th step, and the last."""
    return step % config.validation.every == 0 or step == int(config.grpo["max_steps"])


def owed_validation(
    config: TrainingConfig, lines: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the last line of metrics.jsonl if its due validation was not made, else None."""
    if not lines or "validation" in lines[-1] or not validation_due(config, lines[-1]["step"]):
        return None
    return lines[-1]


def ungraded_text(validation: Validation) -> str:
    """Return a sentence on how many held-out questions have no grade, and why."""
    count = round(validation["masked"] * validation["questions"])
    reasons = [
        name.removeprefix("status/").replace("_", " ")
        for name, share in validation.items()
        if name.startswith("status/") and share and name not in GRADED
    ]
    questions = f"{count} of {validation['questions']} held-out questions"
    return f"{questions} have no grade ({', '.join(reasons)})"
