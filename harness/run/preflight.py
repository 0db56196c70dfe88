"""Checks before a run spends money: keys, prices, packages, systems that do not fit the pool."""

import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from importlib import metadata, util
from importlib.machinery import PathFinder
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import urlsplit

from inspect_ai._util.entrypoints import ensure_entry_points
from inspect_ai._util.registry import registry_info
from inspect_ai.hooks._hooks import Hooks, get_all_hooks

from podium.harness.cassette import prompts_recorded
from podium.harness.errors import UserError, did_you_mean, reasons_of
from podium.harness.ledger.call import Attempted, upper_bound
from podium.harness.pool import slot_model
from podium.harness.pool_config import POOLS, PoolSpec, WorkerSpec
from podium.harness.prices import Book, read_book
from podium.harness.prices.nearest import nearest_prices
from podium.harness.records import CONDUCTOR, GRADER
from podium.harness.request import STANDARD, max_tokens_of, service_tier
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
from podium.harness.single_turn import GIVES_TOOLS
from podium.harness.suite import PubliclyTested, Suite, moved_versions
from podium.harness.system import Group, SystemCard, lacks_sandbox, missing_sandbox
from podium.harness.task_suite import TaskSuite

TRUSTED = ("inspect_ai", "podium")
"""Packages whose Inspect hooks send logs nowhere: Inspect's own and podium's."""
TELEMETRY = "INSPECT_TELEMETRY"
"""Environment variable that names a function to which Inspect sends whole logs."""


def why_unusable(log_dir: Path) -> Iterator[str]:
    """Yield why Inspect would read a log directory's path as an address of another place."""
    # Inspect opens paths by fsspec: it cuts `#` and `?` off, and decodes `%20`.
    odd = re.search(r"^~|^\w+:/", str(log_dir)) or ODD.search(str(log_dir.absolute()))
    if odd:
        yield (
            f"--log-dir {str(log_dir)!r} contains {odd[0]!r}, which Inspect reads as part of an "
            "address. Name another --log-dir."
        )


ODD = re.compile(r"[#?\0-\x1f\x7f\ud800-\udfff]|%[0-9a-fA-F]{2}")
"""What a local path may contain, but not the path of an Inspect log."""


def refuse_listeners(suites: Iterable[Suite[Any]]) -> None:
    """Raise UserError for an unpublishable suite if another package's Inspect hook is active."""
    private = next((suite.name for suite in suites if not suite.publishable), None)
    if private is None:
        return
    ensure_entry_points()
    packages = {hook: type(hook).__module__.partition(".")[0] for hook in get_all_hooks()}
    listening = [
        (registry_info(hook).name, f"uninstall {package!r}, or disable it as its documents say")
        for hook, package in packages.items()
        if package not in TRUSTED and _is_active(hook)
    ]
    if function := os.environ.get(TELEMETRY, "").strip():
        listening.append((function, f"unset {TELEMETRY}"))
    for name, off in listening:
        raise UserError(
            f"The questions of {private} must not be published, but Inspect would pass them to the "
            f"hook {name!r}. For this run, {off}."
        )


def _is_active(hook: Hooks) -> bool:
    try:
        return hook.enabled()
    except Exception:  # a hook that cannot report its state may be active
        return True


SERVED = {"vllm": "VLLM_BASE_URL", "sglang": "SGLANG_BASE_URL", "ollama": "OLLAMA_BASE_URL"}
"""Providers that use the user's own server, with the variable that holds its address. The check
opens a connection instead of constructing the provider, which could start a server."""
OWN = "http://"
"""Prefix of the address of a user's own server; paid APIs use https, and may be behind a proxy
that a plain connection cannot pass."""
START = "Start the server, or correct its address."
IN_PROCESS = {"hf": "transformers"}
"""Providers whose construction loads weights -> the package that they need, which is checked."""


def problems(spec: PoolSpec, book: Book, conductor: bool = True, grader: bool = True) -> list[str]:
    """Return why a pool's models (conductor, grader only if True) cannot be called or priced."""
    roles = {CONDUCTOR: conductor, GRADER: grader}
    reasons: list[str] = []
    for slot in (slot for slot in spec.slots if roles.get(slot.name, True)):
        reasons.extend(slot_problems(slot, spec, book))
    return reasons


