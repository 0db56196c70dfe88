"""The router table: on a terminal, and as route.md, route.csv and route.json.

What can be told apart at all stands first. Not here: the figures (reports/route_rows.py).
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from textwrap import wrap

from harness.escape import cell
from reports.files import (
    markdown_file,
    refuse_foreign,
    refuse_unwritable,
    text_file,
    write_files,
)
from reports.render import UNKNOWN, aligned, interval, percent, points
from reports.route_rows import (
    FrontierPoint,
    RouteRow,
    Routing,
    bounds,
    clustering,
    detectable_effect,
    route_rows,
    singles_aiq,
)

SCHEMA = "podium-route-1"
MARK = "<!-- podium route -->"
COLUMNS = tuple(field.name for field in fields(RouteRow))
MARKS = {"route.md": MARK, "route.csv": ",".join(COLUMNS[:8]), "route.json": f'"{SCHEMA}"'}
WIDTH = 120
NAME = 44
HEADER = (
    "system", "acc %", "95 % interval", "vs best", "95 % interval", "verdict", "Holm p",
    "gap %", "moved %",
)  # fmt: skip
SINGLES = ("single worker", *HEADER[1:5])
DOLLARS = "USD/query"
ABOUT = (
    "name", "source", "label", "split", "workers", "draws", "seed", "embedder", "refits",
    "reference", "hindsight", "oracle", "notes",
)  # fmt: skip
LEGEND = (
    "vs best: against best-single, which was chosen on the questions that teach. Verdicts are for "
    "routers: paired by question; better and worse need an interval without 0, a difference of at "
    "least what can be detected, and both a sign test and a p-value adjusted for the number of "
    "routers (Holm) below 5 %; all else is inconclusive. gap %: of the way from best-single to "
    "oracle-router. moved %: questions sent to another worker."
)
DECIDES_NOTHING = 50
"""Below so many questions a table says that it decides nothing: a choice of ours."""


def write_route(routing: Routing, out: Path) -> tuple[Path, ...]:
    """Write route.md, route.csv and route.json; UserError for foreign files or a bad directory."""
    refuse_foreign_route(out)
    rows = route_rows(routing)
    return write_files(
        out,
        {
            "route.md": markdown_file(route_markdown(routing, rows), MARK),
            "route.csv": text_file(_csv(rows)),
            "route.json": text_file(_json(routing, rows)),
        },
    )


def refuse_foreign_route(out: Path) -> None:
    """Raise UserError, before anything is computed, when the files could not be written."""
    refuse_unwritable(out)
    refuse_foreign(out, MARKS)


def route_text(routing: Routing) -> str:
    """Return the tables for a terminal, no line longer than 120 characters."""
    rows = route_rows(routing)
    tables = [[line[:WIDTH].rstrip() for line in aligned(one)] for one in _tables(rows, NAME)]
    above = _wrapped([*_about(routing), *headline(routing, rows)])
    below = _wrapped([LEGEND, *_by_price(routing, rows), *_notes(routing, rows)])
    return "\n\n".join("\n".join(part) for part in (above, *tables, below))


def _tables(rows: Sequence[RouteRow], longest: int | None = None) -> list[list[Sequence[str]]]:
    """Return two tables, headers first: routers with anchors, and single workers by accuracy."""
    priced = any(row.usd_per_query is not None for row in rows)
    last = (DOLLARS,) if priced else ()
    singles = sorted((row for row in rows if row.kind == "single"), key=lambda row: -row.accuracy)
    named = [_named(_cells(row, priced=priced), longest) for row in rows if row.kind != "single"]
    alone = [_named(_shorter(row, priced=priced), longest) for row in singles]
    return [[(*HEADER, *last), *named], [(*SINGLES, *last), *alone]]


def _named(cells: Sequence[str], longest: int | None) -> Sequence[str]:
    """Return cells with a name that is no longer than it may be."""
    name = cells[0]
    if longest is None or len(name) <= longest:
        return cells
    return (name[: longest - 1] + "~", *cells[1:])


def _wrapped(sentences: Sequence[str]) -> list[str]:
    return [line for one in sentences for line in wrap(one, WIDTH, subsequent_indent="  ")]


def headline(routing: Routing, rows: Sequence[RouteRow]) -> list[str]:
    """Return what so many questions can show."""
    n, found = len(routing.questions), detectable_effect(rows)
    if found is None:
        asked = f"{n} question" if n == 1 else f"{n} questions"
        return [
            f"What {asked} could show is unknown: nobody differs from best-single, or on all "
            "questions alike."
        ]
    usual, least, most = found
    span = f", {100 * least:.1f} to {100 * most:.1f} by system" if most > least else ""
    told = (
        f"With {n} questions a difference under {100 * usual:.1f} points cannot be told from "
        f"chance (80 % power{span})."
    )
    return [told, f"{n} questions decide nothing."] if n < DECIDES_NOTHING else [told]


def _about(routing: Routing) -> list[str]:
    learnt = f", embedder {routing.embedder}, {routing.refits} refits" if routing.refits else ""
    drawn = f"{routing.draws} draws" if routing.draws > 1 else "1 draw"
    return [
        f"{routing.name} ({routing.label}): {routing.workers} workers, {drawn} a question; "
        f"{routing.split}; seed {routing.seed}{learnt}"
    ]


def _cells(row: RouteRow, *, priced: bool) -> Sequence[str]:
    router = row.kind == "router"
    gap = row.gap_closed if router else None
    return (
        row.system,
        *_figures(row),
        row.verdict or UNKNOWN,
        UNKNOWN if row.p_holm is None else f"{row.p_holm:.3f}",
        percent(gap),
        percent(row.elsewhere if router else None),
        *((dollars(row.usd_per_query),) if priced else ()),
    )


def _shorter(row: RouteRow, *, priced: bool) -> Sequence[str]:
    name = row.system.removeprefix("single:")
    return (name, *_figures(row), *((dollars(row.usd_per_query),) if priced else ()))


def _figures(row: RouteRow) -> Sequence[str]:
    return (
        percent(row.accuracy),
        interval(row.ci_low, row.ci_high),
        points(row.difference),
        interval(row.difference_low, row.difference_high, signed=True),
    )


def dollars(value: float | None) -> str:
    """Return mean dollars with three significant digits; a dash where they are unknown.

    >>> dollars(0.00012345), dollars(1.5), dollars(None)
    ('0.000123', '1.50', '-')
    """
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    places = max(2, 2 - int(f"{value:e}".partition("e")[2]))
    return f"{value:.{places}f}"


def _by_price(routing: Routing, rows: Sequence[RouteRow]) -> list[str]:
    """Return AIQ of each router, and of single workers mixed at random; nothing without dollars."""
    between, mixed = bounds(routing), singles_aiq(routing)
    found = [f"{row.system} {row.aiq:.3f}" for row in rows if row.aiq is not None]
    if between is None or mixed is None or not found:
        return []
    low, high = map(dollars, between)
    return [
        f"AIQ, the mean accuracy that a budget from USD {low} to {high} a query buys (sweep over "
        f"the willingness to pay, points in route.json): {', '.join(found)}; single workers mixed "
        f"at random, picked in hindsight, {mixed:.3f}."
    ]


def _notes(routing: Routing, rows: Sequence[RouteRow]) -> list[str]:
    own = [f"{row.system}: {row.note}." for row in rows if row.note]
    costless = [] if bounds(routing) else ["No dollars: some worker's are unknown."]
    return [
        *_in_hindsight(rows),
        *_together(routing, rows),
        *own,
        *costless,
        *routing.notes,
        f"Source: {routing.source}.",
    ]


def _together(routing: Routing, rows: Sequence[RouteRow]) -> list[str]:
    """Say what becomes of the errors when questions that came together are taken together."""
    found = clustering(routing, rows)
    if found is None:
        return []
    clusters, least, most = found
    return [
        f"Questions that came together (one contest, one subject: {clusters} clusters) taken "
        f"together, a router's difference has {least:.2f} to {most:.2f} times the standard error "
        "that intervals and verdicts here go by (CR1; a check, and too small with few clusters)."
    ]


def _in_hindsight(rows: Sequence[RouteRow]) -> list[str]:
    """Say of each router that is better how it does against the best single worker there was."""
    return [
        f"{row.system} is better than best-single; against the best single worker in hindsight it "
        f"is {points(row.hindsight)} "
        f"{interval(row.hindsight_low, row.hindsight_high, signed=True)}."
        for row in rows
        if row.verdict == "better"
    ]


def route_markdown(routing: Routing, rows: Sequence[RouteRow]) -> str:
    """Return route.md: the same table, its notes, and the points of every frontier."""
    above = [MARK, f"# Routers on {routing.name}", *_about(routing), *headline(routing, rows)]
    tables = [_table(one) for one in _tables(rows)]
    below = [LEGEND, *_by_price(routing, rows)]
    notes = [f"- {note}" for note in _notes(routing, rows)]
    parts = [*above, *tables, *below, "\n".join(notes), *_frontiers(routing)]
    return "\n\n".join(parts) + "\n"


def _frontiers(routing: Routing) -> list[str]:
    parts: list[str] = []
    for name, found in routing.frontiers.items():
        head = [_line(("USD per right answer", "acc %", "USD/query")), _line(["---:"] * 3)]
        parts += [f"## {name}: what it would pay", "\n".join([*head, *map(_point, found)])]
    return parts


def _point(one: FrontierPoint) -> str:
    paid = "any price" if one.willingness is None else dollars(one.willingness)
    return _line((paid, percent(one.score), dollars(one.usd)))


def _table(rows: Sequence[Sequence[str]]) -> str:
    ruler = ["---", *["---:"] * (len(rows[0]) - 1)]
    return "\n".join(map(_line, (rows[0], ruler, *rows[1:])))


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(cell, cells)) + " |"


def _csv(rows: Sequence[RouteRow]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        cells = asdict(row).items()
        writer.writerow({name: "" if value is None else _number(value) for name, value in cells})
    return text.getvalue()


def _json(routing: Routing, rows: Sequence[RouteRow]) -> str:
    data = {
        "schema": SCHEMA,
        "about": {name: getattr(routing, name) for name in ABOUT},
        "headline": headline(routing, rows),
        "rows": [{name: _number(value) for name, value in asdict(row).items()} for row in rows],
        "frontiers": {name: list(map(asdict, found)) for name, found in routing.frontiers.items()},
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _number(value: object) -> object:
    return round(value, 9) if isinstance(value, float) else value
