"""One run, killed with SIGKILL at random points and begun again until it is finished.

`python -m tests.harness.run.killed_run LOG_DIR KILLS SEED`: each sitting is a fork of this
process, so that twenty kills do not import Inspect twenty times. A sitting is killed once it has
made a random number of new calls, a random moment later; every fourth at once when the provider has
served some, before any log can have them. LOG_DIR.sittings gets a line for each: how many calls
were made, how many were in flight.
"""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.harness.toy_run import calls, toy_pool, toy_run

LONGEST_S = 20
MOST_CALLS = 7
"""New calls that a sitting makes before it is killed, at most: a question takes five."""


def forked(work: Callable[[], bool]) -> int:
    """Do some work in a process of its own, which fails where it returns False; return its id."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    os._exit(0 if work() else 1)


def sat(log_dir: Path) -> bool:
    """Begin the run, or go on with it."""
    return toy_run(log_dir, systems=("self-consistency",), selection_limit=3).finished


def import_what_a_run_imports(scratch: Path) -> None:
    """Let the forks find loaded what a run loads when it first needs it: two seconds each."""
    names = scratch / "modules"

    def list_modules() -> bool:
        toy_run(scratch / "run", systems=("moa-lite",), limit=1)
        return bool(names.write_text("\n".join(list(sys.modules))))

    toy_pool(scratch / "run")
    os.waitpid(forked(list_modules), 0)
    for name in names.read_text().split("\n"):
        with suppress(Exception):
            import_module(name)


def killed(log_dir: Path, luck: random.Random, *, at_once: bool = False) -> bool:
    """Let one sitting run for a while and kill it; False when it finished before."""
    kind = "end" if at_once else "begin"
    before, wanted = len(calls(log_dir, kind)), luck.randint(int(at_once), MOST_CALLS)
    child, begun = forked(lambda: sat(log_dir)), time.monotonic()
    while len(calls(log_dir, kind)) < before + wanted and time.monotonic() < begun + LONGEST_S:
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(0.001)
    if not at_once:
        time.sleep(luck.random() / 20)  # a call takes 30 ms: no faster machine gets much further
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


if __name__ == "__main__":
    place, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    chance = random.Random(seed)
    with TemporaryDirectory() as folder:
        import_what_a_run_imports(Path(folder))
    with Path(f"{place}.sittings").open("w") as notes:
        for number in range(kills):
            before = len(calls(place)) - len(calls(place, "end"))
            was_killed = killed(place, chance, at_once=number % 4 == 3)
            flying = len(calls(place)) - len(calls(place, "end")) - before
            notes.write(f"{'killed' if was_killed else 'finished'} {len(calls(place))} {flying}\n")
    _, status = os.waitpid(forked(lambda: sat(place)), 0)
    sys.exit(os.waitstatus_to_exitcode(status))
