"""Merkle trees: RFC 6962's shape, and a root that changes with every leaf."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from podium.harness.ledger.manifest import EMPTY_ROOT, leaf, node, root

leaves = st.lists(st.binary(max_size=8), min_size=1, max_size=40).map(
    lambda parts: [leaf(part) for part in parts]
)


def by_definition(parts: list[bytes]) -> bytes:
    """Return the root as RFC 6962, section 2.1 defines it: split at the largest power of two."""
    if len(parts) == 1:
        return parts[0]
    at = 1
    while at * 2 < len(parts):
        at *= 2
    return node(by_definition(parts[:at]), by_definition(parts[at:]))


def test_a_tree_without_leaves_has_the_digest_of_nothing() -> None:
    assert root([]) == EMPTY_ROOT == hashlib.sha256(b"").digest()


def test_the_root_of_two_known_leaves_is_the_one_that_other_tools_compute() -> None:
    # printf '\x00' | sha256sum, and the same for the inner node
    assert leaf(b"").hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    pair = hashlib.sha256(b"\x01" + leaf(b"") + leaf(b"\x00")).digest()
    assert root([leaf(b""), leaf(b"\x00")]) == pair


def test_a_leaf_and_an_inner_node_of_the_same_bytes_differ() -> None:
    left, right = leaf(b"a"), leaf(b"b")
    assert leaf(left + right) != node(left, right)


@given(leaves)
def test_the_root_is_that_of_the_definition(parts: list[bytes]) -> None:
    assert root(parts) == by_definition(parts)


@given(leaves, st.data())
def test_every_change_to_the_leaves_changes_the_root(
    parts: list[bytes], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(parts) - 1))
    edited = [*parts[:at], leaf(b"another leaf"), *parts[at + 1 :]]
    inserted = [*parts[:at], leaf(b"another leaf"), *parts[at:]]
    deleted = [*parts[:at], *parts[at + 1 :]]
    turned = [*parts[at:], *parts[:at]]
    changed = [edited, inserted, deleted, *([turned] if turned != parts else [])]
    assert root(parts) not in [root(one) for one in changed]
