"""Planner, executor, verifier in each framework's usual style, a function per framework."""

import warnings
from typing import Any

from podium.harness.bridge import client_settings

Team = tuple[tuple[str, str, str], ...]
"""(role, model name in Inspect's agent bridge, instruction) of planner, executor and verifier."""

TITLES = ("Question", "Plan", "Answer")
"""Titles of the question and of earlier replies in a prompt written as one text."""


async def answer_with_langgraph(question: str, team: Team) -> str:
    """Return the reply of the last node of a LangGraph graph."""
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
    previous, prefix = START, f"{question}\n\n"
    for name, model, text in team:
        graph.add_node(name, node(model, prefix + text))
        graph.add_edge(previous, name)
        previous, prefix = name, ""
    graph.add_edge(previous, END)
    result = await graph.compile().ainvoke({"messages": []})
    return str(result["messages"][-1].text)


async def answer_with_langchain(question: str, team: Team) -> str:
    """Return the reply of the last model in a LangChain chain."""
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnablePassthrough
    from langchain_openai import ChatOpenAI

    def link(number: int) -> Any:
        sections = [f"{title}:\n{{{title.lower()}}}" for title in TITLES[: number + 1]]
        _, model, text = team[number]
        written = ChatPromptTemplate([("human", "\n\n".join([*sections, text]))])
        return written | ChatOpenAI(model=model, **client_settings()) | StrOutputParser()

    chain = (
        RunnablePassthrough.assign(plan=link(0))
        | RunnablePassthrough.assign(answer=link(1))
        | link(2)
    )
    return str(await chain.ainvoke({"question": question}))


async def answer_with_openai_agents(question: str, team: Team) -> str:
    """Return the final output of the last agent of OpenAI's SDK; the SDK uploads no traces."""
    from agents import Agent, OpenAIResponsesModel, RunConfig, Runner
    from openai import AsyncOpenAI

    client = AsyncOpenAI(**client_settings())
    settings = RunConfig(tracing_disabled=True)
    history, prefix, result = list[Any](), f"{question}\n\n", None
    for name, model, text in team:
        agent = Agent(name=name, model=OpenAIResponsesModel(model=model, openai_client=client))
        turns = [*history, {"role": "user", "content": prefix + text}]
        result = await Runner.run(agent, turns, run_config=settings)
        history, prefix = result.to_input_list(), ""
    return str(result.final_output)


_LACKING = ("vision", "function_calling", "json_output", "structured_output")
INFO = {**dict.fromkeys(_LACKING, False), "family": "unknown"}
"""Model capabilities, which AutoGen requires for a model name that it does not know."""


async def answer_with_autogen(question: str, team: Team) -> str:
    """Return an AutoGen group chat's last message; each agent speaks once after the question."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import MaxMessageTermination
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    # AutoGen warns if a reply has another model name than requested, as Inspect's bridge gives.
    warnings.filterwarnings("ignore", message="Resolved model mismatch", category=UserWarning)
    agents = [
        AssistantAgent(
            name,
            OpenAIChatCompletionClient(model=model, model_info=INFO, **client_settings()),
            system_message=text,
        )
        for name, model, text in team
    ]
    chat = RoundRobinGroupChat(agents, termination_condition=MaxMessageTermination(4))
    result = await chat.run(task=question)
    return str(result.messages[-1].to_text())


async def answer_with_ag2(question: str, team: Team) -> str:
    """Return the reply of the last AG2 agent."""
    from ag2 import Agent
    from ag2.config import OpenAIConfig

    texts = [question]
    for name, model, text in team:
        agent = Agent(name, config=OpenAIConfig(model, **client_settings()))
        sections = [f"{title}:\n{reply}" for title, reply in zip(TITLES, texts, strict=False)]
        reply = await agent.ask("\n\n".join([*sections, text]))
        texts.append(str(reply.body))
    return texts[-1]


async def answer_with_agent_framework(question: str, team: Team) -> str:
    """Return the text of the last output of a workflow in Microsoft's Agent Framework."""
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
        for name, model, text in team
    ]
    result = await SequentialBuilder(participants=agents).build().run(question)
    return str(result.get_outputs()[-1].text)
