"""A system behind an endpoint sits the exam as one worker; what nothing tells has no dollars."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.pool_config import POOLS, read_pool
from podium.harness.prices import read_book
from podium.harness.records import Usage
from podium.harness.run.preflight import problems
from tests.harness.faulty_run import ONE_TRY, Left, run_pool
from tests.providers import CLIENTS_WARN, Act, Server

pytestmark = CLIENTS_WARN

WHY = "its tokens are not reported"
TOOK = Usage(input=100, output=40)


def hidden(folder: Path) -> Callable[[Server], str]:
    """Return how to write a pool of one system that calls other models and does not tell."""

    def write(server: Server) -> str:
        path = folder / "hidden.toml"
        path.write_text(
            'label = "live"\nprices = "list-2026-11-21"\n[[workers]]\nname = "auto"\n'
            f'model = "openai-api/any/auto"\nconfig = {{ {ONE_TRY} }}\nnot_auditable = "{WHY}"\n'
            f'args = {{ base_url = "{server.openai}", api_key = "test" }}\n'
        )
        return str(path)

    return write


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    folder = tmp_path_factory.mktemp("endpoint")
    act = Act(usage=TOOK, served="gpt-5-mini-2026-08-07")
    return run_pool(folder, [act], hidden(folder), "single:auto")


def test_its_tokens_and_the_model_that_answered_are_kept_and_it_has_no_dollars(left: Left) -> None:
    row = left.row
    assert (row.input_uncached, row.output, row.usd, row.usd_list) == (100, 40, None, None)
    assert row.served_model == "gpt-5-mini-2026-08-07"
    assert row.price_ref == "not-auditable/openai-api/any/auto"


def test_an_audit_names_it_as_weak_and_fails_nothing(left: Left) -> None:
    assert left.failing == set()
    assert left.reasons("I6") == {f"calls of auto, not auditable: {WHY}": 1}


def test_tables_say_not_auditable_instead_of_dollars(left: Left) -> None:
    main(["report", str(left.folder)])
    (row,) = csv.DictReader((left.folder / "report" / "table.csv").read_text().splitlines())
    assert (row["auditable"], row["usd_per_query"], row["usd_paid_high"]) == ("False", "", "")
    assert f"not auditable: auto ({WHY})" in row["notes"]
    assert "| not auditable |" in (left.folder / "report" / "table.md").read_text()


def test_a_price_beside_it_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "both.toml"
    path.write_text(
        'label = "live"\nprices = "none"\n[[workers]]\nname = "auto"\nmodel = "openrouter/auto/x"\n'
        f'price = "fugu/fugu-ultra"\nnot_auditable = "{WHY}"\n'
    )
    with pytest.raises(
        UserError, match=r"line 6, .*price.*a worker with not_auditable must not have"
    ):
        read_pool(str(path))


def test_the_shipped_pool_says_which_key_or_server_each_system_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (
        "FUGU_API_KEY",
        "OPENROUTER_API_KEY",
        "VLLM_SR_API_KEY",
        "XROUTER_API_KEY",
        "VLLM_BASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    spec = read_pool("endpoints")
    found = problems(spec, read_book(spec.prices))
    keys = [
        *["FUGU_API_KEY"] * 4,
        *["OPENROUTER_API_KEY"] * 2,
        "VLLM_SR_API_KEY",
        "XROUTER_API_KEY",
        "VLLM_BASE_URL",
    ]
    assert len(found) == len(keys)
    for said, key, name in zip(found, keys, spec.names, strict=True):
        assert key in said
        assert repr(name) in said
    assert (POOLS / "endpoints.toml").is_file()


def test_only_fugu_ultra_and_max_report_all_that_their_prices_need() -> None:
    spec = read_pool("endpoints")
    told = [one for one in spec.workers if not one.not_auditable]
    assert [one.name for one in told] == ["fugu-ultra", "fugu-ultra-v2", "fugu-max"]
    assert {one.price_ref for one in told} <= read_book(spec.prices).prices.keys()
    assert all(one.card for one in spec.workers)
