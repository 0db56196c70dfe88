"""How many honest runs pass their audit: systems of all kinds over a provider with bad days.

    python tests/benchmarks/honest_runs.py [RUNS] [FIRST_SEED]     (120 from 0 on)

Each run is drawn by its seed (`drawn` in tests/reports/audit/mixed_run.py): what becomes of its
requests, how long replies are, how it grows. It is begun again until it finishes or has had five
sittings; then report, audit, reprice, ledger export, export and the witness read it.
"""

import sys
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from os import cpu_count
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.reports.audit.mixed_run import Mix, drawn, run_mixed, troubles, weaknesses


def read(seed: int) -> tuple[Mix, list[str], list[str]]:
    """Make one run; return it, what is wrong with it, and what is weak."""
    warnings.simplefilter("ignore")
    mix = drawn(seed)
    with TemporaryDirectory() as scratch:
        home = run_mixed(Path(scratch) / "made", mix)
        return mix, troubles(home), weaknesses(home)


def main() -> None:
    """Print each run that is not clean, and a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    runs, clean, strict = Counter[str](), Counter[str](), Counter[str]()
    with ProcessPoolExecutor(cpu_count()) as made:
        seeds = range(first, first + count)
        for seed, (mix, wrong, weak) in zip(seeds, made.map(read, seeds), strict=True):
            name = mix.system
            print(f"seed {seed}: {len(wrong)} wrong, {len(weak)} weak", file=sys.stderr, flush=True)
            runs[name] += 1
            clean[name] += not wrong
            strict[name] += not (wrong or weak)
            for one in wrong:
                print(f"seed {seed}, {name}: {one}", flush=True)
    print("| system | runs | all commands agree, audit 0 | nothing weak, --strict 0 |")
    print("|---|---|---|---|")
    for name in sorted(runs):
        print(f"| {name} | {runs[name]} | {clean[name]} | {strict[name]} |")
    print(f"| all | {runs.total()} | {clean.total()} | {strict.total()} |")


if __name__ == "__main__":
    main()
