"""What a checkpoint carries beside its weights: podium.json, its card, and its release."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from safetensors.numpy import load_file as _load_file  # pyright: ignore[reportUnknownVariableType]
from safetensors.numpy import save_file as _save_file  # pyright: ignore[reportUnknownVariableType]

from conductor import checkpoint
from conductor.embedded import open_checkpoint
from conductor.plan_format import read_plan
from conductor.prompt import first_word
from conductor.qwen2 import DecodeOptions, decode
from conductor.training import run_folder
from conductor.training.data import ENDINGS, PHRASES
from conductor.training.job import TrainingJob
from conductor.training.metrics import replay_state
from conductor.verdict_reward import study_info
from harness.errors import UserError
from harness.ledger.logs import verdict
from harness.ledger.runs import workflow_of
from harness.ledger.system_runs import entries, load_runs
from harness.ledger.totals import SystemRun
from harness.records import PODIUM, Question
from harness.rewards.splits import leaks_answer
from harness.text import escape_markdown, pluralise
from harness.workflow import Malformed, Workflow

GRAMMAR = frozenset(
    phrase + ending for phrases in PHRASES.values() for phrase in phrases for ending in ENDINGS
)
"""Every subtask that a warm start can have written."""
_WORD = re.compile(r"[^\W_]+")
VOCABULARY = frozenset(word for one in GRAMMAR for word in _WORD.findall(one.lower()))  # its words
CARD = (Path(__file__).parent / "model_card.md").read_text(encoding="utf-8")
HELD = """It knows workers by their cards. Seated on any pool its
decoder writes nothing but plans of the workers shown; in training it wrote what it liked."""
WORTH = {
    "paper": "1 right, 0.5 wrong, 0 unreadable (arXiv 2512.04388, section 3.1)",
    "plain": "1 right, 0 otherwise",
    "cost-aware": "as published, less a share for cost where the answer is right (podium's own)",
}
OPTIMISTIC = """

A run's `best` is the checkpoint with the highest of all validations that were made, so that figure
is a maximum and optimistic, and the more so the more often a run was validated. Quote what picked
nothing: the suites' `eval` split, or what a study's split keeps for judging."""
LOGS = (run_folder.MANIFEST, run_folder.METRICS, run_folder.WARM, run_folder.CPU)  # of each seed
KEPT = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
        "chat_template.jinja", "podium.json", "README.md")  # fmt: skip
# Of a checkpoint; without `training_args.bin`, a pickle that nobody should have to trust.
Prompts = Callable[[Path], Sequence[str]]  # a run's folder -> prompts of its validation
RELEASE_NOTE = (Path(__file__).parent / "release_note.md").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class SaidPlan:
    """One plan that could be read."""

    subtasks: tuple[str, ...]  # those with words
    right: float | None
    leaked: bool | None  # whether a subtask holds the answer; None where nobody can tell


@dataclass(frozen=True, slots=True)
class Wording:
    """What some plans say."""

    plans: int
    subtasks: int
    distinct: int
    new: int  # of the distinct ones, those that the warm start's grammar cannot have written
    share_new: float | None  # of all subtasks, those that are new; None where there are none
    foreign: int  # of the new ones, those with a word that the grammar does not have
    commonest: tuple[str, ...]  # the new ones that are said most often, three at most
    leaked: float | None  # share of the plans that hold the answer, of those where it can be told
    right: float | None  # mean grade of the plans that were graded
    right_unleaked: float | None  # the same without the plans that hold the answer


def wording(said: Sequence[SaidPlan]) -> Wording:
    """Return what plans say.

    >>> wording([SaidPlan(("Solve the question.", "Add 3."), 1.0, False)]).new
    1
    """
    counts = Counter(subtask for plan in said for subtask in plan.subtasks)
    new = Counter({one: count for one, count in counts.items() if one not in GRAMMAR})
    known = [plan.leaked for plan in said if plan.leaked is not None]
    total = counts.total()
    return Wording(
        plans=len(said),
        subtasks=total,
        distinct=len(counts),
        new=len(new),
        share_new=new.total() / total if total else None,
        foreign=sum(bool({*_WORD.findall(one.lower())} - VOCABULARY) for one in new),
        commonest=tuple(one for one, _ in new.most_common(3)),
        leaked=fmean(known) if known else None,
        right=_right(said),
        right_unleaked=_right([plan for plan in said if not plan.leaked]),
    )


def _right(said: Sequence[SaidPlan]) -> float | None:
    graded = [plan.right for plan in said if plan.right is not None]
    return fmean(graded) if graded else None


def said_in_training(folder: Path) -> list[SaidPlan]:
    """Return the sampled plans of a training's folder; UserError where it kept no words."""
    path = folder / run_folder.MANIFEST
    if not path.is_file():
        raise UserError(f"{folder} is no training: it has no {run_folder.MANIFEST}.")
    manifest: dict[str, Any] = json.loads(path.read_text())
    form, workers = run_folder.config_of(manifest).form, tuple(manifest["pool"]["workers"])
    found: list[SaidPlan] = []
    for line in run_folder.read_lines(folder / run_folder.PLANS):
        if "completion" not in line:
            raise UserError(f"{folder} kept no words of plans: its questions are not published.")
        shown = tuple(line.get("workers") or workers)
        plan = read_plan(form, line["completion"], shown)
        if not isinstance(plan, Malformed):
            found.append(_said(plan, line.get("correct"), line.get("leaked")))
    return found


