"""Embed a text without a model and without a fit: words and word pairs hashed into few numbers.

It is crude (no meaning, only shared words), and it is the same on every machine, so that a system
runs offline and its training can be repeated. Not here: embedders that learn (baselines/routing/).
"""

import re
from collections import Counter
from itertools import pairwise
from zlib import crc32

import numpy as np

from harness.learning.matrix import Floats

_WORD = re.compile(r"\w+|[^\w\s]")
SIGN = 1 << 31
"""The bit of a word's hash that decides its sign; the others decide where it counts."""


def hashed(text: str, dims: int) -> Floats:
    """Return `dims` numbers of length 1 for a text: signed, log-scaled counts of words and pairs.

    A text without words is all zeros.

    >>> hashed("2 + 2", 4).shape, float(hashed("a b", 8) @ hashed("A  b", 8)).__round__(6)
    ((4,), 1.0)
    """
    words = _WORD.findall(text.lower())
    counts = Counter([*words, *(f"{one} {two}" for one, two in pairwise(words))])
    found = np.zeros(dims)
    for word, count in counts.items():
        code = crc32(word.encode("utf-8", "surrogatepass"))
        found[(code & ~SIGN) % dims] += (1 if code & SIGN else -1) * (1 + np.log(count))
    length = float(np.linalg.norm(found))
    return found / length if length else found
