"""Problems per second of the sandbox, next to Inspect's own and to the published evaluator.

    make bench-sandbox ARGS="[--official CHECKOUT] [--stock 30] [--rounds 1]"

Everybody grades the same recorded programs of a real model (o1-mini; reference/data.md) with the
same tests, two at a time, stopping at a program's first failure. `CHECKOUT` is a clone of
LiveCodeBench/LiveCodeBench at 28fef95; without it those rows are left out. Sets:

- `public`: 880 problems with their public and recovered tests, about 2.7 each;
- `time-outs`: the problems of `public` that ran into a limit, and nothing else;
- `many`: LeetCode problems that o1-mini solved, with about 87 independent tests each;
- `stock`: the first problems of `public`, one container and one exec per problem, as Inspect does.

Then: what a run costs beyond the program's own time, and the memory of this process over many
gradings. Times are wall; a time-out repeated alone is counted apart. Rounds alternate.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from podium.sandbox import Box, Program, open_box
from podium.suites.code_grading import Rules, judge_program
from tests.suites.recorded_programs import Recorded, have, recorded

AT_ONCE = 2

OFFICIAL = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from lcb_runner.evaluation.compute_code_generation_metrics import codegen_metrics
rows = json.load(open(sys.argv[2]))
samples = [{"input_output": json.dumps(row["tests"])} for row in rows]
started = time.perf_counter()
metrics, results, _ = codegen_metrics(
    samples, [[row["code"]] for row in rows], k_list=[1], num_process_evaluate=int(sys.argv[3])
)
seconds = time.perf_counter() - started
passed = [all(one > 0 for one in results[place][0]) for place in range(len(rows))]
json.dump({"seconds": seconds, "passed": passed}, open(sys.argv[4], "w"))
"""


@dataclass(frozen=True)
class Timed:
    """How long a set took somebody, and what became of it."""

    seconds: float
    passed: int
    repeated_s: float = 0.0


def ours(box: Box, rows: Sequence[Recorded], rules: Rules) -> Timed:
    """Grade a set in a box that is warm."""
    started = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        judged = list(
            threads.map(lambda row: judge_program(row.code, row.tests, box, rules=rules), rows)
        )
    seconds = time.perf_counter() - started
    return Timed(seconds, sum(one.passed for one in judged), sum(one.rerun_s for one in judged))


def official(checkout: Path, rows: Sequence[Recorded]) -> Timed:
    """Have the published evaluator grade a set, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        given, said = Path(folder, "given.json"), Path(folder, "said.json")
        given.write_text(
            json.dumps([{"code": row.code, "tests": as_published(row)} for row in rows])
        )
        command = [
            sys.executable,
            "-c",
            OFFICIAL,
            str(checkout),
            str(given),
            str(AT_ONCE),
            str(said),
        ]
        subprocess.run(command, check=True, capture_output=True)
        found = json.loads(said.read_text())
    return Timed(found["seconds"], sum(found["passed"]))


def as_published(row: Recorded) -> dict[str, object]:
    """Return tests in the shape that the published evaluator takes."""
    return {
        "inputs": [case.input for case in row.tests.cases],
        "outputs": [case.output for case in row.tests.cases],
        "fn_name": row.tests.method,
    }


def overhead_ms(box: Box, runs: int = 400) -> float:
    """Return what one run costs beyond its program: the median over a program that does nothing."""
    took: list[float] = []
    started = time.perf_counter()
    for _ in box.run(Program("pass"), [b""] * runs):
        now = time.perf_counter()
        took.append(now - started)
        started = now
    return statistics.median(took) * 1000


def memory_mib(box: Box, rows: Sequence[Recorded], gradings: int = 5000) -> list[float]:
    """Return this process's resident memory in MiB after a tenth of the gradings, and after all."""
    seen: list[float] = []
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for part in (gradings // 10, gradings - gradings // 10):
            for _ in threads.map(
                lambda n: judge_program(rows[n % len(rows)].code, rows[n % len(rows)].tests, box),
                range(part),
            ):
                pass
            seen.append(resident_mib())
    return seen


def resident_mib() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)


def show(name: str, who: str, rows: Sequence[Recorded], timed: list[Timed]) -> float:
    """Print one line; return the seconds of the median round."""
    seconds = statistics.median(one.seconds for one in timed)
    tests = sum(len(row.tests.cases) for row in rows)
    apart = statistics.median(one.repeated_s for one in timed)
    print(
        f"{name:10} {who:22} {len(rows):4} problems {tests:5} tests {seconds:7.1f} s "
        f"{len(rows) / seconds:7.2f} problems/s, {timed[-1].passed} pass"
        + (f", of it {apart:.1f} s repeated alone" if apart else ""),
        flush=True,
    )
    return seconds


def main() -> int:
    """Measure and print; 2 when the recorded programs are not there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--box", default="docker")
    parser.add_argument("--official", type=Path, help="clone of LiveCodeBench at 28fef95")
    parser.add_argument("--stock", type=int, default=30, help="problems for Inspect's own sandbox")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--limit", type=int, help="first problems of each set")
    parser.add_argument("--gradings", type=int, default=5000, help="for the memory of this process")
    args = parser.parse_args()
    if reason := have():
        print(reason, file=sys.stderr)
        return 2
    box = open_box(args.box, AT_ONCE)
    print(f"{box.facts()}, {AT_ONCE} at a time")
    measure(box, args)
    print(f"a run beyond its program: {overhead_ms(box):.2f} ms")
    if args.gradings:
        first, last = memory_mib(box, quick_rows(), args.gradings)
        print(f"resident after {args.gradings // 10}: {first:.0f} MiB, after all: {last:.0f} MiB")
    box.close()
    return 0


def measure(box: Box, args: argparse.Namespace) -> None:
    """Time every set for everybody."""
    public = list(recorded())[: args.limit]
    many = [row for row in recorded(independent=True) if row.verdict][: args.limit]
    slow = [
        row for row in public if "time limit" in judge_program(row.code, row.tests, box).verdicts
    ]
    for name, rows in (("public", public), ("time-outs", slow), ("many", many)):
        sides: dict[str, Callable[[], Timed]] = {
            f"podium {box.name} real": lambda rows=rows: ours(box, rows, "real"),
            f"podium {box.name} official": lambda rows=rows: ours(box, rows, "official"),
        }
        if args.official:
            sides["published evaluator"] = lambda rows=rows: official(args.official, rows)
        compare(name, rows, sides, args.rounds)
    if args.stock:
        from inspect_box_speed import stock  # one container per sample, see there

        rows = public[: args.stock]
        compare(
            "stock",
            rows,
            {
                f"podium {box.name} real": lambda: ours(box, rows, "real"),
                "Inspect's docker": lambda: Timed(*stock(rows)),
            },
            1,
        )


def compare(
    name: str, rows: Sequence[Recorded], sides: dict[str, Callable[[], Timed]], rounds: int
) -> None:
    """Time all sides in alternating rounds, and print each with its ratio to the first."""
    took: dict[str, list[Timed]] = {who: [] for who in sides}
    for _ in range(rounds):
        for who, side in sides.items():
            took[who].append(side())
    base = None
    for who, timed in took.items():
        seconds = show(name, who, rows, timed)
        base = base or seconds
        if seconds != base:
            print(f"{'':10} {'':22} podium's first row is {seconds / base:.2f} times as fast")


def quick_rows() -> list[Recorded]:
    """Return programs that end at once, so that thousands can be graded."""
    return [row for row in recorded() if row.verdict][:40]


if __name__ == "__main__":
    sys.exit(main())
