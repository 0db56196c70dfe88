"""The table of targets as Markdown and as JSON, from logs alone."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

from harness.errors import UserError
from harness.plural import counted
from harness.sittings import read_sittings
from reports.contest import Contest, Contestant, asked, contest
from reports.files import (
    markdown_file,
    refuse_foreign,
    refuse_unwritable,
    text_file,
    write_files,
)
from reports.markdown import MARK
from reports.render import UNKNOWN, count, interval, percent, points, usd_about
from reports.stats.crossed import Crossed
from reports.targets import Against, Judged, Target, judged

SCHEMA = "podium-targets-1"
MARKS = {"targets.md": MARK, "targets.json": f'"{SCHEMA}"'}
VERDICT = {True: "reached", False: "missed", None: "unknown"}
HOW = """\
Every figure is a mean over suites of equal weight, and for several seeds over seeds. Intervals
(95 %) take seeds and questions as drawn: Student's t on crossed variance components; beside it
stands the two-way bootstrap, which is too short for few seeds. Singles and oracle are the best in
hindsight. A share's interval is the bootstrap's."""


def write_targets(dirs: Sequence[Path], out: Path) -> tuple[str, tuple[Path, ...]]:
    """Hold what was trained against its targets; return the text, and the files written to `out`.

    UserError for logs of several conditions, nothing trained, or foreign files in `out`.
    """
    refuse_unwritable(out)
    refuse_foreign(out, MARKS)
    found = contest(read_sittings(dirs)[0])
    results = judged(found)
    if not results:
        raise UserError(
            "Nothing that was trained sat these suites: run `conductor`, or `conductor@FOLDER` for "
            "each seed, too."
        )
    text = as_markdown(found, results)
    files = {
        "targets.md": markdown_file(text, MARK),
        "targets.json": text_file(as_json(found, results)),
    }
    return text, write_files(out, files)


def as_markdown(found: Contest, results: Sequence[Judged]) -> str:
    """Return the page: who competed, and the targets of each trained contestant."""
    head = (
        f"{MARK}\n# Targets\n\n{', '.join(found.suites)}; split `{found.split}`, pool "
        f"`{found.pool}` ({found.label}).\n\n{HOW}"
    )
    left = f"\nNot every suite: {', '.join(found.left_out)}." if found.left_out else ""
    parts = [head + left, _field(found), *map(_one, results)]
    return "\n\n".join(parts) + "\n"


def _field(found: Contest) -> str:
    heads = ("system", *found.suites, "mean", "worker calls", "worker tokens out", "all tokens",
             "USD/query", "of")  # fmt: skip
    ranked = sorted(found.contestants, key=lambda one: -one.mean)
    return _table(heads, [_line(found, one) for one in ranked])


def _line(found: Contest, one: Contestant) -> tuple[str, ...]:
    costs = one.costs
    return (
        f"`{one.name}`" + ("\\*" if one.kind == "bound" else ""),
        *(percent(one.means.get(suite)) for suite in found.suites),
        percent(one.mean),
        count(costs.worker_calls, 2),
        count(costs.worker_tokens_out),
        count(costs.tokens),
        usd_about(costs.usd),
        asked(one),
    )


def _one(result: Judged) -> str:
    who = result.who
    said = f"## `{who.name}`\n\n{asked(who)}: {_sure(result.mean)}"
    if result.bootstrap:
        said += f", bootstrap {interval(*result.bootstrap)}"
    if result.mean.seed_error is not None:
        said += f"; standard error from seeds {100 * result.mean.seed_error:.1f} points"
    if who.ungraded:
        said += f"; {counted(who.ungraded, 'question')} without a grade of every seed"
    suites = ", ".join(f"{name} {_sure(one)}" for name, one in result.suites.items())
    parts = [f"{said}.", f"By suite: {suites}."]
    if len(who.members) > 1:
        parts.append(_table(("seed", *result.suites, "mean"), _seeds(result)))
    goals = _table(("target", "wanted", "found", "verdict", "missed by"), _goals(result.targets))
    others = sorted(result.against, key=lambda one: one.found.mean)
    beside = _table(
        ("less", "kind", "difference", "bootstrap", "questions"), [*map(_beside, others)]
    )
    return "\n\n".join([*parts, goals, beside])


def _seeds(result: Judged) -> list[tuple[str, ...]]:
    """Return a line for each seed, so that no choice among them is hidden."""
    return [
        (
            seed,
            *(percent(means[suite]) for suite in result.suites),
            percent(round(fmean(means.values()), 9)),
        )
        for seed, means in result.who.seeds.items()
    ]


def _goals(targets: Sequence[Target]) -> list[tuple[str, ...]]:
    return [(one.name, one.wanted, one.found, VERDICT[one.reached], one.short) for one in targets]


def _beside(one: Against) -> tuple[str, ...]:
    found, boot = one.found, one.bootstrap
    ends = interval(*found.interval, signed=True) if found.interval else ""
    between = interval(*boot, signed=True) if boot else UNKNOWN
    return (
        f"`{one.other}`",
        one.kind,
        f"{points(found.mean)} {ends}".rstrip(),
        between,
        f"{one.questions}",
    )


def _sure(found: Crossed) -> str:
    ends = f" {interval(*found.interval)}" if found.interval else ""
    return percent(found.mean) + ends


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_json(found: Contest, results: Sequence[Judged]) -> str:
    """Return the same as data."""
    field = [
        {
            "name": one.name,
            "kind": one.kind,
            "members": one.members,
            "mean": one.mean,
            "suites": dict(one.means),
            "ungraded": one.ungraded,
            **asdict(one.costs),
        }
        for one in found.contestants
    ]
    every = [
        {
            "name": one.who.name,
            "mean": asdict(one.mean),
            "bootstrap": one.bootstrap,
            "suites": {name: asdict(each) for name, each in one.suites.items()},
            "seeds": one.who.seeds,
            "targets": [asdict(target) for target in one.targets],
            "reach": [asdict(each) for each in one.reach],
            "against": [asdict(each) for each in one.against],
        }
        for one in results
    ]
    about = {"schema": SCHEMA, "split": found.split, "pool": found.pool, "suites": found.suites}
    data = {**about, "left_out": found.left_out, "field": field, "trained": every}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
