"""A conductor's prompt: its texts, and the workers that it lists.

The sections have the order of arXiv 2512.04388, figure 13. Wording and examples are ours; no
example is like a suite's questions. The `compact` layout has only the question and the workers.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser

from podium.conductor.parse import NAMES, PlanFormat
from podium.harness.errors import UserError
from podium.harness.workflow import Malformed

LEAST_SHOWN = 2
"""Minimum number of workers in a prompt if that number, k, is random: one worker leaves no choice.
arXiv 2512.04388 (section 3.2) shows a random subset of k models with each fine-tuning question, but
does not say how k is drawn; podium draws k uniformly."""
ROLE = """\
You direct a group of language models with different strengths. You never answer a question
yourself: you write a plan, and the models you pick carry it out.

Below you find a user question and a numbered list of the available models. Write a plan of
at most {max_steps} steps. A step is three things: the number of the model that does it, a subtask
in plain words, and which earlier steps that model may read. A subtask can ask a model to solve the
question from scratch, to do one part of it, to look something up, to improve or check earlier work,
or to do anything else that helps the models after it.

How the plan is run: steps run in order. Each model is sent the user question and its own subtask.
If its access entry allows, it also sees the subtasks and replies of earlier steps, as the earlier
turns of a conversation. The reply of the last step is returned to the user as the answer, so the
last step must give the final answer in the form that the question asks for.
"""

LISTS = """\
Think about the question first, as long as you need. Then end with exactly these three Python lists,
all of the same length, one entry per step:

model_id = [...]      # whole numbers from the list of models
subtasks = [...]      # {subtasks}
access_list = [...]   # {access}
"""

JSON = """\
Think about the question first, as long as you need. Then end with exactly one JSON object with
these three keys, all lists of the same length, one entry per step:

{{"model_id": [...], "subtasks": [...], "access_list": [...]}}

model_id: whole numbers from the list of models
subtasks: {subtasks}
access_list: {access}
"""

ADVICE = """\
Use few steps for easy questions. Steps that do not read each other cost less time.
"""

SUBTASKS = "strings"
NO_SUBTASKS = 'one "" per step: every model is asked to solve the question'

ACCESS = {
    "off": "one [] per step: no model reads the work of another",
    "binary": '[] to read nothing, ["all"] to read all earlier steps',
    "fine": '[] to read nothing, ["all"] to read all earlier steps, [0, 2] those (from 0)',
}

EXAMPLES_HEAD = "Here are {number} examples, written for another group of seven models."
EXAMPLE_HEAD = "Here is an example, written for another group of seven models."
_NUMBERS = ("no", "one", "two", "three", "four")
QUESTION = "USER QUESTION:"
MODELS = "AVAILABLE LANGUAGE MODELS:"

RETRY = """\
This plan cannot be run: {reason}.
Write it again: end with the three Python lists model_id, subtasks and access_list, in this order,
of equal length and with at most {max_steps} entries each."""

RETRY_JSON = """\
This plan cannot be run: {reason}.
Write it again: end with one JSON object with the keys model_id, subtasks and access_list: lists
of equal length and with at most {max_steps} entries each."""

LATER_ROUND = """\
Your plan has been carried out. The reply of its last step, which is the answer so far, was:

{reply}

