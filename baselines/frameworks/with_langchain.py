"""The pipeline as a chain of LangChain: three prompts, three models, wired by hand."""

from typing import Any

from baselines.frameworks.pipeline import INSTRUCTIONS, TITLES, Cast
from harness.bridge import client_settings


async def answer(question: str, cast: Cast) -> str:
    """Return what the last model of the chain says."""
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnablePassthrough
    from langchain_openai import ChatOpenAI

    def link(at: int) -> Any:
        shown = [f"{title}:\n{{{title.lower()}}}" for title in TITLES[: at + 1]]
        written = ChatPromptTemplate([("human", "\n\n".join([*shown, INSTRUCTIONS[at]]))])
        return written | ChatOpenAI(model=cast[at], **client_settings()) | StrOutputParser()

    chain = (
        RunnablePassthrough.assign(plan=link(0))
        | RunnablePassthrough.assign(answer=link(1))
        | link(2)
    )
    return str(await chain.ainvoke({"question": question}))
