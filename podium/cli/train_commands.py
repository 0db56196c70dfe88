"""The commands that train and evaluate learned systems: train, ablate, route."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from podium.cli.arguments import say_listing
from podium.cli.consent import agree_to_run, agree_to_training
from podium.cli.list_commands import controls, whole_catalogue
from podium.harness.errors import UserError
from podium.harness.files import refuse_unwritable, refuse_unwritable_file
from podium.harness.text import columns, fitted_text, pluralise, records, say


def train_command(args: argparse.Namespace) -> int:
    """Train, estimate, plot or release a conductor; return 130 after Ctrl-C, else 0."""
    from podium.conductor.training.config import known_configs, read_config

    if args.list:
        say_listing(args, known_configs(), "\n".join(known_configs()))
        return 0
    if args.plot:
        return _plot(args.plot, args.to or Path("curve.png"))
    if args.release:
        return _release(args)
    if args.config is None:
        raise UserError(f"Name a training config: {', '.join(known_configs())}, or a .toml path.")
    settings = [*args.set] if args.seed is None else [*args.set, f"run.seed={args.seed}"]
    config = read_config(args.config, settings)
    out = args.out or Path("training") / f"{config.name}-seed-{config.run.seed}"
    refuse_unwritable(out, "--out")
    options = {"resume": args.resume, "max_usd": args.max_usd, "dry": args.dry_run}
    training = _found_job(config, out, **options)
    from podium.conductor.training.grpo_options import is_main
    from podium.harness.run.preflight import moved_graders

    # Only the first of several processes prints.
    report: Callable[[object], None] = partial(say, flush=True) if is_main() else lambda text: None
    path = training.config.model.path
    with suppress(UserError):  # raised for a model that is no checkpoint of podium, e.g. of the Hub
        for line in moved_graders([f"conductor@{path}"] if path else [], whole_catalogue()):
            report(line)
    if args.dry_run:
        from podium.conductor.training.training_estimate import estimate_text

        report(fitted_text(estimate_text(training)))
        return 0
    agree_to_training("Its plans", [training] if is_main() else [], out, yes=args.yes)
    try:
        report(_carried_out(training, report))
    except KeyboardInterrupt:
        report("Stopped immediately; --resume continues from the newest checkpoint.")
        return 130
    return 0


def _carried_out(training: Any, report: Callable[[object], None]) -> str:
    if training.config.model.profiled:
        from podium.conductor.training.train_profiled import train_profiled

        return train_profiled(training, report)
    from podium.conductor.training.train import train

    return train(training, report)


def _plot(folders: Sequence[Path], to: Path) -> int:
    """Plot learning curves: an image if `to` is a file, a page if `to` is a folder; return 0."""
    if to.suffix and not to.is_dir():
        refuse_unwritable_file(to, "--to")
        from podium.reports.training_plot import draw_curves
        from podium.reports.training_runs import COLLAPSE

        runs = draw_curves(folders, to)
        say(f"Written to {to}.")
        notes = (note for run in runs for note in run.notes)
        for note in (note for note in notes if COLLAPSE in note):
            say(note)
        return 0
    from podium.reports.site import write_training_site

    say(f"Written to {write_training_site(folders, to).address}")
    return 0


def _release(args: argparse.Namespace) -> int:
    from podium.conductor.training.model_card import release, release_policy  # without torch
    from podium.conductor.training.run_folder import config_of, read_manifest

    if args.to is None:
        raise UserError("--release needs a folder for the checkpoint. Add --to FOLDER.")
    if config_of(read_manifest(args.release[0])).model.profiled:
        say(release_policy(args.release, args.to))
        return 0
    say(release(args.release, args.to, _prompts, args.untrained))
    return 0


def _found_job(config: Any, out: Path, *, studies: bool = True, **options: Any) -> Any:
    from podium.conductor.training.job import find_job

    study = study_for if studies else None
    return find_job(config, out, whole_catalogue(), controls().bare, study=study, **options)


def _prompts(run: Path) -> list[str]:
    from podium.conductor.training.config import validate_config
    from podium.conductor.training.run_folder import MANIFEST

    config = validate_config(json.loads((run / MANIFEST).read_text())["config"], str(run))
    training = _found_job(config, run, dry=True)
    rows = training.validation_rows()
    return ["".join(turn["content"] for turn in training.prompts.messages(row)) for row in rows]


NAME = "conductor, study"
CONTINUE = "Run the same command again to continue."
PUBLIC = 400
"""Number of questions per practice suite that train a tokenizer if the texts of a source of
verdicts must not be published."""


def study_for(settings: Any) -> Any:
    """Return the recorded grades that a config's `[verdicts]` trains on; UserError for folds."""
    from podium.baselines.route_eval import split_matrix
    from podium.baselines.verdict_sources import SOURCES
    from podium.conductor.verdict_reward import split_verdicts
    from podium.suites import SUITES

    matrix = whole_matrix(settings.source, None)
    split = split_matrix(matrix, settings.split, settings.split_seed)
    if len(split.folds) != 1:
        raise UserError(
            "A training on recorded verdicts learns from one split. Use date:SHARE or share:SHARE."
        )
    suite = SOURCES[settings.source.partition(":")[0]].suite
    public: list[str] = []
    if not matrix.publishable:  # publishable texts: the practice suites' training questions
        practice = (each for name, each in SUITES.items() if name.startswith("practice"))
        public = [question.text for each in practice for question in each.load("train")[:PUBLIC]]
    return split_verdicts(
        matrix.rows(split.folds[0].train),
        source=settings.source,
        suite=suite,
        split=settings.split,
        split_seed=settings.split_seed,
        public=public,
    )


