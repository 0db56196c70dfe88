"""What training gave, in docs/training.md: a block made of conductor/results, and of nothing else.

benchmarks/show_training.py writes it with --write; test_results.py compares. Not here: how
conductor/results is made (benchmarks/show_training.py).
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import ROOT
from tests.conductor.training.training_page import table

PAGE = ROOT / "docs" / "training.md"
RESULTS = ROOT / "conductor" / "results"
START, END = "<!-- training:start -->\n", "<!-- training:end -->"
SHOWN = (
    "conductor@practice-cpu-cost-aware", "conductor@practice-cpu",
    "conductor@practice-cpu-adaptive", "conductor-untrained", "oracle", "template-router",
    "best-of-n", "best-single", "router-logistic", "moa-lite", "conductor@practice-cpu-recursive",
)  # fmt: skip
COSTS = ("worker calls", "worker tokens out", "all tokens", "USD/query")
PLAIN, CHEAP, ADAPTIVE = SHOWN[1], SHOWN[0], SHOWN[2]
TEMPLATE = "not inferior to template-router"
REACH = 60
"""Percent of the way to the oracle that is asked of an adaptive conductor on a changed pool."""
TIE = 2
"""Points that may be lost where planning should not win."""
CHANGED = "changed-rehearsal-"
Row = Mapping[str, str]


def block(results: Path = RESULTS) -> str:
    """Return the block's Markdown, from fixed.md and leads.md."""
    fixed = (results / "fixed.md").read_text()
    lines = rows((results / "leads.md").read_text())
    return "\n\n".join(
        [main_rows(fixed), f"{_template(fixed)}\n{_changed(lines)}\n{_regimes(lines)}"]
    )


def main_rows(fixed: str) -> str:
    """Return the table's main rows, best first, with each seed of what has several."""
    found = {row["system"]: row for row in rows(fixed.partition("\n## ")[0])}
    shown = [
        (system, *_right(fixed, row), *(row[x] for x in COSTS))
        for system, row in found.items()
        if named(system) in SHOWN
    ]
    return table(("system", "right, %", "seed by seed", *COSTS), shown)


def named(cell: str) -> str:
    """Return the name in a cell: without its backticks and the star of a bound."""
    return cell.replace("\\*", "").strip("`")


def rows(text: str) -> list[Row]:
    """Return the lines of the first table of a Markdown text, by their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(cells[0], line, strict=True)) for line in cells[2:]]


def section(fixed: str, name: str) -> str:
    """Return what a page of targets says of one contestant; empty where it did not compete."""
    return fixed.partition(f"\n## `{name}`\n")[2].partition("\n## ")[0]


def _tables(text: str) -> list[list[Row]]:
    return [rows(part) for part in text.split("\n\n") if part.startswith("|")]


def _seeds(fixed: str, name: str) -> list[str]:
    return [row["mean"] for one in _tables(section(fixed, name)) for row in one if "seed" in row]


def _right(fixed: str, row: Row) -> tuple[str, str]:
    """Return a mean with its interval, where it has one, and each seed's mean."""
    name = named(row["system"])
    found = re.search(r" (\[.+?\])", section(fixed, name))
    return f"{row['mean']} {found[1] if found else ''}".rstrip(), " / ".join(_seeds(fixed, name))


def _template(fixed: str) -> str:
    """Say how each training stands beside the best rule by hand."""
    said: list[str] = []
    reached = 0
    for name in (PLAIN, CHEAP, ADAPTIVE):
        for row in (row for one in _tables(section(fixed, name)) for row in one):
            if row.get("target") == TEMPLATE:
                said.append(f"`{name}` {row['found']} ({row['verdict']})")
                reached += row["verdict"] == "reached"
    return (
        "- Target: not inferior to `template-router`, which picks among written plans (interval "
        f"above -2.0 points). {reached} of {len(said)} conductors reach it: {', '.join(said)}."
    )


def _changed(leads: Sequence[Row]) -> str:
    """Say how far each training goes where workers are in another order or left out."""
    said: list[str] = []
    for name in (ADAPTIVE, PLAIN):
        found = {row["pool"].removeprefix(CHANGED): row["of the oracle's lead"] for row in leads
                 if row["conductor"] == name and row["pool"].startswith(CHANGED)}  # fmt: skip
        shares = [int(cell.removesuffix(" %")) for cell in found.values() if cell != "-"]
        far = sum(share >= REACH for share in shares)
        each = ", ".join(f"{pool} {share}" for pool, share in found.items())
        said.append(f"`{name}` reaches it on {far} of {len(found)} pools ({each})")
    return (
        "- Target if workers are in another order or left out: at least "
        f"{REACH} % of the way from the best single worker to the oracle. {'; '.join(said)}."
    )


def _regimes(leads: Sequence[Row]) -> str:
    """Say what plans gain and cost where they should gain nothing."""
    found = [row for row in leads if row["pool"].startswith("rehearsal-")]
    tied = [row for row in found if float(row["lead"]) >= -TIE]
    cheap = [row for row in tied if float(row["dollars beside it"].split()[0]) <= 1]
    said = [
        f"`{row['conductor']}` {row['lead']} {row['interval']} for {row['dollars beside it']} "
        "the dollars"
        for row in found
    ]
    return (
        f"- Target on pools where planning should not win: at most {TIE} points less than the best "
        f"single worker in hindsight, at no higher cost. {len(tied)} of {len(found)} conductors "
        f"are that close; {len(cheap)} of these cost no more ({'; '.join(said)})."
    )


def parted(page: str) -> tuple[str, str, str]:
    """Return what stands before the block, the block, and what stands after it."""
    before, rest = page.split(START)
    stands, after = rest.split(END)
    return before, stands.strip(), after


def write_page(results: Path = RESULTS) -> None:
    """Put the block into the page."""
    before, _, after = parted(PAGE.read_text())
    PAGE.write_text(f"{before}{START}{block(results)}\n{END}{after}")
