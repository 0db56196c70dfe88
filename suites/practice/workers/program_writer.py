# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Write programs for tasks in words: recognise operations, chain them, try chains on samples."""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import chain as linked
from itertools import islice, pairwise, product
from typing import Any

from podium.harness.python_syntax import parse_python
from podium.suites.practice.workers.program_arrays import ARRAYS, TABLES
from podium.suites.practice.workers.program_inputs import (
    Routine,
    Starter,
    read_samples,
    read_starter,
    readers,
    showers,
)
from podium.suites.practice.workers.program_numbers import LIGHT, LISTS, NUMBERS, Family, Value
from podium.suites.practice.workers.program_texts import JOINING, TEXTS, WORDS
from podium.suites.practice.workers.workers import Scratch, Worker

FAMILIES: tuple[Family[...], ...] = tuple(
    sorted((*LISTS, *TEXTS, *NUMBERS, *ARRAYS, *WORDS, *TABLES), key=lambda family: family.level)
)
"""The operations that a worker can learn, most common first; each has a pattern that is searched in
the task's plain lower-case statement."""


_NUMERALS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "doubl": 2, "tripl": 3, "third": 3, "fourth": 4,
}  # fmt: skip
_KINDS = {
    "ints": r"(?<!two )(?<!three )(?:integers|numbers)|array|list|values",
    "text": r"string|text|word|sentence|letters|line of",
    "words": r"words|strings",
    "matrix": r"matrix|grid|rows",
    "pairs": r"intervals|segments|pairs|ranges|meetings",
    "int": r"\binteger\b|\bn\b|number|\b[kxm]\b|\b(?:two|three) integers",
}
_ASKED = re.compile(
    r"\b[b-hj-mo-z]\b(?! (?:list|string|line|sentence|word))|\btarget|\bsecond (?:integer|number)"
    r"|\btwo (?:integers|numbers)|\banother|\blimit|\bthreshold|\bshift\b|\bdivisor\b"
    r"|\bgiven (?:value|number)"
)
"""Matches words of a task which show that a number is one of the program's inputs."""
_LONG = 5_000  # largest intermediate result for which a loop is followed on a sample
_FAULTS = (ArithmeticError, LookupError, ValueError, TypeError, AttributeError, StopIteration)


