"""Sitting a code task under Inspect, in a sandbox of Inspect's."""

from pathlib import Path
from typing import Any

import yaml
from inspect_ai import Task, eval
from inspect_ai.log import EvalLog
from inspect_ai.model import get_model

from podium.suites.inspect_box import COMPOSE
from tests.providers.scripted import Heard, script


def sat(made: Task, tmp: Path, reply: str = "hello", **options: Any) -> tuple[EvalLog, list[Heard]]:
    """Let a model that always says `reply` sit the exam; return the log and what was asked."""
    asked: list[Heard] = []

    def say(heard: Heard) -> str:
        asked.append(heard)
        return reply

    options = {"log_dir": str(tmp), "display": "none", **options}
    (log,) = eval(made, model=get_model(script("sitter", say), memoize=False), **options)
    return log, asked


def written(folder: Path, **changes: Any) -> tuple[str, str]:
    """Return a docker sandbox with our compose file's service, changed; None removes a key."""
    service = {**yaml.safe_load(Path(COMPOSE).read_text())["services"]["default"], **changes}
    kept = {key: value for key, value in service.items() if value is not None}
    path = folder / "compose.yaml"
    path.write_text(yaml.safe_dump({"services": {"default": kept}}))
    return "docker", str(path)
