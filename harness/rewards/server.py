"""The reward service's endpoints: our own shape, and those of OpenRLHF, slime and NeMo-Gym."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, Self, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from harness.errors import PodiumError, TooManyMasked, UserError
from harness.records import Question
from harness.rewards.client import BUSY, MASKED, BadBody, completion_of, item_of, outcomes_json
from harness.rewards.outcome import RewardCounts, RewardItem, RewardOutcome, RewardScorer, Status
from harness.rewards.reward import AskedSplit

# § What the reward service is sent, checked: our own shape and those of three trainers.
# §
# § Each trainer's shape is named with the file and version that was read for it. A question
# § is always
# § addressed by its label, `suite/question`: no trainer's prompt text is ever looked up.


ReplyOnUnscored = Literal["error", "zero"]
"""For trainers that have no word for "no value": fail the request, or call it 0 and say so."""

_FROZEN = ConfigDict(frozen=True)


class _Item(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

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
            raise ValueError("workers are names, each of them once")
        return self


class ScoreBody(BaseModel):
    """`POST /score`, our own shape."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    entries: list[_Item] = Field(alias="items", min_length=1)

    def rewarded(self) -> list[RewardItem]:
        """Return the items to reward."""
        return [RewardItem(**item.model_dump()) for item in self.entries]


class GetRewardBody(BaseModel):
    """`POST /get_reward`: OpenRLHF 0.11.2, `_fetch_rewards_via_http` in openrlhf/utils/agent.py.

    `query` is the decoded prompt and action in one text, special tokens included; `labels` is the
    data set's label column.
    """

    model_config = _FROZEN

    query: list[str] = Field(min_length=1)
    prompts: list[str]
    labels: list[str]

    @model_validator(mode="after")
    def _lengths_agree(self) -> Self:
        if not len(self.query) == len(self.prompts) == len(self.labels):
            raise ValueError("query, prompts and labels have different lengths")
        return self

    def rewarded(self) -> list[RewardItem]:
        """Return the items to reward."""
        rows = zip(self.query, self.prompts, self.labels, strict=True)
        return [item_of(label, completion_of(query, prompt)) for query, prompt, label in rows]


class RmBody(BaseModel):
    """`POST /rm`: slime, `remote_rm` in slime/rollout/rm_hub/__init__.py at 0b420f1e."""

    model_config = _FROZEN

    response: str
    label: str

    def rewarded(self) -> list[RewardItem]:
        """Return the one item to reward."""
        return [item_of(self.label, self.response)]


class _Content(BaseModel):
    model_config = _FROZEN

    type: str = ""
    text: str = ""


class _Output(BaseModel):
    model_config = _FROZEN

    type: str = "message"
    role: str = "assistant"
    content: list[_Content] | None = None


class _Response(BaseModel):
    model_config = _FROZEN

    output: list[_Output]


class VerifyBody(BaseModel):
    """`POST /verify`: NeMo-Gym, `BaseVerifyRequest` in nemo_gym/base_resources_server.py.

    `response` is an OpenAI Responses object. What else a data set's row has comes along, so the
    label is a column of it, or stands in the metadata of `responses_create_params`.
    """

    model_config = _FROZEN

    responses_create_params: dict[str, Any]
    response: _Response
    label: str | None = None

    def rewarded(self) -> list[RewardItem]:
        """Return the one item to reward: what the assistant said, its messages joined."""
        metadata = self.responses_create_params.get("metadata")
        label = self.label
        if label is None and isinstance(metadata, Mapping):
            label = str(metadata.get("label", ""))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        said = [
            part.text
            for item in self.response.output
            if item.type == "message" and item.role == "assistant"
            for part in item.content or ()
            if part.type == "output_text"
        ]
        return [item_of(label or "", "".join(said))]


Body = ScoreBody | GetRewardBody | RmBody | VerifyBody


def read_items(kind: type[Body], raw: bytes) -> list[RewardItem]:
    """Return the items in a request's body; BadBody says what is wrong with it, and where."""
    try:
        return kind.model_validate_json(raw).rewarded()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        raise BadBody(f"This request cannot be read at {where!r}: {first['msg']}.") from None


