"""Our own servers: what any of them listens with, and every system as a model with a bill.

The reward service and the viewer take no more than `listener`; `podium serve` is all the rest.
"""

from podium.harness.listener import (
    Access,
    bound_socket,
    error_reply,
    is_loopback,
    listen,
    serve,
    uvicorn_config,
    with_access,
)

__all__ = [
    "Access",
    "bound_socket",
    "error_reply",
    "is_loopback",
    "listen",
    "serve",
    "uvicorn_config",
    "with_access",
]
