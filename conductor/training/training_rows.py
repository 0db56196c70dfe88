"""What a policy is asked and begins with: rows by id, and plans for a warm start, drawn or given.

Workers named at random would teach a model to ignore the question (EXPERIMENTS.md). So whom a plan
names depends on the words that question and subtask share with each card; no target is known.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from string import ascii_uppercase
from typing import Any

import numpy as np
from inspect_ai.model import ChatMessage
from numpy.typing import NDArray
from scipy.cluster.vq import (  # pyright: ignore[reportMissingTypeStubs]
    kmeans2,  # pyright: ignore[reportUnknownVariableType]
)

from podium.conductor.guided_decoding import COMPACT_THOUGHT
from podium.conductor.parse import PlanFormat
from podium.conductor.prompt import (
    ShownWorkers,
    first_word,
    later_prompt,
    plan_prompt,
    render_plan,
    shown_question,
    shown_workers,
)
from podium.conductor.training.config import PlanRecipe, Prior, TrainingConfig
from podium.harness.pool_config import PoolSpec
from podium.harness.records import Question

COLUMNS = ("suite", "question", "epoch", "workers", "first")
SEEDS = 1 << 24  # rows of one seed before another's subsets come again
Floats = NDArray[np.float64]
STEM = 6  # letters of a word that count: so `divisors` and `divisor` are one, without a stemmer
MOST_COMMON = 0.3  # a stem in more than this share of the questions is form, not content
EVERYWHERE = {"that", "what", "with", "into", "above", "down", "from", "some", "this", "each"}
ASKING = {"which", "does", "have", "their", "them", "than", "needs", "needed"}
GENERIC = frozenset(EVERYWHERE | ASKING | {"question", "answer", "final"})
_WORD = re.compile(r"[^\W\d_]{4,}")
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+")

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
ROLES = ("gather", "check", "finish", "plan")  # a role of their own: they count as the question
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
MOST_LINES, MOST_WORDS = 8, 12  # of a made-up reply and its lines: as long as a short reply


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One question put to the policy once; `workers` is empty where the pool's order is kept."""

    suite: str
    question: str
    epoch: int = 1
    workers: tuple[str, ...] = ()
    first: str = ""

    def as_columns(self) -> dict[str, Any]:
        """Return the row as TRL's data set has it."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in COLUMNS}
        return {**plain, "workers": list(self.workers)}


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row with its texts: what a warm start and a tokenizer learn from. Never written down."""

    row: TrainingRow
    question: str  # the question's text, as a worker is asked
    cards: tuple[str, ...]  # one per worker shown, empty where cards are hidden
    known: tuple[str, ...]  # the same cards, even where the form hides them: a warm start may
    workers: tuple[str, ...]  # names in the order of their numbers; the policy never sees them
    prompt: str  # the whole request, as `template` has it
    template: "ChatTemplate"


def draw_rows(
    questions: Mapping[str, Sequence[str]],
    count: int,
    *,
    weights: Mapping[str, float],
    workers: tuple[str, ...],
    shown: ShownWorkers,
    seed: int,
) -> list[TrainingRow]:
    """Return `count` rows: each suite's questions are all used before one of them comes again."""
    rng = Random(f"podium rows {seed}")
    names = list(questions)
    each = [weights.get(name, float(len(questions[name]))) for name in names]
    ids = {name: _shuffled(questions[name], Random(rng.random())) for name in names}
    rows = [TrainingRow(name, next(ids[name])) for name in rng.choices(names, each, k=count)]
    if shown.whole:
        return rows
    drawn = [replace(shown, seed=seed * SEEDS + at) for at in range(count)]
    return [
        replace(row, workers=shown_workers(workers, row.question, one))
        for row, one in zip(rows, drawn, strict=True)
    ]


def _shuffled(ids: Sequence[str], rng: Random) -> Iterator[str]:
    while True:
        order = list(ids)
        rng.shuffle(order)
        yield from order


ChatTemplate = Callable[[list[dict[str, str]]], str]
"""How chat messages become the text that the policy goes on from: its tokenizer's own."""