You may write one more plan, of at most {max_steps} steps and in the same form, to check this
answer, to improve it or to begin anew. {access}
The reply of the new plan's last step is then returned to the user. If the answer so far is good,
leave all three lists empty, and it is returned as it is."""

LATER_ACCESS = 'In it, "all" includes the last step of the earlier plan, with its reply.'
LATER_ACCESS_OFF = "Its models read neither the answer so far nor each other."
LATER_TEXTS = (LATER_ROUND, LATER_ACCESS, LATER_ACCESS_OFF)
COMPACT_EARLIER = "Earlier plan:\n{said}\n\nEarlier answer:\n{reply}"
COMPACT_MODELS = "Models:"
COMPACT_PLAN = "Plan:"


@dataclass(frozen=True, slots=True)
class CardReading:
    """Limits of the prompts that a conductor trained on cards (texts about workers) can read."""

    openings: frozenset[str] | None = None
    """First words of the cards in the conductor's training: a small conductor recognises workers by
    these words. Its prompt omits all other cards, because unknown cards would bias it. None: the
    conductor reads any card."""
    most: int | None = None  # maximum number of workers in its training; None: no limit
    fits: Callable[[str], bool] | None = None  # tells if a prompt leaves room for a plan; None: all
    constrained: bool = False  # whether guided decoding allows only plans (`plan_regex`)

    def knows(self, card: str) -> bool:
        """Return whether the conductor knows a worker's card, by the first word of the card."""
        return self.openings is None or first_word(card) in self.openings

    def remarks(self, cards: Mapping[str, str]) -> list[str]:
        """Return warnings on a pool: cards that the conductor does not know; too many workers."""
        remarks: list[str] = []
        unread = [worker for worker, card in cards.items() if not self.knows(card)]
        if unread:
            words = ", ".join(sorted(self.openings or ()))
            legible = ", ".join(worker for worker in cards if worker not in unread) or "none"
            remarks.append(
                f"tells workers apart by the first word of a card and knows {words}, here "
                f"{legible}. It does not know the card of {', '.join(unread)}, so it chooses among "
                "these workers at random for each question."
            )
        if self.most and len(cards) > self.most:
            remarks.append(
                f"was trained on at most {self.most} workers. Of these {len(cards)} it is shown "
                f"{self.most}: those whose cards it knows, then others drawn for each question."
            )
        return remarks


@dataclass(frozen=True, slots=True)
class ShownWorkers:
    """How the workers in a conductor's prompt are selected; default: all, in the pool's order."""

    k: int | Literal["random"] | None = None  # workers to draw for each question; None: all
    order: Literal["pool", "random"] = "pool"
    seed: int = 0
    reading: CardReading | None = None  # limits of a card-trained conductor; None: no limits
    groups: tuple[tuple[str, ...], ...] = ()  # pools; each question draws its workers from one

    @property
    def whole(self) -> bool:
        """Whether every prompt lists the whole pool in its own order."""
        return self.k is None and self.order == "pool" and not self.groups


WHOLE_POOL = ShownWorkers()


def shown_workers(
    pool_workers: Sequence[str], question_id: str, view: ShownWorkers = WHOLE_POOL
) -> tuple[str, ...]:
    """Return the workers in a question's prompt, in the order of their numbers there (from 0).

    The same seed and question always give the same workers; `view.order` changes only the order.
    UserError if the pool has fewer than `view.k` workers.

    >>> shown_workers(["ada", "bo", "cy"], "q1", ShownWorkers(k=2, seed=3))
    ('bo', 'cy')
    """
    drawn = Random(f"{view.seed} {question_id}")
    workers = list(drawn.choice(view.groups) if view.groups else pool_workers)
    k = drawn.randint(min(LEAST_SHOWN, len(workers)), len(workers))
    if view.k is None:
        k = len(workers)
    elif view.k != "random":
        k = shown_count(view, len(workers))
    places = drawn.sample(range(len(workers)), k)
    return tuple(workers[i] for i in (places if view.order == "random" else sorted(places)))


def legible_workers(
    workers: Sequence[str], cards: Sequence[str], question_id: str, view: ShownWorkers
) -> tuple[str, ...]:
    """Return the workers in a card-trained conductor's prompt, at most `view.reading.most`.

    Workers with known, different cards have priority. The order is random if workers are left out
    or if the conductor cannot tell some of the workers apart.
    """
    reading = view.reading or CardReading()
    limit, words = reading.most or len(workers), {first_word(card) for card in cards}
    apart = len(words) == len(cards) and all(map(reading.knows, cards))
    if len(workers) <= limit and (reading.openings is None or apart):
        return tuple(workers)
    drawn = Random(f"{view.seed} {question_id} cards").sample(range(len(workers)), len(workers))
    by_word = {first_word(cards[i]): i for i in reversed(drawn) if reading.knows(cards[i])}
    ranked = sorted(drawn, key=lambda index: index not in by_word.values())
    chosen = frozenset(ranked[:limit])
    return tuple(workers[index] for index in drawn if index in chosen)


def first_word(card: str) -> str:
    """Return the first word of a worker's card, without the punctuation after the word.

    >>> first_word("Looks up facts about elements.")
    'Looks'
    """
    return " ".join(card.split()[:1]).rstrip(".,:;")


def shown_count(view: ShownWorkers, workers: int) -> int:
    """Return the maximum number of workers in a prompt; UserError if the pool is too small."""
    if view.k is None or view.k == "random":
        return workers
    if not 1 <= view.k <= workers:
        raise UserError(
            f"shown={view.k} does not fit a pool of {workers} workers: use 1 to {workers}, or "
            "random."
        )
    return view.k


