"""Pages of requests to `podium serve`: a line per system, its newest requests, each in full.

Requests are not graded, so no figure is part of a comparison. The page of one request is the query
page with a separate index.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import quote

from podium.harness.ledger.details import RunQueries
from podium.harness.ledger.journal import SERVING
from podium.harness.ledger.runs import RunFiles
from podium.harness.ledger.served import SUITE, ServedQuery, served_below
from podium.harness.ledger.totals import CallSum, add_up, last_attempts
from podium.reports import render
from podium.reports.audit import Audit
from podium.reports.render import UNKNOWN
from podium.reports.site.pages import data_script
from podium.reports.site.texts import RowTexts, own_faults, read_queries

MOST = 500
"""Maximum requests per system on served.html, newest first; the request page has all."""
INDEX = "served"
ENDINGS = ("answered", "refused", "cut off", "in flight")


@dataclass(frozen=True, slots=True)
class ServedSystem:
    """A system that `podium serve` ran, with the requests that it received."""

    folder: Path
    """The directory, given by the user, that contains the system's journals."""
    files: RunFiles
    row: int
    """The system's row number, after the numbers of the report's rows."""
    run: RunQueries

    @property
    def requests(self) -> list[ServedQuery]:
        """The system's requests, by start time."""
        # In this order a request keeps its index when new ones come, so older pages still find it.
        return sorted(self.run.served.values(), key=lambda query: (query.at, query.trace))

    @property
    def name(self) -> str:
        """The system's name with its row number, which makes it unique."""
        return f"{self.system}.{self.row}"

    @property
    def system(self) -> str:
        """The system's name."""
        return next(
            (req.system for req in self.run.served.values()), self.files.task.removeprefix(SERVING)
        )

    @property
    def label(self) -> str:
        """The label of the system's journal (live, recorded, rehearsal); empty without requests."""
        return next((str(query.journal.head.get("label")) for query in self.requests), "")

    def texts(self, audit: Audit | None) -> RowTexts:
        """Return the files from which the texts of the system's requests are read."""
        places = {(trace, 1): index for index, trace in enumerate(self._traces)}
        verdicts = own_faults(audit, self.files) if audit else ()
        return RowTexts(self.row, self.folder, self.files, places, self.run.shown, verdicts)

    @property
    def _traces(self) -> list[str]:
        return [query.trace for query in self.requests]

    def about(self) -> dict[str, Any]:
        """Return the system's entry in the data file, in the form of a block with one row."""
        row = {"row": self.row, "system": self.system, "name": self.system}
        head = {"name": self.name, "title": self.system, "suite": SUITE, "label": self.label}
        return {**head, "questions": self._traces, "epochs": 1, "rows": [row]}


def served_systems(dirs: Sequence[Path], first_row: int) -> tuple[ServedSystem, ...]:
    """Return the served systems with journals in `dirs`, numbered from `first_row`."""
    pairs = [(folder, files) for folder in dirs for files in served_below(folder)]
    return tuple(
        ServedSystem(folder, files, first_row + index, read_queries(files, files.size))
        for index, (folder, files) in enumerate(pairs)
    )


def served_index(systems: Sequence[ServedSystem]) -> str:
    """Return the data file in which the request page looks up a request."""
    return data_script(INDEX, json.dumps({"blocks": [each.about() for each in systems]}).encode())


def served_context(systems: Sequence[ServedSystem]) -> dict[str, Any]:
    """Return the template variables of served.html."""
    return {
        "labels": sorted({system.label for system in systems if system.label}),
        "systems": [HEADS, *map(_line, systems)],
        "blocks": [
            {
                "system": row.system,
                "requests": [_request(row, query) for query in row.requests[: -MOST - 1 : -1]],
                "more": len(row.requests[:-MOST]),
            }
            for row in systems
        ],
    }


HEADS = (
    *("system", "requests", *ENDINGS, "calls", "tokens in", "tokens out", "USD at the book"),
    *("median s", "95 % within s"),
)


def _line(system: ServedSystem) -> list[str]:
    endings = Counter(query.ending for query in system.requests)
    rows = [row for query in system.requests for row in query.rows]
    attempts = last_attempts(rows)
    once = add_up(attempts)
    latencies = [query.latency_s for query in system.requests if query.ending == "answered"]
    sorted_s = sorted(seconds for seconds in latencies if seconds is not None)
    counts = (len(system.requests), *(endings[name] for name in ENDINGS), len(attempts))
    return [
        system.system,
        *(f"{number:,}" for number in counts),
        *(render.count(tokens) for tokens in (once.tokens_in, once.tokens_out)),
        _usd(add_up(rows)),
        *(_seconds(sorted_s, share) for share in (0.5, 0.95)),
    ]


def _usd(calls: CallSum) -> str:
    paid = calls.paid
    if paid.exact is not None and not paid.unpriced:
        return render.usd(paid.exact)
    high = UNKNOWN if paid.high is None or paid.unpriced else render.usd(paid.high)
    return f"{render.usd(paid.low)} to {high}"


def _seconds(latencies: Sequence[float], share: float) -> str:
    """Return the quantile `share` of sorted latencies, in seconds."""
    return f"{latencies[ceil(share * len(latencies)) - 1]:.3f}" if latencies else UNKNOWN


def _request(system: ServedSystem, query: ServedQuery) -> dict[str, str]:
    status = "" if query.status is None else f" {query.status}"
    return {
        "trace": query.trace,
        "href": f"request.html#/q/{quote(system.name, safe='')}/{quote(query.trace, safe='')}/1",
        "at": query.at[:19],
        "model": query.model,
        "dialect": query.dialect,
        "key": query.key or "",
        "ending": f"{query.ending}{status}" + (f": {query.error}" if query.error else ""),
        "calls": f"{len(last_attempts(query.rows)):,}",
        "usd": _usd(add_up(query.rows)),
        "seconds": UNKNOWN if query.latency_s is None else f"{query.latency_s:.3f}",
    }
