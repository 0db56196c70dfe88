"""The commands that train and judge what learns: train, ablate, route.

Ablations are trained one at a time, each in a process of its own, so that a kill loses a step at
most; what is finished is skipped. Routers are judged on recorded verdicts: no model is asked.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness.cli.catalogue import controls, dollars, up_to, whole_catalogue
from harness.errors import UserError
from harness.records import SEED
from harness.text import pluralise, say


def train_arguments(train: argparse.ArgumentParser) -> None:
    """Add what `podium train` takes."""
    add = train.add_argument
    add("config", nargs="?", metavar="CONFIG", help="a shipped name or the path of a TOML file")
    add("--out", type=Path, metavar="DIR", help="run folder (training/CONFIG-seed-N)")
    add("--seed", type=up_to(SEED), metavar="N", help="run.seed (the config's)")
    add("--dry-run", action="store_true", help="estimate memory, calls and dollars; train nothing")
    add("--max-usd", type=dollars, metavar="X", help="stop with a checkpoint once this is spent")
    add("--resume", action="store_true", help="go on from the newest checkpoint in --out")
    add(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="change a value of the config; repeat",
    )
    add("--plot", nargs="+", type=Path, metavar="DIR", help="draw the learning curves of runs")
    add("--release", nargs="+", type=Path, metavar="DIR", help="release the median seed of runs")
    add("--to", type=Path, metavar="PATH", help="where --plot draws (curve.png), --release writes")
    add("--untrained", type=Path, metavar="DIR", help="with --release: where its warm start goes")
    add("--list", action="store_true", help="list the shipped configs")


def ablate_arguments(ablate: argparse.ArgumentParser) -> None:
    """Add what `podium ablate` takes."""
    add = ablate.add_argument
    add("names", nargs="*", metavar="NAME", help="ablations, beside the reference (all)")
    add("--out", type=Path, default=Path("ablations"), metavar="DIR", help="folder (ablations)")
    add(
        "--seed",
        type=up_to(SEED),
        action="append",
        metavar="N",
        help="train each with it; repeat (0)",
    )
    add("--file", type=Path, metavar="FILE", help="a file of ablations (the shipped one)")
    add(
        "--begin",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="a training whose warm start is used where it would be the same; repeat",
    )
    add("--table", action="store_true", help="make the table of what is there; train nothing")
    add("--list", action="store_true", help="list the ablations")


def train_command(args: argparse.Namespace) -> int:
    """Train a conductor by reward, say what that would take, draw how it went, or release it."""
    from conductor.training.config import known_configs

    if args.list:
        say("\n".join(known_configs()))
        return 0
    if args.plot:
        from reports.plot import draw_curves

        say(f"Written to {draw_curves(args.plot, args.to or Path('curve.png'))}.")
        return 0
    if args.release:
        return _release(args)
    if args.config is None:
        raise UserError(f"Name a training config: {', '.join(known_configs())}, or a .toml path.")
    training = _training(args)
    from conductor.training.grpo_options import is_main

    told = partial(say, flush=True) if is_main() else _nothing
    for line in _graders_before(training.config.model.path):
        told(line)
    if args.dry_run:
        from conductor.training.estimate import estimate_text

        told(estimate_text(training))
        return 0
    from conductor.training.train import train

    try:
        told(train(training, told))
    except KeyboardInterrupt:
        told("Stopped at once; --resume goes on from the newest checkpoint.")
        return 130
    return 0


def _graders_before(path: str) -> list[str]:
    from harness.run.systems import moved_graders

    with suppress(UserError):  # none of podium's: a model of the hub, or of other people
        return moved_graders([f"conductor@{path}"] if path else [], whole_catalogue())
    return []


def _nothing(said: str) -> None:
    """Keep quiet: the first of several processes has said it."""


def _training(args: argparse.Namespace) -> Any:
    from conductor.training.config import read_config

    settings = list(args.set)
    if args.seed is not None:
        settings.append(f"run.seed={args.seed}")
    config = read_config(args.config, settings)
    out = args.out or Path("training") / f"{config.name}-seed-{config.run.seed}"
    more = {"resume": args.resume, "max_usd": args.max_usd, "dry": args.dry_run}
    return _found_job(config, out, **more)


def _found_job(config: Any, out: Path, *, studies: bool = True, **more: Any) -> Any:
    """Return the training of a config below a folder; nothing is written."""
    from conductor.training.job import JobParts, TrainRequest, find_job

    parts = JobParts(whole_catalogue(), controls().bare, study_for if studies else None)
    return find_job(config, TrainRequest(out, **more), parts)


def _release(args: argparse.Namespace) -> int:
    """Release the median seed of some runs; torch is not needed."""
    from conductor.training.model_card import release

    if args.to is None:
        raise UserError("--release needs --to: the folder that the checkpoint goes to.")
    say(release(args.release, args.to, _prompts, args.untrained))
    return 0


def _prompts(run: Path) -> list[str]:
    from conductor.training.config import validate_config
    from conductor.training.run_folder import MANIFEST

    config = validate_config(json.loads((run / MANIFEST).read_text())["config"], str(run))
    training = _found_job(config, run, dry=True)
    rows = training.validation_rows()
    return ["".join(one["content"] for one in training.prompts.messages(row)) for row in rows]


NAME = "conductor, study"
PUBLIC = 400
"""Questions of each practice suite that a tokenizer is trained on where others must not be."""


def study_for(part: Any) -> Any:
    """Return the study that a training's `[verdicts]` names; what is judged is left out of it.

    UserError for a source or a split that there is not, and for one that has several folds.
    """
    from baselines.route_eval import split_matrix
    from baselines.verdict_data import SOURCES
    from conductor.verdict_reward import RecordedSource, split_verdicts

    matrix = whole_matrix(part.source, None)
    split = split_matrix(matrix, part.split, part.split_seed)
    if len(split.folds) != 1:
        raise UserError("A study has one split, date:SHARE or share:SHARE: it learns once.")
    exam = SOURCES[part.source.partition(":")[0]].exam
    declared = RecordedSource(part.source, exam, part.split, part.split_seed)
    public = () if matrix.publishable else _public_texts()
    return split_verdicts(declared, matrix.rows(split.folds[0].train), public)


def _public_texts() -> list[str]:
    """Return texts that may be published: those of the practice suites that teach."""
    from suites import SUITES

    suites = (suite for name, suite in SUITES.items() if name.startswith("practice"))
    return [question.text for suite in suites for question in suite.load("train")[:PUBLIC]]


def conductor_rows(folders: Sequence[Path], exam: Any, best: int) -> list[Any]:
    """Return the rows of trained checkpoints on the judged questions of one split.

    `best` is the index of the worker that best-single asks. One checkpoint is a row with a verdict;
    of several their mean over seeds has it, question by question, and each a line without one.
    UserError for a checkpoint of another study or split, and for one seed named twice.
    """
    found = [_row(folder, exam, best) for folder in folders]
    if len({row.system for row in found}) < len(found):
        raise UserError("Two of these checkpoints have one seed: name each seed once.")
    if len(found) == 1:
        return [replace(found[0], system=NAME, kind="router")]
    return [_mean(found), *found]


def _mean(found: Sequence[Any]) -> Any:
    from reports.routes import RoutedSystem

    return RoutedSystem(
        system=f"{NAME}: mean of {len(found)} seeds",
        kind="router",
        scores=np.mean([row.scores for row in found], axis=0),
        usd=np.mean([row.usd for row in found], axis=0),
        tokens_out=np.mean([row.tokens_out for row in found], axis=0),
        elsewhere=float(np.mean([row.elsewhere for row in found])),
        note="its interval is over questions; what a seed changes is in the lines of the seeds",
    )


def _row(folder: Path, exam: Any, best: int) -> Any:
    """Return a checkpoint's row: what the workers that it asks have scored."""
    from conductor.checkpoint import read_study
    from conductor.embedded import greedy_speaker
    from conductor.verdict_reward import NOBODY, planned_workers, refuse_taught
    from reports.routes import RoutedSystem

    about = read_study(folder)
    refuse_taught(about, exam, folder)
    chosen = planned_workers(about, exam, greedy_speaker(folder))
    nobody = chosen == NOBODY
    cell = np.arange(len(chosen)), np.where(nobody, 0, chosen)
    return RoutedSystem(
        system=f"{NAME}: seed {about.seed}",
        kind="anchor",
        scores=np.where(nobody, 0.0, exam.scores[cell]),
        usd=np.where(nobody, np.nan, exam.usd[cell]),
        tokens_out=np.where(nobody, np.nan, exam.tokens_out[cell]),
        elsewhere=float((chosen != best).mean()),
        note=_note(about, exam, chosen),
    )


