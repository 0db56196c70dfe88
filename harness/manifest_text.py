"""`podium systems`: which systems there are, a line each, and all that one's manifest says."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import fill
from typing import Any, get_args

from harness.compose import manifest_key
from harness.errors import UserError
from harness.listing import columns
from harness.plural import from_to
from harness.system import Group, Manifest, Need

WIDTH = 100
LABEL = 13
NEEDS: Mapping[Need, str] = {
    "conductor": "a [conductor] table in the pool file",
    "public tests": "a suite whose questions show tests",
    "train": "a train split to learn from",
    "match": "a conductor's row in the same run",
    "sandbox": "a sandbox of Inspect's for programs of its own",
}
POOLS = (1, 7)
"""Sizes of pool for which expected calls are spelled out: the least, and the Conductor paper's."""


def show_systems(systems: Mapping[str, Manifest], name: str | None) -> str:
    """Return the list of systems, or the manifest of one; UserError for an unknown name."""
    if name is None:
        return _listed(systems.values())
    key = manifest_key(name)
    if key not in systems:
        known = ", ".join(sorted(systems))
        raise UserError(f"There is no system {name!r}; known systems: {known}.")
    return _whole(systems[key])


def _listed(manifests: Collection[Manifest]) -> str:
    """Return a line per system, aligned over all groups, each group under its name."""
    order = get_args(Group)
    ranked = sorted(manifests, key=lambda one: order.index(one.group))
    heads = ("system", "calls", "what it does")
    first, *lines = columns(heads, [_line(one) for one in ranked]).splitlines()
    found = [f"  {first}"]
    pairs = zip(ranked, lines, strict=True)
    for group, members in groupby(pairs, key=lambda pair: pair[0].group):
        found += ["", group, *(f"  {line}" for _, line in members)]
    return "\n".join(found)


def _line(manifest: Manifest) -> Sequence[str]:
    calls = manifest.calls
    for mark in ",;:":
        calls = calls.partition(mark)[0].strip()
    return (manifest.name, calls, manifest.summary)


def _whole(manifest: Manifest) -> str:
    hanging: dict[str, Any] = {
        "subsequent_indent": " " * (LABEL + 2),
        "break_long_words": False,
        "break_on_hyphens": False,
    }
    facts = (
        fill(value, WIDTH, initial_indent=f"  {label:<{LABEL}}", **hanging)
        for label, value in _facts(manifest)
    )
    return "\n".join((manifest.name, *facts, "", fill(manifest.summary, WIDTH)))


def _facts(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield everything a manifest says but its name and summary, as label and text."""
    yield "group", manifest.group
    yield "solver", manifest.solver
    yield "source", manifest.source
    yield "calls", manifest.calls
    if (said := _expected(manifest)) != manifest.calls:
        yield "", said
    yield "prompts", _prompts(manifest)
    if manifest.on_best:
        yield "worker", "the best single one of the train split, where there is one"
    yield "learns", _learning(manifest)
    yield "needs", "; ".join(NEEDS[one] for one in sorted(manifest.needs)) or "workers only"
    yield "extra", f"pip install '.[{manifest.extra}]'" if manifest.extra else "none"
    yield "@K", _behind(manifest)
    yield "recorded", f"{'runs' if manifest.recorded else 'cannot run'} on recorded replies"
    yield "targets", "seen: a labelled control" if manifest.uses_targets else "never seen"
    for deviation in manifest.deviations:
        yield "deviation", deviation
    yield from manifest.on_label.items()


def _behind(manifest: Manifest) -> str:
    """Return what stands behind the @ of a system's name."""
    if not manifest.k:
        return "sets nothing"
    sets = f"sets {manifest.k}: {manifest.name}"
    return f"{sets}@{'3' if manifest.brings is None else 'FOLDER'}"


def _expected(manifest: Manifest) -> str:
    if manifest.expected is None:
        return "cannot be said beforehand, so the audit does not check them"
    one, seven = (from_to(manifest.expected(n, {})) for n in POOLS)
    return one if one == seven else f"{one} with one worker, {seven} with seven"


def _prompts(manifest: Manifest) -> str:
    if not manifest.prompts:
        return "none of its own: workers get the question alone"
    return f"{len(manifest.prompts)}, sha256 {manifest.prompt_sha256}"


def _learning(manifest: Manifest) -> str:
    """Return how a system learns; what has two ways says both."""
    ways: list[str] = []
    if manifest.learn is not None:
        ways.append("from single workers' results on a train split")
    if manifest.explorer is not None:
        ways.append("by trying on a train split")
    return " and ".join(ways) or "nothing"
