"""The plan of a run that is cut into shards: `LOG_DIR/shards.json`, and where each shard lies.

A shard is an ordinary run directory, `LOG_DIR/shards/0007`, that asks some questions of some
entries, each question with all its epochs. Every planned query is in exactly one of them.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from podium.harness.errors import UserError, first_fault
from podium.harness.files import DOCUMENT, read_limited, replace_file

FILE, FOLDER = "shards.json", "shards"
FIGURES = "figures.parquet"
"""Beside a shard's manifest: what its logs come to, so that nobody need read them again."""
ENDED = "outcome.json"
MOST_QUERIES = 2000
"""Of a shard, unless a single question is asked more often."""


@dataclass(frozen=True, slots=True)
class ShardPart:
    """Some questions of one entry: those of its suite's list from `first` until before `last`."""

    entry: str  # name of the Inspect task
    suite: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Shard:
    """What one ordinary run directory asks."""

    name: str  # its folder's: `0007`
    wave: int  # 1; entries that are chosen by how others did are asked in a second one
    parts: tuple[ShardPart, ...]


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """All shards of a run, and what each of them needs of the request."""

    request: Mapping[str, Any]
    """Fields of `RunRequest` that no experiment stores: where the pool's file lies, the box, ..."""
    questions: Mapping[str, tuple[str, ...]]
    """Suite -> the ids of its questions, in the order in which the run asks them."""
    shards: tuple[Shard, ...] = ()
    own_suites: tuple[str, ...] = ()
    """A user's own, as FILE.py@NAME."""
    own_systems: tuple[str, ...] = ()
    schema: Literal[1] = 1

    def ids(self, part: ShardPart) -> tuple[str, ...]:
        """Return the questions of a part."""
        return self.questions[part.suite][part.first : part.last]

    def planned(self, entry: str) -> int:
        """Return how many questions of an entry, its first ones, are in shards."""
        parts = (part for shard in self.shards for part in shard.parts if part.entry == entry)
        return max((part.last for part in parts), default=0)


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """An entry whose questions are to be shared out."""

    entry: str
    suite: str
    first: int
    last: int
    cost: float = 1.0
    """Of one question with all its epochs, in any unit that all rows share; above 0."""
    epochs: int = field(default=1)


def cut(rows: Sequence[PlannedRow], shards: int, *, first: int = 1, wave: int = 1) -> list[Shard]:
    """Return shards of about equal cost, named from the number `first` on, over all questions."""
    sizes = [row.last - row.first for row in rows]
    costs = chain.from_iterable([row.cost] * size for row, size in zip(rows, sizes, strict=True))
    sums, asked = list(accumulate(costs)), sum(sizes)
    shards = min(shards, asked)
    cuts = [0]
    for number in range(1, shards):
        at = bisect_left(sums, sums[-1] * number / shards) + 1
        cuts.append(min(max(at, cuts[-1] + 1), asked - shards + number))
    starts = list(accumulate(sizes, initial=0))
    pieces = (
        piece
        for begin, end in zip(cuts, [*cuts[1:], asked], strict=True)
        for piece in _bounded(list(_parts(rows, starts, begin, end)), rows)
    )
    return [Shard(f"{first + at:04d}", wave, tuple(one)) for at, one in enumerate(pieces) if one]


def cut_by_question(
    rows: Sequence[PlannedRow], shards: int, *, first: int = 1, wave: int = 1
) -> list[Shard]:
    """Return shards as `cut` does, each with all the entries of its questions: they share draws."""
    together: dict[str, list[PlannedRow]] = {}
    for row in rows:
        together.setdefault(f"{row.suite} {row.first} {row.last}", []).append(row)
    blocks = [
        replace(
            own[0],
            entry=name,
            cost=sum(row.cost for row in own),
            epochs=sum(row.epochs for row in own),
        )
        for name, own in together.items()
    ]
    return [
        replace(
            shard,
            parts=tuple(
                replace(part, entry=row.entry)
                for part in shard.parts
                for row in together[part.entry]
            ),
        )
        for shard in cut(blocks, shards, first=first, wave=wave)
    ]


