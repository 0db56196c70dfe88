"""Training data of a conductor: rows (ids of questions), and random or given plans to start with.

In random plans, random workers would teach a model to ignore the question (EXPERIMENTS.md). So a
plan's workers depend on the words that question and subtask share with each worker's card, not on
correct answers.
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
SEEDS = 1 << 24  # maximum rows of one seed, so that seeds draw different subsets
Floats = NDArray[np.float64]
STEM = 6  # letters of a word that are compared, so that `divisors` equals `divisor`
MOST_COMMON = 0.3  # a stem in more than this share of the questions is boilerplate
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
"""Kind of subtask -> its wordings, of which one is drawn independently of the question."""
ROLES = ("gather", "check", "finish", "plan")  # prefer workers whose cards share phrases' words
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
"""Shapes of random plans: the kinds of their subtasks, in order. A step reads all earlier steps;
with `|` it reads none."""
FLOOR = 1e-6
MOST_LINES, MOST_WORDS = 8, 12  # maximum lines of a made-up reply, and words of a line


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One prompt of a training, by ids; `workers` is empty if the whole pool is listed in order."""

    suite: str
    question: str
    epoch: int = 1
    workers: tuple[str, ...] = ()
    first: str = ""  # id of the first round that a later round continues

    def as_columns(self) -> dict[str, Any]:
        """Return the row as the columns of a data set for TRL."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in COLUMNS}
        return {**plain, "workers": list(self.workers)}


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A training row with its texts, for a warm start and a tokenizer. Never saved to a file."""

    row: TrainingRow
    question: str  # the question's text, as sent to a worker
    cards: tuple[str, ...]  # one per worker in the prompt, empty if cards are hidden
    known: tuple[str, ...]  # the cards, even if the prompt hides them
    workers: tuple[str, ...]  # names in the order of their numbers; the policy never sees them
    prompt: str  # the whole prompt, as text rendered by `template`
    template: "ChatTemplate"


def draw_rows(
    questions: Mapping[str, Sequence[str]],
    count: int,
    *,
    weights: Mapping[str, float],
    workers: tuple[str, ...],
    display: ShownWorkers,
    seed: int,
) -> list[TrainingRow]:
    """Draw training rows; a question repeats only after all questions of its suite were used."""
    rng = Random(f"podium rows {seed}")
    names = list(questions)
    each = [weights.get(name, float(len(questions[name]))) for name in names]
    ids = {name: _shuffled(questions[name], Random(rng.random())) for name in names}
    rows = [TrainingRow(name, next(ids[name])) for name in rng.choices(names, each, k=count)]
    if display.whole:
        return rows
    drawn = [replace(display, seed=seed * SEEDS + number) for number in range(count)]
    return [
        replace(row, workers=shown_workers(workers, row.question, row_display))
        for row, row_display in zip(rows, drawn, strict=True)
    ]


def _shuffled(ids: Sequence[str], rng: Random) -> Iterator[str]:
    while True:
        order = list(ids)
        rng.shuffle(order)
        yield from order


ChatTemplate = Callable[[list[dict[str, str]]], str]
"""A function that turns chat messages into a prompt's text, by a tokenizer's chat template."""


def joined(messages: list[dict[str, str]]) -> str:
    """Return the messages' contents, concatenated: the template of a model built from scratch."""
    return "".join(turn["content"] for turn in messages)


def _chat(turns: Sequence[ChatMessage]) -> list[dict[str, str]]:
    return [{"role": turn.role, "content": turn.text} for turn in turns]


EarlierRound = tuple[str, str]
"""A first round in the prompt of a later round: the conductor's whole text, and the last reply of
its workflow. Saved only if every suite's texts may be published (rounds.py)."""


