"""Names that stand for several systems: `all`, and the groups that `podium systems` lists.

What stands for several leaves out whom the pool, the suites or this machine cannot serve, and says
so; a system that is named itself is refused instead (harness/field.py).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.compose import ANY_SINGLE, ORACLE, SINGLE, Catalogue, manifest_key
from harness.errors import UserError
from harness.field import ALL, GROUPS, matched_with, refusal, untested
from harness.pool_file import PoolSpec
from harness.suite import Suite
from harness.system import Manifest


@dataclass(frozen=True, slots=True)
class Fit:
    """What systems must fit."""

    catalogue: Catalogue
    spec: PoolSpec
    suites: Sequence[Suite[Any]]
    untaught: Callable[[str], str | None]
    """Returns why a system has nothing to learn from; None when it has, or need not."""
    match: str | None = None
    known: Sequence[str] = ()
    """Systems that the experiment has on every suite."""
    judged: bool = False
    """Whether a model grades some question."""


def spelled_out(names: Sequence[str], fit: Fit) -> tuple[list[str], list[str]]:
    """Return names with groups spelled out, and a line on each kind of system that is left out.

    UserError for a group of which nobody fits.
    """
    found: dict[str, None] = {}
    left: dict[str, list[str]] = {}
    members = [(name, one) for name in names for one in _members(name, fit.catalogue)]
    for name, one in sorted(members, key=lambda member: _is_late(member[1], fit.catalogue)):
        why = _unfit(one, fit, [*found, *names]) if name in GROUPS else None
        if why is None:
            found[one] = None
        else:
            left.setdefault(why.removeprefix(one).lstrip(": "), []).append(one)
    for group in names:
        if not any(one in found for name, one in members if name == group):
            why, them = next(iter(left.items()))
            raise UserError(f"None of the {group} can run: {them[0]} {why}")
    return [*found], [f"{', '.join(dict.fromkeys(them))}: {why}" for why, them in left.items()]


def _members(name: str, catalogue: Catalogue) -> Iterator[str]:
    """Yield the systems of a group; a system is its own group."""
    if name not in GROUPS:
        yield name
        return
    for one, manifest in catalogue.systems.items():
        if _is_in(manifest, name):
            yield SINGLE if one == ANY_SINGLE else one


def _is_late(name: str, catalogue: Catalogue) -> bool:
    """Say whether a system is matched with another one, which must be known first."""
    manifest = catalogue.systems.get(manifest_key(name))
    return manifest is not None and "match" in manifest.needs


def _is_in(manifest: Manifest, group: str) -> bool:
    """Say whether a system is of a group; `all` is without other people's frameworks."""
    return manifest.group != "frameworks" if group == ALL else manifest.group == group


def _unfit(name: str, fit: Fit, others: Sequence[str]) -> str | None:
    """Return why a system of a group is left out, a sentence that begins with its name."""
    if name == SINGLE:
        return None
    late = _is_late(name, fit.catalogue)
    if late and matched_with(fit.match, [*others, *fit.known]) is None:
        return f"{name} is matched with {fit.match or 'a conductor'}, which is not in this run."
    if name == ORACLE and fit.judged:
        return f"{name} tries many plans, and a model would have to judge each."
    why = refusal(name, fit.catalogue, fit.spec) or fit.untaught(name)
    return why or untested(name, fit.catalogue, fit.suites)
