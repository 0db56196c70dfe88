"""One budget over shards: grants that never pass the limit, whoever is killed and whenever."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import httpx
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.__main__ import main
from podium.harness.context import run_context
from podium.harness.errors import UserError
from podium.harness.ledger.journal import CallOutcome, Head, open_journal, read_lines
from podium.harness.prices import read_book
from podium.harness.run.experiment import lock_experiment
from podium.harness.shards.lease import (
    ADDRESS,
    FILE,
    TTL_S,
    Fenced,
    Held,
    LeaseBook,
    RunLimits,
    assigned,
    open_book,
)
from podium.harness.shards.lease_client import HeldLease, settle, this_machine
from podium.harness.shards.lease_server import LeaseServer, lease_server
from podium.harness.shards.plan import ShardPlan, shard_dir, write_plan
from podium.reports.audit import audit
from podium.reports.audit.evidence import InvariantCheck
from podium.reports.audit.sharded import leases_kept
from tests.harness.shards.ray_nodes import servers
from tests.harness.shards.test_sharded_run import answered, asked, begun, wait_for
from tests.reports.audit.audited_run import said

ROOT = Path(__file__).parents[3]
LIMIT = Decimal("1.00")
LIMITS = RunLimits(LIMIT)
WORDS = ["--suite", "practice-integer", "--system", "single:sage", "--limit", "8"]
SLOW = [*WORDS, "--time-scale", "1", "--max-usd", "5"]
STEPS = st.tuples(
    st.sampled_from(["open", "extend", "beat", "close", "restart"]),
    st.sampled_from(["0001", "0002", "0003"]),
    st.decimals("0.00", "0.90", places=2),
)


def taken(book: LeaseBook, step: str, shard: str, usd: Decimal) -> None:
    """Let a shard do something that its process could."""
    lease = book.shards.get(shard)
    had, generation = (lease.granted, lease.generation) if lease else (Decimal(0), 0)
    if step == "open":
        book.open(shard, min(usd, had))
    elif step == "extend":
        book.extend(shard, generation, usd, idle=True)
    elif step == "beat":
        book.beat(shard, generation, min(usd, had))
    else:
        book.close(shard, generation, min(usd, had))


@given(st.lists(STEPS, max_size=30))
def test_grants_never_pass_the_limit(
    tmp_path_factory: pytest.TempPathFactory, steps: Sequence[tuple[str, str, Decimal]]
) -> None:
    log_dir = tmp_path_factory.mktemp("leases")
    book = open_book(log_dir, LIMITS)
    for step, shard, usd in steps:
        if step == "restart":
            before = {name: (one.generation, one.granted) for name, one in book.shards.items()}
            book.journal.close()
            book = open_book(log_dir, LIMITS)
            assert before == {
                name: (one.generation, one.granted) for name, one in book.shards.items()
            }
            continue
        try:
            taken(book, step, shard, usd)
        except Fenced:
            lease = book.shards.get(shard)
            assert lease is None or lease.closed
        assert book.assigned <= LIMIT
        assert assigned(log_dir) == book.assigned
    book.journal.close()


def test_a_shard_waits_for_what_another_one_may_give_back_and_is_refused_when_none_can(
    tmp_path: Path,
) -> None:
    book = open_book(tmp_path, LIMITS)
    for name in ("0001", "0002"):
        book.open(name, Decimal(0))
    assert book.extend("0001", 1, Decimal("0.95"), idle=True) == "granted"
    assert book.extend("0002", 1, Decimal("0.30"), idle=True) == "wait"
    assert book.short
    book.beat("0001", 1, keeps=Decimal("0.50"))
    assert book.extend("0002", 1, Decimal("0.30"), idle=True) == "granted"
    assert book.extend("0002", 1, Decimal("0.90"), idle=True) == "wait"
    assert book.extend("0001", 1, Decimal("0.90"), idle=True) == "none"


def test_a_shard_that_says_nothing_is_not_waited_for_and_keeps_its_grant(tmp_path: Path) -> None:
    now = 0.0
    book = open_book(tmp_path, LIMITS)
    book.clock = lambda: now
    for name in ("0001", "0002"):
        book.open(name, Decimal(0))
    book.extend("0001", 1, Decimal("0.95"), idle=False)
    now = 60.0
    assert book.extend("0002", 1, Decimal("0.30"), idle=True) == "none"
    assert book.shards["0001"].granted >= Decimal("0.95")
    book.open("0001", Decimal("0.10"))
    assert book.extend("0002", 1, Decimal("0.30"), idle=True) == "granted"


def test_an_older_generation_is_fenced(tmp_path: Path) -> None:
    book = open_book(tmp_path, LIMITS)
    book.open("0001", Decimal(0))
    book.open("0001", Decimal(0))
    for call in (
        lambda: book.extend("0001", 1, Decimal(1), idle=True),
        lambda: book.beat("0001", 1),
        lambda: book.close("0001", 1, Decimal(0)),
    ):
        with pytest.raises(Fenced):
            call()


def test_another_machine_begins_once_the_lease_has_run_out(tmp_path: Path) -> None:
    now = 0.0
    book = open_book(tmp_path, LIMITS)
    book.clock = lambda: now
    book.open("0001", Decimal(0), "this")
    now = TTL_S - 1
    with pytest.raises(Held):
        book.open("0001", Decimal(0), "that")
    book.beat("0001", 1)
    now = 2 * TTL_S - 2
    with pytest.raises(Held):
        book.open("0001", Decimal(0), "that")
    assert book.open("0001", Decimal(0), "this").generation == 2
    now = 4 * TTL_S
    assert book.open("0001", Decimal(0), "that").generation == 3
    book.close("0001", 3, Decimal(0))
    assert book.open("0001", Decimal(0), "this").generation == 4


def test_turns_are_shared_out_and_none_comes_twice_after_a_restart(tmp_path: Path) -> None:
    now = 0.0
    limits = RunLimits(rpm={"openai": 60})

    def opened() -> LeaseBook:
        book = open_book(tmp_path, limits)
        left = {name: at - book.turns.clock() for name, at in book.turns.next.items()}
        book.turns.clock = lambda: now
        book.turns.next = {name: now + round(wait_s) for name, wait_s in left.items()}
        return book

    book = opened()
    for name in ("0001", "0002"):
        book.open(name, Decimal(0))
    assert book.reserve("0001", 1, "openai", 2) == [0.0, 1.0]
    assert book.reserve("0002", 1, "openai", 5) == [2.0]
    assert book.reserve("0001", 1, "openai", 1) == []
    assert book.reserve("0001", 1, "google", 3) == [0.0, 0.0, 0.0]
    book.journal.close()
    book = opened()
    assert book.reserve("0001", 1, "openai", 1) == []
    now = 3.0
    assert book.reserve("0001", 1, "openai", 1) == [0.0]


def test_a_torn_line_was_never_answered(tmp_path: Path) -> None:
    book = open_book(tmp_path, LIMITS)
    book.open("0001", Decimal("0.25"))
    book.journal.close()
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"kind":"grant","shard":"0001","gran')
    book = open_book(tmp_path, LIMITS)
    assert book.shards["0001"].granted == Decimal("0.25")
    assert [one["kind"] for one in read_lines(tmp_path / FILE)] == ["limit", "open", "limit"]


@pytest.mark.parametrize("line", [b"{}", b"[1]", b"?", b'{"kind":"grant"}'])
def test_a_journal_of_leases_that_was_changed_is_refused(tmp_path: Path, line: bytes) -> None:
    open_book(tmp_path, LIMITS).journal.close()
    with (tmp_path / FILE).open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(
        UserError, match="line 2 was changed after it was written: restore the file"
    ):
        open_book(tmp_path, LIMITS)


def test_a_process_that_outlived_its_launcher_keeps_its_grant(tmp_path: Path) -> None:
    write_plan(tmp_path, ShardPlan({}, {}))
    book, folder = open_book(tmp_path, LIMITS), shard_dir(tmp_path, "0001")
    book.open("0001", Decimal(0), this_machine())
    book.extend("0001", 1, Decimal("0.95"), idle=True)
    book.journal.close()
    with lock_experiment(folder):
        settle(tmp_path, read_book("rehearsal"), LIMITS)
        assert assigned(tmp_path) == Decimal("0.95")
    settle(tmp_path, read_book("rehearsal"), LIMITS)
    assert assigned(tmp_path) == 0


def test_a_lease_that_nobody_takes_back_is_left_to_the_next_command(tmp_path: Path) -> None:
    lease = HeldLease(shard_dir(tmp_path, "0001"), patience_s=0.1)
    lease.close(Decimal(0))
    assert lease.lost


@pytest.mark.slow
def test_a_server_answers_its_shards_alone_and_leaves_no_token_behind(tmp_path: Path) -> None:
    with lease_server(tmp_path, LIMITS):
        path = tmp_path / ADDRESS
        assert path.stat().st_mode & 0o777 == 0o600
        server = orjson.loads(path.read_bytes())
        url, known = server["url"], {"authorization": f"Bearer {server['token']}"}

        def status(what: str, body: bytes, headers: dict[str, str]) -> int:
            return httpx.post(f"{url}/{what}", content=body, headers=headers).status_code

        good = b'{"shard": "0001"}'
        assert status("open", good, {}) == 401
        assert status("open", good, {"authorization": "Bearer other"}) == 401
        assert status("open", b"{", known) == 422
        assert status("open", b'{"shard": "../x"}', known) == 422
        assert status("open", b'{"shard": "0001", "spent": "NaN"}', known) == 422
        assert status("extend", good, known) == 409
        assert status("open", good, known) == 200
    assert not path.exists()


PACED = ["--rpm", "rehearsal=240", "--time-scale", "0"]


@pytest.mark.slow
def test_shards_share_the_calls_of_a_minute(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    assert ran(log_dir, WORDS, "--shards", "3", *PACED) == 0
    lines = [one for path in journals(log_dir) for one in read_lines(path)]
    began = sorted(datetime.fromisoformat(one["at"]) for one in lines if one["kind"] == "intent")
    assert len(began) == 8
    assert (began[-1] - began[0]).total_seconds() >= 7 * 0.25 - 0.2
    assert [one for one in audit(log_dir).verdicts if one.status == "fail"] == []


def journals(log_dir: Path) -> list[Path]:
    return sorted(log_dir.glob("shards/*/ledger/*/*.jsonl"))


def test_a_run_in_one_process_keeps_to_the_calls_of_a_minute(tmp_path: Path) -> None:
    assert ran(tmp_path, WORDS, *PACED) == 0
    lines = [one for path in tmp_path.glob("ledger/*/*.jsonl") for one in read_lines(path)]
    began = sorted(datetime.fromisoformat(one["at"]) for one in lines if one["kind"] == "intent")
    assert (began[-1] - began[0]).total_seconds() >= 7 * 0.25 - 0.2


def test_a_limit_of_calls_that_holds_nobody_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(tmp_path / "run", WORDS, "--rpm", "opnai=60") == 2
    assert "--rpm opnai=60: pool 'rehearsal' asks rehearsal only." in capsys.readouterr().err
    for words in ("openai", "openai=0", "openai=many", "=3"):
        with pytest.raises(SystemExit):
            ran(tmp_path / "run", WORDS, "--rpm", words)
        assert "argument --rpm" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_server_ends_where_another_command_takes_the_run_over(tmp_path: Path) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # as an actor of Ray has it
    try:
        with lease_server(tmp_path, LIMITS) as server:
            assert isinstance(server, LeaseServer)
            assert server.process
            settle(tmp_path, read_book("rehearsal"), LIMITS)
            assert server.process.wait(60) == 0
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


FENCED = """
import sys, time
from decimal import Decimal
from pathlib import Path
from podium.harness.prices import read_book
from podium.harness.shards.lease_client import HeldLease, open_lease
folder = Path(sys.argv[1])
with open_lease(folder, read_book("rehearsal")) as lease:
    HeldLease(folder).open(Decimal(0))  # another process has begun
    lease.short = True
    time.sleep(60)
