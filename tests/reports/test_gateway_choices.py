"""Whom a gateway asked, and its own dollars: LiteLLM's proxy itself, and others imitated.

Our server imitates a gateway as OpenRouter is: a reply names the model that answered and a cost.
"""

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.cli.list_commands import whole_catalogue
from podium.harness.ledger.answered_by import answering_price
from podium.harness.prices import Book
from podium.harness.prices.cost import Price
from tests.benchmarks.serve_speed import litellm_proxy
from tests.harness.faulty_run import ONE_TRY, Left, run_pool
from tests.harness.upstream_run import TOOK
from tests.providers import CLIENTS_WARN, Act, Server
from tests.providers.dialect import Asked

pytestmark = CLIENTS_WARN

SUITE = whole_catalogue().suites["practice-integer"]
QUESTIONS = [*SUITE.load("eval")[:8], *SUITE.load("train")]
MINI, DATED = "gpt-5-mini", "gpt-5-2026-08-07"
PRICES = {
    MINI: "price = { input = 0.25, output = 2 }",
    "gpt-5": "price = { input = 1.25, output = 10 }",
    "auto": 'not_auditable = "it chooses the model"',
}
SENT_TO = [MINI] * 4 + [DATED] * 2 + ["unlisted", "auto"]
"""By question, what the imitated gateway names; the last repeats the name that was asked for."""
STATED = {MINI: 0.0000825, DATED: 0.000825, "unlisted": 0.5}
"""Dollars: the price of 90 tokens in and 30 out, and twice that."""
WORKER = """\
[[workers]]
name = "{name}"
model = "openai-api/local/{name}"
config = {{ {tries} }}
args = {{ base_url = "{url}", api_key = "test", default_headers = {{ Connection = "close" }} }}
{price}
"""
TIERS = {"SIMPLE": MINI, "MEDIUM": "gpt-5", "COMPLEX": "gpt-5"}
"""Of LiteLLM's complexity router, which asks no model."""


def act_of(asked: Asked) -> Act:
    """Answer as a model, or as a gateway; the small model knows every other question."""
    at = next(at for at, question in enumerate(QUESTIONS) if question.text in asked.prompt)
    answering = SENT_TO[at % 8] if asked.model == "auto" else asked.model
    right = at != 5 and (answering != MINI or at % 2 == 0)

    def change(body: dict[str, Any]) -> object:
        body["usage"] |= {"cost": STATED.get(answering)} if asked.model == "auto" else {}
        return body

    text = f"ANSWER: {QUESTIONS[at].target if right else -1}"
    return Act(text=text, usage=TOOK, served=answering, change=change)


def ask(folder: Path, gateway: Callable[[Server], str]) -> Left:
    """Put eight questions to a gateway, and to both models behind it alone."""

    def pool(server: Server) -> str:
        urls = {"auto": gateway(server)}
        rows = [
            WORKER.format(name=name, url=urls.get(name, server.openai), tries=ONE_TRY, price=price)
            for name, price in PRICES.items()
        ]
        path = folder / "pool.toml"
        path.write_text("\n".join(('label = "live"\nprices = "list-2026-11-27"', *rows)))
        return str(path)

    alone = f"--system single:{MINI} --system single:gpt-5 --system best-single --train-calls 24"
    return run_pool(folder, act_of, pool, "single:auto", 8, *alone.split())


def tables(left: Left) -> list[dict[str, Any]]:
    """Return the tables of its choices, as table.json has them."""
    assert main(["report", str(left.folder), "--choices"]) == 0
    return json.loads((left.folder / "report" / "table.json").read_text())["choices"]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    return ask(tmp_path_factory.mktemp("gateway"), lambda server: server.openai)


