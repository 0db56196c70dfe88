"""The pipeline with AG2: three agents, each asked with the replies so far in one text."""

from baselines.frameworks.pipeline import INSTRUCTIONS, Cast, prompt
from harness.bridge import client_settings


async def answer(question: str, cast: Cast) -> str:
    """Return the last agent's reply."""
    from ag2 import Agent
    from ag2.config import OpenAIConfig

    said = [question]
    for name, model, text in zip(
        ("planner", "executor", "verifier"), cast, INSTRUCTIONS, strict=True
    ):
        agent = Agent(name, config=OpenAIConfig(model, **client_settings()))
        reply = await agent.ask(prompt(text, *said))
        said.append(str(reply.body))
    return said[-1]
