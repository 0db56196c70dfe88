"""What does Inspect make of Sakana's Fugu, and what do we, of one published request?

    python tests/benchmarks/fugu_example.py

The counts are a third party's sample (prompt 212, completion 522, orchestration 5,463 in and 1,053
out, total 7,250), given back by a local server: nobody is paid, nothing leaves this machine. Prices
are those of the book `list-2026-11-21`. Inspect's figure is its own
`compute_model_cost` at those prices, on what its `openai-api/` provider says.
"""

import asyncio
import sys
from decimal import Decimal
from pathlib import Path

from inspect_ai.model import GenerateConfig, ModelCost, ModelOutput, compute_model_cost, get_model

sys.path.insert(0, str(Path(__file__).parents[2]))

from podium.harness.prices import read_book
from podium.harness.prices.cost import cost
from podium.harness.records import Usage
from podium.harness.usage import usage_of_reply
from tests.providers import ok, serve

TOOK = Usage(input=212, output=522, orchestration_in=5463, orchestration_out=1053)
MODEL = "fugu-ultra-20260615"
ULTRA = read_book("list-2026-11-21").prices[f"fugu/{MODEL}"]


async def answered(model: str, url: str) -> ModelOutput:
    """Return the reply of a model at a local server."""
    asked = get_model(
        model, base_url=url, api_key="test", config=GenerateConfig(max_tokens=1024), memoize=False
    )
    return await asked.generate("What is 3 + 4?")


def inspects(output: ModelOutput) -> float:
    """Return Inspect's own price of a reply."""
    assert output.usage is not None
    rates = ModelCost(
        input=float(ULTRA.input),
        output=float(ULTRA.output),
        input_cache_write=0.0,
        input_cache_read=float(ULTRA.cache_read or 0),
    )
    return compute_model_cost(rates, output.usage)


def both() -> tuple[float, Decimal | None]:
    """Return Inspect's price of the request, and ours."""
    with serve([ok(usage=TOOK)] * 2) as server:
        theirs = asyncio.run(answered(f"openai-api/fugu/{MODEL}", server.openai))
        ours = asyncio.run(answered(f"fugu/{MODEL}", server.openai))
    usage = usage_of_reply(ours)
    assert usage is not None
    return inspects(theirs), cost(usage, ULTRA)


if __name__ == "__main__":
    theirs, ours = both()
    print(f"Inspect, openai-api/fugu/{MODEL}: ${theirs:.6f}")
    print(f"podium,  fugu/{MODEL}:            ${ours}")
