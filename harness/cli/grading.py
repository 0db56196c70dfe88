"""The commands that grade: grade, redact, regrade, reward."""

import argparse
import sys
from typing import TYPE_CHECKING

from harness.cli.parts import catalogue
from harness.errors import UserError
from harness.escape import say

if TYPE_CHECKING:
    from harness.regrade import Remade


def grade_command(args: argparse.Namespace) -> int:
    """Grade replies made anywhere; asks no model, resumes."""
    from harness.grade import GradeRequest, grade_file

    request = GradeRequest(
        suite=args.suite,
        replies=args.replies,
        out=args.out,
        problems=args.problems,
        box=args.box,
        max_sandboxes=args.max_sandboxes,
    )
    graded = grade_file(request, catalogue())
    say(graded)
    if graded.unscored:
        say(f"podium: {graded.unscored} unscored, the first: {graded.reason}", file=sys.stderr)
        say("podium: the same command tries the unscored replies again.", file=sys.stderr)
    return 1 if graded.unscored else 0


def redact_command(args: argparse.Namespace) -> int:
    """Copy logs without their texts, to share results of exams that must not be published."""
    from harness.redact import redact

    for done in redact(args.paths, args.out):
        if done.out:
            say(f"{done.out}: {done.samples} samples; numbers and digests kept, texts gone.")
        else:
            say(f"{done.log}: its questions may be published, so it can be shared as it is.")
    if (args.out / "MANIFEST.json").exists():
        say(f"The run's manifest is beside them: podium manifest verify --shared {args.out}")
    return 0


def regrade_command(args: argparse.Namespace) -> int:
    """Grade logs again without asking any model."""
    from harness.integrity.manifest import FILE, write_manifest
    from harness.regrade import box_for_logs, older_graders, regrade_dir

    known = catalogue()
    with box_for_logs(args.dir, args.box, known, args.max_sandboxes) as box:
        results = regrade_dir(args.dir, known.suites, box, everything=args.all)
    for result in results:
        say(
            f"{result.log.name}: {result.graded} graded, {result.changed} verdicts changed, "
            f"{result.still_unscored} still unscored"
        )
    if (args.dir / FILE).exists():
        write_manifest(args.dir)
    if not results:
        say("Nothing to grade: every answered question has a score (--all grades all again).")
    if not args.all and (older := older_graders(args.dir, known.suites)):
        say(f"Other versions of these graders gave verdicts: {older}; --all gives them anew.")
    return 1 if any(result.still_unscored for result in results) else 0


def refuse_box(args: argparse.Namespace) -> None:
    """Raise UserError for a box that does not exist, or that nothing would be run in."""
    from harness.boxes import refuse_unknown
    from harness.cli.parts import boxes

    if args.box and not args.regrade:
        raise UserError("--box is where --regrade runs programs: name --regrade, too.")
    if args.box:
        refuse_unknown(boxes(), args.box)


def regraded(args: argparse.Namespace) -> "list[Remade]":
    """Give the verdicts of a directory anew; those of programs where a box was named."""
    from contextlib import nullcontext

    from harness.regrade import box_for_logs, remade_dir

    known = catalogue()
    with box_for_logs(args.dir, args.box, known) if args.box else nullcontext() as box:
        return [*remade_dir(args.dir, known.suites, box)]


def reward_command(args: argparse.Namespace) -> int:
    """Serve a suite's grades as rewards to a trainer, over HTTP."""
    from dataclasses import replace
    from functools import partial

    from conductor.plan_reward import PlanSettings, planned, shown_to_policy
    from harness.rewards.launch import Parts, ServeRequest, launch
    from suites.bare import bare

    request = ServeRequest(
        suites=tuple(args.suite),
        split=args.split,
        limit=args.limit,
        box=args.box,
        max_sandboxes=args.max_sandboxes,
        pool=args.pool,
        host=args.host,
        port=args.port,
        allow_hosts=tuple(args.allow_host),
        token_file=args.token_file,
        max_usd=args.max_usd,
        timeout_s=args.timeout,
        max_masked=args.max_masked,
        most=args.most,
        values=args.values,
        on_unscored=args.on_unscored,
    )
    if args.log_dir and not args.pool:
        raise UserError("Grading replies calls no worker: --log-dir goes with --pool.")
    settings = PlanSettings(log_dir=args.log_dir)
    parts = Parts(
        answerer=lambda spec, book, usd: planned(spec, book, replace(settings, max_usd=usd)),
        shown=shown_to_policy,
        bare=bare,
    )
    launch(request, catalogue(), parts, say=partial(say, flush=True))
    return 0
