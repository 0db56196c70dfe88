"""Every command of `podium`: its name, its arguments, what it calls.

What a run refuses and does is harness/compose.py and harness/run.py; arguments are in
harness/arguments.py and the files beside it, the commands in the files of this package, the parts
in parts.py.
"""

import argparse
import os
import sys

from harness import (
    arguments,
    learning_arguments,
    money_arguments,
    report_arguments,
    route_arguments,
    train_arguments,
)
from harness.cli import (
    ablating,
    auditing,
    comparing,
    grading,
    integrity,
    ledgering,
    money,
    routing,
    running,
    showing,
    training,
)
from harness.errors import PodiumError
from harness.escape import Parser, say

SLOW = {
    "run": ("harness.run", "suites._registry", "baselines._registry", "conductor._registry"),
    "demo": ("harness.demo", "suites._registry", "baselines._registry", "conductor._registry"),
}
"""What a command imports before it begins, for a break to find nothing begun."""


def carry_out(args: argparse.Namespace) -> int:
    """Run the command that was read; what it raises becomes a sentence and an exit code."""
    try:
        return args.command(args)
    except PodiumError as error:
        say(f"podium: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output, `head` say, has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        place = error.filename or getattr(args, "log_dir", None) or "a file"
        say(f"podium: {place}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        say("\npodium: stopped; the same command again finishes what is left.", file=sys.stderr)
        return 130


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; its help is the reference."""
    parser = Parser(
        prog="podium",
        description="Does a small learned orchestrator beat what people use instead, at what cost?",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, function, add in (
        ("demo", running.demo_command, arguments.demo_arguments),
        ("run", running.run_command, learning_arguments.run_arguments),
        ("report", running.report_command, report_arguments.report_arguments),
        ("power", comparing.power_command, report_arguments.power_arguments),
        ("route", routing.route_command, route_arguments.route_arguments),
        ("record", running.record_command, arguments.record_arguments),
        ("grade", grading.grade_command, arguments.grade_arguments),
        ("redact", grading.redact_command, arguments.redact_arguments),
        ("regrade", grading.regrade_command, arguments.regrade_arguments),
        ("reward", grading.reward_command, arguments.reward_arguments),
        ("train", training.train_command, train_arguments.train_arguments),
        ("ablate", ablating.ablate_command, train_arguments.ablate_arguments),
        ("audit", auditing.audit_command, money_arguments.audit_arguments),
        ("ledger", ledgering.ledger_command, arguments.ledger_arguments),
        ("manifest", integrity.manifest_command, arguments.manifest_arguments),
        ("prices", money.prices_command, money_arguments.prices_arguments),
        ("reprice", money.reprice_command, money_arguments.reprice_arguments),
        ("suites", showing.suites_command, arguments.listed_arguments),
        ("data", showing.data_command, arguments.data_arguments),
        ("systems", showing.systems_command, arguments.listed_arguments),
        ("workers", showing.workers_command, arguments.pool_arguments),
        ("doctor", showing.doctor_command, learning_arguments.doctor_arguments),
        ("sandbox", showing.sandbox_command, arguments.sandbox_arguments),
    ):
        add(arguments.new_command(commands, name, function))
    return parser
