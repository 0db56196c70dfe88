"""A run in shards is read as one, from logs or from the figures beside each shard's manifest."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from podium.harness.errors import UserError
from podium.harness.ledger.manifest import uncovered, write_manifest
from podium.harness.ledger.system_runs import load_runs, spent
from podium.harness.ledger.totals import SystemRun
from podium.harness.prices import book_from_json
from podium.harness.run.experiment import open_experiment, read_experiment
from podium.harness.shards.figures import read_figures_of
from podium.harness.shards.plan import (
    ENDED,
    FIGURES,
    Shard,
    ShardPart,
    ShardPlan,
    shard_dir,
    write_plan,
)
from podium.harness.shards.sharded_run import run_shard
from podium.reports.audit import audit
from podium.reports.audit.verify import verify
from podium.reports.blocks import ReportOptions
from podium.reports.render import usd
from podium.reports.report import report_of
from podium.reports.site.build import write_site
from tests.harness.toy_run import CONTROLS, toy_catalogue, toy_pool, toy_run
from tests.reports.audit.audited_run import said
from tests.reports.site.page_tables import tables_in

ENTRY = "toy single:ada"


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """Twelve questions in two shards; `run` beside it has them in one piece."""
    whole, log_dir = tmp_path / "run", tmp_path / "parent"
    pool = toy_pool(whole)
    toy_run(whole)
    experiment = read_experiment(whole)
    assert experiment is not None
    (row,) = experiment.entries
    cuts = ((0, 7), (7, 12))
    shards = tuple(
        Shard(f"{number:04d}", 1, (ShardPart(ENTRY, "toy", *cut),))
        for number, cut in enumerate(cuts, 1)
    )
    ids = tuple(f"eval-{number}" for number in range(12))
    plan = ShardPlan({"pool": str(pool)}, {"toy": ids}, shards)
    open_experiment(log_dir, experiment)
    write_plan(log_dir, plan)
    for shard in shards:
        own = replace(row, questions=plan.ids(shard.parts[0]))
        folder = shard_dir(log_dir, shard.name)
        open_experiment(folder, replace(experiment, entries=(own,)))
        assert run_shard(folder, toy_catalogue(), CONTROLS).finished
    write_manifest(log_dir)
    return log_dir


def figures(run: SystemRun) -> object:
    timeless = [
        replace(one, sample="", critical_path_s=None, overhead_s=None) for one in run.attempts
    ]
    return timeless, run.spend, run.paid, run.asked, run.epochs


def test_shards_are_one_run_with_the_figures_of_one_piece(parent: Path) -> None:
    ((one,), _), ((other,), _) = load_runs([parent]), load_runs([parent.parent / "run"])
    assert figures(one) == figures(other)
    assert load_runs([parent], recursive=False)[0] == (one,)


def test_the_figures_of_a_shard_are_those_of_its_logs_digit_by_digit(parent: Path) -> None:
    ((kept,), _), ((read,), _) = load_runs([parent]), load_runs([parent], deep=True)
    assert kept == read
    assert type(kept.attempts[0].totals.usd) is Decimal


def test_a_report_by_figures_is_that_of_the_logs_to_the_byte(parent: Path) -> None:
    kept, read = (report_of([parent], ReportOptions(deep=deep)).contents for deep in (False, True))
    for name in ("table.json", "table.md", "table.csv"):
        assert kept[name] == read[name]


def test_a_report_by_figures_opens_no_log(parent: Path) -> None:
    before = report_of([parent]).contents["table.json"]
    for log in parent.glob("shards/*/*.eval"):
        log.write_bytes(bytes(log.stat().st_size))
    assert report_of([parent]).contents["table.json"] == before
    with pytest.raises(UserError):
        report_of([parent], ReportOptions(deep=True))


def test_figures_of_another_manifest_are_not_used(parent: Path) -> None:
    folder = shard_dir(parent, "0001")
    logs = [*folder.glob("*.eval")]
    assert read_figures_of(folder, logs) is not None
    (folder / "MANIFEST.json").write_text("{}")
    assert read_figures_of(folder, logs) is None
    (folder / FIGURES).write_bytes(b"PAR1")
    assert len(load_runs([parent])[0][0].attempts) == 12


def test_a_parent_counts_what_its_shards_spent_to_them(parent: Path) -> None:
    (run,), _ = load_runs([parent])
    book = book_from_json(run.facts.prices)
    assert spent(parent, book) == 0
    assert spent(shard_dir(parent, "0001"), book) > 0


def test_the_manifest_of_a_parent_holds_and_tells_of_its_shards(parent: Path) -> None:
    assert verify(parent) == ()
    named = [name for name in uncovered(parent) if name.endswith((".parquet", "outcome.json"))]
    assert not named
    next(shard_dir(parent, "0002").glob("*.eval")).unlink()
    assert any(one.path.startswith("shards/0002/") for one in verify(parent))


def test_an_audit_finds_a_question_that_no_shard_or_that_two_shards_have(parent: Path) -> None:
    assert said(audit(parent), "I17").startswith("pass")
    path = parent / "shards.json"
    plan = json.loads(path.read_text())
    plan["shards"][1]["parts"][0]["first"] = 6
    path.write_text(json.dumps(plan))
    assert "are in two shards" in said(audit(parent), "I17")
    plan["shards"][1]["parts"][0]["first"] = 8
    path.write_text(json.dumps(plan))
    found = said(audit(parent), "I17")
    assert "are in none" in found
    assert "did not plan it in 0002" in found


def test_a_page_shows_how_far_each_shard_is(parent: Path) -> None:
    second = shard_dir(parent, "0002")
    (second / ENDED).unlink()
    site = write_site([parent], report_of([parent]), parent.parent / "site")
    page = (site.folder / "shards.html").read_text()
    (rows,) = tables_in(page).values()
    assert [row[:4] + row[5:] for row in rows[1:]] == [
        ["0001", ENTRY, "7", "7", "finished"],
        ["0002", ENTRY, "5", "5", "running or interrupted"],
    ]
    ((run,), _) = load_runs([parent])
    assert {row[4] for row in rows[1:]} == {usd(sum_of(run, 0, 7)), usd(sum_of(run, 7, 12))}
    assert 'href="shards.html"' in (site.folder / "index.html").read_text()


def sum_of(run: SystemRun, first: int, last: int) -> Decimal:
    ids = {f"eval-{number}" for number in range(first, last)}
    return sum(
        (one.totals.usd or Decimal(0) for one in run.attempts if one.question in ids), Decimal(0)
    )


def test_a_run_in_one_piece_has_no_such_page(parent: Path) -> None:
    whole = parent.parent / "run"
    site = write_site([whole], report_of([whole]), parent.parent / "site")
    assert not (site.folder / "shards.html").exists()