def slot_problems(slot: WorkerSpec, spec: PoolSpec, book: Book) -> list[str]:
    """Return every reason why a model of a pool cannot be called, or has no price."""
    return [
        *_model_problems(slot, spec.setup),
        *(_price_problems(slot, spec, book) if spec.label == "live" else ()),
    ]


def _price_problems(slot: WorkerSpec, spec: PoolSpec, book: Book) -> Iterator[str]:
    price, service = book.price(slot.price_ref), service_tier(slot.config, slot.args)
    if slot.not_auditable:
        return  # the pool file declares no price, and every table repeats that
    if price is None:
        copied = f"a copy of {spec.path}" if Path(spec.path).parent == POOLS else spec.path
        reason = (
            f"book {book.name!r} has no {slot.price_ref!r}"
            if book.prices
            else f"book {book.name!r} has no prices, so set `prices` to another book"
        )
        yield (
            f"Worker {slot.name!r} has no price: {reason}. {nearest_prices(slot.price_ref, book)}"
            f"Add this line below its model in {copied}, with US dollars per million tokens: "
            "price = { input = ..., output = ... }"
        )
    elif service != STANDARD and service not in price.services:
        yield (
            f"Worker {slot.name!r} uses service {service!r}, but price book {book.name!r} has no "
            f"factor for it. Add one to the services of {slot.price_ref!r}, or remove the service "
            "from the worker's settings."
        )


def unpriced(spec: PoolSpec, book: Book) -> list[str]:
    """Return the models of a pool whose calls have no price."""
    return [slot.name for slot in spec.slots if book.price(slot.price_ref) is None]


def overridden_prices(spec: PoolSpec) -> Iterator[str]:
    """Yield a sentence for each pool-file price that differs from the price in the pool's book."""
    if not spec.prices:
        return
    book = read_book(spec.prices)
    for slot in spec.slots:
        price, listed = slot.own_price(spec.name), book.price(slot.model)
        if price and listed and price.base != listed.base:
            yield (
                f"{slot.name!r} has its own price in the pool file: {price.input} and "
                f"{price.output} dollars per million tokens in and out. "
                f"Price book {book.name!r} has {listed.input} and {listed.output}."
            )


def unpinned_hosts(spec: PoolSpec) -> Iterator[str]:
    """Yield a warning if OpenRouter may choose another host for each call of a model."""
    open_ = [
        slot.name
        for slot in spec.slots
        if slot.provider == "openrouter" and not slot.not_auditable and not _is_pinned(slot.args)
    ]
    if open_:
        yield (
            f"OpenRouter may serve each call of {', '.join(open_)} from another host, at another "
            "price and quantisation. Pin a host for each in the pool file: "
            'args = { provider = { order = ["HOST"], allow_fallbacks = false } }.'
        )


def _is_pinned(args: Mapping[str, Any]) -> bool:
    routing: Any = args.get("provider")
    if not isinstance(routing, Mapping):
        return False
    chosen = cast(Mapping[str, Any], routing)
    order = chosen.get("order") if chosen.get("allow_fallbacks") is False else None
    lists: tuple[Any, ...] = (chosen.get("only"), order)
    return any(isinstance(hosts, list) and len(cast(list[Any], hosts)) == 1 for hosts in lists)


def one_at_a_time(spec: PoolSpec, book: Book) -> dict[str, str]:
    """Return model -> why a dollar limit allows it only one call at a time."""
    return {slot.name: reason for slot in spec.slots if (reason := _without_bound(slot, book))}


def refuse_too_little(spec: PoolSpec, book: Book, share: Decimal, processes: int) -> None:
    """Raise UserError if one process's `share` of a dollar limit allows no call of any worker."""
    bounds = {slot.name: _bound(slot, book) for slot in (*spec.workers, *spec.variants)}
    bounded = {name: bound for name, bound in bounds.items() if bound is not None}
    if len(bounded) < len(bounds):
        return
    name = min(bounded, key=lambda worker: bounded[worker])
    if bounded[name] > share:
        payer = f"each of {processes} processes" if processes > 1 else "all calls together"
        raise UserError(
            f"One call of {name!r} can cost ${bounded[name]:.4f}, more than the ${share:.4f} "
            f"allowed for {payer}. Raise the dollar limit, or set a smaller max_tokens for the "
            "workers."
        )


