"""Which plans a conductor wrote in an evaluation, by suite: does it condition on the question?

    python tests/benchmarks/plan_shapes.py LOGS... [--system conductor] [--joined]

LOGS are directories of `podium run`, or single logs. A shape is the workers in order, and who reads
whom: `single` is one step, `chain` reads as deep as it is long, `apart` reads nothing (so all but
the last step are for nothing), `judge` is a last step that reads two or more that have not read
each other, `tree` is the rest. Words of subtasks are no part of a shape; `plans` counts with them.
Prints a line per system and suite; `--joined` adds one over all suites. Of a plan that was made in
several rounds the last one counts, and answers that never had a plan are `none`.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.harness.ledger.logs import find_logs, open_log, verdict
from podium.harness.ledger.runs import facts_in
from podium.harness.ledger.system_runs import entries
from podium.harness.records import PODIUM
from podium.harness.workflow import Workflow, workflow_of

ALL = "all"
NONE = "none"
ACCESSES = ("single", "chain", "judge", "tree", "apart")
HEADS = ("system", "suite", "questions", "no plan", "commonest shape", "its share", "right with it",
         "second", "its share", "shapes", "plans", *ACCESSES)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seen:
    """The plan of one answered question."""

    system: str
    suite: str
    question: str
    plan: Workflow | None
    """None where it could not be read."""
    right: float | None


def access(plan: Workflow) -> str:
    """Return what a plan's reads come to.

    >>> from podium.harness.workflow import Step
    >>> access(Workflow((Step("a"), Step("b"), Step("c", reads=(0, 1)))))
    'judge'
    """
    count, depths = len(plan.steps), plan.depths()
    if count == 1:
        return "single"
    if max(depths) == count:
        return "chain"
    if max(depths) == 1:
        return "apart"
    heard = plan.reads(count - 1)
    alone = not any(other in plan.reads(one) for one in heard for other in heard)
    return "judge" if len(heard) > 1 and alone else "tree"


def shape(plan: Workflow) -> str:
    """Return a plan's workers and reads in one line, e.g. `scholar, sage<1 (chain)`."""
    steps: list[str] = []
    for index, step in enumerate(plan.steps):
        reads = "+".join(str(read + 1) for read in plan.reads(index))
        steps.append(f"{step.worker}<{reads}" if reads else step.worker)
    return f"{', '.join(steps)} ({access(plan)})"


def seen_in(path: Path, wanted: str) -> Iterator[Seen]:
    """Yield the plans of one log; none where it is another system's."""
    with open_log(path) as log:
        facts = facts_in(log.header["eval"].get("metadata"), path)
    if facts is None or facts.purpose != "eval" or not facts.system.startswith(wanted):
        return
    for entry in entries([path]):
        if entry.current:
            metadata: dict[str, Any] = entry.sample.get("metadata") or {}
            held: dict[str, Any] = metadata.get(PODIUM) or {}
            plan = workflow_of(held.get("plan"))
            question = str(entry.sample["id"])
            yield Seen(facts.system, facts.suite, question, plan, verdict(entry.sample))


def line(name: tuple[str, str], found: Sequence[Seen]) -> tuple[str, ...]:
    """Return one line of the table."""
    plans = [(one.plan, one.right) for one in found if one.plan is not None]
    shapes = Counter(shape(plan) for plan, _ in plans)
    first, second = (*shapes.most_common(2), (NONE, 0), (NONE, 0))[:2]
    grades = [right for plan, right in plans if right is not None and shape(plan) == first[0]]
    kinds = Counter(access(plan) for plan, _ in plans)
    return (
        *name,
        str(len(found)),
        str(len(found) - len(plans)),
        first[0],
        _share(first[1], len(found)),
        _share(sum(grades), len(grades)),
        second[0] if second[1] else "-",
        _share(second[1], len(found)),
        str(len(shapes)),
        str(len({plan.as_json() for plan, _ in plans})),
        *(_share(kinds[kind], len(found)) for kind in ACCESSES),
    )


def _share(part: float, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def table(paths: Sequence[Path], wanted: str, *, joined: bool) -> str:
    """Return the Markdown table of some logs."""
    held: defaultdict[tuple[str, str], list[Seen]] = defaultdict(list)
    for path in find_logs(paths):
        for one in seen_in(path, wanted):
            held[one.system, one.suite].append(one)
            if joined:
                held[one.system, ALL].append(one)
    lines = [HEADS, ("---",) * len(HEADS), *(line(name, held[name]) for name in sorted(held))]
    return "\n".join(f"| {' | '.join(each)} |" for each in lines)


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--system", default="conductor", help="beginning of systems' names")
    parser.add_argument("--joined", action="store_true", help="also a line over all suites")
    given = parser.parse_args(words)
    print(table(given.logs, given.system, joined=given.joined))
    return 0


if __name__ == "__main__":
    sys.exit(main())
