"""A local HTTP server that speaks as real providers do, with scripted faults and a bill of its own.

    with serve([rate_limited(), ok("ANSWER: 7")]) as server:
        model = get_model("openai/gpt-5-mini", base_url=server.openai, api_key="test")
        ...
    server.bill.lines       # every HTTP request, and what the provider bills for it

    with serve() as server:
        pool = write_pool(tmp_path, server)     # three workers: `podium run --pool <pool>`

It knows OpenAI chat completions and responses (Sakana's Fugu too), Anthropic messages and Google
generateContent, whole or streamed. A script is a list of acts in order of arrival, or a table of
lists by model. Read `script.py` for the acts, `bill.py` for the invoice's ground truth.
"""

import pytest

from tests.providers.bill import Bill, Line
from tests.providers.pool_files import MODELS, write_pool
from tests.providers.script import (
    Act,
    Script,
    cutting,
    dropping,
    failing,
    ok,
    rate_limited,
    stalling,
    taking,
    too_much_cached,
    too_much_reasoning,
    unreported,
    wrong_total,
)
from tests.providers.server import Server, serve

CLIENTS_WARN = pytest.mark.filterwarnings(
    "ignore:Inheritance class AiohttpClientSession:DeprecationWarning",  # google-genai 3.4.0
    # No client closes its connections when an eval ends. Files of ours that stay open are errors.
    "ignore:unclosed (transport|connector|client session|<socket):ResourceWarning",
)
"""For `pytestmark` where a provider's client runs in the test's own process."""

__all__ = [
    "CLIENTS_WARN",
    "MODELS",
    "Act",
    "Bill",
    "Line",
    "Script",
    "Server",
    "cutting",
    "dropping",
    "failing",
    "ok",
    "rate_limited",
    "serve",
    "stalling",
    "taking",
    "too_much_cached",
    "too_much_reasoning",
    "unreported",
    "write_pool",
    "wrong_total",
]