def _note(about: Any, exam: Any, chosen: Any) -> str:
    asked = {name: int((chosen == at).sum()) for at, name in enumerate(exam.workers)}
    most = sorted((name for name in asked if asked[name]), key=lambda name: -asked[name])
    shares = [f"{name} {100 * asked[name] / len(chosen):.0f} %" for name in most[:4]]
    words = f", first {about.form.words} words of each" if about.form.words else ""
    nobody = pluralise(len(chosen) - sum(asked.values()), "text")
    return (
        f"role study, split {about.split} (seed {about.split_seed}) of {about.source}, taught by "
        f"{len(about.taught)} and picked on {len(about.validated)} questions{words}; asks "
        f"{', '.join(shares) or 'nobody'}; {nobody} without a plan"
    )


@dataclass(frozen=True, slots=True)
class AblationRun:
    """One training of one ablation: its configuration, and where its files are."""

    row: Any
    training: Any
    seed: int
    logs: Path

    @property
    def run(self) -> Path:
        """Return its run folder."""
        return self.training.request.out

    @property
    def name(self) -> str:
        """Return what lines call it."""
        return f"{self.row.name}, seed {self.seed}"


def ablate_command(args: argparse.Namespace) -> int:
    """Train a conductor's ablations alike, evaluate each on validation, and make one table."""
    from conductor.training.ablations import SHIPPED, read_ablations, select_ablations
    from reports.ablations import refuse_foreign_ablations

    listed = read_ablations(args.file or SHIPPED)
    if args.list:
        for one in listed.rows:
            say(f"{one.name}: {one.says}" + (f" Not run: {one.not_run}." if one.not_run else ""))
        return 0
    wanted, seeds = select_ablations(listed, args.names), sorted(set(args.seed or [0]))
    trials = [_trial(one, seed, args) for seed in seeds for one in wanted.rows if not one.not_run]
    refuse_foreign_ablations(args.out / "report")
    if not args.table:
        _refuse_moved(trials)
        for at, trial in enumerate(trials, 1):
            say(f"[{at}/{len(trials)}] {trial.name}", flush=True)
            _train(trial, [*args.begin, *(one.run for one in trials)])
            _evaluate(trial)
            _table(listed, args.out)
    say(_table(listed, args.out))
    return 0


