"""Merkle trees over byte strings, hashed as RFC 6962 (section 2.1) hashes them.

Leaves and inner nodes are hashed with different first bytes, so that no inner node can be passed
off as a leaf. What the leaves of a run are is harness/integrity/manifest.py.
"""

import hashlib
from collections.abc import Sequence

EMPTY = hashlib.sha256(b"").digest()
"""The root of a tree without leaves."""


def leaf(data: bytes) -> bytes:
    """Return the digest of a leaf."""
    return hashlib.sha256(b"\x00" + data).digest()


def node(left: bytes, right: bytes) -> bytes:
    """Return the digest of an inner node over the digests of its two halves."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """Return the root over digests of leaves, in their order.

    The left half of every subtree has the largest power of two of leaves that leaves something to
    the right: the same tree as pairing neighbours level by level and lifting the odd one.
    """
    level = list(leaves)
    while len(level) > 1:
        paired = [node(*level[at : at + 2]) for at in range(0, len(level) - 1, 2)]
        level = [*paired, level[-1]] if len(level) % 2 else paired
    return level[0] if level else EMPTY
