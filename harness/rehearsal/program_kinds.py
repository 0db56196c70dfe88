"""What one operation of a program is: how people ask for it, what it takes and gives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Variants = tuple[dict[str, Any], ...]
Value = Any
"""What flows through a chain: its kind is known only when the chain is."""
PLAIN: Variants = ({},)


@dataclass(frozen=True, slots=True)
class Family:
    """One operation that a code writer has learnt."""

    name: str
    level: int
    """1: every beginner; 2: common exercises; 3 and 4: for specialists."""
    asks: str
    """Pattern of the phrases that ask for it; a longer match explains more of the statement."""
    takes: tuple[str, ...]
    """Kinds of arguments: int, ints, text, words, matrix, pairs."""
    gives: str
    """Kind of result: int, ints, text, words, bool, matrix, pairs."""
    does: Callable[..., Any]
    bind: str = ""
    """Pattern whose groups are the ints after the first argument, numerals or names of inputs."""
    variants: Variants = PLAIN
    """Readings of what the statement leaves open, likeliest first."""
    stage: int = 5
    """Place in a chain when the wording does not tell: 1 filter, 2 map, 3 order, 4 take, 5 fold."""
