"""Later rounds: a conductor sees what its plan came to, and plans again or keeps the answer.

As in arXiv 2512.04388, section 3.2 and figure 14, in our words: it is shown the last reply, may
write a new plan in which "all" includes that reply, or three empty lists to return it as it is. All
rounds together are one workflow (`join`), so that a log needs no other words for them. Texts and
pure functions only: policy.py asks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser

from conductor.form import Form
from conductor.parse import NOTHING_TO_DO
from conductor.prompt import COMPACT_PLAN
from conductor.reading import read
from harness.errors import UserError
from harness.workflow import Malformed, Step, Workflow

AGAIN = """\
Your plan has been carried out. The reply of its last step, which is the answer so far, was:

{reply}

You may write one more plan, of at most {max_steps} steps and in the same form, to check this
answer, to improve it or to begin anew. {access}
The reply of the new plan's last step is then returned to the user. If the answer so far is good,
leave all three lists empty, and it is returned as it is."""

ACCESS = 'In it, "all" includes the last step of the earlier plan, with its reply.'
ACCESS_OFF = "Its models read neither the answer so far nor each other."

COMPACT_EARLIER = "Earlier plan:\n{said}\n\nEarlier answer:\n{reply}"


@dataclass(frozen=True, slots=True)
class Keep:
    """The conductor keeps the answer that there is."""


KEEP = Keep()


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often a conductor is asked again, and what all rounds together may take."""

    further: int = 1
    """After the first round. The paper trains with one; it says of its test only that it needs
    less than twice the calls."""
    max_calls: int | None = None
    """Worker calls; None is one less than twice the calls of the longest first plan."""
    max_usd: Decimal | None = None
    """Would-be dollars, the conductor's own calls included; a round is not begun beyond it."""

    def __post_init__(self) -> None:
        if self.further < 0 or (self.max_calls is not None and self.max_calls < 1):
            raise UserError("Rounds need rounds of at least 0 and max_calls of at least 1.")
        if self.max_usd is not None and not self.max_usd > 0:
            raise UserError("max_usd of all rounds must be more than 0.")

    def calls(self, form: Form) -> int:
        """Return the most worker calls of a question; its first plan may have all it may have."""
        twice = 2 * form.max_steps - 1 if self.further else form.max_steps
        return twice if self.max_calls is None else self.max_calls


def again(form: Form, request: Sequence[ChatMessage], said: str, reply: str) -> list[ChatMessage]:
    """Return what a conductor is sent in a later round: all of its request, in its form's layout.

    `request` is what it was sent before, `said` its whole text then, and `reply` the last reply of
    what that came to. Words and limits are those of `form`.
    """
    if form.layout == "compact":
        earlier = COMPACT_EARLIER.format(said=said, reply=reply)
        before = request[-1].text.removesuffix(COMPACT_PLAN)
        return [ChatMessageUser(content=f"{before}{earlier}\n\n{COMPACT_PLAN}")]
    access = ACCESS_OFF if form.access == "off" else ACCESS
    text = AGAIN.format(reply=reply, max_steps=form.max_steps, access=access)
    return [*request, ChatMessageAssistant(content=said), ChatMessageUser(content=text)]


def read_again(form: Form, text: str, workers: Sequence[str]) -> Workflow | Malformed | Keep:
    """Return what a conductor says in a later round: a new plan, or that the answer stands."""
    return kept(read(form, text, workers))


def kept(plan: Workflow | Malformed) -> Workflow | Malformed | Keep:
    """Return a later round's plan with three empty lists understood."""
    return KEEP if plan == Malformed(NOTHING_TO_DO) else plan


def join(earlier: Workflow, later: Workflow) -> Workflow:
    """Return two rounds as one workflow; the later one's "all" includes the earlier's last step.

    >>> join(Workflow((Step("a"), Step("b"))), Workflow((Step("c", reads="all"),))).steps[2].reads
    (1,)
    """
    start = len(earlier.steps)

    def moved(index: int, step: Step) -> Step:
        reads = tuple(start + read for read in later.reads(index))
        return replace(step, reads=(start - 1, *reads) if step.reads == "all" else reads)

    return Workflow((*earlier.steps, *(moved(at, step) for at, step in enumerate(later.steps))))
