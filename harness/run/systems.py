"""Which systems a run has: names, groups and `NAME@K` spelled out, and why one cannot run.

A group leaves out whom the pool, the suites or this machine cannot serve, and says so; a system
that is named itself is refused instead.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from harness.bridge import lacks_sandbox, missing_sandbox
from harness.cassette import prompts_recorded
from harness.errors import UserError
from harness.pool_config import PoolSpec, with_conductor
from harness.prices import Book
from harness.run.catalogue import (
    ANY_SINGLE,
    ORACLE,
    SINGLE,
    Catalogue,
    conductor_override,
    manifest_key,
    split_k,
)
from harness.run.experiment import Experiment
from harness.run.preflight import problems
from harness.suite import PubliclyTested, Suite, moved_versions
from harness.system import Group, SystemCard
from harness.text import pluralise

ALL = "all"
GROUPS = (ALL, *get_args(Group))
"""What stands for several systems (harness/run/systems.py)."""
MOST_TRIES, DIGITS = 10_000, 5
"""Behind an `@` stands at most this: each of them is a call, for every question."""
CONDUCTORS = ("conductor", "conductor-prompted", "conductor-adaptive")
"""Whose row controls are matched with, the first that is there."""


def select_systems(
    names: Sequence[str],
    catalogue: Catalogue,
    spec: PoolSpec,
    suites: Sequence[Suite[Any]] = (),
) -> list[str]:
    """Return table names of systems: `single` spelled out per worker, all that fit when none named.

    UserError for a name nobody knows, a worker the pool lacks, a missing conductor, an extra that
    is not installed, a suite that shows no tests, or a system that recorded replies cannot serve.
    """
    found = expand_singles(names or default_systems(catalogue, spec, suites), spec)
    for name in found:
        if reason := why_unusable(name, catalogue, spec, suites):
            raise UserError(reason)
    return found


def expand_singles(names: Sequence[str], spec: PoolSpec) -> list[str]:
    """Return names, each once, with `single` spelled out per worker."""
    found: list[str] = []
    for name in names:
        alone = name == SINGLE
        found.extend((f"{SINGLE}:{worker}" for worker in spec.names) if alone else [name])
    return list(dict.fromkeys(found))


def why_unusable(
    name: str, catalogue: Catalogue, spec: PoolSpec, suites: Sequence[Suite[Any]]
) -> str | None:
    """Return why a system cannot run on a pool or sit some suite; None when it can."""
    try:
        return why_unfit(name, catalogue, spec) or why_untested(name, catalogue, suites)
    except UserError as error:
        return str(error)


def why_untested(name: str, catalogue: Catalogue, suites: Sequence[Suite[Any]]) -> str | None:
    """Return why a system that tries programs cannot sit suites of which one shows no tests."""
    if "public tests" not in catalogue.card(name).needs:
        return None
    for suite in suites:
        if not isinstance(suite, PubliclyTested):
            return (
                f"{name} needs a suite whose questions show tests, and {suite.name!r} shows none: "
                "leave one of them out."
            )
    return None


def default_systems(
    catalogue: Catalogue, spec: PoolSpec, suites: Sequence[Suite[Any]] = ()
) -> list[str]:
    """Return every system that fits the pool and all suites, single workers first.

    What spends a budget of its own on learning, and what is other people's code, is run when it
    is named.
    """
    tested = bool(suites) and all(isinstance(suite, PubliclyTested) for suite in suites)
    unmet = {"train", "match", "sandbox"} | (set[str]() if tested else {"public tests"})
    others = [
        name
        for name, manifest in catalogue.systems.items()
        if name != ANY_SINGLE and manifest.group != "frameworks"
        if manifest.recorded or not spec.replayed
        if not manifest.learns and not manifest.needs & unmet
    ]
    return [SINGLE, *(name for name in others if not why_unfit(name, catalogue, spec))]


def why_unfit(name: str, catalogue: Catalogue, spec: PoolSpec) -> str | None:
    """Return why a system cannot run on a pool, in one sentence; None when it can."""
    manifest = catalogue.systems.get(manifest_key(name))
    if manifest is None:
        return _unknown(name, catalogue)
    if manifest_key(name) == ANY_SINGLE:
        spec.worker(name.partition(":")[2])
    return (
        _wrong_k(name, manifest)
        or _lacking(name, manifest, spec)
        or _unserved(name, manifest, spec)
        or missing_extra(manifest)
    )


def _unknown(name: str, catalogue: Catalogue) -> str:
    plain, k = split_k(name)
    if k and (plain in GROUPS or plain == SINGLE):
        return f"{plain} takes no number, so there is no {name!r}: name {plain!r}."
    known, groups = ", ".join(sorted(catalogue.systems)), ", ".join(GROUPS)
    return f"There is no system {name!r}; known systems: {known}; groups of them: {groups}."


def _wrong_k(name: str, manifest: SystemCard) -> str | None:
    plain, k = split_k(name)
    if plain == name:
        return None
    if not manifest.k:
        return f"{plain} takes no number, so there is no {name!r}: name {plain!r}."
    if manifest.brings is not None:
        return None if k else f"{name!r}: behind the @ stands a checkpoint."
    digits = k.isascii() and k.isdecimal() and not k.startswith("0")
    if not digits or len(k) > DIGITS or int(k) > MOST_TRIES:
        said = f"a whole number from 1 on, at most {MOST_TRIES:,}, as in {plain}@3."
        return f"{name[:60]!r}: behind the @ stands {said}"
    return None


def _lacking(name: str, card: SystemCard, spec: PoolSpec) -> str | None:
    k = split_k(name)[1]
    if len(spec.names) < card.workers:
        least, has = pluralise(card.workers, "worker"), len(spec.names)
        return f"{name} needs at least {least}, and pool {spec.name!r} has {has}: take another."
    if "conductor" in card.needs and spec.conductor is None:
        return f"{name} needs a conductor: add a [conductor] table to pool {spec.name!r}."
    try:  # what it brings along must be there
        _ = card.brings and card.brings(k)
        _ = card.override and card.override(k)
    except UserError as error:
        return f"{name}: {error}"
    if why := card.misplaced and card.misplaced(k, spec):
        return f"{name} {why}"
    return missing_sandbox(name) if lacks_sandbox(card) else None


def _unserved(name: str, card: SystemCard, spec: PoolSpec) -> str | None:
    if spec.replayed and not card.recorded and not prompts_recorded(spec):
        return (
            f"{name} cannot run on recorded pool {spec.name!r}: its replies answer the canonical "
            f"single-worker request only, and a replayed reply never stands in for another request."
        )
    if name == ORACLE and spec.label == "live":
        return f"{ORACLE} tries many plans, and each one costs: take a rehearsal or recorded pool."
    return None


def missing_extra(manifest: SystemCard) -> str | None:
    """Return the sentence on an extra that a system needs and this machine lacks."""
    lacked = [module for module in manifest.modules if find_spec(module) is None]
    if not lacked:
        return None
    return f"{manifest.name} needs {lacked[0]}: pip install '.[{manifest.extra}]'."


def moved_graders(systems: Sequence[str], catalogue: Catalogue) -> list[str]:
    """Return a sentence for the systems that other graders have rewarded than there are now.

    Those that learnt from the same graders share one; UserError where a checkpoint is not there.
    """
    said: dict[str, list[str]] = {}
    suites = catalogue.suites
    for name in systems:
        card = catalogue.systems.get(manifest_key(name))
        if card is None or card.rewarded is None:
            continue
        then, what = card.rewarded(split_k(name)[1]), "whose versions nobody wrote down"
        if then is not None:
            now = {suite: suites[suite].version for suite in then if suite in suites}
            moved = moved_versions(then, now)
            what = moved and f"that have moved since: {moved}"
        if what:
            said.setdefault(what, []).append(name)
    return [f"{', '.join(names)} learnt from graders {what}." for what, names in said.items()]


def refuse_unready(
    spec: PoolSpec, book: Book, systems: Sequence[str], catalogue: Catalogue | None = None
) -> None:
    """Raise UserError for a missing key, server or price, and say how many there are."""
    found = missing_needs(spec, book, systems, catalogue)
    if found:
        more = f" (and {len(found) - 1} more: podium doctor lists them)" if found[1:] else ""
        raise UserError(f"{found[0]}{more}")


def missing_needs(
    spec: PoolSpec, book: Book, systems: Sequence[str], catalogue: Catalogue | None = None
) -> list[str]:
    """Return every key, server and price that some systems lack, a sentence each."""
    cards = [catalogue.card(name) for name in systems] if catalogue else []
    found = problems(spec, book, conductor=any("conductor" in card.needs for card in cards))
    for name in systems if catalogue else ():
        if catalogue and (override := conductor_override(name, catalogue)):
            found += problems(with_conductor(spec, override), book)
    return list(dict.fromkeys(found))


def refuse_forgotten(stored: Experiment | None, log_dir: Path, catalogue: Catalogue) -> None:
    """Raise UserError for a directory with a system that has another name now, or none."""
    for row in stored.entries if stored else ():
        if manifest_key(row.system) not in catalogue.systems:
            raise UserError(
                f"{log_dir} has rows of {row.system!r}, a system that this version does not know: "
                "go on with the version that began it, or name another --log-dir."
            )


def refuse_moved_suites(stored: Experiment | None, log_dir: Path, catalogue: Catalogue) -> None:
    """Raise UserError for a directory with a suite whose grader is another one now, asked or not.

    Inspect takes its tasks for new ones: all its questions would be asked, and paid, again.
    """
    if stored is None:
        return
    for name, version in stored.suite_versions.items():
        now = catalogue.suites[name].version if name in catalogue.suites else version
        if version != now:
            raise UserError(
                f"{log_dir} holds another experiment: its version of {name} is {version!r}, not "
                f"{now!r}; grade it again (podium regrade --all {log_dir}), or name another "
                "--log-dir."
            )


def match_target(match: str | None, systems: Sequence[str]) -> str | None:
    """Return the system among those of a run whose cost controls are matched with."""
    if match:
        return match if match in systems else None
    keyed = {manifest_key(name): name for name in reversed(systems)}  # the first of a kind wins
    return next((keyed[name] for name in CONDUCTORS if name in keyed), None)


def refuse_unmatched(
    match: str | None, systems: Sequence[str], known: Sequence[str], catalogue: Catalogue
) -> None:
    """Raise UserError for a control without the row that it is matched with.

    `systems` are those asked for now, `known` those the experiment has.
    """
    late = [one for one in systems if "match" in catalogue.card(one).needs]
    if late and match and manifest_key(match) not in catalogue.systems:
        raise UserError(f"--match: {_unknown(match, catalogue)}")
    if late and match in late:
        raise UserError(f"--match: {match} is itself matched with another system: name another.")
    if late and match_target(match, [*systems, *known]) is None:
        whom = match or "a conductor"
        raise UserError(
            f"{late[0]} is matched with {whom}, which is not in this run: add --system "
            f"{match or CONDUCTORS[1]}{'' if match else ', or name another one with --match'}."
        )


@dataclass(frozen=True, slots=True)
class Requirements:
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


def expand_groups(names: Sequence[str], fit: Requirements) -> tuple[list[str], list[str]]:
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
    """Yield the systems of a group, a system being its own; `all` is without frameworks."""
    if name not in GROUPS:
        yield name
        return
    for one, card in catalogue.systems.items():
        if card.group == name or (name == ALL and card.group != "frameworks"):
            yield SINGLE if one == ANY_SINGLE else one


def _is_late(name: str, catalogue: Catalogue) -> bool:
    """Say whether a system is matched with another one, which must be known first."""
    manifest = catalogue.systems.get(manifest_key(name))
    return manifest is not None and "match" in manifest.needs


def _unfit(name: str, fit: Requirements, others: Sequence[str]) -> str | None:
    if name == SINGLE:
        return None
    late = _is_late(name, fit.catalogue)
    if late and match_target(fit.match, [*others, *fit.known]) is None:
        return f"{name} is matched with {fit.match or 'a conductor'}, which is not in this run."
    if name == ORACLE and fit.judged:
        return f"{name} tries many plans, and a model would have to judge each."
    why = why_unfit(name, fit.catalogue, fit.spec) or fit.untaught(name)
    return why or why_untested(name, fit.catalogue, fit.suites)
