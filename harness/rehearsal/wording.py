"""How workers put a result into words: working first, then the answer in the form asked for."""

from harness.rehearsal.chat import Chat
from harness.rehearsal.reading import without_format
from harness.rehearsal.scratch import Scratch
from harness.rehearsal.workers import Worker

ASIDES = (
    "Let me restate what is asked, so that nothing is overlooked.",
    "I write the quantities down before I combine them.",
    "Each step is done on its own and then compared with the one before.",
    "The size of the result is what one would expect.",
    "A second look at the wording does not change the reading.",
    "I keep the exact values until the end.",
    "Nothing in the question suggests another interpretation.",
    "The units and the range of the answer are consistent with the question.",
)


def working(worker: Worker, chat: Chat, paper: Scratch) -> str:
    """Return the working as this worker writes it out: what is asked, asides, steps."""
    words = without_format(chat.question).split()[: round(12 * worker.verbosity)]
    asides = [ASIDES[at % len(ASIDES)] for at in range(round(1.5 * worker.verbosity))]
    half = len(asides) // 2
    lines = paper.lines[: round(8 * worker.verbosity)]
    opening = f"The question: {' '.join(words)} ..."
    return "\n".join([opening, *asides[:half], *lines, *asides[half:]])


def say(worker: Worker, chat: Chat, answer: str, paper: Scratch) -> str:
    """Return a reply that ends in an answer."""
    text = working(worker, chat, paper)
    if chat.asked == "choice":
        ending = f"It is {answer}." if worker.prose and paper.slips(2) else f"Answer: {answer}"
    elif worker.prose:
        ending = f"So it is {answer}." if paper.random.random() < 0.5 else f"\\boxed{{{answer}}}"
    else:
        ending = f"The answer is \\boxed{{{answer}}}."
    return f"{text}\n{ending}".strip()


def say_program(worker: Worker, chat: Chat, code: str, family: str) -> str:
    """Return a reply that holds one program."""
    intro = f"This is a task about {family}.\n" if family and worker.verbosity >= 0.5 else ""
    asides = "\n".join(ASIDES[: round(3 * worker.verbosity)])
    return f"{intro}{asides}\n```python\n{code}\n```".strip()


def unable(worker: Worker, why: str, paper: Scratch) -> str:
    """Return the reply of a worker that has no answer."""
    lines = "\n".join(paper.lines[:5]) if worker.verbosity >= 1 else ""
    reason = why or "I cannot settle this"
    return f"{lines}\n{reason[:1].upper()}{reason[1:]}. I cannot give an answer.".strip()
