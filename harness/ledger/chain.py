"""Whether a journal's lines are the ones that were written: each names the digest of the last.

A chain shows edits, insertions, deletions and reorderings inside a file. It cannot show that the
end was cut off, nor that somebody wrote the whole file again with new digests: for that, a manifest
keeps the last digest and the count (harness/integrity/manifest.py).
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from harness.file_limits import regular
from harness.ledger.journal import BEGINNING
from harness.ledger.row import canonical
from harness.parsing import parse_json

FaultKind = Literal["edited", "inserted", "deleted", "reordered", "truncated"]

HASH, PREV, TORN = b'"hash":"', b'"prev":"', b'"kind":"torn"'
DIGITS = len(BEGINNING)


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a chain does not hold; `line` counts from 1."""

    line: int
    kind: FaultKind
    said: str


@dataclass(frozen=True, slots=True)
class Link:
    """A line's own digest and the one it names; None where the line does not match its digest."""

    own: str | None
    prev: str | None


@dataclass(frozen=True, slots=True)
class Chain:
    """What a journal's chain says."""

    lines: int
    """Whole lines; one that was cut short is none."""
    last: str
    """Digest of the last line, `BEGINNING` without one."""
    faults: tuple[Fault, ...]


def read_chain(path: Path) -> Chain:
    """Follow a journal's chain from its first line to its last; OSError as reading does."""
    links: list[Link] = []
    cut: list[Fault] = []
    before = b""
    regular(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n"):
                link = _link(line[:-1])
                if link.own and names_torn(line, before):
                    links.pop()
                links.append(link)
                before = line
            else:
                cut.append(Fault(number, "truncated", "it ends in the middle of a line"))
    last = next((link.own for link in reversed(links) if link.own), BEGINNING)
    return Chain(len(links), last, (*faults_of(links), *cut))


def names_torn(line: bytes, before: bytes) -> bool:
    """Say whether a line names the one before it as torn (`harness.ledger.journal.mend`)."""
    if TORN not in line:
        return False
    named: object = json.loads(line).get("sha256")
    return named == hashlib.sha256(before.removesuffix(b"\n")).hexdigest()


def faults_of(links: Sequence[Link]) -> tuple[Fault, ...]:
    """Return what is wrong with a chain, by its lines.

    A line that names another one than its predecessor is where lines are missing, unless both are
    here in another order, or the lines between them were put in.
    """
    places = {link.own: at for at, link in enumerate(links) if link.own}
    if _is_shuffled(links):
        at = next(at for at in range(len(links)) if not _follows(links, at))
        there = places.get(links[at].prev or BEGINNING)
        after = "the first line" if there is None else f"line {there + 1}"
        return (Fault(at + 1, "reordered", f"it belongs behind {after}"),)
    return tuple(_faults(links, places))


def _faults(links: Sequence[Link], places: Mapping[str, int]) -> Iterator[Fault]:
    for at, link in enumerate(links):
        if link.own is None:
            yield Fault(at + 1, "edited", "it does not match its own digest")
        elif not _follows(links, at) and not (at and links[at - 1].own is None):
            there = -1 if link.prev == BEGINNING else places.get(link.prev or BEGINNING)
            if there is None:
                yield Fault(at + 1, "deleted", "the line it follows is gone or replaced")
            elif there < at - 1:
                said = f"it follows line {there + 1}, so lines between them were put in"
                yield Fault(there + 2, "inserted", said)
            else:
                yield Fault(at + 1, "reordered", f"it belongs behind line {there + 1}")


def _follows(links: Sequence[Link], at: int) -> bool:
    return links[at].prev == (links[at - 1].own if at else BEGINNING)


def _is_shuffled(links: Sequence[Link]) -> bool:
    """Say whether all lines are here, each once and unchanged, and not in their order."""
    own = {link.own for link in links}
    named = {link.prev for link in links}
    whole = None not in own and len(own) == len(links) == len(named)
    one_chain = len(own - named) == 1 and named - own == {BEGINNING}
    return whole and one_chain and any(not _follows(links, at) for at in range(len(links)))


def _link(line: bytes) -> Link:
    """Return a line's digests. Only canonical JSON matches, so a digest is one of exact bytes."""
    at, named = line.find(HASH), line.find(PREV)
    own, after = line[at + len(HASH) :][:DIGITS], at + len(HASH) + DIGITS
    prev = line[named + len(PREV) :][:DIGITS]
    once = at == line.rfind(HASH) >= 0 and named == line.rfind(PREV) >= 0
    if not once or line[after : after + 2] != b'",':  # a provider's usage may have such a key too
        return _slow_link(line)
    matches = hashlib.sha256(line[:at] + line[after + 2 :]).hexdigest().encode() == own
    return Link(own.decode() if matches else None, prev.decode(errors="replace"))


def _slow_link(line: bytes) -> Link:
    try:
        found: object = parse_json(line)
    except ValueError:
        return Link(None, None)
    if not isinstance(found, dict):
        return Link(None, None)
    row = cast(dict[str, object], found)
    own, prev = row.pop("hash", None), row.get("prev")
    try:
        same = canonical({**row, "hash": own}) == line
        matches = same and hashlib.sha256(canonical(row)).hexdigest() == own
    except ValueError:  # half a character, which no line of ours holds
        return Link(None, str(prev))
    return Link(own if matches and isinstance(own, str) else None, str(prev))
