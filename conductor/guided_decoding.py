"""Guided decoding: a regular expression of all valid plans, and the tokens that it allows next.

The method is that of Willard and Louf (arXiv 2307.09702). Expressions match whole texts and use
only the syntax that structured-output engines share: characters, escapes, `[...]`, `(?:...)`, `|`,
`*`, `?`, `{m,n}`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial
from itertools import combinations
from json import dumps

import numpy as np
from numpy.typing import NDArray

from podium.conductor.parse import NAMES, PlanFormat
from podium.harness.errors import UserError

COMPACT_THOUGHT = " Ask: {}. Ask:"  # a small conductor's reasoning, which names workers by cards
STRING = r'"(?:[^"\\\x00-\x1f]|\\["\\n])*"'  # a JSON string without control characters
OPENING = r'[^\x00-\x20,"\[\]0-9][^\x00-\x20,"\[\]0-9]*'
"""Pattern of a worker's name in `COMPACT_THOUGHT`, a small conductor's reasoning: the first word of
the worker's card, without digits."""
_SPECIAL = "\\[](){}|*+?.^$"
NEVER = 1 << 30  # the need (see `Needs`) of a token that is not allowed
MOST_NODES = 50_000  # maximum nodes of an automaton: limits the cost of large `{m,n}`
MOST_GUIDES = 64  # maximum expressions cached per tokenizer; each pool size has its own
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_UNREAD = "]{}*+?.^$()"  # characters that are literal only after a backslash
Part = Callable[[int], int]  # adds a subexpression's nodes after a start node; returns the end node
State = frozenset[int]  # active nodes after a text: those that read a character, and the end node
Needs = NDArray[np.int32]
"""Array (vocabulary,): for each token, at most how many tokens must follow it to complete a match,
end token included. As each character is also a token, this is the number of missing characters, and
1 for the end token. `NEVER`: the token is forbidden."""


@lru_cache(maxsize=256)
def plan_regex(form: PlanFormat, workers: int, *, later: bool = False) -> str:
    """Return a regular expression of all valid plans; in a later round, also of an empty plan."""
    counts = range(0 if later else 1, form.max_steps + 1)
    return _thought(form, workers) + _either([_lists(form, workers, steps) for steps in counts])


def _thought(form: PlanFormat, workers: int) -> str:
    """Return the expression of the reasoning before a plan's lists; it never matches a list."""
    if form.layout == "paper":
        return r"(?:[^\[{]*\n)?"
    if form.reply == "json":
        return ""
    mention = f"{OPENING}{_number(workers)}"
    several = f"{mention}(?:, {mention}){{0,{form.max_steps - 1}}}"
    return "(?:" + _exactly(COMPACT_THOUGHT).replace(_exactly("{}"), several) + ")?" + r"\n"


def _lists(form: PlanFormat, workers: int, steps: int) -> str:
    def reads(step: int) -> list[list[object]]:
        sizes = range(1, step + 1) if form.access == "fine" else ()
        some: list[list[object]] = [[*c] for size in sizes for c in combinations(range(step), size)]
        return [[]] if form.access == "off" else [[], ["all"], *some]

    entries = (
        [_number(workers)] * steps,
        [STRING] * steps,
        [_either([_exactly(dumps(access)) for access in reads(step)]) for step in range(steps)],
    )
    lists = [rf"\[{', '.join(row)}\]" for row in entries]
    if form.reply == "json":
        pairs = (f'"{name}": {entry}' for name, entry in zip(NAMES, lists, strict=True))
        return rf"\{{{', '.join(pairs)}\}}"
    return r"\n".join(f"{name} = {entry}" for name, entry in zip(NAMES, lists, strict=True))


def _number(workers: int) -> str:
    return _either([str(number) for number in range(workers)])


def _either(options: Sequence[str]) -> str:
    return f"(?:{'|'.join(options)})"


def _exactly(text: str) -> str:
    return "".join(f"\\{sign}" if sign in _SPECIAL else sign for sign in text)


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """A regular expression's character class: characters in `held`, or all others if `all_but`."""

    held: frozenset[str]
    all_but: bool = False

    def __contains__(self, sign: str) -> bool:
        return (sign in self.held) is not self.all_but


