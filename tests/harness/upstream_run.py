"""A run of one worker of any provider at a local server: what its replies and waits become.

    left = ask_worker(tmp_path, "openrouter/meta/llama", [broken("error"), ok()])
    left.rows, left.bill, left.failing

Waits are those that the server asks for, so nothing here waits for Inspect's own backoff.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from podium.harness.ledger.system_runs import load_runs
from podium.harness.records import Usage
from tests.harness.faulty_run import Left, run_pool
from tests.providers import Act, Server
from tests.providers.script import Change

CHAT = "openai/gpt-4o-mini"
TOOK = Usage(input=90, output=30)
SOON = {"retry-after-ms": "20"}
BOOK = """\
date = "2026-01-02"
source = "made up for tests"

[usd_per_mtok]
"{model}" = {{ input = "1", output = "2", cache_read = "0.1" }}
"""
POOL = """\
label = "live"
prices = "book.toml"

[[workers]]
name = "olive"
model = "{model}"
knowledge_cutoff = "unknown"
config = {{ max_tokens = 64, max_retries = {retries} }}
args = {{ base_url = "{url}", api_key = "test-olive"{args} }}
"""


def ask_worker(
    folder: Path, model: str, acts: Sequence[Act], retries: int = 1, args: str = ""
) -> Left:
    """Put one question to a worker whose provider follows a script, and audit what is left."""
    return ask_questions(folder, model, acts, limit=1, retries=retries, args=args)


def ask_questions(
    folder: Path, model: str, acts: Sequence[Act], *, limit: int, retries: int, args: str = ""
) -> Left:
    """Put some questions, each of which meets the acts in order of arrival."""

    def pool(server: Server) -> str:
        urls = {"anthropic": server.anthropic, "google": server.google}
        url = urls.get(model.partition("/")[0], server.openai)
        (folder / "book.toml").write_text(BOOK.format(model=model))
        path = folder / "pool.toml"
        path.write_text(POOL.format(model=model, url=url, retries=retries, args=args))
        return str(path)

    return run_pool(folder, acts, pool, "single:olive", limit)


def changed(change: Change, headers: dict[str, str] = SOON, usage: Usage | None = TOOK) -> Act:
    """Return an act whose reply is changed before it is sent."""
    return Act(usage=usage, change=change, headers=headers)


def broken(reason: str | None, **choice: Any) -> Act:
    """Return half a chat completion that ends for a reason, with more fields of its choice."""

    def change(body: dict[str, Any]) -> object:
        body["choices"][0] |= {"finish_reason": reason, **choice}
        return body

    return changed(change)


def reasons_in(left: Left) -> list[str]:
    """Return why questions of a run have no grade."""
    return [
        attempt.reason
        for system_run in load_runs([left.folder])[0]
        for attempt in system_run.attempts
        if attempt.value is None
    ]
