"""Sources of recorded grades, by their names in `podium route`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from podium.baselines.lm_eval_samples import read_lm_eval
from podium.baselines.verdict_data import (
    SourceRequest,
    read_aime,
    read_gpqa,
    read_leaderboard,
    read_llmrouterbench,
    read_routerarena,
    read_routerbench,
)
from podium.baselines.verdict_files import read_inspect_logs, read_table
from podium.harness.errors import UserError, no_such
from podium.harness.learning import Matrix, matrix_of_logs


@dataclass(frozen=True, slots=True)
class VerdictSource:
    """A source of recorded grades, on which `podium route` evaluates routers."""

    name: str
    holds: str  # for `podium route --list`: its models, questions, known costs
    read: Callable[[SourceRequest], Matrix]
    path: str = ""  # form of the text after the colon, e.g. `DIR`; `[SLICE]` if it is optional
    suite: str = ""  # the suite with the same questions; empty if none or several
    needs: str = ""  # data that is not in the package, and how to get it


def _read_logs(request: SourceRequest) -> Matrix:
    if not request.path:
        raise UserError("Give the directory that `podium run` wrote: `podium route logs:DIR`.")
    return matrix_of_logs([Path(request.path)])


_EVERY = (
    VerdictSource(
        "lcb-leaderboard",
        "LiveCodeBench v6: 16 models x 1,055 questions (v5: 19 x 880, v1: 45 x 400), pass@1 of up "
        "to 10 draws, contest dates; no costs",
        read_leaderboard,
        path="[v6, v5 or v1]",
        needs="texts: podium data fetch lcb-qwen",
        suite="livecodebench",
    ),
    VerdictSource(
        "gpqa-verdicts",
        "GPQA-Diamond: 17 models x 198 questions, 4 to 10 draws, texts opened in memory only; no "
        "costs",
        read_gpqa,
        needs="all: files in the data folder, which have no public download",
        suite="gpqa-diamond",
    ),
    VerdictSource(
        "aime25",
        "AIME 2025: 4 small models x 30 questions, 1 draw, output tokens; no dollars",
        read_aime,
        needs="texts: podium data fetch aime25",
        suite="aime25",
    ),
    VerdictSource(
        "routerbench",
        "RouterBench rows as CSV: 11 models with scores and dollars; the slices arc_challenge "
        "(1,484 questions) and mbpp (427) with a declared split",
        read_routerbench,
        needs="texts: podium data fetch routerbench",
        path="[SLICE or PATH]",
    ),
    VerdictSource(
        "routerarena",
        "RouterArena: 2 models x 809 mixed questions, 1 draw, tokens and dollars; or DIR, other "
        "cached results of the same form",
        read_routerarena,
        needs="all: podium data fetch routerarena",
        path="[DIR]",
    ),
    VerdictSource(
        "llmrouterbench",
        "LLMRouterBench result files: scores, tokens, dollars as found",
        read_llmrouterbench,
        needs="all: the unpacked release",
        path="DIR",
    ),
    VerdictSource(
        "lm-eval",
        "lm-eval's samples (`lm_eval --log_samples`): one filter and metric a task, prompts",
        read_lm_eval,
        needs="all: DIR/<model>/samples_<task>_<time>.jsonl",
        path="DIR",
    ),
    VerdictSource(
        "inspect",
        "any logs of `inspect eval`: each model's first scorer, tokens, Inspect's dollars",
        read_inspect_logs,
        needs="all: .eval files, or logs in JSON",
        path="DIR",
    ),
    VerdictSource(
        "table",
        "a CSV or JSONL table, as HELM's, a row per question and model: scores, dollars, tokens",
        read_table,
        needs="all: columns named as docs/inspect.md says",
        path="FILE",
    ),
    VerdictSource(
        "logs",
        "our own logs: every worker that ran on a suite alone, with list prices and tokens",
        _read_logs,
        path="DIR",
    ),
)
SOURCES: Mapping[str, VerdictSource] = {source.name: source for source in _EVERY}


def read_matrix(reference: str, request: SourceRequest) -> Matrix:
    """Return the grade matrix of source `NAME` or `NAME:PATH`; UserError if it is unreadable."""
    name, colon, path = reference.partition(":")
    if name not in SOURCES:
        raise no_such("source", name, SOURCES, "there are: ")
    source = SOURCES[name]
    if colon and not source.path:
        raise UserError(f"Source {name} takes no path. Write `podium route {name}`.")
    return source.read(replace(request, path=path))
