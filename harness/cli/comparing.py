"""The command that says how many questions and epochs an effect takes: power."""

import argparse

from harness.escape import say


def power_command(args: argparse.Namespace) -> int:
    """Say how many questions and epochs it takes to see an effect; asks no model."""
    from harness.errors import UserError
    from reports.power import (
        AssumedVariance,
        PowerGrid,
        assumed_variance,
        measured_variances,
        power_text,
    )

    guess = AssumedVariance(args.discordant, args.accuracy, args.correlation, args.within)
    if args.dirs and guess != AssumedVariance():
        raise UserError("--from takes the variance from logs: leave the assumptions out.")
    if args.vs and not args.dirs:
        raise UserError("--vs names a system in logs: name their directory with --from, too.")
    sources = (
        measured_variances(args.dirs, args.vs)
        if args.dirs
        else [assumed_variance(guess, args.effect)]
    )
    say(power_text(sources, PowerGrid(args.effect, args.epochs, args.questions)))
    return 0
