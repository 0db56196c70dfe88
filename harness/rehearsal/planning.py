# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Plan: as a step, take a question apart in words; as a conductor, write the three lists.

A conductor reads the question and the role cards. With hidden identities it cannot know who is
who, and spreads its bets.
"""

import re

from harness.rehearsal.chat import Chat
from harness.rehearsal.facts import attributes_in, name_pattern
from harness.rehearsal.scratch import Scratch
from harness.rehearsal.workers import Worker

_QUESTION = re.compile(r"USER QUESTION:\s*(.*?)\s*(?=AVAILABLE LANGUAGE MODELS:|\Z)", re.DOTALL)
_MODELS = re.compile(r"^\W*Model (\d+)(?:\s*[:\-]\s*(.*))?$", re.MULTILINE)
_MOST = re.compile(r"at most (\d+)")
_ASKED_AGAIN = "leave all three lists empty"
_KEEP = "I cannot do better.\n\nmodel_id = []\nsubtasks = []\naccess_list = []"
"""What it says of its own answer in a later round: it has no way to judge it."""
_FOUND = re.compile(
    r"element (?:with|whose|having|that has|which has|number)|is the atomic number of (?:an?|some|which)"
    r"|(?:places?|positions|steps) (?:after|before|from|forward|back|ahead|beyond)"
)
"""Something has to be found by a number that is computed first."""
ROLES = {
    "facts": r"\bfacts?\b|knowledge|elements|planets|remembers|encyclop|looks? up|recit",
    "compute": r"arithmetic|comput|calculat|number theory|numbers|mathematic",
    "code": r"\bcode|program|python|software",
    "all": r"generalist|careful|all-?round|everything|general",
    "check": r"verif|check|review|errors|mistakes",
    "format": r"format|tidies|final answer|extract|cleans",
}


def conduct(worker: Worker, prompt: str, paper: Scratch) -> str:
    """Return a plan for the question in a conductor's prompt: reasoning, then three lists."""
    if _ASKED_AGAIN in prompt:
        return _KEEP
    question, cards, limit = _read(prompt)
    if not cards:
        return "I see no models to choose from."
    steps = _steps(question, cards, paper)[: max(1, limit)]
    models = [model for model, _, _ in steps]
    subtasks = ", ".join(_quoted(subtask) for _, subtask, _ in steps)
    access = ", ".join('["all"]' if reads == "all" else str(list(reads)) for _, _, reads in steps)
    return (
        f"{_reason(question)}\n\nmodel_id = {models}\nsubtasks = "
        f"[{subtasks}]\naccess_list = [{access}]"
    )


def _read(prompt: str) -> tuple[str, dict[int, str], int]:
    found = _QUESTION.search(prompt)
    models = prompt[prompt.find("AVAILABLE LANGUAGE MODELS:") :]
    cards = {int(m[1]): (m[2] or "").lower() for m in _MODELS.finditer(models) if int(m[1]) < 100}
    most = _MOST.search(prompt)
    return (found[1] if found else ""), cards, int(most[1][:3]) if most else 5


def _kind(question: str) -> str:
    low = question.lower()
    if re.search(
        r"class solution|stdin|standard input|```python|first line|\bprogram\b|\bprint\b", low
    ):
        return "code"
    facts = re.search(name_pattern(), low) is not None and bool(attributes_in(low))
    choice = re.search(r"^\s*\(?[A-D][).:]", question, re.MULTILINE)
    if choice:
        return "lookup" if not re.search(r"\d", low.split("\na")[0]) else "choice"
    if facts and _FOUND.search(low):
        return "found"
    return "composed" if facts else "compute"


def _pick(role: str, cards: dict[int, str], paper: Scratch, taken: list[int]) -> int:
    fitting = [model for model, card in cards.items() if re.search(ROLES[role], card)]
    best = sorted(fitting, key=lambda m: -len(re.findall(ROLES[role], cards[m])))
    if best:
        return best[0]
    spare = [model for model in cards if model not in taken] or list(cards)
    return paper.random.choice(spare)


def _steps(
    question: str, cards: dict[int, str], paper: Scratch
) -> list[tuple[int, str, tuple[int, ...] | str]]:
    wanted = {
        "code": [("code", "Write the program.", ())],
        "lookup": [("facts", "", ())],
        "compute": [
            ("compute", "", ()),
            ("check", "Check the reply above and give the final answer.", "all"),
        ],
        "choice": [
            ("facts", "State the facts or the formula that the question needs.", ()),
            ("compute", "Compute the result and choose.", "all"),
        ],
        "composed": [
            (
                "facts",
                "Write down the facts and intermediate results that answering the question needs.",
                (),
            ),
            ("compute", "Use the work above to answer the question.", "all"),
        ],
        "found": [
            ("facts", "Write down the facts that the question needs first.", ()),
            ("compute", "Work out which element or planet is meant, by its number.", "all"),
            ("facts", "Look up what the question asks of it.", "all"),
            ("compute", "Use the work above to answer the question.", "all"),
        ],
    }[_kind(question)]
    hidden = not any(cards.values())
    if hidden:
        wanted = [*wanted, ("all", "Give the final answer from the replies above.", "all")]
    steps: list[tuple[int, str, tuple[int, ...] | str]] = []
    for role, subtask, reads in wanted:
        model = _pick(role, cards, paper, [step[0] for step in steps])
        steps.append((model, subtask, reads if steps else ()))
    return steps


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


def _reason(question: str) -> str:
    reasons = {
        "code": (
            "The question asks for a program, so a model that writes code should do it in one step."
        ),
        "lookup": (
            "The question asks for a fact, so the model with the largest store of facts "
            "should answer."
        ),
        "compute": (
            "The question is a computation; one model computes and another checks the result."
        ),
        "choice": "The question needs a formula or fact and then a computation, in that order.",
        "composed": "The question needs facts first and a computation on them second.",
        "found": "An element has to be found by computing before more can be looked up.",
    }
    return reasons[_kind(question)]


def decompose(chat: Chat, why: str) -> str:
    """Return a plan in words: what has to be known, what has to be computed, how it must end."""
    names = list(dict.fromkeys(re.findall(name_pattern(), chat.question.lower())))[:6]
    steps = [f"Find out what the question needs about {name}." for name in names]
    steps += ["Put these values into the question.", "Work the calculation out step by step."]
    steps += ["Give the final answer in the form that is asked for."]
    listed = "\n".join(f"Step {at}: {step}" for at, step in enumerate(steps, start=1))
    return f"{listed}\n{why[:1].upper()}{why[1:]}, so I leave the steps to others."
