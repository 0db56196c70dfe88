"""The commands that grade: grade, redact, regrade, reward."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.catalogue import EPOCHS, MOST, box_arguments, dollars, up_to, whole_catalogue
from harness.errors import UserError
from harness.text import say

if TYPE_CHECKING:
    from harness.judge import Remade


def reward_arguments(rewarded: argparse.ArgumentParser) -> None:
    """Add what `podium reward` takes."""
    actions = rewarded.add_subparsers(dest="action", metavar="ACTION", required=True)
    serve = actions.add_parser("serve", help="answer POST /score, /get_reward, /rm and /verify")
    add = serve.add_argument
    add("--suite", action="append", required=True, help="suite name; repeat for several")
    add("--split", default="train", choices=("train", "validation"), help="(train)")
    add("--limit", type=up_to(MOST), metavar="N", help="first N questions of each suite (all)")
    add("--pool", help="completions are workflows for these workers (completions are replies)")
    add("--host", default="127.0.0.1", help="address to listen on (127.0.0.1: this machine only)")
    add(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="holds what every request must send as `Authorization: Bearer`; needed beyond this "
        "machine",
    )
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="name under which trainers reach it, beside its address; repeat",
    )
    add("--port", type=int, default=0, help="port; 0 takes a free one and prints it (0)")
    add("--max-usd", type=dollars, help="ask no worker once this much is spent")
    add("--log-dir", type=Path, metavar="DIR", help="write down every call of a worker (nowhere)")
    add("--timeout", type=float, default=120.0, metavar="S", help="seconds per item (120)")
    add("--max-masked", type=float, default=0.3, help="largest share without a value (0.3)")
    add("--most", type=up_to(EPOCHS), metavar="N", help="items at once (cores; with --pool 64)")
    add(
        "--values",
        default="plain",
        choices=("plain", "paper"),
        help="plain: the grade; paper, with --pool: 0.5 for a readable plan that is wrong (plain)",
    )
    add(
        "--on-unscored",
        default="error",
        choices=("error", "zero"),
        help="what OpenRLHF is told of a missing reward: fail the request, or 0 (error)",
    )
    box_arguments(serve)


def regrade_arguments(regrade: argparse.ArgumentParser) -> None:
    """Add what `podium regrade` takes."""
    regrade.add_argument("dir", type=Path, metavar="DIR", help="log directory")
    which = regrade.add_mutually_exclusive_group()
    which.add_argument("--unscored", action="store_true", help="only what has no score (default)")
    which.add_argument("--all", action="store_true", help="everything, after a scorer changed")
    box_arguments(regrade)


def redact_arguments(redact: argparse.ArgumentParser) -> None:
    """Add what `podium redact` takes."""
    add = redact.add_argument
    add("paths", type=Path, nargs="+", metavar="LOG", help=".eval files or directories")
    add("--out", type=Path, required=True, metavar="DIR", help="directory for the copies")


def grade_arguments(grade: argparse.ArgumentParser) -> None:
    """Add what `podium grade` takes."""
    add = grade.add_argument
    add("--suite", required=True, help="suite name")
    add(
        "--problems",
        type=Path,
        metavar="FILE",
        help="the benchmark's own rows, JSONL (also .gz) or CSV (the suite's pinned questions)",
    )
    add(
        "--replies",
        type=Path,
        required=True,
        metavar="FILE",
        help="JSONL rows with question_id, reply and, where it is not 1, the epoch that was asked",
    )
    add(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="JSONL of verdicts: new, or to resume",
    )
    box_arguments(grade)


def grade_command(args: argparse.Namespace) -> int:
    """Grade replies made anywhere; asks no model, resumes."""
    from harness.grade_file import GradeRequest, grade_file

    request = GradeRequest(
        suite=args.suite,
        replies=args.replies,
        out=args.out,
        problems=args.problems,
        box=args.box,
        max_sandboxes=args.max_sandboxes,
    )
    graded = grade_file(request, whole_catalogue())
    say(graded)
    if graded.unscored:
        say(f"podium: {graded.unscored} unscored, the first: {graded.reason}", file=sys.stderr)
        say("podium: the same command tries the unscored replies again.", file=sys.stderr)
    return 1 if graded.unscored else 0


def redact_command(args: argparse.Namespace) -> int:
    """Copy logs without their texts, to share results of suites that must not be published."""
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
    from harness.judge import box_for_logs, older_graders, regrade_dir
    from harness.ledger.manifest import FILE, write_manifest

    known = whole_catalogue()
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
    from harness.cli.catalogue import boxes

    if args.box and not args.regrade:
        raise UserError("--box is where --regrade runs programs: name --regrade, too.")
    if args.box:
        refuse_unknown(boxes(), args.box)


def regraded(args: argparse.Namespace) -> "list[Remade]":
    """Give the verdicts of a directory anew; those of programs where a box was named."""
    from contextlib import nullcontext

    from harness.judge import box_for_logs, remade_dir

    known = whole_catalogue()
    with box_for_logs(args.dir, args.box, known) if args.box else nullcontext() as box:
        return [*remade_dir(args.dir, known.suites, box)]


def reward_command(args: argparse.Namespace) -> int:
    """Serve a suite's grades as rewards to a trainer, over HTTP."""
    from dataclasses import replace
    from functools import partial

    from conductor.reward import PlanAnswerer, PlanSettings, shown_to_policy
    from harness.rewards.launch import RewardHooks, ServeRequest, serve_rewards
    from suites import strip_instruction

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
    parts = RewardHooks(
        answerer=lambda spec, book, usd: PlanAnswerer(spec, book, replace(settings, max_usd=usd)),
        shown=shown_to_policy,
        bare=strip_instruction,
    )
    serve_rewards(request, whole_catalogue(), parts, say=partial(say, flush=True))
    return 0
