# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""What letters stand for in a question ("let a be ...", "where n is ...", "call this number k").

Each meaning is understood on its own and put wherever the letter stands, products without a sign
included ("8a", "ab"). The same reading names what a reply could not finish (`parts_to_state`).
"""

import re
from collections.abc import Callable

from harness.rehearsal.phrases import Rewriting, fold_infix
from harness.rehearsal.trees import Node

Reader = Callable[[Rewriting], list[Node]]
_IS = r"(?:(?<=\s)(?:be|is|denotes?|stands? for|represents?|equals?)\b|=|:=)"
_STOP = (
    r"(?=\s*(?:[.;?!:](?:\s|$)|\n|$|,?\s*(?:and\s+)?(?:let\s+)?\b[a-z]\s+(?:be|is|denotes?|stands? for)\b|,?\s*(?:and\s+)?(?:let\s+)?\b[a-z]\s*(?:=|:=)"
    r"|,?\s+(?:and\s+)?(?:then\s+)?(?:what|find|compute|determine|where|how many|evaluate|calculate|give)\b|\)\s*[.,;?]))"
)
_NOT = r"(?!\s*(?:divided|divisible|even\b|odd\b|prime\b|an?\b|greater|less|not\b|congruent|at least|at most|multiplied|positive|relatively|coprime|raised|in\b|to\b|such|what|how))"
_PAIR = re.compile(
    rf"\b(?:let|with|where|if|suppose(?: that)?|and)\s+([a-z])(?:\s*,\s*([a-z]))?\s*,?\s*and\s+([a-z])\s+(?:{_IS}|are)\s+(.{{2,240}}?){_STOP}"
)
_SINGLE = re.compile(
    rf"(?:\b(?:let|suppose(?: that)?|put|set|write|take|define|if|where|with|say|assume(?: that)?|given(?: that)?|and(?: let)?|for|when)|[,;:.(]|^)\s*([a-z])\s*{_IS}(?:\s*equal to)?{_NOT}\s*(.{{2,240}}?){_STOP}"
)
_CALLED = re.compile(
    r"(?P<what>[^.?!;\n]{3,240}?)[.;,]?\s*\(?\b(?:call|denote|name|label|write)\s+(?:this|that|it|the (?:result|answer|outcome|number|product|sum))(?:\s+(?:number|value|result|product|sum|count|remainder|power|total))?(?:\s+obtained)?\s+(?:by\s+|as\s+)?(?P<name>[a-z])\b\)?(?=\s*(?:[.,;)]|$|and\b))"
)
_FOR = re.compile(r"\bwrite ([a-z]) for (#\d+)(?: and (?:write )?([a-z]) for (#\d+))?")
_DENOTE = re.compile(
    r"\b(?:denote|call|name|label)\s+(?:by\s+(?P<early>[a-z])\s+)?(?P<what>[^.?!;\n]{3,200}?)(?:\s*,?\s+(?:by\s+|as\s+)?(?P<name>[a-z]))?\s*(?=[.;\n]|$|,?\s+and\b)"
)
_WORD_AFTER = r"(?!\s+(?!(?:and|is|be|to|or|by|divided|when|raised|plus|minus|times|mod|modulo|multiplied|but|both|does|has|then|in base|inclusive|through|squared|cubed|leaves?|exceeds)\b)[a-z#])"


def bind(state: Rewriting, reader: Reader) -> Rewriting:
    """Put what letters stand for in their place, as far as their meanings are understood."""
    for _ in range(8):
        fold_infix(state)
        if not any(way(state, reader) for way in (_for, _pair, _called, _single, _denoted)):
            return state
    return state


def _pair(state: Rewriting, reader: Reader) -> bool:
    found = _PAIR.search(state.text)
    if found is None:
        return False
    names = [name for name in found.groups()[:3] if name]
    nodes = [state.atoms[int(mark)] for mark in re.findall(r"#(\d+)", found[4])]
    if len(nodes) != len(names):
        nodes = reader(Rewriting(found[4], state.atoms))
    if len(nodes) != len(names):
        return False
    _drop(state, found)
    for name, node in zip(names, nodes, strict=True):
        _put(state, name, node)
    return True


def _for(state: Rewriting, reader: Reader) -> bool:
    found = _FOR.search(state.text)
    if found is None:
        return False
    _drop(state, found)
    for name, mark in ((found[1], found[2]), (found[3], found[4])):
        if name:
            _put(state, name, state.atoms[int(mark[1:])])
    return True


def _single(state: Rewriting, reader: Reader) -> bool:
    for found in _SINGLE.finditer(state.text):
        node = _meaning(found[2], state, reader)
        if node is not None:
            _drop(state, found)
            _put(state, found[1], node)
            return True
    return False


def _called(state: Rewriting, reader: Reader) -> bool:
    found = _CALLED.search(state.text)
    node = _meaning(found["what"], state, reader) if found else None
    if found is None or node is None:
        return False
    _drop(state, found)
    _put(state, found["name"], node)
    return True


def _denoted(state: Rewriting, reader: Reader) -> bool:
    found = _DENOTE.search(state.text)
    name = (found["early"] or found["name"]) if found else None
    node = _meaning(found["what"], state, reader) if found and name else None
    if found is None or node is None or name is None:
        return False
    _drop(state, found)
    _put(state, name, node)
    return True


def _meaning(words: str, state: Rewriting, reader: Reader) -> Node | None:
    if not re.search(r"#\d+", words):
        return None
    nodes = reader(Rewriting(words.strip(), state.atoms))
    return nodes[-1] if nodes else None


def _drop(state: Rewriting, found: re.Match[str]) -> None:
    start, end = found.span()
    state.text = f"{state.text[:start]} . {state.text[end:]}"


def _put(state: Rewriting, name: str, node: Node) -> None:
    """Put an atom wherever a letter stands; the letter `a` only where it is not the article."""
    mark = state.atom(node)
    text = re.sub(rf"(#\d+)\s?{name}(?![a-z'])", rf"\1 * {mark}", state.text)
    for one, other in ((name, r"([bcknqxyz])"), (r"([akmnpxy])", name)):
        pair = rf"(?<![\w#'])(?!by|my|an|as|at|is|in|no|pi){one}{other}(?![\w'])"
        text = re.sub(pattern=pair, repl=lambda m: _factors(m, name, mark), string=text)
    text = re.sub(rf"(?<![\w#']){name}\s?-?\s?th\b", f" {mark}th", text)
    after = _WORD_AFTER if name in "ai" else ""
    state.text = re.sub(rf"(?<![\w#'\\]){name}(?![\w'’]){after}", f" {mark} ", text)


def _factors(found: re.Match[str], name: str, mark: str) -> str:
    """Write two letters side by side as a product."""
    return " * ".join(mark if letter == name else letter for letter in found[0])
