"""Who is examined, who judges, and the run they meet in: for tests of judged grading.

The judge is a scripted provider in the role `grader`; questions are made-up rows of RLPR's schema.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import Model, get_model

from podium.harness.pool_config import PoolSpec, read_pool
from podium.harness.records import PODIUM, Question
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.evaluate import Controls, RunOutcome
from podium.harness.run.run import run
from podium.suites.rlpr import Rlpr
from tests.harness.toy_run import choose, make_plans, toy_catalogue
from tests.providers.scripted import Heard, ReplyFunction, script
from tests.suites.test_rlpr import PROSE, folder, row

POOL = """\
label = "live"
prices = "prices.toml"

[[workers]]
name = "pupil"
model = "scripted/pupil"
"""


GRADER = """
[grader]
model = "scripted/judge"
"""


BOOK = """
date = "2026-01-01"
source = "made up for a test"
[usd_per_mtok."scripted/pupil"]
input = "1"
output = "1"
[usd_per_mtok."scripted/judge"]
input = "1000"
output = "1000"
"""


SAYS = "The pressure falls as one climbs, warm air rising."


ROWS = [row("What is 6 times 7?", "42"), row("What does pressure do?", PROSE)]


def pool_file(tmp_path: Path, text: str = POOL + GRADER) -> Path:
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "prices.toml").write_text(BOOK)
    path = tmp_path / "pool.toml"
    path.write_text(text)
    return path


def everything(data: Path) -> Rlpr:
    """Return the suite with all rows in one split, whatever their digests say."""
    return Whole(data=data)


@dataclass(frozen=True, slots=True)
class Whole(Rlpr):
    """All rows are the exam: two rows do not fill three splits."""

    def load(self, split: Any = "eval") -> Sequence[Question]:
        found = [question for one in self.splits for question in Rlpr.load(self, one)]
        return sorted(found, key=lambda question: question.target != "42")


def pupil(heard: Heard) -> str:
    return f"<think>Well.</think><answer>{'42' if 'times' in heard.last else SAYS}</answer>"


@dataclass(slots=True)
class Judge:
    """A judge that says the same to everything and remembers what it was asked."""

    says: str = "They agree. \\boxed{Y}"
    heard: list[Heard] = field(default_factory=list[Heard])

    def __call__(self, heard: Heard) -> str:
        self.heard.append(heard)
        if self.says == "down":
            raise RuntimeError("the judge's provider is down")
        return self.says


def ran(
    tmp_path: Path,
    judge: ReplyFunction,
    answer: ReplyFunction = pupil,
    rows: Sequence[dict[str, Any]] = ROWS,
    **changes: Any,
) -> tuple[Path, RunOutcome]:
    """Let the pupil sit all rows under `podium run`; return the log directory and how it ended."""
    script("pupil", answer)
    script("judge", judge)
    data, log_dir = tmp_path / "data", tmp_path / "logs"
    suite = everything(data if data.exists() else folder(tmp_path, [*rows]))
    asked = RunRequest(
        suites=("rlpr",),
        systems=("single:pupil",),
        pool=str(pool_file(tmp_path)),
        log_dir=log_dir,
        display="none",
        **changes,
    )
    controls = Controls(choose=choose, make_plans=make_plans, opened=lambda *_: None)
    return log_dir, run(asked, replace(toy_catalogue(), suites={"rlpr": suite}), controls)


def sat(
    tmp_path: Path, judge: ReplyFunction, answer: ReplyFunction = pupil, **changes: Any
) -> Path:
    """Let the pupil sit all rows, and return the log directory."""
    return ran(tmp_path, judge, answer, **changes)[0]


def log_of(log_dir: Path) -> EvalLog:
    return read_eval_log(str(max(log_dir.glob("*.eval"))))


def scores(log: EvalLog) -> dict[str, Any]:
    """Return the score of each sample by the kind of its reference."""
    return {
        "42" if sample.target == "42" else "prose": (sample.scores or {})[PODIUM]
        for sample in log.samples or []
    }


def spec_of(tmp_path: Path, text: str = POOL) -> PoolSpec:
    return read_pool(str(pool_file(tmp_path, text)))


def model(name: str, reply: ReplyFunction) -> Model:
    return get_model(script(name, reply), memoize=False)


def many(tmp_path: Path) -> str:
    """Return a data folder whose eval split holds prose and numbers."""
    prose = [row(f"What does thing {n} do?", f"{PROSE} {n}") for n in range(8)]
    return str(folder(tmp_path, [*prose, *(row(f"Say {n}", str(n)) for n in range(12))]))


def scored(log: EvalLog) -> list[Any]:
    return [(sample.scores or {})[PODIUM] for sample in log.samples or []]
