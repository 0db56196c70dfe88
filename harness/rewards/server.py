"""The reward service's HTTP endpoints: all remote trainers share one reward and its limits.

    POST /score        items in, outcomes out: podium's own format, which `RewardClient` uses
    POST /get_reward   OpenRLHF's remote reward       POST /rm      slime's remote_rm
    POST /verify       NeMo-Gym's resources server    POST /seed_session   NeMo-Gym calls it first
    GET  /health /counts /questions?suite=S /rows?suite=S

A malformed request gets 422 with one sentence, an unknown question 404. Once too large a share of
items has no value, every scoring request gets 503 from then on. Replies never contain targets, nor
a question's text if the suite forbids it. A question is addressed by its label, `suite/question`;
a trainer's prompt text is never looked up. If an item has no value, a trainer that supports masks
gets a mask; other trainers get an error, or an explicit 0 if they requested it.
"""

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count
from typing import Any, Literal, Self, cast, get_args

import orjson
from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from podium.harness.errors import PodiumError, TooManyMasked, UserError, first_fault
from podium.harness.listener import error_reply
from podium.harness.records import Question
from podium.harness.rewards.outcome import (
    BUSY,
    MASKED,
    BadBody,
    NoValue,
    RewardItem,
    RewardOutcome,
    Status,
    completion_of,
    item_of,
)
from podium.harness.rewards.reward import Reward
from podium.harness.rewards.splits import SuiteSplit
from podium.harness.rewards.trainers import OnUnscored, value_of
from podium.harness.text import make_storable

ReplyOnUnscored = Literal["error", "zero"]
"""Reply to a trainer that cannot mask an item without a value: an error, or 0 with a mark."""


class _Item(BaseModel, extra="forbid", strict=True):
    suite: str
    question: str
    completion: str
    epoch: int = Field(default=1, ge=1)
    replicate: int = Field(default=0, ge=0)
    workers: tuple[str, ...] = ()
    first: str = ""

    @model_validator(mode="after")
    def _no_worker_twice(self) -> Self:
        if "" in self.workers or len(set(self.workers)) < len(self.workers):
            raise ValueError("workers must be names without duplicates")
        return self


class ScoreBody(BaseModel, extra="forbid", strict=True):
    """Request body of `POST /score`, in podium's own format."""

    entries: list[_Item] = Field(alias="items", min_length=1)

    def rewarded(self) -> list[RewardItem]:
        """Return the items (completions) to reward."""
        return [RewardItem(**item.model_dump()) for item in self.entries]


class _GetRewardBody(BaseModel):
    """Body of `/get_reward`: OpenRLHF 0.11.2, `_fetch_rewards_via_http` in utils/agent.py."""

    query: list[str] = Field(min_length=1)  # prompt and action, with special tokens
    prompts: list[str]
    labels: list[str]

    @model_validator(mode="after")
    def _lengths_agree(self) -> Self:
        if not len(self.query) == len(self.prompts) == len(self.labels):
            raise ValueError("query, prompts and labels have different lengths")
        return self

    def rewarded(self) -> list[RewardItem]:
        rows = zip(self.query, self.prompts, self.labels, strict=True)
        return [item_of(label, completion_of(query, prompt)) for query, prompt, label in rows]


class _RmBody(BaseModel):
    """Body of `/rm`: slime, `remote_rm` in slime/rollout/rm_hub/__init__.py at 0b420f1e."""

    response: str
    label: str

    def rewarded(self) -> list[RewardItem]:
        return [item_of(self.label, self.response)]


class _Content(BaseModel):
    type: str = ""
    text: str = ""


class _Output(BaseModel):
    type: str = "message"
    role: str = "assistant"
    content: list[_Content] | None = None


class _Response(BaseModel):
    output: list[_Output]


class _VerifyBody(BaseModel):
    """Body of `/verify`: NeMo-Gym, `BaseVerifyRequest` in nemo_gym/base_resources_server.py.

    `response` is an object of OpenAI's Responses API. NeMo-Gym also sends the other columns of a
    data set's row: the label is a column, or in the metadata of `responses_create_params`.
    """

    responses_create_params: dict[str, Any]
    response: _Response
    label: str | None = None

    def rewarded(self) -> list[RewardItem]:
        label, metadata = self.label, self.responses_create_params.get("metadata")
        if label is None and isinstance(metadata, Mapping):
            label = str(metadata.get("label", ""))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        texts = [
            content.text
            for item in self.response.output
            if item.type == "message" and item.role == "assistant"
            for content in item.content or ()
            if content.type == "output_text"
        ]
        return [item_of(label or "", "".join(texts))]


Body = ScoreBody | _GetRewardBody | _RmBody | _VerifyBody


def read_items(kind: type[Body], raw: bytes) -> list[RewardItem]:
    """Return the items in a request body; if it is invalid, BadBody has the fault and its place."""
    try:
        return kind.model_validate_json(raw).rewarded()
    except ValidationError as error:
        location, fault = first_fault(error)
        location = location or "the body"
        raise BadBody(f"This request cannot be read at {location!r}: {fault}.") from None


