"""`podium reward serve`: what can be refused is; then a port, with a door, until a signal."""

import errno
import hmac
import ipaddress
import signal
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import FrameType
from typing import Any, Literal
from urllib.parse import urlsplit

import anyio
import uvicorn
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from harness.boxes import open_run_box, refuse_unknown, select_box
from harness.cassette import prompts_recorded
from harness.errors import UserError
from harness.files import read_limited
from harness.judge import judged_among
from harness.pool_config import PoolSpec, read_pool
from harness.prices import Book, read_book
from harness.rewards.outcome import PAPER, PLAIN, OutcomeValues, Sampler, as_reply
from harness.rewards.reward import Reward, RewardSettings
from harness.rewards.server import (
    PromptOf,
    ReplyOnUnscored,
    RewardService,
    error_reply,
    reward_app,
    user_prompt,
)
from harness.rewards.splits import (
    BareText,
    SuiteSplit,
    load_split,
    load_training_split,
    refuse_gullible,
    refuse_overlap,
    whole_text,
    without_overlap,
)
from harness.run.catalogue import Catalogue, find_named
from harness.run.systems import refuse_unready
from harness.suite import Split, Suite

VALUES: Mapping[str, OutcomeValues] = {"plain": PLAIN, "paper": PAPER}

ASKING = 64
"""Workflows in flight unless the user says otherwise: they wait for workers, not for a core."""


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """What `podium reward serve` was asked for."""

    suites: tuple[str, ...]
    split: Split = "train"
    limit: int | None = None
    box: str | None = None
    max_sandboxes: int | None = None
    pool: str | None = None  # completions are workflows for this pool; None: they are replies
    host: str = "127.0.0.1"
    port: int = 0
    allow_hosts: tuple[str, ...] = ()
    token_file: Path | None = None
    """Holds what every request must send; None: who is on this machine need not."""
    max_usd: Decimal | None = None
    timeout_s: float = 120.0
    max_masked: float = 0.3
    most: int | None = None
    values: Literal["plain", "paper"] = "plain"
    on_unscored: ReplyOnUnscored = "error"


@dataclass(frozen=True, slots=True)
class RewardHooks:
    """What the spokes hand in: how workflows are carried out, and what a question asks."""

    answerer: Callable[[PoolSpec, Book, Decimal | None], Sampler]
    """Pool, prices and what may be spent -> what carries workflows out."""
    shown: Callable[[PoolSpec], PromptOf]
    """Pool -> what a policy is sent that writes workflows for it."""
    bare: BareText = whole_text  # question -> its text without its suite's instruction


def serve_rewards(
    request: ServeRequest, catalogue: Catalogue, parts: RewardHooks, say: Callable[[str], None]
) -> None:
    """Serve rewards until a signal; UserError, before that, for what can be known to fail."""
    token = read_token(request.token_file, say)
    settings = _settings(request)
    splits, left = _training_splits(request, catalogue, parts.bare)
    answer, shown, label = _completions(request, parts)
    suites = [split.suite for split in splits.values()]
    refuse_unknown(catalogue.boxes, request.box)
    name = request.box
    if any(suite.needs_box for suite in suites):
        name = select_box(name, catalogue.boxes, ours=label == "rehearsal")
    with (
        bound_socket(request.host, request.port) as taken,
        open_run_box(catalogue.boxes, name, suites, request.max_sandboxes) as box,
    ):
        anyio.run(_refuse_gullible, splits, box and box.box)
        reward = Reward(splits, answer, settings, box and box.box)
        service = RewardService(reward, splits, shown, request.on_unscored, bool(request.pool))
        counted = ", ".join(f"{one.suite.name} ({len(one.questions)})" for one in splits.values())
        completions = f"workflows for pool {request.pool}" if request.pool else "replies"
        also = f"; {left} left out, for an eval split asks them too" if left else ""
        said = (
            f"Rewards at {listen(taken)}: {completions} to {request.split} questions of {counted}, "
            f"{f'box {box.name}' if box else 'no box'}{also}."
        )
        address, port = taken.getsockname()[:2]
        names = frozenset(name.lower() for name in (request.host, *request.allow_hosts))
        access = Access(address, port, names - {"", "0.0.0.0", "::"}, token)
        serve(with_access(reward_app(service), access), taken, ready=lambda: say(said))
        counts = reward.counts
        ended = ", ".join(f"{n} {status}" for status, n in counts.by_status.items() if n)
        say(f"Stopped. {counts.items} rewards: {ended or 'none'}; ${counts.usd} spent.")