def _bound(slot: WorkerSpec, book: Book) -> Decimal | None:
    """Return the maximum dollars of a call with an empty prompt; None if there is no maximum."""
    service = service_tier(slot.config, slot.args)
    attempted = Attempted("unknown", "none", None, service, 0, slot_max_tokens(slot))
    return upper_bound(attempted, book.price(slot.price_ref))


def _without_bound(slot: WorkerSpec, book: Book) -> str:
    price = book.price(slot.price_ref)
    if price is None or _bound(slot, book) is not None:
        return ""
    service = service_tier(slot.config, slot.args)
    if service != STANDARD and service not in price.services:
        return f"the book has no factor for service {service!r}"
    if slot_max_tokens(slot) is None:
        return "it has no max_tokens. Set one in its config to allow parallel calls"
    return "it uses tokens of its own that have no limit"


def slot_max_tokens(slot: WorkerSpec) -> int | None:
    """Return a model's reply limit in tokens, else its provider's; None if both are unknown."""
    if slot.config.max_tokens or slot.provider in (*SERVED, *IN_PROCESS):
        return slot.config.max_tokens
    try:
        model = slot_model(slot)
        return max_tokens_of(model, model.config)
    except Exception:  # `problems` reports why it cannot be set up
        return None


def package_problems() -> list[str]:
    """Return an error for each other distribution that installs a package named podium."""
    owners = {*metadata.packages_distributions().get("podium", [])} - {"podium"}
    return [
        f"Package 'podium' is also installed by {name!r}: uninstall it (pip uninstall {name})."
        for name in sorted(owners)
    ]


def shadowing_notes() -> Iterator[str]:
    """Yield a warning for each other package `podium` in the working directory or PYTHONPATH."""
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    for place in dict.fromkeys((str(Path.cwd()), *paths)):
        spec = PathFinder.find_spec("podium", [place])
        # A directory with this file is podium itself, or a checkout of it.
        if spec and spec.origin and not Path(spec.origin).with_name("_registry.py").exists():
            yield f"{spec.origin} shadows the podium package. Rename it."


def _model_problems(slot: WorkerSpec, setup: str) -> Iterator[str]:
    label = f"Worker {slot.name!r} ({slot.model})"
    if slot.provider in IN_PROCESS:
        if util.find_spec(IN_PROCESS[slot.provider]) is None:
            yield f"{label} runs in this process: install the train extra (pip install '.[train]')."
        return
    if slot.provider in SERVED:
        variable = SERVED[slot.provider]
        address = str(slot.args.get("base_url") or os.environ.get(variable, ""))
        if not address:
            yield f"{label} needs a running server: start it and set {variable}=http://HOST:PORT/v1."
            return
    else:
        try:
            address = str(slot_model(slot).api.base_url or "")
        except Exception as error:  # any error of a provider's constructor is reported
            message = " ".join(re.sub(r"\[/?[a-z ]+\]", "", str(error)).split())  # rich markup
            yield f"{label} cannot be set up: {message}"
            return
        if not address.startswith(OWN):
            return
    url = urlsplit(address)
    port = url.port or (443 if url.scheme == "https" else 80)
    try:  # Inspect would retry for ever
        socket.create_connection((url.hostname or "", port), timeout=2).close()
    except OSError as error:
        yield f"{label}: nothing answers at {address} ({error}). {setup or START}"


ALL = "all"
GROUPS = (ALL, *get_args(Group))  # names that expand to several systems
MOST_TRIES = 10_000
"""Maximum K in `NAME@K`: such a system makes K calls for every question."""
CONDUCTORS = ("conductor", "conductor-prompted", "conductor-adaptive")
"""Systems whose cost the compute-matched controls match: the first that is in the run."""


def why_unsuited(name: str, catalogue: Catalogue, suites: Suites) -> str | None:
    """Return why a system cannot run on some suites, in one sentence; None if it can."""
    card, tasks = catalogue.card(name), [s for s in suites if isinstance(s, TaskSuite)]
    for task in tasks:
        if name == ORACLE and task.why_not_single:
            return (
                f"{ORACLE} plans by the grades of single replies, which {task.name} cannot give: "
                f"leave {ORACLE} out. {task.why_not_single}"
            )
        if card.acts == "no" and task.why_not_single == GIVES_TOOLS:
            return f"{name} answers in words only, and {task.name} has tools: leave {name} out."
    mute = next((suite.name for suite in suites if not isinstance(suite, PubliclyTested)), None)
    if mute is None or "public tests" not in card.needs:
        return None
    return (
        f"{name} needs a suite whose questions show tests, but {mute!r} shows none. Leave one of "
        "them out."
    )


