"""A `Sitting`: one system that sat one exam, put together from all the logs of its attempts.

A resumed or enlarged run leaves several logs. Each (question, epoch) pair is taken from the newest
log that has it, spend is counted from all of them, and a call that several logs repeat counts once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from inspect_ai.log import EvalLog

from harness.errors import UserError
from harness.ledger import Attempt, attempts_of, distinct, lost_calls
from harness.logs import RunFacts, age, find_logs, read_log, run_facts
from harness.records import Call


@dataclass(frozen=True, slots=True)
class Sitting:
    """One system that sat one exam: its newest attempts, and every call of all attempts."""

    facts: RunFacts
    logs: tuple[str, ...]
    """File names, newest first."""
    asked: int
    """(question, epoch) pairs that the run set out to ask."""
    epochs: int
    attempts: tuple[Attempt, ...]
    """One for each pair that was begun, sorted by question and epoch."""
    calls: tuple[Call, ...]


def read_sittings(
    dirs: Sequence[Path], recursive: bool = True
) -> tuple[tuple[Sitting, ...], tuple[Path, ...]]:
    """Return the sittings in some directories, and the foreign logs that were passed over.

    UserError for a damaged file, and when no log of podium's is left.
    """
    groups: dict[object, list[_Read]] = {}
    foreign: list[Path] = []
    for path in find_logs(dirs, recursive):
        log = read_log(path)
        facts = run_facts(log, path) if log else None
        if log is None or facts is None:
            foreign.append(path)
            continue
        read = _read(log, path, facts)
        _join(groups, read)
    if not groups:
        raise UserError(f"{foreign[0]} was not written by `podium run`, and there is no other log.")
    once = {id(group): group for group in groups.values()}
    return tuple(_sitting(group) for group in once.values()), tuple(foreign)


def _join(groups: dict[object, list["_Read"]], read: "_Read") -> None:
    """Put a log to those of its task and to those of its experiment, which become one group."""
    same_task = groups.get(read.task, [])
    same_run = groups.get(read.identity, [])
    together = same_task if same_task is same_run else [*same_task, *same_run]
    group = [*together, read]
    for member in group:
        groups[member.task] = groups[member.identity] = group


@dataclass(frozen=True, slots=True)
class _Read:
    """What is kept of one log file, so that the log itself can be let go."""

    age: tuple[str, str]
    """Of two logs of one sitting, the greater one is the newer."""
    name: str
    task: str
    identity: tuple[str, ...]
    """An experiment that grew (a larger limit) may have a new task id, and is the same sitting."""
    facts: RunFacts
    asked: int
    epochs: int
    attempts: tuple[Attempt, ...]
    lost: tuple[Call, ...]


def _read(log: EvalLog, path: Path, facts: RunFacts) -> _Read:
    epochs = log.eval.config.epochs or 1
    questions = log.eval.dataset.sample_ids or ()
    return _Read(
        age=age(log, path),
        name=path.name,
        task=log.eval.task_id,
        identity=(str(path.parent.resolve()), *_identity(facts)),
        facts=facts,
        asked=len(questions) * epochs,
        epochs=epochs,
        attempts=attempts_of(log, facts, path.name),
        lost=lost_calls(log, facts, path.name),
    )


def _identity(facts: RunFacts) -> tuple[str, ...]:
    image = facts.box_facts.image_id if facts.box_facts else None
    data = (facts.suite, facts.suite_version, facts.data_revision, facts.split, facts.prompt)
    exam = (*data, facts.box, image)
    system = (facts.system, sorted(facts.args.items()), facts.pool_sha256, facts.label, facts.seed)
    return tuple(str(part) for part in (*exam, *system, facts.purpose))


def _sitting(reads: Sequence[_Read]) -> Sitting:
    newest_first = sorted(reads, key=lambda read: read.age, reverse=True)
    current: dict[tuple[str, int], Attempt] = {}
    replaced: list[Attempt] = []
    for attempt in (attempt for read in newest_first for attempt in read.attempts):
        kept = current.setdefault((attempt.question, attempt.epoch), attempt)
        if kept is not attempt:
            replaced.append(attempt)
    newest = newest_first[0]
    calls = [
        *(call for attempt in current.values() for call in attempt.calls),
        *(replace(call, counted=False) for attempt in replaced for call in attempt.calls),
        *(call for read in newest_first for call in read.lost),
    ]
    return Sitting(
        facts=newest.facts,
        logs=tuple(read.name for read in newest_first),
        asked=max(newest.asked, len(current)),
        epochs=newest.epochs,
        attempts=tuple(current[pair] for pair in sorted(current)),
        calls=distinct(calls),
    )
