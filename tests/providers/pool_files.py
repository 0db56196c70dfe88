"""A pool file and a price book of three workers, one per dialect, at a local provider."""

from collections.abc import Mapping
from pathlib import Path

from tests.providers.server import Server

MODELS: Mapping[str, str] = {
    "olive": "openai/gpt-5-mini",
    "plum": "anthropic/claude-sonnet-5",
    "quince": "google/gemini-2.5-pro",
}
"""Worker name to Inspect model id."""

BOOK = """\
date = "2026-01-02"
source = "made up for tests"

[usd_per_mtok]
"openai/gpt-5-mini" = { input = "0.25", output = "2", cache_read = "0.025" }
"anthropic/claude-sonnet-5" = { input = "3", output = "15", cache_read = "0.3", \
cache_write = "3.75" }
"google/gemini-2.5-pro" = { input = "1.25", output = "10", cache_read = "0.125" }
"""

SETTINGS = "max_tokens = 64, max_retries = 2, attempt_timeout = 20"
"""Inspect waits 3 to 6 seconds before its first retry, and nothing shortens that."""


def write_pool(folder: Path, server: Server, settings: str = SETTINGS, sdk_retries: int = 0) -> str:
    """Write `pool.toml` and `book.toml` into a folder; return the pool's path for `--pool`.

    Label `live`: for podium these are real providers. `sdk_retries` is what the clients of OpenAI
    and Anthropic may retry on their own; Inspect's own retries are `max_retries` in `settings`.
    """
    addresses = {"olive": server.openai, "plum": server.anthropic, "quince": server.google}
    tables = [_worker(name, addresses[name], settings, sdk_retries) for name in MODELS]
    (folder / "book.toml").write_text(BOOK)
    path = folder / "pool.toml"
    path.write_text('label = "live"\nprices = "book.toml"\n' + "".join(tables))
    return str(path)


def _worker(name: str, base_url: str, settings: str, sdk_retries: int) -> str:
    sdk = "" if name == "quince" else f", max_retries = {sdk_retries}"
    return f"""
[[workers]]
name = "{name}"
model = "{MODELS[name]}"
knowledge_cutoff = "unknown"
config = {{ {settings} }}
args = {{ base_url = "{base_url}", api_key = "test-{name}"{sdk} }}
"""
