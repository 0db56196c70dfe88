"""The commands that ask models and report what they said: run, report, power, demo, record."""

import argparse
from pathlib import Path
from typing import Any

from harness.cli import catalogue
from harness.cli.catalogue import (
    EPOCHS,
    MOST,
    box_arguments,
    controls,
    dollars,
    finite,
    pool_arguments,
    up_to,
    whole_catalogue,
)
from harness.errors import UserError
from harness.records import SEED
from harness.text import say


def doctor_arguments(doctor: argparse.ArgumentParser) -> None:
    """Add what `podium doctor` takes, beside what a run may learn from."""
    pool_arguments(doctor)
    add = doctor.add_argument
    add("--suite", action="append", default=[], help="check a run of this suite; repeat")
    add("--system", action="append", default=[], help="by this system, or a group; repeat")
    add("--split", help="train, validation or eval (eval)")
    add("--limit", type=int, help="first N questions (all)")
    add("--log-dir", type=Path, help="an experiment that the run would go on with (a new one)")
    add("--box", help="also check this sandbox")


def record_arguments(record: argparse.ArgumentParser) -> None:
    """Add what `podium record` takes."""
    add = record.add_argument
    add("logs", type=Path, nargs="+", metavar="LOG", help=".eval files or directories")
    add("--out", type=Path, required=True, help="cassette to write, e.g. runs/tape.jsonl")


def demo_arguments(demo: argparse.ArgumentParser) -> None:
    """Add what `podium demo` takes."""
    add = demo.add_argument
    add("--out", type=Path, default=Path("demo"), help="directory to write (demo)")
    add("--limit", type=up_to(MOST), default=20, help="questions per suite")


def _budget_arguments(run: argparse.ArgumentParser) -> None:
    add = run.add_argument
    add(
        "--max-usd",
        type=dollars,
        metavar="USD",
        help="stop before a call that could pass this: each in flight holds back the most that it "
        "can cost (prompt, max_tokens, dearest rates), and those in flight are waited for",
    )
    add(
        "--max-usd-per-query",
        type=dollars,
        metavar="USD",
        help="the same for each question: it is left unanswered before a call that could pass "
        "this, and the others go on",
    )
    add(
        "--dry-run",
        action="store_true",
        help="say what would be asked and what it may cost; ask nobody, write nothing",
    )
    add(
        "--like",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="with --dry-run: past runs of the same workers to go by; repeat",
    )


def run_arguments(run: argparse.ArgumentParser) -> None:
    """Add what `podium run` takes."""
    add = run.add_argument
    add("--suite", action="append", required=True, help="suite name; repeat for several")
    add(
        "--system",
        action="append",
        default=[],
        help="system name; `single` for every worker; `all` for every system, router and "
        "control that fits pool, suites and installed extras; `contestants`, `routers`, `controls` "
        "or `frameworks` for those of a group; repeat (all that fit and need no training)",
    )
    pool_arguments(run)
    add("--log-dir", type=Path, required=True, help="an experiment: new, or to resume")
    add("--limit", type=up_to(MOST), help="first N questions (all)")
    add(
        "--epochs",
        type=up_to(EPOCHS),
        help="times each question is asked (the suite's usual number)",
    )
    add("--seed", type=up_to(SEED), help="seed of random controls and rehearsal workers (0)")
    add("--split", help="train, validation or eval (eval)")
    add(
        "--prompt",
        choices=("official", "paper"),
        help="as the benchmark's authors ask, or as the Conductor paper did where known (official)",
    )
    _budget_arguments(run)
    box_arguments(run)
    add("--time-scale", type=finite, help="rehearsal latency is slept times this (0.01)")
    add(
        "--display",
        default="line",
        choices=("line", "full", "rich", "plain", "none"),
        help="progress: line is ours, the others are Inspect's (line)",
    )


def run_and_learning_arguments(run: argparse.ArgumentParser) -> None:
    """Add what `podium run` takes, for systems that learn or are matched too."""
    run_arguments(run)
    learning_arguments(run)


def doctor_and_learning_arguments(doctor: argparse.ArgumentParser) -> None:
    """Add what `podium doctor` takes."""
    doctor_arguments(doctor)
    learning_arguments(doctor)


def learning_arguments(run: argparse.ArgumentParser) -> None:
    """Add what systems may learn from and know, and what they are matched with."""
    add = run.add_argument
    add(
        "--train-calls",
        type=catalogue.up_to(catalogue.MOST),
        metavar="N",
        help="worker calls that each system may spend on learning (40 per worker)",
    )
    add(
        "--train-on",
        action="append",
        default=[],
        metavar="SUITE",
        help="learn on this suite's train split; repeat (its own)",
    )
    add(
        "--match",
        metavar="SYSTEM",
        help="what compute-matched-usd and compute-matched-tokens cost (the conductor)",
    )
    add(
        "--worker-cards",
        choices=("shown", "hidden"),
        help="whether conductors that are prompted, and router-llm, read the workers' role cards "
        "(shown; the paper hides them; a trained conductor is asked as it was trained)",
    )


def run_request(args: argparse.Namespace, **more: Any) -> Any:
    """Return the request that arguments make; those a command does not take keep their default."""
    from dataclasses import fields

    from harness.run.catalogue import RunRequest

    taken = {field.name for field in fields(RunRequest)} & vars(args).keys()
    given: dict[str, Any] = {name: getattr(args, name) for name in taken}
    given["suites"], given["systems"] = tuple(args.suite), tuple(args.system)
    given["train_on"] = tuple(args.train_on)
    given.update(more)
    return RunRequest(**given)