def joined(messages: list[dict[str, str]]) -> str:
    """Return what messages say, one behind the other: the template of a model made from nothing."""
    return "".join(turn["content"] for turn in messages)


def _chat(turns: Sequence[ChatMessage]) -> list[dict[str, str]]:
    return [{"role": turn.role, "content": turn.text} for turn in turns]


EarlierRound = tuple[str, str]
"""The policy's whole text of a first round, and the last reply of what that came to: what a later
round shows. Never written down."""


@dataclass(frozen=True, slots=True)
class PromptBuilder:
    """Turns rows into texts: the suites' questions, the pool's cards, the form."""

    form: PlanFormat
    spec: PoolSpec
    question: Callable[[TrainingRow], Question]
    earlier: Mapping[str, EarlierRound] = field(default_factory=dict[str, EarlierRound])
    """By the id that rows of later rounds name."""
    template: ChatTemplate = joined

    def messages(self, row: TrainingRow) -> list[dict[str, str]]:
        """Return what the policy is sent, as chat messages."""
        turns = plan_prompt(self.form, self.question(row).text, self._cards(row))
        if row.first:
            turns = later_prompt(self.form, turns, *self.earlier[row.first])
        return _chat(turns)

    def _cards(self, row: TrainingRow) -> tuple[str, ...]:
        return tuple(self.spec.worker(name).card for name in row.workers or self.spec.names)

    def shown(self, row: TrainingRow) -> ShownRow:
        """Return a row with its texts."""
        prompt, template = self.template(self.messages(row)), self.template
        workers, known = row.workers or self.spec.names, self._cards(row)
        cards = known if self.form.cards else ("",) * len(known)
        return ShownRow(row, self.question(row).text, cards, known, workers, prompt, template)

    def render(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return a batch of columns with a `prompt` beside them (for `Dataset.with_transform`)."""
        columns = zip(*(batch[name] for name in COLUMNS), strict=True)
        rows = (TrainingRow(*ids, workers=tuple(shown), first=one) for *ids, shown, one in columns)
        return {**batch, "prompt": [self.messages(row) for row in rows]}


@dataclass(frozen=True, slots=True)
class QuestionKinds:
    """How questions are told apart."""

    stems: dict[str, int]
    weights: Floats  # (stems,): inverse document frequencies
    centres: Floats  # (kinds, stems)

    def of(self, text: str) -> int:
        """Return the kind of a question: the nearest centre."""
        vector = _vector(text, self.stems, self.weights)
        return int(np.argmin(((self.centres - vector) ** 2).sum(axis=1)))

    def affinities(self, card: str) -> Floats:
        """Return (kinds,): the cosine of each kind's centre and a worker's card, 0 or more."""
        return np.asarray(self.centres @ _vector(card, self.stems, self.weights), dtype=np.float64)


def asking_sentences(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the sentences of each text, without those that many texts have: these are form.

    >>> asking_sentences(["Let c be 2. What is c? Think.", "What is 1? Think.", "Sum 2. Think."])[
    ...     "Let c be 2. What is c? Think."
    ... ]
    ('Let c be 2.', 'What is c?')
    """
    found = {text: tuple(_SENTENCE_END.split(text.strip())) for text in texts}
    counts = Counter(one for sentences in found.values() for one in set(sentences))
    most = max(1.0, MOST_COMMON * len(found))
    return {
        text: tuple(one for one in sentences if counts[one] <= most) or sentences
        for text, sentences in found.items()
    }


def stem_overlaps(text: str, others: Sequence[str]) -> Floats:
    """Return (others,): how much of a text each other one shares; zeros where nobody shares any.

    A stem weighs the more, the fewer of the others have it.

    >>> stem_overlaps("look up facts", ["Looks up facts.", "No facts.", "Writes code."]).argmax()
    np.int64(0)
    """
    wanted = set(_stems(text))
    held = [set(_stems(one)) for one in others]
    count = {stem: sum(stem in one for one in held) for stem in wanted}
    rare = {stem: 1.0 / times for stem, times in count.items() if times}
    return np.array([sum(rare.get(stem, 0.0) for stem in wanted & one) for one in held])


def cluster_questions(texts: Sequence[str], count: int, seed: int) -> QuestionKinds:
    """Return `count` kinds of the questions, fewer where there are fewer questions."""
    counts = Counter(stem for text in texts for stem in set(_stems(text)))
    most = max(1.0, MOST_COMMON * len(texts))
    kept = sorted(stem for stem, times in counts.items() if times <= most)
    if not kept:  # nothing tells them apart: they are of one kind
        return QuestionKinds({}, np.zeros(0), np.zeros((1, 0)))
    index = {stem: at for at, stem in enumerate(kept)}
    weights = np.array([1.0 + np.log((1 + len(texts)) / (1 + counts[one])) for one in kept])
    vectors = np.array([_vector(text, index, weights) for text in texts])
    wanted = min(count, len(np.unique(vectors, axis=0)))
    centres, _ = kmeans2(vectors, wanted, minit="++", rng=seed)
    return QuestionKinds(index, weights, np.asarray(centres, dtype=np.float64))


def _stems(text: str) -> list[str]:
    return [word[:STEM] for word in _WORD.findall(text.lower()) if word not in GENERIC]


def _vector(text: str, index: dict[str, int], weights: Floats) -> Floats:
    """Return (stems,) of length 1: sublinear counts times weights; zeros where none is known."""
    vector = np.zeros(len(index))
    for stem in _stems(text):
        if stem in index:
            vector[index[stem]] += 1.0
    vector = np.log1p(vector) * weights
    length = float(np.sqrt((vector**2).sum()))
    return vector / length if length else vector


class PlanCorpus:
    """Draws plans for questions; what it draws follows from the seed and the calls so far."""

    def __init__(
        self, shown: Sequence[ShownRow], form: PlanFormat, given: PlanRecipe, seed: int
    ) -> None:
        """Tell the questions' kinds apart and weigh workers for each."""
        self._form, self._recipe = form, given
        carded = any(card for one in shown for card in one.known)
        self._prior: Prior = given.prior if carded else "kinds"
        self._seed = seed
        texts = sorted({shown_question(form, one.question) for one in shown})
        self._sentences = asking_sentences(texts) if given.prior == "sentences" else {}
        if self._sentences:
            texts = sorted({one for sentences in self._sentences.values() for one in sentences})
        self._kinds: QuestionKinds = cluster_questions(texts, given.kinds, seed)
        self._kind_of = {text: self._kinds.of(text) for text in texts}
        self._affinities = cache(self._kinds.affinities)
        self.own: Mapping[TrainingRow, str] = {}
        """Plans in place of drawn ones: given, or the model's; half of the later rounds go on
        from them."""

    def drawn(self, shown: ShownRow, rng: Random) -> tuple[str, str]:
        """Return a prompt and a completion to learn, of a first round or of a later one."""
        if self._recipe.later and rng.random() < self._recipe.later:
            return self.later(shown, rng)
        return shown.prompt, self.own.get(shown.row) or self.plan(shown, rng)

    def later(self, shown: ShownRow, rng: Random) -> tuple[str, str]:
        """Return a later round: after any plan and a made-up reply, another plan or none."""
        first = plan_prompt(self._form, shown.question, shown.cards)
        turns = later_prompt(
            self._form, first, self._either(shown, rng), made_up_reply(shown.question, rng)
        )
        keeps = rng.random() < self._recipe.keep
        said = self._written(shown, [], [], []) if keeps else self._either(shown, rng)
        return shown.template(_chat(turns)), said

    def _either(self, shown: ShownRow, rng: Random) -> str:
        own = self.own.get(shown.row)
        return own if own and rng.random() < 0.5 else self.plan(shown, rng)

    def plan(self, shown: ShownRow, rng: Random) -> str:
        """Return a plan as a completion: reasoning, where there is some, and the three lists."""
        text = shown_question(self._form, shown.question)
        if self._sentences:
            parts = self._sentences[text][: self._form.max_steps]
            shape, numbers = ("use",) * len(parts), self._doers(shown, parts, rng)
        else:
            shape = rng.choice([one for one in SHAPES if len(one) <= self._form.max_steps])
            numbers = self._workers(shown, self._kind_of[text], shape, rng)
        subtasks = [rng.choice(PHRASES[one.lstrip("|")]) + rng.choice(ENDINGS) for one in shape]
        alone = self._form.access == "off"
        access = [
            [] if alone or at == 0 or one.startswith("|") else ["all"]
            for at, one in enumerate(shape)
        ]
        return self._written(shown, numbers, subtasks, access)

    def _workers(self, shown: ShownRow, kind: int, shape: Sequence[str], rng: Random) -> list[int]:
        numbers: list[int] = []
        for subtask in shape:
            weights = self._weights(shown, kind, subtask.lstrip("|"))
            left = [at for at in range(len(weights)) if at not in numbers] or [*range(len(weights))]
            trusted = rng.random() < self._recipe.trust
            numbers += rng.choices(left, [weights[at] for at in left] if trusted else None)
        return numbers

    def _doers(self, shown: ShownRow, parts: Sequence[str], rng: Random) -> list[int]:
        """Return a worker for each sentence; one worker may do several."""
        numbers: list[int] = []
        for part in parts:
            weights = self._weights(shown, self._kind_of[part], "use")
            trusted = rng.random() < self._recipe.trust
            numbers += rng.choices(range(len(weights)), weights if trusted else None)
        return numbers

    def _weights(self, shown: ShownRow, kind: int, subtask: str) -> list[float]:
        if self._prior == "kinds":
            wanted = int(Random(f"{self._seed} kind {kind}").random() * len(shown.workers))
            return [1.0 if at == wanted else FLOOR for at in range(len(shown.workers))]
        asked = np.array([self._affinities(card)[kind] for card in shown.known])
        weights = _shares(np.maximum(asked, 0.0))
        if subtask in ROLES:
            weights = weights + _shares(stem_overlaps(" ".join(PHRASES[subtask]), shown.known))
        return [float(one) for one in weights**self._recipe.sharpness]

    def given(self, shown: ShownRow, workers: Sequence[str]) -> str:
        """Return the plan in which these workers do a step each, as a completion."""
        numbers = [shown.workers.index(one) for one in workers]
        subtasks = [f"{PHRASES['use'][0]}."] * len(numbers)
        return self._written(
            shown, numbers, subtasks, [["all"] if at else [] for at, _ in enumerate(numbers)]
        )

    def _written(
        self, shown: ShownRow, numbers: list[int], subtasks: list[str], access: list[list[str]]
    ) -> str:
        lists = render_plan(self._form, numbers, subtasks, access)
        if self._form.reply == "json":
            return lists
        if not (self._recipe.names and numbers):
            return f"\n{lists}"
        # Each number of the list is found by the token two before it, three before it here
        # (`look_up` in model.py): the first one by `Ask`, the others by the number before.
        called = (f"{first_word(shown.known[number])}{number}" for number in numbers)
        return f"{COMPACT_THOUGHT.format(', '.join(called))}\n{lists}"


def plan_corpus(config: TrainingConfig, shown: Sequence[ShownRow]) -> PlanCorpus:
    """Return the plans of a training: later rounds are drawn where it has such."""
    given = config.warm_start.options
    given = given if config.recursion else given.model_copy(update={"later": 0.0})
    return PlanCorpus(shown, config.form, given, config.run.seed)


def made_up_reply(question: str, rng: Random) -> str:
    """Return a text in place of a worker's reply: lines of the question's words, then an ending."""
    words = question.split() or [""]
    sizes = [rng.randint(1, MOST_WORDS) for _ in range(rng.randint(0, MOST_LINES))]
    lines = [" ".join(rng.choices(words, k=size)) for size in sizes]
    ends = (str(rng.randrange(1000)), rng.choice(ascii_uppercase[:5]), rng.choice(words))
    return "\n".join((*lines, rng.choice(ends)))


def _shares(weights: Floats) -> Floats:
    held = weights + FLOOR
    return held / held.sum()
