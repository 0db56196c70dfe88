"""Every shipped pool and price book reads; every mistake in one is answered with its place."""

from pathlib import Path

import pytest
from inspect_ai.model import GenerateConfig

from podium.harness.errors import UserError
from podium.harness.pool_config import POOLS, PoolSpec, WorkerSpec, read_pool
from podium.harness.prices import BOOKS, Book, book_from_json, read_book
from podium.harness.prices.book import EMBEDDED_WHOLE

SHIPPED_POOLS = sorted(path.stem for path in POOLS.glob("*.toml"))
SHIPPED_BOOKS = sorted(path.stem for path in BOOKS.glob("*.toml"))
PUBLISHED = ("paper-constrained", "paper-unconstrained")
SEVEN = (
    "gemini-2.5-pro", "claude-sonnet-4.6", "gpt-5", "r1-distill-qwen-32b", "gemma-3-27b",
    "qwen3-32b", "qwen3-32b-thinking",
)  # fmt: skip

GOOD = """\
label = "live"
prices = "none"

[[workers]]
name = "first"
model = "openai/gpt-5"
config = { max_tokens = 100 }

[[workers]]
name = "second"
model = "openai/gpt-5"
"""


def slots(pool: PoolSpec) -> tuple[WorkerSpec, ...]:
    return (*pool.workers, *([pool.conductor] if pool.conductor else []))


def unpriced(pool: PoolSpec, book: Book) -> list[str]:
    return [slot.name for slot in slots(pool) if slot.price_ref not in book.prices]


def test_the_published_pools_are_shipped() -> None:
    assert {*PUBLISHED, "openrouter", "vllm"} <= set(SHIPPED_POOLS)


@pytest.mark.parametrize("name", SHIPPED_POOLS)
def test_a_shipped_pool_reads_and_says_what_its_workers_are(name: str) -> None:
    pool = read_pool(name)
    assert pool.description
    assert len(pool.sha256) == 64
    for worker in pool.workers:
        assert worker.card, f"{worker.name} has no card for conductors to read"
        assert worker.knowledge_cutoff
    for slot in slots(pool):
        source = "unknown" in slot.knowledge_cutoff or "(" in slot.knowledge_cutoff
        assert source or pool.label == "rehearsal", f"{slot.name}: the cutoff names no source"


@pytest.mark.parametrize("name", SHIPPED_POOLS)
def test_every_live_worker_that_is_shipped_has_a_price_or_says_why_not(name: str) -> None:
    pool = read_pool(name)
    missing = unpriced(pool, pool.book())
    if pool.label == "live":
        assert missing == [slot.name for slot in slots(pool) if slot.not_auditable]


def test_every_model_of_the_live_pools_has_a_price_on_the_papers_day() -> None:
    book = read_book("paper-2025-12-04")
    live = [pool for pool in map(read_pool, SHIPPED_POOLS) if pool.label == "live"]
    apart = ("endpoints", "openrouter-fusion", "local")  # the last one states its own prices
    models = [pool for pool in live if pool.name not in apart]
    replaced = "claude-sonnet-4.6"  # for one that ended: it is younger than that day
    assert {name for pool in models for name in unpriced(pool, book)} == {replaced}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_pool_has_the_papers_seven_workers(name: str) -> None:
    assert read_pool(name).names == SEVEN


def test_the_constrained_limits_are_the_published_ones() -> None:
    pool = read_pool("paper-constrained")
    configs = {worker.name: worker.config for worker in pool.workers}
    assert {config.max_tokens for config in configs.values()} == {4096}
    warm = {name: config.temperature for name, config in configs.items()}
    assert warm == {name: None if name == "gpt-5" else 0.2 for name in SEVEN}
    assert configs["gemini-2.5-pro"].reasoning_tokens == 128
    assert configs["claude-sonnet-4.6"].reasoning_effort == "none"
    assert configs["gpt-5"].reasoning_effort == "minimal"
    for name in ("qwen3-32b", "qwen3-32b-thinking"):
        config = configs[name]
        assert (config.top_p, config.presence_penalty) == (0.8, 1.0)
        assert config.extra_body == {"top_k": 20}


