"""Replies that several systems of a run share: checks that a call of the run paid for each."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from podium.harness.ledger.call import Call
from podium.reports.audit.evidence import Evidence

Bought = Mapping[str, bytes | None]
"""Id of a call that was paid -> digest of its request and reply; None if there is no reply."""


class SharedDraw(NamedTuple):
    """A call that reused the reply to another system's call, which had been paid."""

    task: str
    call: str
    shared_from: str
    digest: bytes | None


def draws_of(evidence: Evidence) -> tuple[dict[str, bytes | None], list[SharedDraw]]:
    """Return a system's paid calls (id -> digest), and its calls with other systems' replies."""
    bought, shared = dict[str, bytes | None](), list[SharedDraw]()
    for row in evidence.rows:
        if row.shared_from is not None:
            shared.append(SharedDraw(evidence.name, row.call, row.shared_from, _digest(row)))
        elif row.scope == "inference":
            bought[row.call] = _digest(row) or bought.get(row.call)
    return bought, shared


def _digest(row: Call) -> bytes | None:
    if row.output_sha256 is None:
        return None
    # 16 bytes suffice to distinguish the replies of one run: a large run has a million.
    text = f"{row.question} {row.epoch} {row.role} {row.prompt_sha256} {row.output_sha256}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


def unbought(bought: Bought, shared: Iterable[SharedDraw]) -> Iterator[tuple[str, str, str]]:
    """Yield task, place and fault of each reused reply that no call of the run paid for."""
    for draw in shared:
        place = f"call {draw.call}"
        if draw.shared_from not in bought:
            yield draw.task, place, f"no run here has call {draw.shared_from}, which paid for it"
        # A killed process may have stored a reply without logging the call's end.
        elif bought[draw.shared_from] not in (None, draw.digest):
            text = f"call {draw.shared_from}, which paid for it, got a different reply"
            yield draw.task, place, text
