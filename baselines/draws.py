"""Random numbers of one sample: from the system, the seed, the question and the epoch alone.

A resumed run repeats them. The system is part of it, so that two controls of one run do not draw
alike: a mixture's aggregator is not the worker that `random-worker` happened to ask.
"""

from random import Random


def draws(system: str, seed: int, question: str, epoch: int) -> Random:
    """Return the random numbers of one system on one sample.

    >>> draws("a", 0, "q", 1).random() == draws("a", 0, "q", 1).random()
    True
    >>> draws("a", 0, "q", 1).random() == draws("b", 0, "q", 1).random()
    False
    """
    return Random(f"{system}/{seed}/{question}/{epoch}")
