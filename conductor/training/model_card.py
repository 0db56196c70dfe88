"""What a checkpoint carries beside its weights: podium.json, its card, and its release."""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import eq
from pathlib import Path
from statistics import fmean, median_low
from typing import Any

import numpy as np
from huggingface_hub import ModelCard
from safetensors.numpy import load_file as _load_file  # pyright: ignore[reportUnknownVariableType]
from safetensors.numpy import save_file as _save_file  # pyright: ignore[reportUnknownVariableType]

from podium.conductor import checkpoint
from podium.conductor.embedded import open_checkpoint
from podium.conductor.profile_policy import WEIGHTS
from podium.conductor.prompt import first_word
from podium.conductor.training import run_folder
from podium.conductor.training.given_plans import PLANS
from podium.conductor.training.job import TrainingJob
from podium.conductor.training.profile_training import HELD_OUT
from podium.conductor.verdict_reward import study_info
from podium.harness.errors import UserError
from podium.harness.files import refuse_unwritable
from podium.harness.text import escape_markdown, pluralise

NOTHING_YET = "Nothing was sampled yet."
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
LOGS = (run_folder.MANIFEST, run_folder.METRICS, run_folder.WARM)  # of each seed
KEPT = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
        "chat_template.jinja", "podium.json", "README.md")  # fmt: skip
