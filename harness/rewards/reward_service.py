"""`podium reward serve`: checks its arguments, then serves rewards over HTTP to allowed clients."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
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
from podium.harness.run.catalogue import Catalogue, find_graders
from podium.harness.run.preflight import refuse_unready
from podium.harness.suite import Split, judged_among

VALUES: Mapping[str, OutcomeValues] = {"plain": PLAIN, "paper": PAPER}

ASKING = 64
"""Default number of workflows in flight: they wait for worker models, not for a CPU core."""


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """The arguments of `podium reward serve`."""

    suites: tuple[str, ...]
    split: Split = "train"
    limit: int | None = None
    box: str | None = None
    max_sandboxes: int | None = None
    pool: str | None = None  # completions are workflows for this pool; None: replies
    host: str = "127.0.0.1"
    port: int = 0
    allow_hosts: tuple[str, ...] = ()
    token_file: Path | None = None
    """File with the token that requests must send; None: no token is needed on loopback."""
    max_usd: Decimal | None = None
    timeout_s: float = 120.0
    max_masked: float = 0.3
    most: int | None = None
    values: Literal["plain", "paper"] = "plain"
    on_unscored: ReplyOnUnscored = "error"
    log_dir: Path | None = None
    """Directory for the journal of worker calls; None: worker calls are not logged."""
    workers: int = 1  # processes; if several, replicas grade for this one
    task_args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Arguments of suites that are Inspect tasks."""


@dataclass(frozen=True, slots=True)
class RewardHooks:
    """Functions of other packages, which execute workflows and return questions' texts."""

    answerer: Callable[[PoolSpec, Book, ServeRequest], Sampler]
    """(pool, prices, request) -> a function that executes the workflow of an item (`Sampler`)."""
    shown: Callable[[PoolSpec], PromptOf]
    """Pool -> a function that returns a question's prompt for a policy that writes workflows."""
    catalogue: Callable[[], Catalogue]
    """Makes the catalogue of suites in each replica; it is pickled, so no lambda or closure."""
    bare: BareText = whole_text  # question -> its text without its suite's instruction


def serve_rewards(
    request: ServeRequest, catalogue: Catalogue, hooks: RewardHooks, say: Callable[[str], None]
) -> None:
    """Check the request (UserError if it is invalid), then serve rewards until a signal."""
    token = read_token(request.token_file, say)
    job = _ready(request, catalogue, hooks)
    scorer = _by_replicas(job, hooks, say) if request.workers > 1 else _in_process(job, catalogue)
    with bound_socket(request.host, request.port) as sock, scorer as reward:
        service = RewardService(
            reward, job.splits, job.shown, request.on_unscored, bool(request.pool)
        )
        message = f"Rewards at {listen(sock)}: {job.described()}."
        address, port = sock.getsockname()[:2]
        names = frozenset(name.lower() for name in (request.host, *request.allow_hosts))
        access = Access(address, port, names - {"", "0.0.0.0", "::"}, token)
        serve(with_access(reward_app(service), access), sock, ready=lambda: say(message))
        counts = reward.counts
        counted = ", ".join(f"{n} {status}" for status, n in counts.by_status.items() if n)
        say(f"Stopped. {counts.items} rewards: {counted or 'none'}; ${counts.usd} spent.")


@dataclass(frozen=True, slots=True)
class _RewardParts:
    """The parts of a reward service, checked before a sandbox is opened or a port is bound."""

    request: ServeRequest
    settings: RewardSettings
    splits: Mapping[str, SuiteSplit]
    left: int  # questions left out because an eval split asks them, too
    answer: Sampler
    shown: PromptOf
    box: str | None

    def described(self) -> str:
        """Return a description of the service, for the user."""
        request, suites = self.request, self.splits.values()
        counted = ", ".join(f"{split.suite.name} ({len(split.questions)})" for split in suites)
        completions = f"workflows for pool {request.pool}" if request.pool else "replies"
        also = f"; {self.left} left out, because an eval split asks them too" if self.left else ""
        box = f"box {self.box}" if self.box else "no box"
        by = f", {request.workers} replicas" if request.workers > 1 else ""
        return f"{completions} to {request.split} questions of {counted}, {box}{by}{also}"


def _ready(request: ServeRequest, catalogue: Catalogue, hooks: RewardHooks) -> _RewardParts:
    """Return the checked parts of a reward service; UserError if its arguments are invalid."""
    settings = _settings(request)
    splits, lost = _training_splits(request, catalogue, hooks.bare)
    answer, prompt_of, label = _completions(request, hooks)
    refuse_unknown(catalogue.boxes, request.box)
    box = request.box
    if any(split.suite.needs_box for split in splits.values()):
        box = select_box(box, catalogue.boxes, ours=label == "rehearsal")
    return _RewardParts(request, settings, splits, lost, answer, prompt_of, box)


@contextmanager
def _in_process(setup: _RewardParts, catalogue: Catalogue) -> Generator[Reward]:
    """Yield a `Reward` that grades in this process, with its sandbox open during the block."""
    suites = [split.suite for split in setup.splits.values()]
    with open_run_box(catalogue.boxes, setup.box, suites, setup.request.max_sandboxes) as box:
        anyio.run(_refuse_gullible, setup.splits, box and box.box)
        yield Reward(setup.splits, setup.answer, setup.settings, box and box.box)


