"""What is missing before anything is spent: keys, servers, prices, packages, and who listens."""

import os
import re
import socket
from collections.abc import Iterable, Iterator
from decimal import Decimal
from importlib import metadata, util
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from inspect_ai._util.entrypoints import ensure_entry_points
from inspect_ai._util.registry import registry_info
from inspect_ai.hooks._hooks import Hooks, get_all_hooks

from podium.harness.errors import UserError
from podium.harness.ledger.call import Attempted, upper_bound
from podium.harness.pool import slot_model
from podium.harness.pool_config import POOLS, PoolSpec, WorkerSpec
from podium.harness.prices import Book, read_book
from podium.harness.records import CONDUCTOR, GRADER
from podium.harness.request import STANDARD, max_tokens_of, service_tier
from podium.harness.suite import Suite

TRUSTED = ("inspect_ai", "podium")
"""Packages whose hooks keep to this machine: Inspect's own and ours."""
TELEMETRY = "INSPECT_TELEMETRY"
"""Names a function of another package that Inspect sends whole logs to."""


def refuse_listeners(suites: Iterable[Suite[Any]]) -> None:
    """Raise UserError for a suite that must not be published while somebody else listens."""
    private = next((suite.name for suite in suites if not suite.publishable), None)
    if private is None:
        return
    ensure_entry_points()
    others = {hook: type(hook).__module__.partition(".")[0] for hook in get_all_hooks()}
    listening = [
        (registry_info(hook).name, f"uninstall {package!r}, or switch it off as its makers say")
        for hook, package in others.items()
        if package not in TRUSTED and _is_active(hook)
    ]
    if function := os.environ.get(TELEMETRY, "").strip():
        listening.append((function, f"unset {TELEMETRY}"))
    for name, off in listening:
        raise UserError(
            f"The questions of {private} must not be published, and Inspect would hand them to the "
            f"hook {name!r}: {off}, for this run."
        )


def _is_active(hook: Hooks) -> bool:
    try:
        return hook.enabled()
    except Exception:  # whoever cannot say that it is off may listen
        return True


SERVED = {"vllm": "VLLM_BASE_URL", "sglang": "SGLANG_BASE_URL", "ollama": "OLLAMA_BASE_URL"}
"""Providers that talk to a server of the user's own, with the variable that holds its address.
They are asked for a connection instead of being constructed, which could start a server."""
OWN = "http://"
"""How the address of a server of the user's own begins; what is sold is behind https, and may be
behind a proxy that no plain connection passes."""
IN_PROCESS = {"hf": "transformers"}
"""Providers whose construction loads weights, with the package they need: looked up, not built."""


def problems(spec: PoolSpec, book: Book, conductor: bool = True, grader: bool = True) -> list[str]:
    """Return every reason why a pool, with these roles, cannot be run and paid for."""
    called = {CONDUCTOR: conductor, GRADER: grader}
    found: list[str] = []
    for slot in (slot for slot in spec.slots if called.get(slot.name, True)):
        found.extend(slot_problems(slot, spec, book))
    return found


def slot_problems(slot: WorkerSpec, spec: PoolSpec, book: Book) -> list[str]:
    """Return every reason why a model of a pool cannot be asked and paid for."""
    return [
        *_model_problems(slot),
        *(_price_problems(slot, spec, book) if spec.label == "live" else ()),
    ]


def _price_problems(slot: WorkerSpec, spec: PoolSpec, book: Book) -> Iterator[str]:
    price, service = book.price(slot.price_ref), service_tier(slot.config, slot.args)
    if slot.not_auditable:
        return  # the pool says that it has none, and every table says it again
    if price is None:
        copied = f"a copy of {spec.path}" if Path(spec.path).parent == POOLS else spec.path
        why = (
            f"book {book.name!r} has no {slot.price_ref!r}"
            if book.prices
            else f"book {book.name!r} states none, so name another book at `prices`"
        )
        yield (
            f"Worker {slot.name!r} has no price: {why}. "
            f"Add this line below its model in {copied}, with US dollars per million tokens: "
            "price = { input = ..., output = ... }"
        )
    elif service != STANDARD and service not in price.services:
        yield (
            f"Worker {slot.name!r} is served as {service!r}, and price book {book.name!r} has no "
            f"factor for it: add one to the services of {slot.price_ref!r}, or leave it out of the "
            "worker's settings."
        )


def unpriced(spec: PoolSpec, book: Book) -> list[str]:
    """Return the slots whose calls will have no dollar figure."""
    return [slot.name for slot in spec.slots if book.price(slot.price_ref) is None]


