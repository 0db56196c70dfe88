"""The arguments of the commands that compare: report and power."""

import argparse
from pathlib import Path

from harness.arguments import EPOCHS, MOST, up_to


def report_arguments(report: argparse.ArgumentParser) -> None:
    """Add what `podium report` takes."""
    report.add_argument(
        "dirs", type=Path, nargs="+", metavar="DIR", help="log directories, searched recursively"
    )
    report.add_argument("--out", type=Path, help="directory to write (DIR/report)")
    report.add_argument(
        "--vs", metavar="SYSTEM", help="hold all others against this one (best-single, else the "
        "first single worker)",
    )  # fmt: skip
    report.add_argument(
        "--epochs",
        type=up_to(EPOCHS),
        metavar="N",
        help="only the first N epochs of every question (all)",
    )
    report.add_argument(
        "--maj",
        type=up_to(EPOCHS),
        metavar="K",
        help="tries in a derived majority vote (all epochs)",
    )
    report.add_argument(
        "--derived", action="store_true", help="print derived rows, too: maj@k, oracle-router"
    )
    report.add_argument(
        "--targets", action="store_true", help="hold what was trained, by seeds, against its "
        "targets instead: targets.md and targets.json",
    )  # fmt: skip
    report.add_argument(
        "--published", action="store_true", help="print published figures of these suites, too"
    )


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
    power.add_argument(
        "--effect", type=percentage_points, metavar="POINTS", default=0.03,
        help="difference to be seen, in percentage points (3)",
    )  # fmt: skip
    power.add_argument(
        "--from", dest="dirs", type=Path, nargs="+", metavar="DIR",
        help="take the variance from these logs",
    )  # fmt: skip
    power.add_argument("--vs", metavar="SYSTEM", help="with --from: the reference")
    power.add_argument(
        "--discordant", type=share, metavar="SHARE",
        help="share of the questions on which two systems differ (0.1)",
    )  # fmt: skip
    power.add_argument("--accuracy", type=share, metavar="SHARE", help="of both systems")
    power.add_argument(
        "--correlation", type=share, metavar="R", help="with --accuracy: of their grades (0.5)"
    )
    power.add_argument(
        "--within", type=share, metavar="SHARE",
        help="share of the variance that lies within questions, which epochs shrink (0: unknown)",
    )  # fmt: skip
    power.add_argument(
        "--epochs", type=counts, metavar="N,N", default=(1, 2, 4, 8), help="(1,2,4,8)"
    )
    power.add_argument(
        "--questions", type=counts, metavar="N,N", help="(30,100,198,500,1055 and that of --from)"
    )
