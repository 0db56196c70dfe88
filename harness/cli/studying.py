"""Studies on recorded verdicts: what a training may see, and its checkpoints beside the routers.

Composes sources and splits (baselines/), studies and checkpoints (conductor/) and rows (reports/)
for `podium train` and `podium route --conductor`. Not here: the router table (routing.py).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import UserError
from harness.plural import counted

NAME = "conductor, study"
PUBLIC = 400
"""Questions of each practice suite that a tokenizer is trained on where others must not be."""


def study_for(part: Any) -> Any:
    """Return the study that a training's `[verdicts]` names; what is judged is left out of it.

    UserError for a source or a split that there is not, and for one that has several folds.
    """
    from baselines.judging.splits import split_of
    from baselines.matrices import SOURCES
    from conductor.study import Declared, study_of
    from harness.cli.routing import whole_matrix

    matrix = whole_matrix(part.source, None)
    split = split_of(matrix, part.split, part.split_seed)
    if len(split.folds) != 1:
        raise UserError("A study has one split, date:SHARE or share:SHARE: it learns once.")
    exam = SOURCES[part.source.partition(":")[0]].exam
    declared = Declared(part.source, exam, part.split, part.split_seed)
    public = () if matrix.publishable else _public_texts()
    return study_of(declared, matrix.rows(split.folds[0].train), public)


def _public_texts() -> list[str]:
    """Return texts that may be published: those of the practice suites that teach."""
    from suites import SUITES

    suites = (suite for name, suite in SUITES.items() if name.startswith("practice"))
    return [question.text for suite in suites for question in suite.load("train")[:PUBLIC]]


def conductor_rows(folders: Sequence[Path], exam: Any, best: int) -> list[Any]:
    """Return the rows of trained checkpoints on the judged questions of one split.

    `best` is the index of the worker that best-single asks. One checkpoint is a row with a verdict;
    of several their mean over seeds has it, question by question, and each a line without one.
    UserError for a checkpoint of another study or split, and for one seed named twice.
    """
    from dataclasses import replace

    found = [_row(folder, exam, best) for folder in folders]
    if len({row.system for row in found}) < len(found):
        raise UserError("Two of these checkpoints have one seed: name each seed once.")
    if len(found) == 1:
        return [replace(found[0], system=NAME, kind="router")]
    return [_mean(found), *found]


def _mean(found: Sequence[Any]) -> Any:
    from reports.routes import RoutedSystem

    return RoutedSystem(
        system=f"{NAME}: mean of {len(found)} seeds",
        kind="router",
        scores=np.mean([row.scores for row in found], axis=0),
        usd=np.mean([row.usd for row in found], axis=0),
        tokens_out=np.mean([row.tokens_out for row in found], axis=0),
        elsewhere=float(np.mean([row.elsewhere for row in found])),
        note="its interval is over questions; what a seed changes is in the lines of the seeds",
    )


def _row(folder: Path, exam: Any, best: int) -> Any:
    """Return a checkpoint's row: what the workers that it asks have scored."""
    from conductor.study import read_study, refuse_taught
    from conductor.study_plans import NOBODY, asked_whom, greedy
    from reports.routes import RoutedSystem

    about = read_study(folder)
    refuse_taught(about, exam, folder)
    chosen = asked_whom(about, exam, greedy(folder))
    nobody = chosen == NOBODY
    cell = np.arange(len(chosen)), np.where(nobody, 0, chosen)
    return RoutedSystem(
        system=f"{NAME}: seed {about.seed}",
        kind="anchor",
        scores=np.where(nobody, 0.0, exam.scores[cell]),
        usd=np.where(nobody, np.nan, exam.usd[cell]),
        tokens_out=np.where(nobody, np.nan, exam.tokens_out[cell]),
        elsewhere=float((chosen != best).mean()),
        note=_note(about, exam, chosen),
    )


def _note(about: Any, exam: Any, chosen: Any) -> str:
    """Say what a checkpoint is, and whom it asks how often."""
    asked = {name: int((chosen == at).sum()) for at, name in enumerate(exam.workers)}
    most = sorted((name for name in asked if asked[name]), key=lambda name: -asked[name])
    shares = [f"{name} {100 * asked[name] / len(chosen):.0f} %" for name in most[:4]]
    words = f", first {about.form.words} words of each" if about.form.words else ""
    nobody = counted(len(chosen) - sum(asked.values()), "text")
    return (
        f"role study, split {about.split} (seed {about.split_seed}) of {about.source}, taught by "
        f"{len(about.taught)} and picked on {len(about.validated)} questions{words}; asks "
        f"{', '.join(shares) or 'nobody'}; {nobody} without a plan"
    )
