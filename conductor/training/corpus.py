"""Plans to begin with: valid ones of random shape, words and workers. They are mostly wrong.

A warm start that names workers at random teaches a model to ignore the question, and GRPO does not
recover from that (EXPERIMENTS.md). So whom a plan names depends on words: on how much the
question's kind and the subtask share with each worker's card (`prior = "cards"`), or on a worker
drawn for each kind (`"kinds"`, where nobody has a card), mixed with workers at random. It knows
question texts and cards only: no target, no topic, no verdict (a test takes them away). An earlier
answer that a later round shows is made up, too: words of the question in any order. Only a model
that was trained already, and is now asked again, goes on writing its own plans (warm_start.py): on
random ones it forgets what reward has taught it. Not here: kinds (kinds.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from random import Random
from string import ascii_uppercase
from typing import Any, Literal, get_args

import numpy as np

from conductor.adaptive import opening
from conductor.form import Form
from conductor.parse import NAMES
from conductor.prompt import COMPACT_THOUGHT, request, shown_question, written
from conductor.recursion import again
from conductor.training.config import TrainingConfig, unknown_key
from conductor.training.kinds import Floats, Kinds, overlaps, told_apart
from conductor.training.rows import Row, Shown
from harness.errors import UserError

Prior = Literal["cards", "kinds"]

PHRASES: Mapping[str, tuple[str, ...]] = {
    "solve": ("Solve the question", "Answer the question", "Work out the result"),
    "gather": (
        "Write down the facts that the question needs",
        "Look up what is needed",
        "List the values and formulas",
    ),
    "use": (
        "Use the work above to answer the question",
        "Compute the result with the facts above",
        "Put the values above in and solve",
    ),
    "check": (
        "Check the work above and correct it",
        "Verify the reply above",
        "Recompute the result above",
    ),
    "finish": ("State the final answer", "Pick the best answer above"),
    "program": ("Write the program", "Write the code in Python"),
    "plan": ("Take the question apart into steps", "Name the steps that are needed"),
}
"""What subtasks ask for, in our words; which ones is drawn without a look at the question."""

ROLES = ("gather", "check", "finish", "plan")
"""Subtasks that are a role of their own: their words count as much as the question's."""

ENDINGS = (".", " step by step.", " and be brief.", " with care.")

SHAPES: tuple[tuple[str, ...], ...] = (
    ("solve",),
    ("program",),
    ("gather", "use"),
    ("solve", "check"),
    ("program", "check"),
    ("plan", "use"),
    ("gather", "use", "check"),
    ("gather", "use", "finish"),
    ("solve", "|solve", "finish"),
    ("gather", "use", "gather", "use"),
)
"""Kinds of subtask in order; every step reads all before it, but the first, and `|` reads none."""

FLOOR = 1e-6

MOST_LINES, MOST_WORDS = 8, 12
"""Of a made-up reply, and of each of its lines: as long as a short reply of a worker."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How plans are drawn: `[warm_start.options]` of a configuration."""

    prior: Prior = "cards"
    kinds: int = 12
    """Kinds of question that are told apart."""
    trust: float = 0.6
    """Chance that a step's worker is drawn by the prior; else any worker is as likely."""
    names: bool = False
    """Whether the reasoning before the lists names each worker by the first word of its card:
    what a model can learn to look up where the order of workers changes. Two cards that begin with
    one word are not told apart."""
    later: float = 0.5
    """Chance that a later round is drawn; none is where the training has no [recursion]."""
    keep: float = 0.5
    """Chance that a later round keeps the answer that there is."""

    def __post_init__(self) -> None:
        if self.prior not in get_args(Prior):
            raise UserError(f"[warm_start.options] prior is cards or kinds, not {self.prior!r}.")
        if not 0 <= self.trust <= 1 or self.kinds < 1:
            raise UserError("[warm_start.options] needs a trust from 0 to 1 and at least 1 kind.")
        if not (0 <= self.later <= 1 and 0 <= self.keep <= 1):
            raise UserError("[warm_start.options] needs later and keep from 0 to 1.")


def recipe(options: Mapping[str, Any]) -> Recipe:
    """Return options as a record; UserError names the one that there is not, and the nearest."""
    known = [field.name for field in fields(Recipe)]
    for name in options:
        if name not in known:
            raise UserError(f"{unknown_key(name, known, 'warm_start.options')}.")
    return Recipe(**dict(options))