def _get_reward_reply(outcomes: Sequence[RewardOutcome], wish: OnUnscored) -> dict[str, Any]:
    """Return the reply that OpenRLHF 0.11.2 reads (openrlhf/utils/agent.py, `execute`).

    `rewards` and `scores` are lists of numbers, as in OpenRLHF's openrlhf/cli/serve_rm.py. OpenRLHF
    makes a tensor of every value of `extra_logs`: its keys are constant and its values numbers.
    With `raise` the whole batch fails if an item has no value; OpenRLHF tries five times, continues
    without rewards, and then fails. With `zero` the item is 0 and marked.
    """
    rewards = [value_of(outcome, wish) for outcome in outcomes]
    return {
        "rewards": rewards,
        "scores": rewards,
        "extra_logs": {
            "unscored": [float(outcome.value is None) for outcome in outcomes],
            "invalid_action": [float(o.status is Status.INVALID_ACTION) for o in outcomes],
            "worker_calls": [float(outcome.calls) for outcome in outcomes],
            "latency_s": [outcome.latency_s for outcome in outcomes],
        },
    }


KINDS: Mapping[Status, str] = {
    Status.WORKER_ERROR: "provider_unavailable",
    Status.SCORER_ERROR: "verifier_error",
    Status.TIMEOUT: "podium:timeout",
    Status.BUDGET: "provider_quota_exhausted",
}
"""Status -> failure kind in NeMo-Gym (nemo_gym/failure_kinds.py at 00fa09c0). For a kind that
NeMo-Gym does not define, it expects the form `server:kind`."""


def _verdict(outcome: RewardOutcome) -> dict[str, Any]:
    """Return an outcome as NeMo-Gym's `BaseVerifyResponse` (nemo_gym/base_resources_server.py)."""
    # Older snapshots (473f503b) read only `reward` and would take the 0 for a verdict.
    failed = outcome.value is None
    return {
        "reward": outcome.value or 0.0,
        "mask_sample": failed,
        "failure_kind": KINDS[outcome.status] if failed else None,
        "failure_reason": outcome.reason or None if failed else None,
        "status": outcome.status.value,
    }


MOST_BYTES = 64 * 1024 * 1024
"""Maximum request body, in bytes; 256 completions of 32,000 tokens are about half of it."""

PromptOf = Callable[[Question], list[dict[str, str]]]
"""Question -> the policy's prompt, as chat messages."""


def user_prompt(question: Question) -> list[dict[str, str]]:
    """Return the question alone, as the prompt of a policy that answers by itself."""
    return [{"role": "user", "content": question.text}]


class _Unknown(UserError):
    """A request names a question or suite that this service does not have."""


class _TooLong(UserError):
    """The request body is longer than `MOST_BYTES`."""


_STATUSES: tuple[tuple[type[PodiumError], int, str], ...] = (
    (TooManyMasked, 503, MASKED),
    (NoValue, 503, BUSY),
    (_Unknown, 404, "unknown"),
    (_TooLong, 413, "too_long"),
    (UserError, 422, "refused"),
)


_ANY = TypeAdapter(Any)


def encode(value: object) -> bytes:
    """Return a value (such as outcomes) as JSON; dollars are strings, to stay exact."""
    try:
        return orjson.dumps(value, default=_plain)
    except TypeError:  # half of a surrogate pair in a reason, which UTF-8 cannot encode
        return orjson.dumps(make_storable(_ANY.dump_python(value, mode="json", fallback=_plain)))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):  # an immutable one, which is no dict
        return dict(cast(Mapping[str, object], value))
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError


@dataclass(slots=True)
class RewardService:
    """State that the HTTP endpoints share: reward, questions, and whether scoring has stopped."""

    reward: Reward
    splits: Mapping[str, SuiteSplit]
    shown: PromptOf = user_prompt
    on_unscored: ReplyOnUnscored = "error"
    """Reply to OpenRLHF for an item without a value, unless the request's URL sets another one."""
    fresh: bool = False
    """Whether to number a trainer's equal completions, so that each calls the workers again."""
    stopped: str = ""  # why scoring has stopped; empty while it continues
    in_flight: int = 0
    _seen: dict[int, Iterator[int]] = field(default_factory=lambda: defaultdict(count))
    """Hash of an item -> counter that numbers later equal items (`replicate`)."""

    async def score(self, items: Sequence[RewardItem]) -> list[RewardOutcome]:
        """Return the items' outcomes; after the first TooManyMasked, every call raises it."""
        for item in items:
            if item.question not in self.split(item.suite).questions:
                raise _Unknown(
                    f"Suite {item.suite!r} has no question {item.question!r:.80} here: "
                    f"GET /questions?suite={item.suite} lists those it has."
                )
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
        """Return a trainer's items; if `fresh`, equal items get different numbers (`replicate`)."""
        if not self.fresh:
            return list(items)
        keys = [hash((item.suite, item.question, item.completion)) for item in items]
        numbers = (next(self._seen[key]) for key in keys)
        return [replace(item, replicate=n) for item, n in zip(items, numbers, strict=True)]

    def summary(self) -> dict[str, Any]:
        """Return the counts for `GET /counts`: items per status, dollars spent, and others."""
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

    def split(self, suite: str | None) -> SuiteSplit:
        """Return a suite's questions; for an unknown suite, the error lists the known ones."""
        if suite is None or suite not in self.splits:
            names = ", ".join(sorted(self.splits))
            raise _Unknown(f"Suite {suite!r:.80} is not served here. Name one of {names}.")
        return self.splits[suite]


