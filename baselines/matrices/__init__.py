"""Recorded verdicts of others as matrices: what routers learn from and are judged on, today.

One small file a source, a registry by name. Reading order: `reading.py` (what importers share),
then any importer. Not here: averaging draws into a `Matrix` (harness/learning/matrix.py),
splits and judging (baselines/judging/), routers (baselines/routing/).
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from baselines.matrices.gpqa_verdicts import GPQA
from baselines.matrices.livecodebench_leaderboard import LEADERBOARD
from baselines.matrices.llmrouterbench import LLMROUTERBENCH
from baselines.matrices.reading import Given, Source
from baselines.matrices.routerarena import ROUTERARENA
from baselines.matrices.routerbench import ROUTERBENCH
from baselines.matrices.saturn_aime import AIME25
from harness.errors import UserError
from harness.learning.matrix import Matrix, matrix_of_logs

__all__ = ["SOURCES", "Given", "Source", "read_matrix"]


def _logs(given: Given) -> Matrix:
    if not given.path:
        raise UserError("Name the directory that `podium run` wrote: `podium route logs:DIR`.")
    return matrix_of_logs([Path(given.path)])


LOGS = Source(
    "logs",
    "our own logs: every worker that sat an exam alone, with list prices and tokens",
    _logs,
    path="DIR",
)
SOURCES: Mapping[str, Source] = {
    source.name: source
    for source in (LEADERBOARD, GPQA, AIME25, ROUTERBENCH, ROUTERARENA, LLMROUTERBENCH, LOGS)
}


def read_matrix(named: str, given: Given) -> Matrix:
    """Return the matrix of `NAME` or `NAME:PATH`.

    UserError for a name that is not known, a path where none belongs, and all an importer refuses.
    """
    name, colon, path = named.partition(":")
    if name not in SOURCES:
        raise UserError(f"There is no source {name!r}; there are: {', '.join(SOURCES)}.")
    source = SOURCES[name]
    if colon and not source.path:
        raise UserError(f"Source {name} takes no path: `podium route {name}`.")
    return source.read(replace(given, path=path))
