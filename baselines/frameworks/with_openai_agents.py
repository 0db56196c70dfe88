"""The pipeline with OpenAI's Agents SDK: three agents, each run on what the one before returned."""

from typing import Any

from baselines.frameworks.pipeline import INSTRUCTIONS, Cast
from harness.bridge import client_settings


async def answer(question: str, cast: Cast) -> str:
    """Return the last agent's final output; the SDK's upload of traces is off."""
    from agents import Agent, OpenAIResponsesModel, RunConfig, Runner
    from openai import AsyncOpenAI

    client = AsyncOpenAI(**client_settings())
    settings = RunConfig(tracing_disabled=True)
    said: list[Any] = []
    done: Any = None
    texts = [f"{question}\n\n{INSTRUCTIONS[0]}", *INSTRUCTIONS[1:]]
    for name, model, text in zip(("planner", "executor", "verifier"), cast, texts, strict=True):
        agent = Agent(name=name, model=OpenAIResponsesModel(model=model, openai_client=client))
        turns = [*said, {"role": "user", "content": text}]
        done = await Runner.run(agent, turns, run_config=settings)
        said = done.to_input_list()
    return str(done.final_output)
