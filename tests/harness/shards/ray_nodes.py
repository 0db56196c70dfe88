"""Nodes of a Ray cluster on this machine, and how they are lost: with all they run, at once."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from podium.harness.ledger.journal import FOLDER
from podium.harness.ledger.runs import calls_of
from podium.harness.ledger.system_runs import load_runs
from tests import ROOT

NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}


@contextmanager
def nodes(number: int) -> Iterator[Any]:
    """Yield a cluster of nodes of one core, of which one is the head."""
    head = {**NODE, "include_dashboard": False}
    made = import_module("ray.cluster_utils").Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(number - 1):
            made.add_node(**NODE)
        made.wait_for_nodes()
        yield made
    finally:
        made.shutdown()


def on(cluster: Any) -> tuple[str, ...]:
    return ("--shards", "3", "--launcher", "ray", "--address", cluster.address)


def begun(log_dir: Path, words: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Begin a run; what it says is in a file beside its directory."""
    command = [sys.executable, "-m", "podium", "run", *words, "--display", "none"]
    with said_by(log_dir).open("ab") as said:
        return subprocess.Popen(
            [*command, "--log-dir", str(log_dir)],
            cwd=ROOT,
            start_new_session=True,
            stdout=said,
            stderr=said,
        )


def ends(process: "subprocess.Popen[bytes]", log_dir: Path, code: int = 0) -> None:
    """Wait for a run; fail with what it said, and why answers have no verdict, on another code."""
    said = process.wait(600), said_by(log_dir).read_text()[-4000:]
    assert said[0] == code, "\n".join([said[1], *no_verdicts(log_dir)])


def no_verdicts(log_dir: Path) -> list[str]:
    """Return why answers of a run have no verdict."""
    runs, _ = load_runs([log_dir], deep=True)
    return [str(one.reason) for run in runs for one in run.attempts if one.value is None]


def said_by(log_dir: Path) -> Path:
    return log_dir.with_suffix(".said")


def raylet(node: Any) -> int:
    return node.all_processes["raylet"][0].process.pid


def node_of(cluster: Any, process: int) -> Any:
    """Return the node that runs a process; None for one that is gone."""
    by_raylet = {raylet(node): node for node in cluster.list_all_nodes()}
    with suppress(psutil.NoSuchProcess):
        running = psutil.Process(process)
        for above in (running, *running.parents()):
            if above.pid in by_raylet:
                return by_raylet[above.pid]
    return None


def parent_of(process: int) -> int | None:
    """Return the process that began another one; None where that one is gone."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(process).ppid()
    return None


def run_by(node: Any) -> list[int]:
    """Return what a node runs, its raylet first."""
    first = psutil.Process(raylet(node))
    return [process.pid for process in (first, *first.children(recursive=True))]


def lose(cluster: Any, node: Any) -> None:
    """Kill a node with all it runs, shards among it, before any of that can say a word."""
    processes = run_by(node)
    for how in (signal.SIGSTOP, signal.SIGKILL):
        for one in processes:
            kill(one, how)
    cluster.remove_node(node, allow_graceful=False)


def kill(process: int, how: int = signal.SIGKILL) -> None:
    """Send a signal to a process that may have ended."""
    try:
        os.kill(process, how)
    except ProcessLookupError:
        return


def running(log_dir: Path, module: str) -> list[int]:
    """Return the processes of a module that were given a run's directory, or one below it."""
    commands = {one.pid: one.info["cmdline"] or [] for one in psutil.process_iter(["cmdline"])}
    return [
        pid
        for pid, words in commands.items()
        if module in words[:5] and any(word.startswith(str(log_dir)) for word in words)
    ]


def servers(log_dir: Path) -> list[int]:
    """Return the processes that hand out leases of a run."""
    return running(log_dir, "podium.harness.shards.lease_server")


def lease_node(cluster: Any, log_dir: Path) -> Any:
    """Return the node of the leases; None for now, and at the head their actor is killed first."""
    for server in servers(log_dir):
        node, actor = node_of(cluster, server), parent_of(server)
        if node is not None and node != cluster.head_node:
            return node
        if node is not None and actor:
            kill(actor)  # it begins again on any node
    return None


def until(seen: Callable[[], object], process: "subprocess.Popen[bytes] | None" = None) -> Any:
    """Wait for something while a run goes on, and return it; fail where it never comes."""
    end = time.monotonic() + 300
    while not (found := seen()):
        assert time.monotonic() < end
        assert process is None or process.poll() is None
        time.sleep(0.02)
    return found


def endless(log_dir: Path) -> int:
    """Return how many calls have no known end, by the journals."""
    journals = log_dir.glob(f"shards/*/{FOLDER}/*/*.jsonl")
    return sum(call.outcome is None for path in journals for call in calls_of(path))