class _Reader:
    def __init__(self, text: str, nodes: "_Nodes") -> None:
        self.text, self.nodes, self.at = text, nodes, 0

    def whole(self) -> Part:
        try:
            fragment = self.either()
        except (IndexError, ValueError, RecursionError):
            raise self.wrong() from None
        if self.at < len(self.text):
            raise self.wrong()
        return fragment

    def wrong(self) -> UserError:
        return UserError(
            "Guided decoding does not support this regular expression, at character "
            f"{self.at + 1}: {self.text[self.at : self.at + 20]!r}. Use only characters, [...], "
            "(?:...), |, *, ? and {m,n}."
        )

    def either(self) -> Part:
        fragments = [self.row()]
        while self.peek() == "|":
            self.at += 1
            fragments.append(self.row())
        nodes = self.nodes
        if len(fragments) == 1:
            return fragments[0]
        return lambda start: nodes.joined([fragment(nodes.fresh(start)) for fragment in fragments])

    def row(self) -> Part:
        fragments: list[Part] = []
        while self.peek() not in ("", "|", ")"):
            fragments.append(self.repeated(self.one()))
        return partial(self.nodes.lay_row, fragments)

    def repeated(self, fragment: Part) -> Part:
        sign = self.peek()
        if sign not in ("*", "?", "{"):
            return fragment
        if sign != "{":
            self.at += 1
            return partial(self.nodes.lay_often, fragment, 0, None if sign == "*" else 1)
        end = self.text.index("}", self.at)
        least, comma, upper = self.text[self.at + 1 : end].partition(",")
        bounds = int(least), int(upper if comma else least)
        self.at = end + 1
        return partial(self.nodes.lay_often, fragment, *bounds)

    def one(self) -> Part:
        if self.text.startswith("(?:", self.at):
            self.at += 3
            fragment = self.either()
            if self.peek() != ")":
                raise self.wrong()
            self.at += 1
            return fragment
        if self.peek() == "[":
            return partial(self.nodes.lay_sign, self.several())
        if self.peek() in _UNREAD:
            raise self.wrong()
        return partial(self.nodes.lay_sign, CharacterSet(frozenset(self.sign())))

    def several(self) -> CharacterSet:
        self.at += 1
        all_but = self.peek() == "^"
        self.at += all_but
        signs = set[str]()
        while self.peek() != "]":
            low = high = self.sign()
            if self.peek() == "-":
                self.at += 1
                high = self.sign()
            signs |= {chr(code) for code in range(ord(low), ord(high) + 1)}
        self.at += 1
        return CharacterSet(frozenset(signs), all_but)

    def sign(self) -> str:
        sign = self.text[self.at]
        self.at += 1
        if sign != "\\":
            return sign
        sign = self.text[self.at]
        self.at += 1
        if sign == "x":
            self.at += 2
            return chr(int(self.text[self.at - 2 : self.at], 16))
        return _ESCAPED.get(sign, sign)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]


class _Nodes:
    """Nodes of a nondeterministic automaton with empty transitions (Thompson's construction)."""

    def __init__(self) -> None:
        self.empty: list[list[int]] = []
        self.steps: list[tuple[CharacterSet, int] | None] = []

    def add(self) -> int:
        if len(self.empty) >= MOST_NODES:
            raise UserError(
                "This regular expression is too large for guided decoding. Use a shorter one."
            )
        self.empty.append([])
        self.steps.append(None)
        return len(self.empty) - 1

    def lay_sign(self, signs: CharacterSet, start: int) -> int:
        end = self.add()
        self.steps[start] = (signs, end)
        return end

    def lay_row(self, fragments: Sequence[Part], start: int) -> int:
        for fragment in fragments:
            start = self.fresh(fragment(start))
        return start

    def lay_often(self, fragment: Part, least: int, upper: int | None, start: int) -> int:
        for _ in range(least):
            start = fragment(self.fresh(start))
        if upper is None:
            loop = self.fresh(start)
            self.empty[fragment(self.fresh(loop))].append(loop)
            return self.fresh(loop)
        ends = [start]
        for _ in range(upper - least):
            ends.append(fragment(self.fresh(ends[-1])))
        return self.joined(ends)

    def fresh(self, start: int) -> int:
        """Return a new node, reached from `start` by an empty transition."""
        return self.joined([start])

    def joined(self, ends: Sequence[int]) -> int:
        node = self.add()
        for end in ends:
            self.empty[end].append(node)
        return node

    def distances(self, end: int) -> list[int]:
        """Return the least number of characters from each node to the node `end`."""
        incoming: list[list[tuple[int, int]]] = [[] for _ in self.empty]
        for node, following in enumerate(self.empty):
            for target in following:
                incoming[target].append((node, 0))
            step = self.steps[node]
            if step:
                incoming[step[1]].append((node, 1))
        distances = [NEVER] * len(self.empty)
        distances[end] = 0
        queue = deque([end])
        while queue:
            current = queue.popleft()
            for node, length in incoming[current]:
                if distances[current] + length < distances[node]:
                    distances[node] = distances[current] + length
                    queue.append(node) if length else queue.appendleft(node)
        return distances


