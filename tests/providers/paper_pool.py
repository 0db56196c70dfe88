"""`paper-constrained` at a local provider: its workers, cards, settings and price book, made anew.

Only addresses, keys (test words, one per worker) and the clients' own retries are added: what runs
on this pool would run on the real one.
"""

import tomllib
from pathlib import Path
from typing import Any

from podium.harness.pool_config import POOLS
from podium.harness.prices.book import toml
from tests.providers.server import Server

NAME = "paper-constrained"


def write_paper_pool(folder: Path, server: Server) -> str:
    """Write the pool file into a folder; return its path for `--pool`."""
    spec = tomllib.loads((POOLS / f"{NAME}.toml").read_text())
    lines = [f"{name} = {toml(spec[name])}" for name in ("label", "prices", "description")]
    for worker in spec["workers"]:
        lines += ["", "[[workers]]", *_slot(worker, server)]
    lines += ["", "[conductor]", *_slot({"name": "conductor", **spec["conductor"]}, server)]
    path = folder / f"{NAME}.toml"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def _slot(slot: dict[str, Any], server: Server) -> list[str]:
    provider = slot["model"].partition("/")[0]
    address = {"google": server.google, "anthropic": server.anthropic}.get(provider, server.openai)
    more = {} if provider == "google" else {"max_retries": 0}
    args = {**slot.get("args", {}), "base_url": address, "api_key": key(slot["name"]), **more}
    return [f"{name} = {toml(value)}" for name, value in {**slot, "args": args}.items()]


def key(worker: str) -> str:
    """Return the API key of a worker: the provider's bill knows who asked by it."""
    return f"test-{worker}"
