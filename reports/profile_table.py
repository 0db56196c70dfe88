"""Tables of profiles (results of workers on train questions): by suite, and by question kind."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256

from podium.harness.errors import UserError
from podium.harness.learning import parse_artifact
from podium.harness.ledger.totals import SystemRun
from podium.harness.profiles import Profile, ProfileRow, ProfileTable, table_of_arrays
from podium.harness.question_kinds import FORMS
from podium.harness.shards.plan import parent_of
from podium.harness.text import columns
from podium.reports import stats
from podium.reports.comparison_rows import Pair
from podium.reports.render import UNKNOWN, count, interval, percent, usd_about

HEADS = (
    *("suite", "worker", "asked", "right %", "95 % interval", "no answer %"),
    *("USD/call", "tokens out", "seconds"),
)


def profile_text(profile: Profile) -> str:
    """Return a profile as a table for a terminal, a line per suite and worker, and its notes."""
    title = f"{profile.pool} ({profile.label}), on train questions; profile {profile.sha256[:12]}"
    lines = columns(HEADS, [_cells(row) for row in profile.rows])
    return "\n".join((title, "", lines, *(f"- {note}" for note in profile.notes)))


def _cells(row: ProfileRow) -> tuple[str, ...]:
    if not row.asked:
        return (row.suite, row.worker, "0", *[UNKNOWN] * 6)
    share = row.right / row.asked
    return (
        *(row.suite, row.worker, str(row.asked), percent(share)),
        interval(*stats.wilson(share, row.asked)),
        percent(row.no_answer / row.asked),
        *(usd_about(row.usd), count(row.tokens_out), count(row.seconds, 2)),
    )


def kinds_text(workers: Sequence[str], table: ProfileTable) -> str:
    """Return a table for a terminal: percent right of each worker by kind of question."""
    return "\n".join(
        ("right % by kind of question:", "", columns(_heads(workers), [*_kinds(table)]))
    )


def _heads(workers: Sequence[str]) -> tuple[str, ...]:
    return "kind of question", *workers


KNEW = "What {} knew of its workers (profile {}): right % by kind of train question"


def known_tables(pairs: Sequence[Pair]) -> Iterator[tuple[str, list[Sequence[str]]]]:
    """Yield a title and a table (header row first) for each profile that a system planned with.

    A profile has the results of workers on train questions. Profiles that are missing, or that
    changed since the run began, are skipped.
    """
    digests: set[str] = set()
    for row, system_run in pairs:
        for workers, table in _profile_of(system_run):
            lines: list[Sequence[str]] = [_heads(workers), *_kinds(table)]
            digest = sha256(repr(lines).encode()).hexdigest()
            if digest not in digests:
                digests.add(digest)
                profile_digest = str(system_run.facts.args["sha256"])[:12]
                yield KNEW.format(row.system, profile_digest), lines


def _profile_of(system_run: SystemRun) -> Iterator[tuple[tuple[str, ...], ProfileTable]]:
    args, folder = system_run.facts.args, system_run.paths[0].parent
    if "learned" not in args:
        return
    path = (parent_of(folder) or folder) / str(args["learned"])
    with suppress(OSError, UserError, KeyError):
        content = path.read_bytes()
        if sha256(content).hexdigest() == args.get("sha256"):
            learned = parse_artifact(content, path)
            yield learned.about.workers, table_of_arrays(learned.arrays)


def _kinds(table: ProfileTable) -> Iterator[tuple[str, ...]]:
    forms, lengths = table.kinds.forms.tolist(), table.kinds.lengths.tolist()
    for index, (form, length) in enumerate(zip(forms, lengths, strict=True)):
        pairs = zip(table.right[index].tolist(), table.asked[index].tolist(), strict=True)
        cells = (
            f"{percent(right / total)} of {total:.0f}" if total else UNKNOWN
            for right, total in pairs
        )
        yield f"{index + 1}: {FORMS[form]}, {length:.0f} characters", *cells
