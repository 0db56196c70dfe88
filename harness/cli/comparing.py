"""The command that says how many questions and epochs an effect takes: power."""

import argparse

from harness.escape import say


def power_command(args: argparse.Namespace) -> int:
    """Say how many questions and epochs it takes to see an effect; asks no model."""
    from harness.errors import UserError
    from reports.power_table import Guess, Plan, guessed, measured, power_text

    guess = Guess(args.discordant, args.accuracy, args.correlation, args.within)
    if args.dirs and guess != Guess():
        raise UserError("--from takes the variance from logs: leave the assumptions out.")
    if args.vs and not args.dirs:
        raise UserError("--vs names a system in logs: name their directory with --from, too.")
    sources = measured(args.dirs, args.vs) if args.dirs else [guessed(guess, args.effect)]
    say(power_text(sources, Plan(args.effect, args.epochs, args.questions)))
    return 0
