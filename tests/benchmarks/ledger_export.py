"""How long it takes to export a ledger as Parquet and to ask it in SQL, and bytes per call.

    python tests/benchmarks/ledger_export.py /scratch/folder            # about 5 GB and 10 minutes
    python tests/benchmarks/ledger_export.py /scratch/folder --logs 10  # a small one
    python tests/benchmarks/ledger_export.py /scratch/folder --run DIR  # a run of your own

The logs are the clones of ledger_speed.py (synthetic: one real rehearsal run's, a thousand times).
Clones repeat what they say, and Parquet says it once: for bytes per call measure a run of your own.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.benchmarks.ledger_speed import made, measure
from tests.harness.ledger.many_logs import rehearse

import pyarrow.parquet  # isort: skip

QUERY = "SELECT system, sum(usd_list) FROM calls GROUP BY system ORDER BY 2 DESC LIMIT 5"


def show(folder: Path, out: Path) -> None:
    """Export a run and ask its export once; print times, memory and bytes per call."""
    done = measure(["ledger", "export", str(folder), "--out", str(out)])
    calls = pyarrow.parquet.read_metadata(out / "calls.parquet").num_rows
    print(f"podium ledger export of {calls:,} calls: {done}")
    print(f"podium ledger sql over them: {measure(['ledger', 'sql', str(out), QUERY])}")
    for name, size in (
        ("calls.parquet", (out / "calls.parquet").stat().st_size),
        ("queries.parquet", (out / "queries.parquet").stat().st_size),
        ("journals", sum(path.stat().st_size for path in folder.glob("**/ledger/*/*.jsonl"))),
        (".eval", sum(path.stat().st_size for path in folder.glob("**/*.eval"))),
    ):
        print(f"  {name}: {size / calls:,.0f} bytes per call")


def main() -> None:
    """Make the logs and measure."""
    parser = argparse.ArgumentParser(description="How fast a ledger is exported.")
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--logs", type=int, default=1000, help="of the largest run (1000)")
    parser.add_argument("--run", type=Path, help="measure this run alone")
    asked = parser.parse_args()
    if asked.run:
        show(asked.run, asked.scratch / "run-tables")
        return
    place = asked.scratch / "source"
    found = sorted(place.glob("*.eval"))
    source = found[0] if found else rehearse(place)
    for logs in [size for size in (10, 100) if size < asked.logs] + [asked.logs]:
        show(made(asked.scratch, source, logs), asked.scratch / f"{logs}-tables")


if __name__ == "__main__":
    main()
