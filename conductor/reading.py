"""From a conductor's text to the workflow that its form allows: one place for reward and exam.

The reader is chosen by the form, then the form's ablations are applied. Total: no text makes it
raise. Not here: how text is taken apart (parse.py, lenient.py, json_form.py) and later rounds
(recursion.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from conductor.form import Form
from conductor.json_form import parse_json
from conductor.lenient import parse_leniently
from conductor.parse import parse
from harness.workflow import Malformed, Step, Workflow

SOLVE = "Solve the question."
"""What a step that reads others is asked where the form has no subtasks; a step that reads nothing
is sent the question alone, as a single worker is."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text came to."""

    plan: Workflow | Malformed
    forgave: tuple[str, ...] = ()
    """What a lenient reader let pass, one sentence each, in words of ours."""


def read(form: Form, text: str, workers: Sequence[str]) -> Workflow | Malformed:
    """Return the workflow that a text asks of these workers, or the first thing wrong with it.

    `workers` are those that the conductor was shown, in the order of their numbers.
    """
    return examine(form, text, workers).plan


def examine(form: Form, text: str, workers: Sequence[str]) -> Reading:
    """Return the same with what was forgiven."""
    plan, forgave = _read(form, text, workers)
    if isinstance(plan, Malformed):
        return Reading(plan, forgave)
    return Reading(as_formed(form, plan), forgave)


def _read(
    form: Form, text: str, workers: Sequence[str]
) -> tuple[Workflow | Malformed, tuple[str, ...]]:
    if form.lenient:
        return parse_leniently(text, workers, form.max_steps, form.reply)
    strict = parse_json if form.reply == "json" else parse
    return strict(text, workers, form.max_steps), ()


def as_formed(form: Form, plan: Workflow) -> Workflow | Malformed:
    """Return a plan as its form allows it to run: subtasks, access and a single worker forced.

    With `access="off"` no step reads another, whatever the plan says; `"binary"` refuses a step
    that names single ones, since all or nothing would be a guess.
    """
    if form.access == "binary":
        named = [at for at, step in enumerate(plan.steps, 1) if step.reads not in ("all", ())]
        if named:
            return Malformed(f'step {named[0]}: access must be [] or ["all"]')
    return Workflow(tuple(_formed(form, step) for step in plan.steps))


def _formed(form: Form, step: Step) -> Step:
    if form.access == "off":
        step = replace(step, reads=())
    if not form.subtasks:
        step = replace(step, subtask=SOLVE if step.reads else "")
    return replace(step, worker=form.worker) if form.worker else step