def _refuse_moved(trials: list[AblationRun]) -> None:
    """Raise UserError where one has begun with other graders, which are another reward."""
    from conductor.training.run_folder import MANIFEST, job_manifest, refuse_moved_graders

    for trial in trials:
        if (path := trial.run / MANIFEST).is_file():
            refuse_moved_graders(json.loads(path.read_text()), job_manifest(trial.training))


def _trial(row: Any, seed: int, args: argparse.Namespace) -> AblationRun:
    """Return one training, found and checked; nothing is written."""
    name = f"{row.name}-seed-{seed}"
    training = _found_job(row.training_config(seed), args.out / "runs" / name, studies=False)
    if any(sign.isspace() for sign in str(args.out.resolve())):
        raise UserError(f"--out has no white space in its path: {args.out}.")
    return AblationRun(row, training, seed, args.out / "evaluations" / name)


def _train(trial: AblationRun, others: list[Path]) -> None:
    """Train to the end, unless that is done; a warm start that another made is not made again."""
    from conductor.training.ablations import copy_warm_start, training_finished

    if training_finished(trial.training.config, trial.run):
        say("  trained already", flush=True)
        return
    if shared := copy_warm_start(trial.training, others):
        say(f"  begins with the warm start of {shared.name}, which is the same", flush=True)
    words = [trial.row.config, "--seed", str(trial.seed), "--out", str(trial.run)]
    words += [part for one in trial.row.settings for part in ("--set", one)]
    if (trial.run / "manifest.json").exists():
        words.append("--resume")
    code = _waited([sys.executable, "-m", "harness.cli", "train", *words])
    if code or not training_finished(trial.training.config, trial.run):
        raise UserError(f"Training {trial.name} has not ended; the same command goes on with it.")