@pytest.mark.slow
def test_each_model_has_its_price_its_dollars_and_how_often_it_was_right(left: Left) -> None:
    chosen, rivals = tables(left)
    assert [line[:3] + line[4:7] for line in chosen["lines"][1:]] == [
        [MINI, "4", "50.0", f"0.25 / 2 (openai-api/local/{MINI})", "0.000330", "0.000330"],
        [DATED, "2", "50.0", "1.25 / 10 (openai-api/local/gpt-5)", "0.000825", "0.00165"],
        ["no name", "1", "100.0", "no price", "-", "-"],
        ["unlisted", "1", "100.0", "no price", "-", "0.500"],
    ]
    assert [note.split(":")[0] for note in chosen["notes"]] == ["no name", "unlisted"]
    assert [line[:3] for line in rivals["lines"][1:]] == [
        ["best-single (gpt-5)", "87.5", "-25.0"],
        ["single:gpt-5, in hindsight", "87.5", "-25.0"],
        ["oracle-router* of 2 workers", "87.5", "-25.0"],
    ]
    assert "do not include it: unlisted." in rivals["notes"][0]
    assert "## Whom single:auto asked" in (left.folder / "report" / "table.md").read_text()


def test_an_audit_compares_its_dollars_with_the_price_of_the_model_named(left: Left) -> None:
    reasons = [reason for reason in left.reasons("I5") if "answered by" in reason]
    assert [reason.split(": ")[0] for reason in reasons] == [
        f"calls of auto answered by {DATED}",
        "calls of auto answered by unlisted whose provider states dollars that cannot be compared",
    ]
    assert "states $0.00165, the price book $0.000825 (+$0.000825, +100.0%)" in reasons[0]
    assert left.failing == set()


def test_logs_without_a_gateway_are_refused(
    left: Left, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (path,) = left.folder.glob("*single-gpt-5_*.eval")
    assert main(["report", str(path), "--choices", "--out", str(tmp_path / "out")]) == 2
    assert "No worker in these logs is a gateway" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("served", "known"),
    [
        ("gpt-5", "book 'mine' has several prices (a/gpt-5, b/gpt-5) for it"),
        ("b/gpt-5", "b/gpt-5"),
        ("qwen-2025-01-02", "a/qwen-2025-01-02"),
        ("qwen", "book 'mine' has no price for it"),
        ("llama-2025-01-02", "a/llama"),
        ("auto", "the reply does not name its model, so its price is unknown"),
        (None, "the reply does not name its model, so its price is unknown"),
    ],
)
def test_a_price_is_that_of_the_name_or_none(left: Left, served: str | None, known: str) -> None:
    names = ("a/gpt-5", "b/gpt-5", "a/qwen:free", "a/qwen-2025-01-02", "a/llama")
    prices = {name: Price(Decimal(1), Decimal(at)) for at, name in enumerate(names)}
    call = replace(left.of("auto")[0], served_model=served)
    key, price = answering_price(call, {}, Book("mine", "undated", "", prices, ""))
    assert (key.split("; add a worker with that model and its price")[0], price) == (
        known,
        prices.get(known),
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("PODIUM_FRAMEWORKS"),
    reason="installs LiteLLM's proxy in an environment of its own: PODIUM_FRAMEWORKS=1 runs it",
)
def test_litellms_proxy_names_its_choices_in_a_header_and_states_the_books_dollars(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:

        def proxy(server: Server) -> str:
            params = {"api_base": server.openai, "api_key": "stub"}
            groups: dict[str, dict[str, Any]] = {
                name: {"model": f"openai/{name}", **params} for name in (MINI, "gpt-5")
            }
            router = {"model": "auto_router/complexity_router"}
            groups["auto"] = {**router, "complexity_router_config": {"tiers": TIERS}}
            models = [{"model_name": name, "litellm_params": groups[name]} for name in groups]
            url, _ = stack.enter_context(litellm_proxy(tmp_path, tmp_path / "litellm", models))
            return f"{url}/v1"

        left = ask(tmp_path, proxy)
    chosen, _ = tables(left)
    assert [line[:2] + line[5:7] for line in chosen["lines"][1:]] == [
        [f"openai/{MINI}", "7", "0.000578", "0.000578"],
        ["openai/gpt-5", "1", "0.000412", "0.000412"],
    ]
    assert left.failing == set()
    assert not any("states" in reason for reason in left.reasons("I5"))
