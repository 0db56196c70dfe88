"""The model that a reply names, and the price of that model.

A request to a gateway (a server that passes calls on to providers) names only an alias; the reply
may name the model that answered.
"""

import re
from collections.abc import Mapping

from podium.harness.ledger.call import Call
from podium.harness.ledger.runs import WorkerFacts
from podium.harness.pool_config import provider_of
from podium.harness.prices import Book
from podium.harness.prices.cost import Price

DATE = re.compile(r"(-20\d{2}-[01]\d-[0-3]\d|-20\d{2}[01]\d[0-3]\d|@20\d{6})$")
"""Pattern of a date at the end of a model's id: providers append it to the requested name."""
UNNAMED = "the reply does not name its model, so its price is unknown"
NO_PRICE = "book {!r} has {} for it; add a worker with that model and its price to the pool"


def plain_name(model: str) -> str:
    """Return a model's name without its provider and its date.

    >>> plain_name("openai/gpt-5-2026-08-07"), plain_name("meta/llama:free")
    ('gpt-5', 'llama:free')
    """
    return DATE.sub("", model.rsplit("/", 1)[-1])


def repeats_name(model: str, served: str | None) -> bool:
    """Return whether the model name in a reply is the requested name, which may be an alias."""
    return served is not None and model.endswith(f"/{served}")


def may_be_alias(model: str, served: str | None) -> bool:
    """Return whether the model name in a reply may be only an alias of a gateway (proxy server)."""
    return model.startswith("openai-api/") and repeats_name(model, served)


def answering_price(
    call: Call, workers: Mapping[str, WorkerFacts], book: Book
) -> tuple[str, Price | None]:
    """Return the price-book key and price of the model named in a reply, or (reason, None).

    The name is looked up with its date, then without: among the pool's workers, then in the book at
    the same provider, as a full key, and at any provider. If matching keys differ in price, the
    price is None.
    """
    served = call.served_model
    repeated = repeats_name(call.model, served) and book.price(call.price_ref) is None
    if served is None or repeated:
        return UNNAMED, None
    for name in dict.fromkeys((served, DATE.sub("", served))):
        short = name.rsplit("/", 1)[-1]
        for keys in (
            [worker.price for worker in workers.values() if worker.model.endswith(f"/{short}")],
            [f"{provider_of(call.model)}/{name}"],
            [name],
            [key for key in book.prices if key.endswith(f"/{name}")],
        ):
            prices = {key: price for key in keys if (price := book.price(key))}
            if len({(price.base, price.tiers, price.request) for price in prices.values()}) > 1:
                return NO_PRICE.format(book.name, f"several prices ({', '.join(prices)})"), None
            if prices:
                return next(iter(prices.items()))
    return NO_PRICE.format(book.name, "no price"), None
