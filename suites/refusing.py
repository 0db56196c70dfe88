"""What podium refuses is one sentence under `inspect eval` too, not a traceback."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from inspect_ai import Task

from harness.errors import TaskRefusal, UserError

Params = ParamSpec("Params")


def refusing(make: Callable[Params, Task]) -> Callable[Params, Task]:
    """Return a task function whose UserErrors Inspect prints; it stands under `@task`."""

    @wraps(make)
    def made(*args: Params.args, **kwargs: Params.kwargs) -> Task:
        try:
            return make(*args, **kwargs)
        except UserError as error:
            raise TaskRefusal(str(error)) from error

    return made
