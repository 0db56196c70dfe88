"""The format of a plan: asked for, read for training and evaluation alike, and held to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from json import dumps
from typing import Literal

from conductor.parse import (
    NAMES,
    NOTHING_TO_DO,
    AnyPlan,
    parse_json,
    parse_leniently,
    parse_lists,
)
from harness.workflow import MAX_STEPS, Malformed, Step, Workflow

COMPACT_THOUGHT = " Ask: {}. Ask:"  # how one that goes by cards begins: `Looks3, Does0` between
Layout = Literal["paper", "compact"]
"""`paper`: figure 13's structure in our words. `compact`: question and models only, for a model
that was trained from scratch and could not read instructions."""

Access = Literal["off", "binary", "fine"]
"""`off`: no step reads another; `binary`: nothing or all (the paper's main model); `fine`: any
earlier steps (arXiv 2512.04388, appendix B.8)."""
SOLVE = "Solve the question."  # of a step that reads others, where the form has no subtasks
STRING = r'"(?:[^"\\\x00-\x1f]|\\["\\n])*"'  # without control characters
OPENING = r'[^\x00-\x20,"\[\]0-9][^\x00-\x20,"\[\]0-9]*'
"""What a compact thought calls a worker by: the first word of a card, which ends in no digit."""
_SPECIAL = "\\[](){}|*+?.^$"


def join_rounds(earlier: Workflow, later: Workflow) -> Workflow:
    """Return two rounds as one workflow; the later one's "all" includes the earlier's last step.

    >>> join_rounds(Workflow((Step("a"), Step("b"))), Workflow((Step("c", reads="all"),))).reads(2)
    (1,)
    """
    start = len(earlier.steps)

    def moved(index: int, step: Step) -> Step:
        reads = tuple(start + read for read in later.reads(index))
        return replace(step, reads=(start - 1, *reads) if step.reads == "all" else reads)

    return Workflow((*earlier.steps, *(moved(at, step) for at, step in enumerate(later.steps))))


@dataclass(frozen=True, slots=True)
class Keep:
    """The conductor keeps the answer that there is."""


KEEP = Keep()


@dataclass(frozen=True, slots=True)
class PlanFormat:
    """How a conductor is asked, and how its text becomes a workflow."""

    layout: Layout = "paper"
    cards: bool = True  # whether models are described by role cards; the paper has bare ordinals
    examples: bool = True  # whether the four worked examples are shown; `compact` has none
    reply: Literal["lists", "json"] = "lists"
    lenient: bool = False  # whether small faults are forgiven; training and the paper: strict
    subtasks: bool = True  # False: every worker is asked to solve the question (Table 9)
    access: Access = "fine"
    card_words: int | None = None  # first words of a role card that are shown; None: all of it
    words: int | None = None
    """First words of a question that the conductor is shown; None: all of it. Workers always see
    all of it. For models with little context, to whom a long problem's end says nothing more."""
    max_steps: int = MAX_STEPS
    worker: str = ""  # non-empty: this one does every step, whoever the plan names (Table 10)


def read_plan(form: PlanFormat, text: str, workers: Sequence[str]) -> AnyPlan:
    """Return the workflow that a text asks of these workers, or the first thing wrong with it."""
    return examine_plan(form, text, workers)[0]


def examine_plan(
    form: PlanFormat, text: str, workers: Sequence[str]
) -> tuple[AnyPlan, tuple[str, ...]]:
    """Return the same, and what a lenient reader let pass, one sentence each, our words."""
    if form.lenient:
        plan, forgave = parse_leniently(text, workers, form.max_steps, form.reply)
    else:
        strict = parse_json if form.reply == "json" else parse_lists
        plan, forgave = strict(text, workers, form.max_steps), ()
    return plan if isinstance(plan, Malformed) else restrict_plan(form, plan), forgave


def read_later_plan(form: PlanFormat, text: str, workers: Sequence[str]) -> AnyPlan | Keep:
    """Return what a conductor says in a later round: a new plan, or that the answer stands."""
    return plan_or_keep(read_plan(form, text, workers))


def plan_or_keep(plan: AnyPlan) -> AnyPlan | Keep:
    """Return a later round's plan with three empty lists understood."""
    return KEEP if plan == Malformed(NOTHING_TO_DO) else plan


def restrict_plan(form: PlanFormat, plan: Workflow) -> AnyPlan:
    """Return a plan as its form allows it to run: subtasks, access and a single worker forced.

    `access="binary"` refuses a step that names single ones: all or nothing would be a guess.
    """
    if form.access == "binary":
        named = [at for at, step in enumerate(plan.steps, 1) if step.reads not in ("all", ())]
        if named:
            return Malformed(f'step {named[0]}: access must be [] or ["all"]')

    def allowed(step: Step) -> Step:
        reads = () if form.access == "off" else step.reads
        subtask = step.subtask if form.subtasks else SOLVE if reads else ""
        return replace(step, worker=form.worker or step.worker, subtask=subtask, reads=reads)

    return Workflow(tuple(map(allowed, plan.steps)))


@lru_cache(maxsize=256)
def plan_regex(form: PlanFormat, workers: int, *, later: bool = False) -> str:
    """Return the expression of every plan that so many workers can run, reasoning included."""
    counts = range(0 if later else 1, form.max_steps + 1)
    return _thought(form, workers) + _either([_lists(form, workers, steps) for steps in counts])


def _thought(form: PlanFormat, workers: int) -> str:
    """Return what may stand before the lists: nothing in it can be taken for one of them."""
    if form.layout == "paper":
        return r"(?:[^\[{]*\n)?"
    if form.reply == "json":
        return ""
    called = f"{OPENING}{_number(workers)}"
    several = f"{called}(?:, {called}){{0,{form.max_steps - 1}}}"
    return "(?:" + _exactly(COMPACT_THOUGHT).replace(_exactly("{}"), several) + ")?" + r"\n"


def _lists(form: PlanFormat, workers: int, steps: int) -> str:
    entries = (
        [_number(workers)] * steps,
        [STRING] * steps,
        [_either([_exactly(dumps(one)) for one in _reads(form, at)]) for at in range(steps)],
    )
    lists = [rf"\[{', '.join(row)}\]" for row in entries]
    if form.reply == "json":
        pairs = (f'"{name}": {found}' for name, found in zip(NAMES, lists, strict=True))
        return rf"\{{{', '.join(pairs)}\}}"
    return r"\n".join(f"{name} = {found}" for name, found in zip(NAMES, lists, strict=True))


def _number(workers: int) -> str:
    return _either([str(at) for at in range(workers)])


def _reads(form: PlanFormat, step: int) -> list[list[object]]:
    if form.access == "off":
        return [[]]
    sizes = range(1, step + 1) if form.access == "fine" else ()
    return [[], ["all"], *([*one] for size in sizes for one in combinations(range(step), size))]


def _either(parts: Sequence[str]) -> str:
    return f"(?:{'|'.join(parts)})"


def _exactly(text: str) -> str:
    return "".join(f"\\{sign}" if sign in _SPECIAL else sign for sign in text)
