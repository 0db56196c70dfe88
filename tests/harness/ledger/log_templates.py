"""JSON with holes for ids, days and a question's name, which every copy fills with its own."""

import re
from dataclasses import dataclass
from datetime import date, timedelta

ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""A part of the one in which Inspect writes its ids, 22 characters each."""
TAIL = 7
"""So many last characters of an id tell copies apart."""
ID = rb"[2-9A-HJ-NP-Za-km-z]{22}"
HOLES = re.compile(
    rb'(?<=")(' + ID + rb')(?=")|(?<=")(\d{4}-\d\d-\d\d)(?=T\d\d:\d\d:)'
    rb'|(?<="call":")([0-9a-f]{16})(?=")'
)
"""Ids of Inspect's, days, ids of a journal's calls."""
KNOWN = re.compile(rb'"(?:uuid|id|span_id|parent_id|event|span)":"(' + ID + rb')"')


@dataclass(frozen=True, slots=True)
class Copy:
    """What one copy of a sample is called."""

    number: int
    """Over all samples of all logs."""
    question: str
    days: int
    """How much later than its source it took place."""

    @property
    def tail(self) -> bytes:
        """The last characters of its ids."""
        rest, found = self.number, ""
        for _ in range(TAIL):
            rest, at = divmod(rest, len(ALPHABET))
            found = ALPHABET[at] + found
        return found.encode()


class Template:
    """Bytes with holes for ids, days and the question's name."""

    def __init__(self, data: bytes, question: str, ids: frozenset[bytes]) -> None:
        """Find the holes in some JSON."""
        self.pieces: list[bytes] = []
        self.holes: list[tuple[int, str, bytes]] = []
        name = b'"' + question.encode() + b'"'
        for at, part in enumerate(data.split(name)):
            if at:
                self._hole("question", b"")
            end = 0
            for found in HOLES.finditer(part):
                kind = (
                    "id" if found[1] in ids else "day" if found[2] else "call" if found[3] else ""
                )
                if kind:
                    self.pieces.append(part[end : found.start()])
                    self._hole(kind, found[0])
                    end = found.end()
            self.pieces.append(part[end:])

    def _hole(self, kind: str, data: bytes) -> None:
        self.holes.append((len(self.pieces), kind, data))
        self.pieces.append(b"")

    def filled(self, copy: Copy) -> bytes:
        """Return the bytes of one copy."""
        pieces, tail = list(self.pieces), copy.tail
        for at, kind, data in self.holes:
            if kind == "id":
                pieces[at] = data[:-TAIL] + tail
            elif kind == "day":
                pieces[at] = later(data, copy.days)
            elif kind == "call":
                pieces[at] = data[:8] + b"%08x" % copy.number
            else:
                pieces[at] = b'"' + copy.question.encode() + b'"'
        return b"".join(pieces)


_DAYS: dict[tuple[bytes, int], bytes] = {}


def later(day: bytes, days: int) -> bytes:
    """Return a day (ISO) so many days later."""
    found = _DAYS.get((day, days))
    if found is None:
        moved = date.fromisoformat(day.decode()) + timedelta(days)
        found = _DAYS[day, days] = moved.isoformat().encode()
    return found
