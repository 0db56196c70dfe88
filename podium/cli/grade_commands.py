"""The commands that grade: grade, redact, regrade, reward."""

import argparse
import sys
from collections import ChainMap
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from podium.cli.arguments import taken
from podium.cli.list_commands import boxes, whole_catalogue
from podium.harness.boxes import refuse_unknown
from podium.harness.errors import UserError
from podium.harness.files import refuse_unwritable
from podium.harness.ledger.manifest import FILE, write_manifest
from podium.harness.model_judge import Remade, box_for_logs, older_graders, regrade_dir, remade_dir
from podium.harness.run.catalogue import load_own
from podium.harness.text import say


def grade_command(args: argparse.Namespace) -> int:
    """Grade a file of replies; return 1 if a reply could not be scored, else 0."""
    from podium.harness.grade_file import GradeRequest, explain_reply, grade_file

    make = partial(taken, GradeRequest, args, task_args=dict(args.T))
    if args.explain:
        say(explain_reply(make(out=args.replies), args.explain, whole_catalogue()))
        return 0
    if args.out is None:
        raise UserError("There is no file for the verdicts. Add --out FILE.")
    graded = grade_file(make(), whole_catalogue())
    say(graded)
    if graded.unscored:
        say(f"podium: {graded.unscored} unscored, the first: {graded.reason}", file=sys.stderr)
        say("podium: run the same command again to retry the unscored replies.", file=sys.stderr)
    return 1 if graded.unscored else 0


def redact_command(args: argparse.Namespace) -> int:
    """Copy logs without the questions' and replies' texts; return 0."""
    from podium.harness.redact import redact

    refuse_unwritable(args.out, "--out")
    for copy in redact(args.paths, args.out):
        if copy.out:
            say(f"{copy.out}: {copy.samples} samples; kept numbers and digests, removed texts.")
        else:
            say(f"{copy.log}: not copied; its questions may be published, so share it as it is.")
    if (args.out / "MANIFEST.json").exists():
        say(f"The run's manifest was copied, too: podium manifest verify --shared {args.out}")
    return 0


def regrade_command(args: argparse.Namespace) -> int:
    """Grade the answers in logs again; return 1 if an answer is still unscored, else 0."""
    catalogue, own = whole_catalogue(), [load_own(name, "suite") for name in args.suite]
    suites = ChainMap({suite.name: suite for suite in own}, catalogue.suites)
    catalogue = replace(catalogue, suites=suites)
    with box_for_logs(args.dir, args.box, catalogue, args.max_sandboxes) as box:
        results = regrade_dir(args.dir, catalogue.suites, box, everything=args.all)
    for result in results:
        say(
            f"{result.log.name}: {result.graded} graded, {result.changed} verdicts changed, "
            f"{result.still_unscored} still unscored"
        )
    if (args.dir / FILE).exists():
        write_manifest(args.dir)
    if not results:
        say("Nothing to grade: every answered question has a score (--all grades all of them).")
    if not args.all and (older := older_graders(args.dir, catalogue.suites)):
        say(f"Verdicts of other grader versions: {older}; --all grades them again.")
    return 1 if any(result.still_unscored for result in results) else 0


def refuse_box(args: argparse.Namespace) -> None:
    """Raise UserError if --box names no known sandbox, or is given without --regrade."""
    if args.box and not args.regrade:
        raise UserError("--box needs --regrade, which runs programs there. Add --regrade.")
    if args.box:
        refuse_unknown(boxes(), args.box)


def regraded(args: argparse.Namespace) -> list[Remade]:
    """Grade all logs anew and compare with the old grades; programs are graded only with --box."""
    catalogue = whole_catalogue()
    with box_for_logs(args.dir, args.box, catalogue) if args.box else nullcontext() as box:
        return [*remade_dir(args.dir, catalogue.suites, box)]


def reward_command(args: argparse.Namespace) -> int:
    """Serve a suite's grades as rewards until a signal stops the server; return 0."""
    from podium.harness.rewards.reward_service import ServeRequest, serve_rewards

    request = taken(
        ServeRequest,
        args,
        suites=tuple(args.suite),
        allow_hosts=tuple(args.allow_host),
        timeout_s=args.timeout,
        task_args=dict(args.T),
    )
    if args.log_dir and args.pool:
        refuse_unwritable(args.log_dir, "--log-dir")
    serve_rewards(request, whole_catalogue(), _hooks(), say=partial(say, flush=True))
    return 0


def _hooks() -> Any:
    from podium.conductor.grpo_reward import PlanAnswerer, PlanSettings, shown_to_policy
    from podium.harness.rewards.reward_service import RewardHooks
    from podium.suites import strip_instruction

    return RewardHooks(
        answerer=lambda spec, book, request: PlanAnswerer(
            spec, book, PlanSettings(max_usd=request.max_usd, log_dir=request.log_dir)
        ),
        shown=shown_to_policy,
        catalogue=whole_catalogue,
        bare=strip_instruction,
    )
