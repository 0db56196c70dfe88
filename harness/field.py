"""Which systems a run has: names, `single` and `NAME@K` spelled out, and why one cannot run.

Everything here is known before the first call. Not here: what a system's arguments are
(harness/entries.py), and what there is to learn from (harness/learning/teaching.py).
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from harness.bridging.inspect_sandbox import lacks_sandbox, missing_sandbox
from harness.compose import ANY_SINGLE, ORACLE, SINGLE, Catalogue, manifest_key, seat_of, split_k
from harness.errors import UserError
from harness.experiment import Experiment
from harness.plural import counted
from harness.pool_file import PoolSpec
from harness.preflight import problems
from harness.prices import Book
from harness.recordings import prompts_recorded
from harness.seating import seated
from harness.suite import PubliclyTested, Suite, moved
from harness.system import Group, Manifest

ALL = "all"
GROUPS = (ALL, *get_args(Group))
"""What stands for several systems (harness/groups.py)."""
MOST_TRIES, DIGITS = 10_000, 5
"""Behind an `@` stands at most this: each of them is a call, for every question."""
CONDUCTORS = ("conductor", "conductor-prompted", "conductor-adaptive")
"""Whose row controls are matched with, the first that is there."""


def chosen_systems(
    names: Sequence[str],
    catalogue: Catalogue,
    spec: PoolSpec,
    suites: Sequence[Suite[Any]] = (),
) -> list[str]:
    """Return table names of systems: `single` spelled out per worker, all that fit when none named.

    UserError for a name nobody knows, a worker the pool lacks, a missing conductor, an extra that
    is not installed, a suite that shows no tests, or a system that recorded replies cannot serve.
    """
    found = spelled_singles(names or default_systems(catalogue, spec, suites), spec)
    for name in found:
        if reason := unusable(name, catalogue, spec, suites):
            raise UserError(reason)
    return found


def spelled_singles(names: Sequence[str], spec: PoolSpec) -> list[str]:
    """Return names, each once, with `single` spelled out per worker."""
    found: list[str] = []
    for name in names:
        alone = name == SINGLE
        found.extend((f"{SINGLE}:{worker}" for worker in spec.names) if alone else [name])
    return list(dict.fromkeys(found))


def unusable(
    name: str, catalogue: Catalogue, spec: PoolSpec, suites: Sequence[Suite[Any]]
) -> str | None:
    """Return why a system cannot run on a pool or sit some suite; None when it can."""
    try:
        return refusal(name, catalogue, spec) or untested(name, catalogue, suites)
    except UserError as error:
        return str(error)


def untested(name: str, catalogue: Catalogue, suites: Sequence[Suite[Any]]) -> str | None:
    """Return why a system that tries programs cannot sit suites of which one shows no tests."""
    if "public tests" not in catalogue.systems[manifest_key(name)].needs:
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
    return [SINGLE, *(name for name in others if not refusal(name, catalogue, spec))]


def refusal(name: str, catalogue: Catalogue, spec: PoolSpec) -> str | None:
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
    """Return the sentence on a name that is no system's."""
    plain, k = split_k(name)
    if k and (plain in GROUPS or plain == SINGLE):
        return f"{plain} takes no number, so there is no {name!r}: name {plain!r}."
    known, groups = ", ".join(sorted(catalogue.systems)), ", ".join(GROUPS)
    return f"There is no system {name!r}; known systems: {known}; groups of them: {groups}."


def _wrong_k(name: str, manifest: Manifest) -> str | None:
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


def _lacking(name: str, manifest: Manifest, spec: PoolSpec) -> str | None:
    if len(spec.names) < manifest.workers:
        least, has = counted(manifest.workers, "worker"), len(spec.names)
        return f"{name} needs at least {least}, and pool {spec.name!r} has {has}: take another."
    if "conductor" in manifest.needs and spec.conductor is None:
        return f"{name} needs a conductor: add a [conductor] table to pool {spec.name!r}."
    if unseated := _unseated(name, manifest) or _misplaced(name, manifest, spec):
        return unseated
    return missing_sandbox(name) if lacks_sandbox(manifest) else None


def _unseated(name: str, manifest: Manifest) -> str | None:
    """Return why what a system brings along is not there; None when it is."""
    try:
        _ = manifest.brings and manifest.brings(split_k(name)[1])
        _ = manifest.seat and manifest.seat(split_k(name)[1])
    except UserError as error:
        return f"{name}: {error}"
    return None


def _misplaced(name: str, manifest: Manifest, spec: PoolSpec) -> str | None:
    """Return why a system can do nothing with a pool's workers; None when it can."""
    why = manifest.misplaced and manifest.misplaced(split_k(name)[1], spec)
    return f"{name} {why}" if why else None


def _unserved(name: str, manifest: Manifest, spec: PoolSpec) -> str | None:
    if spec.replayed and not manifest.recorded and not prompts_recorded(spec):
        return (
            f"{name} cannot run on recorded pool {spec.name!r}: its replies answer the canonical "
            f"single-worker request only, and a replayed reply never stands in for another request."
        )
    if name == ORACLE and spec.label == "live":
        return f"{ORACLE} tries many plans, and each one costs: take a rehearsal or recorded pool."
    return None


def missing_extra(manifest: Manifest) -> str | None:
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
    for name in systems:
        manifest = catalogue.systems.get(manifest_key(name))
        rewarded = manifest.rewarded if manifest else None
        if rewarded and (what := _moved(rewarded(split_k(name)[1]), catalogue)):
            said.setdefault(what, []).append(name)
    return [f"{', '.join(names)} learnt from graders {what}." for what, names in said.items()]


def _moved(rewarded: Mapping[str, str] | None, catalogue: Catalogue) -> str:
    if rewarded is None:
        return "whose versions nobody wrote down"
    now = {name: catalogue.suites[name].version for name in rewarded if name in catalogue.suites}
    what = moved(rewarded, now)
    return what and f"that have moved since: {what}"


def refuse_unready(
    spec: PoolSpec, book: Book, systems: Sequence[str], catalogue: Catalogue | None = None
) -> None:
    """Raise UserError for a missing key, server or price, and say how many there are."""
    found = unready(spec, book, systems, catalogue)
    if found:
        more = f" (and {len(found) - 1} more: podium doctor lists them)" if found[1:] else ""
        raise UserError(f"{found[0]}{more}")


def unready(
    spec: PoolSpec, book: Book, systems: Sequence[str], catalogue: Catalogue | None = None
) -> list[str]:
    """Return every key, server and price that some systems lack, a sentence each."""
    planned = catalogue is not None and any(
        "conductor" in catalogue.systems[manifest_key(name)].needs for name in systems
    )
    seats = [seat for name in systems if catalogue and (seat := seat_of(name, catalogue))]
    pools = [seated(spec, seat) for seat in seats]
    found = problems(spec, book, conductor=planned)
    found.extend(one for pool in pools for one in problems(pool, book))
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


def matched_with(match: str | None, systems: Sequence[str]) -> str | None:
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
    late = [one for one in systems if "match" in catalogue.systems[manifest_key(one)].needs]
    if late and match and manifest_key(match) not in catalogue.systems:
        raise UserError(f"--match: {_unknown(match, catalogue)}")
    if late and match in late:
        raise UserError(f"--match: {match} is itself matched with another system: name another.")
    if late and matched_with(match, [*systems, *known]) is None:
        whom = match or "a conductor"
        raise UserError(
            f"{late[0]} is matched with {whom}, which is not in this run: add --system "
            f"{match or CONDUCTORS[1]}{'' if match else ', or name another one with --match'}."
        )
