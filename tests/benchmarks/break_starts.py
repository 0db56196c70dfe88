"""Break `podium run` at moments of its start, from 0 to 3 seconds, and count what it says.

    PYTHONPATH=. python tests/benchmarks/break_starts.py [POINTS]

Once as `python -m podium`, once as the installed command. Prints exit codes and tracebacks.
What Python says by itself before it reads a line of ours is counted apart.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.podium.cli.test_break import MODULE, broken


def main(points: int) -> int:
    """Break at so many points and print the counts; 1 where a traceback has a line of ours."""
    installed = [str(Path(sys.executable).with_name("podium"))]
    ours = 0
    for start in (MODULE, installed):
        codes, tracebacks, early = Counter[int](), 0, 0
        for point in range(points):
            after_s = 3.0 * point / max(1, points - 1)
            with tempfile.TemporaryDirectory() as folder:
                code, said = broken(start, Path(folder), after_s)
            codes[code] += 1
            if "Traceback" in said or "KeyboardInterrupt" in said:
                is_ours = "harness/" in said
                tracebacks, early = tracebacks + is_ours, early + (not is_ours)
                print(f"  after {after_s:.2f} s: {said.strip().splitlines()[-1]}")
        ours += tracebacks
        shown = ", ".join(f"{count} with {code}" for code, count in sorted(codes.items()))
        print(f"{Path(start[0]).name} {' '.join(start[1:])}: {points} breaks: {shown}")
        print(f"  {tracebacks} tracebacks, {early} while Python itself started")
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 30))
