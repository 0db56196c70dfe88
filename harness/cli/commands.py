"""Every command of `podium`: its name, its arguments, what it calls."""

import argparse
import os
import sys

from harness.cli import catalogue, grade, money, run, train
from harness.errors import PodiumError
from harness.text import Parser, say

SLOW = {
    "run": ("harness.run.run", "suites._registry", "baselines._registry", "conductor._registry"),
    "demo": ("harness.run.demo", "suites._registry", "baselines._registry", "conductor._registry"),
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
        ("demo", run.demo_command, run.demo_arguments),
        ("run", run.run_command, run.run_and_learning_arguments),
        ("report", run.report_command, run.report_arguments),
        ("power", run.power_command, run.power_arguments),
        ("route", train.route_command, train.route_arguments),
        ("record", run.record_command, run.record_arguments),
        ("grade", grade.grade_command, grade.grade_arguments),
        ("redact", grade.redact_command, grade.redact_arguments),
        ("regrade", grade.regrade_command, grade.regrade_arguments),
        ("reward", grade.reward_command, grade.reward_arguments),
        ("train", train.train_command, train.train_arguments),
        ("ablate", train.ablate_command, train.ablate_arguments),
        ("audit", money.audit_command, money.audit_arguments),
        ("ledger", money.ledger_command, money.ledger_arguments),
        ("manifest", money.manifest_command, money.manifest_arguments),
        ("prices", money.prices_command, money.prices_arguments),
        ("reprice", money.reprice_command, money.reprice_arguments),
        ("suites", catalogue.suites_command, catalogue.listed_arguments),
        ("data", catalogue.data_command, catalogue.data_arguments),
        ("systems", catalogue.systems_command, catalogue.listed_arguments),
        ("workers", catalogue.workers_command, catalogue.pool_arguments),
        ("doctor", catalogue.doctor_command, run.doctor_and_learning_arguments),
        ("sandbox", catalogue.sandbox_command, catalogue.sandbox_arguments),
    ):
        add(catalogue.new_command(commands, name, function))
    return parser
