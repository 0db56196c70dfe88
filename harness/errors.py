"""podium's exceptions, by who failed: user, worker or framework; a model's mistake is no error."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError


class PodiumError(Exception):
    """Any failure that podium itself understands and can explain in one sentence."""


class UserError(PodiumError):
    """The user asked for something that cannot be done; the message names the fix."""


class WorkerError(PodiumError):
    """A worker gave no reply (provider down, time-out, refusal); the sample stays unscored."""


class CassetteMiss(WorkerError):
    """A cassette (file of recorded replies) has no reply to this request and repetition."""


class FrameworkError(WorkerError):
    """An agent framework's own code failed, not a model: there is no answer to grade."""


class Escaped(FrameworkError):
    """A framework tried a connection or program that podium cannot record, and was refused."""


class SpendLimit(PodiumError):
    """The run reached `--max-usd`; the same command with a larger limit resumes it."""


class QuestionLimit(SpendLimit):
    """A question or a served request reached `--max-usd-per-query`; all other questions go on."""


class DayLimit(SpendLimit):
    """The day's spending limit of `podium serve` is reached; the next day begins at `ends`."""

    def __init__(self, sentence: str, ends: datetime) -> None:
        """Store the message and the time at which a new daily limit begins."""
        super().__init__(sentence)
        self.ends = ends


class TooManyMasked(PodiumError):
    """Too many of the latest rewards have no value, so training stops: it would learn noise."""


def reasons_of(check: Callable[..., object], *arguments: Any) -> Iterator[str]:
    """Call `check`, and yield the message of its `UserError`; yield nothing if it passes."""
    try:
        check(*arguments)
    except UserError as error:
        yield str(error)


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return an error message's start, with the choice most similar to `name`; empty if none is.

    >>> did_you_mean("audti", ["run", "audit"]), did_you_mean("olympus", ["run", "audit"])
    ("Did you mean 'audit'? ", '')
    """
    near = get_close_matches(name, [*choices], n=1, cutoff=0.75)
    return f"Did you mean {near[0]!r}? " if near else ""


def no_such(
    noun: str, name: str, choices: Iterable[str], lead: str = "", more: str = ""
) -> UserError:
    """Return the error for an unknown name, which lists all known names.

    >>> str(no_such("price book", "lst", ["list", "none"]))
    "Did you mean 'list'? There is no price book 'lst'; known books: list, none."
    """
    names = [*choices]
    listed = f"{lead or f'known {noun.split()[-1]}s: '}{', '.join(names) or 'none'}{more}"
    return UserError(f"{did_you_mean(name, names)}There is no {noun} {name!r}; {listed}.")


def shipped_file(noun: str, name: str, folder: Path) -> Path:
    """Return the path of a .toml file, named by path or by a name in `folder`; else UserError."""
    path = Path(name) if name.endswith(".toml") else folder / f"{name}.toml"
    if path.is_file():
        return path
    names = sorted(file.stem for file in folder.glob("*.toml"))
    if name.endswith(".toml"):
        text = "is no file" if path.exists() else "is not there"
        raise UserError(f"{path} {text}: give the path of a {noun}, or a name: {', '.join(names)}.")
    raise no_such(noun, name, names, more=" (or give a .toml path)")


NO_OBJECT = "Input should be an object"
"""Message for a value that is not a JSON object; pydantic's message would name a Python class."""


def first_fault(error: "ValidationError") -> tuple[str, str]:
    """Return the first mistake that pydantic found: the path of the field, and what is wrong."""
    fault = error.errors(include_url=False, include_input=False)[0]
    message = NO_OBJECT if fault["type"] == "model_type" else fault["msg"]
    return ".".join(map(str, fault["loc"])), message
