"""The pipeline with CrewAI: three agents with a task each, in sequence. Runs in a sandbox.

CrewAI needs another version of OpenAI's client than Inspect, so this script needs a Python of its
own and imports nothing from podium. Standard input has, as JSON, the question and each agent's
role, model and instruction.
"""

import json
import os
import sys
from typing import Any


def main() -> None:
    """Print the last task's output as a line of JSON with the key `answer`."""
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