class Corpus:
    """Draws plans for questions; what it draws follows from the seed and the calls so far."""

    def __init__(self, shown: Sequence[Shown], form: Form, given: Recipe, seed: int) -> None:
        """Tell the questions' kinds apart and weigh workers for each."""
        self._form, self._recipe = form, given
        carded = any(card for one in shown for card in one.known)
        self._prior: Prior = given.prior if carded else "kinds"
        self._seed = seed
        texts = sorted({shown_question(form, one.question) for one in shown})
        self._kinds: Kinds = told_apart(texts, given.kinds, seed)
        self._kind_of = {text: self._kinds.of(text) for text in texts}
        self._affinities: dict[str, Floats] = {}
        self.own: Mapping[Row, str] = {}
        """Plans of the model itself: its first rounds, and half of those in later rounds."""

    def drawn(self, shown: Shown, rng: Random) -> tuple[str, str]:
        """Return a prompt and a completion to learn, of a first round or of a later one."""
        if self._recipe.later and rng.random() < self._recipe.later:
            return self.later(shown, rng)
        return shown.prompt, self.own.get(shown.row) or self.plan(shown, rng)

    def later(self, shown: Shown, rng: Random) -> tuple[str, str]:
        """Return a later round: after any plan and a made-up reply, another plan or none."""
        first = request(self._form, shown.question, shown.cards)
        turns = again(self._form, first, self._either(shown, rng), made_up(shown.question, rng))
        keeps = rng.random() < self._recipe.keep
        said = self._written(shown, [], [], []) if keeps else self._either(shown, rng)
        return "".join(turn.text for turn in turns), said

    def _either(self, shown: Shown, rng: Random) -> str:
        """Return a random plan, or the model's own where it has one."""
        own = self.own.get(shown.row)
        return own if own and rng.random() < 0.5 else self.plan(shown, rng)

    def plan(self, shown: Shown, rng: Random) -> str:
        """Return a plan as a completion: reasoning, where there is some, and the three lists."""
        shape = rng.choice([one for one in SHAPES if len(one) <= self._form.max_steps])
        kind = self._kind_of[shown_question(self._form, shown.question)]
        numbers = self._workers(shown, kind, shape, rng)
        subtasks = [rng.choice(PHRASES[one.lstrip("|")]) + rng.choice(ENDINGS) for one in shape]
        access = [self._access(at, one) for at, one in enumerate(shape)]
        return self._written(shown, numbers, subtasks, access)

    def _workers(self, shown: Shown, kind: int, shape: Sequence[str], rng: Random) -> list[int]:
        """Return the numbers of the workers, each at most once where there are enough."""
        numbers: list[int] = []
        for subtask in shape:
            weights = self._weights(shown, kind, subtask.lstrip("|"))
            left = [at for at in range(len(weights)) if at not in numbers] or [*range(len(weights))]
            trusted = rng.random() < self._recipe.trust
            numbers += rng.choices(left, [weights[at] for at in left] if trusted else None)
        return numbers

    def _weights(self, shown: Shown, kind: int, subtask: str) -> list[float]:
        """Return one weight per worker shown: by the question's kind, and by what is to be done."""
        if self._prior == "kinds":
            wanted = int(Random(f"{self._seed} kind {kind}").random() * len(shown.workers))
            return [1.0 if at == wanted else FLOOR for at in range(len(shown.workers))]
        asked = np.array([self._affinity(card)[kind] for card in shown.known])
        weights = _shares(np.maximum(asked, 0.0))
        if subtask in ROLES:
            weights = weights + _shares(overlaps(" ".join(PHRASES[subtask]), shown.known))
        return [float(one) for one in weights]

    def _affinity(self, card: str) -> Floats:
        if card not in self._affinities:
            self._affinities[card] = self._kinds.affinities(card)
        return self._affinities[card]

    def _access(self, at: int, kind: str) -> list[str]:
        alone = at == 0 or kind.startswith("|") or self._form.access == "off"
        return [] if alone else ["all"]

    def _written(
        self, shown: Shown, numbers: list[int], subtasks: list[str], access: list[list[str]]
    ) -> str:
        lists = written(self._form, dict(zip(NAMES, (numbers, subtasks, access), strict=True)))
        if self._form.reply == "json":
            return lists
        reason = self._reason(shown, numbers) if self._recipe.names and numbers else ""
        return f"{reason}\n{lists}"

    def _reason(self, shown: Shown, numbers: list[int]) -> str:
        # Each number of the list is found by the token two before it, three before it here
        # (lookup_heads.py): the first one by `Ask`, the others by the number before.
        called = (f"{opening(shown.known[number])}{number}" for number in numbers)
        return COMPACT_THOUGHT.format(", ".join(called))


def corpus_of(config: TrainingConfig, shown: Sequence[Shown]) -> Corpus:
    """Return the plans of a training: later rounds are drawn where it has such."""
    given = recipe(config.warm_start.options)
    given = given if config.recursion else replace(given, later=0.0)
    return Corpus(shown, config.form, given, config.run.seed)


def made_up(question: str, rng: Random) -> str:
    """Return a text in place of a worker's reply: lines of the question's words, then an ending.

    The ending is a number, a letter or a word, whatever the question wants.
    """
    words = question.split() or [""]
    sizes = [rng.randint(1, MOST_WORDS) for _ in range(rng.randint(0, MOST_LINES))]
    lines = [" ".join(rng.choices(words, k=size)) for size in sizes]
    ends = (str(rng.randrange(1000)), rng.choice(ascii_uppercase[:5]), rng.choice(words))
    return "\n".join((*lines, rng.choice(ends)))


def _shares(weights: Floats) -> Floats:
    """Return weights that sum to 1, nearly even where all are 0."""
    held = weights + FLOOR
    return held / held.sum()