@dataclass(frozen=True, slots=True)
class PromptBuilder:
    """Makes the prompts of training rows from questions, workers' cards and the plan format."""

    form: PlanFormat
    spec: PoolSpec
    question: Callable[[TrainingRow], Question]
    earlier: Mapping[str, EarlierRound] = field(default_factory=dict[str, EarlierRound])
    """First rounds (the conductor's text, the answer) by id, `TrainingRow.first`."""
    template: ChatTemplate = joined

    def messages(self, row: TrainingRow) -> list[dict[str, str]]:
        """Return a training row's prompt for the conductor, as chat messages."""
        turns = plan_prompt(self.form, self.question(row).text, self._cards(row))
        if row.first:
            turns = later_prompt(self.form, turns, *self.earlier[row.first])
        return _chat(turns)

    def _cards(self, row: TrainingRow) -> tuple[str, ...]:
        return tuple(self.spec.worker(name).card for name in row.workers or self.spec.names)

    def shown(self, row: TrainingRow) -> ShownRow:
        """Return a training row with its texts: question, cards and prompt."""
        prompt, template = self.template(self.messages(row)), self.template
        workers, known_cards = row.workers or self.spec.names, self._cards(row)
        cards = known_cards if self.form.cards else ("",) * len(known_cards)
        return ShownRow(row, self.question(row).text, cards, known_cards, workers, prompt, template)

    def render(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return a data set's batch with a column `prompt` added, for `Dataset.with_transform`."""
        columns = zip(*(batch[name] for name in COLUMNS), strict=True)
        rows = (TrainingRow(*ids, workers=tuple(names), first=id) for *ids, names, id in columns)
        return {**batch, "prompt": [self.messages(row) for row in rows]}


@dataclass(frozen=True, slots=True)
class QuestionKinds:
    """Clusters (kinds) of questions, by the words in the questions."""

    stems: dict[str, int]
    weights: Floats  # (stems,): inverse document frequencies
    centres: Floats  # (kinds, stems)

    def of(self, text: str) -> int:
        """Return the kind of a question: the index of the nearest centre."""
        vector = _vector(text, self.stems, self.weights)
        return int(np.argmin(((self.centres - vector) ** 2).sum(axis=1)))

    def affinities(self, card: str) -> Floats:
        """Return how similar a worker's card is to each kind (kinds,): dot products, 0 or more."""
        return np.asarray(self.centres @ _vector(card, self.stems, self.weights), dtype=np.float64)


def asking_sentences(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return each text's sentences, without boilerplate: sentences that many of the texts have.

    >>> asking_sentences(["Let c be 2. What is c? Think.", "What is 1? Think.", "Sum 2. Think."])[
    ...     "Let c be 2. What is c? Think."
    ... ]
    ('Let c be 2.', 'What is c?')
    """
    sentences_of = {text: tuple(_SENTENCE_END.split(text.strip())) for text in texts}
    counts = Counter(sentence for sentences in sentences_of.values() for sentence in set(sentences))
    limit = max(1.0, MOST_COMMON * len(sentences_of))
    return {
        text: tuple(sentence for sentence in sentences if counts[sentence] <= limit) or sentences
        for text, sentences in sentences_of.items()
    }


def stem_overlaps(text: str, texts: Sequence[str]) -> Floats:
    """Return (texts,): the weighted count of word stems that `text` shares with each of `texts`.

    A stem weighs more, the fewer of `texts` have it.

    >>> stem_overlaps("look up facts", ["Looks up facts.", "No facts.", "Writes code."]).argmax()
    np.int64(0)
    """
    stems = set(_stems(text))
    stem_sets = [set(_stems(candidate)) for candidate in texts]
    count = {stem: sum(stem in stem_set for stem_set in stem_sets) for stem in stems}
    rare = {stem: 1.0 / times for stem, times in count.items() if times}
    return np.array([sum(rare.get(stem, 0.0) for stem in stems & group) for group in stem_sets])


def cluster_questions(texts: Sequence[str], count: int, seed: int) -> QuestionKinds:
    """Cluster questions into `count` kinds, or into fewer if fewer questions are distinct."""
    counts = Counter(stem for text in texts for stem in set(_stems(text)))
    limit = max(1.0, MOST_COMMON * len(texts))
    stems = sorted(stem for stem, times in counts.items() if times <= limit)
    if not stems:  # no stem distinguishes them: one kind
        return QuestionKinds({}, np.zeros(0), np.zeros((1, 0)))
    index = {stem: position for position, stem in enumerate(stems)}
    weights = np.array([1.0 + np.log((1 + len(texts)) / (1 + counts[stem])) for stem in stems])
    vectors = np.array([_vector(text, index, weights) for text in texts])
    kinds = min(count, len(np.unique(vectors, axis=0)))
    centres, _ = kmeans2(vectors, kinds, minit="++", rng=seed)
    return QuestionKinds(index, weights, np.asarray(centres, dtype=np.float64))


def _stems(text: str) -> list[str]:
    return [word[:STEM] for word in _WORD.findall(text.lower()) if word not in GENERIC]


def _vector(text: str, index: dict[str, int], weights: Floats) -> Floats:
    """Return a text as a unit vector (stems,): weighted log counts; zeros if no stem is known."""
    vector = np.zeros(len(index))
    for stem in _stems(text):
        if stem in index:
            vector[index[stem]] += 1.0
    vector = np.log1p(vector) * weights
    length = float(np.sqrt((vector**2).sum()))
    return vector / length if length else vector


class PlanCorpus:
    """Draws plans to learn in a warm start; the caller passes the random generator."""

    def __init__(
        self, shown_rows: Sequence[ShownRow], form: PlanFormat, recipe: PlanRecipe, seed: int
    ) -> None:
        """Cluster the rows' questions into kinds, on which the choice of workers depends."""
        self._form, self._recipe = form, recipe
        carded = any(card for row in shown_rows for card in row.known)
        self._prior: Prior = recipe.prior if carded else "kinds"
        self._seed = seed
        texts = sorted({shown_question(form, row.question) for row in shown_rows})
        self._sentences = asking_sentences(texts) if recipe.prior == "sentences" else {}
        if self._sentences:
            texts = sorted({text for sentences in self._sentences.values() for text in sentences})
        self._kinds: QuestionKinds = cluster_questions(texts, recipe.kinds, seed)
        self._kind_of = {text: self._kinds.of(text) for text in texts}
        self._affinities = cache(self._kinds.affinities)
        self.own: Mapping[TrainingRow, str] = {}
        """Row -> plan that replaces a random plan: from a file, or the model's own. Later rounds
        use this plan with a probability of one half."""

    def drawn(self, row: ShownRow, rng: Random) -> tuple[str, str]:
        """Return a prompt and the completion to learn: of a first or, at random, a later round."""
        if self._recipe.later and rng.random() < self._recipe.later:
            return self.later(row, rng)
        return row.prompt, self.own.get(row.row) or self.plan(row, rng)

    def later(self, row: ShownRow, rng: Random) -> tuple[str, str]:
        """Return a later round's prompt, with a made-up reply, and its completion to learn.

        The completion is a plan or, to keep the earlier answer, three empty lists.
        """
        first_prompt = plan_prompt(self._form, row.question, row.cards)
        turns = later_prompt(
            self._form, first_prompt, self._either(row, rng), made_up_reply(row.question, rng)
        )
        keeps = rng.random() < self._recipe.keep
        completion = self._written(row, [], [], []) if keeps else self._either(row, rng)
        return row.template(_chat(turns)), completion

    def _either(self, row: ShownRow, rng: Random) -> str:
        own_plan = self.own.get(row.row)
        return own_plan if own_plan and rng.random() < 0.5 else self.plan(row, rng)

    def plan(self, row: ShownRow, rng: Random) -> str:
        """Return a plan as a completion: reasoning, if any, and the three lists."""
        text = shown_question(self._form, row.question)
        if self._sentences:
            sentences = self._sentences[text][: self._form.max_steps]
            shape, numbers = ("use",) * len(sentences), self._doers(row, sentences, rng)
        else:
            shape = rng.choice([shape for shape in SHAPES if len(shape) <= self._form.max_steps])
            numbers = self._workers(row, self._kind_of[text], shape, rng)
        subtasks = [rng.choice(PHRASES[kind.lstrip("|")]) + rng.choice(ENDINGS) for kind in shape]
        alone = self._form.access == "off"
        access = [
            [] if alone or number == 0 or subtask.startswith("|") else ["all"]
            for number, subtask in enumerate(shape)
        ]
        return self._written(row, numbers, subtasks, access)

    def _workers(self, row: ShownRow, kind: int, shape: Sequence[str], rng: Random) -> list[int]:
        numbers: list[int] = []
        for subtask in shape:
            weights = self._weights(row, kind, subtask.lstrip("|"))
            every = range(len(weights))
            free = [number for number in every if number not in numbers] or [*every]
            trusted = rng.random() < self._recipe.trust
            numbers += rng.choices(free, [weights[n] for n in free] if trusted else None)
        return numbers

    def _doers(self, row: ShownRow, sentences: Sequence[str], rng: Random) -> list[int]:
        """Return a worker's number for each sentence of a question; a worker may get several."""
        numbers: list[int] = []
        for sentence in sentences:
            weights = self._weights(row, self._kind_of[sentence], "use")
            trusted = rng.random() < self._recipe.trust
            numbers += rng.choices(range(len(weights)), weights if trusted else None)
        return numbers

    def _weights(self, row: ShownRow, kind: int, subtask: str) -> list[float]:
        if self._prior == "kinds":
            favourite = int(Random(f"{self._seed} kind {kind}").random() * len(row.workers))
            return [1.0 if number == favourite else FLOOR for number in range(len(row.workers))]
        affinities = np.array([self._affinities(card)[kind] for card in row.known])
        weights = _shares(np.maximum(affinities, 0.0))
        if subtask in ROLES:
            weights = weights + _shares(stem_overlaps(" ".join(PHRASES[subtask]), row.known))
        return [float(weight) for weight in weights**self._recipe.sharpness]

    def given(self, row: ShownRow, workers: Sequence[str]) -> str:
        """Return a plan as a completion: these workers do one step each, in this order."""
        numbers = [row.workers.index(worker) for worker in workers]
        subtasks = [f"{PHRASES['use'][0]}."] * len(numbers)
        return self._written(
            row, numbers, subtasks, [["all"] if step else [] for step, _ in enumerate(numbers)]
        )

    def _written(
        self, row: ShownRow, numbers: list[int], subtasks: list[str], access: list[list[str]]
    ) -> str:
        lists = render_plan(self._form, numbers, subtasks, access)
        if self._form.reply == "json":
            return lists
        if not (self._recipe.names and numbers):
            return f"\n{lists}"
        # `look_up` in model.py finds each number of the list in this text: the token two before
        # the number in the list is three before it here (`Ask` or the previous number).
        labels = (f"{first_word(row.known[number])}{number}" for number in numbers)
        return f"{COMPACT_THOUGHT.format(', '.join(labels))}\n{lists}"


def plan_corpus(config: TrainingConfig, shown_rows: Sequence[ShownRow]) -> PlanCorpus:
    """Return the source of a warm start's plans; without [recursion] it draws no later rounds."""
    recipe = config.warm_start.options
    recipe = recipe if config.recursion else recipe.model_copy(update={"later": 0.0})
    return PlanCorpus(shown_rows, config.form, recipe, config.run.seed)


def made_up_reply(question: str, rng: Random) -> str:
    """Return a made-up worker's reply: lines of words from the question, then an answer."""
    words = question.split() or [""]
    sizes = [rng.randint(1, MOST_WORDS) for _ in range(rng.randint(0, MOST_LINES))]
    lines = [" ".join(rng.choices(words, k=size)) for size in sizes]
    ends = (str(rng.randrange(1000)), rng.choice(ascii_uppercase[:5]), rng.choice(words))
    return "\n".join((*lines, rng.choice(ends)))


def _shares(weights: Floats) -> Floats:
    positive = weights + FLOOR
    return positive / positive.sum()
