"""How a provider is asked to serve a call, as far as it changes the bill or escapes the books."""

from collections.abc import Mapping
from typing import Any, cast

from inspect_ai.model import GenerateConfig

from harness.prices.pricing import Service

STANDARD: Service = "standard"
ORDINARY = (None, "auto", "default", "standard", "standard_only")
"""Tiers of OpenAI and Anthropic at list price. `auto` is what a project's settings make of it."""


RETRYING = frozenset({"openai", "openai-api", "openrouter", "anthropic", "fugu"})
"""Providers whose own clients try up to three times before Inspect hears of it: all within one
event, and the tries before the last one in no total. They take `max_retries`; Inspect retries what
they do not, each try with an event and, in our journal, a line of its own."""


def service_of(config: GenerateConfig, args: Mapping[str, Any]) -> Service:
    """Return `batch`, or the tier that a worker's settings name, else `standard`.

    `args` are the provider's own (Inspect's `-M`). A tier that no price knows is returned as it is
    called: such calls then have no price, where "standard" would give them a wrong one.

    >>> service_of(GenerateConfig(), {"service_tier": "flex"})
    'flex'
    >>> service_of(GenerateConfig(batch=True), {})
    'batch'
    """
    if config.batch:
        return "batch"
    named = args.get("service_tier") or (config.extra_body or {}).get("service_tier")
    return STANDARD if named in ORDINARY else cast(Service, str(named))


def recorded_settings(
    model: str, config: GenerateConfig, args: Mapping[str, Any]
) -> tuple[GenerateConfig, dict[str, Any]]:
    """Return a worker's settings such that each HTTP request of it has an event of its own.

    What a pool file says for itself stays as it is.
    """
    provider = model.split("/", 1)[0]
    quiet = {"max_retries": 0} if provider in RETRYING else {}
    return without_probe(model, config), {**quiet, **args}


def without_probe(model: str, config: GenerateConfig) -> GenerateConfig:
    """Return a worker's settings such that Inspect makes no call that no log has.

    To find out whether an account may see summaries of reasoning, Inspect's `openai/` provider asks
    each reasoning model once per client to say hello: a request that is billed, retried, and in no
    event and no total. It does not ask where the settings say whether they are wanted; podium reads
    replies, so where a pool does not say they are not.
    """
    if model.startswith("openai/") and config.reasoning_summary is None:
        return config.model_copy(update={"reasoning_summary": "none"})
    return config