"""


@pytest.mark.slow
def test_a_process_whose_lease_was_lost_ends_to_be_started_again(tmp_path: Path) -> None:
    write_plan(tmp_path, ShardPlan({}, {}))
    shard_dir(tmp_path, "0001").mkdir(parents=True)
    with lease_server(tmp_path, LIMITS):
        command = [sys.executable, "-c", FENCED, str(shard_dir(tmp_path, "0001"))]
        assert subprocess.run(command, cwd=ROOT, timeout=60).returncode == 75


def ran(log_dir: Path, words: Sequence[str], *more: str) -> int:
    return main(["run", *words, *more, "--display", "none", "--log-dir", str(log_dir)])


@pytest.mark.slow
def test_a_run_stops_below_its_limit_and_ends_with_a_larger_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir, cut = tmp_path / "run", ("--shards", "3", "--max-usd")
    assert ran(log_dir, WORDS, *cut, "0.034") == 1
    assert "for all shards is less than the next call" in capsys.readouterr().err
    assert 0 < assigned(log_dir) <= Decimal("0.034")
    assert 0 < answered(log_dir).total() < 8
    assert ran(log_dir, WORDS, *cut, "2") == 0
    assert answered(log_dir).total() == 8
    assert asked(log_dir) == answered(log_dir)
    found = audit(log_dir)
    assert [one for one in found.verdicts if one.status == "fail"] == []
    assert said(found, "I18").startswith("pass")
    heads = [next(iter(read_lines(path))) for path in journals(log_dir)]
    assert {1, 2} == {one["generation"] for one in heads}
    lines = (log_dir / FILE).read_bytes().splitlines(keepends=True)
    (log_dir / FILE).write_bytes(b"".join(lines[:-1]).replace(b'"usd":"2"', b'"usd":"0.001"'))
    found = audit(log_dir)
    assert "were granted, but the limit is $0.001" in said(found, "I18")
    assert "edited" in said(found, "I18")


def called(folder: Path, generation: int, usd: str) -> None:
    """Write a journal of one paid call, as a shard's process does under a lease."""
    with run_context(generation=generation):
        journal = open_journal(folder, Head("t", "s", "x", "rehearsal", "b", ""))
    ended = CallOutcome(event=None, usage=None, usd=usd)
    journal.outcome(journal.intent({"role": "sage"}), ended)
    journal.close()


