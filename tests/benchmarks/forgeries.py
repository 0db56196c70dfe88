"""What an audit catches of a forged run, as a table: manifest kept, and made anew as if by nobody.

    python tests/benchmarks/forgeries.py                # this podium
    python tests/benchmarks/forgeries.py /some/checkout # another one, on the same forgeries

Each forgery of tests/reports/audit/forgeries.py and forged_archives.py is done to a fresh copy of a
run of two systems.
"""

import shutil
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else sys.path[0])

from tests.reports.audit.forged_archives import ARCHIVES
from tests.reports.audit.forgeries import FORGERIES, caught, rewritten, run


def main() -> None:
    """Print the table, and how many were caught."""
    can_regrade = find_spec("reports.audit.invariants") is not None
    rows: list[tuple[str, str, str, str]] = []
    with TemporaryDirectory() as scratch:
        home = run(Path(scratch) / "run")
        for at, forgery in enumerate((*FORGERIES, *ARCHIVES)):
            folder = shutil.copytree(home, Path(scratch) / str(at))
            forgery.forge(folder)
            kept = caught(folder)
            rewritten(folder)
            anew = caught(folder, anew=True) if can_regrade else "-"
            rows.append((forgery.name, kept, caught(folder), anew))
    print("| forgery | manifest kept | made anew | made anew, `--regrade` |\n|---|---|---|---|")
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))
    for at, title in ((1, "kept"), (2, "made anew"), (3, "made anew, --regrade")):
        shown = [row[at] for row in rows]
        fails, weak = (sum(one.startswith(word) for one in shown) for word in ("fail", "weak"))
        print(f"{title}: {fails} fail and {weak} are weak, of {len(rows)}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
