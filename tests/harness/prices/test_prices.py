"""A price book says all that a price has, and every mistake in one is named with its place."""

import json
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.pool_config import POOLS, read_pool
from podium.harness.prices import BOOKS, Book, book_from_json, parse_book, read_book
from podium.harness.prices.book import book_text, launch_day, price_on_record
from podium.harness.prices.cost import Gpu, Price, Rates, Service, Tier
from podium.harness.prices.snapshot import changes, show_book, show_books
from podium.harness.run.preflight import problems

HEAD = 'date = "2026-01-02"\nsource = "made up for tests"\n'
GOOD = '[usd_per_mtok."acme/sage"]\ninput = "1"\noutput = "2"\n'
FULL = Price(
    input=Decimal("1.10"),
    output=Decimal("10"),
    cache_read=Decimal("0.1"),
    cache_write=Decimal("1.25"),
    cache_write_1h=Decimal("2"),
    reasoning=Decimal("5"),
    orchestration_in=Decimal("1"),
    orchestration_in_cached=Decimal("0.5"),
    orchestration_out=Decimal("9"),
    tiers=(
        Tier(100, Rates(Decimal("2"), Decimal("20"))),
        Tier(200, Rates(Decimal("3"), Decimal("30"), Decimal("0.3"))),
    ),
    request=Decimal("0.0001"),
    services={"batch": Decimal("0.5"), "flex": Decimal("0.5"), "priority": Decimal("2")},
    full_rate={"batch": ("cache_read", "cache_write")},
    gpu=Gpu("H100 80GB", 2, Decimal("2.49"), Decimal("1234.5"), "measured for this test"),
    evidence="carried-back",
    launched="2025-12-31",
    source="a page",
)


def written(folder: Path, text: str) -> Path:
    path = folder / "book.toml"
    path.write_text(text)
    return path


def test_a_book_keeps_all_that_a_price_has_through_a_log() -> None:
    book = Book("full", "2026-01-02", "tests", {"acme/sage": FULL}, "a" * 64, "2026-01-03")
    embedded = json.loads(json.dumps(book.as_json()))
    assert book_from_json(embedded) == book


def test_a_book_file_says_all_that_a_price_has(tmp_path: Path) -> None:
    text = HEAD + (
        '[usd_per_mtok."acme/sage"]\ninput = "1.10"\noutput = 10\ncache_read = "0.1"\n'
        'cache_write = "1.25"\ncache_write_1h = "2"\nreasoning = "5"\norchestration_in = "1"\n'
        'orchestration_in_cached = "0.5"\norchestration_out = "9"\nrequest = "0.0001"\n'
        'services = { batch = "0.5", flex = "0.5", priority = "2" }\n'
        'full_rate = { batch = ["cache_read", "cache_write"] }\n'
        'evidence = "carried-back"\nlaunched = 2025-12-31\nsource = "a page"\n'
        '[[usd_per_mtok."acme/sage".tiers]]\nabove = 100\ninput = "2"\noutput = "20"\n'
        '[[usd_per_mtok."acme/sage".tiers]]\nabove = 200\ninput = "3"\noutput = "30"\n'
        'cache_read = "0.3"\n'
        '[usd_per_mtok."acme/sage".gpu]\ntype = "H100 80GB"\ncount = 2\nusd_per_hour = "2.49"\n'
        'tokens_per_s = "1234.5"\nsource = "measured for this test"\n'
    )
    assert read_book(str(written(tmp_path, text))).prices == {"acme/sage": FULL}


RATE = st.decimals(0, 999_999, places=12, allow_nan=False)
MAYBE = st.none() | RATE
OPEN = st.builds(Rates, RATE, RATE, *[MAYBE] * 7)


@given(
    base=OPEN,
    bounds=st.sets(st.integers(1, 10**7), max_size=3),
    above=OPEN,
    fee=RATE,
    factors=st.dictionaries(st.sampled_from(["batch", "flex", "priority"]), RATE),
)
def test_any_price_survives_a_log_and_a_file(
    base: Rates, bounds: set[int], above: Rates, fee: Decimal, factors: dict[Service, Decimal]
) -> None:
    tiers = tuple(Tier(bound, above) for bound in sorted(bounds))
    kept: dict[Service, tuple[str, ...]] = dict.fromkeys(factors, ("input", "cache_read"))
    price = Price(**asdict(base), tiers=tiers, request=fee, services=factors, full_rate=kept)
    book = Book("any", "2026-01-02", "tests", {"acme/sage": price}, "")
    assert book_from_json(json.loads(json.dumps(book.as_json()))) == book
    assert parse_book(book_text(book).encode(), Path("any.toml")).prices == book.prices