@dataclass(frozen=True, slots=True)
class _Step:
    """One operation of a program, with what the task's statement fixes."""

    family: Family[...]
    span: tuple[int, int]
    bound: tuple[int | None, ...] = ()
    """The int arguments after the first one: a constant of the statement, or None for an input."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def primary(self) -> int:
        # arguments that come from the input when the step is first
        return len(self.family.takes) - len(self.bound)


@dataclass(frozen=True, slots=True)
class _Chain:
    steps: tuple[_Step, ...]
    score: float
    places: tuple[int, ...] = ()  # for a method: which argument is which input
    reads: Routine | None = None
    shows: Routine | None = None

    @property
    def takes(self) -> tuple[str, ...]:
        first = self.steps[0]
        free = sum(value is None for step in self.steps for value in step.bound)
        return (*first.family.takes[: first.primary], *("int",) * free)

    @property
    def gives(self) -> str:
        return self.steps[-1].family.gives


def _find_steps(plain: str, families: Sequence[Family[...]], most: int = 12) -> list[_Step]:
    found: list[_Step] = []
    for family in families:
        spans = [match.span() for match in re.finditer(family.asks, plain) if match[0]]
        if spans:
            span = max(spans, key=lambda s: (min(s[1] - s[0], 45), -s[0]))
            found.append(_Step(family, span, _bound(family, plain)))
    return sorted(found, key=lambda step: step.span[0] - step.span[1])[:most]


def _bound(family: Family[...], plain: str) -> tuple[int | None, ...]:
    if not family.bind:
        return ()
    wanted = len(family.takes) - 1
    found = re.search(family.bind, plain)
    words = [word for word in (found.groups() if found else ()) if word]
    return tuple(
        int(word) if re.fullmatch(r"-?\d{1,15}", word) else _NUMERALS.get(word)
        for word in [*words, *[""] * wanted][:wanted]
    )


def _chains(plain: str, steps: Sequence[_Step], most: int, starter: Starter | None) -> list[_Chain]:
    found: list[_Chain] = []
    for row in _rows(steps, (), most):
        if starter and starter.returns == "text" and row[-1].family.gives == "words":
            row = (*row, _Step(JOINING, (0, 0)))
        chain = _Chain(row, _score(row, plain))
        places = _places(chain.takes, starter.kinds) if starter else ()
        fits = starter is None or _returns(starter.returns, chain.gives)
        if fits and places is not None:
            found.append(replace(chain, places=places))
    return sorted(found, key=lambda chain: -chain.score)


def _rows(steps: Sequence[_Step], row: tuple[_Step, ...], most: int) -> Iterator[tuple[_Step, ...]]:
    for step in steps:
        follows = step.primary == 1 and row and row[-1].family.gives == step.family.takes[0]
        if step in row or (row and not follows):
            continue
        longer = (*row, step)
        yield longer
        if len(longer) < most:
            yield from _rows(steps, longer, most)


def _score(row: tuple[_Step, ...], plain: str) -> float:
    spans = [range(step.span[0], min(step.span[1], step.span[0] + 45)) for step in row]
    covered = {at for span in spans for at in span}
    twice = sum(map(len, spans)) - len(covered)
    disorder = sum(
        before.family.stage > after.family.stage or before.family.stage == after.family.stage == 5
        for before, after in pairwise(row)
    )
    takes = _Chain(row, 0).takes
    free = sum(value is None for step in row for value in step.bound)
    unasked = 0 if _ASKED.search(plain) else 12 * free
    likely = sum(2 if re.search(_KINDS[kind], plain) else -8 for kind in takes)
    against = 0.5 * twice + 4 * len(row) + 5 * disorder + 2 * (len(takes) - 1) + unasked
    return len(covered) + likely - against


def _returns(returned: str, gives: str) -> bool:
    return returned in (gives, "any") or {returned, gives} <= {"matrix", "pairs"}


def _places(takes: tuple[str, ...], kinds: tuple[str, ...]) -> tuple[int, ...] | None:
    places: list[int] = []
    for kind in takes if len(takes) == len(kinds) else ():
        left = (at for at in range(len(kinds)) if at not in places)
        fit = next((at for at in left if _returns(kinds[at], kind)), None)
        if fit is not None:
            places.append(fit)
    return tuple(places) if len(places) == len(kinds) else None


def _variants(chain: _Chain, text: str, plain: str, functional: bool) -> Iterator[_Chain]:
    """Yield the ways to read a task as this chain of operations, the likeliest first."""
    for options in islice(product(*(step.family.variants for step in chain.steps)), 8):
        pairs = zip(chain.steps, options, strict=True)
        read = replace(chain, steps=tuple(replace(step, options=chosen) for step, chosen in pairs))
        if functional:
            yield read
            continue
        for reader, shower in product(readers(chain.takes, plain), showers(chain.gives, text)):
            yield replace(read, reads=reader, shows=shower)


def _works(chain: _Chain, samples: Sequence[tuple[Any, Any]]) -> bool:
    """Return whether a chain of podium's own operations gives the outputs that samples show."""
    try:
        return all(_agrees(chain, given, wanted) for given, wanted in samples)
    except _FAULTS:
        return False


def _agrees(chain: _Chain, given: Value, wanted: Value) -> bool:
    if chain.reads is None or chain.shows is None:
        return _plain_value(_run(chain, [given[at] for at in chain.places])) == _plain_value(wanted)
    inputs = chain.reads.does(given)
    if len(inputs) != len(chain.takes):
        return False
    texts = (chain.shows.does(_run(chain, list(inputs))), str(wanted))
    shown, told = ([line.rstrip() for line in text.strip().split("\n")] for text in texts)
    return shown == told


def _run(chain: _Chain, inputs: list[Any]) -> Value:
    result: Any = None
    for at, step in enumerate(chain.steps):
        long = at and isinstance(result, int) and abs(result) > _LONG
        if long and step.family.called not in LIGHT:
            raise ValueError("too long to work through by hand")
        given = [result] if at else [inputs.pop(0) for _ in range(step.primary)]
        given += [inputs.pop(0) if value is None else value for value in step.bound]
        result = step.family.does(*given, **step.options)
    return result