def parse_shown(setting: int | str, order: str, seed: int) -> ShownWorkers:
    """Return how a solver's settings select the workers in prompts; UserError if one is invalid."""
    if order not in ("pool", "random"):
        raise UserError(f"order must be pool or random, not {order!r}.")
    if setting == "all" or setting == "random":
        return ShownWorkers(None if setting == "all" else "random", order, seed)
    if isinstance(setting, bool) or not isinstance(setting, int) or setting < 1:
        raise UserError(f"shown must be all, random or a number of workers, not {setting!r}.")
    return ShownWorkers(setting, order, seed)


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example in a conductor's prompt: a question and its plan, in our own words."""

    text: str  # the question, and one sentence of reasoning
    models: tuple[int, ...]
    subtasks: tuple[str, ...]
    access: tuple[tuple[str, ...], ...]


EXAMPLES = (
    Example(
        """\
Question: "Which is longer, the word for 'butterfly' in Finnish or in Italian?"
One model that knows languages can do this alone.""",
        (4,),
        ("Name both words, count their letters and answer the question.",),
        ((),),
    ),
    Example(
        """\
Question: "A recipe for 6 people needs 450 g of flour and 4 eggs. Eggs come in boxes of
10. How many boxes are needed for 40 people, and how much flour?"
The arithmetic is short but easy to get wrong, so a second model should check it.""",
        (1, 5),
        (
            "Work out the number of egg boxes and the flour in kilograms, step by step.",
            "Check every step above, correct mistakes, and state both results.",
        ),
        ((), ("all",)),
    ),
    Example(
        """\
Question: "Write a two-line rhyme about a lighthouse in which no word has an e."
Ideas vary, so two models try independently and a third one picks and repairs.""",
        (6, 2, 3),
        (
            "Write three candidate rhymes.",
            "Write three candidate rhymes.",
            "Discard candidates that contain the letter e, improve the best one, and give only the "
            "rhyme.",
        ),
        ((), (), ("all",)),
    ),
    Example(
        """\
Question: "Ferries leave at 7:40 and every 35 minutes after that, the crossing takes 50
minutes, and the museum opens at 10:00. What is the latest ferry with which one still waits at the
museum door, if the walk from the pier takes 12 minutes?"
First settle what is asked, then compute, then check against the timetable, then put it into form.\
""",
        (0, 1, 5, 4),
        (
            "List the given times and say precisely what must be found.",
            "List the departures with the arrival at the museum and pick the latest one before "
            "opening.",
            "Recompute the arrival of the chosen ferry and of the next one; correct a wrong "
            "choice.",
            "State the departure time of the ferry as HH:MM.",
        ),
        ((), ("all",), ("all",), ("all",)),
    ),
)


def plan_prompt(form: PlanFormat, question: str, cards: Sequence[str]) -> list[ChatMessage]:
    """Return the chat that asks a conductor for a plan: one user message."""
    texts = [" ".join(card.split()[: form.card_words]) if form.cards else "" for card in cards]
    question = shown_question(form, question)
    if form.layout == "compact":
        models = [f"{number}: {card}".rstrip() for number, card in enumerate(texts)]
        text = "\n\n".join((question, "\n".join((COMPACT_MODELS, *models)), COMPACT_PLAN))
    else:
        models = [f"Model {n}: {card}" if card else f"Model {n}" for n, card in enumerate(texts)]
        sections = f"{QUESTION}\n{question}\n", "\n".join((MODELS, *models))
        text = "\n".join(filter(None, (instructions(form), examples(form), *sections)))
    # A lone surrogate (possible in JSON) cannot be sent, so it becomes a question mark.
    return [ChatMessageUser(content=text.encode(errors="replace").decode())]


def shown_question(form: PlanFormat, question: str) -> str:
    """Return the part of a question that a prompt shows: its first `form.words` words (None: all).

    >>> shown_question(PlanFormat(words=3), "How many  primes are there?")
    'How many  primes ...'
    """
    words = list(re.finditer(r"\S+", question))
    if not form.words or len(words) <= form.words:
        return question
    return f"{question[: words[form.words - 1].end()]} ..."


