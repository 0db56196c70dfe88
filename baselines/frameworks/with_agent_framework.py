"""The pipeline with Microsoft's Agent Framework: a sequential workflow of three agents."""

from baselines.frameworks.pipeline import INSTRUCTIONS, Cast
from harness.bridge import client_settings


async def answer(question: str, cast: Cast) -> str:
    """Return the text that the workflow puts out last."""
    from agent_framework import Agent
    from agent_framework.openai import OpenAIChatCompletionClient
    from agent_framework.orchestrations import SequentialBuilder
    from openai import AsyncOpenAI

    client = AsyncOpenAI(**client_settings())
    agents = [
        Agent(
            OpenAIChatCompletionClient(model=model, async_client=client),
            instructions=text,
            name=name,
        )
        for name, model, text in zip(
            ("planner", "executor", "verifier"), cast, INSTRUCTIONS, strict=True
        )
    ]
    done = await SequentialBuilder(participants=agents).build().run(question)
    return str(done.get_outputs()[-1].text)
