"""What a graded answer is when answers are counted: equal for what means the same, and no text.

Reading a reply for its answer is harness/extract.py; what the majority gets is reports/derived.py.
"""

import hashlib
from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any, cast

DIGITS = 16
"""So many of a digest's digits tell answers to one question apart."""


def vote(metadata: Mapping[str, Any], answer: object) -> str | None:
    """Return a digest of what a grader found in a reply; None when it found nothing.

    A letter stands for another option in another epoch, so options are counted by their place in
    the alphabet (the `permutation` in a sample's metadata). None where that cannot be had, as in a
    log without texts.
    """
    if answer is None or answer == "":
        return None
    said = str(answer).rstrip()
    places = _permutation(metadata)
    if places is not None:
        at = ascii_uppercase.find(said) if len(said) == 1 else -1
        if not 0 <= at < len(places):
            return None
        said = f"option {places[at]}"
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:DIGITS]


def _permutation(metadata: Mapping[str, Any]) -> list[int] | None:
    """Return which option stood at each letter, as the sample's own epoch asked it."""
    for key in ("asked", "question"):  # a later epoch's own order comes first
        facts: object = metadata.get(key)
        if isinstance(facts, Mapping) and "permutation" in facts:
            return list(cast(Mapping[str, Any], facts)["permutation"])
    return None
