"""What a directory's logs have spent so far, for a spending limit."""

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from decimal import Decimal
from pathlib import Path

from harness.errors import UserError
from harness.ledger.attempts import About, entries
from harness.ledger.events import CallEvent
from harness.ledger.raw_log import naming, open_log
from harness.logs import facts_in


def spent_in_logs(logs: Iterable[Path], known: Set[str] = frozenset()) -> Decimal:
    """Return the would-be dollars of all attempts in some logs.

    A call that failed or was cut off may have been billed, so it counts as the dearest call of its
    worker; `known` are uuids and spans of calls that were counted already. UserError names a worker
    whose replies have no price.
    """
    spent = Decimal(0)
    dearest: dict[str, Decimal] = {}
    unknown: Counter[str] = Counter()
    for about, call in _billed(logs, known):
        usd = about.money(call)[0]
        if usd is not None:
            spent += usd
            dearest[call.role] = max(usd, dearest.get(call.role, usd))
        elif call.pending or call.error:
            unknown[call.role] += 1
        else:
            raise UserError(
                f"Calls of {call.role!r} in {about.path.name} have no price, so --max-usd cannot "
                "hold: leave it out, or start in another --log-dir with a price book that has the "
                "worker."
            )
    return spent + sum(dearest.get(role, Decimal(0)) * times for role, times in unknown.items())


def _billed(logs: Iterable[Path], known: Set[str]) -> Iterator[tuple[About, CallEvent]]:
    """Yield every call that was not read from a local cache, each once."""
    seen = set(known)
    for path in logs:
        if not _is_ours(path):
            continue
        for entry in entries([path]):
            for call in entry.calls:
                if call.cache != "read" and call.id not in seen and call.span not in known:
                    seen.add(call.id)
                    yield entry.about, call


def _is_ours(path: Path) -> bool:
    with open_log(path) as log, naming(path):
        return facts_in(log.header["eval"].get("metadata"), path) is not None
