"""The pipeline with CrewAI: three agents with a task each, in sequence. Runs in a sandbox.

Its environment is its own (CrewAI wants another OpenAI client than Inspect), so this file imports
nothing of ours: it reads the question, and who is told what, from its standard input.
"""

import json
import os
import sys
from typing import Any


def main() -> None:
    """Print what the last task puts out."""
    given: dict[str, Any] = json.load(sys.stdin)
    from crewai import LLM, Agent, Crew, Process, Task

    agents: list[Any] = []
    tasks: list[Any] = []
    for role, model, text in given["team"]:
        chat = LLM(
            model=model,
            provider="openai",
            base_url=os.environ["OPENAI_BASE_URL"],
            api_key=os.environ["OPENAI_API_KEY"],
            max_retries=0,
        )
        agent = Agent(role=role, goal="Do your task.", backstory="", llm=chat, max_iter=1)
        agents.append(agent)
        described = f"{given['question']}\n\n{text}"
        tasks.append(
            Task(description=described, expected_output="Text.", agent=agent, context=list(tasks))
        )
    crew = Crew(agents=agents, tasks=tasks, process=Process.sequential, verbose=False)
    answer = crew.kickoff().raw
    sys.stdout.write("\n" + json.dumps({"answer": answer}) + "\n")


if __name__ == "__main__":
    main()
