"""`podium data fetch`: put what sources.toml pins into the hub's cache or the data folder.

What is here is left as it is, right or wrong. Checks are those of data_checks.py.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from harness.errors import UserError
from harness.text import say
from suites.data_checks import Found, Item, items, look
from suites.download import download
from suites.fetch import Source, by_hand, data_folder, pinned_hub_rows, sources
from suites.hub import hub_file, refusal


def fetch(
    names: Sequence[str], data: str | Path | None = None, say: Callable[[str], None] = say
) -> int:
    """Fetch what is absent of these suites and say where it is; return 1 when something is wrong.

    UserError, once all were tried, with a line for each thing that stood in the way.
    """
    wrong, refused = False, list[UserError]()
    for item in items(names):
        say(item.name)
        for found in _fetched(item, data, refused):
            wrong |= found.state == "wrong"
            say(str(found))
    if refused:
        raise UserError("\n".join(dict.fromkeys(map(str, refused))))
    if wrong:
        say("What is wrong is not overwritten: move it away and try again.")
    return 1 if wrong else 0


def _fetched(item: Item, data: str | Path | None, refused: list[UserError]) -> list[Found]:
    if not item.sources:
        return [Found("ok", "generated; there is nothing to fetch")]
    found = list[Found]()
    for name in item.sources:
        here = look(name, data)
        if here.state == "absent" and sources()[name].instead_of:
            continue
        if here.state == "absent":
            try:
                get(sources()[name], data)
                here = look(name, data)
            except UserError as error:
                refused.append(error)
                here = Found("absent", f"{name}: could not be fetched")
        found.append(here)
    return found


def get(source: Source, data: str | Path | None) -> None:
    """Download one source; UserError says why not, and which file to put where."""
    path = data_folder(data) / source.file
    if source.url:
        download(source.url, path, source.sha256, source.size)
    elif source.hub and source.hub_file:
        try:
            hub_file(source.hub, source.hub_file, source.revision)
        except Exception as error:
            raise refusal(error, source.hub, by_hand(source, data)) from error
    elif source.hub:
        pinned_hub_rows(source, data)
    else:
        raise UserError(f"There is no {path}, and no hub has it: {by_hand(source, data)}.")
