"""What all frameworks share: who plays which role, the instructions, and how a prompt is joined."""

from baselines.roles import EXECUTE, PLAN, VERIFY

INSTRUCTIONS = (PLAN, EXECUTE, VERIFY)
"""Of planner, executor and verifier, in this order: those of the native pipeline."""

Cast = tuple[str, str, str]
"""The models that play planner, executor and verifier, as the bridge knows them."""

TITLES = ("Question", "Plan", "Answer")
"""What stands before a question and before earlier replies in a prompt written as one text."""


def prompt(instruction: str, *said: str) -> str:
    """Return one text: the question, the replies to it so far, and what to do now.

    >>> print(prompt("Go on.", "2 + 2?", "Add."))
    Question:
    2 + 2?
    <BLANKLINE>
    Plan:
    Add.
    <BLANKLINE>
    Go on.
    """
    parts = [f"{title}:\n{text}" for title, text in zip(TITLES, said, strict=False)]
    return "\n\n".join([*parts, instruction])
