"""The table of `podium route`: each system against the best single worker, as text and files."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from textwrap import wrap

import numpy as np

from podium.harness.errors import UserError
from podium.harness.learning import RouteComparison, RoutedSystem, RouteKind
from podium.harness.text import pluralise
from podium.reports import render
from podium.reports.columns import label, narrow_label
from podium.reports.costs import aiq
from podium.reports.intervals import Difference, Values, accuracy_columns, difference, holm_adjusted
from podium.reports.render import UNKNOWN, Columns, interval, percent, points, shortened, usd_about
from podium.reports.stats import Floats, clustered_error, standard_error


@dataclass(frozen=True, slots=True)
class RouteRow:
    """One system's row in the table of `podium route`; shares are fractions; None is unknown."""

    system: str
    kind: RouteKind
    n: int
    accuracy: float
    ci_low: float | None
    ci_high: float | None
    difference: float
    difference_low: float | None
    difference_high: float | None
    detectable: float | None
    verdict: str
    hindsight: float | None
    """Difference of a router from the worker that is best, in hindsight, on the same questions."""
    hindsight_low: float | None
    hindsight_high: float | None
    p_value: float | None
    p_holm: float | None
    usd_per_query: float | None
    tokens_out_per_query: float | None
    gap_closed: float | None
    """Share that the system closes of the accuracy gap from reference to oracle; None: no gap."""
    elsewhere: float | None  # share of questions that it sends to another worker
    aiq: float | None
    note: str
    difference_se: float | None = None
    difference_se_clustered: float | None = None
    """Standard error of the difference, clustered by question group (CR1): a sensitivity check."""


def route_rows(routing: RouteComparison) -> tuple[RouteRow, ...]:
    """Return one table row per system, in the order of `routing.systems`."""
    reference, hindsight, oracle = (
        _system_named(routing, name)
        for name in (routing.reference, routing.hindsight, routing.oracle)
    )
    pairs = [(system, _difference(routing, system, reference)) for system in routing.systems]
    holm = iter(holm_adjusted([delta for system, delta in pairs if system.kind == "router"]))
    base = float(reference.scores.mean())
    way = float(oracle.scores.mean()) - base
    several = 1 < len(set(routing.clusters)) < len(routing.clusters)
    rows: list[RouteRow] = []
    for system, delta in pairs:
        score, deltas = float(system.scores.mean()), system.scores - reference.scores
        judged = next(holm) if system.kind == "router" else None
        later = _difference(routing, system, hindsight) if judged else None
        frontier = routing.frontiers.get(system.system, ())
        rows.append(
            RouteRow(
                system=system.system,
                kind=system.kind,
                n=len(routing.questions),
                **{**accuracy_columns(_values(routing, system)), "accuracy": score},
                difference=delta.paired_diff,
                difference_low=delta.paired_low,
                difference_high=delta.paired_high,
                detectable=delta.min_detectable,
                verdict=judged.verdict if judged else "",
                hindsight=later and later.paired_diff,
                hindsight_low=later and later.paired_low,
                hindsight_high=later and later.paired_high,
                p_value=judged and judged.p_value,
                p_holm=judged and judged.p_holm,
                usd_per_query=_mean(system.usd),
                tokens_out_per_query=_mean(system.tokens_out),
                gap_closed=(score - base) / way if way > 0 else None,
                elsewhere=system.elsewhere,
                aiq=_aiq(routing, [(point.usd, point.score) for point in frontier]),
                note=system.note,
                difference_se=standard_error(deltas),
                # If every question is its own cluster, both errors are the same.
                difference_se_clustered=(
                    clustered_error(deltas, routing.clusters) if several else None
                ),
            )
        )
    return tuple(rows)


def _system_named(routing: RouteComparison, name: str) -> RoutedSystem:
    match = next((system for system in routing.systems if system.system == name), None)
    if match is None:
        raise UserError(f"There is no row {name!r} to compare with. Add it to `systems`.")
    return match


def _values(routing: RouteComparison, system: RoutedSystem) -> Values:
    scores: list[float] = system.scores.tolist()
    return {name: [score] for name, score in zip(routing.questions, scores, strict=True)}


def _difference(routing: RouteComparison, row: RoutedSystem, reference: RoutedSystem) -> Difference:
    delta = difference(_values(routing, row), _values(routing, reference))
    if delta is None:
        raise UserError(
            f"{routing.name}: no test question of this split has a score. Name another --split."
        )
    return delta


def _mean(values: Floats) -> float | None:
    """Return the mean of values; None if a value is unknown or there are no values."""
    return None if not values.size or np.isnan(values).any() else float(values.mean())


def detectable_effect(rows: Sequence[RouteRow]) -> tuple[float, float, float] | None:
    """Return median, minimum, maximum detectable difference of routers, else workers, or None."""
    for kind in ("router", "single"):
        effects = [row.detectable for row in rows if row.kind == kind and row.detectable]
        if effects:
            return median(effects), min(effects), max(effects)
    return None


