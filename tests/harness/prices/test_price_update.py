"""The default book has today's prices; `podium prices update` makes the next one."""

import json
import tomllib
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from inspect_ai.log import read_eval_log

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.pool_config import POOLS, read_pool
from podium.harness.prices import BOOKS, book_from_json, newest_list, parse_book, read_book
from podium.harness.prices.snapshot import PACKAGE, installed
from podium.harness.prices.update import whole_book, whole_text
from podium.harness.run.preflight import problems, unpinned_hosts

pytest.importorskip("genai_prices")

OLD = """\
date = "2026-11-20"
source = "genai-prices 0.2.3"
[usd_per_mtok]
"openai/dear" = { input = "1", output = "2" }
"openai/cheap" = { input = "1", output = "2", also = ["same"] }
"openai/gone" = { input = "1", output = "2" }
"anthropic/claude-sonnet-4-20250514" = { input = "3", output = "15" }
"fugu/by-hand" = { input = "1", output = "2", source = "its maker's page" }
"""


def entry(name: str, paid_in: int, also: str = "") -> dict[str, Any]:
    """Return a model as genai-prices publishes it, two dollars a million tokens out."""
    match: dict[str, Any] = {"or": [{"equals": one} for one in filter(None, (name, also))]}
    return {"id": name, "match": match, "prices": {"input_mtok": paid_in, "output_mtok": 2}}


MODELS = [entry("dear", 2), entry("cheap", 1, "same"), entry("new", 1)]
MODELS[1]["prices"]["input_mtok"] = 0.5
EMBEDDING = {"id": "vectors", "match": {"equals": "vectors"}, "prices": {"input_mtok": 1}}
PUBLISHED = [
    {"id": "openai", "name": "OpenAI", "api_pattern": "x", "models": [*MODELS, EMBEDDING]},
    {
        "id": "anthropic",
        "name": "Anthropic",
        "api_pattern": "y",
        "models": [entry("claude-sonnet-4-20250514", 3)],
    },
]