async def _refuse_gullible(splits: Mapping[str, SuiteSplit], box: Any) -> None:
    """Try the attacks on replies, in the very box; what they come to is not counted."""
    reward = Reward(splits, settings=RewardSettings(max_masked=1.0), box=box)
    for split in splits.values():
        await refuse_gullible(reward, split)


def _settings(request: ServeRequest) -> RewardSettings:
    if request.token_file is None and not is_loopback(request.host):
        raise UserError(
            f"--host {request.host} lets other machines in: name a --token-file, which holds what "
            "they must send, or leave --host out."
        )
    if request.pool is None and request.max_usd is not None:
        raise UserError("Grading replies costs no dollars: --max-usd goes with --pool.")
    if request.pool is None and request.values == "paper":
        raise UserError("The paper values plans, right or wrong: --values paper goes with --pool.")
    return RewardSettings(
        most=ASKING if request.most is None and request.pool else request.most,
        timeout_s=request.timeout_s,
        max_usd=request.max_usd,
        max_masked=request.max_masked,
        values=VALUES[request.values],
    )


def _training_splits(
    request: ServeRequest, catalogue: Catalogue, bare: BareText
) -> tuple[dict[str, SuiteSplit], int]:
    """Return what may teach, and how much may not for an eval split asks it; UserError if all."""
    named: dict[str, SuiteSplit] = {}
    for name in request.suites:
        suite: Suite[Any] = find_named(catalogue.suites, name, "suite")
        named[name] = split = load_training_split(suite, request.split, request.limit)
        if judged := judged_among(suite, [*split.questions.values()]):
            raise UserError(
                f"Only a model can judge {judged} of the {len(split.questions)} questions of suite "
                f"{name!r}, and a reward service asks no judge: leave the suite out."
            )
    evaluated = [load_split(one.suite) for one in named.values() if "eval" in one.suite.splits]
    splits = {name: without_overlap(split, evaluated, bare) for name, split in named.items()}
    if not all(split.questions for split in splits.values()):
        refuse_overlap(named.values(), evaluated, bare)
    left = sum(len(named[name].questions) - len(split.questions) for name, split in splits.items())
    return splits, left


def _completions(request: ServeRequest, parts: RewardHooks) -> tuple[Sampler, PromptOf, str | None]:
    """Return how completions become answers, and the label of the pool that does the work."""
    if request.pool is None:
        return as_reply, user_prompt, None
    spec = read_pool(request.pool)
    book = read_book(spec.prices)
    refuse_unready(spec, book)
    if spec.replayed and not prompts_recorded(spec):
        raise UserError(
            f"Workflows cannot be carried out on recorded pool {spec.name!r}: its replies answer "
            "the canonical single-worker request only."
        )
    return parts.answerer(spec, book, request.max_usd), parts.shown(spec), spec.label


LONGEST = 4096  # bytes of a token file


