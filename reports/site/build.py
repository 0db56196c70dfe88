"""The order of it all: a report and its audit become pages and their data, in one folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports import render
from reports.report import Report
from reports.site.pages import ASSETS, VENDOR


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """The options of a site."""

    texts: bool | None = None
    """Whether queries are there in full; None: up to `MOST` of them."""


@dataclass(frozen=True, slots=True)
class Site:
    """What was written."""

    folder: Path
    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    """A sentence for each thing that the site leaves out."""


def write_site(
    dirs: Sequence[Path], report: Report, out: Path, wanted: SiteOptions = SiteOptions()
) -> Site:
    """Write the site of a report, made from the logs below `dirs`, into `out`."""
    contents: dict[str, render.Content] = {}
    for folder in (ASSETS, VENDOR):
        for one in folder.iterdir():
            if one.name.endswith((".js", ".css", ".txt")):
                contents[f"assets/{one.name}"] = one.read_text(encoding="utf-8")
    return Site(out, render.write_files(out, contents))
