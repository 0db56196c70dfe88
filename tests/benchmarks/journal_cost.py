"""What the records of a call cost a run: processor time per call, and bytes per call.

    python tests/benchmarks/journal_cost.py                                  # about two minutes
    python tests/benchmarks/journal_cost.py --questions 20 --rounds 2        # a short one

A question is five calls, one after the other, of one worker. It is asked with and without our
journal, and with and without the raw calls in the log (`log_model_api`, where a provider's own
usage comes from; by default Inspect keeps the raw calls of failures only). The workers are
rehearsal (no request leaves the process), and `openai/` at a local server in a process of its own
(synthetic replies of 2,000 characters over real HTTP). Rounds alternate and begin elsewhere each
time, so that a drifting machine slows all alike; figures are medians.
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, GenerateConfig, Model, ModelOutput, get_model
from inspect_ai.solver import Solver, solver

from podium.harness.context import run_context
from podium.harness.inspect_adapters import as_solver
from podium.harness.ledger.journal import CallOutcome, Head, SampleRef, open_journal
from podium.harness.ledger.recorder import TaskJournal, next_draw, recording
from podium.harness.pool import slot_model
from podium.harness.pool_config import read_pool
from podium.harness.records import Usage
from podium.harness.reply_cache import PaidReplies
from podium.harness.request import Request
from podium.harness.system import planned
from podium.harness.workflow import Step, Workflow
from podium.suites import SUITES
from tests.providers import ok, serve

CALLS = 5
"""Per question."""
WORKER = "sage"
WORDS = ("sum", "term", "carry", "digit", "prove", "even", "odd", "so", "then", "left", "check")
HEAD = Head("cost", "practice-integer", "five-calls", "rehearsal", "none", "0" * 64)
SAMPLE = SampleRef("question", 1, "u" * 22)
INTENT: dict[str, object] = {
    "scope": "inference",
    "sample": asdict(SAMPLE),
    "role": WORKER,
    "step": "step 1: sage",
    "model": "rehearsal/sage",
    "price_ref": "rehearsal/sage",
    "service": "standard",
    "prompt_sha256": "0" * 64,
    "prompt_bytes": 1000,
    "max_tokens": None,
    "span": "s" * 22,
}
OUTCOME = CallOutcome(event="e" * 22, usage=Usage(input=250, output=100), output_sha256="0" * 64)
ARMS = {
    "neither": (False, False),
    "journal": (True, False),
    "raw calls in the log": (False, True),
    "both, as podium run": (True, True),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """One run, per call."""

    cpu_ms: float
    """Processor time of this process."""
    wall_ms: float
    journal: float
    """Bytes; `log` is of the `.eval` file."""
    log: float


@solver
def five_calls() -> Solver:
    """Ask the worker five times, each time with the reply before."""
    first = Step(WORKER)
    later = tuple(Step(WORKER, "Check this.", (at,)) for at in range(CALLS - 1))
    return as_solver(planned(lambda question, pool: Workflow((first, *later))))


def once(worker: Model, log_dir: Path, questions: int, arm: str) -> Cost:
    """Run some questions; return what a call cost."""
    journalled, raw = ARMS[arm]
    journal = TaskJournal(log_dir, HEAD) if journalled else None
    with run_context(log_dir=log_dir, journal=journal):
        solving = five_calls()
    asked = SUITES["practice-integer"].load("eval")[:questions]
    task = Task(MemoryDataset([Sample(id=one.id, input=one.text) for one in asked]), solver=solving)
    began, wall = time.process_time(), time.perf_counter()
    (log,) = eval(
        task,
        model=None,
        model_roles={WORKER: worker},
        log_dir=str(log_dir),
        log_model_api=raw,
        log_buffer=1,
        display="none",
        ctl_server=False,
    )
    if journal:
        journal.close()
    used, took = time.process_time() - began, time.perf_counter() - wall
    assert log.status == "success", log.error and log.error.message
    calls = CALLS * len(asked)
    written = sum(path.stat().st_size for path in log_dir.glob("ledger/*/*.jsonl"))
    logged = sum(path.stat().st_size for path in log_dir.glob("*.eval"))
    return Cost(1000 * used / calls, 1000 * took / calls, written / calls, logged / calls)


def measure(title: str, make: Callable[[], Model], questions: int, rounds: int) -> None:
    """Print a line per arm: medians, and what each costs beside neither."""
    found: dict[str, list[Cost]] = {arm: [] for arm in ARMS}
    names = list(ARMS)
    with tempfile.TemporaryDirectory() as scratch:
        once(make(), Path(scratch) / "warm", 2, names[-1])
        for number in range(rounds):
            at = number % len(names)
            for arm in names[at:] + names[:at]:
                place = Path(scratch) / f"{number}-{names.index(arm)}"
                found[arm].append(once(make(), place, questions, arm))
    print(f"{title}, {CALLS * questions} calls in each of {rounds} rounds:")
    print(f"  {'':<24}{'CPU ms':>9}{'more':>9}{'calls/s':>9}{'journal B':>11}{'.eval B':>9}")
    for arm in names:
        print(_line(arm, found))


def lines_alone(calls: int = 5000) -> None:
    """Print what it takes to write the two lines of a call, without a run around them."""
    with tempfile.TemporaryDirectory() as scratch:
        journal = open_journal(Path(scratch), HEAD)
        began = time.process_time()
        for _ in range(calls):
            journal.outcome(journal.intent(INTENT), OUTCOME)
        used = time.process_time() - began
        journal.close()
    print(f"the journal's two lines of a call, alone: {1000 * used / calls:.3f} ms of processor")


def store_alone(calls: int = 5000) -> None:
    """Print what it takes to look for a reply that is not there and to keep the one that comes."""
    text = said(1)
    output = ModelOutput.from_content("openai/gpt-5", text)
    with tempfile.TemporaryDirectory() as scratch:
        replies = PaidReplies(Path(scratch))
        worker = slot_model(read_pool("rehearsal").worker(WORKER))
        asked = [
            Request(WORKER, worker, [ChatMessageUser(content=f"{number} {text}")], WORKER)
            for number in range(calls)
        ]
        journal = TaskJournal(Path(scratch), HEAD, replies)
        with recording(journal, "inference", SAMPLE):
            replies.open()
            began = time.process_time()
            for request in asked:
                draw = next_draw(request)
                assert draw is not None
                assert draw.bought(request) is None
                draw.keep(output, {}, None, None)
            used = time.process_time() - began
        replies.clear()
    print(f"the store of a call's reply, alone: {1000 * used / calls:.3f} ms of processor")


def _line(arm: str, found: Mapping[str, list[Cost]]) -> str:
    costs = found[arm]
    pairs = zip(costs, found["neither"], strict=True)
    more = statistics.median(one.cpu_ms - bare.cpu_ms for one, bare in pairs)
    cpu = statistics.median(one.cpu_ms for one in costs)
    speed = statistics.median(1000 / one.wall_ms for one in costs)
    sizes = f"{costs[-1].journal:>11,.0f}{costs[-1].log:>9,.0f}"
    return f"  {arm:<24}{cpu:>9.3f}{more:>+9.3f}{speed:>9.1f}{sizes}"


def said(number: int) -> str:
    """Return a reply of about 2,000 characters; no two are alike, or they would pack too well."""
    return " ".join(random.Random(number).choices(WORDS, k=400)) + "\nANSWER: 7"


@contextmanager
def server() -> Generator[str]:
    """Yield the address of a provider in a process of its own: its time is not this one's."""
    here = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(here, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def main() -> None:
    """Measure both kinds of workers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        with serve([ok(said(number)) for number in range(20_000)]) as provider:
            print(provider.openai, flush=True)
            while True:
                time.sleep(60)
    lines_alone()
    store_alone()
    rehearsing = read_pool("rehearsal").worker(WORKER)
    measure("rehearsal", lambda: slot_model(rehearsing), asked.questions, asked.rounds)
    with server() as url:
        measure("openai/ at a local server", lambda: _openai(url), asked.questions, asked.rounds)


def _openai(url: str) -> Model:
    config = GenerateConfig(max_tokens=1024)
    return get_model("openai/gpt-5", base_url=url, api_key="test", config=config, memoize=False)


if __name__ == "__main__":
    main()
