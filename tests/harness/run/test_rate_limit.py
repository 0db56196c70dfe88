"""Turns are spread evenly over a minute, for whoever is limited."""

import anyio
from hypothesis import given
from hypothesis import strategies as st

from podium.harness.parallel import MINUTE_S, RateLimiter


def test_calls_of_one_worker_are_spread_over_the_minute_and_others_do_not_wait() -> None:
    now, waited = 0.0, list[tuple[str, float]]()

    async def run() -> None:
        for worker in ("ada", "ada", "ada", "bo", "cy", "cy"):

            async def sleep(seconds: float, worker: str = worker) -> None:
                waited.append((worker, seconds))

            pace.sleep = sleep
            await pace.turn(worker)

    pace = RateLimiter({"ada": 20, "bo": 20}, clock=lambda: now)
    anyio.run(run)
    assert waited == [("ada", 3.0), ("ada", 6.0)]
    now = 100.0
    waited.clear()
    anyio.run(run)
    assert waited == [("ada", 3.0), ("ada", 6.0)]


STEPS = st.lists(st.tuples(st.floats(0, 50), st.integers(1, 40)), min_size=1, max_size=30)


@given(STEPS, st.integers(1, 600))
def test_no_minute_has_more_turns_than_it_may_and_none_is_given_far_ahead(
    steps: list[tuple[float, int]], rpm: int
) -> None:
    now, begun = 0.0, list[float]()
    limiter = RateLimiter({"a": rpm}, clock=lambda: now)
    for passed, calls in steps:
        now += passed
        waits = limiter.reserve("a", calls, 2.0)
        assert all(0 <= wait_s <= 2.0 for wait_s in waits)
        begun += [now + wait_s for wait_s in waits]
    assert begun == sorted(begun)
    for first, later in zip(begun, begun[rpm:], strict=False):
        assert later - first >= MINUTE_S - 1e-6
