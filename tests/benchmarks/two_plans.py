"""The control for what a trained conductor learnt: two plans written by hand, and nothing learnt.

    PYTHONPATH=. python tests/benchmarks/two_plans.py --out two --system conductor@RUN/best ...
        [--split eval] [--beside LOGS ...]

`two-plans@WORKER` asks scribe alone where a question wants a program, and elsewhere scholar, whose
reply WORKER uses; in the neutral words of baselines/oracle.py. These are the two shapes that
plan_shapes.py finds in trained conductors, so a conductor that is not above both controls has
not been shown to plan by anything but the kind of question, which the control is told and a
conductor must read. No system of podium's: whom to ask was taken from conductors' plans, so nobody
could have written it beforehand. Resumes. Who sat the same exams in other runs is compared, too,
from their logs (--beside).
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspect_ai.solver import Solver, solver

from podium.baselines.oracle import GATHER, USE
from podium.cli.list_commands import controls, whole_catalogue
from podium.harness.inspect_adapters import as_solver
from podium.harness.pool import Pool
from podium.harness.records import Question
from podium.harness.run.catalogue import Catalogue, RunRequest
from podium.harness.run.run import run
from podium.harness.system import Calls, SystemCard, SystemMethods, planned
from podium.harness.workflow import Step, Workflow
from tests.benchmarks.paired_table import by_suite, read, table

NAME = "two-plans"
SUITES = ("practice-integer", "practice-choice", "practice-code", "practice-composed")
FIRST, CODER = "scholar", "scribe"
SECONDS = ("abacus", "verifier")


def written(question: Question, second: str) -> Workflow:
    """Return one of the two plans."""
    if question.kind == "program":
        return Workflow((Step(CODER),))
    return Workflow((Step(FIRST, GATHER), Step(second, USE, reads=(0,))))


@solver
def two_plans(second: str, pool: str | None = None) -> Solver:
    """Ask by the kind of question alone."""

    def plan(question: Question, pool: Pool) -> Workflow:
        return written(question, second)

    return as_solver(planned(plan), pool)


class _Second(SystemMethods):
    def arguments(self, x: str) -> Mapping[str, Any]:
        return {"second": x or SECONDS[0]}


MANIFEST = SystemCard(
    name=NAME,
    solver=f"benchmarks/{NAME}",
    summary="Two plans written by hand, chosen by the kind of question.",
    source="podium (control, after a look at trained conductors' plans)",
    calls=Calls("1-2", lambda n, args: (1, 2)),
    group="controls",
    prompts=(GATHER, USE),
    k="second",
    methods=_Second(),
)


def with_control(parts: Catalogue) -> Catalogue:
    """Return podium's parts and the control."""

    def made(name: str, args: Mapping[str, Any]) -> Solver:
        return two_plans(**args) if name == MANIFEST.solver else parts.solver(name, args)

    def parameters(name: str) -> Any:
        return ("second", "pool") if name == MANIFEST.solver else parts.parameters(name)

    systems = {**parts.systems, NAME: MANIFEST}
    return replace(parts, systems=systems, solver=made, parameters=parameters)


def main(words: Sequence[str] | None = None) -> int:
    """Run what is missing, and print a table against each control."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--system", nargs="+", default=["conductor"])
    parser.add_argument("--split", default="validation", choices=("validation", "eval"))
    parser.add_argument("--suites", nargs="+", default=list(SUITES))
    parser.add_argument("--beside", nargs="+", type=Path, default=(), help="logs of the same exams")
    parser.add_argument("--limit", type=int, help="first N questions of each suite (all)")
    given = parser.parse_args(words)
    both = [f"{NAME}@{second}" for second in SECONDS]
    request = RunRequest(
        suites=tuple(given.suites),
        systems=(*both, *given.system),
        pool="rehearsal",
        log_dir=given.out,
        limit=given.limit,
        split=given.split,
        display="none",
    )
    outcome = run(request, with_control(whole_catalogue()), controls())
    found = read(given.out, given.beside)
    rows = [(one.name, one.name) for one in found.systems]
    for control in both:
        print(table(found, control, rows), end="\n\n")
        print(by_suite(found, control, rows), end="\n\n")
    return 0 if outcome.finished else 1


if __name__ == "__main__":
    sys.exit(main())
