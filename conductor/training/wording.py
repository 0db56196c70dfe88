"""What a conductor says to its workers: how many different subtasks, and how many it made up.

A model that was warmed up on plans of a grammar (corpus.py) plans in words only if it comes to say
what that grammar cannot. Read from a training's folder, or from the logs of an evaluation. A plan
whose subtask holds the answer tells a worker instead of asking it; those are counted apart.
Not here: the table (reports/ablations.py), the model card (about.py).
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from conductor.reading import read
from conductor.training.corpus import ENDINGS, PHRASES
from conductor.training.folder import MANIFEST, PLANS, config_of, read_lines
from harness.errors import UserError
from harness.ledger.answers import workflow_of
from harness.ledger.questions import entries, verdict
from harness.ledger.totals import SystemRun, load_runs
from harness.records import PODIUM, Question
from harness.rewards.splits import leaks_answer
from harness.workflow import Malformed, Workflow

GRAMMAR = frozenset(
    phrase + ending for phrases in PHRASES.values() for phrase in phrases for ending in ENDINGS
)
"""Every subtask that a warm start can have written."""
_WORD = re.compile(r"[^\W_]+")
VOCABULARY = frozenset(word for one in GRAMMAR for word in _WORD.findall(one.lower()))
"""Its words."""


@dataclass(frozen=True, slots=True)
class Said:
    """One plan that could be read."""

    subtasks: tuple[str, ...]
    """Those with words."""
    right: float | None
    leaked: bool | None
    """Whether a subtask holds the answer; None where that cannot be told, as for programs."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What some plans say."""

    plans: int
    subtasks: int
    distinct: int
    new: int
    """Of the distinct ones, those that the warm start's grammar cannot have written."""
    share_new: float | None
    """Of all subtasks, those that are new; None where there are none."""
    foreign: int
    """Of the new ones, those with a word that the grammar does not have; the rest rearrange its
    words."""
    commonest: tuple[str, ...]
    """The new ones that are said most often, three at most."""
    leaked: float | None
    """Share of the plans that hold the answer, of those where it can be told."""
    right: float | None
    """Mean grade of the plans that were graded."""
    right_unleaked: float | None
    """The same without the plans that hold the answer."""


def wording(said: Sequence[Said]) -> Wording:
    """Return what plans say.

    >>> wording([Said(("Solve the question.", "Add 3."), 1.0, False)]).new
    1
    """
    counts = Counter(subtask for plan in said for subtask in plan.subtasks)
    new = Counter({one: count for one, count in counts.items() if one not in GRAMMAR})
    known = [plan.leaked for plan in said if plan.leaked is not None]
    total = counts.total()
    return Wording(
        plans=len(said),
        subtasks=total,
        distinct=len(counts),
        new=len(new),
        share_new=new.total() / total if total else None,
        foreign=sum(bool({*_words(one)} - VOCABULARY) for one in new),
        commonest=tuple(one for one, _ in new.most_common(3)),
        leaked=fmean(known) if known else None,
        right=_right(said),
        right_unleaked=_right([plan for plan in said if not plan.leaked]),
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _right(said: Sequence[Said]) -> float | None:
    graded = [plan.right for plan in said if plan.right is not None]
    return fmean(graded) if graded else None


def said_in_training(folder: Path) -> list[Said]:
    """Return the sampled plans of a training's folder; UserError where it kept no words."""
    path = folder / MANIFEST
    if not path.is_file():
        raise UserError(f"{folder} is no training: it has no {MANIFEST}.")
    manifest: dict[str, Any] = json.loads(path.read_text())
    form, workers = config_of(manifest).form, tuple(manifest["pool"]["workers"])
    found: list[Said] = []
    for line in read_lines(folder / PLANS):
        if "completion" not in line:
            raise UserError(f"{folder} kept no words of plans: its questions are not published.")
        shown = tuple(line.get("workers") or workers)
        plan = read(form, line["completion"], shown)
        if not isinstance(plan, Malformed):
            found.append(_said(plan, line.get("correct"), line.get("leaked")))
    return found


def said_in_logs(folder: Path) -> list[Said]:
    """Return the plans of an evaluation's logs; those that are withheld have no words."""
    return said_by(load_runs([folder])[0])


def said_by(sittings: Iterable[SystemRun]) -> list[Said]:
    """Return the plans of some sittings of an evaluation."""
    return [plan for sitting in sittings for plan in _of_logs(sitting.paths)]


def _of_logs(paths: Sequence[Path]) -> Iterator[Said]:
    for entry in entries(paths):
        if not entry.current:
            continue
        sample = entry.sample
        metadata: dict[str, Any] = sample.get("metadata") or {}
        shape: dict[str, Any] = metadata.get(PODIUM) or {}
        plan = workflow_of(shape.get("plan"))
        if plan is not None:
            yield _said(plan, verdict(sample), _leaked(sample, metadata, plan))


def _leaked(sample: dict[str, Any], metadata: dict[str, Any], plan: Workflow) -> bool | None:
    """Say whether a plan holds the target that the log gives."""
    text, target = sample.get("input"), sample.get("target")
    if not isinstance(text, str) or not isinstance(target, str):
        return None
    kind: Any = metadata.get("kind", "text")
    question = Question(str(sample["id"]), text, kind, target=target)
    return leaks_answer(question, [step.subtask for step in plan.steps])


def _said(plan: Workflow, right: float | None, leaked: bool | None) -> Said:
    return Said(tuple(step.subtask for step in plan.steps if step.subtask), right, leaked)