# Of a checkpoint; without `training_args.bin`, a pickle that nobody should have to trust.
DESCRIBED = ("podium.json", "README.md")  # of adapters, whose other files are their base's
Prompts = Callable[[Path], Sequence[str]]  # a run's folder -> prompts of its validation
RELEASE_NOTE = (Path(__file__).parent / "release_note.md").read_text(encoding="utf-8")


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
        workers=max(training.groups, key=len, default=spec.names),  # its numbers are what counts
        cards_sha256=checkpoint.cards_digest(cards) if config.form.cards else "",
        openings=tuple(sorted(set(map(first_word, cards)))),
        suites=tuple(splits),
        data={name: split.suite.data_revision for name, split in splits.items()},
        graders={name: split.suite.version for name, split in splits.items()},
        taught=checkpoint.taught_digests(asked, training.bare),
        seed=config.run.seed,
        reward=config.reward.name,
        code=run_folder.code_revision(),
        prices=training.book.name,
        steps=step,
        rounds=1 if config.recursion else 0,
        summary=config.title,
        drawn=not training.shown.whole,
    )
    if training.verdicts:
        study = training.verdicts
        checkpoint.write_study(study_info(study, config.form, info.seed), folder)
        info = replace(
            info,
            role="study",
            graders={},  # its verdicts were recorded
            suites=(study.suite,) if study.suite else info.suites,
            split=f"{study.split} (seed {study.split_seed}) of {study.source}",
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
    return CARD.format(
        pool=spec.name,
        label=" ".join(filter(None, (rehearsed, HELD if config.form.cards else ""))),
        model=_made_of(config.model.path),
        steps=step,
        seed=config.run.seed,
        reward=config.reward.name,
        worth=WORTH[config.reward.name],
        pool_sha=spec.sha256[:16],
        workers=(
            f"{len(training.groups)} pools of {len(spec.names)} in all"
            if training.groups
            else ", ".join(spec.names)
        ),
        prices=training.book.name,
        prices_sha=training.book.sha256[:16],
        code=manifest["code_revision"] or "not a checkout",
        data="\n".join(rows),
        left_out=training.left_out,
        validation=_validation(spec.label, validation),
        said=leaks_text(training.out),
        config=json.dumps(manifest["config"], indent=1, default=str),
        versions=", ".join(f"{name} {version}" for name, version in manifest["versions"].items()),
    )


def _made_of(path: str) -> str:
    origins = {
        "": "random weights (Qwen2 architecture)",
        checkpoint.BASE: checkpoint.ORIGIN,
    }
    return origins.get(path, path)


def _validation(label: str, found: Mapping[str, Any] | None) -> str:
    if not found:
        return "Not made at this step."
    grade = "unknown" if found["correct"] is None else f"{found['correct']:.3f}"
    return (
        f"Greedy, {found['questions']} held-out questions, {label} workers: right {grade}, worker "
        f"calls {found['calls']:.2f} a question, plans read {found['parsed']:.3f}.{OPTIMISTIC}"
    )


def leaks_text(run: Path) -> str:
    """Return which share of a run's sampled plans hold the answer, where that can be told."""
    lines = run_folder.read_lines(run / PLANS)
    told = [line["leaked"] for line in lines if line.get("leaked") is not None]
    share = f"{fmean(told):.1%}" if told else "an unknown share"
    return f"Of {len(lines)} sampled plans, {share} hold the answer." if lines else NOTHING_YET


@dataclass(frozen=True, slots=True, order=True)
class SeedRun:
    """One finished run, ordered by its best validation and its seed."""

    correct: float  # best validation
    seed: int
    folder: Path
    step: int


def read_seed(run: Path) -> SeedRun:
    """Return what a run came to; UserError where it is none, or has not ended."""
    config = run_folder.config_of(run_folder.read_manifest(run))
    if not run_folder.training_finished(config, run):
        raise UserError(f"The training in {run} has not ended: --resume goes on.")
    state = run_folder.replay_state(run_folder.read_lines(run / run_folder.METRICS))
    if state.best is None:
        raise UserError(
            f"No validation of the training in {run} has a grade: there is no best checkpoint."
        )
    return SeedRun(state.best, config.run.seed, run, state.best_step)


POLICY_CARD = (Path(__file__).parent / "policy_card.md").read_text(encoding="utf-8")


def policy_card(training: TrainingJob, step: int, validation: Mapping[str, Any] | None) -> str:
    """Return the card of a policy that plans by profiles: provenance only."""
    config, book, splits = training.config, training.book, training.splits
    given = config.model.profiled
    if given is None:
        raise UserError(f"Config {config.name!r} trains no policy that plans by profiles.")
    rows = [
        f"| {name} | {one.suite.version} | {one.suite.data_revision} | {len(one.questions)} |"
        for name, one in splits.items()
    ]
    said = POLICY_CARD.format(
        weights=f"{WEIGHTS:,}",
        step=step,
        seed=config.run.seed,
        cost_weight=given.cost_weight,
        cost_calls=f"{given.cost_calls:g}",
        pools=config.pool.drawn,
        workers=len(training.spec.names),
        held_out=HELD_OUT,
        prices=book.name,
        prices_sha=book.sha256[:16],
        code=run_folder.code_revision() or "not a checkout",
        data="\n".join(rows),
        left_out=training.left_out,
        validation=_validation(training.spec.label, validation),
    )
    return escape_markdown(said)


def release_policy(runs: Sequence[Path], to: Path) -> str:
    """Write the median seed's best policy to `to`, with the logs of all seeds."""
    seeds = sorted(map(read_seed, runs), key=lambda one: one.seed)
    _refuse_strangers(seeds)
    chosen, part = median_low(seeds), to.with_name(f"{to.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(chosen.folder / run_folder.BEST, part)
    values = ", ".join(f"seed {one.seed}: {one.correct:.3f}" for one in seeds)
    which = f"seed {chosen.seed} of {pluralise(len(seeds), 'seed')}"
    with (part / "README.md").open("a") as card:
        card.write(
            f"\n## Released\n\n{which[0].upper()}{which[1:]}: the median by validation "
            f"({values}). Each value is the highest of its seed's validations, so it is "
            "optimistic. The log of every seed is in `log/`.\n"
        )
    for one in seeds:
        shutil.copytree(one.folder, part / LOG / f"seed-{one.seed}", ignore=_all_but(LOGS))
    shutil.rmtree(to, ignore_errors=True)
    part.rename(to)
    return f"{to}: {which} ({values})."


def release(runs: Sequence[Path], to: Path, prompts: Prompts, untrained: Path | None = None) -> str:
    """Write the median seed's best checkpoint to `to`, and its warm start to `untrained`."""
    seeds = sorted(map(read_seed, runs), key=lambda one: one.seed)
    _refuse_strangers(seeds)
    chosen = median_low(seeds)
    asked = prompts(chosen.folder)
    said = _write(chosen.folder / run_folder.BEST, to, asked, seeds)
    if untrained is not None:
        said += " " + _write(chosen.folder / run_folder.START, untrained, asked, seeds)
    return said


def _refuse_strangers(seeds: Sequence[SeedRun]) -> None:
    if len({one.seed for one in seeds}) < len(seeds):
        raise UserError("Two of these runs have the same seed: name each seed once.")
    manifests = [run_folder.read_manifest(one.folder) for one in seeds]
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
    adapted = next(filter(checkpoint.stands_on_base, (source / run_folder.MERGED, source)), None)
    shutil.copytree(source, part, ignore=_all_but(DESCRIBED if adapted else KEPT))
    if adapted:
        said = json.loads((adapted / checkpoint.ADAPTERS).read_text())
        said["base_model_name_or_path"] = checkpoint.PINNED  # without the folder of this machine
        (part / checkpoint.ADAPTERS).write_text(json.dumps(said, indent=1) + "\n")
    weights = checkpoint.ADAPTED if adapted else checkpoint.WEIGHTS
    equal, kind = _weights((adapted or source) / weights, part, prompts)
    about, seed = checkpoint.read_info(source), median_low(seeds).seed
    which = f"seed {seed} of {pluralise(len(seeds), 'seed')}"
    what, reward = f"{about.summary}, {about.reward} reward", about.reward
    if source.name != run_folder.BEST:
        what, reward = "its warm start, no reward yet", ""
    checkpoint.write_info(replace(about, summary=f"{what}, {which}", reward=reward), part)
    values = ", ".join(f"seed {one.seed}: {one.correct:.3f}" for one in seeds)
    note = RELEASE_NOTE.format(
        seed=seed, seeds=len(seeds), values=values, kind=kind, equal=equal, asked=len(prompts)
    )
    with (part / "README.md").open("a") as card:
        card.write(note)
    for one in seeds:
        shutil.copytree(one.folder, part / "log" / f"seed-{one.seed}", ignore=_all_but(LOGS))
    shutil.rmtree(to, ignore_errors=True)
    part.rename(to)
    size = sum(one.stat().st_size for one in to.rglob("*") if one.is_file()) / 1e6
    return f"{to}: {which} ({values}), {kind}, {size:.1f} MB."


def _all_but(kept: Sequence[str]) -> Callable[[str, list[str]], list[str]]:
    return lambda _, names: [name for name in names if name not in kept]


def _weights(source: Path, part: Path, prompts: Sequence[str]) -> tuple[int, str]:
    """Write weights as float16 where every greedy plan stays as it is, else as they are."""
    written = part / source.name
    shutil.copyfile(source, written)
    whole = greedy_plans(part, prompts)
    half = {name: held.astype(np.float16) for name, held in _load_file(source).items()}
    _save_file(half, written, metadata={"format": "pt"})
    equal = sum(map(eq, whole, greedy_plans(part, prompts)))
    if equal == len(prompts):
        return equal, "float16"
    shutil.copyfile(source, written)
    return len(prompts), "float32"


def greedy_plans(folder: Path, prompts: Sequence[str]) -> list[str]:
    """Return a checkpoint's greedy completions, as the embedded provider makes them."""
    found = open_checkpoint(str(folder))
    return [found.greedy(prompt, 128) for prompt in prompts]


CARD_FILE = "README.md"
RESULTS = ".eval_results"
LOG = "log"  # of every seed, as the card of a release says
DATASET = re.compile(r"([\w.-]+/[\w.-]+)@")
BASE = f"HuggingFaceTB/{checkpoint.BASE}"
ABOUT: Mapping[str, Any] = {"library_name": "transformers", "pipeline_tag": "text-generation"}


def write_model(folder: Path, out: Path, results: str, files: Mapping[str, str]) -> None:
    """Write a checkpoint's files, its card with `results`, and what the Hub reads of `files`."""
    if out.exists() or out.is_symlink():
        raise UserError(f"{out} exists already, and nothing is overwritten: name another --out.")
    about = checkpoint.read_info(folder)
    if not (folder / CARD_FILE).is_file():
        raise UserError(
            f"{folder} has no {CARD_FILE}: name a checkpoint that `podium train` wrote."
        )
    card = hub_card(folder, about, results)
    refuse_unwritable(out, "--out")
    out.mkdir(parents=True)
    kept = {*KEPT, checkpoint.WEIGHTS, checkpoint.ADAPTERS, checkpoint.ADAPTED, checkpoint.STUDY}
    for path in folder.iterdir():
        if path.name in kept:
            shutil.copyfile(path, out / path.name)
    if (folder / LOG).is_dir():
        shutil.copytree(folder / LOG, out / LOG)
    (out / CARD_FILE).write_text(card, encoding="utf-8")
    if files:
        (out / RESULTS).mkdir()
    for name, content in files.items():
        (out / RESULTS / name).write_text(content, encoding="utf-8")


def hub_card(folder: Path, about: checkpoint.CheckpointInfo, results: str) -> str:
    """Return the checkpoint's own card with what the Hub asks of one, and its results."""
    card = ModelCard((folder / CARD_FILE).read_text(encoding="utf-8"))
    told = dict(ABOUT)
    if folder.parent == checkpoint.RELEASED:
        told["license"] = "apache-2.0"  # ours; of other weights their owner says it
    if checkpoint.stands_on_base(folder):
        told |= {"base_model": BASE, "library_name": "peft"}
    if taught := [found[1] for one in about.data.values() if (found := DATASET.match(one))]:
        told["datasets"] = sorted(set(taught))
    for name, value in told.items():
        card.data[name] = value
    card.text = f"{card.text.rstrip()}\n\n## Results\n\n{results}"
    return str(card)