def _parts(
    rows: Sequence[PlannedRow], starts: Sequence[int], begin: int, end: int
) -> Iterator[ShardPart]:
    """Yield the parts of the questions `begin` until before `end`, counted over all rows."""
    for row, start in zip(rows, starts, strict=False):
        first, last = max(begin, start) - start, min(end - start, row.last - row.first)
        if first < last:
            yield ShardPart(row.entry, row.suite, row.first + first, row.first + last)


def _bounded(parts: Sequence[ShardPart], rows: Sequence[PlannedRow]) -> Iterator[list[ShardPart]]:
    """Yield the parts of a piece, in several where it has too many queries."""
    epochs = {row.entry: row.epochs for row in rows}
    piece, room = list[ShardPart](), MOST_QUERIES
    for part in parts:
        at = part.first
        while at < part.last:
            fits = min(room // epochs[part.entry], part.last - at)
            if fits < 1 and piece:
                yield piece
                piece, room = [], MOST_QUERIES
                continue
            fits = max(fits, 1)
            piece.append(ShardPart(part.entry, part.suite, at, at + fits))
            at, room = at + fits, room - fits * epochs[part.entry]
    yield piece


@dataclass(frozen=True, slots=True)
class ShardOutcome:
    """How a shard's last process ended, as `outcome.json` beside its logs has it."""

    finished: bool
    unscored: int = 0
    trouble: tuple[str, ...] = ()


_FILE, _OUTCOME = TypeAdapter(ShardPlan), TypeAdapter(ShardOutcome)


def read_plan(log_dir: Path) -> ShardPlan | None:
    """Return the plan of a directory; None where it has none, UserError where it is damaged."""
    path = log_dir / FILE
    if not path.is_file():
        return None
    try:
        return _FILE.validate_json(read_limited(path, DOCUMENT))
    except ValidationError as error:
        where, said = first_fault(error)
        raise UserError(
            f"{path} is damaged or of another version of podium (field {where}: {said}); "
            "restore it."
        ) from error


def write_plan(log_dir: Path, plan: ShardPlan) -> None:
    """Write a plan as a whole."""
    replace_file(log_dir / FILE, _FILE.dump_json(plan, indent=1) + b"\n")


def shard_dir(log_dir: Path, name: str) -> Path:
    """Return where a shard lies."""
    return log_dir / FOLDER / name


def shard_dirs(log_dir: Path) -> list[Path]:
    """Return where the shards of a directory lie, in order; none for a run without shards."""
    there = (log_dir / FILE).is_file()
    return (
        sorted(one.parent for one in log_dir.glob(f"{FOLDER}/*/experiment.json")) if there else []
    )


def read_outcome(folder: Path) -> ShardOutcome | None:
    """Return how a shard's last process ended; None where it did not get so far."""
    try:
        return _OUTCOME.validate_json((folder / ENDED).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def write_outcome(folder: Path, ended: ShardOutcome) -> None:
    """Write down how a shard's process ends."""
    replace_file(folder / ENDED, _OUTCOME.dump_json(ended) + b"\n")


def refuse_sharded(log_dir: Path) -> None:
    """Raise UserError for a directory whose run is cut into shards."""
    if (log_dir / FILE).is_file():
        raise UserError(
            f"{log_dir} holds a run that is cut into shards: add --shards, or name another "
            "--log-dir."
        )


def parent_of(folder: Path) -> Path | None:
    """Return the directory of the run that a directory is a shard of; None for any other."""
    parent = folder.parent.parent
    return parent if folder.parent.name == FOLDER and (parent / FILE).is_file() else None


def outside_shards(log_dir: Path, paths: Iterable[Path]) -> list[Path]:
    """Return the files below a directory that none of its shards has."""
    inside = log_dir / FOLDER if (log_dir / FILE).is_file() else None
    return [path for path in paths if inside is None or not path.is_relative_to(inside)]
