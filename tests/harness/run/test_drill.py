"""`podium doctor --drill`: what only providers can say, heard from a local one in all dialects."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from podium.harness.run.drill import drill, drill_total, fit_for_drill
from tests.providers import (
    CLIENTS_WARN,
    Act,
    Server,
    dropping,
    failing,
    rate_limited,
    serve,
    stalling,
    unreported,
    write_pool,
    wrong_total,
)
from tests.providers.paper_pool import key, write_paper_pool

pytestmark = CLIENTS_WARN
ENDED = "claude-sonnet-4-20250514"


def refusing(message: str, status: int = 400) -> Act:
    """Refuse a request in the words of a provider, in OpenAI's shape."""
    error = {"error": {"message": message, "type": "invalid_request_error", "code": None}}
    return Act(status=status, change=lambda body: error)


FATES = {
    ENDED: [failing(404)],
    "gpt-5-2025-08-07": [refusing("'reasoning_effort' does not support 'minimal'")],
    "deepseek/deepseek-r1-distill-qwen-32b": [Act(status=401, echoes=True)],
    "google/gemma-3-27b-it": [unreported()],
    "gemini-2.5-pro": [wrong_total()],
    "qwen/qwen-2.5-7b-instruct": [refusing("qwen-2.5-7b is not a valid model ID")],
}


def test_a_drill_of_the_papers_pool_names_what_is_wrong_with_each_worker_and_what_it_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(FATES) as server:
        pool = write_paper_pool(tmp_path, server)
        text = Path(pool).read_text().replace("claude-sonnet-4-6", ENDED)  # as its copies have it
        Path(pool).write_text(text.replace("list-2026-11-30", "list-2026-11-21"))
        assert main(["doctor", "--pool", pool, "--drill", "--yes"]) == 1
    said = capsys.readouterr()
    assert "A drill sends one question to 8 models: at most $0.00" in said.err
    found = said.out.splitlines()
    (facts,) = [line for line in found if line.startswith("Drill: ")]
    assert facts.startswith("Drill: 8 models asked once, $0.0000")
    assert facts.endswith("spent; unknown cost: gemma-3-27b (at most $0.000027).")
    for worker, why in {
        "claude-sonnet-4.6": "its id ended on 2026-06-15; name another model. (Error code: 404",
        "gpt-5": "rejects its reasoning settings (reasoning_effort = minimal). Change them",
        "r1-distill-qwen-32b": "rejects the API key. Set a valid key.",
        "gemma-3-27b": "reports no readable token usage",
        "conductor": "its id is unknown to its provider, or ended; name another model.",
    }.items():
        (line,) = [one for one in found if one.startswith(f"- Worker '{worker}' ")]
        assert why in line
    assert key("r1-distill") not in said.out
    assert (
        "- note: gemini-2.5-pro reports a total of 13 tokens, but the parts add up to 6" in said.out
    )
    assert found[-1] == "Pool 'paper-constrained' (live): 5 to fix."
    asked = [line.model for line in server.bill.lines]
    assert len(asked) == 8
    assert asked.count("qwen/qwen3-32b") == 2
    assert all("Say OK." in line.prompt for line in server.bill.lines)
    assert [one.name for one in tmp_path.iterdir()] == ["paper-constrained.toml"]  # no run


def test_a_pool_that_answers_is_ready_and_costs_what_its_usage_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve() as server:
        pool = write_pool(tmp_path, server)
        assert main(["doctor", "--pool", pool, "--drill", "--yes"]) == 0
    spec = read_pool(pool)
    prices = read_book(spec.prices).prices
    spent = sum(
        (line.usage.input * price.input + line.usage.output * price.output) / 1_000_000
        for line in server.bill.lines
        for price in [prices[next(one for one in prices if one.endswith(f"/{line.model}"))]]
    )
    said = capsys.readouterr().out
    assert f"Drill: 3 models asked once, ${spent:.6f} spent.\n" in said
    assert said.endswith("Pool 'pool' (live): ready.\n")


def unanswered(server: Server, folder: Path, act: str) -> str:
    spec = read_pool(write_pool(folder, server))
    spec = spec.model_copy(update={"workers": spec.workers[:1]})
    book = read_book(spec.prices)
    (found,) = drilled = drill(
        spec, book, fit_for_drill(spec, book), patience_s=0.5 if act == "stalled" else 20
    )
    assert found.at_most is not None
    assert (found.usd is None) == (act in ("stalled", "dropped"))
    open_ = f"; unknown cost: olive (at most ${found.at_most:.6f})." if found.usd is None else "."
    assert drill_total(drilled) == f"Drill: 1 model asked once, $0.000000 spent{open_}"
    return found.problems[0]


FAILURES = {
    "stalled": (stalling(), "did not answer in 0.5 seconds. Try again"),
    "dropped": (dropping(), "failed. Read the provider's message."),
    "quota": (rate_limited(), "is over its rate limit or quota"),
    "region": (failing(403), "rejects this key or this region"),
    "credit": (failing(402), "has no credit left"),
    "order": (failing(503), "fails with status 503"),
    "settings": (refusing("temperature is not supported"), "rejects its settings. Change them"),
}


@pytest.mark.parametrize(("act", "why"), FAILURES.values(), ids=FAILURES)
def test_each_failure_has_its_fix_and_only_silence_may_have_cost(
    act: Act, why: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with serve([replace(act, retry_after=None)] * 3) as server:
        said = unanswered(server, tmp_path, request.node.callspec.id)
        assert why in said
        assert len(server.bill.lines) == 1
    assert said.startswith("Worker 'olive' (openai/gpt-5-mini) ")


def test_without_a_terminal_and_without_yes_nobody_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve() as server, Path(os.devnull).open() as nobody:
        words = ["doctor", "--pool", write_pool(tmp_path, server), "--drill"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", nobody)
            assert main(words) == 2
        assert not server.bill.lines
    assert "there is no terminal to ask. Add --yes." in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "calls"), [("y", 3), ("n", 0), ("", 0)])
def test_a_terminal_is_shown_the_price_and_asked(
    typed: str, calls: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user, terminal = os.openpty()
    os.write(user, f"{typed}\n".encode())
    with serve() as server, os.fdopen(terminal) as stdin:
        words = ["doctor", "--pool", write_pool(tmp_path, server), "--drill"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", stdin)
            assert main(words) == 0
        assert len(server.bill.lines) == calls
    os.close(user)
    said = capsys.readouterr()
    assert said.err.index("at most $") < said.err.index("Call these models? [y/N]")
    assert ("no model was called" in said.out) == (not calls)


REFUSED = {
    "rehearsal": (["--pool", "rehearsal", "--drill", "--yes"], "is labelled 'rehearsal'. Name a"),
    "yes": (["--pool", "rehearsal", "--yes"], "add --drill, or leave --yes out"),
    "keys": (["--pool", "openrouter", "--drill", "--yes"], "No worker of pool 'openrouter' can"),
}


@pytest.mark.parametrize(("words", "why"), REFUSED.values(), ids=REFUSED)
def test_a_drill_that_cannot_be_is_refused(
    words: list[str],
    why: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    assert main(["doctor", *words]) == 2
    assert why in capsys.readouterr().err
