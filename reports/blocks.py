"""Groups a report's rows into blocks of comparable rows; also options, references, sandboxes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from podium.harness.boxes import BoxRecord
from podium.harness.errors import UserError, did_you_mean
from podium.harness.ledger.totals import SystemRun
from podium.harness.suite import OFFICIAL, Prompt
from podium.reports.intervals import FEWEST, grades_of
from podium.reports.row import TableRow, block_of

BEST_SINGLE, SINGLE = "best-single", "single:"
Group = tuple[str, str, str, str, str, str, str, str]
"""Key of comparable runs: suite, split, label, prompt, pool digest, seed, prices, budget."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The options of a report, with their defaults."""

    vs: str | None = None  # system that all others are compared with
    epochs: int | None = None  # number of first epochs of every question that are used
    maj: int | None = None  # tries in a majority vote (default: all epochs)
    derived: bool = False  # show derived rows in the terminal, too; table.md always has them
    published: bool = False  # show published figures in the terminal, too
    equivalence: float | None = None  # margin of accuracy within which systems are equivalent
    columns: tuple[str, ...] = ()  # columns of the tables, in order; if empty, each table's default
    choices: bool = False  # show which models gateways chose
    deep: bool = False  # read the logs of every shard instead of the shards' stored tables


DEFAULTS = ReportOptions()


def reference_of(system_runs: Sequence[SystemRun], vs: str | None = None) -> SystemRun | None:
    """Return the reference, the run that all others are compared with; None if there is none.

    The reference is the system named `vs`, graded or not; else `best-single`, chosen on the train
    split; else the pool's first `single:` worker. All three are fixed before the run, so no result
    decides. Two runs of one system are ordered by arguments, then by age.
    """
    if vs is not None:
        matches = [system_run for system_run in system_runs if system_run.facts.system == vs]
        return min(matches, key=_age, default=None)
    ranks = [(rank, run) for run in system_runs if (rank := _rank(run)) is not None]
    return min(ranks, key=lambda pair: (pair[0], *_age(pair[1])), default=(0, None))[1]


def _rank(system_run: SystemRun) -> int | None:
    """Return a run's rank among possible references, 0 preferred; None if it cannot be one."""
    facts = system_run.facts
    queue = [BEST_SINGLE, *(f"{SINGLE}{name}" for name in facts.workers)]
    allowed = facts.reference_allowed and not facts.uses_targets and facts.system in queue
    return queue.index(facts.system) if allowed and grades_of(system_run.attempts) else None


def _age(system_run: SystemRun) -> tuple[str, str]:
    return (json.dumps(system_run.facts.args, sort_keys=True), system_run.logs[-1])


def group_of(system_run: SystemRun) -> Group:
    """Return the key of a run's group: only runs with equal keys are compared."""
    facts = system_run.facts
    book = f"{facts.prices['name']} {facts.prices['sha256']}"
    questions = (facts.suite, facts.split, facts.label, facts.prompt)
    return (*questions, facts.pool_sha256, str(facts.seed), book, facts.equal)


def comparable_groups(
    system_runs: Sequence[SystemRun], options: ReportOptions = DEFAULTS
) -> list[list[tuple[SystemRun, int]]]:
    """Return groups of comparable runs: (run cut to the chosen epochs, its full number of epochs).

    UserError if runs of a group differ in epochs, or if an option does not fit the runs.
    """
    evaluated = [system_run for system_run in system_runs if system_run.facts.purpose == "eval"]
    refuse_mixed_versions(evaluated)
    _refuse_options(options, evaluated)
    groups: dict[Group, list[tuple[SystemRun, int]]] = {}
    for system_run in evaluated:
        cut_run = _first_epochs(system_run, options.epochs)
        groups.setdefault(group_of(cut_run), []).append((cut_run, system_run.epochs))
    for group in groups.values():
        _refuse_mixed_epochs([system_run for system_run, _ in group])
    return list(groups.values())


def refuse_mixed_versions(system_runs: Sequence[SystemRun]) -> None:
    """Raise UserError if runs of a suite differ in version, data, or rule on too-long requests."""
    again = ", or give the older one to podium regrade --all"
    ways = {"suite_version": again, "data_revision": "", "overflows": again}
    for field, way in ways.items():
        values: dict[tuple[str, str], str] = {}
        for system_run in system_runs:
            facts = system_run.facts
            value = str(getattr(facts, field))
            other_value = values.setdefault((facts.suite, facts.split), value)
            if other_value != value:
                raise UserError(
                    f"Suite {facts.suite!r} has {field} {other_value} in some logs and {value} in "
                    f"others ({system_run.logs[0]}). Report the directories separately{way}."
                )


