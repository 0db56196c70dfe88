"""The systems that an endpoint offers as models: their ids, aliases and parts.

A dated id contains the date of the price book and a digest over system, checkpoint, pool and book:
requests for it are refused once any of these has changed.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any

from inspect_ai.model import Model

from podium.harness.context import run_context
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import system_of
from podium.harness.ledger.call import canonical
from podium.harness.pool import pool_models, slot_model
from podium.harness.pool_config import PoolSpec, WorkerSpec, with_conductor
from podium.harness.prices import Book
from podium.harness.records import CONDUCTOR, GRADER, PODIUM
from podium.harness.run.catalogue import SINGLE, Catalogue, conductor_override, split_k
from podium.harness.run.experiment import Experiment, read_experiment
from podium.harness.run.preflight import refuse_unready, why_unfit
from podium.harness.system import System, SystemCard, card_header
from podium.serving.exchange import Refusal

PREFIX = f"{PODIUM}/"
DIGITS = 12
"""Length of the digest in a model's dated id."""
UNSERVED: Mapping[str, str] = {
    "public tests": "it needs public tests of a suite, which client requests do not have",
    "match": "its budget is the cost of another system in a run",
    "sandbox": "it needs an Inspect sandbox for programs of other authors",
}
"""What a system needs but no client request can provide -> the reason, as a sentence."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One system with its worker pool, offered to clients as a model."""

    name: str
    """The system's name in reports, such as `moa-lite`."""
    card: SystemCard
    args: Mapping[str, Any]
    system: System
    spec: PoolSpec
    """The pool, with the system's own conductor if it has one."""
    dated: str

    @property
    def id(self) -> str:
        """Return the model's id without a date, such as `podium/moa-lite`."""
        return f"{PREFIX}{self.name}"

    @property
    def passes_through(self) -> bool:
        """Return whether every worker that may answer gets the client's conversation unchanged."""
        return self.card.acts in ("passes", "votes")

    @property
    def acts(self) -> bool:
        """Return whether the system's replies may call the client's tools."""
        return self.card.acts != "no"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The catalogue, pool, prices and run directory from which served models are made."""

    catalogue: Catalogue
    spec: PoolSpec
    book: Book
    learnt: Path | None = None
    """Directory of a run: systems that learnt in this run are served with what they learnt."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ServedModels:
    """The served models, with a lookup by every id that a client may use."""

    models: tuple[ServedModel, ...]
    aliases: Mapping[str, str]
    began: datetime

    def find(self, model_id: str) -> ServedModel:
        """Return the model of an id, an alias or a dated id; Refusal (404) if no model has it."""
        name = model_id.removeprefix(PREFIX)
        name = self.aliases.get(name, name)
        for model in self.models:
            if model_id == model.dated or name == model.name:
                return model
        if moved := next((model for model in self.models if _is_dated(model_id, model)), None):
            sentence = f"{model_id!r:.120} is another version. Request {moved.dated}."
        else:
            near = get_close_matches(model_id, [*self.ids()], n=3, cutoff=0.4) or [*self.ids()][:3]
            sentence = f"This server has no model {model_id!r:.120}. Try {', '.join(near)}."
        raise Refusal(404, "not_found", sentence, param="model")

    def ids(self) -> Iterator[str]:
        """Yield every id that a client may use, aliases first."""
        yield from (f"{PREFIX}{alias}" for alias in self.aliases)
        for model in self.models:
            yield from (model.id, model.dated)

    def offered(self) -> list[str]:
        """Return the models' ids without dates, aliases first."""
        return [*(f"{PREFIX}{alias}" for alias in self.aliases), *(m.id for m in self.models)]

    def listing(self) -> dict[str, Any]:
        """Return the body of `GET /v1/models`, for OpenAI's and Anthropic's clients."""
        return {
            "object": "list",
            "data": [self.entry(id) for id in self.ids()],
            "has_more": False,
            "first_id": next(self.ids()),
            "last_id": [*self.ids()][-1],
        }

    def entry(self, model_id: str) -> dict[str, Any]:
        """Return a model's entry in the list of models; Refusal (404) if there is no such model."""
        model = self.find(model_id)
        return {
            "id": model_id,
            "object": "model",
            "type": "model",
            "created": int(self.began.timestamp()),
            "created_at": self.began.isoformat(timespec="seconds"),
            "owned_by": PODIUM,
            "display_name": model.name,
            PODIUM: {
                "system": model.name,
                "resolves_to": model.dated,
                "tools": model.acts,
            },
        }