def said_in_logs(folder: Path) -> list[SaidPlan]:
    """Return the plans of an evaluation's logs; those that are withheld have no words."""
    return said_by(load_runs([folder])[0])


def said_by(system_runs: Iterable[SystemRun]) -> list[SaidPlan]:
    """Return the plans of some systems' runs."""
    found: list[SaidPlan] = []
    for entry in chain.from_iterable(entries(one.paths) for one in system_runs):
        sample: dict[str, Any] = entry.sample
        metadata: dict[str, Any] = sample.get("metadata") or {}
        shape: dict[str, Any] = metadata.get(PODIUM) or {}
        plan = workflow_of(shape.get("plan")) if entry.current else None
        if plan is None:
            continue
        text, target, leaked = sample.get("input"), sample.get("target"), None
        if isinstance(text, str) and isinstance(target, str):
            kind: Any = metadata.get("kind", "text")
            question = Question(str(sample["id"]), text, kind, target=target)
            leaked = leaks_answer(question, [step.subtask for step in plan.steps])
        found.append(_said(plan, verdict(sample), leaked))
    return found


def _said(plan: Workflow, right: float | None, leaked: bool | None) -> SaidPlan:
    return SaidPlan(tuple(step.subtask for step in plan.steps if step.subtask), right, leaked)


def describe_checkpoint(
    training: TrainingJob, folder: Path, step: int, validation: Mapping[str, Any] | None
) -> None:
    """Write podium.json and README.md into a checkpoint's folder."""
    config, spec, splits = training.config, training.spec, training.splits
    cards = [worker.card for worker in spec.workers] if config.form.cards else []
    asked = [one for split in splits.values() for one in split.questions.values()]
    info = checkpoint.CheckpointInfo(
        form=config.form,
        pool=spec.name,
        workers=spec.names,
        cards_sha256=checkpoint.cards_digest(cards) if config.form.cards else "",
        openings=tuple(sorted(set(map(first_word, cards)))),
        suites=tuple(splits),
        data={name: split.suite.data_revision for name, split in splits.items()},
        graders={name: split.suite.version for name, split in splits.items()},
        taught=checkpoint.taught_digests(asked, training.parts.bare),
        seed=config.run.seed,
        reward=config.reward.name,
        code=run_folder.code_revision(),
        prices=training.book.name,
        steps=step,
        rounds=1 if config.recursion else 0,
        summary=config.title,
        drawn=config.pool.shown is not None or config.pool.order == "random",
    )
    if training.verdicts:
        declared = training.verdicts.declared
        checkpoint.write_study(study_info(training.verdicts, config.form, info.seed), folder)
        info = replace(
            info,
            role="study",
            graders={},  # its verdicts were recorded
            suites=(declared.suite,) if declared.suite else info.suites,
            split=f"{declared.split} (seed {declared.split_seed}) of {declared.source}",
            taught=(),  # of cut texts, digests would say nothing; study.json has the ids
        )
    checkpoint.write_info(info, folder)
    (folder / "README.md").write_text(escape_markdown(model_card(training, step, validation)))


