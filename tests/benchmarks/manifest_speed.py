"""How long it takes to write and to verify the manifest of many logs (synthetic clones).

    python tests/benchmarks/manifest_speed.py /scratch/folder             # about 2 GB and a minute
    python tests/benchmarks/manifest_speed.py /scratch/folder --logs 10   # a small one

The logs are the clones of ledger_speed.py, 200 samples of 5 calls each, and are used again. A
manifest is written anew, written again where nothing changed, and verified; then one byte of one
log is changed, which must be found, and changed back.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from podium.harness.ledger.manifest import FILE
from podium.reports.audit.verify import verify
from tests.benchmarks.ledger_speed import made, measure
from tests.harness.ledger.many_logs import rehearse

FIRST = 1000
"""Where a byte is changed: inside the first sample of a log."""


def show(folder: Path) -> None:
    """Print times, memory and sizes of one folder."""
    logs = sorted(folder.glob("*.eval"))
    covered = sum(path.stat().st_size for path in folder.rglob("*") if path.suffix in SUFFIXES)
    (folder / FILE).unlink(missing_ok=True)
    for title, words in (
        ("write", ["manifest", "write", str(folder)]),
        ("write again, unchanged", ["manifest", "write", str(folder)]),
        ("verify", ["manifest", "verify", str(folder)]),
    ):
        print(f"podium manifest {title}, {len(logs)} logs: {measure(words)}")
    size = (folder / FILE).stat().st_size
    print(f"  {covered / 2**20:,.0f} MiB covered, manifest {size / 2**20:,.1f} MiB")
    flip(logs[len(logs) // 2])
    found = verify(folder)
    flip(logs[len(logs) // 2])
    assert found, "a changed byte was not found"
    print(f"  one changed byte: {'; '.join(str(one) for one in found)[:200]}")
    (folder / FILE).unlink()


SUFFIXES = (".eval", ".jsonl")


def flip(log: Path) -> None:
    """Change one bit of a log, or change it back."""
    with log.open("r+b") as file:
        file.seek(FIRST)
        byte = file.read(1)[0]
        file.seek(FIRST)
        file.write(bytes([byte ^ 1]))


def main() -> None:
    """Make the logs and measure."""
    parser = argparse.ArgumentParser(description="How fast a manifest is written and verified.")
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--logs", type=int, default=1000, help="of the largest run (1000)")
    asked = parser.parse_args()
    place = asked.scratch / "source"
    source = next(iter(sorted(place.glob("*.eval"))), None) or rehearse(place)
    for logs in [size for size in (10, 100) if size < asked.logs] + [asked.logs]:
        show(made(asked.scratch, source, logs))


if __name__ == "__main__":
    main()
