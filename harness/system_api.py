"""A system as an Inspect model: `podium/moa-lite` answers the turns of any task.

A call of `generate` is a turn; all turns of a sample are one query, with one spend meter, one
recorder and one count of replies. Tokens and dollars belong to the workers' calls, so the outer
model call has none, and no sum includes its event. Tested with inspect-ai 0.3.285.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, cast

from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
)
from inspect_ai.model._providers.none import (  # pyright: ignore[reportMissingTypeStubs]
    NoModel,  # Inspect makes no connections for it beforehand; it has no public name
)
from inspect_ai.solver import TaskState
from inspect_ai.solver._task_state import (
    sample_state,  # the only way to find a model's current sample
)
from inspect_ai.tool import ToolChoice, ToolInfo
from inspect_ai.util import LimitExceededError, message_limit, suspend_turn_limit

from podium.harness.context import run_context
from podium.harness.conversation import (
    Conversation,
    ConversationPool,
    question_of,
    sampling_of,
    words_of,
)
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import answer_note, sample_ref
from podium.harness.ledger.recorder import Recorder, TaskJournal
from podium.harness.pool import Pool, active_pool
from podium.harness.pool_config import PoolSpec, WorkerSpec
from podium.harness.records import (
    ANSWER,
    PODIUM,
    SECONDS,
    TOOL_CALL_COUNT,
    TURN_COUNT,
    WAVES,
    Answer,
)
from podium.harness.system import Acts, System

CHARACTERS = 4  # per token, for estimates of a conversation's length without a tokenizer


@dataclass(frozen=True, slots=True)
class SystemInPlay:
    """A system that answers as an Inspect model, with its pool, conductor and journal."""

    system: System
    acts: Acts
    spec: PoolSpec | None
    """The pool; None if the workers are the model roles that the user gave to Inspect."""
    override: WorkerSpec | None = None
    """The system's own conductor; None if it uses the pool's, or needs none."""
    journal: TaskJournal | None = None


@dataclass(slots=True)
class SampleTurns:
    """Counts over the turns (requests to the system) of a sample so far: steps, seconds, tools."""

    pool: Pool
    recorder: Recorder | None
    turns: int = 0
    tool_calls: int = 0
    depth: int = 0
    steps: int = 0
    seconds: float = 0.0
    stopped: str | None = None
    waves: list[int] = field(default_factory=list[int])
    last: Answer = field(default_factory=lambda: Answer(""))

    def add(self, answer: Answer, output: ModelOutput, seconds: float) -> None:
        """Add one turn, a call of `generate`, to the totals of the sample."""
        self.turns, self.seconds = self.turns + 1, self.seconds + seconds
        self.tool_calls += len(output.message.tool_calls or ())
        self.depth, self.steps = self.depth + answer.depth, self.steps + len(answer.replies)
        self.stopped = self.stopped or answer.stopped
        self.waves += answer.waves or (1,) * len(answer.replies)
        self.last = replace(answer, text=words_of(output), replies=())

    def shape(self) -> dict[str, Any]:
        """Return the sample's log entry: the totals of all turns, and the last answer."""
        replayed = self.recorder is not None and self.recorder.replays
        return {
            "depth": self.depth,
            "steps": self.steps,
            "stopped": self.stopped,
            "plan": self.last.plan,
            **({"noted": dict(self.last.noted)} if self.last.noted else {}),
            **({WAVES: list(self.waves)} if len(self.waves) > 1 else {}),
            TURN_COUNT: self.turns,
            TOOL_CALL_COUNT: self.tool_calls,
            SECONDS: None if replayed else round(self.seconds, 6),
            ANSWER: self.last.text,
        }


