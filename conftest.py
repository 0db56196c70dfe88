"""Leave the training files out of doctests where there is no torch; they have none (see pyproject).

`make trainers` and CI import them in an environment that has it (tests/conductor/training).
"""

import tomllib
from importlib.util import find_spec
from pathlib import Path

_CONTRACTS = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text())
_TORCH = next(
    one for one in _CONTRACTS["tool"]["importlinter"]["contracts"] if one["id"] == "torch"
)

collect_ignore = (
    []
    if find_spec("torch")
    else [
        edge.split(" -> ")[0].replace(".", "/") + ".py"
        for edge in _TORCH["ignore_imports"]
        if edge.startswith("podium.conductor.training.")
    ]
)