def faults(log_dir: Path) -> list[str]:
    return [f"{where}: {said}" for where, said in leases_kept(log_dir, InvariantCheck())]


def test_an_audit_knows_what_each_lease_allowed(tmp_path: Path) -> None:
    write_plan(tmp_path, ShardPlan({}, {}))
    folder = shard_dir(tmp_path, "0001")
    folder.mkdir(parents=True)
    (folder / "experiment.json").touch()
    for limits, spent in ((RunLimits(), "5.00"), (LIMITS, "0.40")):
        book = open_book(tmp_path, limits)
        one = book.open("0001", Decimal(0 if limits.usd is None else 5))
        called(folder, one.generation, spent)
        book.journal.close()
    assert faults(tmp_path) == ["shard 0001: its journals have $5.40, but its lease granted $5"]
    open_book(tmp_path, RunLimits()).journal.close()  # a later run without a limit excuses none
    called(folder, 3, "0.10")
    assert faults(tmp_path)[1:] == ["shard 0001: generation 3 has made calls without an open lease"]
    (*_, path) = journals(tmp_path)
    whole = path.read_bytes()
    for old, new in ((b'"pid":', b'"pod":'), (b'"usd":"0.10"', b'"usd":"NaN"')):
        assert old in whole
        path.write_bytes(whole.replace(old, new))
        (fault,) = faults(tmp_path)
        assert (
            fault == "shard 0001: a line of its journals is incomplete, so its dollars are unknown"
        )


def kinds_in(log_dir: Path) -> list[str]:
    """Return the kind of every line that the servers of a run wrote; each begins with `limit`."""
    return [line["kind"] for line in read_lines(log_dir / FILE)]


@pytest.mark.slow
def test_a_server_that_is_killed_is_started_again_and_goes_on(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    with begun(log_dir, SLOW, 2) as process:
        for answers in (1, 3):
            wait_for(log_dir, answers, process)
            begun_before = kinds_in(log_dir).count("limit")
            for server in servers(log_dir):
                os.kill(server, signal.SIGKILL)
            while process.poll() is None and kinds_in(log_dir).count("limit") == begun_before:
                time.sleep(0.05)
        assert process.wait(120) == 0
    assert asked(log_dir) == answered(log_dir)
    assert answered(log_dir).total() == 8
    assert kinds_in(log_dir).count("limit") == 4
    assert [one for one in audit(log_dir).verdicts if one.status == "fail"] == []
    assert servers(log_dir) == []
