"""A real Inspect provider for tests: `scripted/<name>` computes its reply from what it was sent.

Use `scripted_pool(scholar=look_up, abacus="4")` where a test needs workers: a function of `Heard`,
or a constant text. Every request is listed in `.heard`, with usage set, so that nothing is counted
by a tokenizer from the network. Inside an eval, name the function with `script` and use the model
id. Not here: rehearsal workers (suites/practice/workers), which are real programs of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from podium.harness.context import current
from podium.harness.pool import Pool


@dataclass(frozen=True, slots=True)
class Heard:
    """One request as a worker received it."""

    worker: str
    messages: tuple[ChatMessage, ...]
    epoch: int
    occurrence: int
    """Which repetition of this very request it is, from 0."""
    seed: int

    @property
    def system(self) -> str:
        """The system message, empty when there is none."""
        return next((turn.text for turn in self.messages if turn.role == "system"), "")

    @property
    def last(self) -> str:
        """The text of the last turn."""
        return self.messages[-1].text

    @property
    def turns(self) -> list[tuple[str, str]]:
        """Roles and texts, in order."""
        return [(turn.role, turn.text) for turn in self.messages]


ReplyFunction = Callable[[Heard], str]
SCRIPTS: dict[str, ReplyFunction] = {}


def script(name: str, reply: ReplyFunction) -> str:
    """Register a reply function and return its model id, for evals whose arguments are logged."""
    SCRIPTS[name] = reply
    return f"scripted/{name}"


class ScriptedAPI(ModelAPI):
    """Answers with `reply(heard)`; an exception raised there is a provider failure."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        **model_args: Any,
    ) -> None:
        """Keep the reply function, given as `reply` or registered under the model's name."""
        super().__init__(model_name, base_url, api_key, [], config)
        self.reply: ReplyFunction = model_args.get("reply") or SCRIPTS[model_name]
        self.heard: list[Heard] = model_args.get("heard", [])
        self.seed: int = model_args.get("seed", 0)

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the scripted reply, one token per word."""
        drawn = current().sample
        heard = Heard(
            worker=self.model_name,
            messages=tuple(input),
            epoch=drawn.epoch if drawn else 1,
            occurrence=drawn.occurrence if drawn else 0,
            seed=self.seed,
        )
        self.heard.append(heard)
        text = self.reply(heard)
        output = ModelOutput.from_content(model=self.model_name, content=text)
        asked, said = sum(len(turn.text.split()) for turn in input), len(text.split())
        output.usage = ModelUsage(input_tokens=asked, output_tokens=said, total_tokens=asked + said)
        return output


@modelapi(name="scripted")
def scripted() -> type[ModelAPI]:
    """Register the provider with Inspect."""
    return ScriptedAPI


@dataclass(frozen=True, slots=True)
class ScriptedPool:
    """A pool and what its models were asked, in the order in which they were asked."""

    pool: Pool
    heard: list[Heard] = field(default_factory=list[Heard])

    @property
    def asked(self) -> list[str]:
        """The workers that were asked, in order."""
        return [heard.worker for heard in self.heard]

    def again(self, epoch: int = 1) -> Pool:
        """Return a fresh pool over the same models, as one more sample has it."""
        return Pool(models=self.pool.models, spec=self.pool.spec, epoch=epoch)


def scripted_pool(*, seed: int = 0, **replies: ReplyFunction | str) -> ScriptedPool:
    """Return a pool with one scripted worker per keyword; `conductor=` becomes that role."""
    heard: list[Heard] = []
    models = {name: _model(name, reply, seed, heard) for name, reply in replies.items()}
    return ScriptedPool(Pool(models=models), heard)


def _model(name: str, reply: ReplyFunction | str, seed: int, heard: list[Heard]) -> Model:
    def speak(request: Heard) -> str:
        return reply if isinstance(reply, str) else reply(request)

    arguments: dict[str, Any] = {"reply": speak, "heard": heard, "seed": seed}
    return get_model(f"scripted/{name}", memoize=False, **arguments)
