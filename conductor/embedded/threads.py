"""One BLAS thread for models this small: more of them wait for each other longer than they work."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # pyright: ignore[reportMissingTypeStubs]


@cache
def _blas() -> Any:
    """Return the BLAS libraries that NumPy has loaded; looking for them takes a millisecond."""
    found: Any = ThreadpoolController()
    return found.select(user_api="blas")


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which NumPy multiplies in one thread."""
    return _blas().limit(limits=1)
