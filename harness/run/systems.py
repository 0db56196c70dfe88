"""Which systems a run has: names, groups and `NAME@K` spelled out, and why one cannot run."""

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import get_args

from podium.harness.bridge import lacks_sandbox, missing_sandbox
from podium.harness.cassette import prompts_recorded
from podium.harness.errors import UserError, did_you_mean, reasons_of
from podium.harness.pool_config import PoolSpec
from podium.harness.prices import Book
from podium.harness.records import CONDUCTOR
from podium.harness.run.catalogue import (
    ANY_SINGLE,
    ORACLE,
    SINGLE,
    Catalogue,
    Suites,
    manifest_key,
    split_k,
)
from podium.harness.run.experiment import Experiment
from podium.harness.run.preflight import problems
from podium.harness.suite import PubliclyTested, moved_versions
from podium.harness.system import Group, SystemCard

ALL = "all"
GROUPS = (ALL, *get_args(Group))  # what stands for several systems (harness/run/systems.py)
MOST_TRIES = 10_000
"""Behind an `@` stands at most this: each of them is a call, for every question."""
CONDUCTORS = ("conductor", "conductor-prompted", "conductor-adaptive")
"""Whose row controls are matched with, the first that is there."""


def why_untested(name: str, catalogue: Catalogue, suites: Suites) -> str | None:
    """Return why a system that tries programs cannot have suites of which one shows no tests."""
    mute = next((one.name for one in suites if not isinstance(one, PubliclyTested)), None)
    if mute is None or "public tests" not in catalogue.card(name).needs:
        return None
    return (
        f"{name} needs a suite whose questions show tests, and {mute!r} shows none: leave one of "
        "them out."
    )


def ours(catalogue: Catalogue) -> dict[str, SystemCard]:
    """Return the systems that come with podium: others run only where they are named."""
    systems = catalogue.systems
    return {name: systems[name] for name in systems if name in catalogue.ours}


def default_systems(catalogue: Catalogue, spec: PoolSpec, suites: Suites = ()) -> list[str]:
    """Return all that fit, singles first, but what learns by trying or is others' code."""
    tested = bool(suites) and all(isinstance(suite, PubliclyTested) for suite in suites)
    unmet = {"train", "match", "sandbox"} | (set[str]() if tested else {"public tests"})
    others = [
        name
        for name, card in ours(catalogue).items()
        if name != ANY_SINGLE and card.group != "frameworks" and not card.learns
        if ("recorded" in card.traits or not spec.replayed) and not card.needs & unmet
    ]
    return [SINGLE, *(name for name in others if not why_unfit(name, catalogue, spec))]


def why_unfit(name: str, catalogue: Catalogue, spec: PoolSpec) -> str | None:
    """Return why a system cannot run on a pool, in one sentence; None when it can."""
    card = catalogue.systems.get(manifest_key(name))
    if card is None:
        return unknown_system(name, catalogue)
    alone = manifest_key(name) == ANY_SINGLE
    nobody = reasons_of(spec.worker, name.partition(":")[2]) if alone else ()
    return next(chain(nobody, _wrong_k(name, card), _lacking(name, card, spec)), None)


def why_not_live(
    name: str, catalogue: Catalogue, spec: PoolSpec, stored: Experiment | None
) -> str | None:
    """Return why a live run may not begin with a system; one that has begun goes on."""
    if spec.label != "live" or (stored and any(row.system == name for row in stored.entries)):
        return None
    why = catalogue.card(name).methods.live_refusal(split_k(name)[1], spec)
    return why and f"{name} {why}"


def asked_slots(names: Iterable[str], catalogue: Catalogue, spec: PoolSpec) -> set[str]:
    """Return the workers of a pool, and its conductor, that systems may ask."""
    asked: set[str] = set()
    for name in names:
        alone = manifest_key(name) == ANY_SINGLE
        asked |= {name.partition(":")[2]} if alone else {*spec.names}
        asked |= {*catalogue.card(name).needs} & {CONDUCTOR}
    return asked


def remarks_on(names: Iterable[str], catalogue: Catalogue, spec: PoolSpec) -> Iterator[str]:
    """Yield what is good to know of systems on a pool, a sentence each."""
    for name in names:
        remarks = catalogue.card(name).methods.remarks(split_k(name)[1], spec)
        yield from (f"{name} {remark}" for remark in remarks)


