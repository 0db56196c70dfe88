"""What a worker has understood of a calculation: a tree of named operations, and its infix parser.

Never `eval`: a small recursive-descent parser over atoms `#0`, `#1`, ... (numbers and parts that
were understood earlier) and the operators + - * / ^ ! and parentheses.
"""

import re
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Node:
    """One operation on the results of others; a leaf (`number`) holds its value."""

    operation: str
    parts: tuple["Node", ...] = ()
    value: Fraction = Fraction(0)
    names: tuple[str, ...] = ()
    """Of a search: what is wanted, how divisors join, then one name per condition."""

    def size(self) -> int:
        """Return the number of operations in the tree: how much of the question it explains."""
        return (self.operation != "number") + sum(part.size() for part in self.parts)

    def show(self) -> str:
        """Return the calculation as people write it."""
        if self.operation == "number":
            return str(self.value)
        shown = [part.show() for part in self.parts]
        if self.operation in _INFIX.values():
            sign = next(sign for sign, name in _INFIX.items() if name == self.operation)
            return "(" + f" {sign} ".join(shown) + ")"
        return f"{self.operation}({', '.join(shown)})"


def number(value: int | Fraction | str) -> Node:
    """Return a leaf."""
    return Node("number", value=Fraction(value))


_INFIX = {"+": "sum", "-": "difference", "*": "product", "/": "quotient", "^": "power"}
_TOKEN = re.compile(r"#\d+|[-+*/^!()]")
MAX_DEPTH = 40


class NotInfix(ValueError):
    """The text is not one complete infix expression."""


def parse(text: str, atoms: list[Node]) -> Node:
    """Parse one infix expression over atoms; raise `NotInfix` when it is anything else."""
    tokens = _TOKEN.findall(text)
    if len("".join(tokens)) != len(re.sub(r"\s", "", text)):
        raise NotInfix(text)
    parser = _Parser(tokens, atoms)
    tree = parser.terms(0)
    if parser.at != len(tokens):
        raise NotInfix(text)
    return tree


@dataclass(slots=True)
class _Parser:
    tokens: list[str]
    atoms: list[Node]
    at: int = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        if not token:
            raise NotInfix("the expression ends early")
        self.at += 1
        return token

    def terms(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise NotInfix("too deeply nested")
        tree = self.factors(depth)
        while self.peek() in ("+", "-"):
            tree = Node(_INFIX[self.take()], (tree, self.factors(depth)))
        return tree

    def factors(self, depth: int) -> Node:
        tree = self.signed(depth)
        while self.peek() in ("*", "/") or self.peek() == "(":
            sign = "*" if self.peek() == "(" else self.take()
            tree = Node(_INFIX[sign], (tree, self.signed(depth)))
        return tree

    def signed(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise NotInfix("too deeply nested")
        if self.peek() == "-":
            self.take()
            return Node("difference", (number(0), self.signed(depth + 1)))
        base = self.primary(depth)
        if self.peek() == "^":
            self.take()
            return Node("power", (base, self.signed(depth + 1)))
        return base

    def primary(self, depth: int) -> Node:
        token = self.take()
        if token == "(":
            tree = self.terms(depth + 1)
            if self.take() != ")":
                raise NotInfix("a parenthesis is not closed")
        elif token.startswith("#"):
            tree = self.atoms[int(token[1:])]
        else:
            raise NotInfix(f"{token} where a number should be")
        while self.peek() == "!":
            self.take()
            tree = Node("factorial", (tree,))
        return tree