def ours(catalogue: Catalogue) -> dict[str, SystemCard]:
    """Return the systems that come with podium; other systems run only if the user names them."""
    systems = catalogue.systems
    return {name: systems[name] for name in systems if name in catalogue.ours}


def default_systems(catalogue: Catalogue, spec: PoolSpec, suites: Suites = ()) -> list[str]:
    """Return podium's systems that fit a pool, single models first; none trained, no frameworks."""
    # With suites, `why_unsuited` decides on public tests.
    unmet = {"train", "match", "sandbox"} | (set[str]() if suites else {"public tests"})
    candidates = [
        name
        for name, card in ours(catalogue).items()
        if name != ANY_SINGLE and card.group != "frameworks" and not card.learns
        if ("recorded" in card.traits or not spec.replayed) and not card.needs & unmet
    ]
    fitting = (name for name in candidates if not why_unfit(name, catalogue, spec))
    return [SINGLE, *(name for name in fitting if not why_unsuited(name, catalogue, suites))]


def why_unfit(name: str, catalogue: Catalogue, spec: PoolSpec) -> str | None:
    """Return why a system cannot run on a pool, in one sentence; None if it can."""
    card = catalogue.systems.get(manifest_key(name))
    if card is None:
        return unknown_system(name, catalogue)
    alone = manifest_key(name) == ANY_SINGLE
    nobody = reasons_of(spec.worker, name.partition(":")[2]) if alone else ()
    return next(chain(nobody, _wrong_k(name, card), _lacking(name, card, spec)), None)


def why_not_live(
    name: str, catalogue: Catalogue, spec: PoolSpec, stored: Experiment | None
) -> str | None:
    """Return why a system may not start in a live run; None if it may, or already runs in it."""
    if spec.label != "live" or (stored and any(row.system == name for row in stored.entries)):
        return None
    refusal = catalogue.card(name).methods.live_refusal(split_k(name)[1], spec)
    return refusal and f"{name} {refusal}"


def asked_slots(names: Iterable[str], catalogue: Catalogue, spec: PoolSpec) -> set[str]:
    """Return the pool's workers that some systems may call, and its conductor if they need one."""
    slots: set[str] = set()
    for name in names:
        alone = manifest_key(name) == ANY_SINGLE
        slots |= {name.partition(":")[2]} if alone else {*spec.names}
        slots |= {*catalogue.card(name).needs} & {CONDUCTOR}
    return slots


def remarks_on(names: Iterable[str], catalogue: Catalogue, spec: PoolSpec) -> Iterator[str]:
    """Yield remarks (sentences) from systems' cards on the use of each system with a pool."""
    for name in names:
        remarks = catalogue.card(name).methods.remarks(split_k(name)[1], spec)
        yield from (f"{name} {remark}" for remark in remarks)


def unknown_system(name: str, catalogue: Catalogue) -> str:
    """Return the error for an unknown system, with the list of known ones."""
    plain, k = split_k(name)
    if k and (plain in GROUPS or plain == SINGLE):
        return f"{plain} takes no number, so there is no {name!r}: name {plain!r}."
    cards, near = catalogue.systems, did_you_mean(name, (*catalogue.systems, *GROUPS))
    names = ", ".join(sorted(system for system, card in cards.items() if card.group != "controls"))
    return (
        f"{near}There is no system {name!r}; known systems: {names}, and controls, which `podium "
        f"systems` lists; groups of them: {', '.join(GROUPS)}."
    )


def _wrong_k(name: str, card: SystemCard) -> Iterator[str]:
    plain, k = split_k(name)
    if plain == name:
        return
    if not card.k:
        yield f"{plain} takes no number, so there is no {name!r}: name {plain!r}."
    elif card.takes_name:
        yield from () if k else (f"{name!r}: the part after @ must be a {card.k}.",)
    elif not re.fullmatch(r"[1-9]\d{0,4}", k, re.ASCII) or int(k) > MOST_TRIES:
        limits = f"a whole number from 1 to {MOST_TRIES:,}, as in {plain}@3."
        yield f"{name[:60]!r}: the part after @ must be {limits}"