def model_card(training: TrainingJob, step: int, validation: Mapping[str, Any] | None) -> str:
    """Return the model card: provenance only, no question's text."""
    manifest, config, spec = run_folder.job_manifest(training), training.config, training.spec
    rows = [
        f"| {name} | {one['version']} | {one['data_revision']} | {one['train_questions']} | "
        f"`{one['train_ids_sha256'][:16]}` |"
        for name, one in manifest["data"].items()
    ]
    rehearsed = "Its workers are rehearsal programs." if spec.label == "rehearsal" else ""
    told = "Not kept: its questions may not be published."
    return CARD.format(
        pool=spec.name,
        label=" ".join(filter(None, (rehearsed, HELD if config.form.cards else ""))),
        model=config.model.path or "random weights (Qwen2 architecture)",
        steps=step,
        seed=config.run.seed,
        reward=config.reward.name,
        worth=WORTH[config.reward.name],
        pool_sha=spec.sha256[:16],
        workers=", ".join(spec.names),
        prices=training.book.name,
        prices_sha=training.book.sha256[:16],
        code=manifest["code_revision"] or "not a checkout",
        data="\n".join(rows),
        left_out=training.left_out,
        validation=_validation(spec.label, validation),
        said=said_text(training.request.out) if training.publishable else told,
        config=json.dumps(manifest["config"], indent=1, default=str),
        versions=", ".join(f"{name} {version}" for name, version in manifest["versions"].items()),
    )


def _validation(label: str, found: Mapping[str, Any] | None) -> str:
    if not found:
        return "Not made at this step."
    grade = "unknown" if found["correct"] is None else f"{found['correct']:.3f}"
    return (
        f"Greedy, {found['questions']} held-out questions, {label} workers: right {grade}, worker "
        f"calls {found['calls']:.2f} a question, plans read {found['parsed']:.3f}.{OPTIMISTIC}"
    )


def said_text(run: Path) -> str:
    """Return how far the subtasks of the plans that a run has sampled so far are its own."""
    if not (run / run_folder.PLANS).is_file():
        return "Nothing was sampled yet."
    found = wording(said_in_training(run))
    told = "" if found.leaked is None else f" {found.leaked:.1%} of the plans hold the answer."
    return (
        f"Of {found.distinct} different subtasks in {found.plans} sampled plans, {found.new} are "
        f"beyond the warm start's grammar, {found.foreign} with a word that it does not have.{told}"
    )


@dataclass(frozen=True, slots=True)
class SeedRun:
    """One finished run."""

    folder: Path
    seed: int
    correct: float  # best validation
    step: int


def read_seed(run: Path) -> SeedRun:
    """Return what a run came to; UserError where it is none, or has not ended."""
    manifest = run / run_folder.MANIFEST
    if not manifest.is_file():
        raise UserError(f"{run} is no training: it has no {run_folder.MANIFEST}.")
    if not run_ended(run):
        raise UserError(f"The training in {run} has not ended: --resume goes on.")
    state = replay_state(run_folder.read_lines(run / run_folder.METRICS))
    if state.best is None:
        raise UserError(
            f"No validation of the training in {run} has a grade: there is no best checkpoint."
        )
    return SeedRun(run, int(json.loads(manifest.read_text())["seed"]), state.best, state.best_step)


def run_ended(run: Path) -> bool:
    """Say whether a training has made all its steps, or has ended by its own rule."""
    if not (run / run_folder.LAST / "podium.json").is_file():
        return False
    config = json.loads((run / run_folder.MANIFEST).read_text())["config"]
    lines = run_folder.read_lines(run / run_folder.METRICS)
    patience = config["validation"]["patience"]
    if patience is not None and replay_state(lines).since >= patience:
        return True
    last = lines[-1] if lines else {"step": 0}
    return last["step"] >= int(config["grpo"]["max_steps"]) and "validation" in last