def _singles_usd(routing: RouteComparison) -> tuple[float, float] | None:
    usd = [_mean(system.usd) for system in routing.systems if system.kind == "single"]
    costs = [value for value in usd if value is not None]
    return (min(costs), max(costs)) if costs and len(costs) == len(usd) else None


def _aiq(routing: RouteComparison, points: Sequence[tuple[float, float]]) -> float | None:
    """Return AIQ (mean score over a cost range) from the cheapest to the dearest single worker."""
    between = _singles_usd(routing)
    if not points or between is None:
        return None
    costs, scores = np.array(points).T
    return aiq(costs, scores, *between)


SCHEMA = "podium-route-1"
MARK = "<!-- podium route -->"
COLUMNS = tuple(field.name for field in fields(RouteRow))
MARKS = {"route.md": MARK, "route.csv": ",".join(COLUMNS[:8]), "route.json": f'"{SCHEMA}"'}
NUMBER = render.rounded(9)
NAME = 44
LEFT_OUT = ("moved %", "Holm p", label("ci_low"), "gap %")
"""The order in which columns are dropped on a narrow terminal; route.md has all columns."""
FIGURES: Columns[RouteRow] = (
    (narrow_label("accuracy"), lambda row: percent(row.accuracy)),
    (label("ci_low"), lambda row: interval(row.ci_low, row.ci_high)),
    ("vs best", lambda row: points(row.difference)),
    (label("ci_low"), lambda row: interval(row.difference_low, row.difference_high, signed=True)),
)
VERDICTS: Columns[RouteRow] = (
    (label("verdict"), lambda row: row.verdict or UNKNOWN),
    ("Holm p", lambda row: UNKNOWN if row.p_holm is None else f"{row.p_holm:.3f}"),
    ("gap %", lambda row: percent(row.gap_closed if row.kind == "router" else None)),
    ("moved %", lambda row: percent(row.elsewhere if row.kind == "router" else None)),
)
USD: Columns[RouteRow] = ((label("usd_per_query"), lambda row: usd_about(row.usd_per_query)),)
ABOUT = (
    "name", "source", "label", "split", "workers", "draws", "seed", "embedder", "refits",
    "reference", "hindsight", "oracle", "notes",
)  # fmt: skip
LEGEND = (
    "vs best: against best-single, which was chosen on the train questions. Verdicts are for "
    "routers, paired by question; better and worse need an interval without 0, at least the "
    "smallest detectable difference, and both a sign test and a p-value adjusted for the number "
    "of routers (Holm) below 5 %; everything else is inconclusive. gap %: share of the gap from "
    "best-single to "
    "oracle-router. moved %: questions sent to another worker."
)
DECIDES_NOTHING = 50
"""With fewer questions, a note says that they are too few for a decision (our choice)."""


def write_route(routing: RouteComparison, out: Path) -> tuple[Path, ...]:
    """Write route.md, .csv and .json into `out`; UserError if unwritable or not podium's files."""
    render.refuse_foreign(out, MARKS)
    rows = route_rows(routing)
    files = {
        "route.md": route_markdown(routing, rows),
        "route.csv": render.rows_csv(rows, COLUMNS, NUMBER),
        "route.json": render.as_json(_data(routing, rows)),
    }
    return render.write_files(out, files)


def route_text(routing: RouteComparison) -> str:
    """Return the router tables and notes as text, fitted to the terminal's width."""
    rows = route_rows(routing)
    fitted = (render.fitted(table, LEFT_OUT) for table in _tables(rows, NAME))
    tables = [[*lines, *render.left_out(gone)] for lines, gone in fitted]
    above = _wrapped([_about(routing), *headline(routing, rows)])
    below = _wrapped([LEGEND, *_by_price(routing, rows), *_notes(routing, rows)])
    return "\n\n".join("\n".join(section) for section in (above, *tables, below))


def _tables(rows: Sequence[RouteRow], longest: int | None = None) -> list[list[Sequence[str]]]:
    """Return two tables: routers with baselines; single workers. Names are cut to `longest`."""

    def name(row: RouteRow) -> str:
        system_name = row.system.removeprefix("single:") if row.kind == "single" else row.system
        return system_name if longest is None else shortened(system_name, longest)

    cost_columns = USD if any(row.usd_per_query is not None for row in rows) else ()
    singles = sorted((row for row in rows if row.kind == "single"), key=lambda row: -row.accuracy)
    routers = [row for row in rows if row.kind != "single"]
    return [
        render.tabulate((("system", name), *FIGURES, *VERDICTS, *cost_columns), routers),
        render.tabulate((("single worker", name), *FIGURES, *cost_columns), singles),
    ]


def _wrapped(sentences: Sequence[str]) -> list[str]:
    room = min(render.width(), render.WIDTH)
    return [line for sentence in sentences for line in wrap(sentence, room, subsequent_indent="  ")]


