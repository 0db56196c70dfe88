"""Nodes, the head and who keeps the leases are lost: nothing of the run is, or bought twice."""

import signal
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.harness.ledger.call import Attempted, upper_bound
from podium.harness.ledger.journal import FOLDER
from podium.harness.ledger.runs import calls_of
from podium.harness.ledger.system_runs import load_runs, spent_so_far
from podium.harness.prices import read_book
from podium.harness.shards.lease import ADDRESS
from podium.harness.shards.plan import read_outcome, shard_dirs
from podium.reports.audit import audit
from tests.harness.shards.ray_nodes import (
    NODE,
    begun,
    endless,
    ends,
    kill,
    lease_node,
    lose,
    nodes,
    on,
    parent_of,
    said_by,
    servers,
    until,
)
from tests.harness.shards.test_sharded_run import ALONE, answered, asked, paid, ran, table

pytestmark = pytest.mark.slow

SLOW = ["--suite", "practice-integer", *ALONE, "--limit", "9", "--time-scale", "1", "--max-usd"]
SLOW += ["5"]
QUERIES = 18


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with nodes(3) as made:
        yield made


def is_at(log_dir: Path, answers: int) -> bool:
    return bool([*log_dir.glob("shards/*/ledger/*/*.jsonl")]) and asked(log_dir).total() >= answers


def nothing_is_lost_or_bought_twice(log_dir: Path) -> None:
    assert answered(log_dir) == Counter(dict.fromkeys(answered(log_dir), 1))
    assert answered(log_dir).total() == QUERIES
    assert paid(log_dir) == answered(log_dir)
    assert [*log_dir.glob("shards/*/paid-replies/*")] == []  # each reply is in a log
    found = audit(log_dir)
    assert [one for one in found.verdicts if one.status == "fail"] == []
    counts = found.table.counts  # the end of a call may stand only in a log that was recovered
    assert counts["in flight"] + counts["untold"] == endless(log_dir)
    until(lambda: not servers(log_dir))
    assert not (log_dir / ADDRESS).exists()


def test_the_node_of_the_leases_is_lost_and_another_one_hands_them_out(
    tmp_path: Path, cluster: Any
) -> None:
    log_dir = tmp_path / "run"
    with begun(log_dir, [*SLOW, *on(cluster)]) as process:
        until(lambda: is_at(log_dir, 2), process)
        lose(cluster, until(lambda: lease_node(cluster, log_dir), process))
        cluster.add_node(**NODE)
        ends(process, log_dir)
    nothing_is_lost_or_bought_twice(log_dir)


def test_the_server_of_the_leases_and_its_actor_are_killed(tmp_path: Path, cluster: Any) -> None:
    log_dir = tmp_path / "run"
    with begun(log_dir, [*SLOW, *on(cluster)]) as process:
        until(lambda: is_at(log_dir, 2), process)
        (server,) = servers(log_dir)
        kill(server)
        until(lambda: is_at(log_dir, 6) and {*servers(log_dir)} - {server}, process)
        (server,) = servers(log_dir)
        actor = parent_of(server)
        assert actor
        kill(actor)
        ends(process, log_dir)
    nothing_is_lost_or_bought_twice(log_dir)


def test_a_run_that_was_killed_is_taken_over_by_processes_of_this_machine(
    tmp_path: Path, cluster: Any
) -> None:
    log_dir = tmp_path / "run"
    with begun(log_dir, [*SLOW, *on(cluster)]) as process:
        until(lambda: is_at(log_dir, 4), process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(servers(log_dir)) == 1  # a detached actor outlives who began it
    assert ran(log_dir, SLOW, "--shards", "2") == 0
    nothing_is_lost_or_bought_twice(log_dir)


def test_a_cluster_whose_head_is_lost_ends_the_run_in_a_sentence_and_a_smaller_one_goes_on(
    tmp_path: Path,
) -> None:
    log_dir = tmp_path / "run"
    with nodes(3) as first, begun(log_dir, [*SLOW, *on(first)]) as process:
        until(lambda: is_at(log_dir, 4), process)
        for node in [*first.worker_nodes, first.head_node]:
            lose(first, node)
        ends(process, log_dir, 1)
    said = said_by(log_dir).read_text()
    assert "no longer answers: start one, and run the same command" in said
    assert "Traceback" not in said
    with nodes(2) as second, begun(log_dir, [*SLOW, *on(second)]) as process:
        ends(process, log_dir)
    nothing_is_lost_or_bought_twice(log_dir)


def test_three_nodes_stop_within_one_limit_and_leave_less_than_a_call_each(
    tmp_path: Path, cluster: Any
) -> None:
    log_dir, limit = tmp_path / "run", Decimal("0.1")
    words = ["--suite", "practice-integer", "--system", "single:sage", "--epochs", "5"]
    words += ["--time-scale", "0.1"]  # some 70 calls, one at a time on each node
    with begun(log_dir, [*words, "--max-usd", f"{limit}", *on(cluster)]) as process:
        ends(process, log_dir, 1)
    book, shards = read_book("rehearsal"), shard_dirs(log_dir)
    spent = sum((spent_so_far(one, book).usd for one in shards), Decimal(0))
    ended = [read_outcome(one) for one in shards]
    live = sum(one is None or not one.finished for one in ended)
    bound = max(bounds(log_dir))
    assert live
    assert limit - live * bound <= spent <= limit
    assert [one for one in audit(log_dir).verdicts if one.status == "fail"] == []


def bounds(log_dir: Path) -> Iterator[Decimal]:
    """Yield the most that each call of a run could have cost."""
    book = read_book("rehearsal")
    for path in log_dir.glob(f"shards/*/{FOLDER}/*/*.jsonl"):
        for call in calls_of(path):
            one = call.intent
            sizes = one["prompt_bytes"], one["max_tokens"]
            attempted = Attempted("unknown", "none", None, one["service"], *sizes)
            most = upper_bound(attempted, book.price(one["price_ref"]))
            assert most is not None
            yield most


@pytest.mark.parametrize("box", ["bwrap", pytest.param("docker", marks=pytest.mark.docker)])
def test_programs_are_graded_where_their_shard_runs(tmp_path: Path, cluster: Any, box: str) -> None:
    words = ["--suite", "practice-code", *ALONE, "--limit", "6", "--time-scale", "0", "--box", box]
    assert ran(tmp_path / "one", words) == 0
    with begun(tmp_path / "cut", [*words, *on(cluster)]) as process:
        ends(process, tmp_path / "cut")
    assert verdicts(tmp_path / "cut") == verdicts(tmp_path / "one")
    assert table(tmp_path / "cut") == table(tmp_path / "one")
    assert [one for one in audit(tmp_path / "cut").verdicts if one.status == "fail"] == []


def verdicts(log_dir: Path) -> list[tuple[object, ...]]:
    """Return how every attempt was graded."""
    runs, _ = load_runs([log_dir], deep=True)
    return sorted(
        (run.facts.system, one.question, one.epoch, one.value, one.reason, one.parsed)
        for run in runs
        for one in run.attempts
    )
