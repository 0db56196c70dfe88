"""Fugu's orchestration tokens reach the ledger and the bill; what cannot be priced is refused."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from inspect_ai.model import GenerateConfig, ModelOutput, ModelUsage, get_model

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.prices import read_book
from podium.harness.records import Usage
from podium.harness.usage import PROVIDER_USAGE, usage_of_reply
from tests.benchmarks.fugu_example import both
from tests.harness.faulty_run import ONE_TRY, run_pool
from tests.providers import CLIENTS_WARN, Server, ok

pytestmark = CLIENTS_WARN

TOOK = Usage(input=212, output=522, orchestration_in=5463, orchestration_out=1053)
CACHED = Usage(
    input=120, output=80, cache_read=10, orchestration_in=900, orchestration_in_cached=300
)


def pond(folder: Path, model: str, more: str = "") -> Callable[[Server], str]:
    """Return how to write a pool of one worker, `koi`, at today's prices."""

    def write(server: Server) -> str:
        path = folder / "pond.toml"
        path.write_text(
            'label = "live"\nprices = "list-2026-11-21"\n'
            f'[[workers]]\nname = "koi"\nmodel = "{model}"\nconfig = {{ {ONE_TRY} }}\n'
            f'args = {{ base_url = "{server.openai}", api_key = "test"{more} }}\n'
        )
        return str(path)

    return write


def test_inspect_says_a_fifth_of_what_a_request_to_fugu_costs_and_we_say_all_of_it() -> None:
    theirs, ours = both()
    assert round(theirs, 6) == 0.01672
    assert ours == Decimal("0.075625")


@pytest.mark.parametrize("api", ["", ", responses_api = false"], ids=["responses", "chat"])
def test_orchestration_reaches_every_row_by_both_of_fugus_dialects(
    api: str, tmp_path: Path
) -> None:
    write = pond(tmp_path, "fugu/fugu-ultra-20260615", api)
    left = run_pool(tmp_path, [ok(usage=TOOK)], write, "single:koi")
    assert left.failing == set()
    row = left.row
    assert (row.input_uncached, row.output) == (212, 522)
    assert (row.orchestration_in, row.orchestration_out) == (5463, 1053)
    assert row.total_reported == 7250
    assert (row.usd_orchestration, row.usd) == (Decimal("0.058905"), Decimal("0.075625"))


def test_a_log_alone_is_enough_for_the_same_row(tmp_path: Path) -> None:
    write = pond(tmp_path, "fugu/fugu-ultra-20260615")
    left = run_pool(tmp_path, [ok(usage=CACHED)], write, "single:koi")
    for journal in left.folder.glob("ledger/*/*.jsonl"):
        journal.unlink()
    (row,) = left.read_again()
    assert row.journal is None
    assert (row.orchestration_in, row.orchestration_in_cached) == (900, 300)
    assert row.usd == left.row.usd
    assert row.usd == Decimal("0.006155")


def test_inspects_plain_provider_loses_nothing_in_our_ledger(tmp_path: Path) -> None:
    model = "openai-api/fugu/fugu-ultra-20260615"
    write = pond(tmp_path, model)

    def priced(server: Server) -> str:
        path = Path(write(server))
        priced = f'model = "{model}"\nprice = "fugu/fugu-ultra-20260615"'
        path.write_text(path.read_text().replace(f'model = "{model}"', priced))
        return str(path)

    left = run_pool(tmp_path, [ok(usage=TOOK)], priced, "single:koi")
    assert left.failing == set()
    assert left.row.usd == Decimal("0.075625")


def test_plain_fugu_has_no_price_by_the_token_and_is_refused_before_anything_is_spent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match=r"There is no .*run"):  # nothing was begun
        run_pool(tmp_path, [], pond(tmp_path, "fugu/fugu"), "single:koi")
    assert "has no price" in capsys.readouterr().err


def test_key_and_address_are_read_from_where_sakana_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUGU_API_KEY", "test-koi")
    monkeypatch.setenv("FUGU_BASE_URL", "http://127.0.0.1:9")
    api = get_model("fugu/fugu-ultra", memoize=False).api
    assert (api.api_key, api.base_url) == ("test-koi", "http://127.0.0.1:9/v1")


def test_a_reply_keeps_what_fugu_said_in_its_metadata() -> None:
    raw = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 10}
    raw |= {"output_tokens_details": {"orchestration_output_tokens": 7}}
    output = ModelOutput(
        usage=ModelUsage(input_tokens=1, output_tokens=2, total_tokens=10),
        metadata={PROVIDER_USAGE: raw},
    )
    told = Usage(1, 2, orchestration_out=7, total_reported=10)
    assert usage_of_reply(output) == told
    assert told.parts_total == told.total_reported


@pytest.mark.slow
@pytest.mark.parametrize("model", ["fugu-ultra-v2.0", "fugu-ultra", "fugu-max-v1.0"])
def test_an_effort_that_it_would_refuse_is_refused_before_anything_is_spent(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "low.toml"
    pool = 'label = "live"\nprices = "list-2026-11-27"\n[[workers]]\nname = "koi"\n'
    pool += f'model = "fugu/{model}"\nargs = {{ api_key = "test" }}\n'
    path.write_text(pool + 'config = { reasoning_effort = "medium" }\n')
    assert main(["doctor", "--pool", str(path)]) == 1
    said = capsys.readouterr().out
    assert f"{model} takes the reasoning efforts high, xhigh, max, not medium: set" in said
    path.write_text(pool + 'config = { reasoning_effort = "xhigh" }\n')
    assert main(["doctor", "--pool", str(path)]) == 0


def test_an_older_fugu_takes_any_effort_and_max_is_priced_flat() -> None:
    low = GenerateConfig(reasoning_effort="low")
    get_model("fugu/fugu-ultra-20260615", config=low, api_key="test", memoize=False)
    book = read_book("list-2026-11-27").prices
    assert (book["fugu/fugu-max-v1.0"].tiers, len(book["fugu/fugu-ultra-v2.0"].tiers)) == ((), 1)