@dataclass(frozen=True, slots=True)
class Access:
    """Whom a request must name as its host, and who it must say it is.

    A web page open on this machine can send requests here, and by DNS rebinding read the answers,
    and so the questions; such a request names the page's host in `Host`.
    """

    address: str
    port: int
    names: frozenset[str] = frozenset()  # other names under which it is known
    token: str = ""  # what `Authorization: Bearer` must hold; empty where nobody is asked

    def refusal(self, headers: Headers) -> JSONResponse | None:
        """Return the answer to a request that is not let in; None to one that is."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            said = f"This is no host of this service: {host!r:.80} (--allow-host NAME allows one)."
            return error_reply(421, said, "misdirected")
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(urlsplit(origin).netloc):
            return error_reply(403, "Web pages may not ask this service.", "foreign_origin")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        known = hmac.compare_digest(token.strip().encode(), self.token.encode())
        if self.token and not (scheme.lower() == "bearer" and known):
            said = "Send the token of the service: `Authorization: Bearer TOKEN`."
            return error_reply(401, said, "unauthorised", {"WWW-Authenticate": "Bearer"})
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name, port = (parts.hostname or "").lower(), parts.port or 80
        except ValueError:  # no host at all
            return False
        here = name == self.address or _is_this_machine(name, self.address)
        return name in self.names or (port == self.port and here)


def _is_this_machine(name: str, bound: str) -> bool:
    """Say whether a name is this machine's, or an address where all of them are listened on."""
    with suppress(ValueError):  # no page can have an address for its name
        address = ipaddress.ip_address(name)
        return address.is_loopback or ipaddress.ip_address(bound).is_unspecified
    return name == "localhost"


def with_access(application: ASGIApp, access: Access) -> ASGIApp:
    """Return an application that answers only those who are let in."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        refusal = access.refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        await (refusal or application)(scope, receive, send)

    return answer


def is_loopback(host: str) -> bool:
    """Say whether an address or name reaches this machine alone."""
    try:
        found = socket.getaddrinfo(host, None)
        return all(ipaddress.ip_address(str(one[4][0])).is_loopback for one in found)
    except (OSError, ValueError, UnicodeError):
        return False


def read_token(path: Path | None, say: Callable[[str], object]) -> str:
    """Return the token in a file, empty for no file; UserError for one that holds none."""
    if path is None:
        return ""
    try:
        token = read_limited(path, LONGEST).decode("ascii", "replace").strip()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name a file.") from error
    if not token.isascii() or not token.isprintable() or len(token.split()) != 1:
        raise UserError(f"{path} holds no token: letters and digits on one line.")
    if path.stat().st_mode & 0o077:
        say(f"Others on this machine can read the token: chmod 600 {path}.")
    return token


WAITING = 2048
"""Connections that the system keeps waiting while all of ours are busy: uvicorn's own number."""


@contextmanager
def bound_socket(host: str, port: int) -> Generator[socket.socket]:
    """Yield a bound socket, on any free port for 0; UserError when it cannot be had."""
    # The protocol is named because asyncio switches Nagle's delay off only where it is: a reply is
    # two small writes, and the second would wait 40 ms for the first one's acknowledgement.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((host, port))
        except (OSError, OverflowError) as error:
            raise UserError(_bind_refusal(host, port, error)) from None
        yield taken


def listen(taken: socket.socket) -> str:
    """Let a bound socket listen and return its URL; UserError when another program was faster."""
    host, port = taken.getsockname()[:2]
    try:
        taken.listen(WAITING)
    except OSError as error:
        raise UserError(_bind_refusal(host, port, error)) from None
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(application: ASGIApp, taken: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until a signal says stop; returns normally then. For the main thread.

    `ready` is called once a signal ends it in good order: whoever reads that it serves may stop it.
    """
    server = uvicorn.Server(uvicorn_config(application))

    def stop(number: int, frame: FrameType | None) -> None:
        server.should_exit = True  # before uvicorn listens to signals, and when it raises them anew

    before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        ready()
        server.run(sockets=[taken])
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def uvicorn_config(application: ASGIApp, grace_s: int = 30) -> uvicorn.Config:
    """Return how uvicorn is to run: without a line per request, which would say nothing."""
    return uvicorn.Config(
        application,
        loop="asyncio",
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=120,  # a trainer pauses between steps; a close is its failure
        timeout_graceful_shutdown=grace_s,
    )


def _bind_refusal(host: str, port: int, error: OSError | OverflowError) -> str:
    if isinstance(error, OverflowError):
        return f"--port is 0 (any free one) to 65535, not {port}."
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use: name another --port, or 0 for any free one."
    if error.errno == errno.EACCES:
        return f"Port {port} of {host} may not be used by you: name a --port above 1023."
    return f"Nothing can listen on --host {host}, --port {port}: {error.strerror or error}."