def conductor_rows(folders: Sequence[Path], judged: Any, best: int) -> list[Any]:
    """Return the rows of trained checkpoints on the test questions of one split.

    `best` is the index of the best single worker. A single checkpoint gives one row with a verdict.
    Several checkpoints give a row of means over seeds, with a verdict, and then a row per seed
    without a verdict. UserError if a checkpoint was trained on another source or split, or if two
    have the same seed.
    """
    rows = [_row(folder, judged, best) for folder in folders]
    if len({row.system for row in rows}) < len(rows):
        raise UserError(
            "Two of these checkpoints have the same seed. Give one checkpoint per seed."
        )
    if len(rows) == 1:
        return [replace(rows[0], system=NAME, kind="router")]
    means = {
        name: np.mean([getattr(row, name) for row in rows], axis=0)
        for name in ("scores", "usd", "tokens_out", "elsewhere")
    }
    mean = replace(
        rows[0],
        **means | {"elsewhere": float(means["elsewhere"])},
        system=f"{NAME}: mean of {len(rows)} seeds",
        kind="router",
        note="the interval covers questions only; the lines of the seeds show the effect of seeds",
    )
    return [mean, *rows]


def _row(folder: Path, judged: Any, best: int) -> Any:
    from podium.conductor.checkpoint import read_study
    from podium.conductor.embedded import greedy_speaker
    from podium.conductor.verdict_reward import NO_WORKER, planned_workers, refuse_taught
    from podium.harness.learning import RoutedSystem

    about = read_study(folder)
    refuse_taught(about, judged, folder)
    chosen = planned_workers(about, judged, greedy_speaker(folder))
    nobody = chosen == NO_WORKER
    cell = np.arange(len(chosen)), np.where(nobody, 0, chosen)
    counts = {name: int((chosen == index).sum()) for index, name in enumerate(judged.workers)}
    busiest = sorted((name for name in counts if counts[name]), key=lambda name: -counts[name])
    shares = [f"{name} {100 * counts[name] / len(chosen):.0f} %" for name in busiest[:4]]
    words = f", first {about.form.words} words of each" if about.form.words else ""
    return RoutedSystem(
        system=f"{NAME}: seed {about.seed}",
        kind="anchor",
        scores=np.where(nobody, 0.0, judged.scores[cell]),
        usd=np.where(nobody, np.nan, judged.usd[cell]),
        tokens_out=np.where(nobody, np.nan, judged.tokens_out[cell]),
        elsewhere=float((chosen != best).mean()),
        note=f"role study, split {about.split} (seed {about.split_seed}) of {about.source}, taught "
        f"by {len(about.taught)} and picked on {len(about.validated)} questions{words}; asks "
        f"{', '.join(shares) or 'nobody'}; "
        f"{pluralise(len(chosen) - sum(counts.values()), 'text')} without a plan",
    )


