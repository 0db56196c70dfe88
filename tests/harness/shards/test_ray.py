"""Shards on a Ray cluster of three raylets: one table, and a node that is killed loses nothing."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from podium.reports.audit import audit
from tests.harness.shards.ray_nodes import nodes, on
from tests.harness.shards.test_sharded_run import ALONE, answered, asked, paid, ran, table

WORDS = ["--suite", "practice-integer", *ALONE, "--limit", "3"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with nodes(3) as made:
        yield made


@pytest.mark.slow
def test_the_table_of_three_nodes_is_that_of_one_process(tmp_path: Path, cluster: Any) -> None:
    assert ran(tmp_path / "one", WORDS) == 0
    assert ran(tmp_path / "cut", WORDS, *on(cluster), "--max-usd", "5") == 0
    assert table(tmp_path / "cut") == table(tmp_path / "one")
    assert [one for one in audit(tmp_path / "cut").verdicts if one.status == "fail"] == []


@pytest.mark.slow
def test_a_node_that_is_killed_loses_nothing_and_nothing_is_asked_twice(
    tmp_path: Path, cluster: Any
) -> None:
    log_dir = tmp_path / "run"
    found: list[int] = []
    words = [*WORDS, "--time-scale", "1"]
    run = Thread(target=lambda: found.append(ran(log_dir, words, *on(cluster))))
    run.start()
    end = time.monotonic() + 60
    while time.monotonic() < end and not (log_dir.exists() and asked(log_dir).total()):
        time.sleep(0.1)
    cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)
    run.join(240)
    assert found == [0]
    assert answered(log_dir) == Counter(dict.fromkeys(answered(log_dir), 1))
    assert paid(log_dir) == answered(log_dir)
    assert [one for one in audit(log_dir).verdicts if one.status == "fail"] == []


def test_where_no_cluster_answers_a_sentence_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ray = ("--shards", "2", "--launcher", "ray", "--address")
    for place, why in {
        "127.0.0.1:9": "no Ray cluster answers at --address 127.0.0.1:9",
        "no such place": "--address of a Ray cluster must be HOST:PORT or auto, not 'no such "
        "place'",
        "ray://127.0.0.1:10001": "must be HOST:PORT or auto, not 'ray://127.0.0.1:10001'",
    }.items():
        assert ran(tmp_path / "run", WORDS, *ray, place) == 2
        assert why in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