def test_the_unconstrained_limits_are_the_published_ones() -> None:
    pool = read_pool("paper-unconstrained")
    limits = {worker.name: worker.config.max_tokens for worker in pool.workers}
    assert limits == dict(zip(SEVEN, (65_535, 64_000, 128_000, *[20_480] * 4), strict=True))
    thinking = {worker.name: worker.config.reasoning_tokens for worker in pool.workers}
    assert thinking["gemini-2.5-pro"] == thinking["claude-sonnet-4.6"] == 32_768
    assert pool.worker("gpt-5").config.reasoning_effort == "high"


def test_two_efforts_of_one_model_are_two_workers() -> None:
    pool = read_pool("paper-constrained")
    direct, thinking = pool.worker("qwen3-32b"), pool.worker("qwen3-32b-thinking")
    assert direct.model == thinking.model
    assert direct.args != thinking.args


@pytest.mark.parametrize("name", SHIPPED_BOOKS)
def test_a_shipped_book_reads_and_survives_being_embedded_in_a_log(name: str) -> None:
    book = read_book(name)
    assert book.source
    assert book_from_json(book.as_json()) == book
    for price in book.prices.values():
        assert min(price.input, price.output) >= 0
        assert price.input <= price.output or len(book.prices) > EMBEDDED_WHOLE  # rerankers


def test_a_good_pool_file_is_good(tmp_path: Path) -> None:
    pool = read_pool(str(written(tmp_path, GOOD)))
    assert pool.names == ("first", "second")
    assert pool.worker("first").config == GenerateConfig(max_tokens=100)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        pytest.param('label = "live"', 'label = "lively"', "line 1, field label", id="label"),
        pytest.param('prices = "none"\n', "", "field prices", id="no-price-book"),
        pytest.param('name = "first"', 'name = "a b"', "line 5, field workers.0.name", id="name"),
        pytest.param('"openai/gpt-5"\nconfig', '"gpt-5"\nconfig', "line 6, field workers.0.model",
                     id="no-provider"),
        pytest.param("max_tokens = 100", 'max_tokens = "many"',
                     "line 7, field workers.0.config.max_tokens", id="config-value"),
        pytest.param("max_tokens = 100", "max_token = 100",
                     "Unknown GenerateConfig field(s): max_token.",
                     id="config-field"),
        pytest.param('name = "second"', 'name = "second"\ntemperature = 1',
                     "line 11, field workers.1.temperature", id="setting-outside-config"),
        pytest.param('name = "second"', 'name = "first"', "'first' is used twice", id="twice"),
        pytest.param('name = "second"', 'name = "conductor"', "roles of their own", id="role-name"),
        pytest.param('name = "second"\n', "", "line 9, field workers.1.name", id="no-name"),
        pytest.param("[[workers]]", "[[worker]]", "field worker", id="misspelt-table"),
        pytest.param('name = "first"', "name = first", "line 5", id="not-toml"),
        pytest.param('label = "live"', "", "field label", id="no-label"),
        pytest.param('label = "live"', 'label = "rehearsal"', "line 6, field workers.0.model",
                     id="rehearsal-of-a-real-model"),
        pytest.param('label = "live"', 'label = "recorded"', "line 6, field workers.0.model",
                     id="recorded-of-a-real-model"),
        pytest.param('"second"\nmodel = "openai/gpt-5"', '"second"\nmodel = "rehearsal/sage"',
                     "line 11, field workers.1.model", id="live-rehearsal"),
        pytest.param('"second"\nmodel = "openai/gpt-5"', '"second"\nmodel = "recorded/sage"',
                     "line 11, field workers.1.model", id="live-recorded"),
        pytest.param('"second"\n', '"second"\nmodel = "openai/gpt-5"\n[conductor]\nname = "boss"\n',
                     "line 13, field conductor.name", id="conductor-by-another-name"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_pool_file_is_answered_with_its_place(
    tmp_path: Path, old: str, new: str, place: str
) -> None:
    path = written(tmp_path, GOOD.replace(old, new))
    with pytest.raises(UserError) as caught:
        read_pool(str(path))
    assert place in str(caught.value)
    assert "mine.toml" in str(caught.value)


def test_a_conductor_may_be_named_conductor(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD + '[conductor]\nname = "conductor"\nmodel = "openai/gpt-5"\n')
    conductor = read_pool(str(path)).conductor
    assert conductor
    assert conductor.name == "conductor"


def test_files_that_a_pool_names_stand_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GOOD.replace('"none"', '"book.toml"').replace('"live"', '"recorded"')
    text = text.replace("openai/gpt-5", "recorded/sage")
    text = text.replace("config = { max_tokens = 100 }", 'args = { cassette = "tape.jsonl" }')
    path = written(tmp_path, text + 'args = { cassette = "saturn-aime25" }\n')
    monkeypatch.chdir(tmp_path.parent)
    pool = read_pool(str(path.relative_to(tmp_path.parent)))
    assert pool.prices == str(tmp_path / "book.toml")
    cassettes = [worker.args["cassette"] for worker in pool.workers]
    assert cassettes == [str(tmp_path / "tape.jsonl"), "saturn-aime25"]


def test_a_path_from_the_root_or_from_home_is_left_where_it_is(tmp_path: Path) -> None:
    for name, place in (
        ("/books/b.toml", "/books/b.toml"),
        ("~/b.toml", str(Path.home() / "b.toml")),
    ):
        path = written(tmp_path, GOOD.replace('"none"', f'"{name}"'))
        assert read_pool(str(path)).prices == place


def test_a_pool_without_workers_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, 'label = "live"\nprices = "none"\nworkers = []\n')
    with pytest.raises(UserError, match="field workers"):
        read_pool(str(path))


