"""How a reply comes about: attempt the question, weigh what others said, write it down."""

import random
from collections.abc import Sequence

from inspect_ai.model import ChatMessage

from harness.rehearsal import checking, choosing
from harness.rehearsal.calculating import Attempt, agreed, calculate, knowing
from harness.rehearsal.chat import Chat, final_answer, read_chat
from harness.rehearsal.formulas import find_expression
from harness.rehearsal.placing import placed
from harness.rehearsal.planning import conduct, decompose
from harness.rehearsal.programs import write_program
from harness.rehearsal.reciting import statements
from harness.rehearsal.scratch import Scratch
from harness.rehearsal.wording import say, say_program, unable
from harness.rehearsal.workers import Worker

OWN_WEIGHT = {"solve": 1.4, "verify": 1.6, "recite": 1.1, "plan": 0.5, "format": 0.0}
"""How much a worker trusts its own answer against one earlier reply."""


def respond(
    worker: Worker, messages: Sequence[ChatMessage], rng: random.Random, heat: float
) -> str:
    """Return a worker's reply to a chat. Total: whatever the chat, some reply comes back."""
    chat = read_chat(messages)
    paper = Scratch(
        rng,
        slip=min(1.0, worker.slip * heat),
        digits=worker.digits,
        reach=worker.reach,
        knows=worker.knows,
        floats=worker.floats,
    )
    if (
        chat.asked == "plan"
        and worker.manner in ("plan", "solve")
        and worker.name in ("planner", "sage")
    ):
        return conduct(worker, messages[-1].text if messages else "", paper)
    if chat.asked == "program":
        return _program(worker, chat, paper)
    if worker.manner == "recite" and chat.asked != "choice":
        return _recitation(worker, chat, paper)
    return _answer(worker, chat, paper)


def _attempt(worker: Worker, chat: Chat, paper: Scratch) -> Attempt:
    if worker.manner == "format":
        return Attempt(None, "I only tidy up what others found")
    if chat.asked == "choice":
        return choosing.choose(worker, chat, paper)
    attempts = [calculate(worker, chat, paper) for _ in range(worker.passes)]
    answer = agreed([attempt.answer for attempt in attempts])
    if worker.passes == 2 and attempts[0].answer != attempts[1].answer:
        paper.note("The two results differ, so I work it out once more.")
        attempts.append(calculate(worker, chat, paper))
        answer = agreed([attempt.answer for attempt in attempts])
    return Attempt(answer, attempts[0].why)


def _answer(worker: Worker, chat: Chat, paper: Scratch) -> str:
    own = _attempt(worker, chat, paper)
    checks = paper if worker.manner == "verify" or chat.gathered else None
    if worker.manner == "verify":
        _report_errors(chat, paper)
    weight = OWN_WEIGHT[worker.manner]
    answer = checking.weigh(chat.earlier, chat.asked, (own.answer, weight), checks)
    if own.answer is not None and answer != own.answer:
        paper.note(f"I get {own.answer}, but more of the replies before me say {answer}.")
    if answer is None and worker.manner == "plan":
        return decompose(chat, own.why)
    if answer is None and chat.asked == "choice":
        paper.note(f"{own.why[:1].upper()}{own.why[1:]}, so this is a guess.")
        answer = choosing.guess(worker, chat, paper)
    if answer is None:
        return unable(worker, own.why, paper)
    return say(worker, chat, answer, paper)


def _report_errors(chat: Chat, paper: Scratch) -> None:
    for at, reply in enumerate(chat.earlier, start=1):
        for error in checking.wrong_equations(reply, paper)[:3]:
            paper.note(f"Reply {at} has an error: {error}.")


def _recitation(worker: Worker, chat: Chat, paper: Scratch) -> str:
    """State the facts that the question needs; computing is left to others."""
    told = statements(placed(chat.everything, chat.earlier), knowing(worker))
    kept = [line for line in told if not paper.slips(1)]
    found = None if told else find_expression(chat.question)
    if found:
        kept.append(f"By {found[0]}, compute: {found[1]}.")
    settled = checking.weigh(chat.earlier, chat.asked, (None, 0.0), None)
    if settled is not None and not kept:
        return say(worker, chat, settled, paper)
    if not kept:
        return unable(worker, "I know of no fact that helps here", paper)
    facts = "\n".join(kept)
    return (
        f"These are the facts that matter here.\n{facts}\nI leave the computation to someone else."
    )


def _program(worker: Worker, chat: Chat, paper: Scratch) -> str:
    own = write_program(worker, chat.question, paper) if worker.families else None
    mine = own[1].strip("\n") if own else None
    earlier = [reply for reply in chat.earlier if final_answer(reply, "program")]
    if chat.gathered:
        code = checking.agreed_program(earlier, mine)
    else:
        weight = OWN_WEIGHT[worker.manner] if own else 0.0
        code = checking.weigh(earlier, "program", (mine, weight), None)
    if code is None:
        return unable(worker, "I do not know how to write this program", paper)
    return say_program(worker, chat, code, own[0] if own and code == mine else "")
