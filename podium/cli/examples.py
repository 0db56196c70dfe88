"""The example that ends each help: for every parser the first line that begins with its name."""

import argparse
from collections.abc import Iterator
from typing import Any, cast

LINES = """
podium demo --out demo
podium run --suite aime25 --system single --log-dir runs/first
podium shard runs/first/shards/0001
podium report runs/first --vs best-single --derived
podium view runs/first --port 8000
podium power --effect 5 --questions 30,198
podium route lcb-leaderboard --split date:0.3 --router router-knn
podium record runs/first --out tape.jsonl
podium grade --suite math500 --replies in.jsonl --out out.jsonl
podium redact runs/first --out shared
podium regrade runs/first --unscored
podium reward serve --suite practice-integer --limit 100
podium serve --system moa-lite --log-dir serving
podium train practice-cpu --set grpo.max_steps=50 --dry-run
podium ablate routing-only --seed 0 --out ablations
podium export eee runs/first --out eee
podium export verifiers --suite practice-choice --out taskset
podium export latex runs/first --out paper
podium export hub conductor runs/first --out model
podium export routerarena runs/first --out arena
podium audit runs/first --strict --invoice openai.json
podium ledger export runs/first --out tables
podium ledger sql runs/first "SELECT sum(usd_list) FROM calls"
podium manifest write runs/first
podium manifest verify runs/first --public-key signer.pub
podium manifest sign runs/first --key signer.pem
podium manifest anchor runs/first --request
podium manifest key --out signer.pem
podium prices list rehearsal
podium prices verify --json
podium prices diff paper-2025-12-04 list-2026-11-21
podium prices snapshot --pool paper-constrained --out mine.toml
podium prices export --inspect costs.json
podium reprice runs/first --book list-2026-11-21
podium suites aime25
podium data fetch aime25
podium data verify aime25
podium data list aime25 --json sources.json
podium systems moa-lite
podium workers --pool paper-constrained
podium pool new --worker a=openai/gpt-5 --price 1.25,10 --yes
podium doctor --suite practice-integer --system conductor
podium sandbox build --image basic
podium sandbox status
podium sandbox clean
podium completion bash
"""


def add_examples(podium: argparse.ArgumentParser) -> None:
    """Let the help of podium, and of each of its commands, end with an example."""
    for parser in every_parser(podium):
        lines = (line for line in LINES.splitlines() if f"{line} ".startswith(f"{parser.prog} "))
        parser.epilog = f"for example: {next(lines, '')}"


def every_parser(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser, and those of its commands and of their actions."""
    yield parser
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage] - argparse lists them here
        choices: Any = action.choices
        if isinstance(choices, dict):
            for inner in cast("dict[str, argparse.ArgumentParser]", choices).values():
                yield from every_parser(inner)
