"""The k-th draw of a worker on one request is bought once, for every system of a run."""

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from inspect_ai.model import ChatMessageUser, get_model

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.journal import SampleRef
from podium.harness.ledger.recorder import TaskJournal, recording
from podium.harness.ledger.system_runs import load_runs
from podium.harness.pool import Pool
from podium.harness.records import FRESH, SHARED, Reply
from podium.harness.reply_cache import FOLDER, PaidReplies
from podium.harness.run.experiment import read_experiment
from podium.harness.shards.plan import PlannedRow, cut_by_question
from podium.reports.audit import audit
from podium.reports.report import report_of
from tests.harness.toy_run import calls, toy_pool, toy_run
from tests.providers.flaky import HEAD
from tests.reports.audit.audited_run import edit_journal, failing, rows_below, said

CENT = Decimal("0.01")
SYSTEMS = ("single:ada", "self-consistency@3", "best-of-n@2")
ASKED: dict[str, Any] = {"systems": SYSTEMS, "limit": 2, "selection_limit": 1}
CHOSEN = 2  # calls that choose the best worker
APART = CHOSEN + 2 * (1 + 3 + 2 + 1)
"""Calls where each system buys its own: one, three votes, two candidates and their judge."""
TOGETHER = CHOSEN + 2 * (3 + 1)
"""Calls where draws are shared: three draws of ada, and the judge."""


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    toy_pool(tmp_path / "run")
    return tmp_path / "run"


def would_be(log_dir: Path) -> dict[str, Any]:
    """Return each system's row without what depends on who asked first."""
    rows = report_of([log_dir]).rows
    return {
        row.system: (row.accuracy, row.calls, row.tokens_in, row.tokens_out, row.usd_per_query)
        for row in rows
    }


def test_each_draw_is_bought_once_and_counts_for_every_system(
    log_dir: Path, tmp_path: Path
) -> None:
    apart = tmp_path / "apart"
    toy_pool(apart)
    assert toy_run(apart, **ASKED, fresh_draws=True).finished
    assert toy_run(log_dir, **ASKED).finished
    assert (len(calls(apart)), len(calls(log_dir))) == (APART, TOGETHER)
    assert would_be(log_dir) == would_be(apart)
    rows = rows_below(log_dir)
    assert sum(row.usd or 0 for row in rows) == CENT * TOGETHER
    assert sum(row.usd_list or 0 for row in rows) == CENT * APART
    shared = [row for row in rows if row.shared_from]
    buyers = {row.call: row for row in rows if not row.shared_from}
    assert len(shared) == APART - TOGETHER
    for row in shared:
        buyer = buyers[row.shared_from or ""]
        assert (row.from_store, row.cache, row.billable, row.usd) == (True, "read", "no", 0)
        assert row.system != buyer.system
        assert (row.question, row.role, row.output_sha256) == (
            buyer.question,
            buyer.role,
            buyer.output_sha256,
        )
    assert not failing(log_dir, strict=True)
    assert audit(log_dir).table.counts["shared"] == APART - TOGETHER
    assert not (log_dir / FOLDER).exists(), "the store of a finished run"


def test_a_table_says_whether_its_rows_share_draws(log_dir: Path, tmp_path: Path) -> None:
    toy_pool(tmp_path / "apart")
    toy_run(tmp_path / "apart", **ASKED, fresh_draws=True)
    toy_run(log_dir, **ASKED)
    caption = "draws shared: rows are paired, not independent"
    assert caption in " ".join(report_of([log_dir]).text.split())
    assert "draws shared" not in report_of([tmp_path / "apart"]).text


