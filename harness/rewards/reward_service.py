"""`podium reward serve`: what can be refused is; then a port, with a door, until a signal."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio

from podium.harness.boxes import open_run_box, refuse_unknown, select_box
from podium.harness.cassette import prompts_recorded
from podium.harness.errors import UserError
from podium.harness.files import read_limited
from podium.harness.listener import Access, bound_socket, is_loopback, listen, serve, with_access
from podium.harness.parallel import cores
from podium.harness.pool_config import PoolSpec, read_pool
from podium.harness.prices import Book
from podium.harness.rewards.outcome import (
    PAPER,
    PLAIN,
    OutcomeValues,
    Sampler,
    as_reply,
)
from podium.harness.rewards.replica import Replicas
from podium.harness.rewards.reward import Reward, RewardSettings, RowGrader
from podium.harness.rewards.server import (
    PromptOf,
    ReplyOnUnscored,
    RewardService,
    reward_app,
    user_prompt,
)
from podium.harness.rewards.splits import (
    BareText,
    SuiteSplit,
    load_split,
    load_training_split,
    refuse_gullible,
    refuse_overlap,
    whole_text,
    without_overlap,
)
from podium.harness.run.catalogue import Catalogue, find_grader
from podium.harness.run.preflight import refuse_unready
from podium.harness.suite import Split, Suite, judged_among

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
    log_dir: Path | None = None
    """Every call of a worker is written down below it; None: nowhere."""
    workers: int = 1  # processes; several are replicas, which grade for this one


@dataclass(frozen=True, slots=True)
class RewardHooks:
    """What the spokes hand in: how workflows are carried out, and what a question asks."""

    answerer: Callable[[PoolSpec, Book, ServeRequest], Sampler]
    """Pool, prices, and what was asked for -> what carries workflows out."""
    shown: Callable[[PoolSpec], PromptOf]
    """Pool -> what a policy is sent that writes workflows for it."""
    catalogue: Callable[[], Catalogue]
    """Makes the catalogue anew in a replica: a function of a module."""
    bare: BareText = whole_text  # question -> its text without its suite's instruction


def serve_rewards(
    request: ServeRequest, catalogue: Catalogue, parts: RewardHooks, say: Callable[[str], None]
) -> None:
    """Serve rewards until a signal; UserError, before that, for what can be known to fail."""
    token = read_token(request.token_file, say)
    made = _ready(request, catalogue, parts)
    scorer = _by_replicas(made, parts, say) if request.workers > 1 else _in_process(made, catalogue)
    with bound_socket(request.host, request.port) as taken, scorer as reward:
        service = RewardService(
            reward, made.splits, made.shown, request.on_unscored, bool(request.pool)
        )
        said = f"Rewards at {listen(taken)}: {made.described()}."
        address, port = taken.getsockname()[:2]
        names = frozenset(name.lower() for name in (request.host, *request.allow_hosts))
        access = Access(address, port, names - {"", "0.0.0.0", "::"}, token)
        serve(with_access(reward_app(service), access), taken, ready=lambda: say(said))
        counts = reward.counts
        ended = ", ".join(f"{n} {status}" for status, n in counts.by_status.items() if n)
        say(f"Stopped. {counts.items} rewards: {ended or 'none'}; ${counts.usd} spent.")


@dataclass(frozen=True, slots=True)
class _RewardParts:
    """What a request comes to, before a box is open or a port is bound."""

    request: ServeRequest
    settings: RewardSettings
    splits: Mapping[str, SuiteSplit]
    left: int  # questions that an eval split asks, too
    answer: Sampler
    shown: PromptOf
    box: str | None

    def described(self) -> str:
        """Return what is served, for the user."""
        request, suites = self.request, self.splits.values()
        counted = ", ".join(f"{one.suite.name} ({len(one.questions)})" for one in suites)
        completions = f"workflows for pool {request.pool}" if request.pool else "replies"
        also = f"; {self.left} left out, for an eval split asks them too" if self.left else ""
        box = f"box {self.box}" if self.box else "no box"
        by = f", {request.workers} replicas" if request.workers > 1 else ""
        return f"{completions} to {request.split} questions of {counted}, {box}{by}{also}"


def _ready(request: ServeRequest, catalogue: Catalogue, hooks: RewardHooks) -> _RewardParts:
    """Return what is served; UserError for what can be known to fail."""
    settings = _settings(request)
    splits, left = _training_splits(request, catalogue, hooks.bare)
    answer, shown, label = _completions(request, hooks)
    refuse_unknown(catalogue.boxes, request.box)
    box = request.box
    if any(split.suite.needs_box for split in splits.values()):
        box = select_box(box, catalogue.boxes, ours=label == "rehearsal")
    return _RewardParts(request, settings, splits, left, answer, shown, box)


@contextmanager
def _in_process(made: _RewardParts, catalogue: Catalogue) -> Generator[Reward]:
    """Yield a reward of this process, in a box that is open meanwhile."""
    suites = [split.suite for split in made.splits.values()]
    with open_run_box(catalogue.boxes, made.box, suites, made.request.max_sandboxes) as box:
        anyio.run(_refuse_gullible, made.splits, box and box.box)
        yield Reward(made.splits, made.answer, made.settings, box and box.box)


@contextmanager
def _by_replicas(
    made: _RewardParts, hooks: RewardHooks, say: Callable[[str], None]
) -> Generator[Reward]:
    """Yield a reward whose replies are graded in processes that end with the block."""
    opened = [
        partial(_open_grader, made.request, hooks.catalogue, made.box, sandboxes)
        for sandboxes in shared_out(made.request)
    ]
    with Replicas(opened, say).run() as grade:
        yield Reward(made.splits, made.answer, made.settings, elsewhere=grade)


def shared_out(request: ServeRequest) -> list[int]:
    """Return how many sandboxes each replica may have: its part of them, at least one each."""
    whole, n = cores() if request.max_sandboxes is None else request.max_sandboxes, request.workers
    return [max(whole // n + (at < whole % n), min(whole, 1)) for at in range(n)]


@contextmanager
def _open_grader(
    request: ServeRequest, catalogue: Callable[[], Catalogue], box: str | None, sandboxes: int
) -> Generator[RowGrader]:
    """Yield what grades in a replica, in a box that is open meanwhile."""
    known = catalogue()
    suites: list[Suite[Any]] = [find_grader(known.suites, one) for one in request.suites]
    splits = {one.name: load_training_split(one, request.split, request.limit) for one in suites}
    with open_run_box(known.boxes, box, suites, sandboxes) as opened:
        anyio.run(_refuse_gullible, splits, opened and opened.box)
        settings = RewardSettings(timeout_s=request.timeout_s)
        yield Reward(splits, settings=settings, box=opened and opened.box).grade_slice


async def _refuse_gullible(splits: Mapping[str, SuiteSplit], box: Any) -> None:
    """Try the attacks on replies, in the very box; what they come to is not counted."""
    reward = Reward(splits, settings=RewardSettings(max_masked=1.0), box=box)
    for split in splits.values():
        await refuse_gullible(reward, split)


def _settings(request: ServeRequest) -> RewardSettings:
    if request.workers < 1:
        raise UserError(f"--workers must be at least 1, not {request.workers}.")
    if request.log_dir and not request.pool:
        raise UserError("Grading replies calls no worker: --log-dir goes with --pool.")
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
        suite: Suite[Any] = find_grader(catalogue.suites, name)
        named[suite.name] = split = load_training_split(suite, request.split, request.limit)
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
    book = spec.book()
    refuse_unready(spec, book)
    if spec.replayed and not prompts_recorded(spec):
        raise UserError(
            f"Workflows cannot be carried out on recorded pool {spec.name!r}: its replies answer "
            "the canonical single-worker request only."
        )
    return parts.answerer(spec, book, request), parts.shown(spec), spec.label


LONGEST = 4096  # bytes of a token file


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
