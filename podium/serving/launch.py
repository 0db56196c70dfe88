"""`podium serve`: checks its arguments and workers, then answers requests until a signal."""

import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from podium.harness.errors import UserError
from podium.harness.files import refuse_unwritable
from podium.harness.ledger.journal import Head, mend
from podium.harness.ledger.served import SUITE, served_requests
from podium.harness.listener import Access, bound_socket, is_loopback, listen, serve
from podium.harness.pool import slot_model
from podium.harness.pool_config import PoolSpec, read_pool
from podium.harness.prices import Book
from podium.harness.run.catalogue import Catalogue
from podium.harness.run.experiment import FILE as EXPERIMENT
from podium.harness.run.experiment import lock_experiment, manifested
from podium.serving.access_keys import Keys
from podium.serving.admission import Admission, ServingLimits, SpentBefore
from podium.serving.app import ServerSettings, model_app
from podium.serving.journals import DailyJournals
from podium.serving.models import ModelSource, ServedModels, models_by_role, served_models
from podium.serving.service import ModelService
from podium.serving.telemetry import Telemetry

EVERYWHERE = frozenset({"", "0.0.0.0", "::"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRequest(ServingLimits):
    """The arguments of `podium serve`, with its limits (from the base class)."""

    pool: str
    systems: tuple[str, ...]
    log_dir: Path
    host: str = "127.0.0.1"
    port: int = 0
    allow_hosts: tuple[str, ...] = ()
    keys: Path | None = None
    """File of access keys; None: only this machine may connect, without a key."""
    learnt: Path | None = None
    seed: int = 0
    time_scale: float = 0.01
    keep_texts: bool = False
    grace_s: float = 30
    otlp: str | None = None


def serve_models(
    request: EndpointRequest,
    catalogue: Catalogue,
    say: Callable[[str], None],
    log: Callable[[str], None],
) -> None:
    """Serve systems as models until a signal; UserError before the start if serving would fail."""
    _refuse_run(request.log_dir)
    refuse_unwritable(request.log_dir, "--log-dir")
    with (
        bound_socket(request.host, request.port) as sock,
        lock_experiment(request.log_dir),
        manifested(request.log_dir),
    ):
        server = model_server(request, catalogue, sock, (say, log))
        line = f"Models at {listen(sock)}: {', '.join(server.models.offered())}. Ctrl-C stops it."
        settings: dict[str, Any] = {"grace_s": int(request.grace_s), "lifespan": "on"}
        serve(server.application, sock, ready=lambda: say(line), **settings)
        say(f"Stopped. ${server.admission.spend.gone} spent, earlier sessions included.")


@dataclass(frozen=True, slots=True)
class ModelServer:
    """An HTTP application that is ready to be served; its models and its admission of requests."""

    application: ASGIApp
    models: ServedModels
    admission: Admission


Tell = Callable[[str], None]


def model_server(
    request: EndpointRequest, catalogue: Catalogue, sock: socket.socket, tells: tuple[Tell, Tell]
) -> ModelServer:
    """Return the application for a bound socket; UserError if serving would fail."""
    say, log = tells
    _refuse_unbounded(request)
    keys = Keys(request.keys, tell=say)
    spec = read_pool(request.pool)
    source = ModelSource(catalogue, spec, spec.book(), request.learnt, request.seed)
    _refuse_itself(spec, sock)  # first: `served_models` may call workers
    models = served_models(request.systems, source)
    mend(request.log_dir)
    spent = SpentBefore.of(served_requests(request.log_dir))
    admission = Admission(source.book, request, lambda: datetime.now(UTC), spent)
    telemetry = Telemetry([model.name for model in models.models], log, request.otlp)
    name = secrets.token_hex(8)

    def make() -> ModelService:
        return ModelService(
            models=models,
            made=models_by_role(models.models, spec, request.seed, request.time_scale),
            admission=admission,
            journals=DailyJournals(
                request.log_dir,
                _heads(models, source.book),
                source.book.for_log(key for m in models.models for key in m.spec.price_keys),
                _today,
            ),
            telemetry=telemetry,
            limits=request,
            book=source.book,
            log_dir=request.log_dir,
            name=name,
            keep_texts=request.keep_texts,
        )

    address, port = sock.getsockname()[:2]
    names = frozenset(host.lower() for host in (request.host, *request.allow_hosts))
    access = Access(address, port, names - EVERYWHERE)
    settings = ServerSettings(keys, access, name, request.grace_s)
    return ModelServer(model_app(make, settings), models, admission)


def _today() -> date:
    return datetime.now(UTC).date()


def _refuse_unbounded(request: EndpointRequest) -> None:
    """Raise UserError if other machines need no key, or a limit is not positive and finite."""
    if request.keys is None and not is_loopback(request.host):
        raise UserError(
            f"--host {request.host} accepts requests from other machines. Add a --keys file "
            "(--new-key makes one), or leave --host out."
        )
    for name in ("max_calls", "concurrency", "deadline_s"):
        if not 0 < getattr(request, name) < inf:
            option = name.removesuffix("_s").replace("_", "-")
            raise UserError(f"--{option} must be above 0, not {getattr(request, name)}.")


def _refuse_run(log_dir: Path) -> None:
    if (log_dir / EXPERIMENT).exists():
        raise UserError(f"{log_dir} holds a run. Use another --log-dir for served requests.")


def _refuse_itself(spec: PoolSpec, sock: socket.socket) -> None:
    """Raise UserError if a worker's address is this server's own address."""
    host, port = sock.getsockname()[:2]
    for slot in spec.slots if spec.label == "live" else ():
        url = urlsplit(str(slot_model(slot).api.base_url or ""))
        here = url.hostname is not None and (url.hostname == host or is_loopback(url.hostname))
        if here and (url.port or 80) == port:
            raise UserError(
                f"Worker {slot.name!r} calls {url.geturl()}, which is this server, so that each "
                "call would loop. Use another --port or another base_url."
            )


def _heads(models: ServedModels, book: Book) -> dict[str, Head]:
    return {
        model.name: Head(
            task=f"serve {model.name}",
            suite=SUITE,
            system=model.name,
            label=model.spec.label,
            book=book.name,
            book_sha256=book.sha256,
        )
        for model in models.models
    }
