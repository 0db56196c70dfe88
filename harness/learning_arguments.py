"""The arguments of `podium run` that say what systems may learn from and know of workers."""

import argparse

from harness import arguments


def run_arguments(run: argparse.ArgumentParser) -> None:
    """Add what `podium run` takes, for systems that learn or are matched too."""
    arguments.run_arguments(run)
    learning_arguments(run)


def doctor_arguments(doctor: argparse.ArgumentParser) -> None:
    """Add what `podium doctor` takes."""
    arguments.doctor_arguments(doctor)
    learning_arguments(doctor)


def learning_arguments(run: argparse.ArgumentParser) -> None:
    """Add what systems may learn from and know, and what they are matched with."""
    run.add_argument(
        "--train-calls",
        type=arguments.up_to(arguments.MOST),
        metavar="N",
        help="worker calls that each system may spend on learning (40 per worker)",
    )
    run.add_argument(
        "--train-on",
        action="append",
        default=[],
        metavar="SUITE",
        help="learn on this suite's train split; repeat (the exam's own train split)",
    )
    run.add_argument(
        "--match",
        metavar="SYSTEM",
        help="what compute-matched-usd and compute-matched-tokens cost (the conductor)",
    )
    run.add_argument(
        "--worker-cards",
        choices=("shown", "hidden"),
        help="whether conductors that are prompted, and router-llm, read the workers' role cards "
        "(shown; the paper hides them; a trained conductor is asked as it was trained)",
    )