class SystemAPI(NoModel):
    """The Inspect model of a system, in the logs of podium's suites and in tasks that call it.

    `arguments` are Inspect's `-M`: `pool` names a pool file, `learnt` the directory of a run.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - as Inspect's own
        **arguments: Any,
    ) -> None:
        """Store Inspect's model arguments, from which the system is made."""
        super().__init__(model_name, base_url, api_key, config)
        self.arguments: Mapping[str, Any] = arguments
        self.plays: SystemInPlay | None = None
        self._samples: dict[str, SampleTurns] = {}

    def make(self) -> SystemInPlay:
        """Return the system of this model's name; UserError if it has no pool, or cannot answer."""
        raise UserError(f"{PODIUM}/{self.model_name} has no workers: name a pool (-M pool=FILE).")

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the system's reply to one turn; WorkerError if a worker gave no reply."""
        state = sample_state()
        if state is None:
            raise UserError(
                f"{PODIUM}/{self.model_name} can answer only within a task. Use it as the model of "
                "`inspect eval`."
            )
        plays = self.plays = self.plays or self.make()
        conversation = Conversation(
            messages=input, tools=tools, tool_choice=tool_choice, config=sampling_of(config)
        )
        if conversation.has_tools and plays.acts == "no":
            raise UserError(
                f"{self.model_name} answers in words only, and this task has tools: `podium "
                "systems NAME` says which systems call them."
            )
        turns = self._turns(state, plays)
        question = question_of(str(state.sample_id), conversation)
        pool = ConversationPool.within(turns.pool, conversation, question.text, plays.acts)
        start = monotonic()
        with ExitStack() as inside:
            inside.enter_context(run_context(recorder=turns.recorder))
            # A task's limits apply to its turns, not to the calls within one of them.
            inside.enter_context(message_limit(None))
            inside.enter_context(suspend_turn_limit())
            try:
                answer = await plays.system(question, pool)
            except LimitExceededError as reached:  # this turn's calls are billed
                turns.stopped = reached.type
                self._note(state, turns, plays.journal)
                raise
        output = pool.output_of(answer)
        turns.add(answer, output, monotonic() - start)
        self._note(state, turns, plays.journal)
        stop = "model_length" if answer.too_long else output.stop_reason
        choices = [output.choices[0].model_copy(update={"stop_reason": stop})]
        return ModelOutput(model=f"{PODIUM}/{self.model_name}", choices=choices)

    def _turns(self, state: TaskState, plays: SystemInPlay) -> SampleTurns:
        if state.uuid not in self._samples:
            recorder = plays.journal and Recorder(plays.journal, "inference", sample_ref(state))
            pool = active_pool(plays.spec, state.epoch, plays.override)
            self._samples[state.uuid] = SampleTurns(pool, recorder)
        return self._samples[state.uuid]

    def _note(self, state: TaskState, turns: SampleTurns, journal: TaskJournal | None) -> None:
        """Write the totals to sample and journal after each turn, as a limit may end the sample."""
        state.metadata[PODIUM] = shape = turns.shape()
        if journal:
            journal.note("answer", answer_note(state, shape))

    async def count_tokens(
        self, input: str | list[ChatMessage], config: GenerateConfig | None = None
    ) -> int:
        """Return an estimate of a conversation's tokens: a quarter of its characters."""
        text = input if isinstance(input, str) else "".join(turn.text for turn in input)
        return len(text) // CHARACTERS + 1

    def connection_key(self) -> str:
        """Return the key by which Inspect limits concurrent calls of the system: its name."""
        return self.model_name

    def tool_result_images(self) -> bool:
        """Return True, so that tool results keep images: each worker's provider decides on them."""
        return True

    def tool_result_documents(self) -> bool:
        """Return True, so that tool results keep documents: each provider decides on them."""
        return True


def system_model(system: str) -> Model:
    """Return the model that represents a system, e.g. `podium/moa-lite`."""
    return get_model(f"{PODIUM}/{system}", memoize=False)  # each task has its own


def let_play(model: Model, plays: SystemInPlay) -> Model:
    """Set the system that a model answers with; return the same model."""
    cast(SystemAPI, model.api).plays = plays
    return model