def test_a_query_shows_which_call_bought_a_draw(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy_run(log_dir, **ASKED)
    shared = next(row for row in rows_below(log_dir) if row.shared_from)
    assert main(["audit", str(log_dir), "--query", shared.question]) == 0
    assert f"shared: call {shared.shared_from} paid for it" in capsys.readouterr().out


def test_the_seconds_of_a_draw_count_for_every_system(log_dir: Path) -> None:
    Path(f"{log_dir}.slow").write_text("0.3")
    toy_run(log_dir, **{**ASKED, "systems": ("single:ada", "self-consistency@3")})
    runs, _ = load_runs([log_dir])
    paths = {
        (run.facts.system, attempt.question): attempt.critical_path_s or 0.0
        for run in runs
        if run.facts.purpose == "eval"
        for attempt in run.attempts
    }
    assert len(paths) == 4
    for (system, question), path in paths.items():
        rows = [row for row in rows_below(log_dir) if row.scope == "inference"]
        asked = [row for row in rows if (row.system, row.question) == (system, question)]
        slowest = max(row.latency_s or 0.0 for row in asked)
        assert 0.3 <= path < 2 * slowest, "no two draws are asked one after the other"


def test_a_system_that_is_added_while_a_run_goes_on_takes_what_is_there(log_dir: Path) -> None:
    alone: dict[str, Any] = {**ASKED, "systems": ("single:ada",)}
    Path(f"{log_dir}.broken").write_text("eval-1")
    assert not toy_run(log_dir, **alone).finished
    Path(f"{log_dir}.broken").unlink()
    before = len(calls(log_dir))
    assert toy_run(log_dir, **{**ASKED, "systems": SYSTEMS[:2]}).finished
    assert len(calls(log_dir)) - before == CHOSEN + 2 + 3, "of eval-0 one draw was there"
    assert not failing(log_dir)


def test_a_limit_counts_what_was_paid_and_one_of_a_question_what_it_would_have_cost(
    log_dir: Path,
) -> None:
    assert toy_run(log_dir, **ASKED, max_usd=CENT * TOGETHER).finished
    rows = report_of([log_dir]).rows
    assert all(row.n_graded == 2 for row in rows)


def test_who_asked_first_decides_nothing_about_a_question_of_which_the_limit_is_reached(
    log_dir: Path, tmp_path: Path
) -> None:
    verdicts: list[dict[str, int]] = []
    for folder, fresh in ((log_dir, False), (tmp_path / "apart", True)):
        toy_pool(folder, connections=1)
        limits = {"max_usd_per_query": CENT * 2, "fresh_draws": fresh}
        toy_run(folder, **ASKED, **limits)
        verdicts.append({row.system: row.n_graded for row in report_of([folder]).rows})
    assert verdicts[0] == verdicts[1]
    assert set(verdicts[0].values()) == {0, 2}


def test_what_teaches_is_never_what_is_examined(log_dir: Path) -> None:
    alone: dict[str, Any] = {"systems": ("single:ada",), "split": "train", "limit": 1}
    assert toy_run(log_dir, **alone).finished
    more: dict[str, Any] = {**alone, "systems": ("single:ada", "best-single"), "selection_limit": 1}
    toy_run(log_dir, **more)
    assert len([call for call in calls(log_dir) if call == "ada train-0"]) > 1


def test_a_run_of_before_goes_on_as_it_began(log_dir: Path) -> None:
    alone: dict[str, Any] = {**ASKED, "systems": ("single:ada",), "fresh_draws": True}
    toy_run(log_dir, **alone)
    assert "draws" not in json.loads((log_dir / "experiment.json").read_text())
    toy_run(log_dir, **ASKED)
    stored = read_experiment(log_dir)
    assert stored is not None
    assert stored.draws == FRESH
    assert len(calls(log_dir)) == APART


def test_a_run_that_shares_draws_is_not_gone_on_with_otherwise(log_dir: Path) -> None:
    toy_run(log_dir, **ASKED)
    stored = read_experiment(log_dir)
    assert stored is not None
    assert stored.draws == SHARED
    with pytest.raises(UserError, match="its systems share draws; leave --fresh-draws out"):
        toy_run(log_dir, **ASKED, fresh_draws=True)


def test_an_audit_names_a_draw_that_nobody_bought(log_dir: Path) -> None:
    toy_run(log_dir, **ASKED)

    def from_nobody(line: dict[str, Any]) -> dict[str, Any]:
        return {**line, "shared_from": "nobody"} if line.get("shared_from") else line

    edit_journal(log_dir, from_nobody)
    assert "no run here has call nobody, which paid for it" in said(audit(log_dir), "I8")


# --- who asks while another system waits for the reply ----------------------------------------


async def asked_by(task: str, log_dir: Path) -> Reply:
    model = get_model("toy/ada", memoize=False, notes=str(log_dir))
    journal = TaskJournal(log_dir, replace(HEAD, task=task), PaidReplies(log_dir), "toy")
    with recording(journal, "inference", SampleRef("q1", 1, task)):
        question = [ChatMessageUser(content="Question q1")]
        return await Pool({"ada": model}).ask("ada", question, "step")


def test_who_asks_second_takes_over_from_who_gives_up(log_dir: Path) -> None:
    slow = Path(f"{log_dir}.slow")
    slow.write_text("60")

    async def both() -> Reply:
        found: list[Reply] = []
        first = anyio.CancelScope()

        async def give_up() -> None:
            with first:
                await asked_by("one", log_dir)

        async def second() -> None:
            found.append(await asked_by("two", log_dir))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(give_up)
            while not calls(log_dir):
                await anyio.sleep(0.01)
            tasks.start_soon(second)
            await anyio.sleep(0.05)
            assert len(calls(log_dir)) == 1, "the second waits"
            slow.write_text("0")
            first.cancel()
        return found[0]

    assert anyio.run(both).text == "42"
    assert (len(calls(log_dir)), len(calls(log_dir, "end"))) == (2, 1)


# --- shards ------------------------------------------------------------------------------------


def test_a_shard_has_all_systems_of_its_questions() -> None:
    rows = [PlannedRow(f"s {name}", "s", 0, 10, cost) for name, cost in (("a", 1.0), ("b", 3.0))]
    rows.append(PlannedRow("t a", "t", 2, 6, 4.0))
    shards = cut_by_question(rows, 3)
    covered = Counter(
        (part.entry, at)
        for shard in shards
        for part in shard.parts
        for at in range(part.first, part.last)
    )
    assert covered == Counter((row.entry, at) for row in rows for at in range(row.first, row.last))
    for shard in shards:
        spans = {
            name: {(part.first, part.last) for part in shard.parts if part.entry == f"s {name}"}
            for name in "ab"
        }
        assert spans["a"] == spans["b"]
