"""CPU time of grading in the docker box, by who spends it, next to the published evaluator's.

    PYTHONPATH=. python tests/benchmarks/grading_cpu.py [--official CHECKOUT] [--limit 60]

What grade_programs.py times by the clock on the wall, here as CPU time, which a busy machine hardly
changes: of this process, of our containers (cgroup v1), of the engine (others' containers too). The
sets are its `many` and `public`; programs that take long, whoever runs them, are left out.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

from grade_programs import AT_ONCE, as_published  # beside this file

from podium.sandbox import Box, cells, open_box
from podium.sandbox.images import connect, labels
from podium.suites.code_grading import Rules, judge_program
from tests.suites.recorded_programs import Recorded, have, recorded

LONG = (
    *("3560", "3607", "3629", "abc301_e", "abc311_e", "abc328_e", "abc341_f", "abc361_f"),
    *("abc363_c", "abc366_e", "abc368_f", "abc370_g", "abc378_d", "arc185_e"),
)
"""Problems whose recorded program takes more than half a second on a test."""
GROUPS = Path("/sys/fs/cgroup/cpuacct/docker")
TICKS = os.sysconf("SC_CLK_TCK")

OFFICIAL = """
import json, resource, sys
sys.path.insert(0, sys.argv[1])
from lcb_runner.evaluation.compute_code_generation_metrics import codegen_metrics
def spent():
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)
given = json.load(sys.stdin)
samples = [{"input_output": json.dumps(one["tests"])} for one in given]
before = spent()
_, results, _ = codegen_metrics(samples, [[one["code"]] for one in given], [1], int(sys.argv[2]))
runs = sum(len(results[place][0]) for place in range(len(given)))
print("SPENT", json.dumps({"cpu_s": spent() - before, "runs": runs}))
"""


def engine_s() -> float:
    """Return the CPU time of the engine's processes."""
    found = 0.0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            if name.startswith(("dockerd", "containerd")):
                found += sum(int(one) for one in rest.split()[11:13]) / TICKS
    return found


def spent(ids: Sequence[str]) -> Mapping[str, float]:
    """Return the CPU time so far, by who spent it."""
    groups = [int((GROUPS / id / "cpuacct.usage").read_text()) for id in ids]
    own = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "this process": own.ru_utime + own.ru_stime,
        "containers": sum(groups) / 1e9,
        "engine": engine_s(),
    }


def ours(box: Box, rows: Sequence[Recorded], rules: Rules) -> str:
    """Grade all, and say what that took."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(lambda row: judge_program(row.code, row.tests, box), rows[:8]))
        every = cast("list[Any]", connect().containers.list())
        ids = [one.id for one in every if labels().items() <= one.labels.items()]
        before = spent(ids)
        judged = list(
            threads.map(lambda row: judge_program(row.code, row.tests, box, rules=rules), rows)
        )
        after = spent(ids)
    runs = sum(one != "not run" for each in judged for one in each.verdicts)
    return told({who: after[who] - before[who] for who in after}, runs, len(rows))


def told(parts: Mapping[str, float], runs: int, problems: int) -> str:
    """Return CPU time a run and a problem, and its parts."""
    total = sum(parts.values())
    shares = ", ".join(f"{who} {part / runs * 1000:.2f}" for who, part in parts.items())
    return (
        f"{problems} problems, {runs} runs: {total:6.2f} s, {total / problems * 1000:6.1f} ms a "
        f"problem, {total / runs * 1000:5.2f} ms a run ({shares})"
    )


def official(checkout: Path, rows: Sequence[Recorded]) -> str:
    """Have the published evaluator grade all, and say what that took."""
    given = [{"code": row.code, "tests": as_published(row)} for row in rows]
    command = [sys.executable, "-c", OFFICIAL, str(checkout), str(AT_ONCE)]
    said = subprocess.run(
        command, input=json.dumps(given), check=True, capture_output=True, text=True
    )
    found = json.loads(said.stdout.rpartition("SPENT ")[2])
    return told({"its processes": found["cpu_s"]}, found["runs"], len(rows))


def main() -> int:
    """Measure and print; 2 when the recorded programs are not there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--official", type=Path, help="clone of LiveCodeBench at 28fef95")
    parser.add_argument("--limit", type=int, help="first problems of each set")
    args = parser.parse_args()
    if reason := have():
        print(reason, file=sys.stderr)
        return 2
    cells.PROGRAMS = sys.maxsize  # a container that ends takes its cgroup's count along
    many = [row for row in recorded(independent=True) if row.verdict]
    box = open_box("docker", AT_ONCE)
    for name, every in (("many", many), ("public", list(recorded()))):
        rows = [row for row in every if row.question not in LONG][: args.limit]
        for rules in ("real", "official"):
            started = time.monotonic()
            print(f"{name:7} podium {rules:9} {ours(box, rows, rules)}", end="")
            print(f" [{time.monotonic() - started:.0f} s]", flush=True)
        if args.official:
            print(f"{name:7} published        {official(args.official, rows)}", flush=True)
    box.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
