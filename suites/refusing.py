"""What podium refuses is one sentence under `inspect eval` too, not a traceback."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from inspect_ai import Task
from inspect_ai._util.error import (
    PrerequisiteError,  # not exported, yet what Inspect prints plainly
)
from rich.markup import escape

from harness.errors import UserError

Params = ParamSpec("Params")


class Refusal(UserError, PrerequisiteError):
    """A UserError that Inspect's command line prints as it prints its own."""

    def __init__(self, said: str) -> None:
        """Say this; Inspect reads its own copy as rich's markup."""
        super().__init__(said)
        self.args = (said,)
        self.message = escape(said)


def refusing(make: Callable[Params, Task]) -> Callable[Params, Task]:
    """Return a task function whose UserErrors Inspect prints; it stands under `@task`."""

    @wraps(make)
    def made(*args: Params.args, **kwargs: Params.kwargs) -> Task:
        try:
            return make(*args, **kwargs)
        except UserError as error:
            raise Refusal(str(error)) from error

    return made