def _plain_value(value: Value) -> Value:
    if isinstance(value, list | tuple):
        return [_plain_value(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


_TRIES = 150  # how many readings a writer tries on the samples before it takes the likeliest
_LAYOUT = re.compile(
    r"(?:first|second|third|next|following|each|only|single|one|last) (?:\w+ )?lines?\b"
    r"|\binput\b|\bconstraints?\b|\bseparated by\b",
)
_FORMAT = re.compile(r"```|\bpython\b|\bcode block|\bcomplete this\b|\byour (?:reply|answer)")
_DOES = re.compile(
    r"\b(?:prints?|output|returns?|finds?|computes?|counts?|determines?"
    r"|report|write|how many|work out|encrypt|decode)\b"
)
_GIVEN = re.compile(
    r"\b(list|array|sequence|n|two|three|single|an?|are|contains?|given)( of)?( n)? "
    r"(?:positive|distinct|non-negative|sorted|unique) (?=integers?|numbers?|values|list|array)"
)


def write_program(worker: Worker, text: str, paper: Scratch) -> tuple[str, str] | None:
    """Return (name of the task, program) for a task in words; None if the worker cannot do it."""
    starter = read_starter(text)
    chain = _choose(worker, text, starter)
    if chain is None:
        return None
    task = " and ".join(step.family.name for step in chain.steps)
    return task, _whole_program(chain, worker, paper, starter)


def _choose(worker: Worker, text: str, starter: Starter | None) -> _Chain | None:
    """Return the likeliest chain of operations that the samples confirm, or else the likeliest."""
    plain = _plain(text)
    most = 1 + min(2, worker.families // 25)
    steps = _find_steps(_task(plain), FAMILIES[: worker.families])
    found = _chains(plain, steps, most, starter)
    ways = (_variants(chain, text, plain, functional=starter is not None) for chain in found)
    readings = list(islice(linked.from_iterable(ways), _TRIES))
    samples = read_samples(text, starter)
    fitting = (reading for reading in readings if _works(reading, samples))
    first = readings[0] if readings else None
    return next(fitting, first) if samples else first


def _plain(text: str) -> str:
    low = re.sub(r"class Solution.*", " ", text, flags=re.DOTALL)
    low = re.split(r"(?i)\n\W*(?:examples?|samples?)\b[^\n]*\n", low, maxsplit=1)[0]
    low = re.sub(r"10\s*(?:\^|\*\*)\s*9\s*\+\s*7", "1000000007", low.lower())
    return _GIVEN.sub(r"\1\2\3 ", learnt_words(re.sub(r"\s+", " ", low)[:4000]))


def _task(plain: str) -> str:
    """Return a task's statement without the sentences that only describe input or format."""
    lines = (line for line in re.split(r"(?<=[.!?]) ", plain) if not _FORMAT.search(line))
    return " ".join(s for s in lines if not _LAYOUT.search(s) or _DOES.search(s)) or plain


_SLIPS = (
    (r" <= ", " < "), (r" >= ", " > "), (r" > ", " >= "), (r" < ", " <= "), (r" == 0\b", " == 1"),
    (r"range\(2, ", "range(1, "), (r"\[-2\]", "[-1]"), (r"\+ 1\b", "+ 2"), (r"\bmax\(", "min("),
    (r"\bmin\(", "max("), (r"sorted\(set\((\w+)\)\)", r"sorted(\1)"), (r", reverse=True", ""),
    (r"\.lower\(\)", ""), (r"= 0$", "= 1"), (r"\[::-1\]", "[1::-1]"), (r"sum\(", "len("),
    (r"% 26", "% 25"), (r"\[1:\]", "[2:]"), (r"return (\w+)$", r"return \1 or 0"),
)  # fmt: skip


class _Bare(ast.NodeTransformer):
    """Removes type annotations from code, since people write short programs without them."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(arg=node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        value = node.value or ast.Constant(None)
        return ast.copy_location(ast.Assign(targets=[node.target], value=value), node)


@cache
def source(does: Callable[..., Any], called: str) -> str:
    """Return the source of an operation's function, renamed to `called`, without annotations."""
    is_lambda = does.__name__ == "<lambda>"
    text = f"def {called}(): pass" if is_lambda else inspect.getsource(does)
    function = parse_python(text).body[0]
    if isinstance(function, ast.FunctionDef):
        function.name, function.returns = called, None
        if is_lambda:
            written = _lambdas(does.__module__)[does.__code__.co_firstlineno]
            function.args, function.body = written.args, [ast.Return(written.body)]
    return ast.unparse(ast.fix_missing_locations(_Bare().visit(function)))


@cache
def _lambdas(module: str) -> dict[int, ast.Lambda]:
    """Return line number -> outermost lambda that begins on this line of a module."""
    found: dict[int, ast.Lambda] = {}
    for node in ast.walk(parse_python(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.Lambda):
            found.setdefault(node.lineno, node)
    return found


def _slipped(code: str, worker: Worker, paper: Scratch) -> str:
    """Return code as a worker writes it: each line may get a random error."""
    lines = code.split("\n")
    for at, line in enumerate(lines):
        if line.startswith("def "):
            continue
        rate, paper.slip = paper.slip, worker.code_slip if paper.slip else 0.0
        wrong, paper.slip = paper.slips(max(1.0, len(line.strip()) / 25)), rate
        fitting = [(old, new) for old, new in _SLIPS if re.search(old, line)] if wrong else []
        if fitting:
            old, new = paper.random.choice(fitting)
            lines[at] = re.sub(old, new, line, count=1)
    return "\n".join(lines)


def _whole_program(chain: _Chain, worker: Worker, paper: Scratch, starter: Starter | None) -> str:
    """Return the program for a chain: its operations, `solve`, and code that reads and prints."""
    used = {step.family.does: step.family.called for step in chain.steps}
    parts = [_slipped(source(does, called), worker, paper) for does, called in used.items()]
    bases = {"ints": "values", "int": "n"}
    names = [f"{bases.get(kind, kind)}{at or ''}" for at, kind in enumerate(chain.takes)]
    parts.append(f"def solve({', '.join(names)}):\n{_solving(chain.steps, names)}")
    if starter:
        parts.append(_method(starter, chain))
    else:
        parts += [source(one.does, one.called) for one in (chain.reads, chain.shows) if one]
        given = f"{chain.reads.called}(sys.stdin.read())" if chain.reads else ""
        parts.append(f"print({chain.shows.called}(solve(*{given})))" if chain.shows else "")
    modules = [m for m in ("itertools", "math", "sys") if any(f"{m}." in part for part in parts)]
    return "\n\n\n".join([*(["\n".join(f"import {m}" for m in modules)] * bool(modules)), *parts])


def _solving(steps: Sequence[_Step], names: list[str]) -> str:
    lines: list[str] = []
    rest = list(names)
    for at, step in enumerate(steps):
        given = ["result"] if at else [rest.pop(0) for _ in range(step.primary)]
        given += [rest.pop(0) if value is None else repr(value) for value in step.bound]
        given += [f"{key}={value!r}" for key, value in step.options.items()]
        call = f"{step.family.called}({', '.join(given)})"
        lines.append(f"    {'return' if at == len(steps) - 1 else 'result ='} {call}")
    return "\n".join(lines)


def _method(starter: Starter, chain: _Chain) -> str:
    given = ", ".join(starter.arguments[at] for at in chain.places)
    call = f"solve({given})"
    if chain.gives in ("matrix", "pairs"):
        call = f"[list(row) for row in {call}]"
    arguments = ", ".join(("self", *starter.arguments))
    return f"class Solution:\n    def {starter.name}({arguments}):\n        return {call}"


_NOUN = (
    r"(?:(?:whole |integer )?(?:numbers?|integers?|values?|items?|entries|elements?)|words|lines)"
)
_BIG = r"(?:largest|biggest|highest|greatest|maximum|top)"
_LOW = r"(?:smallest|lowest|least|minimum|bottom|tiniest)"
_VAL = r"(?: (?:value|number|one|of them|element|integer))*"
_ALL = r"(?:them|these|those|everything|(?:all |the |its |these |of )+(?:numbers|values|integers|elements|them|entries|rest)|all)"
_THESAURUS = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        # what only describes the input
        (rf"\bhow many (?:of )?({_NOUN} )?(?:will |are to |to )?(?:follow|come|be given|expect|read)\b(?:[^.;?]{{0,45}}?\b(?:then|and|afterwards|followed by)\b[^.;?]{{0,30}}?\b(?:themselves|{_NOUN}))?", r" n followed by n \1 integers "),
        (rf"\b(?:a|the|its|their|one) (?:count|size|length|amount)\b(?: n)?[^.;?]{{0,40}}?\b(?:that|so|this|as) many ({_NOUN})(?: on the (?:second|next)(?: line)?| themselves)?", r" n followed by n \1 "),
        (rf"({_NOUN}) +integers\b", r"\1"),
        (r"\bwhole numbers?\b", "integers"),
        # verbs of showing
        (r"\b(?:tells?|says?|puts? out|gives? back|hands? back|comes? up with|names?|lets? (?:us|me|you) know|out comes?|displays?|announces?|shows?)\b", "print"),
        # cases and letters
        (r"\bno matter (?:whether|if|how)[^.,;]{0,60}(?:capital|small|big|upper|lower)\w*(?: ?-?case)?(?: letters?| ones?)?|\b(?:capital|big|upper ?-?case) and (?:small|little|lower ?-?case)(?: letters)? (?:count |are )?(?:alike|(?:as )?the same|equal)", "ignoring case"),
        (r"\(?\ba, ?e, ?i, ?o,? ?(?:or |and |/ ?)?u\b\)?", "vowels"),
        # orders
        (rf"\b(?:rising|growing|upward|climbing) order\b|\b{_LOW}{_VAL} (?:in front|at the front|comes? first|first)\b|\bfrom (?:the )?{_LOW}{_VAL} (?:(?:(?:upwards?|up|on) )?to (?:the )?{_BIG}{_VAL}|upwards?|up|on)|\b(?:lined up|ordered|arranged|sorted|put in order|lines? up|ranked) by size\b", "in ascending order"),
        (r"\b(?:back to front|(?:the )?other way (?:round|around)|from (?:its |the )?(?:end|last(?: \w+)?|back) to (?:its |the )?(?:beginning|start|front|first(?: \w+)?)|in reverse|from (?:the )?right to (?:the )?left|(?:starting (?:at|with|from) the|with the) (?:end|last)(?: \w+)?(?: first| in front)?)\b", "reversed"),
        (r"\b(?:stays?|is|reads?|looks?|remains?|spells?)(?: exactly| just)? the same[^.;]{0,50}(?:reversed|backwards?|both ways|either (?:end|side|direction))", "is a palindrome"),
        # folds
        (r"\b(?:add|adds|adding|sums?)(?: up| together)?(?: all)?(?: of)? (?:its|the|their|all the)(?: decimal)? digits(?: together| up)?", "sum of its digits"),
        (rf"\b(?:add|adds|adding|sums?|tots?)(?: up| together)? {_ALL}(?: up| together)*", "the sum of the numbers"),
        (r"\b(?:what|how much) (?:they|the rest|these|those|all(?: of them)?|it|(?:its|the|all|all the) (?:numbers|values|integers))(?: all| \w+ly)? (?:add|come|amount|sum|make|tot)s?(?: up)?(?: to)?(?: altogether| together| in all)?", "the sum of the numbers"),
        # words
        # filters
        (r"\bhow many (?:of )?(?:its|the|these|those|all|their|his|them)?(?: the)? ?(\w+)? ?(?:are|is) (even|odd|negative|positive|prime|vowels|consonants|digits|capital letters|capital|upper ?-?case)(?: letters| numbers)?\b", r"how many \2 \1"),
        # whole numbers
        (rf"\b{_BIG} (?:\w+ )?(?:number|integers?|value) (?:that|which) (?:goes into|divides|fits into|measures)(?: evenly| exactly)?(?: into)? (?:both|them|the two|each|all)(?: of them| evenly)?", "greatest common divisor"),
        (rf"\b{_LOW} (?:\w+ )?(?:number|integers?|value) (?:(?:that|which) (?:both|all|each|the two)|into which (?:both|all|each|the two))[^.;,]{{0,30}}(?:go|divide|fit)\w*(?: into)?|\b{_LOW} [^.;,]{{0,30}}(?:multiple of|divisible by) (?:both|all|each)(?: of them)?", "least common multiple"),
    )
)  # fmt: skip


@lru_cache(maxsize=2048)
def learnt_words(plain: str) -> str:
    """Return a plain lower-case statement with everyday words replaced by those of the patterns."""
    for pattern, words in _THESAURUS:
        plain = pattern.sub(words, plain)
    return re.sub(r"\s+", " ", plain)