def fit_prompt(
    form: PlanFormat, question: str, cards: Sequence[str], fits: Callable[[str], bool] | None
) -> tuple[list[ChatMessage], dict[str, str]]:
    """Shorten cards, then the question, until the prompt fits; return it, and what was shortened.

    The second result is a prompt's part -> how much of it is left; empty if all of it.
    """
    prompt = plan_prompt(form, question, cards)
    if fits is None or fits(prompt[0].text):
        return prompt, {}
    cards = [" ".join(card.split()[: form.card_words]) if form.cards else "" for card in cards]
    question = shown_question(form, question)

    def made(card_signs: int, signs: int = len(question)) -> list[ChatMessage]:
        return plan_prompt(form, question[:signs], [card[:card_signs] for card in cards])

    def most(signs: int, fitting: Callable[[int], bool]) -> int:
        return bisect_left(range(signs), True, key=lambda count: not fitting(count)) - 1

    each = most(max(map(len, cards), default=0), lambda count: fits(made(count)[0].text))
    if each >= 0:
        return made(each), {"of each card": f"{each} characters"}
    characters = max(0, most(len(question), lambda count: fits(made(0, count)[0].text)))
    cut = {"of each card": "0 characters", "of the question": f"{characters} characters"}
    return made(0, characters), cut


def retry_prompt(form: PlanFormat, plan: str, malformed: Malformed) -> list[ChatMessage]:
    """Return the messages after an invalid plan: the plan and its error; [] in layout `compact`."""
    if form.layout == "compact":
        return []
    text = RETRY_JSON if form.reply == "json" else RETRY
    reason = text.format(reason=malformed.reason, max_steps=form.max_steps)
    return [ChatMessageAssistant(content=plan), ChatMessageUser(content=reason)]


def later_prompt(
    form: PlanFormat, request: Sequence[ChatMessage], plan: str, reply: str
) -> list[ChatMessage]:
    """Return a later round's prompt: the earlier request, its plan, its answer, a new request."""
    if form.layout == "compact":
        earlier = COMPACT_EARLIER.format(said=plan, reply=reply)
        head = request[-1].text.removesuffix(COMPACT_PLAN)
        return [ChatMessageUser(content=f"{head}{earlier}\n\n{COMPACT_PLAN}")]
    access = LATER_ACCESS_OFF if form.access == "off" else LATER_ACCESS
    text = LATER_ROUND.format(reply=reply, max_steps=form.max_steps, access=access)
    return [*request, ChatMessageAssistant(content=plan), ChatMessageUser(content=text)]


def prompt_texts(form: PlanFormat) -> tuple[str, ...]:
    """Return all fixed texts in the prompts of a plan format, from which a digest is computed."""
    if form.layout == "compact":
        return COMPACT_MODELS, COMPACT_PLAN
    retry = RETRY_JSON if form.reply == "json" else RETRY
    return instructions(form), *filter(None, [examples(form)]), QUESTION, MODELS, retry


def instructions(form: PlanFormat) -> str:
    """Return a prompt's instructions: the conductor's role, how plans are run, output format."""
    output = (JSON if form.reply == "json" else LISTS).format(
        subtasks=SUBTASKS if form.subtasks else NO_SUBTASKS, access=ACCESS[form.access]
    )
    return "\n".join((ROLE.format(max_steps=form.max_steps), output, ADVICE))


def examples(form: PlanFormat) -> str:
    """Return a prompt's worked examples of at most `form.max_steps` steps; "" if there are none."""
    fitting = [example for example in EXAMPLES if len(example.models) <= form.max_steps]
    if not form.examples or not fitting:
        return ""
    many = EXAMPLES_HEAD.format(number=_NUMBERS[len(fitting)])
    head = many if len(fitting) > 1 else EXAMPLE_HEAD
    blocks: list[str] = []
    for number, example in enumerate(fitting, 1):
        subtasks = example.subtasks if form.subtasks else [""] * len(example.models)
        access = [()] * len(example.models) if form.access == "off" else example.access
        plan = render_plan(form, example.models, subtasks, access)
        blocks.append(f"Example {number}. {example.text}\n{plan}\n")
    return "\n".join((f"{head}\n", *blocks))


def render_plan(form: PlanFormat, *lists: Sequence[object]) -> str:
    """Return a plan's three lists as text, in the plan format `form`: Python lists or JSON."""
    plan = dict(zip(NAMES, lists, strict=True))
    if form.reply == "json":
        return json.dumps(plan)
    return "\n".join(f"{name} = {json.dumps(values)}" for name, values in plan.items())
