"""`podium reward serve`: everything refused that can be, then a reward service until a signal.

The hub knows neither suites nor conductors, so both are handed in. Not here: the endpoints
(service.py) and the port (hosting.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import anyio

from harness.boxes import OpenBox, chosen_box, opened, refuse_unknown
from harness.compose import Catalogue
from harness.errors import UserError
from harness.field import refuse_unready
from harness.pool_file import PoolSpec, read_pool
from harness.prices import Book, read_book
from harness.recordings import prompts_recorded
from harness.rewards.access import Access, read_token, refuse_open_door, restricted
from harness.rewards.adversarial import refuse_gullible
from harness.rewards.bodies import OnUnscored
from harness.rewards.core import Answerer, Reward, RewardSettings, as_reply
from harness.rewards.exams import (
    Bare,
    Exam,
    exam_of,
    refuse_overlap,
    training_exam,
    whole_text,
    without_shared,
)
from harness.rewards.hosting import bound, listen, serve
from harness.rewards.service import RewardService, Shown, app, as_user
from harness.rewards.values import PAPER, PLAIN, Values
from harness.suite import Judged, Split

VALUES: Mapping[str, Values] = {"plain": PLAIN, "paper": PAPER}

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
    pool: str | None = None
    """Completions are workflows for this pool; None: they are replies."""
    host: str = "127.0.0.1"
    port: int = 0
    allow_hosts: tuple[str, ...] = ()
    """Names under which others reach it, beside its address."""
    token_file: Path | None = None
    """Holds what every request must send; None: who is on this machine need not."""
    max_usd: Decimal | None = None
    timeout_s: float = 120.0
    max_masked: float = 0.3
    most: int | None = None
    values: Literal["plain", "paper"] = "plain"
    on_unscored: OnUnscored = "error"


@dataclass(frozen=True, slots=True)
class Parts:
    """What the spokes hand in: how workflows are carried out, and what a question asks."""

    answerer: Callable[[PoolSpec, Book, Decimal | None], Answerer]
    """Pool, prices and what may be spent -> what carries workflows out."""
    shown: Callable[[PoolSpec], Shown]
    """Pool -> what a policy is sent that writes workflows for it."""
    bare: Bare = whole_text
    """Question -> its text without its suite's instruction."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """How completions become answers."""

    answer: Answerer
    shown: Shown
    label: str | None
    """The pool's label; None without one."""


def launch(
    request: ServeRequest, catalogue: Catalogue, parts: Parts, say: Callable[[str], None]
) -> None:
    """Serve rewards until a signal; say where, and at the end what they came to.

    UserError, before anything listens, for what can be known to fail.
    """
    token = read_token(request.token_file, say)
    refuse_open_door(request.host, token)
    settings = _settings(request)
    named = {name: _exam(request, name, catalogue) for name in dict.fromkeys(request.suites)}
    exams = _without_exams(named, parts.bare)
    left = sum(len(named[name].questions) - len(exam.questions) for name, exam in exams.items())
    asked = _asked(request, parts)
    suites = [exam.suite for exam in exams.values()]
    refuse_unknown(catalogue.boxes, request.box)
    name = request.box
    if any(suite.needs_box for suite in suites):
        name = chosen_box(name, catalogue.boxes, ours=asked.label == "rehearsal")
    with (
        bound(request.host, request.port) as taken,
        opened(catalogue.boxes, name, suites, request.max_sandboxes) as box,
    ):
        anyio.run(_refuse_gullible, exams, box and box.box)
        reward = Reward(exams, asked.answer, settings, box and box.box)
        fresh = request.pool is not None
        service = RewardService(reward, exams, asked.shown, request.on_unscored, fresh)
        also = f"; {left} left out, for an exam asks them too" if left else ""
        said = f"Rewards at {listen(taken)}: {_what(request, exams, box)}{also}."
        address, port = taken.getsockname()[:2]
        names = frozenset(name.lower() for name in (request.host, *request.allow_hosts))
        access = Access(address, port, names - {"", "0.0.0.0", "::"}, token)
        serve(restricted(app(service), access), taken, ready=lambda: say(said))
        say(_ended(service))


async def _refuse_gullible(exams: Mapping[str, Exam], box: Any) -> None:
    """Try the attacks on replies, in the very box; what they come to is not counted."""
    reward = Reward(exams, settings=RewardSettings(max_masked=1.0), box=box)
    for exam in exams.values():
        await refuse_gullible(reward, exam)


def _settings(request: ServeRequest) -> RewardSettings:
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


def _exam(request: ServeRequest, name: str, catalogue: Catalogue) -> Exam:
    """Return one suite's questions; UserError where they may not teach or nobody can grade them."""
    if name not in catalogue.suites:
        known = ", ".join(sorted(catalogue.suites))
        raise UserError(f"There is no suite {name!r}; known suites: {known}.")
    suite = catalogue.suites[name]
    exam = training_exam(suite, request.split, request.limit)
    questions = exam.questions.values()
    judged = sum(map(suite.needs_judge, questions)) if isinstance(suite, Judged) else 0
    if judged:
        raise UserError(
            f"Only a model can judge {judged} of the {len(questions)} questions of suite {name!r}, "
            "and a reward service asks no judge: leave the suite out."
        )
    return exam


def _asked(request: ServeRequest, parts: Parts) -> _Asked:
    """Return how completions become answers; UserError for a pool that cannot be asked or paid."""
    if request.pool is None:
        return _Asked(as_reply, as_user, None)
    spec = read_pool(request.pool)
    book = read_book(spec.prices)
    refuse_unready(spec, book, ())
    if spec.replayed and not prompts_recorded(spec):
        raise UserError(
            f"Workflows cannot be carried out on recorded pool {spec.name!r}: its replies answer "
            "the canonical single-worker request only."
        )
    answer = parts.answerer(spec, book, request.max_usd)
    return _Asked(answer, parts.shown(spec), spec.label)


def _without_exams(named: Mapping[str, Exam], bare: Bare) -> dict[str, Exam]:
    """Return what may teach: nothing that these suites' own exams ask; UserError if that is all."""
    examined = [exam_of(exam.suite) for exam in named.values() if "eval" in exam.suite.splits]
    exams = {name: without_shared(exam, examined, bare) for name, exam in named.items()}
    if not all(exam.questions for exam in exams.values()):
        refuse_overlap(named.values(), examined, bare)
    return exams


def _what(request: ServeRequest, exams: Mapping[str, Exam], box: OpenBox | None) -> str:
    counted = ", ".join(f"{name} ({len(exam.questions)})" for name, exam in exams.items())
    completions = f"workflows for pool {request.pool}" if request.pool else "replies"
    where = f"box {box.name}" if box else "no box"
    return f"{completions} to {request.split} questions of {counted}, {where}"


def _ended(service: RewardService) -> str:
    said: dict[str, Any] = service.summary()
    counted = ", ".join(f"{n} {status}" for status, n in said["statuses"].items() if n)
    return f"Stopped. {said['items']} rewards: {counted or 'none'}; ${said['usd']} spent."
