"""One run's systems in a Markdown table: accuracy by suite, cost, and how far one is from others.

Shared by benchmarks that run a few systems over practice suites. Seeds of one training are one row.
"""

from collections.abc import Sequence
from pathlib import Path

from podium.harness.ledger.system_runs import load_runs
from podium.reports.stats import CrossedMean
from podium.reports.targets import ScoredSystem, ScoredSystems, scored_systems, system_difference


def read(folder: Path, beside: Sequence[Path] = ()) -> ScoredSystems:
    """Return who sat the suites of one run's directory, and who else sat them in other runs'."""
    sat = load_runs([folder], recursive=False)[0]
    known = {one.facts.system for one in sat}
    others = load_runs(beside, recursive=False)[0] if beside else ()
    return scored_systems([*sat, *(one for one in others if one.facts.system not in known)])


def table(found: ScoredSystems, reference: str, names: Sequence[tuple[str, str]]) -> str:
    """Return a line per (contestant, what it is called here), each less the reference.

    Differences are paired by question, with Student's 95 % interval (seeds and questions vary).
    """
    short = [suite.removeprefix("practice-") for suite in found.suites]
    heads = ("system", *short, "mean", "calls", "USD a query", f"less {dict(names)[reference]}")
    base = _of(found, reference)
    lines = [heads, ("---",) * len(heads)]
    for name, called in names:
        one = _of(found, name)
        less = "" if one is base else said(system_difference(found.suites, one, base).found)
        lines.append((called, *_figures(one, found.suites), less))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def by_suite(found: ScoredSystems, reference: str, names: Sequence[tuple[str, str]]) -> str:
    """Return the same differences suite by suite."""
    base = _of(found, reference)
    heads = (f"less {dict(names)[reference]}", *found.suites)
    lines = [heads, ("---",) * len(heads)]
    for name, called in names:
        if name != reference:
            suites = system_difference(found.suites, _of(found, name), base).suites
            lines.append((called, *(said(suites[suite]) for suite in found.suites)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _of(found: ScoredSystems, name: str) -> ScoredSystem:
    one = found.named(name)
    if one is None:
        known = ", ".join(each.name for each in found.systems)
        raise LookupError(f"{name} did not sit all suites; who did: {known}.")
    return one


def _figures(one: ScoredSystem, suites: Sequence[str]) -> tuple[str, ...]:
    costs = one.costs
    return (
        *(f"{100 * one.means[suite]:.1f}" for suite in suites),
        f"{100 * one.mean:.1f}",
        "-" if costs.worker_calls is None else f"{costs.worker_calls:.2f}",
        "-" if costs.usd is None else f"{costs.usd:.5f}",
    )


def said(found: CrossedMean) -> str:
    """Return a difference in points, with its interval."""
    if found.interval is None:
        return f"{100 * found.mean:+.1f}"
    low, high = found.interval
    return f"{100 * found.mean:+.1f} [{100 * low:+.1f},{100 * high:+.1f}]"
