"""Every planned question is in exactly one shard, whatever the rows cost."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from podium.harness.shards.plan import MOST_QUERIES, PlannedRow, cut

ROWS = st.lists(
    st.builds(
        lambda first, size, cost, epochs: (first, first + size, cost, epochs),
        st.integers(0, 50),
        st.integers(1, 300),
        st.floats(1e-6, 1e3),
        st.sampled_from([1, 3, 100, 3000]),
    ),
    min_size=1,
    max_size=6,
)


def planned(rows: list[tuple[int, int, float, int]]) -> list[PlannedRow]:
    return [PlannedRow(f"s x{at}", "s", *row) for at, row in enumerate(rows)]


@given(ROWS, st.integers(1, 40))
def test_every_question_is_in_exactly_one_shard(
    made: list[tuple[int, int, float, int]], shards: int
) -> None:
    rows = planned(made)
    wanted = Counter((row.entry, at) for row in rows for at in range(row.first, row.last))
    found = cut(rows, shards, first=7)
    parts = [part for shard in found for part in shard.parts]
    assert Counter((one.entry, at) for one in parts for at in range(one.first, one.last)) == wanted
    assert all(shard.parts for shard in found)
    assert len(found) >= min(shards, wanted.total())
    assert [shard.name for shard in found] == [f"{7 + at:04d}" for at in range(len(found))]


@given(ROWS, st.integers(1, 5))
def test_a_shard_has_no_more_queries_than_it_may_unless_one_question_has(
    made: list[tuple[int, int, float, int]], shards: int
) -> None:
    rows = planned(made)
    epochs = {row.entry: row.epochs for row in rows}
    for shard in cut(rows, shards):
        sizes = [one.last - one.first for one in shard.parts]
        asked = [epochs[one.entry] * size for one, size in zip(shard.parts, sizes, strict=True)]
        assert sum(asked) <= MOST_QUERIES or sum(sizes) == 1


def test_shards_cost_about_the_same() -> None:
    rows = [PlannedRow("s a", "s", 0, 90, 1.0), PlannedRow("s b", "s", 0, 10, 9.0)]
    costs = {"s a": 1.0, "s b": 9.0}
    found = [
        sum(costs[one.entry] * (one.last - one.first) for one in shard.parts)
        for shard in cut(rows, 6)
    ]
    assert max(found) <= 180 / 6 + 9
    assert min(found) >= 180 / 6 - 9