def _refuse_options(options: ReportOptions, evaluated: Sequence[SystemRun]) -> None:
    vs, maj, margin = options.vs, options.maj, options.equivalence
    if margin is not None and not 0 < margin <= 1:
        raise UserError(
            f"The equivalence margin {margin:g} is not valid. Give a share above 0 and at most 1; "
            "0.02 is two points."
        )
    names = sorted({system_run.facts.system for system_run in evaluated})
    if vs is not None and vs not in names:
        near, there = did_you_mean(vs, names), ", ".join(names)
        raise UserError(f"{near}There is no system {vs!r} in these logs. Name one of: {there}.")
    if vs is not None and len(evaluated) == 1:
        raise UserError(f"{vs} is the only system: nothing can be compared. Leave --vs out.")
    if maj is None:
        return
    if maj < FEWEST:
        raise UserError(f"--maj {maj} is too small. A majority needs at least {FEWEST} tries.")
    maximum = max((system_run.epochs for system_run in evaluated), default=0)
    if maj > maximum:
        fewer = f", or ask for --maj {maximum} or fewer" if maximum >= FEWEST else ""
        raise UserError(
            f"A majority of {maj} needs {maj} epochs, and these logs have {maximum}: run with "
            f"--epochs {maj}{fewer}."
        )


def _refuse_mixed_epochs(group: Sequence[SystemRun]) -> None:
    counts = sorted({system_run.epochs for system_run in group})
    if len(counts) > 1:
        each = sorted(f"{system_run.facts.system} {system_run.epochs}" for system_run in group)
        facts = group[0].facts
        raise UserError(
            f"Systems on {facts.suite} ({facts.split}, {facts.label}, pool {facts.pool}) have "
            f"different numbers of epochs: {', '.join(each[:10])}"
            f"{', ...' if len(each) > 10 else ''}. If a run that raised its epochs was "
            f"interrupted, finish it with the same command. Otherwise add --epochs {counts[0]}, "
            f"which compares only the first {_first(counts[0])} of every system."
        )


def _first(epochs: int) -> str:
    return "epoch" if epochs == 1 else f"{epochs} epochs"


def _first_epochs(system_run: SystemRun, epochs: int | None) -> SystemRun:
    """Return a system run cut to its first `epochs` epochs; UserError if it has fewer."""
    if epochs is None or epochs == system_run.epochs:
        return system_run
    if not 1 <= epochs <= system_run.epochs:
        raise UserError(
            f"--epochs {epochs}: {system_run.facts.system} on {system_run.facts.suite} has "
            f"{system_run.epochs} epochs. Give a number from 1 to {system_run.epochs}."
        )
    attempts = tuple(attempt for attempt in system_run.attempts if attempt.epoch <= epochs)
    n_asked = system_run.asked * epochs // system_run.epochs
    return replace(system_run, attempts=attempts, epochs=epochs, asked=max(n_asked, len(attempts)))


def without_whole_sums(row: TableRow, epochs: int) -> TableRow:
    """Return a row; if it covers fewer than `epochs` epochs, without dollars known only for all."""
    if row.epochs == epochs:
        return row
    which = f"the first {_first(row.epochs)} of {epochs}"
    note = f"{which}; the dollars paid are those of all epochs, see the spend"
    sums = ("paid_per_query", "paid_low", "paid_high", "gpu_per_query", "scoring_per_query")
    unknown = dict.fromkeys(f"usd_{name}" for name in sums)
    return replace(row, notes="; ".join(filter(None, (row.notes, note))), **unknown)


def blocks_of(rows: Sequence[TableRow]) -> list[list[TableRow]]:
    """Split sorted rows into blocks of comparable rows."""
    return [list(group) for _, group in groupby(rows, key=block_of)]


def pinned_name(name: str, digest: str) -> str:
    """Return a name with the beginning of its content's digest, e.g. `rehearsal (49f947b9)`."""
    return f"{name} ({digest[:8]})"


