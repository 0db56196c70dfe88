"""A log of plain `inspect eval` of a suite of ours, as a report reads it: a model, and no system.

It has no pool, no journal and no price book: its rows have a label of their own, and dollars at the
newest list prices, where these know its models.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from podium.harness.ledger.logs import NOTHING, Json
from podium.harness.ledger.runs import PLAIN, RunFacts, WorkerFacts
from podium.harness.prices import Book, newest_list
from podium.harness.records import PODIUM

NO_MODEL = "none/none"  # what Inspect writes where no model was named
OURS = ("ask_differently", "offer_public_tests")
"""Solvers that tasks of ours put before any other (harness/inspect_adapters.py)."""


def plain_facts(header: Json) -> RunFacts | None:
    """Return what a log's header says of its run where a suite of ours asked a model alone."""
    about: Json = header["eval"]
    stored: object = (about.get("metadata") or NOTHING).get(PODIUM)
    if not isinstance(stored, Mapping) or "suite" not in stored or "system" in stored:
        return None
    book, models = newest_list(), dict(_models(about))
    return RunFacts.model_validate(
        {
            **cast(Mapping[str, Any], stored),
            "system": _system(header),
            "args": about.get("solver_args") or {},
            "pool": PLAIN,
            "pool_sha256": "none",
            "label": PLAIN,
            "prices": book.as_json(),
            "workers": {name: WorkerFacts(model=id, price=id) for name, id in models.items()},
            "seed": 0,  # nothing of podium's was drawn
            "time_scale": 1.0,
            "notes": _notes(book, sorted({*models.values()})),
        }
    )


def _system(header: Json) -> str:
    """Return who is examined: a model, by its solvers where these do more than ask it."""
    steps = cast(list[Json], (header.get("plan") or NOTHING).get("steps") or [])
    names = [str(one.get("solver")).rpartition("/")[2] for one in steps]
    solvers = " + ".join(name for name in names if name not in OURS)
    model = str(header["eval"].get("model", ""))
    if solvers in ("", "generate"):
        return model
    return solvers if model == NO_MODEL else f"{solvers} on {model}"


def _models(about: Json) -> Iterator[tuple[str, str]]:
    """Yield the models under the names that their calls have: roles, or their own."""
    model, roles = str(about.get("model", "")), cast(Json, about.get("model_roles") or NOTHING)
    if model != NO_MODEL:
        yield model, model
    for role, given in roles.items():
        for one in cast(list[Json], given if isinstance(given, list) else [given]):
            yield role, str(one.get("model", ""))


def _notes(book: Book, models: list[str]) -> Iterator[str]:
    yield f"plain `inspect eval`: no journal, no audit; dollars at {book.name}"
    if unpriced := [one for one in models if book.price(one) is None]:
        yield f"no dollars: {book.name} has no price for {', '.join(unpriced)}"
