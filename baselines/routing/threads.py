"""One thread for arithmetic: sums over several threads differ in their last bits.

threadpoolctl comes with scikit-learn; without it nothing is limited, and nothing else changes.
"""

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which linear algebra runs on one thread."""
    try:
        control: Any = import_module("threadpoolctl")
    except ImportError:
        return nullcontext()
    return control.threadpool_limits(limits=1)
