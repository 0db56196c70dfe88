"""Which rows may be compared, and with what: a report's options, the reference, blocks, boxes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from harness.boxes import BoxRecord
from harness.errors import UserError
from harness.ledger.totals import SystemRun
from harness.suite import OFFICIAL, Prompt
from reports.intervals import Values
from reports.row import TableRow, block_of
from reports.tries import FEWEST

# § Which rows may be compared, and with what: versions that must agree, and the reference
# § system.


BEST_SINGLE = "best-single"
SINGLE = "single:"

CHOSEN_RULE = "chosen on the train split"
FIRST_RULE = "first single worker in the pool's order"

Group = tuple[str, str, str, str, str, str, str]
"""Suite, split, label, prompt, pool digest, seed, price book: what a reference is good within."""


def graded_values(sitting: SystemRun) -> Values:
    """Return question -> grades of its graded epochs."""
    values: dict[str, list[float]] = {}
    for attempt in sitting.attempts:
        if attempt.value is not None:
            values.setdefault(attempt.question, []).append(attempt.value)
    return values


def reference_of(sittings: Sequence[SystemRun], vs: str | None = None) -> SystemRun | None:
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
    return min(able, key=_rank, default=None)


def rule_of(reference: str) -> str:
    """Return which of the two rules made a system the reference."""
    return CHOSEN_RULE if reference == BEST_SINGLE else FIRST_RULE


def _may_be_reference(sitting: SystemRun) -> bool:
    facts = sitting.facts
    named = facts.system == BEST_SINGLE or facts.system in _singles(sitting)
    allowed = facts.reference_allowed and not facts.uses_targets
    return named and allowed and bool(graded_values(sitting))


def _singles(sitting: SystemRun) -> list[str]:
    """Return the names of the single-worker systems, in the pool's order."""
    return [f"{SINGLE}{name}" for name in sitting.facts.workers]


def _rank(sitting: SystemRun) -> tuple[int, str, str]:
    """Return where a sitting stands in the queue for the reference."""
    queue = [BEST_SINGLE, *_singles(sitting)]
    return (queue.index(sitting.facts.system), *_age(sitting))


def _age(sitting: SystemRun) -> tuple[str, str]:
    return (json.dumps(sitting.facts.args, sort_keys=True), sitting.logs[-1])


def refuse_mixed_versions(sittings: Sequence[SystemRun]) -> None:
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


def group_of(sitting: SystemRun) -> Group:
    """Return what rows must share to be compared: dollars at two price books are two currencies."""
    facts = sitting.facts
    book = f"{facts.prices['name']} {facts.prices['sha256']}"
    exam = (facts.suite, facts.split, facts.label, facts.prompt)
    return (*exam, facts.pool_sha256, str(facts.seed), book)


# § What a reader asks of a report: a reference by name, some of the epochs, a majority of k
# § tries.
# §
# § Also what is refused for it, in one sentence with the way out. Which sittings may be
# § compared at all
# § is reports/blocks.py.


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The options of a report; as they are here, they ask for nothing special."""

    vs: str | None = None
    """System that all others are held against."""
    epochs: int | None = None
    """Only so many epochs of every question, the first ones."""
    maj: int | None = None
    """Tries in a majority; all epochs where it is not said."""
    derived: bool = False
    """Show derived rows in the terminal, too; table.md always has them."""
    published: bool = False
    """Show published figures in the terminal, too."""


DEFAULT_OPTIONS = ReportOptions()
NAMED_RULE = "named by --vs"


def refuse_unknown(vs: str | None, exams: Sequence[SystemRun]) -> None:
    """Raise UserError for a reference that is not there, or alone."""
    if vs is None:
        return
    names = sorted({sitting.facts.system for sitting in exams})
    if vs not in names:
        raise UserError(f"There is no system {vs!r} in these logs; there are: {', '.join(names)}.")
    if len(exams) == 1:
        raise UserError(f"{vs} is the one system only: there is nothing to compare.")


def refuse_mixed_epochs(exams: Sequence[SystemRun]) -> None:
    """Raise UserError when rows to be compared were asked a different number of times."""
    groups: dict[Group, list[SystemRun]] = {}
    for sitting in exams:
        groups.setdefault(group_of(sitting), []).append(sitting)
    for group in groups.values():
        asked = sorted({sitting.epochs for sitting in group})
        if len(asked) > 1:
            facts = group[0].facts
            raise UserError(
                f"Systems on {facts.suite} ({facts.split}, {facts.label}, pool {facts.pool}) were "
                f"asked each question a different number of times: {_each(group)}. Where a run "
                f"raised its epochs and was interrupted, the same command finishes it; else "
                f"--epochs {asked[0]} compares the first {_first(asked[0])} of all."
            )


def _each(group: Sequence[SystemRun]) -> str:
    said = sorted(f"{sitting.facts.system} {sitting.epochs}" for sitting in group)
    return ", ".join(said[:10]) + (", ..." if len(said) > 10 else "")


def _first(epochs: int) -> str:
    return "epoch" if epochs == 1 else f"{epochs} epochs"


def first_epochs(sitting: SystemRun, wanted: int | None) -> SystemRun:
    """Return a sitting as if each question had been asked `wanted` times; UserError for too many.

    What was paid and all other sums of calls stay those of every epoch.
    """
    if wanted is None or wanted == sitting.epochs:
        return sitting
    if not 1 <= wanted <= sitting.epochs:
        raise UserError(
            f"--epochs {wanted}: {sitting.facts.system} on {sitting.facts.suite} has "
            f"{sitting.epochs}; name a number from 1 to that."
        )
    kept = tuple(one for one in sitting.attempts if one.epoch <= wanted)
    asked = sitting.asked * wanted // sitting.epochs
    return replace(sitting, attempts=kept, epochs=wanted, asked=max(asked, len(kept)))


def without_whole_sums(row: TableRow, epochs: int) -> TableRow:
    """Return a row of the first epochs without the figures that are sums over all `epochs`."""
    if row.epochs == epochs:
        return row
    said = f"the first {_first(row.epochs)} of {epochs}; what was paid is of all, see the spend"
    return replace(
        row,
        usd_paid_per_query=None,
        usd_paid_low=None,
        usd_paid_high=None,
        usd_gpu_per_query=None,
        usd_scoring_per_query=None,
        notes="; ".join(filter(None, (row.notes, said))),
    )


def refuse_too_many_tries(maj: int | None, exams: Sequence[SystemRun]) -> None:
    """Raise UserError when no system was asked often enough for a majority of `maj` tries."""
    if maj is None:
        return
    if maj < FEWEST:
        raise UserError(f"--maj {maj}: a majority takes {FEWEST} tries or more.")
    most = max((sitting.epochs for sitting in exams), default=0)
    if maj > most:
        fewer = f", or ask for --maj {most} or fewer" if most >= FEWEST else ""
        raise UserError(
            f"A majority of {maj} needs {maj} epochs, and these logs have {most}: run with "
            f"--epochs {maj}{fewer}."
        )


# § Blocks: the rows that may be compared with one another, and how a block is told from
# § others.


NONE = "none"
DIGITS = 8
"""So many of a digest's digits are shown."""