def test_a_book_without_a_price_is_written_as_one() -> None:
    none = read_book("none")
    again = parse_book(book_text(none).encode(), Path("none.toml"))
    assert (again.prices, again.source) == ({}, none.source)


def test_a_log_that_is_older_than_the_question_does_not_say_what_evidence_there_is() -> None:
    row = {"input": "2", "output": "10", "cache_read": None, "cache_write": "0.5"}
    old = {"name": "b", "date": "d", "source": "s", "sha256": "0", "usd_per_mtok": {"a/b": row}}
    price = book_from_json(old).prices["a/b"]
    assert price == Price(Decimal("2"), Decimal("10"), cache_write=Decimal("0.5"), evidence="")
    again = book_from_json(book_from_json(old).as_json()).prices["a/b"]
    assert again.evidence == ""


def test_an_entry_of_a_file_is_of_the_files_day_where_it_does_not_say(tmp_path: Path) -> None:
    book = read_book(str(written(tmp_path, HEAD + GOOD)))
    assert book.prices["acme/sage"].evidence == "dated"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("reasoning = 0.1", 'quote it, reasoning = "0.1"', id="bare-float"),
        pytest.param('reasoning = "-1"', "reasoning must be a number from 0 up", id="negative"),
        pytest.param('reasoning = "1e6"', "below 1000000", id="too-dear"),
        pytest.param('reasoning = "1e-13"', "at most 12 decimals", id="too-fine"),
        pytest.param('request = "NaN"', "request must be a number from 0 up", id="nan"),
        pytest.param("reasoning = true", "reasoning must be a number from 0 up", id="truth"),
        pytest.param('thinking = "1"', "unknown rate 'thinking'", id="unknown-rate"),
        pytest.param('services = { night = "1" }', "unknown service 'night'", id="service"),
        pytest.param('services = { batch = "x" }', "services.batch must be", id="factor"),
        pytest.param('full_rate = { batch = ["input"] }', "no factor in services", id="no-factor"),
        pytest.param(
            'services = { batch = "1" }\nfull_rate = { batch = ["inptu"] }',
            "unknown rate 'inptu'", id="kept-rate",
        ),
        pytest.param('tiers = "long"', "tiers must be a list", id="tiers-no-list"),
        pytest.param('tiers = [{ above = 5, input = "1" }]', "no output rate", id="tier-rate"),
        pytest.param(
            'tiers = [{ above = "5", input = "1", output = "1" }]', "whole number", id="tier-above"
        ),
        pytest.param(
            'tiers = [{ above = 5, input = "1", output = "1" }, '
            '{ above = 5, input = "1", output = "1" }]',
            "tiers must grow", id="tiers-not-growing",
        ),
        pytest.param(
            'gpu = { type = "H100", count = 1, usd_per_hour = "2", source = "s" }',
            "gpu has no tokens_per_s", id="gpu-without-throughput",
        ),
        pytest.param(
            'gpu = { type = "H", count = 1, usd_per_hour = "2", tokens_per_s = "0", source = "s" }',
            "number above 0", id="gpu-that-stands-still",
        ),
        pytest.param('gpu = { watts = 3 }', "unknown field 'watts' in gpu", id="gpu-field"),
        pytest.param('evidence = "rumour"', "evidence must be", id="evidence"),
        pytest.param('launched = "soon"', "launched must be a day", id="launch"),
        pytest.param('launched = "2026-01-03"', "it was launched on 2026-01-03",
                     id="before-launch"),
    ],
)  # fmt: skip
def test_a_mistake_is_answered_in_one_sentence_with_file_and_entry(
    tmp_path: Path, line: str, said: str
) -> None:
    path = written(tmp_path, HEAD + GOOD + line + "\n")
    with pytest.raises(UserError) as caught:
        read_book(str(path))
    sentence = str(caught.value)
    assert said in sentence
    assert "book.toml" in sentence
    assert "'acme/sage'" in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(HEAD.replace("2026-01-02", "soon") + GOOD, "must be a day", id="date"),
        pytest.param('retrieved = "soon"\n' + HEAD + GOOD, "retrieved must be a day", id="asked"),
        pytest.param(HEAD + 'currency = "EUR"\n' + GOOD, "unknown field 'currency'", id="field"),
        pytest.param(HEAD + '[usd_per_mtok.sage]\ninput = "1"\noutput = "1"\n',
                     "names no provider", id="no-provider"),
    ],
)  # fmt: skip
def test_a_mistake_of_a_whole_book_is_answered_with_its_file(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(UserError, match=f"book.toml is malformed: .*{said}"):
        read_book(str(written(tmp_path, text)))


def test_a_book_from_before_a_launch_on_record_is_refused(tmp_path: Path) -> None:
    text = HEAD.replace("2026-01-02", "2024-01-01") + GOOD.replace("acme/sage", "openai/gpt-5")
    with pytest.raises(
        UserError, match=r"'openai/gpt-5': it was launched on 2025-08-07, after .*2024-01-01"
    ):
        read_book(str(written(tmp_path, text)))


def test_an_undated_book_and_practice_prices_know_no_launch(tmp_path: Path) -> None:
    launched = 'launched = "2026-06-01"\n'
    practice = GOOD.replace("acme/", "rehearsal/") + launched
    assert read_book(str(written(tmp_path, HEAD + practice))).prices
    undated = HEAD.replace("2026-01-02", "undated") + GOOD + launched
    assert read_book(str(written(tmp_path, undated))).prices


@pytest.mark.parametrize("name", sorted(path.stem for path in POOLS.glob("*.toml")))
def test_every_worker_of_every_pool_has_a_price_or_a_stated_lack_of_one(name: str) -> None:
    spec = read_pool(name)
    book = spec.book()
    missing = [slot.name for slot in spec.slots if slot.price_ref not in book.prices]
    if book.name == "none":
        assert spec.label == "recorded"
        assert missing == [slot.name for slot in spec.slots]
    else:
        assert missing == [slot.name for slot in spec.slots if slot.not_auditable]


def test_live_workers_are_priced_on_the_papers_day_and_what_is_carried_back_says_so() -> None:
    book = read_book("paper-2025-12-04")
    # What came later has no price of that day.
    names = {path.stem for path in POOLS.glob("*.toml")}
    names -= {"endpoints", "openrouter-fusion", "local"}  # the last one states its own prices
    live = (spec for spec in map(read_pool, names) if spec.label == "live")
    asked = {slot.price_ref for spec in live for slot in spec.slots}
    replaced = {"anthropic/claude-sonnet-4-20250514", "anthropic/claude-sonnet-4-6"}
    assert asked ^ set(book.prices) == replaced  # the first has ended
    carried = [ref for ref, price in book.prices.items() if price.evidence == "carried-back"]
    assert carried == ["openrouter/qwen/qwen3-32b"]


def test_a_worker_whose_service_has_no_factor_is_found_before_anything_is_spent(
    tmp_path: Path,
) -> None:
    pool = tmp_path / "mine.toml"
    text = (
        'label = "live"\nprices = "list-2026-11-21"\n[[workers]]\nname = "a"\n'
        'model = "vllm/acme/sage"\nprice = "openrouter/qwen/qwen3-32b"\n'
        'args = { service_tier = "flex", base_url = "http://localhost:9" }\n'
    )
    pool.write_text(text)
    spec = read_pool(str(pool))
    found = [said for said in problems(spec, read_book(spec.prices)) if "uses service" in said]
    assert len(found) == 1
    assert "'flex'" in found[0]
    assert "no factor" in found[0]


def test_plain_fugu_has_no_price_in_any_book() -> None:
    books = [read_book(path.stem) for path in BOOKS.glob("*.toml")]
    assert all("fugu/fugu" not in book.prices for book in books)
    assert any("fugu/fugu-ultra" in book.prices for book in books)


def test_a_price_on_record_holds_until_its_source_said_otherwise() -> None:
    model = "openrouter/qwen/qwen-2.5-7b-instruct"
    days = (date(2025, 6, 21), date(2025, 12, 4), date(2026, 6, 14), date(2026, 6, 15))
    found = [price_on_record(model, day) for day in days]
    assert [row and row[0].input for row in found] == [
        None,
        Decimal("0.05"),
        Decimal("0.05"),
        Decimal("0.04"),
    ]
    assert launch_day("nobody/knows") == ""


def test_what_two_books_state_otherwise_is_named_once() -> None:
    old = Book("a", "2026-01-01", "s", {"m/x": Price(Decimal("1"), Decimal("2")), "m/y": FULL}, "")
    new = Book(
        "b", "2026-01-02", "s", {"m/x": Price(Decimal("1.00"), Decimal("3")), "m/z": FULL}, ""
    )
    found = [(one.model, one.field, one.old, one.new) for one in changes(old, new)]
    assert found == [
        ("m/x", "output", "2.00", "3.00"),
        ("m/y", "entry", "1.10 in, 10.00 out", "—"),
        ("m/z", "entry", "—", "1.10 in, 10.00 out"),
    ]
    assert changes(old, old) == ()


def test_the_tables_fit_a_terminal_of_100_columns() -> None:
    books = [read_book(path.stem) for path in BOOKS.glob("*.toml")]
    few = [book for book in books if len(book.prices) <= 100]  # a list of today has longer names
    texts = [show_books()[1], *(show_book(book) for book in few)]
    assert max(len(line) for text in texts for line in text.splitlines()) <= 100


def test_a_tier_a_service_and_own_hardware_are_shown() -> None:
    shown = show_book(Book("full", "2026-01-02", "tests", {"acme/sage": FULL}, ""))
    for part in ("prompts over 200 tokens", "batch x 0.5 (not cache_read, cache_write)",
                 "2 H100 80GB at 2.49 an hour", "carried-back", "reasoning 5.00"):  # fmt: skip
        assert part in " ".join(shown.split())


def test_prices_list_and_diff_print_and_say_whether_there_is_a_difference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["prices", "list"]) == 0
    assert "paper-2025-12-04" in capsys.readouterr().out
    assert main(["prices", "list", "paper-2025-12-04"]) == 0
    assert "carried-back" in capsys.readouterr().out
    assert main(["prices", "diff", "rehearsal", "rehearsal"]) == 0
    assert main(["prices", "diff", "paper-2025-12-04", "list-2026-11-21"]) == 1
    assert "fugu/fugu-ultra" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(path.stem for path in BOOKS.glob("*.toml")))