def overridden_prices(spec: PoolSpec) -> Iterator[str]:
    """Yield which price of a pool file replaces another one that its book has."""
    if not spec.prices:
        return
    book = read_book(spec.prices)
    for slot in spec.slots:
        own, listed = slot.own_price(spec.name), book.price(slot.model)
        if own and listed and own.base != listed.base:
            yield (
                f"{slot.name!r} is priced by the pool file, {own.input} and {own.output} per "
                f"million tokens in and out; {book.name!r} has {listed.input} and {listed.output}."
            )


def one_at_a_time(spec: PoolSpec, book: Book) -> dict[str, str]:
    """Return the slots that a limit of dollars makes ask one call at a time, and why."""
    return {slot.name: why for slot in spec.slots if (why := _without_bound(slot, book))}


def refuse_too_little(spec: PoolSpec, book: Book, part: Decimal, processes: int) -> None:
    """Raise UserError where no call of any worker fits into what one process may spend."""
    bounds = {slot.name: _bound(slot, book) for slot in spec.workers}
    known = {name: bound for name, bound in bounds.items() if bound is not None}
    if len(known) < len(bounds):
        return
    name = min(known, key=lambda one: known[one])
    if known[name] > part:
        who = f"each of {processes} processes" if processes > 1 else "all calls together"
        raise UserError(
            f"One call of {name!r} can cost ${known[name]:.4f}, more than the ${part:.4f} that "
            f"{who} may: raise the limit of dollars, or set a smaller max_tokens for the workers."
        )


def _bound(slot: WorkerSpec, book: Book) -> Decimal | None:
    """Return the most that a call with an empty prompt can cost; None where nothing bounds it."""
    service = service_tier(slot.config, slot.args)
    attempted = Attempted("unknown", "none", None, service, 0, _max_tokens(slot))
    return upper_bound(attempted, book.price(slot.price_ref))


def _without_bound(slot: WorkerSpec, book: Book) -> str:
    price = book.price(slot.price_ref)
    if price is None or _bound(slot, book) is not None:
        return ""
    service = service_tier(slot.config, slot.args)
    if service != STANDARD and service not in price.services:
        return f"the book has no factor for service {service!r}"
    if _max_tokens(slot) is None:
        return "it has no max_tokens; set one in its config to have its calls side by side"
    return "it spends tokens of its own, which nothing limits"


def _max_tokens(slot: WorkerSpec) -> int | None:
    """Return the limit of a slot's replies: its own, else its provider's if that can be set up."""
    if slot.config.max_tokens or slot.provider in (*SERVED, *IN_PROCESS):
        return slot.config.max_tokens
    try:
        model = slot_model(slot)
        return max_tokens_of(model, model.config)
    except Exception:  # `problems` says what keeps it from being set up
        return None


def package_problems() -> list[str]:
    """Return whether another distribution has installed a package of our name, too."""
    others = {*metadata.packages_distributions().get("podium", [])} - {"podium"}
    return [
        f"Package 'podium' is also installed by {name!r}: uninstall it (pip uninstall {name})."
        for name in sorted(others)
    ]


def shadowing_notes() -> Iterator[str]:
    """Yield which other package named podium is in the working directory or on PYTHONPATH."""
    named = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    for place in dict.fromkeys((str(Path.cwd()), *named)):
        spec = PathFinder.find_spec("podium", [place])
        # A whole podium is this one, or a checkout.
        if spec and spec.origin and not Path(spec.origin).with_name("_registry.py").exists():
            yield f"{spec.origin} is imported there instead of podium: rename it."


def _model_problems(slot: WorkerSpec) -> Iterator[str]:
    who = f"Worker {slot.name!r} ({slot.model})"
    if slot.provider in IN_PROCESS:
        if util.find_spec(IN_PROCESS[slot.provider]) is None:
            yield f"{who} runs in this process: install the train extra (pip install '.[train]')."
        return
    if slot.provider in SERVED:
        variable = SERVED[slot.provider]
        address = str(slot.args.get("base_url") or os.environ.get(variable, ""))
        if not address:
            yield f"{who} needs a running server: start it and set {variable}=http://HOST:PORT/v1."
            return
    else:
        try:
            address = str(slot_model(slot).api.base_url or "")
        except Exception as error:  # whatever a provider's constructor raises is the finding
            said = " ".join(re.sub(r"\[/?[a-z ]+\]", "", str(error)).split())  # rich markup
            yield f"{who} cannot be set up: {said}"
            return
        if not address.startswith(OWN):
            return
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:  # Inspect would try again for ever
        socket.create_connection((parts.hostname or "", port), timeout=2).close()
    except OSError as error:
        yield f"{who}: nothing answers at {address} ({error})."
