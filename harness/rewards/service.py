"""The reward service: one scorer, one budget and one limit for trainers that run somewhere else.

    POST /score        items in, outcomes out: our own shape, which `RewardClient` speaks
    POST /get_reward   OpenRLHF's remote reward       POST /rm      slime's remote_rm
    POST /verify       NeMo-Gym's resources server    POST /seed_session   NeMo-Gym asks it first
    GET  /health /counts /questions?suite=S /rows?suite=S

A request that is wrong is 422 with one sentence, an unknown question 404. Once too large a share
has no value the service says so with 503 to everything that scores, and goes on saying so. No
target ever leaves it, and no question's text where the suite forbids it. Not here: what a request
looks like (bodies.py), what a reply looks like (replies.py), ports and signals (hosting.py).
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast, get_args

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from harness.errors import TooManyMasked, UserError
from harness.records import Question
from harness.rewards import replies
from harness.rewards.bodies import (
    GetRewardBody,
    OnUnscored,
    RmBody,
    ScoreBody,
    VerifyBody,
    read_items,
)
from harness.rewards.core import Sat
from harness.rewards.items import RewardItem, RewardOutcome, Scores, Status
from harness.rewards.labels import BadBody
from harness.rewards.tally import Counts
from harness.rewards.wire import BUSY, MASKED, outcomes_json

MOST_BYTES = 64 * 1024 * 1024
"""A request's body may be so long: 256 completions of 32,000 tokens are about half of it."""

Shown = Callable[[Question], list[dict[str, str]]]
"""What a policy is sent for a question, as chat messages."""


def as_user(question: Question) -> list[dict[str, str]]:
    """Return the question alone: what a policy is sent that answers by itself."""
    return [{"role": "user", "content": question.text}]


class Counting(Scores, Protocol):
    """A reward that says what it has done so far, as `core.Reward` does."""

    @property
    def counts(self) -> Counts:
        """All outcomes by status, and their dollars."""
        ...


@dataclass(slots=True)
class RewardService:
    """What the endpoints share: the reward, the questions, and whether it has stopped."""

    reward: Counting
    exams: Mapping[str, Sat]
    """By the name of the suite."""
    shown: Shown = as_user
    on_unscored: OnUnscored = "error"
    """What OpenRLHF is told of an item without a value, unless its URL says otherwise."""
    fresh: bool = False
    """Number equal completions of trainers that do not: where workers are asked, each is new."""
    stopped: str = ""
    """Why nothing is scored any more; empty while it is."""
    in_flight: int = 0
    """Items that are being scored."""
    _seen: Counter[int] = field(default_factory=Counter[int])

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return the outcomes of known items; `TooManyMasked` from the first time on."""
        for item in items:
            self._refuse_unknown(item)
        if self.stopped:
            raise TooManyMasked(self.stopped)
        self.in_flight += len(items)
        try:
            return await self.reward.score(items)
        except TooManyMasked as error:
            self.stopped = str(error)
            raise
        finally:
            self.in_flight -= len(items)

    def numbered(self, items: Sequence[RewardItem]) -> list[RewardItem]:
        """Return items of a trainer that sends no replicate numbers, with one each if needed."""
        return [self._numbered(item) for item in items] if self.fresh else list(items)

    def summary(self) -> dict[str, Any]:
        """Return how many items came to which status, and what was spent."""
        counts = self.reward.counts
        return {
            "statuses": {status.value: counts.by_status[status] for status in Status},
            "items": counts.items,
            "in_flight": self.in_flight,
            "masked_share": counts.masked / counts.items if counts.items else 0.0,
            "shared": counts.shared,
            "usd": str(counts.usd),
            "stopped": self.stopped or None,
        }

    def exam(self, suite: str | None) -> Sat:
        """Return a suite's exam; `_Unknown` lists the suites that are served."""
        if suite is None or suite not in self.exams:
            known = ", ".join(sorted(self.exams))
            raise _Unknown(f"Suite {suite!r:.80} is not served here, only {known}.")
        return self.exams[suite]

    def _refuse_unknown(self, item: RewardItem) -> None:
        if item.question not in self.exam(item.suite).questions:
            raise _Unknown(
                f"Suite {item.suite!r} has no question {item.question!r:.80} here: "
                f"GET /questions?suite={item.suite} lists those it has."
            )

    def _numbered(self, item: RewardItem) -> RewardItem:
        key = hash((item.suite, item.question, item.completion))
        number = self._seen[key]
        self._seen[key] += 1
        return replace(item, replicate=number)


class _Unknown(UserError):
    """A question or a suite that is not here: status 404."""


class _TooLong(UserError):
    """A body beyond `MOST_BYTES`: status 413."""


