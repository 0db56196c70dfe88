"""Runs as pandas data frames: one of systems, one of samples, one of calls.

The columns are Arrow's, as in Inspect's own frames, so that dollars stay exact decimals and what
nobody knows is `<NA>`, never 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from harness.ledger.export import each_of
from harness.ledger.runs import system_runs_below
from harness.ledger.system_runs import load_runs as read_system_runs
from reports.blocks import DEFAULTS
from reports.derived import compare

pa: Any = import_module("pyarrow")  # it has no types


@dataclass(frozen=True, slots=True)
class RunFrames:
    """The runs of some log directories as data frames; `suite` and `system` join them."""

    runs: pd.DataFrame
    """A row per system and suite, with the columns and the comparisons of `table.csv`."""
    samples: pd.DataFrame
    """A row per question and epoch: verdict, tokens, dollars; `sample` is Inspect's uuid."""
    calls: pd.DataFrame
    """A row per attempt to call a model; its `sample` is that of `samples`."""


def load_runs(*dirs: str | Path) -> RunFrames:
    """Return what logs below directories hold; UserError where they can be no comparison.

    What each column of samples and calls means is in `schema.md` of `podium ledger export`.
    """
    places = [Path(one) for one in dirs]
    rows = compare(read_system_runs(places)[0], DEFAULTS).rows
    tables = [found for place in places for found, _ in each_of(system_runs_below(place))]
    return RunFrames(
        runs=_frame(pa.Table.from_pylist([asdict(row) for row in rows])),
        samples=_joined("queries", tables),
        calls=_joined("calls", tables),
    )


def _joined(name: str, tables: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    return _frame(pa.concat_tables([one[name] for one in tables]))


def _frame(table: Any) -> pd.DataFrame:
    return table.to_pandas(types_mapper=pd.ArrowDtype)