def _waited(command: list[str]) -> int:
    """Return a command's exit code; Ctrl-C reaches it too, and it ends with a checkpoint."""
    process = subprocess.Popen(command)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()
        raise


def _evaluate(trial: AblationRun) -> None:
    """Run the best checkpoint on the validation splits; what has an answer is not asked again."""
    from harness.run.catalogue import RunRequest
    from harness.run.run import run

    config, best = trial.training.config, (trial.run / "best").resolve()
    if not best.is_dir():
        raise UserError(f"{trial.run} has no best checkpoint: no validation could be graded.")
    request = RunRequest(
        suites=tuple(config.suites.names),
        systems=(f"conductor@{best}",),
        pool=config.pool.name,
        log_dir=trial.logs,
        split="validation",
        box=config.suites.box,
    )
    outcome = run(request, whole_catalogue(), controls())
    if not outcome.finished:
        raise UserError(f"{trial.name} is not evaluated: {outcome.trouble[0]}")


def _table(listed: Any, out: Path) -> str:
    """Write the table of everything that is in the folder; return it for a terminal."""
    from reports.ablations import AblationRuns, write_ablations

    found: list[AblationRuns] = []
    for row in listed.rows:
        evaluated = sorted((out / "evaluations").glob(f"{row.name}-seed-*"))
        logs = tuple(
            one
            for one in evaluated  # a seed each
            if one.name.removeprefix(f"{row.name}-seed-").isdigit() and any(one.glob("*.eval"))
        )
        runs = tuple(out / "runs" / one.name for one in logs)
        found.append(AblationRuns(row.name, row.says, row.not_run, runs, logs, _words(logs)))
    text, files = write_ablations(found, listed.reference.name, out / "report")
    return f"{text}\nWritten to {files[0].parent}: {', '.join(path.name for path in files)}"


def _words(logs: tuple[Path, ...]) -> dict[str, float | None]:
    """Return what the evaluated plans say, as columns."""
    from conductor.training.model_card import said_in_logs, wording
    from reports.ablations import WORDS

    if not logs:
        return {}
    said = wording([plan for folder in logs for plan in said_in_logs(folder)])
    found = {**asdict(said), "accuracy_unleaked": said.right_unleaked}
    return {name: found[name] for name in WORDS}


SEEDS = 2**32


def seed(text: str) -> int:
    """Return a seed that every generator takes: 32 bits."""
    if not (text.isascii() and text.isdigit() and int(text) < SEEDS):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {SEEDS - 1}")
    return int(text)


