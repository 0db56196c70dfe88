"""Shell completion: options, and the names of suites, systems, pools, books and configs."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from podium.cli.commands import build_parser
from podium.harness.files import read_toml
from podium.harness.text import say

HOME = Path(__file__).parents[1]
GROUPS = "all contestants routers controls frameworks single"
SYSTEMS = """
best-single self-consistency moa-paper moa-lite moa-3 self-moa fusion remom confidence ratings
self-reflection long-context best-of-n debate best-of-n-tests retry warming escalation ab-mcts
planner-executor-verifier router-knn router-cluster router-logistic router-mlp router-mf
router-contrastive router-llm router-switchyard smoothie-global smoothie-local cascade
cascade-automix cascade-frugal
mas-sample router-mas random-trinity trinity random-worker random-workflow template-router
compute-matched-usd compute-matched-tokens rules-planner oracle langgraph langchain openai-agents
autogen ag2 agent-framework crewai conductor conductor-adaptive conductor-cost-aware
conductor-untrained conductor-served conductor-smollm conductor-prompted conductor-recursive
conductor-best-single conductor-profiled conductor-profiled-untrained conductor-profiled-shuffled
"""
"""All system names, kept by hand: to import the systems takes too long for a shell's start."""


def completion_command(args: argparse.Namespace) -> int:
    """Print a shell's completion script, with the current names of suites, pools etc.; return 0."""
    import shtab

    parser = build_parser()
    names = known_names()
    for command, action in every_action(parser):
        if action.type is Path:
            vars(action)["complete"] = shtab.FILE
        elif choices := names.get(f"{command} {action.dest}") or names.get(action.dest):
            action.choices = choices
    say(shtab.complete(parser, args.shell))
    return 0


def known_names() -> dict[str, list[str]]:
    """Return argument (`NAME` or `COMMAND NAME`) -> the values that the shell completes."""
    suites = [*read_toml(HOME / "suites" / "cards.toml")]
    systems = [*SYSTEMS.split(), *GROUPS.split()]
    pools, books = (_stems(HOME / "harness" / folder) for folder in ("pools", "prices"))
    return {
        **dict.fromkeys(("suite", "train_on", "suites name", "data names"), suites),
        **dict.fromkeys(("system", "match", "vs", "systems name"), systems),
        **dict.fromkeys(("book", "books", "old", "new"), books),
        "pool": pools,
        "config": _stems(HOME / "conductor" / "configs"),
    }


def _stems(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.toml"))


def every_action(
    parser: argparse.ArgumentParser, command: str = ""
) -> Iterator[tuple[str, argparse.Action]]:
    """Yield (first word of a command, argument) for every argument of every command."""
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage] - argparse lists them here
        commands: Any = action.choices
        if isinstance(commands, dict):
            for name, inner in cast("dict[str, Any]", commands).items():
                yield from every_action(inner, command or name)
        else:
            yield command, action