@contextmanager
def _by_replicas(
    setup: _RewardParts, hooks: RewardHooks, say: Callable[[str], None]
) -> Generator[Reward]:
    """Yield a `Reward` whose replies are graded in replica processes, which end with the block."""
    opened = [
        partial(_open_grader, setup.request, hooks.catalogue, setup.box, sandboxes)
        for sandboxes in shared_out(setup.request)
    ]
    with Replicas(opened, say).run() as grade:
        yield Reward(setup.splits, setup.answer, setup.settings, elsewhere=grade)


def shared_out(request: ServeRequest) -> list[int]:
    """Return how many sandboxes each replica may use: an equal share, at least one each."""
    total, n = cores() if request.max_sandboxes is None else request.max_sandboxes, request.workers
    return [max(total // n + (index < total % n), min(total, 1)) for index in range(n)]


@contextmanager
def _open_grader(
    request: ServeRequest, make_catalogue: Callable[[], Catalogue], box: str | None, sandboxes: int
) -> Generator[RowGrader]:
    """Yield the function that grades replies in a replica, whose sandbox is open in the block."""
    catalogue = make_catalogue()
    suites = find_graders(catalogue.suites, request.suites, request.task_args)
    splits = {s.name: load_training_split(s, request.split, request.limit) for s in suites}
    with open_run_box(catalogue.boxes, box, suites, sandboxes) as opened:
        anyio.run(_refuse_gullible, splits, opened and opened.box)
        settings = RewardSettings(timeout_s=request.timeout_s)
        yield Reward(splits, settings=settings, box=opened and opened.box).grade_slice


async def _refuse_gullible(splits: Mapping[str, SuiteSplit], box: Any) -> None:
    """Raise UserError if a grader rewards an attack; the service's counts exclude these trials."""
    reward = Reward(splits, settings=RewardSettings(max_masked=1.0), box=box)
    for split in splits.values():
        await refuse_gullible(reward, split)


def _settings(request: ServeRequest) -> RewardSettings:
    if request.workers < 1:
        raise UserError(f"--workers must be at least 1, not {request.workers}.")
    if request.log_dir and not request.pool:
        raise UserError(
            "--log-dir logs the calls of workers, and only --pool names workers to call. Add "
            "--pool, or leave --log-dir out."
        )
    if request.token_file is None and not is_loopback(request.host):
        raise UserError(
            f"--host {request.host} accepts requests from other machines: name a --token-file "
            "with the token that they must send, or leave --host out."
        )
    if request.pool is None and request.max_usd is not None:
        raise UserError(
            "--max-usd limits the cost of workers, and only --pool names workers to call. Add "
            "--pool, or leave --max-usd out."
        )
    if request.pool is None and request.values == "paper":
        raise UserError(
            "--values paper scores plans, and plans need workers to run them. Add --pool, or leave "
            "--values paper out."
        )
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
    """Return the questions to reward, and how many were dropped because an eval split has them.

    Raises UserError if no question of a suite is left, or only a model can judge a question.
    """
    every: dict[str, SuiteSplit] = {}
    for suite in find_graders(catalogue.suites, request.suites, request.task_args):
        every[suite.name] = split = load_training_split(suite, request.split, request.limit)
        if judged := judged_among(suite, [*split.questions.values()]):
            raise UserError(
                f"{judged} of the {len(split.questions)} questions of suite {suite.name!r} need a "
                "model as judge, and a reward service asks none: leave the suite out."
            )
    suites = [split.suite for split in every.values()]
    evaluated = [load_split(suite) for suite in suites if "eval" in suite.splits]
    splits = {name: without_overlap(split, evaluated, bare) for name, split in every.items()}
    if not all(split.questions for split in splits.values()):
        refuse_overlap(every.values(), evaluated, bare)
    lost = sum(len(every[name].questions) - len(split.questions) for name, split in splits.items())
    return splits, lost


def _completions(request: ServeRequest, hooks: RewardHooks) -> tuple[Sampler, PromptOf, str | None]:
    """Return the function that answers items, the function for prompts, and the pool's label."""
    if request.pool is None:
        return as_reply, user_prompt, None
    spec = read_pool(request.pool)
    book = spec.book()
    refuse_unready(spec, book)
    if spec.replayed and not prompts_recorded(spec):
        raise UserError(
            f"Workflows cannot run on recorded pool {spec.name!r}: it has replies only to a "
            "question alone, asked of one worker. Use a live or rehearsal pool."
        )
    return hooks.answerer(spec, book, request), hooks.shown(spec), spec.label


LONGEST = 4096  # maximum bytes of a token file


def read_token(path: Path | None, say: Callable[[str], object]) -> str:
    """Return the token in a file, empty if `path` is None; UserError if the file has no token."""
    if path is None:
        return ""
    try:
        token = read_limited(path, LONGEST).decode("ascii", "replace").strip()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name a file.") from error
    if not token.isascii() or not token.isprintable() or len(token.split()) != 1:
        raise UserError(f"{path} holds no token: write letters and digits on one line.")
    if path.stat().st_mode & 0o077:
        say(f"Others on this machine can read the token: chmod 600 {path}.")
    return token
