"""Dynamic sampling: what stands in for groups that teach nothing, and what memory errors say."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conductor.training.tiny_training import lines, tiny_config, trained_here

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
torch: Any = pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)

from podium.conductor.training.grpo_options import Resampling, join_groups, split_groups  # noqa: E402
from podium.conductor.training.train import memory_said  # noqa: E402
from podium.conductor.training.training_rows import TrainingRow  # noqa: E402
from podium.harness.errors import UserError  # noqa: E402
from podium.harness.rewards.trainers import Prompt  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch's libraries warn of is theirs

SIZES = {"group": 2, "questions": 2, "accumulate": 1, "parts": 1}
PAD = 9


class Words:
    """Prompts that nobody reads."""

    def messages(self, row: TrainingRow) -> list[dict[str, str]]:
        return [{"role": "user", "content": row.question}]


@dataclass
class Scripted:
    """Writes plans as long as their question's number, of which only some teach."""

    teach: frozenset[str]
    asked: list[list[str]] = field(default_factory=list[list[str]])
    constant: frozenset[Prompt] = frozenset()

    def scored(self, inputs: Sequence[Any]) -> dict[str, Any]:
        names = [one["question"] for one in inputs]
        self.asked.append(names)
        dull = (name for name in names if name not in self.teach)
        self.constant = frozenset(Prompt("s", name, 1, (), "") for name in dull)
        n, wide = len(names), max(int(name) for name in names)
        ids = torch.full((n, wide), PAD)
        for at, name in enumerate(names):
            ids[at, : int(name)] = int(name)
        mask = (ids != PAD).long()
        return {
            "prompt_ids": ids.flip(1),
            "prompt_mask": mask.flip(1),
            "completion_ids": ids,
            "completion_mask": mask,
            "advantages": torch.tensor([float(name) for name in names]),
            "num_items_in_batch": mask.sum(),
        }


def inputs(*names: str) -> list[Any]:
    return [TrainingRow("s", name).as_columns() for name in names for _ in range(2)]


def rounds(count: int, *names: str) -> Resampling:
    words: Any = Words()
    return Resampling([TrainingRow("s", name) for name in names], words, SIZES, count, PAD)


def test_groups_that_teach_come_first_and_others_fill_the_batch() -> None:
    writes = Scripted(frozenset({"2", "5"}))
    made = rounds(1, "4", "5")
    batch = made.learnt_from(writes, inputs("3", "2"), step=0)
    assert writes.asked == [["3", "3", "2", "2"], ["4", "4"]]
    assert batch["advantages"].tolist() == [2, 2, 3, 3]
    assert made.said["informative"] == 0.5
    assert made.said["resampled"] == pytest.approx(1 / 3)


def test_rounds_go_on_until_every_group_teaches_and_ask_no_question_twice() -> None:
    writes = Scripted(frozenset({"2", "5"}))
    batch = rounds(2, "3", "4", "4", "5").learnt_from(writes, inputs("3", "2"), step=0)
    assert writes.asked[1:] == [["4", "4"], ["5", "5"]]
    assert batch["advantages"].tolist() == [2, 2, 5, 5]
    assert batch["completion_ids"][0].tolist() == [2, 2, PAD, PAD, PAD]
    assert batch["prompt_ids"][0].tolist() == [PAD, PAD, PAD, 2, 2]
    assert batch["num_items_in_batch"] == 2 + 2 + 5 + 5


def test_a_resumed_training_meets_the_questions_of_its_step() -> None:
    spare = [str(n) for n in range(4, 12)]
    one, two = Scripted(frozenset()), Scripted(frozenset())
    going = rounds(1, *spare)
    for step in range(3):
        going.learnt_from(one, inputs("3", "2"), step)
    rounds(1, *spare).learnt_from(two, inputs("3", "2"), 2)
    assert one.asked[-1] == two.asked[-1] == ["8", "8", "9", "9"]


def test_a_batch_divided_into_groups_and_joined_again_is_the_same() -> None:
    made = Scripted(frozenset()).scored(inputs("3", "2", "7"))
    again = join_groups(split_groups(made, 2), PAD)
    assert all(torch.equal(made[name], again[name]) for name in made)


def test_a_training_with_dynamic_sampling_says_what_it_came_to(tmp_path: Path) -> None:
    words = ("reward.resample=2", "grpo.max_steps=2", "warm_start.steps=60", "run.save_every=2")
    out = tmp_path / "run"
    trained_here(tiny_config(tmp_path), out, *(w for one in words for w in ("--set", one)))
    for line in lines(out)[1:]:
        assert 0 <= line["informative"] <= 1
        assert 0 <= line["resampled"] <= 2 / 3
    plans = (out / "plans.jsonl").read_text().splitlines()
    shares = [line["resampled"] for line in lines(out)[1:]]
    assert len(plans) == round(sum(16 / (1 - share) for share in shares))


def test_memory_that_there_is_not_is_one_sentence_that_says_what_to_lower() -> None:
    said = "this machine: lower per_device_train_batch_size"
    with pytest.raises(UserError, match=said), memory_said():
        torch.empty(1 << 56)
