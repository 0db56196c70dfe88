"""How a trainer names a question in its label column, and what in its text the policy said.

Standard library only, for adapters that run in a trainer's own environment use it too.
"""

import re

from harness.errors import UserError
from harness.rewards.items import RewardItem


class BadBody(UserError):
    """What a trainer sent cannot be read as what it should be: one sentence."""


def item_of(label: str, completion: str) -> RewardItem:
    """Return the item that a label names; ids may hold slashes, suite names hold none.

    >>> item_of("humaneval/HumanEval/0", "...").question
    'HumanEval/0'
    """
    suite, slash, question = label.partition("/")
    if not slash or not suite or not question:
        raise BadBody(f"A label is SUITE/QUESTION, as in aime25/aime25-I-1, not {label!r:.80}.")
    return RewardItem(suite, question, completion)


_ENDINGS = re.compile(
    r"(?:\s*(?:<\|[^|<>\s]{1,40}\|>|<\uff5c[^\uff5c<>]{1,40}\uff5c>|</s>|<eos>|<pad>|<end_of_turn>))+"
    r"\s*\Z"
)
"""Special tokens at the very end: OpenRLHF decodes with them, and no one meant to say them."""

_TAIL = 200
"""So many last characters are looked at: of a prompt whose beginning was cut off, of a reply."""


def completion_of(query: str, prompt: str) -> str:
    """Return what the policy said: the query without its prompt and without ending tokens.

    OpenRLHF cuts a prompt that is too long at its left. BadBody where the prompt is not there: a
    prompt that is graded along could hold the answer's form.

    >>> completion_of("<s>Q: 2+2?A: 4</s>", "<s>Q: 2+2?A:")
    ' 4'
    """
    if not query.startswith(prompt):
        tail = prompt[-_TAIL:]
        at = query.find(tail) + len(tail)
        if not tail or at < len(tail) or not prompt.endswith(query[:at]):
            raise BadBody(
                "A query does not begin with its prompt, so nobody can tell what the policy said: "
                "send prompts as the tokenizer decodes them."
            )
        prompt = query[:at]
    said = query[len(prompt) :]
    return said[:-_TAIL] + _ENDINGS.sub("", said[-_TAIL:])