# § What the reward service answers three trainers; our own shape is wire.py.
# §
# § A trainer that can leave an item out is told so; the others get an error, or an explicit 0
# § that they
# § asked for. Each shape is named with the file and version that was read for it.


class UnscoredReply(PodiumError):
    """An item has no value and its trainer has no word for that: status 503, so that it retries."""


def value_or_refusal(outcome: RewardOutcome) -> float:
    """Return the value; slime reads the whole reply as one number (`remote_rm`, at 0b420f1e).

    NoValue makes it try again, ten times, and then fail: it cannot leave one sample out.
    """
    if outcome.value is None:
        raise UnscoredReply(f"No value ({outcome.status.value}): {outcome.reason}")
    return outcome.value


def get_reward_reply(
    outcomes: Sequence[RewardOutcome], on_unscored: ReplyOnUnscored
) -> dict[str, Any]:
    """Return what OpenRLHF 0.11.2 reads (openrlhf/utils/agent.py, `execute`).

    `rewards` and `scores` are lists of numbers, as its own openrlhf/cli/serve_rm.py sends them, and
    every value of `extra_logs` becomes a tensor, so the keys never change and hold numbers only.
    With `error` a batch that has an item without a value fails whole; OpenRLHF tries five times and
    then carries on with no reward, on which it fails. With `zero` the item is 0 and marked.
    """
    zero = on_unscored == "zero"
    rewards = [0.0 if zero and one.value is None else value_or_refusal(one) for one in outcomes]
    return {
        "rewards": rewards,
        "scores": rewards,
        "extra_logs": {
            "unscored": [float(one.value is None) for one in outcomes],
            "invalid_action": [float(one.status is Status.INVALID_ACTION) for one in outcomes],
            "worker_calls": [float(one.calls) for one in outcomes],
            "latency_s": [one.latency_s for one in outcomes],
        },
    }


KINDS: Mapping[Status, str] = {
    Status.WORKER_ERROR: "provider_unavailable",
    Status.SCORER_ERROR: "verifier_error",
    Status.TIMEOUT: "podium:timeout",
    Status.BUDGET: "provider_quota_exhausted",
}
"""Names of nemo_gym/failure_kinds.py at 00fa09c0; what it lacks goes by `server:kind`."""


def verify_reply(sent: Mapping[str, Any], outcome: RewardOutcome) -> dict[str, Any]:
    """Return NeMo-Gym's `BaseVerifyResponse`: the request, `reward`, and whether to leave it out.

    nemo_gym/base_resources_server.py beside that failure_kinds.py; older snapshots (473f503b) know
    `reward` alone and would take the 0 for a verdict.
    """
    failed = outcome.value is None
    return {
        **sent,
        "reward": 0.0 if outcome.value is None else outcome.value,
        "mask_sample": failed,
        "failure_kind": KINDS[outcome.status] if failed else None,
        "failure_reason": outcome.reason or None if failed else None,
        "status": outcome.status.value,
    }


# § The reward service: one scorer, one budget and one limit for trainers that run somewhere
# § else.
# §
# §     POST /score        items in, outcomes out: our own shape, which `RewardClient` speaks
# §     POST /get_reward   OpenRLHF's remote reward       POST /rm      slime's remote_rm
# §     POST /verify       NeMo-Gym's resources server    POST /seed_session   NeMo-Gym asks
# § it first
# §     GET  /health /counts /questions?suite=S /rows?suite=S
# §
# § A request that is wrong is 422 with one sentence, an unknown question 404. Once too large
# § a share
# § has no value the service says so with 503 to everything that scores, and goes on saying
# § so. No
# § target ever leaves it, and no question's text where the suite forbids it. Not here: what a
# § request
# § looks like (bodies.py), what a reply looks like (replies.py), ports and signals
# § (hosting.py).


MOST_BYTES = 64 * 1024 * 1024
"""A request's body may be so long: 256 completions of 32,000 tokens are about half of it."""

PromptOf = Callable[[Question], list[dict[str, str]]]
"""What a policy is sent for a question, as chat messages."""


