r"""The plans of a form as a regular expression, for decoding that can write nothing else.

It is a part of what the form's reader takes (parse.py, json_form.py), in the one spelling that
prompts show (`written`): every text that it matches is a plan of these workers, which a test draws
at random. It travels as vLLM's `structured_outputs` parameter, which the embedded provider takes
too, so that a log shows what a conductor was held to. Not here: decoding (embedded/automaton.py).
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from json import dumps

from conductor.form import Form
from conductor.parse import NAMES
from conductor.prompt import COMPACT_THOUGHT

STRING = r'"(?:[^"\\\x00-\x1f]|\\["\\n])*"'
"""Without control characters; the escapes are those that every reader understands."""
OPENING = r'[^\x00-\x20,"\[\]0-9][^\x00-\x20,"\[\]0-9]*'
"""What a compact thought calls a worker by: the first word of a card, which ends in no digit."""
_SPECIAL = "\\[](){}|*+?.^$"


@lru_cache(maxsize=256)
def plan_regex(form: Form, workers: int, *, later: bool = False) -> str:
    """Return the expression of every plan that so many workers can run, reasoning included.

    A later round may also keep the answer that there is: three empty lists.
    """
    counts = range(0 if later else 1, form.max_steps + 1)
    return _thought(form, workers) + _either([_lists(form, workers, steps) for steps in counts])


def _thought(form: Form, workers: int) -> str:
    """Return what may stand before the lists: nothing in it can be taken for one of them."""
    if form.layout == "paper":
        return r"(?:[^\[{]*\n)?"
    if form.reply == "json":
        return ""
    called = f"{OPENING}{_number(workers)}"
    several = f"{called}(?:, {called}){{0,{form.max_steps - 1}}}"
    return "(?:" + _exactly(COMPACT_THOUGHT).replace(_exactly("{}"), several) + ")?" + r"\n"


def _lists(form: Form, workers: int, steps: int) -> str:
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


def _reads(form: Form, step: int) -> list[list[object]]:
    """Return what a step may be said to read."""
    if form.access == "off":
        return [[]]
    sizes = range(1, step + 1) if form.access == "fine" else ()
    return [[], ["all"], *([*one] for size in sizes for one in combinations(range(step), size))]


def _either(parts: Sequence[str]) -> str:
    return f"(?:{'|'.join(parts)})"


def _exactly(text: str) -> str:
    return "".join(f"\\{sign}" if sign in _SPECIAL else sign for sign in text)
