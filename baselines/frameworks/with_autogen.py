"""The pipeline with AutoGen: a group chat of three assistants who speak in turn."""

import warnings

from baselines.frameworks.pipeline import INSTRUCTIONS, Cast
from harness.bridge import client_settings

INFO = {
    "vision": False,
    "function_calling": False,
    "json_output": False,
    "structured_output": False,
    "family": "unknown",
}
"""AutoGen asks for it where it does not know a model's name."""


async def answer(question: str, cast: Cast) -> str:
    """Return the last message of the chat: the question and one message from each."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import MaxMessageTermination
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    # It warns of each model that answers by another name than was asked for, as the bridge's do.
    warnings.filterwarnings("ignore", message="Resolved model mismatch", category=UserWarning)
    agents = [
        AssistantAgent(
            name,
            OpenAIChatCompletionClient(model=model, model_info=INFO, **client_settings()),
            system_message=text,
        )
        for name, model, text in zip(
            ("planner", "executor", "verifier"), cast, INSTRUCTIONS, strict=True
        )
    ]
    team = RoundRobinGroupChat(agents, termination_condition=MaxMessageTermination(4))
    done = await team.run(task=question)
    return str(done.messages[-1].to_text())
