"""`podium data verify`: is what lies here what sources.toml pins? Nothing is downloaded.

First each source: is its file, or the hub's cache at the pinned revision, here and as it should be?
Then each suite is loaded as a run would load it, so that its own rules for rows hold too.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from harness.errors import UserError
from harness.suite import Split, Suite
from harness.text import say
from suites import SUITES
from suites.fetch import Source, checked_rows, data_folder, local_rows, refuse_duplicates, sources
from suites.hub import cached_file, cached_rows, hub_left_alone
from suites.pins import owner, sources_of

State = Literal["ok", "absent", "wrong"]


NOBODY = "which nobody has pinned"


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one thing that was looked at."""

    state: State
    said: str
    """Where it is, what is wrong with it, or which file to put where."""

    def __str__(self) -> str:
        return f"  {self.state:<7} {self.said}"


@dataclass(frozen=True, slots=True)
class Item:
    """A suite with its sources, or a source that no suite has as its questions."""

    name: str
    sources: tuple[str, ...]
    suite: Suite[Any] | None = None


def verify(
    names: Sequence[str], data: str | Path | None = None, say: Callable[[str], None] = say
) -> int:
    """Say what is right, absent and wrong of these suites (all of them); return 1 for a wrong one.

    UserError for a name that nobody knows.
    """
    found: list[Found] = []
    for item in items(names):
        say(item.name)
        for one in looked_at(item, data):
            found.append(one)
            say(str(one))
    counts = {state: [one.state for one in found].count(state) for state in ("absent", "wrong")}
    if counts["wrong"]:
        say(f"{counts['wrong']} wrong: move what is wrong away, then podium data fetch SUITE.")
    elif counts["absent"]:
        say(f"Nothing here is wrong; {counts['absent']} absent.")
    else:
        loose = sum(NOBODY in str(one) for one in found)
        say("All is as pinned." if not loose else f"Nothing is wrong; {loose} not pinned.")
    return 1 if counts["wrong"] else 0


def items(names: Sequence[str]) -> list[Item]:
    """Return what names stand for, in order; every listed suite and lone source without a name."""
    if names:
        return [_item(name) for name in dict.fromkeys(names)]
    lone = [name for name in sources() if owner(name) is None]
    return [_item(name) for name in (*SUITES, *lone)]


def _item(name: str) -> Item:
    if name in SUITES:
        return Item(name, sources_of(SUITES[name]), SUITES[name])
    if name in sources():
        return Item(name, (name,))
    raise UserError(f"There is no suite {name!r}; known suites: {', '.join(sorted(SUITES))}.")


def looked_at(item: Item, data: str | Path | None = None) -> Iterable[Found]:
    """Yield what is found of each source, then of the questions they make."""
    if item.suite is not None and not item.sources:
        yield Found("ok", "generated; there is nothing to fetch")
        return
    seen = [(look(name, data), sources()[name].instead_of) for name in item.sources]
    found = [one for one, instead in seen if not (instead and one.state == "absent")]
    yield from {one.said: one for one in found}.values()  # two tables may read one file
    if item.suite is None and found[0].state == "ok":
        yield from _lone(item.name, data)
    elif item.suite is not None and all(one.state != "wrong" for one in found):
        yield from _questions(item.suite, data, any(one.state == "absent" for one in found))


def _lone(name: str, data: str | Path | None) -> Iterable[Found]:
    try:
        yield Found("ok", f"{len(local_rows(name, data)):,} rows")
    except UserError as error:
        yield Found("wrong", str(error).removesuffix("."))


def look(name: str, data: str | Path | None = None) -> Found:
    """Return whether a source is here: its local file, else what the hub's cache has."""
    source = sources()[name]
    path = data_folder(data) / source.file
    if path.is_file():
        return _file(source, path)
    if source.hub and source.hub_file:
        cached = cached_file(source.hub, source.hub_file, source.revision)
        if cached and source.hub_file == path.name:  # it is the very file
            return _file(source, cached)
        if cached:
            return Found("ok", f"{name}: in the hub's cache, {cached}")
    elif source.hub:
        rows = cached_rows(source.hub, source.config, source.revision, source.split)
        if rows is not None:
            return _rows(name, source, rows)
    return Found("absent", f"{name}: {_to_get(name, source, path)}")


def _file(source: Source, path: Path) -> Found:
    """Check size and digest; of a file that is not pinned, say the digest."""
    try:
        size = path.stat().st_size
        if source.size is not None and size != source.size:
            return Found("wrong", f"{path} has {size:,} bytes, not the pinned {source.size:,}")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return Found("wrong", f"{path} cannot be read: {error.strerror}")
    if not source.sha256:
        return Found("ok", f"{path} (sha256 {digest[:12]}, {NOBODY})")
    if digest != source.sha256:
        said = f"its sha256 is {digest[:12]}, not {source.sha256[:12]}"
        return Found("wrong", f"{path} is not the pinned file: {said}")
    return Found("ok", f"{path} (sha256 {digest[:12]})")


def _rows(name: str, source: Source, rows: Sequence[dict[str, Any]]) -> Found:
    where = f"{source.hub} at {(source.revision or '')[:12]}"
    try:
        checked_rows(list(rows), source, where)
    except UserError as error:
        return Found("wrong", f"in the hub's cache, {error}".removesuffix("."))
    return Found("ok", f"{name}: in the hub's cache, {where} ({len(rows):,} rows)")


def _to_get(name: str, source: Source, path: Path) -> str:
    pins = ", ".join(
        filter(
            None,
            (
                f"sha256 {source.sha256[:12]}" if source.sha256 else "",
                f"{source.rows:,} rows" if source.rows is not None else "",
            ),
        )
    )
    by_hand = f"put {path.name} ({pins or 'not pinned'}) at {path}"
    got = source.url or source.hub
    return f"podium data fetch {owner(name) or name}, or {by_hand}" if got else by_hand


def _questions(suite: Suite[Any], data: str | Path | None, absent: bool) -> Iterable[Found]:
    """Load each split without asking the hub; what an absent source leaves out is no news."""
    with hub_left_alone():
        for split in suite.splits:
            try:
                size = loaded(suite, split, data)
            except UserError as error:
                if not absent:
                    yield Found("wrong", str(error).removesuffix("."))
            else:
                yield Found("ok", f"{split}: {size:,} questions")


def loaded(suite: Suite[Any], split: Split, data: str | Path | None) -> int:
    """Return how many questions a split has; UserError for an id twice or another number."""
    if data is not None and is_dataclass(suite) and "data" in {one.name for one in fields(suite)}:
        suite = replace(cast(Any, suite), data=data)
    size = len(refuse_duplicates(suite.load(split), f"{suite.name}, {split},"))
    promised = suite.card.sizes.get(split, size)
    if size != promised:
        raise UserError(f"{suite.name}, {split}, has {size} questions, its card says {promised}.")
    return size