def pool_name(row: TableRow, rows: Sequence[TableRow]) -> str:
    """Return a row's pool, with its seed or digest only if `rows` have several seeds or digests."""
    digests = {peer.pool_sha256 for peer in rows if peer.pool == row.pool}
    name = row.pool if len(digests) == 1 else pinned_name(row.pool, row.pool_sha256)
    return name if len({peer.seed for peer in rows}) == 1 else f"{name}, seed {row.seed}"


def book_name(row: TableRow, rows: Sequence[TableRow]) -> str:
    """Return a row's price book, with its digest only if `rows` have two books of that name."""
    digests = {peer.price_book_sha256 for peer in rows if peer.price_book == row.price_book}
    pinned = pinned_name(row.price_book, row.price_book_sha256)
    return row.price_book if len(digests) == 1 else pinned


def versioned_suite(row: TableRow) -> str:
    """Return a row's suite, its version and its split, e.g. `aime25, version 1-A (eval)`."""
    return f"{row.suite}, version {row.suite_version} ({row.split})"


def asked_name(row: TableRow) -> str:
    """Return the name of a row's block, e.g. `aime25, version 1-A (eval), rehearsal`."""
    return f"{versioned_suite(row)}{prompt_words(row.prompt, row.equal)}, {row.label}"


def prompt_words(prompt: Prompt, equal: str) -> str:
    """Return the end of a title: the prompt, unless official, and the equal budget, if any."""
    suffix = "" if prompt == OFFICIAL else f", {prompt} prompt"
    return f"{suffix}, within {equal}" if equal else suffix


def avg_at(rows: Sequence[TableRow]) -> str:
    """Return how often a block's questions were asked, e.g. `avg@4`; empty if only once."""
    counts = sorted({row.epochs for row in rows})
    return "" if counts == [1] else "avg@" + " and avg@".join(map(str, counts))


def reference_of_block(rows: Sequence[TableRow]) -> str:
    """Return the system that a block of rows is compared with, or `none`."""
    return next((row.reference for row in rows if row.reference), "none")


ORACLE = "oracle"
"""Name prefix of systems that know the answers and pick the best of a fixed set of plans."""


def beaten_oracles(oracles: Sequence[TableRow], rows: Sequence[TableRow]) -> list[str]:
    """Return a sentence for each oracle that is less accurate than other rows of its block."""
    sentences: list[str] = []
    for oracle in oracles:
        block = [row for row in rows if block_of(row) == block_of(oracle)]
        above = [row.system for row in block if _beats(row, oracle)]
        if oracle.system.startswith(ORACLE) and above:
            among = "single workers" if oracle.derived else "a fixed set of plans"
            sentences.append(
                f"{oracle.system} is below {', '.join(above)}: it is the best choice among {among} "
                "only, and another plan may answer what none of those can"
            )
    return sentences


def _beats(row: TableRow, oracle: TableRow) -> bool:
    if row.accuracy is None or oracle.accuracy is None:
        return False
    return not row.uses_targets and row.accuracy > oracle.accuracy


def box_of(row: TableRow) -> str:
    """Return a row's sandbox, e.g. `docker (Python 3.11.2, podium-sandbox 9f86d081884c)`, or ""."""
    if row.box is None:
        return ""
    if row.box_python is None:  # an older log: it has only the name of the sandbox
        return row.box
    facts = BoxRecord(python=row.box_python, image=row.box_image, image_id=row.box_image_id)
    return f"{row.box} ({facts.short})"


def boxes_of(rows: Sequence[TableRow]) -> list[str]:
    """Return the different sandboxes in which the programs of these rows ran, sorted."""
    return sorted({box_of(row) for row in rows if row.box})


def boxes_by_row(rows: Sequence[TableRow]) -> list[tuple[str, TableRow]]:
    """Return (sandbox, row) for each row with a sandbox, if there are several sandboxes."""
    return [(box_of(row), row) for row in rows if row.box] if len(boxes_of(rows)) > 1 else []


def package_lines(rows: Sequence[TableRow]) -> list[str]:
    """Return a sentence for each sandbox on its packages besides the standard library."""
    lines: dict[str, None] = {}
    for row in rows:
        if row.box and row.box_packages is not None:
            names = row.box_packages.split()
            text = f"{len(names)} third-party packages: {', '.join(names)}" if names else "no more"
            digest = f"; image {row.box_image_id}" if row.box_image_id else ""
            lines[f"{box_of(row)}: the standard library and {text}{digest}"] = None
    return list(lines)
