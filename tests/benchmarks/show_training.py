"""Show what training gave, from released logs and finished evaluations; nothing is run.

    PYTHONPATH=. python tests/benchmarks/show_training.py \
        --runs training --evaluations evaluation --write

`--evaluations` are folders that final_evaluation.py wrote. Of several, a page has the pool's
systems of all of them, and of a system that sat twice the later folder's. What stands in --to is
replaced as a whole. --write puts the main rows into docs/training.md, too.
"""

import argparse
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from matplotlib.figure import Figure

from podium.conductor.training.ablations import plan_leaks
from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import SystemRun
from podium.reports.plot import drawable
from podium.reports.training_runs import curve_points, read_run
from tests.benchmarks.final_evaluation import leads
from tests.benchmarks.reproduce import RELEASED
from tests.benchmarks.targets import (
    scored_systems,
    seed_of,
    target_results,
    targets_json,
    targets_markdown,
    training_family,
)
from tests.conductor.training.readme_block import write_page
from tests.conductor.training.training_page import Leaks, Seed, found_seeds, training_page

TITLES = {
    "practice-cpu": "published reward",
    "practice-cpu-cost-aware": "cost-aware reward",
    "practice-cpu-adaptive": "adaptive pools",
    "practice-cpu-recursive": "recursive",
}
"""Config -> its panel's title; those that are released are shown."""
ORDER = ("fixed", "changed-", "rehearsal-", "drawn-")
INDEX = """\
# What training gave [rehearsal]

Made from logs alone; do not edit. `make reproduce` trains,
`python tests/benchmarks/final_evaluation.py` evaluates, and
`make results ARGS="--runs training --evaluations evaluation --write"` writes these pages.

![Share right on held-out questions, step by step, a panel per training](learning.png)

- [training.md](training.md): each seed's learning, bill, worker shares and steps, and what it asks
- [leads.md](leads.md): the lead over the best single worker in hindsight on every pool
"""
LEADS = """\
# Every pool's lead, losses included [rehearsal]

Right in percent, mean of a conductor's seeds (`practice-cpu...`: 3, others 1). Best single: the
best worker alone, in hindsight; lead and dollars are beside that one. Of the oracle's lead: how far
from the best of those and `best-single`, which is chosen per exam on train questions, to the
oracle, which picks one worker a question, so plans can pass 100 %; `-` where it is not above them.
"""
EACH = "- [{name}.md]({name}.md): the field and the targets on the pool `{pool}`, `{split}` split\n"


def draw_panels(panels: Mapping[str, Sequence[Path]], path: Path) -> Path:
    """Draw validation over steps, a panel per training and a line per run; its start is ringed."""
    figure: Any = Figure(figsize=(3.2 * len(panels), 3.2), layout="constrained")
    every: Any = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    for axes, (title, folders) in zip(every[0], panels.items(), strict=True):
        for folder in folders:
            steps, right = curve_points(read_run(folder), "validation")
            (line,) = axes.plot(steps, right, marker=".", label=drawable(folder.name))
            axes.plot(steps[:1], right[:1], marker="o", markersize=9, fillstyle="none",
                      color=line.get_color())  # fmt: skip
        axes.set(title=title, xlabel="step", ylim=(0, 1))
        axes.legend(fontsize="small", loc="lower right")
    every[0][0].set_ylabel("right, held-out, greedy (ring: start)")
    figure.savefig(path, dpi=150)
    return path


def pools(folders: Sequence[Path]) -> dict[str, list[SystemRun]]:
    """Return page's name -> sittings of a pool, of a system that sat twice the later folder's.

    A folder's name is the page's; of several of one pool the first one's.
    """
    names: dict[str, str] = {}
    held: dict[str, dict[str, list[SystemRun]]] = {}
    for report in [one for folder in folders for one in sorted(folder.glob("logs/*/report"))]:
        if not (report / "targets.json").is_file():
            continue
        system_runs = [one for one in load_runs([report.parent])[0] if one.facts.purpose == "eval"]
        pool = system_runs[0].facts.pool
        groups: dict[str, list[SystemRun]] = {}
        for one in system_runs:
            groups.setdefault(training_family(one), []).append(one)
        held.setdefault(names.setdefault(pool, report.parent.name), {}).update(groups)
    if not held:
        raise UserError("No finished evaluation is in these folders: name --out of theirs.")
    pages = {name: [x for one in groups.values() for x in one] for name, groups in held.items()}
    return dict(sorted(pages.items(), key=lambda pair: (_place(pair[0]), pair[0])))


def _place(name: str) -> int:
    found = [at for at, start in enumerate(ORDER) if name.startswith(start)]
    return found[0] if found else len(ORDER)


def write_pages(pages: dict[str, list[SystemRun]], to: Path) -> None:
    """Write each pool's table of targets, leads.md and the index."""
    index, data = INDEX, dict[str, Path]()
    with TemporaryDirectory() as scratch:
        for name, system_runs in pages.items():
            found = scored_systems(system_runs)
            results = target_results(found)
            (to / f"{name}.md").write_text(targets_markdown(found, results))
            data[name] = Path(scratch) / f"{name}.json"
            data[name].write_text(targets_json(found, results))
            index += EACH.format(name=name, pool=found.pool, split=found.split)
        (to / "leads.md").write_text(f"{LEADS}\n{leads(data)}")
    (to / "README.md").write_text(index)


def leaks_in(system_runs: Iterable[SystemRun]) -> dict[tuple[str, str], Leaks]:
    """Return (config, seed) -> how many of its plans on the exams hold the answer."""
    groups: dict[tuple[str, str], list[SystemRun]] = {}
    for one in system_runs:
        config = training_family(one).partition("@")[2]
        if config in TITLES:
            groups.setdefault((config, seed_of(one.facts.system)), []).append(one)
    return {key: plan_leaks(group) for key, group in groups.items()}


def show(given: argparse.Namespace) -> None:
    """Write all files beside their place, then put them there; UserError for a foreign folder."""
    if given.to.exists() and not (given.to / "training.md").is_file():
        raise UserError(f"{given.to} was not written by this command: name another --to.")
    every = {
        config: found_seeds(config, given.released / RELEASED[config], given.runs)
        for config in TITLES
        if (given.released / RELEASED[config] / "log").is_dir()
    }
    part = given.to.with_name(f"{given.to.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    pages = pools(given.evaluations)
    write_pages(pages, part)
    seeds: list[Seed] = [one for group in every.values() for one in group]
    said = leaks_in(pages["fixed"]) if "fixed" in pages else {}
    (part / "training.md").write_text(training_page(seeds, said))
    panels = {TITLES[config]: [one.log for one in group] for config, group in every.items()}
    draw_panels(panels, part / "learning.png")
    shutil.rmtree(given.to, ignore_errors=True)
    part.rename(given.to)


def main(words: Sequence[str] | None = None) -> int:
    """Write the folder, and the block of docs/training.md where that is asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, help="folder of run folders: their ledgers and plans")
    parser.add_argument("--evaluations", type=Path, nargs="+", default=[Path("evaluation")])
    parser.add_argument("--released", type=Path, default=Path("conductor/released"))
    parser.add_argument("--to", type=Path, default=Path("conductor/results"))
    parser.add_argument(
        "--write", action="store_true", help="rewrite the block of docs/training.md, too"
    )
    given = parser.parse_args(words)
    try:
        show(given)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    if given.write:
        write_page(given.to)
    return 0


if __name__ == "__main__":
    sys.exit(main())