def user_prompt(question: Question) -> list[dict[str, str]]:
    """Return the question alone: what a policy is sent that answers by itself."""
    return [{"role": "user", "content": question.text}]


class CountingScorer(RewardScorer, Protocol):
    """A reward that says what it has done so far, as `core.Reward` does."""

    @property
    def counts(self) -> RewardCounts:
        """All outcomes by status, and their dollars."""
        ...


@dataclass(slots=True)
class RewardService:
    """What the endpoints share: the reward, the questions, and whether it has stopped."""

    reward: CountingScorer
    exams: Mapping[str, AskedSplit]
    """By the name of the suite."""
    shown: PromptOf = user_prompt
    on_unscored: ReplyOnUnscored = "error"
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

    def exam(self, suite: str | None) -> AskedSplit:
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


def reward_app(service: RewardService) -> Starlette:
    """Return the ASGI application of a reward service."""

    async def score(request: Request) -> JSONResponse:
        items = read_items(ScoreBody, await _body(request))
        return JSONResponse(outcomes_json(await service.score(items)))

    async def get_reward(request: Request) -> JSONResponse:
        wish = _on_unscored(request, service.on_unscored)
        items = read_items(GetRewardBody, await _body(request))
        outcomes = await service.score(service.numbered(items))
        return JSONResponse(get_reward_reply(outcomes, wish))

    async def remote_rm(request: Request) -> JSONResponse:
        items = read_items(RmBody, await _body(request))
        (outcome,) = await service.score(service.numbered(items))
        return JSONResponse(value_or_refusal(outcome))

    async def verify(request: Request) -> JSONResponse:
        raw = await _body(request)
        items, sent = read_items(VerifyBody, raw), _echoed(raw)
        (outcome,) = await service.score(service.numbered(items))
        return JSONResponse(verify_reply(sent, outcome))

    posts = {"/score": score, "/get_reward": get_reward, "/rm": remote_rm, "/verify": verify}
    return Starlette(
        routes=[
            *(Route(path, _guarded(one), methods=["POST"]) for path, one in posts.items()),
            *_read_routes(service),
        ]
    )


def _read_routes(service: RewardService) -> list[Route]:
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
            return _error(403, said, "not_publishable")
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
            return _error(503, str(error), MASKED)
        except UnscoredReply as error:
            return _error(503, str(error), BUSY)
        except _Unknown as error:
            return _error(404, str(error), "unknown")
        except _TooLong as error:
            return _error(413, str(error), "too_long")
        except UserError as error:
            return _error(422, str(error), "refused")
        except Exception as error:
            said = f"The reward service failed on this request ({type(error).__name__})."
            return _error(500, said, "failed")

    return answer


def _error(status: int, sentence: str, kind: str) -> JSONResponse:
    return JSONResponse({"error": sentence, "kind": kind}, status_code=status)


async def _body(request: Request) -> bytes:
    """Return a request's body, read no further than `MOST_BYTES`."""
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > MOST_BYTES:
            raise _TooLong(f"A request may have {MOST_BYTES} bytes: send fewer items at a time.")
    return bytes(raw)


def _echoed(raw: bytes) -> dict[str, Any]:
    """Return a body that goes into the reply; BadBody, before it is scored, where it cannot."""
    sent = json.loads(raw)
    try:
        json.dumps(sent, allow_nan=False)
    except ValueError:
        raise BadBody("NaN and Infinity are no JSON numbers: leave them out.") from None
    return sent


def _on_unscored(request: Request, usual: ReplyOnUnscored) -> ReplyOnUnscored:
    wish = request.query_params.get("on_unscored", usual)
    if wish not in get_args(ReplyOnUnscored):
        raise BadBody(f"on_unscored is error or zero, not {wish!r:.80}.")
    return cast(ReplyOnUnscored, wish)


def _row(suite: str, question: Question, shown: PromptOf) -> dict[str, Any]:
    """Return a row of a trainer's data set: what to send the policy, and the label to send back."""
    label = f"{suite}/{question.id}"
    return {"label": label, "suite": suite, "question": question.id, "messages": shown(question)}
