"""Adaptive pools: which workers a conductor is shown, and in which order, for one question.

The paper restricts each question of its fine-tuning to a random k-model subset (arXiv 2512.04388,
section 3.2); how k is drawn is not published, so ours is uniform over 2..n. Order is ours. One pure
function for training rows and exams. A small conductor cannot tell the workers of every pool apart:
`CardReading` says which, and among others the draw decides. Not here: showing them (prompt.py),
asking (policy.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from harness.errors import UserError

LEAST = 2
"""The fewest workers that a random number of them can be: with one there is nobody to choose."""


@dataclass(frozen=True, slots=True)
class CardReading:
    """What a conductor that was trained on role cards makes of others, and how it is decoded."""

    openings: frozenset[str] | None = None
    """First words of the cards that it learnt from, which a small one goes by: others say nothing
    to it, and are not shown to it, since any text draws it somewhere. None: it reads all cards."""
    most: int | None = None
    """Workers whose numbers it learnt to write; None: any."""
    fits: Callable[[str], bool] | None = None
    """Whether a prompt leaves it room for a plan; None: any does."""
    constrained: bool = False
    """Whether its decoder is told to write nothing but plans (plan_regex.py)."""

    def knows(self, card: str) -> bool:
        """Say whether a card says anything to it."""
        return self.openings is None or opening(card) in self.openings

    def tells_apart(self, cards: Sequence[str]) -> bool:
        """Say whether every card says something to it that no other does."""
        words = {opening(card) for card in cards}
        return self.openings is None or (len(words) == len(cards) and words <= self.openings)

    def remarks(self, cards: Mapping[str, str]) -> list[str]:
        """Return what whoever seats it on a pool shall know, given each worker's card."""
        said: list[str] = []
        unread = [worker for worker, card in cards.items() if not self.knows(card)]
        if unread:
            words = ", ".join(sorted(self.openings or ()))
            said.append(
                f"goes by the word that a card opens with and knows {words}: the card of "
                f"{', '.join(unread)} says nothing to it, so it is drawn for each question which "
                "of these it asks."
            )
        if self.most and len(cards) > self.most:
            said.append(
                f"learnt to number {self.most} workers: of {len(cards)} it is shown {self.most}, "
                "those whose cards it knows and others drawn for each question."
            )
        return said


@dataclass(frozen=True, slots=True)
class Shown:
    """Whom a conductor is shown; the default is the whole pool in its own order."""

    k: int | Literal["random"] | None = None
    """How many, drawn anew for every question; None is all of them."""
    order: Literal["pool", "random"] = "pool"
    seed: int = 0
    reading: CardReading | None = None
    """Of a conductor that was trained on cards; None draws without a look at them."""

    @property
    def whole(self) -> bool:
        """Whether every question is shown the pool as it is."""
        return self.k is None and self.order == "pool"


WHOLE = Shown()


def shown_workers(
    pool_workers: Sequence[str], question_id: str, shown: Shown = WHOLE
) -> tuple[str, ...]:
    """Return the workers that a question's conductor is shown, in the order of their numbers.

    The same seed and question give the same workers everywhere, and which ones they are does not
    depend on `order`. UserError where the pool has fewer than `k`.

    >>> shown_workers(["ada", "bo", "cy"], "q1", Shown(k=2, seed=3))
    ('bo', 'cy')
    """
    workers = list(pool_workers)
    drawn = Random(f"{shown.seed} {question_id}")
    k = drawn.randint(min(LEAST, len(workers)), len(workers))
    if shown.k is None:
        k = len(workers)
    elif shown.k != "random":
        k = checked(shown, len(workers))
    places = drawn.sample(range(len(workers)), k)
    return tuple(workers[at] for at in (places if shown.order == "random" else sorted(places)))


def legible_workers(
    workers: Sequence[str], cards: Sequence[str], question_id: str, shown: Shown
) -> tuple[str, ...]:
    """Return the workers that a conductor can number, in an order that favours none it cannot tell.

    As they are where it can tell them apart. Else their order is drawn for each question, so that
    whatever it does without knowing falls on each of them as often. Where it has too few numbers,
    one worker for each word that it knows is shown, and the draw takes the others.
    """
    reading = shown.reading or CardReading()
    most = reading.most or len(workers)
    if len(workers) <= most and reading.tells_apart(cards):
        return tuple(workers)
    drawn = Random(f"{shown.seed} {question_id} cards").sample(range(len(workers)), len(workers))
    first = {opening(cards[at]): at for at in reversed(drawn) if reading.knows(cards[at])}
    ranked = sorted(drawn, key=lambda at: at not in first.values())
    kept = frozenset(ranked[:most])
    return tuple(workers[at] for at in drawn if at in kept)


def opening(card: str) -> str:
    """Return the word that a card opens with.

    >>> opening("Looks up facts about elements.")
    'Looks'
    """
    return " ".join(card.split()[:1]).rstrip(".,:;")


def checked(shown: Shown, workers: int) -> int:
    """Return how many of a pool's workers are shown at most; UserError where there are fewer."""
    if shown.k is None or shown.k == "random":
        return workers
    if not 1 <= shown.k <= workers:
        raise UserError(
            f"shown={shown.k} of a pool with {workers} workers: take 1 to {workers}, or random."
        )
    return shown.k


def shown_of(shown: int | str, order: str, seed: int) -> Shown:
    """Return what solver arguments say: `all`, `random` or a number; UserError for anything else.

    `order` is `pool` or `random`.
    """
    if order not in ("pool", "random"):
        raise UserError(f"order is pool or random, not {order!r}.")
    if shown == "all":
        return Shown(None, order, seed)
    if shown == "random":
        return Shown("random", order, seed)
    if isinstance(shown, bool) or not isinstance(shown, int) or shown < 1:
        raise UserError(f"shown is all, random or a number of workers, not {shown!r}.")
    return Shown(shown, order, seed)
