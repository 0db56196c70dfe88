"""What workers showed on train questions, as a table for a terminal."""

from podium.harness.profiles import Profile, ProfileRow
from podium.harness.text import columns
from podium.reports import stats
from podium.reports.render import UNKNOWN, count, interval, percent, usd_about

HEADS = (
    *("suite", "worker", "asked", "right %", "95 % interval", "no answer %"),
    *("USD/call", "tokens out", "seconds"),
)


def profile_text(profile: Profile) -> str:
    """Return a line for each suite and worker, and what so few calls can tell."""
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
