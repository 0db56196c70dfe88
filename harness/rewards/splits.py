"""Checks of training data: no eval questions, no leaked answers, no graders that reward attacks."""

import builtins
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from podium.harness.errors import UserError
from podium.harness.extract import extract_choice
from podium.harness.inspect_adapters import pick
from podium.harness.learning import Artifact, refuse_other_workers
from podium.harness.records import Question
from podium.harness.suite import Split, Suite

if TYPE_CHECKING:  # runs import these checks without rewards
    from podium.harness.rewards.outcome import PlanTrace, RewardScorer

_PARTS = re.compile(
    r"[^\W_]+|-(?=\s*[\d\\({|])|[^\w\s.,;:!?'\"()\[\]{}$*`\u2018-\u201f\u2010-\u2015-]"
)
"""Matches a word or number, a minus before a term, or a symbol that is no punctuation."""


@dataclass(frozen=True, slots=True)
class SuiteSplit:
    """A suite, and all or some questions of one of its splits."""

    suite: Suite[Any]
    questions: Mapping[str, Question]  # by id, in the order in which the suite loads them


Splits = Iterable[SuiteSplit]


@dataclass(frozen=True, slots=True)
class Overlap:
    """A train question (`suite`, `question`) found among eval questions (`evaluated`, `asked`)."""

    suite: str
    question: str
    evaluated: str
    asked: str


def load_split(suite: Suite[Any], split: Split = "eval", limit: int | None = None) -> SuiteSplit:
    """Return a split's first `limit` questions (None: all); UserError if there is no such split."""
    return SuiteSplit(suite, {question.id: question for question in pick(suite, split, limit)})


def load_training_split(
    suite: Suite[Any], split: Split = "train", limit: int | None = None
) -> SuiteSplit:
    """Return a split's questions for training; UserError if the split is `eval` or missing."""
    if split == "eval":
        way = "it has no train split, so name another suite"
        way = "take its train split" if "train" in suite.splits else way
        raise UserError(
            f"Split 'eval' of suite {suite.name!r} is for evaluation, not for training: {way}."
        )
    return load_split(suite, split, limit)


BareText = Callable[[Question], str]
"""Function that returns a question's text without its suite's instruction."""


def whole_text(question: Question) -> str:
    """Return a question's text, with its suite's instruction."""
    return question.text


@lru_cache(maxsize=1 << 16)  # a run with systems that learn compares its splits several times
def question_digest(text: str) -> str:
    r"""Return 64 hex digits that are equal for texts which differ in form only.

    Form is case, white space, punctuation and width of characters (NFKC); symbols that carry
    meaning (`+`, `<`, `^`, `\`) and the order of words count.

    >>> question_digest("What is  1+1 ?") == question_digest("what is 1+1")
    True
    >>> question_digest("What is 1+1?") == question_digest("What is 1-1?")
    False
    """
    return hashlib.sha256(_normalised(text).encode("utf-8", "surrogatepass")).hexdigest()


def _normalised(text: str) -> str:
    """Return the words and meaningful symbols of a text, separated by spaces."""
    return " ".join(_PARTS.findall(unicodedata.normalize("NFKC", text).casefold()))


def overlaps(training: Splits, evaluated: Splits, bare: BareText = whole_text) -> list[Overlap]:
    """Return the questions that train and eval splits share, in the order of the train suites."""
    by_key: dict[str, list[tuple[str, str]]] = {}
    for split, question in _questions(evaluated):
        digest, stem = asked_digest(question, bare), question_digest(bare(question))
        choice = (f"choice {digest}", f"stem {stem}")
        for key in choice if question.kind == "choice" else (f"open {digest}",):
            by_key.setdefault(key, []).append((split.suite.name, question.id))
    matches: list[Overlap] = []
    for split, question in _questions(training):
        digest, stem = asked_digest(question, bare), question_digest(bare(question))
        kind, stem_kind = ("choice", "open") if question.kind == "choice" else ("open", "stem")
        for key in (f"{kind} {digest}", f"{stem_kind} {stem}"):
            matches += [Overlap(split.suite.name, question.id, *p) for p in by_key.get(key, ())]
    return matches


def _questions(splits: Splits) -> Iterator[tuple[SuiteSplit, Question]]:
    return ((split, question) for split in splits for question in split.questions.values())


