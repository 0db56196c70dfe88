"""What a dry run says of the limits that it was given."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.run.estimate import Estimate, estimate_text, limit_warning, refuse_too_little
from tests.harness.run.test_estimate import asked, dry, limited_pool
from tests.harness.toy_run import toy_run


def test_a_limit_below_one_question_is_said_before_the_start(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    limited_pool(log_dir)
    found = dry(log_dir)
    small = asked(log_dir, max_usd=Decimal("0.001"))
    assert limit_warning(found, small) == (
        "one question of single:ada on toy may cost $0.0330 (its plan; no past call of ada), "
        "more than --max-usd 0.001 leaves. Raise the limit."
    )
    each = asked(log_dir, max_usd_per_query=Decimal("0.001"))
    assert "more than --max-usd-per-query 0.001" in limit_warning(found, each)
    assert limit_warning(found, asked(log_dir, max_usd=Decimal(1))) == ""


def test_a_table_that_is_too_wide_names_suites_once_and_bases_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    limited_pool(tmp_path / "run")
    (ada,) = dry(tmp_path / "run").lines
    names = [f"single:{name}-of-many" for name in ("ada", "bob")]
    lines = tuple(replace(ada, system=name, suite=suite) for suite in "ab" for name in names)
    text = estimate_text(Estimate(lines, (), Decimal(0), "live", "book")).splitlines()
    assert max(map(len, text)) <= 80
    assert [row.split()[0] for row in text[:8]] == ["system", "a", *names, "b", *names, "total"]
    assert text[8] == f"from its plan; no past call: {', '.join(names)}"
    monkeypatch.setenv("COLUMNS", "200")
    wide = estimate_text(Estimate(lines, (), Decimal(0), "live", "book")).splitlines()
    assert wide[1].endswith("its plan; no past call of ada")


def test_limits_that_may_stop_something_are_named_one_line_each(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    limited_pool(log_dir)
    blind = dry(log_dir)

    def said(found: Estimate, max_usd: str, each: str) -> list[str]:
        limits = {"max_usd": Decimal(max_usd), "max_usd_per_query": Decimal(each)}
        told = estimate_text(found, asked(log_dir, None, **limits)).splitlines()
        return told[len(estimate_text(found).splitlines()) :]

    assert said(blind, max_usd="1", each="1") == []
    assert said(blind, max_usd="0.05", each="0.03305") == [
        "--max-usd 0.05 may stop the run before the end: up to $0.3962 is possible.",
        "--max-usd-per-query 0.03305 may stop questions before the end: up to $0.0331 is possible "
        "(single:ada on toy).",
    ]
    toy_run(log_dir, limit=5)
    known = dry(log_dir, limit=12)
    assert said(known, max_usd="0.1", each="0.03305") == [
        "--max-usd 0.1 ($0.0500 of it is spent) is too little: $0.0700 is expected.",
        "--max-usd-per-query 0.03305 may stop questions before the end: up to $0.0331 is possible "
        "(single:ada on toy).",
    ]


def test_a_limit_below_every_first_call_is_refused_in_one_sentence(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    limited_pool(log_dir)
    found = dry(log_dir)
    with pytest.raises(UserError) as stop:
        refuse_too_little(found, asked(log_dir, max_usd=Decimal("0.03")))
    assert str(stop.value) == (
        "One call of 'ada' can cost $0.0330, more than --max-usd 0.03 allows: raise it, or set a "
        "smaller max_tokens for the worker."
    )
    with pytest.raises(UserError, match=r"more than --max-usd-per-query 0.03 allows"):
        refuse_too_little(found, asked(log_dir, max_usd_per_query=Decimal("0.03")))
    assert estimate_text(found, asked(log_dir, max_usd=Decimal("0.03"))).splitlines()[-1] == str(
        stop.value
    )
    refuse_too_little(found, asked(log_dir, max_usd=Decimal("0.0331")))


def test_what_a_dry_run_calls_enough_is_enough_for_a_limit(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    limited_pool(log_dir)
    most = dry(log_dir).most.usd
    assert most is not None
    assert toy_run(log_dir, max_usd=most).finished


def test_a_limit_below_a_first_call_asks_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--suite", "practice-integer", "--system", "moa-lite", "--pool", "rehearsal"]
    words += ["--limit", "2", "--log-dir", str(tmp_path / "run")]
    assert main([*words, "--max-usd", "0.001"]) == 2
    (said,) = capsys.readouterr().err.strip().splitlines()
    assert said.startswith("podium: One call of 'sage' can cost $0.0")
    assert "more than --max-usd 0.001 allows: raise it, or set a smaller max_tokens" in said
    assert not (tmp_path / "run").exists()
