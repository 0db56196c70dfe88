"""A checkpoint's podium.json and model card, and its release with podium or for the Hub."""

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
HELD = """It identifies workers by their cards. With any pool its decoder
writes only plans of the workers shown; in training its output was not constrained."""
WORTH = {
    "paper": "1 right, 0.5 wrong, 0 unreadable (arXiv 2512.04388, section 3.1)",
    "plain": "1 right, 0 otherwise",
    "cost-aware": "as published, less a share for cost if the answer is right (podium's own)",
}
OPTIMISTIC = """

A run's `best` is the checkpoint with the highest of all its validations, so that figure
is a maximum and optimistic, more so if a run was validated often. Quote results on questions that
selected nothing: the suites' `eval` split, or the part of a study's split kept for judging."""
LOGS = (run_folder.MANIFEST, run_folder.METRICS, run_folder.WARM)  # files of each seed
KEPT = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
        "chat_template.jinja", "podium.json", "README.md")  # fmt: skip
# Files to release; not `training_args.bin`, which is a pickle and could run code.
DESCRIBED = ("podium.json", "README.md")  # of adapters: the other files are the base model's
Prompts = Callable[[Path], Sequence[str]]  # a run's folder -> prompts of its validation
RELEASE_NOTE = (Path(__file__).parent / "release_note.md").read_text(encoding="utf-8")


def describe_checkpoint(
    training: TrainingJob, folder: Path, step: int, validation: Mapping[str, Any] | None
) -> None:
    """Write podium.json and README.md into a checkpoint's folder."""
    config, spec, splits = training.config, training.spec, training.splits
    cards = [worker.card for worker in spec.workers] if config.form.cards else []
    questions = [question for split in splits.values() for question in split.questions.values()]
    info = checkpoint.CheckpointInfo(
        form=config.form,
        pool=spec.name,
        workers=max(training.groups, key=len, default=spec.names),  # largest pool: only size counts
        cards_sha256=checkpoint.cards_digest(cards) if config.form.cards else "",
        openings=tuple(sorted(set(map(first_word, cards)))),
        suites=tuple(splits),
        data={name: split.suite.data_revision for name, split in splits.items()},
        graders={name: split.suite.version for name, split in splits.items()},
        taught=checkpoint.taught_digests(questions, training.bare),
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
            graders={},  # no grader was used: verdicts were recorded
            suites=(study.suite,) if study.suite else info.suites,
            split=f"{study.split} (seed {study.split_seed}) of {study.source}",
            taught=(),  # digests of cut texts would match nothing; study.json has the ids
        )
    checkpoint.write_info(info, folder)
    (folder / "README.md").write_text(escape_markdown(model_card(training, step, validation)))