def route_arguments(route: argparse.ArgumentParser) -> None:
    """Add what `podium route` takes."""
    add = route.add_argument
    add("source", nargs="?", metavar="SOURCE", help="verdicts to judge on; --list names them")
    add("--list", action="store_true", help="list the sources and what they hold")
    add("--router", nargs="+", action="extend", metavar="NAME", help="routers to judge (all)")
    add(
        "--split",
        metavar="HOW",
        help="date:0.3, share:0.5, folds:5, folds:5:group or declared (declared where the source "
        "declares one, else folds:5)",
    )
    add(
        "--conductor",
        nargs="+",
        type=Path,
        action="extend",
        metavar="DIR",
        help="checkpoints of a study of this source and split: a row each, and of their mean",
    )
    add(
        "--drop-shared",
        action="store_true",
        help="leave questions that would teach and be judged out of what teaches",
    )
    add("--seed", type=seed, default=0, help="of folds and of learning (0)")
    add("--embedder", default="tfidf", metavar="NAME", help="tfidf (default) or wordllama")
    add("--save", type=Path, metavar="FILE", help="also keep what the one --router has learnt")
    add("--out", type=Path, help="directory for route.md, route.csv, route.json")
    add("--data", type=Path, metavar="DIR", help="folder of local data (PODIUM_DATA)")


def route_command(args: argparse.Namespace) -> int:
    """Judge routers on recorded verdicts of real models, against the best single worker."""
    if args.list:
        from baselines.verdict_data import SOURCES
        from reports.render import aligned

        known = SOURCES.values()
        names = [(f"{one.name}:{one.path}" if one.path else one.name, one.holds) for one in known]
        say("\n".join(aligned([("source", "holds"), *names], left=2)))
        return 0
    if args.source is None:
        raise UserError("Name a source of verdicts; `podium route --list` says which there are.")
    from baselines.route_eval import evaluate_routers, split_matrix
    from reports.routes import refuse_foreign_route, route_text, write_route

    if args.out:
        refuse_foreign_route(args.out)
    matrix = whole_matrix(args.source, args.data)
    sides = {asked.split for asked in matrix.questions}
    how = args.split or ("declared" if {"train", "eval"} <= sides else "folds:5")
    split = split_matrix(matrix, how, args.seed, drop_shared=args.drop_shared)
    contest = _contest(args, matrix)
    _refuse_unsaveable(args, matrix, contest)
    if args.conductor and len(split.folds) > 1:
        raise UserError("--conductor wants one split, date:SHARE or share:SHARE: it learnt once.")
    routing = _routing(matrix, split, contest, evaluate_routers(matrix, split, contest))
    if args.conductor:
        routing = _with_conductors(args, matrix, split, routing)
    say(route_text(routing))
    if args.save:
        say(_saved(args, matrix, split, contest))
    if args.out:
        files = write_route(routing, args.out)
        say(f"Written to {args.out}: {', '.join(path.name for path in files)}")
    return 0


def whole_matrix(source: str, data: Path | None) -> Any:
    """Return the rows of a source on which every worker was graded, and say how many were not."""
    from baselines.verdict_data import SourceRequest, read_matrix
    from suites.data import data_folder
    from suites.gpqa_diamond import GpqaDiamond

    def gpqa() -> Any:
        return GpqaDiamond(data=data).load()

    found = read_matrix(source, SourceRequest(data_folder(data), gpqa=gpqa))
    whole = found.whole()
    if len(found.workers) == 1:
        raise UserError(f"{found.name} has one worker, {found.workers[0]}: nobody to choose from.")
    lacking = len(found.questions) - len(whole.questions)
    if not whole.questions:
        raise UserError(f"{found.name}: no question was graded for every worker.")
    if not lacking:
        return whole
    note = f"Left out: {pluralise(lacking, 'question')} on which some worker has no verdict."
    return replace(whole, notes=(*whole.notes, note))