def headline(routing: RouteComparison, rows: Sequence[RouteRow]) -> list[str]:
    """Return sentences on the smallest difference that the number of questions can show."""
    n, effect = len(routing.questions), detectable_effect(rows)
    if effect is None:
        questions = f"{n} question" if n == 1 else f"{n} questions"
        return [
            f"The smallest difference that {questions} can show is unknown: each router equals "
            "best-single or differs by the same amount on all questions."
        ]
    usual, smallest, largest = effect
    span = f", {100 * smallest:.1f} to {100 * largest:.1f} by system" if largest > smallest else ""
    sentence = (
        f"With {n} questions a difference under {100 * usual:.1f} points cannot be distinguished "
        f"from chance (80 % power{span})."
    )
    few = [f"{n} questions are too few for a decision."] if n < DECIDES_NOTHING else []
    return [sentence, *few]


def _about(routing: RouteComparison) -> str:
    learnt = f", embedder {routing.embedder}, {routing.refits} refits" if routing.refits else ""
    return (
        f"{routing.name} ({routing.label}): {routing.workers} workers, "
        f"{pluralise(routing.draws, 'draw')} a question; {routing.split}; "
        f"seed {routing.seed}{learnt}"
    )


def _by_price(routing: RouteComparison, rows: Sequence[RouteRow]) -> list[str]:
    # The baseline: a random mix of single workers that ignores the question.
    singles = [(system.usd.mean(), system.scores.mean()) for system in routing.systems
               if system.kind == "single"]  # fmt: skip
    between, mixed = _singles_usd(routing), _aiq(routing, singles)
    figures = [f"{row.system} {row.aiq:.3f}" for row in rows if row.aiq is not None]
    if between is None or mixed is None or not figures:
        return []
    low, high = map(usd_about, between)
    return [
        f"AIQ, the mean accuracy that a budget from USD {low} to {high} per query buys (sweep "
        f"over the willingness to pay, points in route.json): {', '.join(figures)}; single workers "
        f"mixed at random, picked in hindsight, {mixed:.3f}."
    ]


def _notes(routing: RouteComparison, rows: Sequence[RouteRow]) -> list[str]:
    row_notes = [f"{row.system}: {row.note}." for row in rows if row.note]
    costless = [] if _singles_usd(routing) else ["No dollars: a worker's dollars are unknown."]
    judged = [*_in_hindsight(rows), *_together(routing, rows)]
    return [*judged, *row_notes, *costless, *routing.notes, f"Source: {routing.source}."]


def _together(routing: RouteComparison, rows: Sequence[RouteRow]) -> list[str]:
    """Return a sentence on routers' standard errors when clustered by question group."""
    ratios = [
        row.difference_se_clustered / row.difference_se
        for row in rows
        if row.kind == "router" and row.difference_se and row.difference_se_clustered
    ]
    if not ratios:
        return []
    return [
        f"Clustered by comparison or subject ({len(set(routing.clusters))} clusters), a router's "
        f"difference has {min(ratios):.2f} to {max(ratios):.2f} times the standard error that "
        "intervals and verdicts here use (CR1; a check, and too small with few clusters)."
    ]


def _in_hindsight(rows: Sequence[RouteRow]) -> list[str]:
    return [
        f"{row.system} is better than best-single; against the best single worker in hindsight it "
        f"is {points(row.hindsight)} "
        f"{interval(row.hindsight_low, row.hindsight_high, signed=True)}."
        for row in rows
        if row.verdict == "better"
    ]


def route_markdown(routing: RouteComparison, rows: Sequence[RouteRow]) -> str:
    """Return the text of route.md: tables, notes and the points of every cost frontier."""
    above = [MARK, f"# Routers on {routing.name}", _about(routing), *headline(routing, rows)]
    tables = [render.markdown_table(table) for table in _tables(rows)]
    below = [LEGEND, *_by_price(routing, rows)]
    notes = [f"- {note}" for note in _notes(routing, rows)]
    sections = [*above, *tables, *below, "\n".join(notes), *_frontiers(routing)]
    return "\n\n".join(sections) + "\n"


def _frontiers(routing: RouteComparison) -> list[str]:
    sections: list[str] = []
    for name, frontier in routing.frontiers.items():
        lines = [("USD per right answer", narrow_label("accuracy"), label("usd_per_query"))]
        for point in frontier:
            paid = "any price" if point.willingness is None else usd_about(point.willingness)
            lines.append((paid, percent(point.score), usd_about(point.usd)))
        sections += [f"## {name}: by willingness to pay", render.markdown_table(lines, left=0)]
    return sections


def _data(routing: RouteComparison, rows: Sequence[RouteRow]) -> Mapping[str, object]:
    return {
        "schema": SCHEMA,
        "about": {name: getattr(routing, name) for name in ABOUT},
        "headline": headline(routing, rows),
        "rows": [{name: NUMBER(value) for name, value in asdict(row).items()} for row in rows],
        "frontiers": {name: list(map(asdict, curve)) for name, curve in routing.frontiers.items()},
    }
