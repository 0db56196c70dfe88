"""The command that judges routers on recorded verdicts: no model is asked, nothing is spent."""

import argparse
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.escape import say
from harness.plural import counted


def route_command(args: argparse.Namespace) -> int:
    """Judge routers on recorded verdicts of real models, against the best single worker."""
    if args.list:
        return _list()
    if args.source is None:
        raise UserError("Name a source of verdicts; `podium route --list` says which there are.")
    from baselines.judging.judged import judge
    from baselines.judging.splits import split_of
    from reports.routes import refuse_foreign_route, route_text, write_route

    if args.out:
        refuse_foreign_route(args.out)
    matrix = whole_matrix(args.source, args.data)
    split = split_of(matrix, _how(args, matrix), args.seed, drop_shared=args.drop_shared)
    contest = _contest(args, matrix)
    _refuse_unsaveable(args, matrix, contest)
    if args.conductor and len(split.folds) > 1:
        raise UserError("--conductor wants one split, date:SHARE or share:SHARE: it learnt once.")
    routing = _routing(matrix, split, contest, judge(matrix, split, contest))
    if args.conductor:
        routing = _with_conductors(args, matrix, split, routing)
    say(route_text(routing))
    if args.save:
        say(_saved(args, matrix, split, contest))
    if args.out:
        files = write_route(routing, args.out)
        say(f"Written to {args.out}: {', '.join(path.name for path in files)}")
    return 0


def _list() -> int:
    from baselines.matrices import SOURCES
    from reports.render import aligned

    names = [
        (f"{one.name}:{one.path}" if one.path else one.name, one.holds) for one in SOURCES.values()
    ]
    say("\n".join(aligned([("source", "holds"), *names], left=2)))
    return 0


def whole_matrix(source: str, data: Path | None) -> Any:
    """Return the rows of a source on which every worker was graded, and say how many were not."""
    from dataclasses import replace

    from baselines.matrices import Given, read_matrix
    from suites.fetch import data_folder
    from suites.gpqa_diamond import GpqaDiamond

    def gpqa() -> Any:
        return GpqaDiamond(data=data).load()

    found = read_matrix(source, Given(data_folder(data), gpqa=gpqa))
    whole = found.whole()
    if len(found.workers) == 1:
        raise UserError(f"{found.name} has one worker, {found.workers[0]}: nobody to choose from.")
    lacking = len(found.questions) - len(whole.questions)
    if not whole.questions:
        raise UserError(f"{found.name}: no question was graded for every worker.")
    if not lacking:
        return whole
    note = f"Left out: {counted(lacking, 'question')} on which some worker has no verdict."
    return replace(whole, notes=(*whole.notes, note))


def _how(args: argparse.Namespace, matrix: Any) -> str:
    if args.split:
        return args.split
    sides = {asked.split for asked in matrix.questions}
    return "declared" if {"train", "eval"} <= sides else "folds:5"


def _contest(args: argparse.Namespace, matrix: Any) -> Any:
    """Return the routers that are asked for; none where there is no text to read."""
    from baselines.judging.judged import Contest
    from baselines.routing.embedders import embedder
    from baselines.routing.learning import ROUTERS

    for name in args.router or ():
        if name not in ROUTERS:
            raise UserError(f"There is no router {name!r}; there are: {', '.join(ROUTERS)}.")
    if not all(asked.text.strip() for asked in matrix.questions):
        if args.router:
            raise UserError(
                f"{matrix.name}: some questions have no text, and routers read nothing else; "
                "leave --router out to see the anchors."
            )
        return Contest((), None, args.seed)
    names = dict.fromkeys(args.router or ROUTERS)
    return Contest([ROUTERS[name]() for name in names], embedder(args.embedder), args.seed)


def _routing(matrix: Any, split: Any, contest: Any, judged: Any) -> Any:
    """Return plain records of what was judged."""
    from baselines.judging.judged import BEST_SINGLE, HINDSIGHT, ORACLE
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
    """Return what was judged with the rows of trained conductors after those of the routers."""
    from dataclasses import replace

    import numpy as np

    from baselines.judging.anchors import best_single
    from harness.cli.studying import conductor_rows

    (fold,) = split.folds
    best = best_single(matrix.rows(fold.train))
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
    from baselines.routing.learning import train
    from harness.learning.learned import write_learned

    one = len(split.folds) == 1
    teaches = matrix.rows(split.folds[0].train) if one else matrix
    learned = train(contest.routers[0], teaches, contest.seed, contest.embedder)
    path: Path = args.save
    write_learned(learned, path)
    questions = counted(len(teaches.questions), "question")
    return f"Learnt from {questions}: {path} (sha256 {learned.sha256[:12]})"