def _contest(args: argparse.Namespace, matrix: Any) -> Any:
    """Return the routers that are asked for; none where there is no text to read."""
    from baselines.route_eval import RouterField
    from baselines.routers import load_embedder
    from baselines.routers.systems import ROUTERS

    for name in args.router or ():
        if name not in ROUTERS:
            raise UserError(f"There is no router {name!r}; there are: {', '.join(ROUTERS)}.")
    if not all(asked.text.strip() for asked in matrix.questions):
        if args.router:
            raise UserError(
                f"{matrix.name}: some questions have no text, and routers read nothing else; "
                "leave --router out to see the anchors."
            )
        return RouterField((), None, args.seed)
    names = dict.fromkeys(args.router or ROUTERS)
    return RouterField([ROUTERS[name]() for name in names], load_embedder(args.embedder), args.seed)


def _routing(matrix: Any, split: Any, contest: Any, judged: Any) -> Any:
    from baselines.route_eval import BEST_SINGLE, HINDSIGHT, ORACLE
    from reports.routes import FrontierPoint, RouteComparison, RoutedSystem

    groups = {one.id: f"{one.group} {one.date}".strip() for one in matrix.questions}
    best = next(row.chosen for row in judged.rows if row.system == BEST_SINGLE)
    systems = tuple(
        RoutedSystem(
            system=row.system,
            kind=row.kind,
            scores=row.figures.scores,
            usd=row.figures.usd,
            tokens_out=row.figures.tokens_out,
            elsewhere=None if row.chosen is None else float((row.chosen != best).mean()),
            note=row.note,
        )
        for row in judged.rows
    )
    return RouteComparison(
        name=matrix.name,
        source=matrix.source,
        label=matrix.label,
        split=split.name,
        workers=len(matrix.workers),
        questions=judged.questions,
        draws=matrix.draws,
        seed=contest.seed,
        embedder=contest.embedder.name if contest.embedder else "",
        refits=judged.refits,
        reference=BEST_SINGLE,
        hindsight=HINDSIGHT,
        oracle=ORACLE,
        systems=systems,
        frontiers={
            name: tuple(FrontierPoint(one.willingness, one.score, one.usd) for one in points)
            for name, points in judged.frontiers.items()
        },
        notes=(*split.notes, *judged.notes),
        clusters=tuple(groups[name] for name in judged.questions),
    )


def _with_conductors(args: argparse.Namespace, matrix: Any, split: Any, routing: Any) -> Any:
    from baselines.route_eval import best_single_worker

    (fold,) = split.folds
    best = best_single_worker(matrix.rows(fold.train))
    rows = conductor_rows(args.conductor, matrix.rows(np.sort(fold.test)), best)
    at = 1 + sum(one.kind == "router" for one in routing.systems)
    return replace(routing, systems=(*routing.systems[:at], *rows, *routing.systems[at:]))


def _refuse_unsaveable(args: argparse.Namespace, matrix: Any, contest: Any) -> None:
    """Raise UserError before anything is fitted when --save asks for what cannot be kept."""
    if args.save and not matrix.publishable:
        raise UserError(f"{matrix.name} must not be published: nothing learnt from it is kept.")
    if args.save and len(contest.routers) != 1:
        raise UserError("--save keeps what one router has learnt: name it with --router.")
    if args.save and args.save.exists():
        raise UserError(f"{args.save} is there already; name another file.")


def _saved(args: argparse.Namespace, matrix: Any, split: Any, contest: Any) -> str:
    """Train once more, on all that may teach, keep it, and return what was kept."""
    from baselines.routers.systems import train_router
    from harness.learning.fit import write_artifact

    one = len(split.folds) == 1
    teaches = matrix.rows(split.folds[0].train) if one else matrix
    learned = train_router(contest.routers[0], teaches, contest.seed, contest.embedder)
    path: Path = args.save
    write_artifact(learned, path)
    questions = pluralise(len(teaches.questions), "question")
    return f"Learnt from {questions}: {path} (sha256 {learned.sha256[:12]})"
