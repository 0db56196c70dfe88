"""The pipeline as a graph of LangGraph: three nodes in a row that share a list of messages."""

from typing import Any

from baselines.frameworks.pipeline import INSTRUCTIONS, Cast
from harness.bridge import client_settings


async def answer(question: str, cast: Cast) -> str:
    """Return what the last node of the graph says."""
    from langchain_core.messages import HumanMessage
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, MessagesState, StateGraph

    def node(model: str, instruction: str) -> Any:
        chat = ChatOpenAI(model=model, **client_settings())

        async def say(state: Any) -> Any:
            turn = HumanMessage(instruction)
            return {"messages": [turn, await chat.ainvoke([*state["messages"], turn])]}

        return say

    graph = StateGraph(MessagesState)
    names = ["planner", "executor", "verifier"]
    texts = [f"{question}\n\n{INSTRUCTIONS[0]}", *INSTRUCTIONS[1:]]
    for name, model, text in zip(names, cast, texts, strict=True):
        graph.add_node(name, node(model, text))
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    done = await graph.compile().ainvoke({"messages": []})
    return str(done["messages"][-1].text)