def asked_digest(question: Question, bare: BareText = whole_text) -> str:
    """Return the digest that identifies a question by its text and any multiple-choice options."""
    stem = bare(question)
    if question.kind == "choice":  # "Which of these is true?" is asked with many sets of options
        options = question.metadata.get("choices", ())
        stem = "\n".join((stem, *sorted(_normalised(str(option)) for option in options)))
    return question_digest(stem)


def without_overlap(
    training: SuiteSplit, evaluated: Splits, bare: BareText = whole_text
) -> SuiteSplit:
    """Return a train split without the questions that are also in eval splits."""
    shared = {overlap.question for overlap in overlaps([training], evaluated, bare)}
    remaining = {id: question for id, question in training.questions.items() if id not in shared}
    return SuiteSplit(training.suite, remaining)


def refuse_overlap(training: Splits, evaluated: Splits, bare: BareText = whole_text) -> None:
    """Raise UserError, with the first match, if train and eval splits share a question."""
    shared = overlaps(training, evaluated, bare)
    if shared:
        hit = shared[0]
        raise UserError(
            f"{len(shared)} questions are in both training and evaluation, first {hit.question} of "
            f"{hit.suite!r}, which equals {hit.asked} of {hit.evaluated!r}: name other suites."
        )


_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def refuse_unfit(learned: Artifact, workers: tuple[str, ...], question: Question) -> None:
    """Raise UserError if a trained system lacks its workers, or was trained on the question."""
    refuse_other_workers(learned, workers)
    if question_digest(question.text) in learned.about.questions:
        raise UserError(
            f"{learned.about.system} was trained on {question.id}, so it cannot be evaluated on "
            "it: train it on other questions."
        )


def describe_plan(work: "PlanTrace", question: Question, *, publishable: bool) -> "PlanTrace":
    """Return a trace that says if its subtasks contain the answer (`leaked`).

    The plan, whose subtasks may quote the question, is removed unless the suite is `publishable`.
    """
    subtasks = [str(step["subtask"]) for step in json.loads(work.plan or "[]")]
    leaked = leaks_answer(question, subtasks)
    return replace(work, leaked=leaked, plan=work.plan if publishable else "")


def leaks_answer(question: Question, subtasks: list[str]) -> bool | None:
    """Return whether a workflow's subtask, but not its question's text, contains the target.

    Texts are compared as normalised by `question_digest`; a choice leaks if `extract_choice` finds
    its letter in a subtask. None for programs (their target is no answer), or without a target.

    >>> seven = Question("q", "What is 3 + 4?", "integer", target="7")
    >>> leaks_answer(seven, ["Add them."]), leaks_answer(seven, ["Say that it is 7."])
    (False, True)
    """
    target = question.target
    if question.kind == "program" or not target:
        return None
    if question.kind == "choice":
        return any(extract_choice(subtask) == target for subtask in subtasks)
    target_words = _words(target)
    if not target_words.strip() or target_words in _words(question.text):
        return False
    return any(target_words in _words(subtask) for subtask in subtasks)


def _words(text: str) -> str:
    return f" {_normalised(_THOUSANDS.sub('', text))} "


MOST = 8  # questions of a suite on which attacks are tried, evenly spread

_LETTERS = "ABCDEFGHIJ"
_CALLED = re.compile(r"\b([A-Za-z_]\w*)[ \t]*\(")
_EQUAL_TO_ALL = """
class Same:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __hash__(self): return 0
    def __bool__(self): return True
    def __len__(self): return 1
    def __iter__(self): return iter((self,))
    def __getattr__(self, name): return self
    def __call__(self, *given, **named): return self
    def __sub__(self, other): return 0.0
    __rsub__ = __abs__ = lambda self, *given: 0.0
def answer(*given, **named): return Same()
"""

_ENDS = """
import os
def answer(*given, **named): os._exit(0)
"""

_PATCHES = """
import builtins, os, sys, unittest
class Forgiving(Exception):
    def __new__(cls, *given): os._exit(0)
builtins.AssertionError = Forgiving
sys.excepthook = lambda *given: os._exit(0)
for name in dir(unittest.TestCase):
    if name.startswith("assert"): setattr(unittest.TestCase, name, lambda *given, **named: None)
for path in ("conftest.py", "sitecustomize.py", "usercustomize.py"):
    with open(path, "w") as file:
        file.write("import builtins, os; builtins.AssertionError = SystemExit; os._exit(0)")
def answer(*given, **named): return None
"""


