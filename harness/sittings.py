"""A `Sitting`: one system that sat one exam, put together from all the logs of its attempts.

A resumed or enlarged run leaves several logs. Each (question, epoch) pair is taken from the newest
log that has it, spend is counted from all of them, and a call that several logs repeat counts once.
Headers are read first, to know which logs belong together; the samples of many logs are read in
several processes, a sitting at a time (harness/processes.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError
from harness.ledger import Attempt, Figures, Tallies, read_figures
from harness.ledger.paid import ByScope, read_paid
from harness.ledger.raw_log import Json, naming, open_log
from harness.logs import RunFacts, facts_in, find_logs
from harness.processes import in_processes

Tokens = tuple[int, int, int, int]
"""Input, cache reads, cache writes, output."""


@dataclass(frozen=True, slots=True)
class Sitting:
    """One system that sat one exam: its newest attempts, and the sums of all its calls."""

    facts: RunFacts
    paths: tuple[Path, ...]
    """Its logs, newest first; `read_figures(paths)` adds them up."""
    asked: int
    """(question, epoch) pairs that the run set out to ask."""
    epochs: int
    attempts: tuple[Attempt, ...]
    """One for each pair that was begun, sorted by question and epoch."""
    spend: Tallies
    """Every call of all attempts, each once, added up by kind."""
    told: Mapping[str, Tokens] | None
    """Inspect's own totals in the newest log, by model; None for a log without totals."""
    paid: ByScope | None = None
    """What left a purse, by the journals; None where nothing did, and for runs without journals."""

    @property
    def logs(self) -> tuple[str, ...]:
        """File names, newest first."""
        return tuple(path.name for path in self.paths)


def read_sittings(
    dirs: Sequence[Path], recursive: bool = True
) -> tuple[tuple[Sitting, ...], tuple[Path, ...]]:
    """Return the sittings in some directories, and the foreign logs that were passed over.

    UserError for a damaged file, and when no log of podium's is left.
    """
    groups: dict[object, list[_Head]] = {}
    foreign: list[Path] = []
    for path in find_logs(dirs, recursive):
        head = _read_head(path)
        if head is None:
            foreign.append(path)
        else:
            _join(groups, head)
    if not groups:
        raise UserError(f"{foreign[0]} was not written by `podium run`, and there is no other log.")
    once = {id(group): _by_age(group) for group in groups.values()}
    sat = list(once.values())
    sums = in_processes(_sums, [[head.path for head in group] for group in sat])
    found = (_sitting(group, *each) for group, each in zip(sat, sums, strict=True))
    return tuple(found), tuple(foreign)


def _sums(paths: Sequence[Path]) -> tuple[Figures, ByScope | None]:
    return read_figures(paths), read_paid(paths)


def _join(groups: dict[object, list["_Head"]], head: "_Head") -> None:
    """Put a log to those of its task and to those of its experiment, which become one group."""
    same_task = groups.get(head.task, [])
    same_run = groups.get(head.identity, [])
    together = same_task if same_task is same_run else [*same_task, *same_run]
    group = [*together, head]
    for member in group:
        groups[member.task] = groups[member.identity] = group


def _by_age(group: Sequence["_Head"]) -> list["_Head"]:
    return sorted(group, key=lambda head: head.age, reverse=True)


@dataclass(frozen=True, slots=True)
class _Head:
    """What a log's header says."""

    path: Path
    age: tuple[str, str]
    """Of two logs of one sitting, the greater one is the newer."""
    task: str
    identity: tuple[str, ...]
    """An experiment that grew (a larger limit) may have a new task id, and is the same sitting."""
    facts: RunFacts
    asked: int
    epochs: int
    told: Mapping[str, Tokens] | None


def _read_head(path: Path) -> _Head | None:
    """Read a header; None for a log that `podium run` did not write."""
    with open_log(path) as log, naming(path):
        about: Json = log.header["eval"]
        facts = facts_in(about.get("metadata"), path)
        if facts is None:
            return None
        epochs = _part(about, "config").get("epochs") or 1
        return _Head(
            path=path,
            # A regraded log repeats the old one's creation time, and has a later one in its name.
            age=(about["created"], path.name),
            task=about["task_id"],
            identity=(str(path.parent.resolve()), *_identity(facts)),
            facts=facts,
            asked=len(_part(about, "dataset").get("sample_ids") or ()) * epochs,
            epochs=epochs,
            told=_told(log.header),
        )


def _told(header: Json) -> Mapping[str, Tokens] | None:
    """Return Inspect's totals, which it writes when a run ends; a killed run has none."""
    totals: Mapping[str, Json] = _part(_part(header, "stats"), "model_usage")
    if header.get("status", "started") == "started" and not totals:
        return None
    return {
        model: (
            usage.get("input_tokens") or 0,
            usage.get("input_tokens_cache_read") or 0,
            usage.get("input_tokens_cache_write") or 0,
            usage.get("output_tokens") or 0,
        )
        for model, usage in totals.items()
    }


def _part(data: Json, name: str) -> Json:
    found: Json | None = data.get(name)
    return found or {}


def _identity(facts: RunFacts) -> tuple[str, ...]:
    image = facts.box_facts.image_id if facts.box_facts else None
    data = (facts.suite, facts.suite_version, facts.data_revision, facts.split, facts.prompt)
    exam = (*data, facts.box, image)
    system = (facts.system, sorted(facts.args.items()), facts.pool_sha256, facts.label, facts.seed)
    return tuple(str(part) for part in (*exam, *system, facts.purpose))


def _sitting(newest_first: Sequence[_Head], figures: Figures, paid: ByScope | None) -> Sitting:
    newest = newest_first[0]
    return Sitting(
        facts=newest.facts,
        paths=tuple(head.path for head in newest_first),
        asked=max(newest.asked, len(figures.attempts)),
        epochs=newest.epochs,
        attempts=figures.attempts,
        spend=figures.spend,
        told=newest.told,
        paid=paid,
    )
