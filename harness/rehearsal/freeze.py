"""The digest of all that rehearsal workers are: programs, tables, pools, prices.

    python -m harness.rehearsal.freeze

prints what `frozen.toml` must hold. Whoever changes a worker changes every rehearsal number, so the
change is made knowingly: a new version there, a line under "Scores" in CHANGELOG.md.
"""

import hashlib
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from harness.pool_file import POOLS, read_pool
from harness.prices import BOOKS

HERE = Path(__file__).parent
FROZEN = HERE / "frozen.toml"


def digest() -> str:
    """Return one sha256 over every frozen file, names included."""
    total = hashlib.sha256()
    for path in _files():
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.parent.name}/{path.name} {content}\n".encode())
    return total.hexdigest()


def frozen() -> dict[str, str]:
    """Return what was frozen: `version`, `date` and `sha256`."""
    return tomllib.loads(FROZEN.read_text())


def _files() -> Iterator[Path]:
    yield from sorted(path for path in HERE.glob("*.py"))
    yield from sorted(path for path in HERE.glob("*.toml") if path != FROZEN)
    yield from sorted(
        path for path in POOLS.glob("*.toml") if read_pool(str(path)).label == "rehearsal"
    )
    yield BOOKS / "rehearsal.toml"


if __name__ == "__main__":
    sys.stdout.write(f'sha256 = "{digest()}"\n')
