"""Keep API keys out of logs, files and messages: a provider's error may quote a key."""

import operator
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from inspect_ai.model import Model

LEAST = 8  # minimum characters of a key: shorter values (`EMPTY`, `none`) occur in other texts
NAMED = re.compile(
    r"(?i)(?:^|[_-])(?:(?:api|access|secret|subscription|auth)[_-]?key|token|secret|authorization"
    r"|password|cookie|credentials?)$"
)  # endings of names whose values are keys: environment variables, model arguments, headers
_FROM_POOLS: dict[str, str] = {}  # key -> its name, from all pools that this process has read


def known_keys() -> dict[str, str]:
    """Return {API key: name of its environment variable or pool setting}, the longest key first."""
    names = [name for name in os.environ if _is_key(name)]
    values = {os.environ[name].strip(): name for name in names}
    keys = {**values, **_FROM_POOLS}
    return {key: keys[key] for key in sorted(keys, key=len, reverse=True) if len(key) >= LEAST}


@lru_cache(maxsize=1024)
def _is_key(name: str) -> bool:
    return NAMED.search(name) is not None


def note_keys(owner: str, settings: Mapping[str, Any]) -> None:
    """Remember the API keys in the settings of worker `owner`, also in nested tables (headers)."""
    for name, value in _secrets(settings):
        bare = value.removeprefix("Bearer ").removeprefix("Basic ").strip()
        if len(bare) >= LEAST:
            _FROM_POOLS.setdefault(bare, f"{owner}.{name}")


def _secrets(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _secrets(cast(Mapping[str, Any], value))
        elif isinstance(value, str) and _is_key(name):
            yield name, value


def without_keys(text: str) -> str:
    """Return a text in which each known API key is replaced by `[key NAME]`."""
    return Cleaner(known_keys()).text(text)


def shown(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without API keys: omit entries like `api_key`, mask keys in other values."""
    table = cast(dict[str, Any], Cleaner(known_keys()).cleaned({**settings}))
    return {
        name: shown(cast(Mapping[str, Any], value)) if isinstance(value, Mapping) else value
        for name, value in table.items()
        if not _is_key(name)
    }


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Replaces each API key in a text or object by `[key NAME]`; `keys` has the names by key."""

    keys: Mapping[str, str]

    def text(self, text: str) -> str:
        """Return a text in which each API key is replaced by `[key NAME]`."""
        for value, name in self.keys.items():
            if value in text:
                text = text.replace(value, f"[key {name}]")
        return text

    def result(self, result: Any) -> None:
        """Remove API keys, in place, from a provider's exception, reply or raw response."""
        if isinstance(result, BaseException):
            self.error(result)
        elif self.keys and hasattr(result, "model_dump"):
            self._attributes(result)

    def error(self, error: BaseException) -> None:
        """Remove API keys, in place, from an exception, its causes and a group's members."""
        visited: set[int] = set()
        queue: list[BaseException | None] = [error]
        while queue and self.keys:
            cause = queue.pop()
            if cause is None or id(cause) in visited:
                continue
            visited.add(id(cause))
            cause.args = tuple(self.cleaned(value) for value in cause.args)
            self._attributes(cause)
            queue += [cause.__cause__, cause.__context__, *getattr(cause, "exceptions", ())]

    def cleaned(self, value: Any) -> Any:
        """Return a value with all API keys masked; pydantic models are changed in place."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            table = cast(Mapping[Any, Any], value)
            clean_table = {self.cleaned(name): self.cleaned(item) for name, item in table.items()}
            return cast(Any, value) if clean_table == table else clean_table
        if isinstance(value, list | tuple):
            sequence = cast("list[Any]", value)
            items = [self.cleaned(item) for item in sequence]
            return sequence if all(map(operator.is_, sequence, items)) else type(sequence)(items)
        if hasattr(value, "model_dump") and hasattr(value, "__dict__"):
            self._attributes(value)
        return value

    def _attributes(self, target: Any) -> None:
        for name, value in list(cast("dict[str, Any]", vars(target)).items()):
            content = getattr(value, "_content", None)
            if isinstance(content, bytes):  # body of an HTTP response, in Google's errors
                value._content = self.text(content.decode("utf-8", "replace")).encode()
            cleaned = self.cleaned(value)
            if cleaned is not value:
                vars(target)[name] = cleaned


def guard_keys(model: "Model") -> "Model":
    """Make a model remove API keys from its provider's replies and errors; return the model."""
    ask = model.api.generate
    if not getattr(ask, GUARDED, False):
        cast(Any, model.api).generate = _guarded(ask)
        model.model_args = shown(model.model_args)  # Inspect logs these; the client has the keys
    return model


GUARDED = "quotes_no_key"


def _guarded(ask: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(ask)
    async def generate(*args: Any, **kwargs: Any) -> Any:
        cleaner = Cleaner(known_keys())
        try:
            reply = await ask(*args, **kwargs)
        except Exception as error:
            cleaner.error(error)
            raise
        finally:
            _clean_event(cleaner)
        results = cast("tuple[Any, ...]", reply if isinstance(reply, tuple) else (reply,))
        for result in results:
            cleaner.result(result)
        return cast(Any, reply)

    setattr(generate, GUARDED, True)
    return generate


def _clean_event(cleaner: Cleaner) -> None:
    # Not imported at the top: every printed line needs this module, and Inspect is slow to import.
    from inspect_ai.log._samples import (
        _active_model_event,  # pyright: ignore[reportPrivateUsage] - it has no public name
    )

    if (event := _active_model_event.get()) is None:
        return
    if event.call is not None:
        cleaner.result(event.call)
    for request in event.request_ids or ():
        request.id = cleaner.text(request.id)
