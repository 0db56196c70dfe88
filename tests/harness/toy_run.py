"""A toy exam over a real provider that writes down every call: for runs that fail, stop and resume.

`python toy.py LOG_DIR [options]` is one `podium run` in a process of its own, so that a test can
kill it. Each call is a `begin` and an `end` line in LOG_DIR.calls; files beside it steer the
provider: `LOG_DIR.slow` holds seconds to wait, `LOG_DIR.broken` names a question that fails.
"""

import argparse
import sys
from collections.abc import Sequence
from decimal import Decimal
from inspect import signature
from pathlib import Path
from typing import Any

import anyio
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from podium.baselines import SYSTEMS
from podium.baselines import _registry as solvers
from podium.baselines.oracle import make_plans
from podium.baselines.single import choose
from podium.harness.boxes import Boxes
from podium.harness.errors import UserError
from podium.harness.records import Grade, Question
from podium.harness.run.catalogue import Catalogue, RunRequest
from podium.harness.run.evaluate import Controls, RunOutcome
from podium.harness.run.run import run
from podium.harness.suite import Split
from podium.suites.practice.workers.drawing import draw_many
from tests.suites.toy_card import CARD

POOL = """
label = "{label}"
prices = "{prices}"
[[workers]]
name = "ada"
model = "toy/ada"
args = {{ notes = "{notes}" }}
config = {{ max_connections = {connections} }}
[[workers]]
name = "bob"
model = "toy/bob"
args = {{ notes = "{notes}" }}
config = {{ max_connections = {connections} }}
"""

PRICES = """
date = "2026-01-01"
source = "made up for a test"
[usd_per_mtok."toy/ada"]
input = "100"
output = "100"
[usd_per_mtok."toy/bob"]
input = "100"
output = "100"
"""


class ToyAPI(ModelAPI):
    """`ada` answers 42, `bob` answers 7; both write down what they were asked."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self.notes = str(model_args["notes"])

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        question = next(turn.text for turn in input if turn.role == "user").split()[1]
        self._note(f"begin {self.model_name} {question}")
        slow = Path(f"{self.notes}.slow")
        await anyio.sleep(float(slow.read_text()) if slow.exists() else 0)
        broken = Path(f"{self.notes}.broken")
        if broken.exists() and broken.read_text() == question:
            raise RuntimeError("the provider is down")
        self._note(f"end {self.model_name} {question}")
        output = ModelOutput.from_content(
            self.model_name, "42" if self.model_name == "ada" else "7"
        )
        output.usage = ModelUsage(input_tokens=60, output_tokens=40, total_tokens=100)
        return output

    def _note(self, line: str) -> None:
        with Path(f"{self.notes}.calls").open("a") as calls:
            calls.write(line + "\n")


@modelapi(name="toy")
def toy() -> type[ModelAPI]:
    """Register the provider with Inspect."""
    return ToyAPI


class Toy:
    """Twelve questions whose answer is 42; with a train split unless told otherwise."""

    name = "toy"
    data_revision = "toy"
    dates = "generated"
    publishable = True
    needs_box = False
    image = ""
    card = CARD

    def __init__(self, version: str = "1-A", splits: tuple[Split, ...] = ("train", "eval")) -> None:
        self.version = version
        self.splits = splits

    def load(self, split: Split = "eval") -> Sequence[Question]:
        return [
            Question(f"{split}-{n}", f"Question {split}-{n} is what?", "integer", "42")
            for n in range(12)
        ]

    def read_problems(self, path: Path) -> Sequence[Question]:
        raise UserError("its questions are generated: leave out --problems")

    def grade(self, question: Question, reply: str, box: object | None = None) -> Grade:
        if Path(f"{reply}.unreadable").exists():
            raise OSError("the disk is full")
        return Grade(float(reply == question.target), reply)


def toy_catalogue(suite: Toy | None = None, boxes: Boxes | None = None, *more: Toy) -> Catalogue:
    """Return the toy exam beside the real baselines, and `more` exams by their names."""

    def factory(name: str) -> Any:
        return getattr(solvers, name.partition("/")[2])

    return Catalogue(
        suites={one.name: one for one in (suite or Toy(), *more)},
        systems=SYSTEMS,
        solver=lambda name, args: factory(name)(**args),
        parameters=lambda name: signature(factory(name)).parameters,
        boxes=boxes or Boxes(lambda *_: None, lambda *_: None, lambda: ""),
        draw_pools=draw_many,
        ours=frozenset(SYSTEMS),
    )


def toy_pool(log_dir: Path, label: str = "live", connections: int = 4) -> Path:
    """Write the pool and its prices beside the log directory and return the pool file."""
    book = log_dir.with_name(f"{log_dir.name}-prices.toml")
    book.write_text(PRICES)
    path = log_dir.with_name(f"{log_dir.name}-pool.toml")
    path.write_text(POOL.format(label=label, prices=book, notes=log_dir, connections=connections))
    return path


CONTROLS = Controls(choose=choose, make_plans=make_plans, opened=lambda *_: None)


def toy_run(
    log_dir: Path,
    suite: Toy | None = None,
    boxes: Boxes | None = None,
    *,
    more: Sequence[Toy] = (),
    controls: Controls = CONTROLS,
    **changes: Any,
) -> RunOutcome:
    """Run the toy; `changes` go into the request, which may name `more` exams."""
    request = {
        "suites": ((suite or Toy()).name,),
        "systems": ("single:ada",),
        "pool": str(log_dir.with_name(f"{log_dir.name}-pool.toml")),
        "log_dir": log_dir,
        "display": "none",
    }
    return run(RunRequest(**{**request, **changes}), toy_catalogue(suite, boxes, *more), controls)


def calls(log_dir: Path, kind: str = "begin") -> list[str]:
    """Return what the provider wrote down: `worker question`, in order."""
    notes = Path(f"{log_dir}.calls")
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [line.partition(" ")[2] for line in lines if line.startswith(kind)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("log_dir", type=Path)
    parser.add_argument("--max-usd", type=Decimal)
    parser.add_argument("--system", action="append", default=[])
    parser.add_argument("--train-calls", type=int)
    parser.add_argument("--grace", type=float, default=20.0)
    asked = parser.parse_args()
    named = {"systems": tuple(asked.system)} if asked.system else {}
    learning = {"train_calls": asked.train_calls, "max_usd": asked.max_usd, "grace_s": asked.grace}
    sys.exit(0 if toy_run(asked.log_dir, **named, **learning).finished else 1)