def test_an_unknown_pool_or_worker_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="paper-constrained"):
        read_pool("paper-contrained")
    with pytest.raises(UserError, match="gemma-3-27b"):
        read_pool("paper-constrained").worker("gemma")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param('source = "s"\n[usd_per_mtok]\n', "it lacks 'date'", id="no-date"),
        pytest.param('date = "d"\nsource = "s"\n', "it lacks 'usd_per_mtok'", id="no-prices"),
        pytest.param(
            'date = "d"\nsource = "s"\n[usd_per_mtok]\n"a/b" = { input = "x", output = "1" }\n',
            "'a/b'.*input.*x",
            id="not-a-number",
        ),
        pytest.param("date =", "not valid TOML", id="not-toml"),
        *(
            pytest.param(f'date = "d"\nsource = "s"\n[usd_per_mtok]\n{row}\n', said, id=name)
            for name, row, said in (
                ("no-table", '"a/b" = 3', "'a/b'.*must be a table"),
                ("negative", '"a/b" = { input = "-1", output = "1" }', "'a/b'.*input.*-1"),
                ("nan", '"a/b" = { input = "1", output = "NaN" }', "'a/b'.*output.*NaN"),
                ("infinite", '"a/b" = { input = "1", output = inf }', "inf is not a finite number"),
                ("list", '"a/b" = { input = [1], output = 1 }', "'a/b'.*input"),
                (
                    "cache",
                    '"a/b" = { input = 1, output = 1, cache_read = "x" }',
                    "'a/b'.*cache_read",
                ),
                ("no-output", '"a/b" = { input = "1" }', "'a/b'.*output"),
                ("unknown-rate", '"a/b" = { input = 1, output = 1, ouput = 2 }', "'a/b'.*'ouput'"),
            )
        ),
        pytest.param('date = "d"\nsource = "s"\nusd_per_mtok = 3', "usd_per_mtok", id="prices"),
    ],
)
def test_a_malformed_price_book_says_why(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "book.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=f"malformed: .*{reason}") as caught:
        read_book(str(path))
    assert "\n" not in str(caught.value)