def _lacking(name: str, card: SystemCard, spec: PoolSpec) -> Iterator[str]:
    k = split_k(name)[1]
    if "conductor" in card.needs and spec.conductor is None:
        yield f"{name} needs a conductor: add a [conductor] table to pool {spec.name!r}."
    methods = card.methods
    for bring in (methods.arguments, methods.conductor):  # a system's own files must exist
        yield from (f"{name}: {reason}" for reason in reasons_of(bring, k))
    if reason := methods.pool_refusal(k, spec):
        yield f"{name} {reason}"
    if lacks_sandbox(card):
        yield missing_sandbox(name)
    if spec.replayed and "recorded" not in card.traits and not prompts_recorded(spec):
        yield (
            f"{name} cannot run on recorded pool {spec.name!r}. Its replies answer the canonical "
            "single-worker request only, and a replayed reply is never used for another request."
        )
    if name == ORACLE and spec.label == "live":
        yield f"{ORACLE} tries many plans, and each costs money. Name a rehearsal or recorded pool."
    yield from filter(None, (missing_extra(card),))


def missing_extra(manifest: SystemCard) -> str | None:
    """Return an error if a system needs an optional dependency (extra) that is not installed."""
    extra = manifest.methods.extra
    modules = extra.modules if extra else ()
    lacked = next((module for module in modules if find_spec(module) is None), None)
    return extra and lacked and f"{manifest.name} needs {lacked}: pip install '.[{extra.name}]'."


def moved_graders(systems: Sequence[str], catalogue: Catalogue) -> list[str]:
    """Return sentences that list systems trained with other or unknown versions of the graders."""
    groups: dict[str, list[str]] = {}
    suites = catalogue.suites
    for name in systems:
        card = catalogue.systems.get(manifest_key(name))
        if card is None:
            continue
        then, change = card.methods.graders(split_k(name)[1]), "unknown grader versions"
        if then is not None:
            now = {suite: suites[suite].version for suite in then if suite in suites}
            moved = moved_versions(then, now)
            change = moved and f"other grader versions: {moved}"
        if change:
            groups.setdefault(change, []).append(name)
    return [
        f"The training of {', '.join(names)} used {change}." for change, names in groups.items()
    ]


def refuse_unready(spec: PoolSpec, book: Book) -> None:
    """Raise UserError for a pool's first missing key, server or price, and count the others."""
    if reasons := list(dict.fromkeys(problems(spec, book, conductor=False))):
        suffix = f" (and {len(reasons) - 1} more: podium doctor lists them)" if reasons[1:] else ""
        raise UserError(f"{reasons[0]}{suffix}")


def refuse_moved(stored: Experiment | None, log_dir: Path, catalogue: Catalogue) -> None:
    """Raise UserError if a run has an unknown system, or was graded by another version of a suite.

    Inspect treats such a suite's tasks as new: all questions would be asked, and paid for, again.
    """
    for row in stored.entries if stored else ():
        if manifest_key(row.system) not in catalogue.systems:
            raise UserError(
                f"{log_dir} has rows of {row.system!r}, a system that this version does not know. "
                "If it is your own, add --system FILE.py@NAME; if not, continue with the version "
                "that started the run."
            )
    for name, version in stored.suite_versions.items() if stored else ():
        now = catalogue.suites[name].version if name in catalogue.suites else version
        if version != now:
            raise UserError(
                f"{log_dir} holds a run with other settings: its version of {name} is {version!r}, "
                f"not {now!r}; grade it again (podium regrade --all {log_dir}), or name another "
                "--log-dir."
            )


def match_target(match: str | None, systems: Sequence[str]) -> str | None:
    """Return the system to whose cost compute-matched controls are matched; None if not in the run.

    It is `match` if given, else the run's conductor.
    """
    if match:
        return match if match in systems else None
    keyed = {manifest_key(name): name for name in reversed(systems)}  # first of equal cards
    return next((keyed[name] for name in CONDUCTORS if name in keyed), None)
