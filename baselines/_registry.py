"""The solvers Inspect finds: `inspect eval suites/aime25 --solver baselines/moa_3 -S pool=NAME`.

Each is registered where it is written, as `baselines` imports every module.
"""

from types import ModuleType
from typing import Any

import baselines


def __getattr__(name: str) -> Any:
    """Return a solver by its name, from whichever module of `baselines` has it."""
    modules = (one for one in vars(baselines).values() if isinstance(one, ModuleType))
    found = next((vars(one)[name] for one in modules if callable(vars(one).get(name))), None)
    if found is None:
        raise AttributeError(f"baselines has no solver {name!r}")
    return found
