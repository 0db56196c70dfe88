"""Render the site's templates: Jinja with autoescape, one content security policy for all pages."""

import base64
import gzip
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from podium.harness.text import escape_controls
from podium.reports import render
from podium.reports.headline import why_inconclusive
from podium.reports.row import TableRow

CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' file:",
        "style-src 'self' file:",
        "img-src 'self' file: data:",
        "connect-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
"""Security policy: pages use no network and run only podium's own scripts, never a model's text."""
ASSETS = files("podium.reports.site") / "assets"
VENDOR = files("podium.reports.site") / "vendor"


@dataclass(frozen=True, slots=True)
class SiteFrame:
    """The header and footer of every page."""

    pages: tuple[tuple[str, str], ...]
    """(address, name) of each page."""
    made: str


def _harmless(value: object) -> object:
    """Escape control characters, e.g. bidirectional ones; keep `Markup` as HTML."""
    if not isinstance(value, str):
        return value
    plain = escape_controls(value)
    return Markup(plain) if isinstance(value, Markup) else plain


_ENVIRONMENT = Environment(
    finalize=_harmless,
    loader=PackageLoader("podium.reports.site"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_MARKED = re.compile(r"(`|\*\*|\*)(?=\S)(.+?)(?<=\S)\1")
_TAGS = {"`": "code", "**": "strong", "*": "em"}


def prose(text: str) -> Markup:
    """Return a text as HTML: backticks and asterisks are markup, as in our Markdown.

    >>> str(prose("`single` is *below* <b>"))
    '<code>single</code> is <em>below</em> &lt;b&gt;'
    """

    def marked(match: re.Match[str]) -> str:
        tag = _TAGS[match[1]]
        return f"<{tag}>{match[2]}</{tag}>"

    return Markup(_MARKED.sub(marked, str(escape(text))))


def figure_columns(rows: Sequence[Sequence[str]]) -> set[int]:
    """Return the indices of those columns of a table, header row first, that hold numbers."""
    columns = enumerate(zip(*rows[1:], strict=True))
    return {col for col, cells in columns if col and all(_FIGURE.match(cell) for cell in cells)}


_FIGURE = re.compile(r"[-+<\d—(]|$")


def _exact(value: object) -> str:
    """Return a value's exact text, by which the page's scripts sort rows; empty if unknown."""
    return "" if value is None else str(value)


def _across(share: float) -> str:
    """Return the x coordinate of a share (0 to 1) on a bar of width 120."""
    return f"{4 + 112 * share:.1f}"


def _accuracy_interval(row: TableRow) -> str:
    return render.interval(row.ci_low, row.ci_high)


def _difference_interval(row: TableRow) -> str:
    return render.interval(row.paired_low, row.paired_high, signed=True)


_FILTERS: dict[str, Callable[..., Any]] = {
    "percent": render.percent,
    "points": render.points,
    "usd": render.usd,
    "count": render.count,
    "prose": prose,
    "figure_columns": figure_columns,
    "exact": _exact,
    "across": _across,
    "accuracy_interval": _accuracy_interval,
    "difference_interval": _difference_interval,
    "why_inconclusive": why_inconclusive,
}
_ENVIRONMENT.filters.update(_FILTERS)  # pyright: ignore[reportUnknownMemberType]  # jinja's own


def render_page(template: str, **context: Any) -> str:
    """Return a page of HTML; every text in `context` is escaped."""
    return _ENVIRONMENT.get_template(template).render(csp=CSP, page=template, **context)


def query_address(block: str, question: str, epoch: int, system: str) -> str:
    """Return the address, on the query page, of a system's answer to a question."""
    place = "/".join((quote(block, safe=""), quote(question, safe=""), str(epoch)))
    return f"query.html#/q/{place}?sys={quote(system, safe='')}"


def data_script(name: str, data: bytes) -> str:
    """Return a data file as a script, because a page opened from disk can load nothing else."""
    packed = base64.b64encode(gzip.compress(data, mtime=0)).decode()
    return f'podium.put({json.dumps(name)}, "{packed}");\n'
