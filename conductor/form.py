"""The form of a conductor: what it is shown and how its text is read, as one record.

Training, evaluation and the reward ask and read through the same `Form`, which is stored beside a
checkpoint: a plan is worth in training what it is worth in an exam. Ablations are other forms.
Not here: the texts (prompt.py), reading (parse.py, lenient.py, json_form.py), running.
"""

from dataclasses import dataclass
from typing import Literal

from harness.workflow import MAX_STEPS

Layout = Literal["paper", "compact"]
"""`paper`: figure 13's structure in our words. `compact`: question and models only, for a model
that was trained from scratch and could not read instructions."""

Access = Literal["off", "binary", "fine"]
"""`off`: no step reads another; `binary`: nothing or all (the paper's main model); `fine`: any
earlier steps (arXiv 2512.04388, appendix B.8)."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a conductor is asked, and how its text becomes a workflow."""

    layout: Layout = "paper"
    cards: bool = True
    """Whether models are described by their role cards; the paper shows bare ordinals."""
    examples: bool = True
    """Whether the four worked examples are shown; `compact` has none."""
    reply: Literal["lists", "json"] = "lists"
    lenient: bool = False
    """Whether small faults of form are forgiven; training and the paper's numbers are strict."""
    subtasks: bool = True
    """False: every worker is asked to solve the question, whatever the plan's words (Table 9)."""
    access: Access = "fine"
    card_words: int | None = None
    """First words of a role card that the conductor is shown; None: all of it."""
    words: int | None = None
    """First words of a question that the conductor is shown; None: all of it. Workers always see
    all of it. For models with little context, to whom a long problem's end says nothing more."""
    max_steps: int = MAX_STEPS
    worker: str = ""
    """Non-empty: this one does every step, whoever the plan names (Table 10)."""
