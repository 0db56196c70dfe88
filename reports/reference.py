"""Which rows may be compared, and with what: versions that must agree, and the reference system."""

import json
from collections.abc import Sequence

from harness.errors import UserError
from harness.sittings import Sitting
from reports.intervals import Values

BEST_SINGLE = "best-single"
SINGLE = "single:"

CHOSEN = "chosen on the train split"
FIRST = "first single worker in the pool's order"

Group = tuple[str, str, str, str, str, str, str]
"""Suite, split, label, prompt, pool digest, seed, price book: what a reference is good within."""


def graded_values(sitting: Sitting) -> Values:
    """Return question -> grades of its graded epochs."""
    values: dict[str, list[float]] = {}
    for attempt in sitting.attempts:
        if attempt.value is not None:
            values.setdefault(attempt.question, []).append(attempt.value)
    return values


def reference_of(sittings: Sequence[Sitting], vs: str | None = None) -> Sitting | None:
    """Return what the others are compared with; None when no single worker was graded.

    It is the system named `vs` where one is, graded or not. Else it is `best-single` as chosen on
    the train split, else the `single:` worker that comes first in the pool's order. Both stand
    before the run: a reference picked by its result would be a choice in hindsight. Two sittings of
    one system are told apart by arguments, then by age.
    """
    if vs is not None:
        named = [sitting for sitting in sittings if sitting.facts.system == vs]
        return min(named, key=_age, default=None)
    able = [sitting for sitting in sittings if _may_be_reference(sitting)]
    return min(able, key=_place, default=None)


def rule_of(reference: str) -> str:
    """Return which of the two rules made a system the reference."""
    return CHOSEN if reference == BEST_SINGLE else FIRST


def _may_be_reference(sitting: Sitting) -> bool:
    facts = sitting.facts
    named = facts.system == BEST_SINGLE or facts.system in _singles(sitting)
    allowed = facts.reference_allowed and not facts.uses_targets
    return named and allowed and bool(graded_values(sitting))


def _singles(sitting: Sitting) -> list[str]:
    """Return the names of the single-worker systems, in the pool's order."""
    return [f"{SINGLE}{name}" for name in sitting.facts.workers]


def _place(sitting: Sitting) -> tuple[int, str, str]:
    """Return where a sitting stands in the queue for the reference."""
    queue = [BEST_SINGLE, *_singles(sitting)]
    return (queue.index(sitting.facts.system), *_age(sitting))


def _age(sitting: Sitting) -> tuple[str, str]:
    return (json.dumps(sitting.facts.args, sort_keys=True), sitting.logs[-1])


def refuse_mixed_versions(sittings: Sequence[Sitting]) -> None:
    """Raise UserError when an exam is there in two versions: its rows are no comparison."""
    ways = {"suite_version": ", or give the older one to podium regrade --all", "data_revision": ""}
    for what, way in ways.items():
        found: dict[tuple[str, str], str] = {}
        for sitting in sittings:
            facts = sitting.facts
            value = str(getattr(facts, what))
            first = found.setdefault((facts.suite, facts.split), value)
            if first != value:
                raise UserError(
                    f"Suite {facts.suite!r} is there with {what} {first} and {value} "
                    f"({sitting.logs[0]}): report the directories apart{way}."
                )


def group_of(sitting: Sitting) -> Group:
    """Return what rows must share to be compared: dollars at two price books are two currencies."""
    facts = sitting.facts
    book = f"{facts.prices['name']} {facts.prices['sha256']}"
    exam = (facts.suite, facts.split, facts.label, facts.prompt)
    return (*exam, facts.pool_sha256, str(facts.seed), book)