def test_what_runs_in_this_process_has_a_price_in_every_book(name: str) -> None:
    book = read_book(name)
    price = book.price("embedded/conductor")
    assert price is not None
    if name in ("rehearsal", "rehearsal-agents", "rehearsal-deep"):
        assert (price.input, price.output) == (Decimal("0.05"), Decimal("0.20"))
    else:
        assert (price.input, price.output) == (0, 0)
        assert "the user's own processor" in price.source
        assert book.evidence("embedded/conductor") == "built in"
    assert book.price("embedded/a/folder/of/mine") is not None
    assert book.price("openai/nobody") is None
    assert book.evidence("openai/nobody") == "no price"


def test_a_book_of_the_users_may_price_what_runs_in_this_process(tmp_path: Path) -> None:
    mine = GOOD.replace("acme/sage", "embedded/conductor")
    book = read_book(str(written(tmp_path, HEAD + mine)))
    assert book.price("embedded/conductor") == book.prices["embedded/conductor"]
    assert book.evidence("embedded/conductor") == "dated"


def test_a_log_embeds_the_files_prices_and_the_built_in_ones_apart() -> None:
    said = read_book("list-2026-11-21").as_json()
    assert "embedded/" not in str(said["usd_per_mtok"])
    assert str(said["built_in"]).startswith("{'embedded/': ")
    older = {name: value for name, value in said.items() if name != "built_in"}
    assert book_from_json(older).price("embedded/conductor") is None


def test_a_listed_book_shows_its_built_in_price_with_the_reason() -> None:
    shown = " ".join(show_book(read_book("paper-2025-12-04")).split())
    assert "embedded/*, built in: 0.00 in, 0.00 out (podium: it runs on the user's own" in shown