class Prices(BaseHTTPRequestHandler):
    """Answers as genai-prices' address does."""

    def do_GET(self) -> None:
        content = json.dumps(PUBLISHED).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal free."""


@pytest.mark.skipif(metadata.version(PACKAGE) != "0.2.3", reason="another genai-prices")
def test_the_default_book_is_every_model_that_the_package_has_and_a_book_can_express() -> None:
    shipped = newest_list()
    day = date.fromisoformat(shipped.date)
    source = installed(day)
    found = whole_book(shipped.name, day, source, read_book("list-2026-11-27"), day)
    whole = sum(len(provider.models) for provider in source.providers)
    assert found.models + sum(map(len, found.left_out.values())) == whole
    assert found.models >= 300
    path = BOOKS / f"{shipped.name}.toml"
    assert path.read_text() == whole_text(found, path)
    gone = read_book("list-2026-11-27").prices.keys() - shipped.prices.keys()
    assert gone == set()
    assert {"batch", "flex", "priority"} == set(shipped.prices["openai/gpt-5"].services)
    assert shipped.prices["google/gemini-2.5-pro"].tiers[0].above == 200_000


def test_an_update_shows_what_moved_and_leaves_the_older_book_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.toml", tmp_path / "new.toml"
    old.write_text(OLD)
    with ThreadingHTTPServer(("127.0.0.1", 0), Prices) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        words = ["--against", str(old), "--fetch", f"http://127.0.0.1:{server.server_port}/data"]
        assert main(["prices", "update", *words, "--out", str(new)]) == 0
        server.shutdown()
    said = capsys.readouterr().out
    for line in (
        "added 1 (openai 1)",
        "ended 2\n    anthropic/claude-sonnet-4-20250514: on 2026-06-15\n",
        "\n    openai/gone: the source no longer has it\n",
        "dearer 1\n    openai/dear: 1.00 in, 2.00 out -> 2.00 in, 2.00 out",
        "cheaper 2\n    openai/cheap: 1.00 in, 2.00 out -> 0.50 in, 2.00 out",
        "- left out, 1: it has no price per token of input and of output (openai 1)",
        "- left out, 1: its provider has ended it (anthropic 1)",
    ):
        assert line in said
    assert old.read_text() == OLD
    book = read_book(str(new))
    assert set(book.prices) == {f"openai/{one}" for one in ("dear", "cheap", "same", "new")} | {
        "fugu/by-hand"
    }
    assert book.prices["openai/same"] == book.prices["openai/cheap"]
    assert main(["prices", "update", *words, "--out", str(new)]) == 2
    assert "never overwritten" in capsys.readouterr().err
    assert main(["prices", "update", *words, "--out", str(tmp_path / "b.toml")]) == 2  # it is down
    assert "gave no prices" in (told := capsys.readouterr().err)
    assert told.count("\n") == 1
    assert not (tmp_path / "b.toml").exists()
    assert (
        main(["prices", "update", "--date", "2999-01-01", "--out", str(tmp_path / "c.toml")]) == 2
    )


@pytest.mark.parametrize(
    ("also", "said"),
    [('"b"', "also must be a list of names"), ('["c"]', "'x/c' has two prices")],
)
def test_a_price_that_keys_share_is_checked(also: str, said: str) -> None:
    rows = f'"x/a" = {{ input = "1", output = "1", also = {also} }}\n'
    rows += '"x/c" = { input = "2", output = "2" }\n'
    text = f'date = "2026-11-20"\nsource = "s"\n[usd_per_mtok]\n{rows}'
    with pytest.raises(UserError, match=said):
        parse_book(text.encode(), Path("b.toml"))


def test_a_log_embeds_of_a_large_book_what_its_pool_names_and_the_audit_needs_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rest = "".join(f"[usd_per_mtok.'x/{at}']\ninput='1'\noutput='1'\n" for at in range(200))
    (tmp_path / "large.toml").write_text((BOOKS / "rehearsal.toml").read_text() + rest)
    pool = (POOLS / "rehearsal.toml").read_text()
    mine = tmp_path / "mine.toml"
    mine.write_text(pool.replace('"rehearsal"\ndesc', f'"{tmp_path}/large.toml"\ndesc'))
    words = ["--suite", "practice-integer", "--system", "single:sage", "--limit", "2"]
    runs = tmp_path / "runs"
    assert main(["run", *words, "--pool", str(mine), "--log-dir", str(runs)]) == 0
    assert main(["audit", str(runs)]) == 0
    capsys.readouterr()
    logs = [read_eval_log(str(path), header_only=True) for path in runs.glob("*.eval")]
    (facts,) = [(log.eval.metadata or {})["podium"]["prices"] for log in logs]
    assert facts["entries"] == len(read_book(str(tmp_path / "large.toml")).prices)
    assert set(facts["usd_per_mtok"]) == read_pool("rehearsal").price_keys
    assert book_from_json(facts).price("rehearsal/sage") is not None


def live(tmp_path: Path, book: str, model: str, more: str = "") -> Path:
    path = tmp_path / f"{book}.toml"
    path.write_text(
        f'label = "live"\nprices = "{book}"\n[[workers]]\nname = "a"\nmodel = "{model}"\n'
        f'card = "c"\nknowledge_cutoff = "unknown"\n{more}'
    )
    return path


@pytest.mark.parametrize(
    ("book", "model", "said"),
    [
        ("list-2026-11-27", "openai/gpt-5-mini", "'list-2026-11-30' has it (0.25 in, 2.00 out)"),
        (
            "list-2026-11-30",
            "anthropic/claude-opus-4-8-20260715",
            'price = "KEY": anthropic/claude-opus-4-8 (5.00 in, 25.00 out), ',
        ),
        ("list-2026-11-30", "openai/zzzzzzzzzz", "has no 'openai/zzzzzzzzzz'. Add this line"),
    ],
)
def test_a_model_without_a_price_is_named_with_the_nearest_that_have_one(
    tmp_path: Path, book: str, model: str, said: str
) -> None:
    spec = read_pool(str(live(tmp_path, book, model)))
    (problem,) = [one for one in problems(spec, spec.book()) if "has no price" in one]
    assert said in problem
    assert len(problem) < 1000


@pytest.mark.parametrize(
    ("routing", "warned"),
    [
        ("", True),
        ('args = { provider = { order = ["deepinfra"] } }', True),
        ('args = { provider = { order = ["a"], allow_fallbacks = false } }', False),
        ('args = { provider = { only = ["deepinfra/fp8"] } }', False),
        ('not_auditable = "it chooses a model"', False),
    ],
)
def test_a_host_that_openrouter_may_change_is_a_warning_with_the_fix(
    tmp_path: Path, routing: str, warned: bool
) -> None:
    spec = read_pool(str(live(tmp_path, "list-2026-11-30", "openrouter/qwen/qwen3-32b", routing)))
    found = [*unpinned_hosts(spec)]
    assert bool(found) is warned
    assert all('args = { provider = { order = ["HOST"]' in one for one in found)


def test_a_run_begins_with_the_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "a-test-word")
    words = ["--suite", "practice-integer", "--system", "single", "--limit", "1"]
    assert main(["run", *words, "--pool", "openrouter", "--log-dir", str(tmp_path / "r")]) == 2
    said = capsys.readouterr().err  # before it is agreed to: nobody was asked
    assert "podium: OpenRouter may serve each call of qwen3-32b, " in said
    assert "--max-usd" in said


def test_no_shipped_pool_asks_for_a_model_that_has_ended() -> None:
    records = tomllib.loads((BOOKS / "history" / "records.toml").read_text())
    today = newest_list().date
    ended = {ref for ref, facts in records.items() if facts.get("ended", "9") <= today}
    pools = [read_pool(path.stem) for path in POOLS.glob("*.toml")]
    asked = {slot.model for pool in pools for slot in pool.slots}
    assert ended
    assert asked & ended == set()
