"""How long a ledger of many calls takes to be held against its invoice, and in how much memory.

    PYTHONPATH=. python tests/benchmarks/invoice_speed.py csv 1000000

`csv` compares every request by its id, `openai-usage` by hour and model. Rows and export are
synthetic; making the rows is timed apart.
"""

import csv
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import tests.reports.audit.invoice_exports as exports
from podium.harness.ledger.call import Call
from podium.reports.audit.invoices import read_invoice
from podium.reports.audit.reconcile import reconcile
from tests.reports.audit.invoice_rows import row

BASE = row()
HEADER = (
    "request_id",
    "model",
    "time",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "usd",
    "api_key",
)
FROM = datetime(2026, 2, 1, tzinfo=UTC)


def rows(count: int) -> Iterator[Call]:
    """Yield four calls a second."""
    for number in range(count):
        started = (FROM + timedelta(seconds=number // 4)).isoformat()
        yield replace(BASE, started=started, latency_s=0.01, request_id=f"r{number}")


def write(format: str, count: int, path: Path) -> None:
    """Write the export of these calls without holding them."""
    if format != "csv":
        by_hour = [exports.openai_usage(one for one in rows(count))]
        path.write_text("\n".join(by_hour))
        return
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(HEADER)
        for one in rows(count):
            cells = (one.request_id, "gpt-5-mini", one.started, 100, 0, 10, "0.000250", "key")
            out.writerow(cells)


def main(format: str, count: int) -> None:
    """Print the time of one comparison, and the most memory that this process had."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export"
        write(format, count, path)
        begun = time.perf_counter()
        for _ in rows(count):
            pass
        making = time.perf_counter() - begun
        begun = time.perf_counter()
        found = reconcile(rows(count), read_invoice(path))
        took = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{format}: {count} rows against {len(found.rows)} buckets by {found.by}: "
        f"{took - making:.1f} s, and {making:.1f} s to make the rows; {peak} MiB at most; "
        f"{'agree' if found.ok else 'differ'}"
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