@dataclass(frozen=True, slots=True)
class AblationRun:
    """One training: an ablation with one seed, its configuration and its folders."""

    row: Any
    training: Any
    seed: int
    logs: Path

    @property
    def run(self) -> Path:
        """Return the folder that the training writes."""
        return self.training.out

    @property
    def name(self) -> str:
        """Return the ablation's name and the seed, for printed lines."""
        return f"{self.row.name}, seed {self.seed}"


def ablate_command(args: argparse.Namespace) -> int:
    """Train and evaluate the selected ablations, print the table; return 0."""
    from podium.conductor.training.ablations import SHIPPED, read_ablations, select_ablations
    from podium.conductor.training.run_folder import MANIFEST, job_manifest, refuse_moved_graders
    from podium.reports.ablation_table import MARKS
    from podium.reports.render import refuse_foreign

    listed = read_ablations(args.file or SHIPPED)
    if args.list:
        lines = [
            f"{row.name}: {row.says}" + (f" Not run: {row.not_run}." if row.not_run else "")
            for row in listed.rows
        ]
        say_listing(args, listed.rows, "\n".join(lines))
        return 0
    plan, seeds = select_ablations(listed, args.names), sorted(set(args.seed or [0]))
    trials = [_trial(row, seed, args) for seed in seeds for row in plan.rows if not row.not_run]
    refuse_foreign(args.out / "report", MARKS)  # before anything is trained
    if args.table and not args.out.is_dir():
        raise UserError(f"There is no folder {args.out}. Give the one that `podium ablate` wrote.")
    if not args.table:
        for trial in trials:  # a training that began with other graders cannot continue
            if (path := trial.run / MANIFEST).is_file():
                refuse_moved_graders(json.loads(path.read_text()), job_manifest(trial.training))
        jobs = [
            replace(each.training, max_usd=args.max_usd or each.training.max_usd) for each in trials
        ]
        agree_to_training(
            "Trainings (each evaluation asks separately)", jobs, args.out, yes=args.yes
        )
        for number, trial in enumerate(trials, 1):
            say(f"[{number}/{len(trials)}] {trial.name}", flush=True)
            _train(trial, [*args.begin, *(each.run for each in trials)], args.max_usd)
            _evaluate(trial, args.max_usd, yes=args.yes)
            _table(listed, args.out)
    say(_table(listed, args.out))
    return 0


def _trial(row: Any, seed: int, args: argparse.Namespace) -> AblationRun:
    name = f"{row.name}-seed-{seed}"
    training = _found_job(row.training_config(seed), args.out / "runs" / name, studies=False)
    if any(sign.isspace() for sign in str(args.out.resolve())):
        raise UserError(f"The path of --out has white space: {args.out}. Use one without.")
    return AblationRun(row, training, seed, args.out / "evaluations" / name)


