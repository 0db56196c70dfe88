"""What the reward service is sent, checked: our own shape and those of three trainers.

Each trainer's shape is named with the file and version that was read for it. A question is always
addressed by its label, `suite/question`: no trainer's prompt text is ever looked up.
"""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.rewards.items import RewardItem
from harness.rewards.labels import BadBody, completion_of, item_of

OnUnscored = Literal["error", "zero"]
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
