"""NVIDIA's Switchyard as a system: it chooses each turn's worker, and our pool makes every call.

Its algorithms choose between an efficient and a capable model. Here these are the workers with the
lowest and the highest price of output tokens, unless arguments name them. Tested with
nemo-switchyard 0.3.0.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from inspect_ai.model import ChatMessage, ChatMessageTool

from podium.baselines.common import import_extra, register, seeded_random
from podium.baselines.single import known
from podium.harness.conversation import Conversation, ConversationPool
from podium.harness.errors import UserError
from podium.harness.execute import Session
from podium.harness.pool import Pool
from podium.harness.records import Answer, Question
from podium.harness.system import Calls, Extra, System, SystemCard, SystemMethods
from podium.harness.workflow import Step

Algorithm = Literal["stage", "classifier", "random"]
STAGE, CLASSIFIER, RANDOM = ALGORITHMS = ("stage", "classifier", "random")
CONFIDENCE = 0.5
"""Lowest confidence at which Switchyard uses its classifier or its signals, as in its README."""
LIBRARY, EXTRA = "switchyard.libsy", "switchyard"


class _SwitchyardMethods(SystemMethods):
    extra = Extra(EXTRA, ("switchyard",))

    def arguments(self, x: str) -> Mapping[str, Any]:
        if x not in ("", *ALGORITHMS):
            names = f"{', '.join(ALGORITHMS[:-1])} or {ALGORITHMS[-1]}"
            raise UserError(f"The algorithm {x!r} is unknown. Use {names} (default {STAGE}).")
        return {"algorithm": x} if x else {}


SWITCHYARD = SystemCard(
    name="router-switchyard",
    solver="podium/router_switchyard",
    summary="NVIDIA Switchyard's stage router, classifier or random choice, at each turn.",
    source="github.com/NVIDIA-NeMo/Switchyard (Apache-2.0), nemo-switchyard 0.3.0",
    calls=Calls(
        "1, plus 1 of the capable worker for @classifier",
        lambda _, args: (2, 2) if args.get("algorithm") == CLASSIFIER else (1, 1),
    ),
    group="routers",
    k="algorithm",
    deviations=(
        "its models are the workers with the lowest and the highest price of output tokens",
        "its classifier asks the capable worker, without a response schema, about the conversation "
        "written out as a text",
        "its stage router has no classifier to fall back on: without signals the efficient worker "
        "answers",
    ),
    methods=_SwitchyardMethods(),
    acts="passes",
)


def by_price(pool: Pool) -> Sequence[str]:
    """Return the workers with an output price, cheapest first; all workers if no price is known."""
    book = pool.spec.book() if pool.spec else None
    price_of = {slot.name: slot.price_ref for slot in (pool.spec.workers if pool.spec else ())}
    prices = {name: book and book.price(price_of.get(name, "")) for name in pool.workers}
    rates = {name: price.output for name, price in prices.items() if price and price.output}
    return sorted(rates, key=lambda name: rates[name]) or pool.workers


def request_of(question: Question, chat: Conversation | None) -> dict[str, Any]:
    """Return Switchyard's request: the conversation and tools of `chat`, else the question."""
    if chat is None:
        return {"messages": [{"role": "user", "content": _text(question.text)}]}
    return {
        "messages": [{"role": turn.role, "content": _blocks(turn)} for turn in chat.messages],
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters.model_dump(exclude_none=True),
            }
            for tool in chat.tools
        ],
    }


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


def _blocks(turn: ChatMessage) -> list[dict[str, Any]]:
    if isinstance(turn, ChatMessageTool):
        result = {"tool_call_id": turn.tool_call_id or "", "is_error": turn.error is not None}
        text = turn.error.message if turn.error else turn.text
        return [{"type": "tool_result", "content": _text(text), **result}]
    calls = (turn.tool_calls or ()) if turn.role == "assistant" else ()
    blocks = [
        {"type": "tool_call", "id": call.id, "name": call.function, "arguments": call.arguments}
        for call in calls
    ]
    return [*(_text(turn.text) if turn.text else ()), *blocks]


@register
def router_switchyard_system(
    algorithm: Algorithm = STAGE,
    efficient: str | None = None,
    capable: str | None = None,
    seed: int = 0,
) -> System:
    """Return the system that asks the worker Switchyard chooses: `efficient` or `capable`."""
    library = import_extra(LIBRARY, EXTRA)

    def made(question: Question, epoch: int) -> Any:
        algorithms = library.algorithms
        if algorithm == STAGE:
            return algorithms.stage_router(
                picker="efficient_first", confidence_threshold=CONFIDENCE
            )
        if algorithm == CLASSIFIER:
            config = library.TaskClassifierConfig(CONFIDENCE)
            return algorithms.llm_task_classifier(config=config)
        draw = seeded_random(SWITCHYARD.name, seed, question.text, epoch)
        return algorithms.random(seed=draw.getrandbits(32))

    async def answer(question: Question, pool: Pool) -> Answer:
        priced = by_price(pool)
        cheap, dear = known(pool, efficient or priced[0]), known(pool, capable or priced[-1])
        models = {"efficient": [cheap], "capable": [dear], "any": [dear, cheap], "judge": [dear]}
        conversation = pool.conversation if isinstance(pool, ConversationPool) else None
        session = Session(question, pool)
        chosen, noted = cheap, dict[str, Any]()
        stream = made(question, pool.epoch).run_stream(request_of(question, conversation), models)
        async for step in stream:
            if isinstance(step, library.Step.Done):
                (chosen, *_), about = step.outcome.selected_model_ids, step.outcome.metadata
                noted = {"route": chosen, "switchyard": about.evidence if about else None}
                continue
            instructions = "\n".join(
                block["text"]
                for turn in step.call.request["instructions"]
                for block in turn["content"]
            )
            judged = await session.ask(Step(step.call.models[0], system=instructions), opinion=True)
            output = {"role": "assistant", "content": _text(judged.text), "stop_reason": "end_turn"}
            step.call.respond(library.LlmResponse.Agg({"outputs": [output]}))
        reply = await session.ask(Step(chosen))
        return session.answer(reply.text, noted)

    return answer