def _train(trial: AblationRun, folders: list[Path], max_usd: Decimal | None) -> None:
    """Train in a subprocess, unless already finished; UserError if the training does not finish."""
    from podium.conductor.training.ablations import copy_warm_start
    from podium.conductor.training.run_folder import training_finished

    if training_finished(trial.training.config, trial.run):
        say("  already trained", flush=True)
        return
    if shared := copy_warm_start(trial.training, folders):
        say(f"  reuses the identical warm start of {shared.name}", flush=True)
    words = [trial.row.config, "--seed", str(trial.seed), "--out", str(trial.run), "--yes"]
    words += ["--max-usd", str(max_usd)] if max_usd else []
    words += [word for setting in trial.row.settings for word in ("--set", setting)]
    if (trial.run / "manifest.json").exists():
        words.append("--resume")
    code = _waited([sys.executable, "-m", "podium", "train", *words])
    if code or not training_finished(trial.training.config, trial.run):
        raise UserError(f"Training {trial.name} is unfinished. {CONTINUE}")


def _waited(command: list[str]) -> int:
    """Run a command and return its exit code; on Ctrl-C, wait for its end before raising."""
    process = subprocess.Popen(command)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()
        raise


def _evaluate(trial: AblationRun, max_usd: Decimal | None, *, yes: bool) -> None:
    """Run a training's best checkpoint on validation splits; resumes an earlier evaluation."""
    from podium.harness.run.catalogue import RunRequest
    from podium.harness.run.estimate import estimate
    from podium.harness.run.run import run_job
    from podium.harness.run.run_request import RequestReader

    config, best = trial.training.config, (trial.run / "best").resolve()
    if not best.is_dir():
        raise UserError(
            f"{trial.run} has no best checkpoint: no validation was graded. Remove it, and repeat."
        )
    request = RunRequest(
        suites=tuple(config.suites.names),
        systems=(f"conductor@{best}",),
        pool=config.pool.name,
        log_dir=trial.logs,
        split="validation",
        box=config.suites.box,
        max_usd=max_usd,
    )
    reader = RequestReader(request, whole_catalogue(), controls())
    if (job := reader.read()).spec.label == "live":
        agree_to_run(job, estimate(job), yes=yes)
    outcome = run_job(reader)
    if not outcome.finished:
        raise UserError(f"{trial.name} is not evaluated: {outcome.trouble[0]}. {CONTINUE}")


def _table(listed: Any, out: Path) -> str:
    """Write the table of all ablations to `out / "report"`; return it as text for a terminal."""
    from podium.reports.ablation_table import AblationRuns, write_ablations

    ablations: list[AblationRuns] = []
    for row in listed.rows:
        begins = f"{row.name}-seed-"
        evaluated = sorted((out / "evaluations").glob(f"{begins}*"))  # a folder per seed
        seeds = (folder for folder in evaluated if folder.name.removeprefix(begins).isdigit())
        logs = tuple(folder for folder in seeds if any(folder.glob("*.eval")))
        runs = tuple(out / "runs" / log.name for log in logs)
        ablations.append(AblationRuns(row.name, row.says, row.not_run, runs, logs, _words(logs)))
    text, files = write_ablations(ablations, listed.reference.name, out / "report")
    return f"{text}\nWritten to {files[0].parent}: {', '.join(path.name for path in files)}"


def _words(logs: tuple[Path, ...]) -> dict[str, float | None]:
    from podium.conductor.training.ablations import plan_leaks
    from podium.harness.ledger.system_runs import load_runs
    from podium.reports.ablation_table import WORDS

    if not logs:
        return {}
    leaks = plan_leaks([run for folder in logs for run in load_runs([folder])[0]])
    return {name: leaks[name] for name in WORDS}


