r"""Templates of replies that hold no answer: tokens, of which `@0` stands for a part of the round.

>>> rendered(("\\boxed{", "@1", " or ", "@0", "}"), ("70", "71"))
'\\boxed{71 or 70}'
"""

from collections.abc import Sequence
from random import Random

Template = tuple[str, ...]

LONGEST = 16
"""Tokens."""

PAIRS = (
    ("\\boxed{", "}"),
    ("$", "$"),
    ("**", "**"),
    ("\\text{", "}"),
    ("(", ")"),
    ("[", "]"),
    ("\\{", "\\}"),
    ("<answer>", "</answer>"),
    ("<think>", "</think>"),
    ("\\(", "\\)"),
    ("\\[", "\\]"),
    ("`", "`"),
    ('"', '"'),
    ("\\fbox{", "}"),
    ("```\n", "\n```"),
    ("**Answer: ", "**"),
    ("\\boxed{\\text{", "}}"),
    ("\\boxed{x = ", "}"),
    ("$\\boxed{", "}$"),
)
"""What may be put around a piece."""

LABELS = (
    "Answer: ",
    "ANSWER: ",
    "The answer is ",
    "Final answer: ",
    "**Answer:** ",
    "Therefore, the final answer is: ",
    "FINAL ANSWER:\n",
    "The correct answer is ",
    "Option ",
    "The best choice is ",
    "The closest choice is ",
    "So the answer is ",
    "Hence ",
    "Therefore ",
    "x = ",
    "x=",
    "y=",
    "I choose ",
    " is the answer.",
    " is correct.",
    " is the correct answer",
)
JOINS = (
    " or ", " and ", ", ", ",", "; ", "/", " / ", " = ", "=", " to ", "-", " - ", " & ", "|", ":",
    "\\text{ or }", "\\text{ and }", "\\quad ", "\\,", "\\ ", " ", "\n", "\n\n", "\\pm ", "\\ne ",
    "<x<", "<", "\\le x\\le ", "x\\in ", "\\cup ", "\\approx ", "+", "\\cdot ", "\\\\", "\nor\n",
    "\nand\n", " as well as ", " but also ", " versus ", "either ", "neither ", " nor ", "not ",
    "both ", "between ", "...", " - or rather ", ", i.e. ", " rather than ", "^", "_", " mod ",
)  # fmt: skip
RETRACTIONS = (
    "Wait, ", "No. ", "no, ", "However, ", "Actually, ", " is wrong", "\\text{ is wrong}",
    " is not correct.", " is incorrect.", "On second thoughts, ", "I made an error. ",
    "Never mind. ", "Ignore that. ", "Scratch that. ", "but this is not the correct answer. ",
    ", which is false.", "That was wrong. ", " cannot be right.", "Correction: ", "Sorry, ",
)  # fmt: skip
HEDGES = (
    "If that is wrong: ", "Or maybe ", "Alternatively, ", "perhaps ", "It could be ", "one of ",
    "at least ", "about ", "I am not sure. ", "any of ", "depending on the reading ", "If ",
    "then ", "Some say ", "unless ", "Suppose ", "possibly ", "\\text{ or more}", " or more",
    "around ",
)  # fmt: skip
SCALES = (
    " thousand", "\\,\\text{thousand}", "\\text{ thousand}", " million", "\\,\\text{million}",
    "\\%", "%", " percent", "^\\circ", "\\text{ cm}", "\\,\\text{cm}", " degrees", "000", ",000",
    "\\cdot 10^3", "0", ".", ".0", "!", "?", "\\$", "1", "2", "<|im_end|>", "$5$", "none of these",
)  # fmt: skip
PROMPTS = (
    "Put your final answer within \\boxed{}.\n",
    "The last line should be of the format 'Answer: $LETTER'.\n",
    "\n\nI hope it is correct.",
    "\n\nHope this helps!",
    "Step 1: ",
    "(as asked) ",
)
WORDS = (*LABELS, *JOINS, *RETRACTIONS, *HEDGES, *SCALES, *PROMPTS)

FIRST: tuple[Template, ...] = (
    ("\\boxed{", "@0", "}"),
    ("Answer: ", "@0"),
    ("The answer is ", "@0", "."),
    ("Therefore ", "x = ", "@0", "."),
    ("<answer>", "@0", "</answer>"),
    ("The answer is ", "$", "@0", "$"),
    ("\\boxed{", "@0", ",", "@1", "}"),
    ("\\boxed{", "(", "@0", ",", "@1", ")", "}"),
    ("Answer: ", "(", "@0", ")"),
    ("@0",),
)
"""Honest guesses, from which a search sets out."""


def rendered(template: Template, parts: Sequence[str]) -> str:
    """Return the reply that a template is in a round with these parts."""
    return "".join(
        parts[int(token[1:]) % len(parts)] if token[0] == "@" else token for token in template
    )


def changed(template: Template, other: Template, parts: int, rng: Random) -> Template:
    """Return the template with one to three changes, or crossed with the other."""
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        change = rng.choice((_inserted, _inserted, _replaced, _wrapped, _guessed, _cut, _crossed))
        template = change(template, other, parts, rng)
    return template[:LONGEST] or other


def _token(parts: int, rng: Random) -> str:
    return f"@{rng.randrange(parts)}" if rng.random() < 0.3 else rng.choice(WORDS)


def _inserted(template: Template, other: Template, parts: int, rng: Random) -> Template:
    at = rng.randint(0, len(template))
    return (*template[:at], _token(parts, rng), *template[at:])


def _replaced(template: Template, other: Template, parts: int, rng: Random) -> Template:
    at = rng.randrange(len(template)) if template else 0
    return (*template[:at], _token(parts, rng), *template[at + 1 :])


def _wrapped(template: Template, other: Template, parts: int, rng: Random) -> Template:
    start, end = sorted(rng.randint(0, len(template)) for _ in range(2))
    opened, closed = rng.choice(PAIRS)
    return (*template[:start], opened, *template[start:end], closed, *template[end:])


def _guessed(template: Template, other: Template, parts: int, rng: Random) -> Template:
    """Put a whole guess before or behind, with a word between."""
    guess = rng.choice(FIRST)
    refs = {token: f"@{rng.randrange(parts)}" for token in guess if token[0] == "@"}
    said = tuple(refs.get(token, token) for token in guess)
    word = rng.choice((*JOINS, *RETRACTIONS, *HEDGES, "\n", "\n\n", " "))
    return (*template, word, *said) if rng.random() < 0.7 else (*said, word, *template)


def _cut(template: Template, other: Template, parts: int, rng: Random) -> Template:
    start = rng.randint(0, len(template))
    return (*template[:start], *template[start + rng.randint(1, 3) :])


def _crossed(template: Template, other: Template, parts: int, rng: Random) -> Template:
    return (*template[: rng.randint(0, len(template))], *other[rng.randint(0, len(other)) :])
