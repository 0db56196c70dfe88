"""Values as a careless writer spells them: other quotes, round brackets, words without quotes.

Reads one value at a place in a text, for lenient.py: texts, small whole numbers, `all`, `None`, and
lists of those. Bounded in length and depth; it decodes by hand and evaluates nothing.
"""

import re
from dataclasses import dataclass, field

from conductor.parse import MAX_DEPTH, MAX_DIGITS, MAX_LIST, unescaped

ROUND = "a list stood in round brackets"
QUOTES = "a text stood in typographic quotes"
BREAK = "a text went over several lines"
BARE_ALL = "all stood without quotes"
BARE_MODEL = "the number of a model was written with the word Model"

_TOKEN = re.compile(
    r"(?P<space>[\s]+|\#[^\n]*)"
    r"|(?P<comma>,)"
    r"|(?P<open>[\[(])"
    r"|(?P<close>[\])])"
    r'|"""(?P<triple>(?:\\.|[^\\])*?)"""'
    r"|'''(?P<single3>(?:\\.|[^\\])*?)'''"
    r'|"(?P<double>(?:\\.|[^"\\])*)"'
    r"|'(?P<single>(?:\\.|[^'\\])*)'"
    r"|“(?P<curly>[^“”]*)”"
    r"|\u2018(?P<curly1>[^\u2018\u2019]*)\u2019"
    r"|(?P<model>[Mm]odel[ \t#]{1,3}\d{1,6}(?![\w.]))"
    rf"|(?P<number>-?\d{{1,{MAX_DIGITS}}}(?![\w.]))"
    r"|(?P<word>[A-Za-z]{1,9}(?![\w.\"'(\[]))",
    re.S | re.ASCII,
)
_OPENED_BY = {"]": "[", ")": "("}
_WORDS = {"all": "all", "none": None, "null": None}


@dataclass(frozen=True, slots=True)
class Value:
    """One value, where it ends, and what was forgiven."""

    content: object
    """str, int, None, or a list of these and of lists."""
    end: int
    forgave: tuple[str, ...] = ()


@dataclass(slots=True)
class _Open:
    """A list that is being read."""

    bracket: str
    entries: list[object] = field(default_factory=list[object])
    filled: bool = False
    """Whether an entry stands since the last comma: two without one between are no list."""

    def take(self, content: object) -> bool:
        if self.filled:
            return False
        self.entries.append(content)
        self.filled = True
        return True


def loose_value(text: str, start: int) -> Value | None:
    """Return the value that begins at `start`; None where there is none, or none that ends."""
    at, stop = start, min(len(text), start + MAX_LIST)
    stack: list[_Open] = []
    forgave: dict[str, None] = {}
    while at < stop:
        token = _TOKEN.match(text, at, stop)
        if token is None:
            return None
        at = token.end()
        kind, said = token.lastgroup or "", token.group(token.lastgroup or 0)
        if kind == "space" and (stack or said.strip() == ""):
            continue
        done = _one(stack, kind, said, forgave)
        if done is _FAILED:
            return None
        if not stack and done is not _MORE:
            return Value(done, at, tuple(forgave))
    return None


_FAILED, _MORE = object(), object()


def _one(stack: list[_Open], kind: str, said: str, forgave: dict[str, None]) -> object:
    """Take one token: the finished value when it is the last, `_MORE`, or `_FAILED`."""
    if kind == "open":
        forgave.update({ROUND: None} if said == "(" else {})
        stack.append(_Open(said))
        return _FAILED if len(stack) > MAX_DEPTH else _MORE
    if kind == "comma":
        if not stack or not stack[-1].filled:
            return _FAILED
        stack[-1].filled = False
        return _MORE
    if kind == "close":
        if not stack or stack[-1].bracket != _OPENED_BY[said]:
            return _FAILED
        content: object = stack.pop().entries
    else:
        content = _scalar(kind, said, forgave)
    if content is _FAILED or not stack:
        return content
    return _MORE if stack[-1].take(content) else _FAILED


def _scalar(kind: str, said: str, forgave: dict[str, None]) -> object:
    if kind == "number":
        return int(said)
    if kind == "model":
        forgave[BARE_MODEL] = None
        return int(re.sub(r"\D", "", said))
    if kind == "word":
        if said.lower() == "all":
            forgave[BARE_ALL] = None
        return _WORDS.get(said.lower(), _FAILED)
    if kind == "space":
        return _FAILED
    if kind.startswith("curly"):
        forgave[QUOTES] = None
    if kind in ("double", "single") and "\n" in said:
        forgave[BREAK] = None
    return unescaped(said)
