"""Each private method of TRL that is replaced is there, in the release that is installed."""

import inspect
from importlib.metadata import version
from typing import Any

import pytest

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
pytest.importorskip("torch", reason=WHY)
trl: Any = pytest.importorskip("trl", reason=WHY)

from podium.conductor.training.trl_adapter import TrlAdapter  # noqa: E402 - it needs torch

REPLACED = {
    "_generate": ("write_plans", ("prompts",)),
    "_generate_single_turn": ("write_turn", ("prompt_ids",)),
    "_generate_and_score_completions": ("write_and_score", ("inputs",)),
    "_save_checkpoint": ("save_step", ("model", "trial")),
}
"""The method of TRL 1.16, ours, and the parameters that both begin with."""


def test_the_release_is_one_that_the_adapter_is_written_for() -> None:
    assert version("trl").startswith("1.16.")


@pytest.mark.parametrize(("theirs", "ours", "given"), [(a, *b) for a, b in REPLACED.items()])
def test_trl_1_16_has_the_method_and_its_parameters(
    theirs: str, ours: str, given: tuple[str, ...]
) -> None:
    parameters = [*inspect.signature(getattr(trl.GRPOTrainer, theirs)).parameters][1:]
    assert tuple(parameters[: len(given)]) == given
    own = [*inspect.signature(getattr(TrlAdapter, ours)).parameters][1:]
    assert tuple(own[: len(given)]) == given


@pytest.mark.parametrize("theirs", REPLACED)
def test_trl_1_16_calls_the_method_and_ours_stands_in_for_it(theirs: str) -> None:
    calls = [inspect.getsource(one) for one in trl.GRPOTrainer.__mro__ if one is not object]
    assert any(f"self.{theirs}(" in source for source in calls)
    ours, given = REPLACED[theirs]

    class Replaced(TrlAdapter):
        def __init__(self) -> None:
            pass

    setattr(Replaced, ours, lambda self, *asked: asked)
    assert getattr(Replaced(), theirs)(*given) == (None if ours == "save_step" else given)


def test_nothing_else_of_trl_is_replaced() -> None:
    private = {name for name in vars(TrlAdapter) if name[0] == "_" and name[1] != "_"}
    assert private == {*REPLACED}
