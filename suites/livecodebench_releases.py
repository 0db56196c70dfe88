"""Which problems a LiveCodeBench score is about: a release, and a window of contest dates.

A window alone says too little, because a later release adds problems with earlier dates (from
2024-08-01 to 2025-02-01 there are 279 in release_v5 and 329 in release_v6). So both are in the
suite's name: `livecodebench-v5@2024-08-01..2025-02-01`.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from harness.errors import UserError

COUNTS = (400, 111, 101, 101, 167, 175)
"""Problems that v1 ... v6 added, one hub file each (code_generation_lite at the pinned commit)."""

LAST = len(COUNTS)

DATES = (
    "2023-05..2024-03",
    "2023-05..2024-05",
    "2023-05..2024-07",
    "2023-05..2024-09",
    "2023-05..2025-01",
    "2023-05..2025-04",
)
"""Contest months of release_v1 ... release_v6, as the official README gives them."""

NEWEST_DATES = "2025-01..2025-04"
"""Contest months of the 175 problems that v6 added."""

BASE = "livecodebench"
TRAIN = f"{BASE}-train"
"""V1 as a suite to learn from; as an exam the same problems are `livecodebench-v1`."""
_TAG = re.compile(r"release_v(?P<upto>[1-6])|v(?P<first>[1-6])(?:_v(?P<last>[1-6]))?")
_NAME = re.compile(rf"{BASE}(?:-v(?P<upto>[1-6])|-new-(?P<delta>v[1-6](?:_v[1-6])?))?")


@dataclass(frozen=True, slots=True)
class Release:
    """Consecutive hub files: `release_v5` is the files 1 to 5, `v6` file 6, `v4_v5` files 4 and 5.

    The tags are those of the hub's own loading script.
    """

    tag: str
    first: int
    last: int

    @property
    def suite(self) -> str:
        """The name on the command line; plain `livecodebench` is the paper's exam, tag `v6`."""
        if self.tag.startswith("release_"):
            return f"{BASE}-v{self.last}"
        return BASE if self.first == self.last == LAST else f"{BASE}-new-{self.tag}"

    @property
    def files(self) -> tuple[str, ...]:
        """The tables of sources.toml that hold its rows."""
        return tuple(f"{BASE}-{number}" for number in range(self.first, self.last + 1))

    @property
    def count(self) -> int:
        """Its published number of problems."""
        return sum(COUNTS[self.first - 1 : self.last])

    @property
    def dates(self) -> str:
        """Months of its contests; of what v2 ... v5 added only the end is published."""
        if self.first == 1:
            return DATES[self.last - 1]
        if self.first == LAST:
            return NEWEST_DATES
        return f"up to {DATES[self.last - 1].partition('..')[2]}"


@dataclass(frozen=True, slots=True)
class Window:
    """Contest dates, both ends included, as the official code compares them.

    Contest times are compared with midnight, so of the last day only contests dated to the day
    (`T00:00:00`) are in.
    """

    start: str = ""
    """YYYY-MM-DD, or empty for no bound."""
    end: str = ""

    def __bool__(self) -> bool:
        return bool(self.start or self.end)

    def __str__(self) -> str:
        return f"{self.start}..{self.end}"

    def holds(self, contest_date: str) -> bool:
        """Return whether a contest, given as a naive ISO date and time, is in the window.

        >>> [Window("2025-01-01", "2025-02-01").holds(f"2025-02-01T{at}") for at in ("00", "18")]
        [True, False]
        """
        at = datetime.fromisoformat(contest_date)
        after = not self.start or _day(self.start) <= at
        return after and (not self.end or at <= _day(self.end))


ALWAYS = Window()


def release_of(tag: str) -> Release:
    """Return the release with one of the hub's tags; UserError says which there are."""
    found = _TAG.fullmatch("release_v6" if tag == "release_latest" else tag)
    if found and found["upto"]:
        return Release(f"release_v{found['upto']}", 1, int(found["upto"]))
    first = int(found["first"]) if found else 1
    last = int(found["last"] or first) if found else 0
    if last < first:
        raise UserError(
            f"LiveCodeBench has no release {tag!r}; there are release_v1 ... release_v6 (all "
            "problems so far), v1 ... v6 (what was new), and ranges such as v4_v5."
        )
    return Release(f"v{first}" if first == last else f"v{first}_v{last}", first, last)


def named_release(name: str) -> Release | None:
    """Return the release that a suite's name means, None when it is no LiveCodeBench name.

    >>> [named_release(name).tag for name in ("livecodebench", "livecodebench-v5")]
    ['v6', 'release_v5']
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    upto = found["upto"]
    return release_of(f"release_v{upto}" if upto else found["delta"] or f"v{LAST}")


def window_of(start: str | None, end: str | None) -> Window:
    """Return a checked window; UserError for what is no date, or for an end before its start."""
    for day in filter(None, (start, end)):
        if _as_day(day) is None:
            raise UserError(f"{day!r} is no date: write a window as 2024-08-01..2025-02-01.")
    if start and end and _day(end) < _day(start):
        raise UserError(f"The window {start}..{end} ends before it starts.")
    return Window(start or "", end or "")


def read_window(text: str) -> Window:
    """Return the window written as START..END, either end of which may be left out."""
    start, dots, end = text.partition("..")
    if not dots or not (start or end):
        raise UserError(f"{text!r} is no window: write it as 2024-08-01..2025-02-01.")
    return window_of(start, end)


def _as_day(text: str) -> datetime | None:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text)