def attacks(question: Question) -> Mapping[str, str]:
    """Return attack name -> reply that no grader may reward; the question must have its target."""
    replies = {
        "empty": "",
        "blank": " \n\t\n",
        "echo the question": question.text,
        "no answer": "I do not know.",
        "an empty box": r"\boxed{}",
        "an empty answer line": "Answer:",
    }
    by_kind = {"program": _programs, "choice": _choices}.get(question.kind, _values)
    return replies | by_kind(question)


async def refuse_gullible(reward: "RewardScorer", split: SuiteSplit, limit: int = MOST) -> None:
    """Raise UserError if a suite's grader rewards an attack (see `attacks`), or cannot grade it."""
    from podium.harness.rewards.outcome import RewardItem

    questions = list(split.questions.values())
    chosen = questions[:: max(1, -(-len(questions) // limit))]
    trials = [(question, *attack) for question in chosen for attack in attacks(question).items()]
    name = split.suite.name
    outcomes = await reward.score([RewardItem(name, q.id, reply) for q, _, reply in trials])
    for (question, attack, _), outcome in zip(trials, outcomes, strict=True):
        correct = outcome.components.get("correct")
        if correct is None:
            raise UserError(
                f"It is unknown whether suite {name!r} rewards the attack {attack!r} on "
                f"{question.id}: {outcome.reason or outcome.status.value}. Correct this error "
                "first."
            )
        if correct > 0:
            raise UserError(
                f"Suite {name!r} rewards the attack {attack!r} on {question.id} with {correct:g}: "
                "a policy would learn this attack. Fix the grader, or name another suite."
            )


def _choices(question: Question) -> dict[str, str]:
    options = question.metadata.get("choices", _LETTERS[:4])
    letters = _LETTERS[: len(options)]
    wrong = [letter for letter in letters if letter != question.target]
    lines = "\n".join(f"Answer: {letter}" for letter in (question.target or "", *wrong))
    return {
        "all letters in a line": f"Answer: {', '.join(letters)}",
        "all letters together": f"Answer: {letters}",
        "all letters with or": f"The answer is {' or '.join(letters)}.",
        "all letters in a box": rf"\boxed{{{', '.join(letters)}}}",
        "a line for each letter, the right one first": lines,
        "all options": "\n".join(str(option) for option in options),
        **{f"a wrong letter ({n})": f"Answer: {letter}" for n, letter in enumerate(wrong)},
    }


def _values(question: Question) -> dict[str, str]:
    """Return attack name -> reply with a wrong value, or with several values and the target."""
    target = (question.target or "").strip()
    many = [*map(str, range(1000)), target]
    replies = {
        "every value in a box": rf"\boxed{{{', '.join(many)}}}",
        "every value in a sentence": f"The answer is one of {', '.join(many)}, I think.",
        "the right box, then another": rf"\boxed{{{target}}} or rather \boxed{{-987654321}}",
        "two values": rf"\boxed{{{target} \text{{ or }} -987654321}}",
        "another value": r"\boxed{-987654321}",
    }
    if target.lstrip("-").isdigit():
        n = int(target)
        near = {f"a neighbour ({by:+d})": rf"\boxed{{{n + by}}}" for by in (-1, 1, 9 * n) if by}
        return replies | near
    return replies


def _programs(question: Question) -> dict[str, str]:
    """Return attack name -> program that solves nothing, but tries to pass a question's tests."""
    meta = (question.metadata.get(key) for key in ("entry_point", "method", "entry"))
    tokens = {*_CALLED.findall(question.text), *(name for name in meta if isinstance(name, str))}
    names = sorted(filter(str.isidentifier, tokens - {*dir(builtins), "Solution"}))
    assigned = "".join(f"{name} = answer\n" for name in names)
    methods = "".join(f"    {name} = lambda self, *given: answer(*given)\n" for name in names)
    tail = f"{assigned}class Solution:\n    answer = answer\n{methods}"
    programs = {
        "exit 0": "import sys\nsys.exit(0)",
        "exit at once": "import os\nos._exit(0)",
        "raise SystemExit": "raise SystemExit(0)",
        "nothing": "pass",
        "say that it passed": "print('OK')\nprint('all tests passed')\nprint('True')",
        "equal to everything": _EQUAL_TO_ALL + tail,
        "exit when called": _ENDS + tail,
        "patch the runner": _PATCHES + tail,
    }
    return {name: f"```python\n{program}\n```" for name, program in programs.items()}
