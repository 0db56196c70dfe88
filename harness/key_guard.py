"""Models whose providers raise and return nothing that quotes a key (harness/api_keys.py)."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, cast

from inspect_ai.log._samples import (
    _active_model_event,  # pyright: ignore[reportPrivateUsage] - it has no public name
)
from inspect_ai.model import Model

from harness.api_keys import Cleaner, known_keys, shown


def guard(model: Model) -> Model:
    """Let a model's provider raise and return nothing that quotes a key; returns the same model."""
    ask = model.api.generate
    if not getattr(ask, GUARDED, False):
        cast(Any, model.api).generate = _guarded(ask)
        model.model_args = shown(model.model_args)  # which Inspect writes down; the client has them
    return model


GUARDED = "quotes_no_key"
Generate = Callable[..., Awaitable[Any]]
"""`ModelAPI.generate`."""


def _guarded(ask: Generate) -> Generate:
    @wraps(ask)
    async def generate(*args: Any, **kwargs: Any) -> Any:
        cleaner = Cleaner(known_keys())
        try:
            found = await ask(*args, **kwargs)
        except Exception as error:
            cleaner.error(error)
            raise
        finally:
            _clean_event(cleaner)
        parts = cast("tuple[Any, ...]", found if isinstance(found, tuple) else (found,))
        for part in parts:
            cleaner.result(part)
        return cast(Any, found)

    setattr(generate, GUARDED, True)
    return generate


def _clean_event(cleaner: Cleaner) -> None:
    """Clean what the provider has noted of the call that is being made, and of its requests."""
    event = _active_model_event.get()
    if event is None:
        return
    if event.call is not None:
        cleaner.result(event.call)
    for request in event.request_ids or ():
        request.id = cleaner.text(request.id)