def reward_app(service: RewardService) -> Starlette:
    """Return the ASGI application of a reward service."""

    async def score(request: Request) -> Response:
        items = read_items(ScoreBody, await _body(request))
        raw = encode({"outcomes": await service.score(items)})
        return Response(raw, media_type="application/json")

    async def scored(kind: type[Body], raw: bytes) -> list[RewardOutcome]:
        return await service.score(service.numbered(read_items(kind, raw)))

    async def get_reward(request: Request) -> JSONResponse:
        wish = request.query_params.get("on_unscored", service.on_unscored)
        if wish not in get_args(ReplyOnUnscored):
            raise BadBody(f"on_unscored must be error or zero, not {wish!r:.80}.")
        outcomes = await scored(_GetRewardBody, await _body(request))
        return JSONResponse(_get_reward_reply(outcomes, "zero" if wish == "zero" else "raise"))

    async def remote_rm(request: Request) -> JSONResponse:
        # Slime reads the whole reply as one number (`remote_rm`, at 0b420f1e). After a 503 it
        # retries ten times and then fails: it cannot leave one sample out.
        (outcome,) = await scored(_RmBody, await _body(request))
        return JSONResponse(value_of(outcome, "raise"))

    async def verify(request: Request) -> JSONResponse:
        raw = await _body(request)
        items, sent = read_items(_VerifyBody, raw), _echoed(raw)
        (outcome,) = await service.score(service.numbered(items))
        return JSONResponse({**sent, **_verdict(outcome)})

    async def seed_session(request: Request) -> JSONResponse:
        return JSONResponse({})  # NeMo-Gym's BaseSeedSessionResponse is empty

    posts = {"/score": score, "/get_reward": get_reward, "/rm": remote_rm, "/verify": verify}
    posts["/seed_session"] = seed_session
    routes = [Route(path, _guarded(endpoint), methods=["POST"]) for path, endpoint in posts.items()]
    return Starlette(routes=[*routes, *_read_routes(service)])


def _read_routes(service: RewardService) -> list[Route]:

    async def health(request: Request) -> JSONResponse:
        if service.stopped:
            raise TooManyMasked(service.stopped)
        return JSONResponse({"status": "ok", "suites": sorted(service.splits)})

    async def counts(request: Request) -> JSONResponse:
        return JSONResponse(service.summary())

    async def questions(request: Request) -> JSONResponse:
        split = service.split(request.query_params.get("suite"))
        return JSONResponse({"suite": split.suite.name, "questions": list(split.questions)})

    async def listed(request: Request) -> JSONResponse:
        split = service.split(request.query_params.get("suite"))
        name = split.suite.name
        if not split.suite.publishable:
            message = f"Suite {name!r} does not allow sharing its questions. Take the texts from "
            message += f"your own copy, and the ids from GET /questions?suite={name}."
            return error_reply(403, message, "not_publishable")
        rows = [  # the policy's prompt, and the label to send back
            {"label": f"{name}/{id}", "suite": name, "question": id, "messages": service.shown(q)}
            for id, q in split.questions.items()
        ]
        return JSONResponse({"rows": rows})

    gets = {"/health": health, "/counts": counts, "/questions": questions, "/rows": listed}
    return [Route(path, _guarded(endpoint), methods=["GET"]) for path, endpoint in gets.items()]


Endpoint = Callable[[Request], Awaitable[Response]]


def _guarded(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that turns exceptions into JSON: a sentence (`error`) and its `kind`."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:
            for kind, status, name in _STATUSES:
                if isinstance(error, kind):
                    return error_reply(status, str(error), name)
            # Only its type: a message could contain a question.
            message = f"The reward service failed on this request ({type(error).__name__})."
            return error_reply(500, message, "failed")

    return answer


async def _body(request: Request) -> bytes:
    """Return the body of a request; stop reading and raise an error beyond `MOST_BYTES`."""
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > MOST_BYTES:
            raise _TooLong(
                f"A request may have at most {MOST_BYTES} bytes: send fewer items at a time."
            )
    return bytes(raw)


def _echoed(raw: bytes) -> dict[str, Any]:
    """Return a request's parsed body, to echo it; BadBody if it contains NaN or Infinity."""
    sent = json.loads(raw)
    try:
        json.dumps(sent, allow_nan=False)
    except ValueError:
        raise BadBody("NaN and Infinity are not JSON numbers: leave them out.") from None
    return sent