def route_command(args: argparse.Namespace) -> int:
    """Compare routers on recorded grades: print the table, write it if --out is given; return 0."""
    if args.list:
        from podium.baselines.verdict_sources import SOURCES

        sources = SOURCES.values()
        names = [
            (f"{row.name}:{row.path}" if row.path else row.name, row.needs, row.holds)
            for row in sources
        ]
        heads = ("source", "not in the package", "holds")
        say_listing(args, records(heads, names), columns(heads, names))
        return 0
    from podium.baselines.route_eval import (
        best_single_worker,
        choose_routers,
        evaluate_routers,
        split_matrix,
    )
    from podium.reports.render import refuse_foreign
    from podium.reports.routes import MARKS, route_text, write_route

    if args.out:
        refuse_foreign(args.out, MARKS)  # before anything is computed
    matrix = whole_matrix(args.source or "lcb-leaderboard", args.data)
    sides = {question.split for question in matrix.questions}
    rule = args.split or ("declared" if {"train", "eval"} <= sides else "folds:5")
    split = split_matrix(matrix, rule, args.seed, drop_shared=args.drop_shared)
    field = choose_routers(matrix, args.router or (), args.embedder, args.seed)
    _refuse_unsaveable(args, matrix, field)
    if args.conductor and len(split.folds) > 1:
        raise UserError(
            "--conductor cannot be tested on several folds. Add --split with the split that the "
            "conductor was trained on (split in [verdicts] of its config), e.g. date:0.3."
        )
    routing = evaluate_routers(matrix, split, field)
    if args.conductor:
        fold = next(iter(split.folds))
        best = best_single_worker(matrix.rows(fold.train))
        rows = conductor_rows(args.conductor, matrix.rows(np.sort(fold.test)), best)
        end = 1 + sum(row.kind == "router" for row in routing.systems)
        routing = replace(routing, systems=(*routing.systems[:end], *rows, *routing.systems[end:]))
    say(route_text(routing))
    if args.save:
        say(_saved(args, matrix, split, field))
    if args.out:
        files = write_route(routing, args.out)
        say(f"Written to {args.out}: {', '.join(path.name for path in files)}")
    return 0


def whole_matrix(source: str, data: Path | None) -> Any:
    """Return a source's grade matrix, without questions that lack the grade of some worker.

    A note in the matrix has the number of questions left out.
    """
    from podium.baselines.verdict_data import SourceRequest
    from podium.baselines.verdict_sources import read_matrix
    from podium.suites.data import data_folder
    from podium.suites.gpqa_diamond import GpqaDiamond

    request = SourceRequest(data_folder(data), gpqa=lambda: GpqaDiamond(data=data).load())
    table = read_matrix(source, request)
    complete = table.whole()
    if len(table.workers) == 1:
        raise UserError(
            f"{table.name} has one worker, {table.workers[0]}; routing needs two. Choose another."
        )
    lacking = len(table.questions) - len(complete.questions)
    if not complete.questions:
        raise UserError(
            f"{table.name}: no question was graded for every worker. Use verdicts of all workers "
            "on the same questions."
        )
    if not lacking:
        return complete
    note = f"Left out: {pluralise(lacking, 'question')} that lack the verdict of a worker."
    return replace(complete, notes=(*complete.notes, note))


def _refuse_unsaveable(args: argparse.Namespace, matrix: Any, field: Any) -> None:
    """Raise UserError, before the fit, if --save cannot save the trained router."""
    if args.save and not matrix.publishable:
        raise UserError(
            f"{matrix.name} must not be published, and a router would contain it. Leave --save out."
        )
    if args.save and len(field.routers) != 1:
        raise UserError("--save stores one trained router. Select it with --router.")
    if args.save:
        refuse_unwritable_file(args.save, "--save")
    if args.save and args.save.exists():
        raise UserError(f"{args.save} already exists. Use another --save FILE.")


def _saved(args: argparse.Namespace, matrix: Any, split: Any, field: Any) -> str:
    from podium.baselines.routers.router_systems import train_router
    from podium.harness.learning import write_artifact

    single = len(split.folds) == 1
    teaches = matrix.rows(split.folds[0].train) if single else matrix
    learned = train_router(field.routers[0], teaches, field.seed, field.embedder)
    write_artifact(learned, args.save)
    questions = pluralise(len(teaches.questions), "question")
    return f"Learnt from {questions}: {args.save} (sha256 {learned.sha256[:12]})"