class Automaton:
    """The automaton of a regular expression; a `State` is the set of its active nodes."""

    def __init__(self, expression: str) -> None:
        """Parse a regular expression; UserError if its syntax is not supported."""
        self._nodes = _Nodes()
        entry = self._nodes.add()
        self._end = self._nodes.fresh(_Reader(expression, self._nodes).whole()(entry))
        self._distances = self._nodes.distances(self._end)
        self._moved: dict[tuple[State, str], State] = {}
        self.start = self._reached([entry])

    def moved(self, state: State, sign: str) -> State:
        """Return the state after one more character; empty if no match begins with this text."""
        key = state, sign
        if key not in self._moved:
            steps = (self._nodes.steps[node] for node in state)
            self._moved[key] = self._reached([s[1] for s in steps if s and sign in s[0]])
        return self._moved[key]

    def matches(self, text: str) -> bool:
        """Return whether the expression matches the whole text."""
        state = self.start
        for sign in text:
            state = self.moved(state, sign)
        return self.complete(state)

    def complete(self, state: State) -> bool:
        """Return whether the text that led to a state is a complete match."""
        return self._end in state

    def left(self, state: State) -> int:
        """Return the least number of characters that complete a match; `NEVER` if none can."""
        return min((self._distances[node] for node in state), default=NEVER)

    def _reached(self, nodes: list[int]) -> State:
        reached, queue = set(nodes), nodes
        while queue:
            for node in self._nodes.empty[queue.pop()]:
                if node not in reached:
                    reached.add(node)
                    queue.append(node)
        relevant = (node for node in reached if self._nodes.steps[node] or node == self._end)
        return frozenset(relevant)


@dataclass(slots=True)
class _Branch:
    ends: list[int] = field(default_factory=list[int])
    further: dict[str, "_Branch"] = field(default_factory=dict[str, "_Branch"])


class Vocabulary:
    """The texts of a tokenizer's tokens, as a prefix tree that an automaton walks."""

    def __init__(self, texts: Sequence[str], ends: Sequence[int]) -> None:
        """Store each token's text; tokens without text, or with half a character, are forbidden."""
        self.texts, self.ends = texts, tuple(ends)

    def writes(self, token: int) -> bool:
        """Return whether a token's text is one or more whole characters; False for end tokens."""
        text = self.texts[token]
        return bool(text) and "\ufffd" not in text and token not in self.ends

    @cached_property
    def _root(self) -> _Branch:  # lazy: greedy decoding rarely needs it
        root = _Branch()
        for token in filter(self.writes, range(len(self.texts))):
            branch = root
            for sign in self.texts[token]:
                branch = branch.further.setdefault(sign, _Branch())
            branch.ends.append(token)
        return root

    def needs(self, automaton: Automaton, state: State) -> Needs:
        """Return how many tokens must follow each token in a state of the automaton, as `Needs`."""
        needs = np.full(len(self.texts), NEVER, np.int32)
        if automaton.complete(state):
            needs[list(self.ends)] = 0
        waiting = [(self._root, state)]
        while waiting:
            branch, position = waiting.pop()
            if branch.ends:
                needs[branch.ends] = automaton.left(position) + 1
            for sign, further in branch.further.items():
                moved = automaton.moved(position, sign)
                if moved:
                    waiting.append((further, moved))
        return needs


@dataclass(frozen=True, slots=True, eq=False)
class Guide:
    """Tells which tokens can come next in a text that must match a regular expression."""

    automaton: Automaton
    vocabulary: Vocabulary
    _needs: dict[State, Needs] = field(default_factory=dict[State, Needs])

    def needs(self, state: State) -> Needs:
        """Return how many tokens must follow each token in a state, as `Needs`, from a cache."""
        if state not in self._needs:
            self._needs[state] = self.vocabulary.needs(self.automaton, state)
        return self._needs[state]

    def need(self, state: State, token: int) -> int:
        """Return an upper bound of the tokens that must follow `token`; `NEVER` if not allowed."""
        if token in self.vocabulary.ends:
            return 0 if self.automaton.complete(state) else NEVER
        if not self.vocabulary.writes(token):
            return NEVER
        moved = self.after(state, token)
        return self.automaton.left(moved) + 1 if moved else NEVER

    def after(self, state: State, token: int) -> State:
        """Return the automaton's state after an allowed token."""
        for sign in self.vocabulary.texts[token]:
            state = self.automaton.moved(state, sign)
        return state


def guide_maker(texts: Callable[[], Sequence[str]], ends: Sequence[int]) -> Callable[[str], Guide]:
    """Return a cached function from a regular expression to its `Guide`, for one tokenizer."""
    vocabulary = cache(lambda: Vocabulary(texts(), ends))

    @lru_cache(MOST_GUIDES)
    def guide(expression: str) -> Guide:
        return Guide(Automaton(expression), vocabulary())

    return guide
