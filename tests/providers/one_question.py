"""One question to one real Inspect provider at a local server, in an eval, as logs see it."""

from collections.abc import Sequence
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.solver import generate

from podium.harness.ledger.logs import CallEvent, events_of, open_log
from podium.harness.records import Usage
from tests.providers import Act, Bill, Server, serve

CHAT = "openai/gpt-4o-mini"
RESPONSES = "openai/gpt-5-mini"
ANTHROPIC = "anthropic/claude-sonnet-5"
GOOGLE = "google/gemini-2.5-pro"
ALL = (CHAT, RESPONSES, ANTHROPIC, GOOGLE)

FULL = Usage(input=100, output=40, cache_read=30, cache_write=20, reasoning=12, cache_write_1h=8)
"""Something of everything; what a dialect cannot say is lost on the way."""

ONE_TRY: dict[str, Any] = {"max_retries": 0, "reasoning_summary": "none"}
"""No second try of Inspect's own, and no call of its own to find out about summaries."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one call left behind: on the provider's bill, and in the log."""

    bill: Bill
    log: EvalLog
    events: list[ModelEvent]
    calls: list[CallEvent]
    """The same events as our reader of raw logs gives them."""

    @property
    def call(self) -> CallEvent:
        """The only call."""
        (call,) = self.calls
        return call

    @property
    def event(self) -> ModelEvent:
        """Its event."""
        (event,) = self.events
        return event


def base_url(model: str, server: Server) -> str:
    """Return the address of a server for a provider's client."""
    urls = {"anthropic": server.anthropic, "google": server.google}
    return urls.get(model.split("/")[0], server.openai)


def ask(
    home: Path,
    model: str,
    acts: Sequence[Act] = (),
    settings: dict[str, Any] = ONE_TRY,
    **args: Any,
) -> Told:
    """Put one question to a model whose provider follows a script."""
    config = GenerateConfig(max_tokens=64, **settings)
    with serve(acts) as server:
        args = {"base_url": base_url(model, server), "api_key": "test", **args}
        asked = get_model(model, config=config, memoize=False, **args)
        (log,) = copy_context().run(_sit, home, asked)
    (sample,) = log.samples or []
    with open_log(Path(log.location)) as raw:
        calls = [call for sample in raw.samples() for call in events_of(sample)]
    events = [event for event in sample.events if isinstance(event, ModelEvent)]
    return Told(server.bill, log, events, calls)


def _sit(home: Path, model: Any) -> list[EvalLog]:
    task = Task(
        dataset=MemoryDataset([Sample(input="What is 3 + 4?", target="7")]), solver=generate()
    )
    return eval(
        task,
        model=model,
        log_dir=str(home),
        display="none",
        ctl_server=False,
        log_model_api=True,
        fail_on_error=False,
    )