def blocks_of(rows: Sequence[TableRow]) -> list[list[TableRow]]:
    """Return sorted rows block by block."""
    return [list(group) for _, group in groupby(rows, key=block_of)]


def pinned_name(name: str, digest: str) -> str:
    """Return a name that pins its content, e.g. `rehearsal (49f947b9)`."""
    return f"{name} ({digest[:DIGITS]})"


def pool_name(row: TableRow, rows: Sequence[TableRow]) -> str:
    """Return a row's pool, with its seed and digest only where `rows` have another one as well."""
    digests = {other.pool_sha256 for other in rows if other.pool == row.pool}
    name = row.pool if len(digests) == 1 else pinned_name(row.pool, row.pool_sha256)
    return name if len({other.seed for other in rows}) == 1 else f"{name}, seed {row.seed}"


def book_name(row: TableRow, rows: Sequence[TableRow]) -> str:
    """Return a row's price book, with its digest only where `rows` have two of that name."""
    digests = {other.price_book_sha256 for other in rows if other.price_book == row.price_book}
    name = row.price_book
    return name if len(digests) == 1 else pinned_name(name, row.price_book_sha256)


def exam_name(row: TableRow) -> str:
    """Return what a block is about, e.g. `aime25 1-A (eval), paper prompt, rehearsal`."""
    return f"{row.suite} {row.suite_version} ({row.split}){prompt_words(row.prompt)}, {row.label}"


def prompt_words(prompt: Prompt) -> str:
    """Return the words on how questions were put; none where it was the official way."""
    return "" if prompt == OFFICIAL else f", {prompt} prompt"


def avg_at(rows: Sequence[TableRow]) -> str:
    """Return how often a block's questions were asked, e.g. `avg@4`; empty where only once."""
    asked = sorted({row.epochs for row in rows})
    return "" if asked == [1] else "avg@" + " and avg@".join(map(str, asked))


def reference_of_block(rows: Sequence[TableRow]) -> str:
    """Return the system that a block is compared with, or `none`."""
    return next((row.reference for row in rows if row.reference), NONE)


# § Where programs ran, in words: every table says which box graded it.


def box_of(row: TableRow) -> str:
    """Return a row's box, e.g. `docker (Python 3.11.2, podium-sandbox 9f86d081884c)`."""
    if row.box is None:
        return ""
    if row.box_python is None:  # a log from before boxes told what they are
        return row.box
    facts = BoxRecord(python=row.box_python, image=row.box_image, image_id=row.box_image_id)
    return f"{row.box} ({facts.short})"


def boxes_of(rows: Sequence[TableRow]) -> list[str]:
    """Return the boxes that graded some rows; with more than one, each row must say which."""
    return sorted({box_of(row) for row in rows if row.box})


def boxes_by_row(rows: Sequence[TableRow]) -> list[tuple[str, TableRow]]:
    """Return each row with its box where the rows had several boxes; nothing where they had one."""
    return [(box_of(row), row) for row in rows if row.box] if len(boxes_of(rows)) > 1 else []


def package_lines(rows: Sequence[TableRow]) -> list[str]:
    """Return what programs could import beside the standard library, a sentence for each box."""
    lines: dict[str, None] = {}
    for row in rows:
        if row.box and row.box_packages is not None:
            names = row.box_packages.split()
            said = f"{len(names)} third-party packages: {', '.join(names)}" if names else "no more"
            digest = f"; image {row.box_image_id}" if row.box_image_id else ""
            lines[f"{box_of(row)}: the standard library and {said}{digest}"] = None
    return list(lines)