def unknown_system(name: str, catalogue: Catalogue) -> str:
    """Return the refusal of a name that no system has, with all that there are."""
    plain, k = split_k(name)
    if k and (plain in GROUPS or plain == SINGLE):
        return f"{plain} takes no number, so there is no {name!r}: name {plain!r}."
    known, groups = ", ".join(sorted(catalogue.systems)), ", ".join(GROUPS)
    near = did_you_mean(name, (*catalogue.systems, *GROUPS))
    return f"{near}There is no system {name!r}; known systems: {known}; groups of them: {groups}."


def _wrong_k(name: str, card: SystemCard) -> Iterator[str]:
    plain, k = split_k(name)
    if plain == name:
        return
    if not card.k:
        yield f"{plain} takes no number, so there is no {name!r}: name {plain!r}."
    elif card.takes_name:
        yield from () if k else (f"{name!r}: behind the @ stands a {card.k}.",)
    elif not re.fullmatch(r"[1-9]\d{0,4}", k, re.ASCII) or int(k) > MOST_TRIES:
        said = f"a whole number from 1 on, at most {MOST_TRIES:,}, as in {plain}@3."
        yield f"{name[:60]!r}: behind the @ stands {said}"


def _lacking(name: str, card: SystemCard, spec: PoolSpec) -> Iterator[str]:
    k = split_k(name)[1]
    if "conductor" in card.needs and spec.conductor is None:
        yield f"{name} needs a conductor: add a [conductor] table to pool {spec.name!r}."
    methods = card.methods
    for bring in (methods.arguments, methods.conductor):  # what it brings must be there
        yield from (f"{name}: {why}" for why in reasons_of(bring, k))
    if why := methods.pool_refusal(k, spec):
        yield f"{name} {why}"
    if lacks_sandbox(card):
        yield missing_sandbox(name)
    if spec.replayed and "recorded" not in card.traits and not prompts_recorded(spec):
        yield (
            f"{name} cannot run on recorded pool {spec.name!r}: its replies answer the canonical "
            f"single-worker request only, and a replayed reply never stands in for another request."
        )
    if name == ORACLE and spec.label == "live":
        yield f"{ORACLE} tries many plans, and each one costs: take a rehearsal or recorded pool."
    yield from filter(None, (missing_extra(card),))


def missing_extra(manifest: SystemCard) -> str | None:
    """Return the sentence on an extra that a system needs and this machine lacks."""
    extra = manifest.methods.extra
    lacked = next((one for one in extra.modules if find_spec(one) is None), None) if extra else None
    return extra and lacked and f"{manifest.name} needs {lacked}: pip install '.[{extra.name}]'."


def moved_graders(systems: Sequence[str], catalogue: Catalogue) -> list[str]:
    """Return a sentence for the systems that other graders have rewarded than there are now."""
    said: dict[str, list[str]] = {}
    suites = catalogue.suites
    for name in systems:
        card = catalogue.systems.get(manifest_key(name))
        if card is None:
            continue
        then, what = card.methods.graders(split_k(name)[1]), "whose versions nobody wrote down"
        if then is not None:
            now = {suite: suites[suite].version for suite in then if suite in suites}
            moved = moved_versions(then, now)
            what = moved and f"that have moved since: {moved}"
        if what:
            said.setdefault(what, []).append(name)
    return [f"{', '.join(names)} learnt from graders {what}." for what, names in said.items()]


def refuse_unready(spec: PoolSpec, book: Book) -> None:
    """Raise UserError for a missing key, server or price of a worker, and count the others."""
    if found := list(dict.fromkeys(problems(spec, book, conductor=False))):
        more = f" (and {len(found) - 1} more: podium doctor lists them)" if found[1:] else ""
        raise UserError(f"{found[0]}{more}")


def refuse_moved(stored: Experiment | None, log_dir: Path, catalogue: Catalogue) -> None:
    """Raise UserError for a directory with a system that is unknown now, or a suite graded anew.

    Inspect takes a moved suite's tasks for new ones: all would be asked, and paid, again.
    """
    for row in stored.entries if stored else ():
        if manifest_key(row.system) not in catalogue.systems:
            raise UserError(
                f"{log_dir} has rows of {row.system!r}, a system that this version does not know: "
                "go on with the version that began it, or name another --log-dir."
            )
    for name, version in stored.suite_versions.items() if stored else ():
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
