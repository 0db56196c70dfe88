"""Merkle trees over byte strings, hashed as RFC 6962 (section 2.1) hashes them.

Leaves and inner nodes are hashed with different first bytes, so that no inner node can be passed
off as a leaf. A proof of about log2(n) digests shows that one leaf belongs to a published root.
What the leaves of a run are is harness/integrity/manifest.py.
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


def proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the digests that lead from one leaf to the root, lowest first; IndexError if none."""
    if not 0 <= index < len(leaves):
        raise IndexError(f"there is no leaf {index} among {len(leaves)}")
    path: list[bytes] = []
    level = list(leaves)
    while len(level) > 1:
        beside = index ^ 1
        if beside < len(level):
            path.append(level[beside])
        paired = [node(*level[at : at + 2]) for at in range(0, len(level) - 1, 2)]
        level = [*paired, level[-1]] if len(level) % 2 else paired
        index //= 2
    return path


def root_of(proven: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root that a proof leads to; None for a path of the wrong length.

    Args:
        proven: the leaf's digest.
        index: its place, from 0.
        size: how many leaves the tree has.
        path: what `proof` returned.
    """
    left = list(path)
    found, last = proven, size - 1
    if not 0 <= index <= last:
        return None
    while last:
        if index % 2 or index < last:
            if not left:
                return None
            beside = left.pop(0)
            found = node(beside, found) if index % 2 else node(found, beside)
        index, last = index // 2, last // 2
    return None if left else found