def served_models(names: Sequence[str], source: ModelSource) -> ServedModels:
    """Return the named systems as models; UserError if a system cannot answer clients."""
    learnt = read_experiment(source.learnt) if source.learnt else None
    if source.learnt and learnt is None:
        raise UserError(
            f"{source.learnt} is not a run. Give --learnt a directory that `podium run` wrote."
        )
    if learnt and learnt.pool_sha256 != source.spec.sha256:
        raise UserError(f"{source.learnt} was run with another pool. Use the --pool of that run.")
    alone = [f"{SINGLE}:{worker}" for worker in source.spec.names]
    several = chain.from_iterable(alone if name == SINGLE else [name] for name in names)
    models = tuple(_made(name, source, learnt) for name in dict.fromkeys(several))
    system_names = {model.name for model in models}
    for alias, system in source.spec.aliases.items():
        if system not in system_names:
            raise UserError(
                f"Alias {alias!r} of pool {source.spec.name!r} means {system!r}, which is not "
                f"served. Add --system {system}, or remove the alias."
            )
        if alias in system_names:
            raise UserError(
                f"Alias {alias!r} is also the name of a served system. Rename the alias."
            )
    return ServedModels(models, source.spec.aliases, datetime.now(UTC))


def _made(name: str, source: ModelSource, learnt: Experiment | None) -> ServedModel:
    catalogue, spec = source.catalogue, source.spec
    if reason := why_unfit(name, catalogue, spec):
        raise UserError(reason)
    card = catalogue.card(name)
    row = next((each for each in learnt.entries if each.system == name), None) if learnt else None
    if reason := _unserved(card, taught=row is not None):
        fix = "" if "--learnt" in reason else " Choose another system."
        raise UserError(f"{name} cannot be served: {reason}.{fix}")
    override = conductor_override(name, catalogue)
    pool = with_conductor(spec, override)
    refuse_unready(pool, source.book)
    args = dict(row.args) if row else _arguments(name, card, source)
    with run_context(log_dir=source.learnt or Path(), spec=pool):
        system = system_of(catalogue.solver(card.solver, {**args, "pool": pool.name}))
    return ServedModel(name, card, args, system, pool, _dated(name, (card, args, pool), source))


def _unserved(card: SystemCard, *, taught: bool) -> str | None:
    if "sees targets" in card.traits:
        return "it reads the right answers, which client requests do not have"
    if card.group == "frameworks":
        return "a framework patches the API clients of the whole process"
    if card.learns and not taught:
        return "it must learn first; run it, and give that run's directory with --learnt"
    if card.name == "best-single" and not taught:
        return "the best worker is determined in a run; give its directory with --learnt"
    return next((reason for need, reason in UNSERVED.items() if need in card.needs), None)


def _arguments(name: str, card: SystemCard, source: ModelSource) -> dict[str, Any]:
    """Return a solver's arguments as in a run, without those that a run learns or chooses."""
    if name.startswith(f"{SINGLE}:"):
        return {"worker": name.partition(":")[2]}
    takes, k = source.catalogue.parameters(card.solver), split_k(name)[1]
    arguments: dict[str, Any] = {"seed": source.seed} if "seed" in takes else {}
    if card.takes_name:
        return {**arguments, **card.methods.arguments(k)}
    return {**arguments, card.k: int(k)} if k else arguments


def _dated(
    name: str, made_of: tuple[SystemCard, Mapping[str, Any], PoolSpec], source: ModelSource
) -> str:
    card, args, spec = made_of
    facts = {
        "system": name,
        "args": dict(args),  # including a checkpoint's name and digest
        "card": card_header(card, len(spec.names), args),
        "conductor": spec.conductor.model_dump(mode="json") if spec.conductor else None,
        "pool": spec.sha256,
        "book": source.book.sha256,
    }
    digest = hashlib.sha256(canonical(facts)).hexdigest()[:DIGITS]
    return f"{PREFIX}{name}-{source.book.date}-{digest}"


def _is_dated(name: str, model: ServedModel) -> bool:
    """Return whether a name is a dated id of this model, in its current or another version."""
    return (
        re.fullmatch(rf"{re.escape(model.id)}-\d{{4}}-\d\d-\d\d-[0-9a-f]{{12}}", name) is not None
    )


def models_by_role(
    served: Sequence[ServedModel], spec: PoolSpec, seed: int, time_scale: float
) -> dict[str, Mapping[str, Model]]:
    """Return system -> role -> model client; all systems share the clients of the pool."""
    shared = pool_models(spec, seed, time_scale)
    shared.pop(GRADER, None)
    roles: dict[str, Mapping[str, Model]] = {}
    for model in served:
        slot: WorkerSpec | None = model.spec.conductor
        is_own = slot is not None and slot != spec.conductor
        roles[model.name] = {**shared, CONDUCTOR: slot_model(slot)} if is_own and slot else shared
    return roles