def run_command(args: argparse.Namespace) -> int:
    """Run systems on suites over a pool; say what is left."""
    from harness.run.estimate import estimate, estimate_text
    from harness.run.run import podium_run, say_who_runs

    if args.like and not args.dry_run:
        raise UserError("--like goes with --dry-run: add it, or leave --like out.")
    request, parts = run_request(args), whole_catalogue()
    if not args.dry_run:
        return podium_run(request, parts, controls())
    moved = say_who_runs(request, parts)
    say(estimate_text(estimate(request, parts, controls(), args.like), request), end="")
    say("\n".join(moved), end="\n" if moved else "")
    return 0


def report_command(args: argparse.Namespace) -> int:
    """Write table.md, table.csv, table.json and plot.png from logs alone."""
    from reports.report import write_report

    first = args.dirs[0]
    out = args.out or (first.parent if first.is_file() else first) / "report"
    if getattr(args, "targets", False):
        return _targets(args.dirs, out)
    report = write_report(args.dirs, out, _wanted(args))
    say(report.text)
    say(f"Written to {out}: {', '.join(path.name for path in report.files)}")
    return 0


def _targets(dirs: list[Path], out: Path) -> int:
    from reports.targets import write_targets

    text, files = write_targets(dirs, out)
    say(text)
    say(f"Written to {out}: {', '.join(path.name for path in files)}")
    return 0


def _wanted(args: argparse.Namespace) -> Any:
    """Return what is asked of a report; a demo's report is asked for nothing special."""
    from reports.blocks import ReportOptions

    names = ("vs", "epochs", "maj", "derived", "published")
    return ReportOptions(**{name: getattr(args, name) for name in names if hasattr(args, name)})


def demo_command(args: argparse.Namespace) -> int:
    """Run every system on the practice suites and on recorded AIME25, then report."""
    from harness.run.demo import demo

    dirs = demo(args.out, whole_catalogue(), controls(), questions=args.limit, say=say)
    args.dirs, args.out = dirs, args.out / "report"
    return report_command(args)


def record_command(args: argparse.Namespace) -> int:
    """Turn logs into a cassette that replays them."""
    from harness.cassette import record
    from harness.ledger.runs import find_logs

    say(record(find_logs(args.logs), args.out))
    return 0


def report_arguments(report: argparse.ArgumentParser) -> None:
    """Add what `podium report` takes."""
    add = report.add_argument
    add("dirs", type=Path, nargs="+", metavar="DIR", help="log directories, searched recursively")
    add("--out", type=Path, help="directory to write (DIR/report)")
    add(
        "--vs", metavar="SYSTEM", help="hold all others against this one (best-single, else the "
        "first single worker)",
    )  # fmt: skip
    add(
        "--epochs",
        type=up_to(EPOCHS),
        metavar="N",
        help="only the first N epochs of every question (all)",
    )
    add(
        "--maj",
        type=up_to(EPOCHS),
        metavar="K",
        help="tries in a derived majority vote (all epochs)",
    )
    add("--derived", action="store_true", help="print derived rows, too: maj@k, oracle-router")
    add(
        "--targets", action="store_true", help="hold what was trained, by seeds, against its "
        "targets instead: targets.md and targets.json",
    )  # fmt: skip
    add("--published", action="store_true", help="print published figures of these suites, too")


def share(text: str) -> float:
    """Return a number from 0 to 1."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def percentage_points(text: str) -> float:
    """Return points of 100 as a share of 1."""
    value = float(text) / 100
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 100 points")
    return value


def counts(text: str) -> tuple[int, ...]:
    """Return whole numbers above 0, written as 1,2,4."""
    values = tuple(up_to(MOST)(part) for part in text.split(","))
    if min(values) < 1:
        raise argparse.ArgumentTypeError(f"{text} has a number below 1")
    return values


def power_arguments(power: argparse.ArgumentParser) -> None:
    """Add what `podium power` takes."""
    add = power.add_argument
    add(
        "--effect", type=percentage_points, metavar="POINTS", default=0.03,
        help="difference to be seen, in percentage points (3)",
    )  # fmt: skip
    add(
        "--from", dest="dirs", type=Path, nargs="+", metavar="DIR",
        help="take the variance from these logs",
    )  # fmt: skip
    add("--vs", metavar="SYSTEM", help="with --from: the reference")
    add(
        "--discordant", type=share, metavar="SHARE",
        help="share of the questions on which two systems differ (0.1)",
    )  # fmt: skip
    add("--accuracy", type=share, metavar="SHARE", help="of both systems")
    add("--correlation", type=share, metavar="R", help="with --accuracy: of their grades (0.5)")
    add(
        "--within", type=share, metavar="SHARE",
        help="share of the variance that lies within questions, which epochs shrink (0: unknown)",
    )  # fmt: skip
    add("--epochs", type=counts, metavar="N,N", default=(1, 2, 4, 8), help="(1,2,4,8)")
    add("--questions", type=counts, metavar="N,N", help="(30,100,198,500,1055 and that of --from)")


def power_command(args: argparse.Namespace) -> int:
    """Say how many questions and epochs it takes to see an effect; asks no model."""
    from harness.errors import UserError
    from reports.power import assumed_variance, measured_variances, power_text

    guess = {one: getattr(args, one) for one in ("discordant", "accuracy", "correlation", "within")}
    if args.dirs and set(guess.values()) != {None}:
        raise UserError("--from takes the variance from logs: leave the assumptions out.")
    if args.vs and not args.dirs:
        raise UserError("--vs names a system in logs: name their directory with --from, too.")
    sources = (
        measured_variances(args.dirs, args.vs)
        if args.dirs
        else [assumed_variance(args.effect, **guess)]
    )
    say("\n\n".join(power_text(one, args.effect, args.epochs, args.questions) for one in sources))
    return 0