def median_seed(seeds: Sequence[SeedRun]) -> SeedRun:
    """Return the median seed by validation; of an even number the lower one of the middle two."""
    ranked = sorted(seeds, key=lambda one: (one.correct, one.seed))
    return ranked[(len(ranked) - 1) // 2]


def release(runs: Sequence[Path], to: Path, prompts: Prompts, untrained: Path | None = None) -> str:
    """Write the median seed's best checkpoint to `to`, and its warm start to `untrained`.

    UserError for a run that has not ended, two trainings, or two runs of a seed.
    """
    seeds = sorted(map(read_seed, runs), key=lambda one: one.seed)
    _refuse_strangers(seeds)
    chosen = median_seed(seeds).folder
    asked = prompts(chosen)
    said = _write(chosen / run_folder.BEST, to, asked, seeds)
    if untrained is not None:
        said += " " + _write(chosen / run_folder.START, untrained, asked, seeds)
    return said


def _refuse_strangers(seeds: Sequence[SeedRun]) -> None:
    if len({one.seed for one in seeds}) < len(seeds):
        raise UserError("Two of these runs have the same seed: name each seed once.")
    manifests = [json.loads((one.folder / run_folder.MANIFEST).read_text()) for one in seeds]
    for manifest in manifests:
        manifest["config"]["run"].pop("seed")
        manifest["config"]["model"].pop("path")  # a later training begins with its seed's own
    if len({json.dumps(one["config"], sort_keys=True) for one in manifests}) > 1:
        raise UserError("These runs were trained by different configurations: release each alone.")
    if len({json.dumps(run_folder.graders_in(one), sort_keys=True) for one in manifests}) > 1:
        raise UserError(
            "These runs were rewarded by graders of other versions: release each alone."
        )


def _write(source: Path, to: Path, prompts: Sequence[str], seeds: Sequence[SeedRun]) -> str:
    part = to.with_name(f"{to.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    _copy(source, part, KEPT)
    equal, kind = _weights(source, part, prompts)
    about, seed = checkpoint.read_info(source), median_seed(seeds).seed
    which = f"seed {seed} of {pluralise(len(seeds), 'seed')}"
    what, reward = f"{about.summary}, {about.reward} reward", about.reward
    if source.name != run_folder.BEST:
        what, reward = "its warm start, no reward yet", ""
    checkpoint.write_info(replace(about, summary=f"{what}, {which}", reward=reward), part)
    values = ", ".join(f"seed {one.seed}: {one.correct:.3f}" for one in seeds)
    facts: dict[str, Any] = {"seed": seed, "seeds": len(seeds), "values": values}
    with (part / "README.md").open("a") as card:
        card.write(RELEASE_NOTE.format(**facts, kind=kind, equal=equal, asked=len(prompts)))
    for one in seeds:
        _copy(one.folder, part / "log" / f"seed-{one.seed}", LOGS)
    shutil.rmtree(to, ignore_errors=True)
    part.rename(to)
    size = sum(one.stat().st_size for one in to.rglob("*") if one.is_file()) / 1e6
    return f"{to}: {which} ({values}), {kind}, {size:.1f} MB."


def _copy(source: Path, to: Path, names: Sequence[str]) -> None:
    to.mkdir(parents=True)
    for name in names:
        if (source / name).is_file():
            shutil.copyfile(source / name, to / name)


def _weights(source: Path, part: Path, prompts: Sequence[str]) -> tuple[int, str]:
    """Write weights as float16 where every greedy plan stays as it is, else as they are."""
    tensors = _load_file(source / checkpoint.WEIGHTS)
    half = {name: held.astype(np.float16) for name, held in tensors.items()}
    _save_file(half, part / checkpoint.WEIGHTS, metadata={"format": "pt"})
    both = zip(greedy_plans(source, prompts), greedy_plans(part, prompts), strict=True)
    equal = sum(before == after for before, after in both)
    if equal == len(prompts):
        return equal, "float16"
    shutil.copyfile(source / checkpoint.WEIGHTS, part / checkpoint.WEIGHTS)
    return len(prompts), "float32"


def greedy_plans(folder: Path, prompts: Sequence[str]) -> list[str]:
    """Return a checkpoint's greedy completions, as the embedded provider makes them."""
    found = open_checkpoint(str(folder))
    how = DecodeOptions(max_tokens=128)
    made = (decode(found.model, found.words.tokens(prompt), how) for prompt in prompts)
    return [found.words.text(one.tokens) for one in made]
