"""Chains of operations: which ones a statement may mean, likeliest first, and trying them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise, product
from typing import Any

from harness.rehearsal.program_inputs import Reader, Shower, readers, showers
from harness.rehearsal.program_kinds import Family, Value
from harness.rehearsal.program_numbers import LIGHT
from harness.rehearsal.program_samples import Starter
from harness.rehearsal.program_words import JOINING

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
"""Signs that a number of the task is one of its inputs."""
_LONG = 5_000
"""Largest intermediate result for which a loop is followed on a sample."""
_FAULTS = (ArithmeticError, LookupError, ValueError, TypeError, AttributeError, StopIteration)


@dataclass(frozen=True, slots=True)
class Step:
    """One operation with what the statement fixes."""

    family: Family
    span: tuple[int, int]
    bound: tuple[int | None, ...] = ()
    """Ints after the first argument: constants of the statement, None for an input."""
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def primary(self) -> int:
        """How many arguments come from the input when the step is first."""
        return len(self.family.takes) - len(self.bound)


@dataclass(frozen=True, slots=True)
class Chain:
    """A way to solve the task: what is read, done, and shown."""

    steps: tuple[Step, ...]
    score: float
    places: tuple[int, ...] = ()
    """For a method: which argument is which input."""
    reads: Reader | None = None
    shows: Shower | None = None

    @property
    def takes(self) -> tuple[str, ...]:
        """Kinds of inputs in the order in which the chain wants them."""
        first = self.steps[0]
        free = sum(value is None for step in self.steps for value in step.bound)
        return (*first.family.takes[: first.primary], *("int",) * free)

    @property
    def gives(self) -> str:
        """Kind of the result."""
        return self.steps[-1].family.gives


def find_steps(plain: str, families: Sequence[Family], most: int = 12) -> list[Step]:
    """Return the operations that a statement may ask for, those that explain most of it first."""
    found: list[Step] = []
    for family in families:
        spans = [match.span() for match in re.finditer(family.asks, plain) if match[0]]
        if spans:
            span = max(spans, key=lambda s: (min(s[1] - s[0], 45), -s[0]))
            found.append(Step(family, span, _bound(family, plain)))
    return sorted(found, key=lambda step: step.span[0] - step.span[1])[:most]


def _bound(family: Family, plain: str) -> tuple[int | None, ...]:
    if not family.bind:
        return ()
    wanted = len(family.takes) - 1
    found = re.search(family.bind, plain)
    words = [word for word in (found.groups() if found else ()) if word]
    return tuple(_numeral(word) for word in [*words, *[""] * wanted][:wanted])


def _numeral(word: str) -> int | None:
    if re.fullmatch(r"-?\d{1,15}", word):
        return int(word)
    return _NUMERALS.get(word)


def chains(plain: str, steps: Sequence[Step], most: int, starter: Starter | None) -> list[Chain]:
    """Return the chains of at most so many operations that fit together, likeliest first."""
    found: list[Chain] = []
    for row in _rows(steps, (), most):
        if starter and starter.returns == "text" and row[-1].family.gives == "words":
            row = (*row, Step(JOINING, (0, 0)))
        chain = Chain(row, _score(row, plain))
        if starter is None:
            found.append(chain)
        elif _returns(starter.returns, chain.gives):
            places = _places(chain.takes, starter.kinds)
            if places is not None:
                found.append(replace(chain, places=places))
    return sorted(found, key=lambda chain: -chain.score)


def _rows(steps: Sequence[Step], row: tuple[Step, ...], most: int) -> Iterator[tuple[Step, ...]]:
    for step in steps:
        if step in row or (row and not _follows(row[-1], step)):
            continue
        longer = (*row, step)
        yield longer
        if len(longer) < most:
            yield from _rows(steps, longer, most)


def _follows(before: Step, step: Step) -> bool:
    return step.primary == 1 and before.family.gives == step.family.takes[0]


def _score(row: tuple[Step, ...], plain: str) -> float:
    spans = [range(step.span[0], min(step.span[1], step.span[0] + 45)) for step in row]
    covered = {at for span in spans for at in span}
    twice = sum(map(len, spans)) - len(covered)
    disorder = sum(
        before.family.stage > after.family.stage or before.family.stage == after.family.stage == 5
        for before, after in pairwise(row)
    )
    takes = Chain(row, 0).takes
    free = sum(value is None for step in row for value in step.bound)
    unasked = 0 if _ASKED.search(plain) else 12 * free
    likely = sum(2 if re.search(_KINDS[kind], plain) else -8 for kind in takes)
    return (
        len(covered)
        - 0.5 * twice
        - 4 * len(row)
        - 5 * disorder
        + likely
        - 2 * (len(takes) - 1)
        - unasked
    )


def _returns(returned: str, gives: str) -> bool:
    return returned in (gives, "any") or {returned, gives} <= {"matrix", "pairs"}


def _places(takes: tuple[str, ...], kinds: tuple[str, ...]) -> tuple[int, ...] | None:
    if len(takes) != len(kinds):
        return None
    left = list(range(len(kinds)))
    places: list[int] = []
    for kind in takes:
        fit = next((at for at in left if _returns(kinds[at], kind)), None)
        if fit is None:
            return None
        left.remove(fit)
        places.append(fit)
    return tuple(places)


def variants(chain: Chain, text: str, plain: str, functional: bool) -> Iterator[Chain]:
    """Yield the readings of one chain, likeliest first."""
    sets = islice(product(*(step.family.variants for step in chain.steps)), 8)
    for options in sets:
        pairs = zip(chain.steps, options, strict=True)
        read = replace(chain, steps=tuple(replace(step, options=chosen) for step, chosen in pairs))
        if functional:
            yield read
            continue
        for reader in readers(chain.takes, plain):
            for shower in showers(chain.gives, text):
                yield replace(read, reads=reader, shows=shower)


def works(chain: Chain, samples: Sequence[tuple[Any, Any]]) -> bool:
    """Say whether a chain gives what the samples show, by calling our own operations."""
    try:
        return all(_agrees(chain, given, wanted) for given, wanted in samples)
    except _FAULTS:
        return False


def _agrees(chain: Chain, given: Value, wanted: Value) -> bool:
    if chain.reads is None or chain.shows is None:
        return _plain(_run(chain, [given[at] for at in chain.places])) == _plain(wanted)
    inputs = chain.reads(given)
    if len(inputs) != len(chain.takes):
        return False
    shown = chain.shows(_run(chain, list(inputs)))
    return [line.rstrip() for line in shown.strip().split("\n")] == [
        line.rstrip() for line in str(wanted).strip().split("\n")
    ]


def _run(chain: Chain, inputs: list[Any]) -> Value:
    result: Any = None
    for at, step in enumerate(chain.steps):
        if at and isinstance(result, int) and abs(result) > _LONG and step.family.does not in LIGHT:
            raise ValueError("too long to work through by hand")
        given = [result] if at else [inputs.pop(0) for _ in range(step.primary)]
        given += [inputs.pop(0) if value is None else value for value in step.bound]
        result = step.family.does(*given, **step.options)
    return result


def _plain(value: Value) -> Value:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value