def model_card(training: TrainingJob, step: int, validation: Mapping[str, Any] | None) -> str:
    """Return a checkpoint's model card: how it was trained and validated, without questions."""
    manifest, config, spec = run_folder.job_manifest(training), training.config, training.spec
    rows = [
        f"| {name} | {entry['version']} | {entry['data_revision']} | {entry['train_questions']} | "
        f"`{entry['train_ids_sha256'][:16]}` |"
        for name, entry in manifest["data"].items()
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


def _validation(label: str, data: Mapping[str, Any] | None) -> str:
    if not data:
        return "Not made at this step."
    grade = "unknown" if data["correct"] is None else f"{data['correct']:.3f}"
    return (
        f"Greedy, {data['questions']} held-out questions, {label} workers: right {grade}, worker "
        f"calls {data['calls']:.2f} a question, plans read {data['parsed']:.3f}.{OPTIMISTIC}"
    )


def leaks_text(run: Path) -> str:
    """Return a sentence on the share of a training's sampled plans that contain the answer."""
    lines = run_folder.read_lines(run / PLANS)
    leaks = [line["leaked"] for line in lines if line.get("leaked") is not None]
    share = f"{fmean(leaks):.1%}" if leaks else "an unknown share"
    return f"Of {len(lines)} sampled plans, {share} hold the answer." if lines else NOTHING_YET


@dataclass(frozen=True, slots=True, order=True)
class SeedRun:
    """The result of one finished training; ordered by its best validation, then by its seed."""

    correct: float  # score of its best validation, by which training chose `best/`
    seed: int
    folder: Path
    step: int


def read_seed(run: Path) -> SeedRun:
    """Return the result of a folder's training; UserError if it has none or has not ended."""
    config = run_folder.config_of(run_folder.read_manifest(run))
    if not run_folder.training_finished(config, run):
        raise UserError(f"The training in {run} has not ended. Continue it with --resume.")
    state = run_folder.replay_state(run_folder.read_lines(run / run_folder.METRICS))
    if state.best is None:
        raise UserError(
            f"No validation of the training in {run} has a grade, so it has no best checkpoint. "
            "Leave it out, or train again."
        )
    return SeedRun(state.best, config.run.seed, run, state.best_step)


POLICY_CARD = (Path(__file__).parent / "policy_card.md").read_text(encoding="utf-8")


def policy_card(training: TrainingJob, step: int, validation: Mapping[str, Any] | None) -> str:
    """Return the model card of a policy that plans by workers' profiles: how it was trained."""
    config, book, splits = training.config, training.book, training.splits
    options = config.model.profiled
    if options is None:
        raise UserError(f"Config {config.name!r} trains no policy: add [model.profiled] to it.")
    rows = [
        f"| {name} | {split.suite.version} | {split.suite.data_revision} | {len(split.questions)} |"
        for name, split in splits.items()
    ]
    card = POLICY_CARD.format(
        weights=f"{WEIGHTS:,}",
        step=step,
        seed=config.run.seed,
        cost_weight=options.cost_weight,
        cost_calls=f"{options.cost_calls:g}",
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
    return escape_markdown(card)


def release_policy(runs: Sequence[Path], to: Path) -> str:
    """Copy the policy of the median training to `to`, with the logs of all trainings.

    The trainings differ only by seed; each counts with the best of its validations. Returns a
    sentence that says which seed was chosen.
    """
    seeds = sorted(map(read_seed, runs), key=lambda run: run.seed)
    _refuse_strangers(seeds)
    chosen, partial = median_low(seeds), to.with_name(f"{to.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(chosen.folder / run_folder.BEST, partial)
    values = ", ".join(f"seed {run.seed}: {run.correct:.3f}" for run in seeds)
    choice = f"seed {chosen.seed} of {pluralise(len(seeds), 'seed')}"
    with (partial / "README.md").open("a") as card:
        card.write(
            f"\n## Released\n\n{choice[0].upper()}{choice[1:]}: the median by validation "
            f"({values}). Each value is the highest of its seed's validations, so it is "
            "optimistic. The log of every seed is in `log/`.\n"
        )
    for run in seeds:
        shutil.copytree(run.folder, partial / LOG / f"seed-{run.seed}", ignore=_all_but(LOGS))
    shutil.rmtree(to, ignore_errors=True)
    partial.rename(to)
    return f"{to}: {choice} ({values})."


def release(runs: Sequence[Path], to: Path, prompts: Prompts, untrained: Path | None = None) -> str:
    """Copy the best checkpoint of a training to `to`, and its warm start to `untrained`.

    Of several trainings that differ only by seed, the one with the median validation score is
    released. Returns text to print: the folders, the chosen seed, and all scores.
    """
    seeds = sorted(map(read_seed, runs), key=lambda run: run.seed)
    _refuse_strangers(seeds)
    chosen = median_low(seeds)
    validation_prompts = prompts(chosen.folder)
    text = _write(chosen.folder / run_folder.BEST, to, validation_prompts, seeds)
    if untrained is not None:
        text += " " + _write(chosen.folder / run_folder.START, untrained, validation_prompts, seeds)
    return text


def _refuse_strangers(seeds: Sequence[SeedRun]) -> None:
    if len({run.seed for run in seeds}) < len(seeds):
        raise UserError("Two of these runs have the same seed. Name each seed once.")
    manifests = [run_folder.read_manifest(run.folder) for run in seeds]
    for manifest in manifests:
        manifest["config"]["run"].pop("seed")
        manifest["config"]["model"].pop("path")  # a second stage starts from its own seed's model
    if len({json.dumps(manifest["config"], sort_keys=True) for manifest in manifests}) > 1:
        raise UserError(
            "These runs have different configurations. Release each of them separately."
        )
    if len({json.dumps(run_folder.graders_in(data), sort_keys=True) for data in manifests}) > 1:
        raise UserError(
            "These runs were rewarded by different grader versions. Release each of them "
            "separately."
        )


def _write(source: Path, to: Path, prompts: Sequence[str], seeds: Sequence[SeedRun]) -> str:
    partial = to.with_name(f"{to.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    adapted = next(filter(checkpoint.stands_on_base, (source / run_folder.MERGED, source)), None)
    shutil.copytree(source, partial, ignore=_all_but(DESCRIBED if adapted else KEPT))
    if adapted:
        data = json.loads((adapted / checkpoint.ADAPTERS).read_text())
        data["base_model_name_or_path"] = checkpoint.PINNED  # not this machine's path
        (partial / checkpoint.ADAPTERS).write_text(json.dumps(data, indent=1) + "\n")
    weights = checkpoint.ADAPTED if adapted else checkpoint.WEIGHTS
    equal, kind = _weights((adapted or source) / weights, partial, prompts)
    about, seed = checkpoint.read_info(source), median_low(seeds).seed
    choice = f"seed {seed} of {pluralise(len(seeds), 'seed')}"
    origin, reward = f"{about.summary}, {about.reward} reward", about.reward
    if source.name != run_folder.BEST:
        origin, reward = "its warm start, no reward yet", ""
    checkpoint.write_info(replace(about, summary=f"{origin}, {choice}", reward=reward), partial)
    values = ", ".join(f"seed {run.seed}: {run.correct:.3f}" for run in seeds)
    note = RELEASE_NOTE.format(
        seed=seed, seeds=len(seeds), values=values, kind=kind, equal=equal, asked=len(prompts)
    )
    with (partial / "README.md").open("a") as card:
        card.write(note)
    for run in seeds:
        shutil.copytree(run.folder, partial / "log" / f"seed-{run.seed}", ignore=_all_but(LOGS))
    shutil.rmtree(to, ignore_errors=True)
    partial.rename(to)
    size = sum(file.stat().st_size for file in to.rglob("*") if file.is_file()) / 1e6
    return f"{to}: {choice} ({values}), {kind}, {size:.1f} MB."


def _all_but(kept_names: Sequence[str]) -> Callable[[str, list[str]], list[str]]:
    return lambda _, names: [name for name in names if name not in kept_names]


def _weights(source: Path, folder: Path, prompts: Sequence[str]) -> tuple[int, str]:
    """Copy weights, as float16 if no greedy plan changes; return number of equal plans, dtype."""
    written = folder / source.name
    shutil.copyfile(source, written)
    full_plans = greedy_plans(folder, prompts)
    half = {name: values.astype(np.float16) for name, values in _load_file(source).items()}
    _save_file(half, written, metadata={"format": "pt"})
    equal = sum(map(eq, full_plans, greedy_plans(folder, prompts)))
    if equal == len(prompts):
        return equal, "float16"
    shutil.copyfile(source, written)
    return len(prompts), "float32"


def greedy_plans(folder: Path, prompts: Sequence[str]) -> list[str]:
    """Return a checkpoint's greedy completion of each prompt, by the provider `embedded`."""
    model = open_checkpoint(str(folder))
    return [model.greedy(prompt, 128) for prompt in prompts]


CARD_FILE = "README.md"
RESULTS = ".eval_results"
LOG = "log"  # folder of the logs of every seed, to which a release's card refers
DATASET = re.compile(r"([\w.-]+/[\w.-]+)@")
BASE = f"HuggingFaceTB/{checkpoint.BASE}"
ABOUT: Mapping[str, Any] = {"library_name": "transformers", "pipeline_tag": "text-generation"}


def write_model(folder: Path, out: Path, results: str, files: Mapping[str, str]) -> None:
    """Write a checkpoint as a folder for the Hugging Face Hub: files, and a card with results."""
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
    names = {*KEPT, checkpoint.WEIGHTS, checkpoint.ADAPTERS, checkpoint.ADAPTED, checkpoint.STUDY}
    for path in folder.iterdir():
        if path.name in names:
            shutil.copyfile(path, out / path.name)
    if (folder / LOG).is_dir():
        shutil.copytree(folder / LOG, out / LOG)
    (out / CARD_FILE).write_text(card, encoding="utf-8")
    if files:
        (out / RESULTS).mkdir()
    for name, content in files.items():
        (out / RESULTS / name).write_text(content, encoding="utf-8")


def hub_card(folder: Path, about: checkpoint.CheckpointInfo, results: str) -> str:
    """Return a checkpoint's model card with the Hugging Face Hub's metadata and with `results`."""
    card = ModelCard((folder / CARD_FILE).read_text(encoding="utf-8"))
    fields = dict(ABOUT)
    if folder.parent == checkpoint.RELEASED:
        fields["license"] = "apache-2.0"  # podium's own; other weights have their owner's license
    if checkpoint.stands_on_base(folder):
        fields |= {"base_model": BASE, "library_name": "peft"}
    if taught := [match[1] for text in about.data.values() if (match := DATASET.match(text))]:
        fields["datasets"] = sorted(set(taught))
    for name, value in fields.items():
        card.data[name] = value
    card.text = f"{card.text.rstrip()}\n\n## Results\n\n{results}"
    return str(card)