def app(service: RewardService) -> Starlette:
    """Return the ASGI application of a reward service."""

    async def score(request: Request) -> JSONResponse:
        items = read_items(ScoreBody, await _body(request))
        return JSONResponse(outcomes_json(await service.score(items)))

    async def get_reward(request: Request) -> JSONResponse:
        wish = _on_unscored(request, service.on_unscored)
        items = read_items(GetRewardBody, await _body(request))
        outcomes = await service.score(service.numbered(items))
        return JSONResponse(replies.get_reward_reply(outcomes, wish))

    async def remote_rm(request: Request) -> JSONResponse:
        items = read_items(RmBody, await _body(request))
        (outcome,) = await service.score(service.numbered(items))
        return JSONResponse(replies.valued(outcome))

    async def verify(request: Request) -> JSONResponse:
        raw = await _body(request)
        items, sent = read_items(VerifyBody, raw), _to_repeat(raw)
        (outcome,) = await service.score(service.numbered(items))
        return JSONResponse(replies.verify_reply(sent, outcome))

    posts = {"/score": score, "/get_reward": get_reward, "/rm": remote_rm, "/verify": verify}
    return Starlette(
        routes=[
            *(Route(path, _guarded(one), methods=["POST"]) for path, one in posts.items()),
            *_looks(service),
        ]
    )


def _looks(service: RewardService) -> list[Route]:
    """Return the routes that score nothing."""

    async def health(request: Request) -> JSONResponse:
        if service.stopped:
            raise TooManyMasked(service.stopped)
        return JSONResponse({"status": "ok", "suites": sorted(service.exams)})

    async def counts(request: Request) -> JSONResponse:
        return JSONResponse(service.summary())

    async def questions(request: Request) -> JSONResponse:
        exam = service.exam(request.query_params.get("suite"))
        return JSONResponse({"suite": exam.suite.name, "questions": list(exam.questions)})

    async def rows(request: Request) -> JSONResponse:
        exam = service.exam(request.query_params.get("suite"))
        name = exam.suite.name
        if not exam.suite.publishable:
            said = f"Suite {name!r} does not allow its questions to be passed on."
            return _said(403, said, "not_publishable")
        return JSONResponse(
            {"rows": [_row(name, question, service.shown) for question in exam.questions.values()]}
        )

    async def seed_session(request: Request) -> JSONResponse:
        return JSONResponse({})  # NeMo-Gym's BaseSeedSessionResponse is empty

    gets = {"/health": health, "/counts": counts, "/questions": questions, "/rows": rows}
    return [
        *(Route(path, _guarded(one), methods=["GET"]) for path, one in gets.items()),
        Route("/seed_session", _guarded(seed_session), methods=["POST"]),
    ]


Endpoint = Callable[[Request], Awaitable[JSONResponse]]


def _guarded(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint whose refusals are JSON: a sentence under `error`, what it is in `kind`.

    What nobody foresaw is a 500 that names its type only: a message could hold a question.
    """

    async def answer(request: Request) -> JSONResponse:
        try:
            return await endpoint(request)
        except TooManyMasked as error:
            return _said(503, str(error), MASKED)
        except replies.NoValue as error:
            return _said(503, str(error), BUSY)
        except _Unknown as error:
            return _said(404, str(error), "unknown")
        except _TooLong as error:
            return _said(413, str(error), "too_long")
        except UserError as error:
            return _said(422, str(error), "refused")
        except Exception as error:
            said = f"The reward service failed on this request ({type(error).__name__})."
            return _said(500, said, "failed")

    return answer


def _said(status: int, sentence: str, kind: str) -> JSONResponse:
    return JSONResponse({"error": sentence, "kind": kind}, status_code=status)


async def _body(request: Request) -> bytes:
    """Return a request's body, read no further than `MOST_BYTES`."""
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > MOST_BYTES:
            raise _TooLong(f"A request may have {MOST_BYTES} bytes: send fewer items at a time.")
    return bytes(raw)


def _to_repeat(raw: bytes) -> dict[str, Any]:
    """Return a body that goes into the reply; BadBody, before it is scored, where it cannot."""
    sent = json.loads(raw)
    try:
        json.dumps(sent, allow_nan=False)
    except ValueError:
        raise BadBody("NaN and Infinity are no JSON numbers: leave them out.") from None
    return sent


def _on_unscored(request: Request, usual: OnUnscored) -> OnUnscored:
    wish = request.query_params.get("on_unscored", usual)
    if wish not in get_args(OnUnscored):
        raise BadBody(f"on_unscored is error or zero, not {wish!r:.80}.")
    return cast(OnUnscored, wish)


def _row(suite: str, question: Question, shown: Shown) -> dict[str, Any]:
    """Return a row of a trainer's data set: what to send the policy, and the label to send back."""
    label = f"{suite}/{question.id}"
    return {"label": label, "suite": suite, "question": question.id, "messages": shown(question)}
