"""The same exam in inspect-evals and in podium, on the same replies: where do verdicts differ?

    PYTHONPATH=. PODIUM_DATA=../shared/data python tests/benchmarks/same_exams.py [--exam NAME]

Needs the extra `evals`. Data of the hub are files of the same form, made of those that lie below
PODIUM_DATA; GPQA's are the authors' own, in memory only. AIME's replies are of four real models;
letters stand in twelve forms; programs are the authors' own in five forms, run in a box.
"""

import argparse
import csv
import gzip
import io
import json
import os
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
from inspect_ai import Task, task_with
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver._task_state import sample_state
from inspect_ai.util import ExecResult, SandboxEnvironment, sandboxenv

from podium.harness.records import Question
from podium.sandbox import open_box
from podium.sandbox.box import Limits, Program
from podium.suites import SUITES
from podium.suites.base import choice_question
from podium.suites.gpqa_diamond import MEMBER, PASSWORD

DATA = Path(os.environ.get("PODIUM_DATA", "../shared/data")).absolute()
MEMORY = Path("/dev/shm")
LETTERS = "ABCD"
FORMS: Mapping[str, str] = {
    "ANSWER: B": "So.\n\nANSWER: {0}",
    "Answer: B": "So.\n\nAnswer: {0}",
    "**Answer: B**": "So.\n\n**Answer: {0}**",
    "Answer: B) text": "So.\n\nAnswer: {0}) {1}",
    "ANSWER: (B)": "So.\n\nANSWER: ({0})",
    "box": "So.\n\n\\boxed{{{0}}}",
    "the answer is B": "So the answer is {0}.",
    "the correct answer is **B. text**": "So the correct answer is **{0}. {1}**.",
    "B alone": "{0}",
    "ANSWER: B, and a line": "ANSWER: {0}\n\nI am confident in this.",
    "two lines, the last counts": "ANSWER: {2}\nNo, I was wrong.\nANSWER: {0}",
    "ANSWER: B or C": "ANSWER: {0} or {2}",
}
"""How replies to a choice end: right letter, its option, a wrong letter."""
PROGRAMS: Mapping[str, Callable[[str, str], str]] = {
    "whole function, fenced": lambda head, body: f"```python\n{head}{body}\n```",
    "fenced, then a usage": lambda head, body: (
        f"```python\n{head}{body}\n```\nUse it so:\n```python\nprint(1)\n```"
    ),
    "bare code": lambda head, body: f"{head}{body}",
    "prose, then fenced": lambda head, body: f"Here it is:\n```python\n{head}{body}\n```\nDone.",
    "no program": lambda head, body: "I cannot write this.",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A reply to a question of both."""

    sample: Sample
    question: Question
    form: str
    reply: str


def forms_of(sample: Sample) -> Iterator[Asked]:
    """Yield replies that name the right letter in each form."""
    options = list(map(str, sample.choices or ()))
    place = LETTERS.index(str(sample.target))
    question = choice_question(str(sample.id), str(sample.input), options, place)
    other = LETTERS[(place + 1) % len(options)]
    for form, text in FORMS.items():
        yield Asked(sample, question, form, text.format(LETTERS[place], options[place], other))


def programs_of(sample: Sample, question: Question, head: str, body: str) -> Iterator[Asked]:
    """Yield the authors' own program in each form."""
    for form, make in PROGRAMS.items():
        yield Asked(sample, question, form, make(head, body))


class BoxEnvironment(SandboxEnvironment):
    """A sandbox of Inspect's that runs `python -c` in a box of podium's."""

    @classmethod
    async def sample_init(cls, task_name: str, config: Any, metadata: dict[str, str]) -> Any:
        """Return one environment, which keeps nothing."""
        return {"default": cls()}

    @classmethod
    async def sample_cleanup(
        cls, task_name: str, config: Any, environments: Any, interrupted: bool
    ) -> None:
        """Do nothing: each program has a clean box."""

    async def exec(self, cmd: list[str], *_: Any, **__: Any) -> ExecResult[str]:
        """Run a program, `python -c PROGRAM`."""
        return await anyio.to_thread.run_sync(partial(_run, Program(cmd[2])))

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Refuse: no verdict of these exams needs a file."""
        raise NotImplementedError

    async def read_file(self, *_: Any, **__: Any) -> Any:
        """Refuse."""
        raise NotImplementedError


OPEN: list[Any] = []


def _run(program: Program) -> ExecResult[str]:
    (outcome,) = OPEN[0].run(program, [b""], Limits(wall_s=30.0))
    fine = outcome.status == "exited" and outcome.exit_code == 0
    return ExecResult(fine, outcome.exit_code, "", outcome.stderr.decode(errors="replace"))


@sandboxenv(name="podium_box")
def podium_box() -> type[SandboxEnvironment]:
    """Register the box with Inspect."""
    return BoxEnvironment


def theirs(task: Task, asked: Sequence[Asked], logs: Path) -> list[float]:
    """Return what the task's own solver and scorer make of each reply."""
    samples = [
        one.sample.model_copy(update={"id": f"{at}"}, deep=True) for at, one in enumerate(asked)
    ]

    def answer(*_: Any) -> ModelOutput:
        state = sample_state()
        assert state is not None
        output = ModelOutput.from_content("mockllm", asked[int(state.sample_id)].reply)
        output.usage = ModelUsage(total_tokens=1)  # else Inspect downloads a tokenizer's table
        return output

    if task.sandbox:
        task = task_with(task, sandbox="podium_box")
    task = task_with(task, dataset=MemoryDataset(samples), epochs=1)
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    (log,) = inspect_eval(task, model=model, log_dir=str(logs), display="none", max_samples=2)
    assert log.status == "success", log.error
    values: dict[int, float] = {}
    for sample in log.samples or ():
        (score,) = (sample.scores or {}).values()
        values[int(sample.id)] = float(score.value == "C")
    return [values[at] for at in range(len(asked))]


def ours(suite: str, asked: Sequence[Asked]) -> list[float]:
    """Return what podium's suite makes of each reply."""
    found = SUITES[suite]
    boxed = (OPEN[0],) if found.needs_box else ()
    return [found.grade(one.question, one.reply, *boxed).value for one in asked]


def rows(path: str) -> list[dict[str, Any]]:
    """Return the rows of a file below PODIUM_DATA."""
    whole = (DATA / path).read_bytes()
    text = gzip.decompress(whole) if path.endswith(".gz") else whole
    return [json.loads(line) for line in text.decode().splitlines()]


def put(folder: str, files: Mapping[str, Iterable[Mapping[str, Any]]], config: str = "") -> None:
    """Write files as a data set of the hub has them, at a path that its loader takes for it."""
    home = Path(folder)
    home.mkdir(parents=True)
    for split, lines in files.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (home / f"{split}.jsonl").write_text(text, encoding="utf-8")
    splits = "".join(f"  - split: {one}\n    path: {one}.jsonl\n" for one in files)
    names = [
        f"- config_name: {one}\n  data_files:\n{splits}" for one in config.split() or ["default"]
    ]
    (home / "README.md").write_text(f"---\nconfigs:\n{''.join(names)}---\n", encoding="utf-8")


def task_of(package: str, name: str) -> Task:
    """Return a task of inspect-evals, which is imported once its folders are there."""
    return getattr(import_module(f"inspect_evals.{package}"), name)()


def aime2025() -> tuple[Task, list[Asked]]:
    """AIME 2025: 120 replies of four real models."""
    problems = {one.id: one for one in SUITES["aime25"].load()}
    put("math-ai/aime25", {"test": [
        {"id": id, "problem": one.text, "answer": one.target} for id, one in problems.items()
    ]})  # fmt: skip
    made = task_of("aime2025", "aime2025")
    samples = {str(one.id): one for one in made.dataset}
    replies = rows("saturn_lighteval/aime25_4models.jsonl.gz")
    asked = [
        Asked(samples[id], problems[id], one["model"], one["output"])
        for one in replies
        if (id := one["problem_id"]) in problems
    ]
    return made, asked


def gpqa_diamond() -> tuple[Task, list[Asked]]:
    """GPQA-Diamond, the authors' own file."""
    made = task_of("gpqa", "gpqa_diamond")
    return made, [asked for one in made.dataset for asked in forms_of(one)]


def mmlu() -> tuple[Task, list[Asked]]:
    """MMLU: 200 questions of the test split."""
    lines: list[Mapping[str, Any]] = []
    with zipfile.ZipFile(DATA / "mmlu" / "mmlu_llamafactory.zip") as archive:
        for name in sorted(archive.namelist()):
            if name.startswith("data/test/") and name.endswith("_test.csv"):
                subject = Path(name).stem.removesuffix("_test")
                said = csv.reader(io.StringIO(archive.read(name).decode()))
                lines += [
                    {"question": asked, "choices": options, "answer": "ABCD".index(letter),
                     "subject": subject}
                    for asked, *options, letter in said
                ]  # fmt: skip
    put("cais/mmlu", {"test": lines}, "all")
    made = task_of("mmlu", "mmlu_0_shot")
    return made, [asked for one in [*made.dataset][:200] for asked in forms_of(one)]


def humaneval() -> tuple[Task, list[Asked]]:
    """HumanEval: the authors' own programs."""
    problems = {one["task_id"]: one for one in rows("humaneval_mbpp/HumanEval.jsonl.gz")}
    put("openai/openai_humaneval", {"test": problems.values()})
    made, known = (
        task_of("humaneval", "humaneval"),
        {one.id: one for one in SUITES["humaneval"].load()},
    )
    asked: list[Asked] = []
    for sample in made.dataset:
        row = problems[str(sample.id)]
        question = known[str(sample.id)]
        asked += programs_of(sample, question, row["prompt"], row["canonical_solution"])
    return made, asked


def mbpp() -> tuple[Task, list[Asked]]:
    """MBPP: the authors' own programs for the first hundred questions."""
    known = {one.id: one for one in SUITES["mbpp"].load()}
    more = {"source_file": "", "test_imports": list[str]()}
    problems = {
        one["task_id"]: {**one, "prompt": one["text"], **more}
        for one in rows("humaneval_mbpp/mbpp.jsonl.gz")
    }
    here = [row for id, row in problems.items() if f"mbpp-{id}" in known][:100]
    shots = [problems[n] for n in (2, 3, 4)]
    put("google-research-datasets/mbpp", {"test": here, "prompt": shots}, "full sanitized")
    made = task_of("mbpp", "mbpp")
    asked: list[Asked] = []
    for sample in made.dataset:
        code = problems[sample.id]["code"].replace("\r\n", "\n")
        asked += programs_of(sample, known[f"mbpp-{sample.id}"], "", code)
    return made, asked


EXAMS: Mapping[str, tuple[str, Callable[[], tuple[Task, list[Asked]]]]] = {
    "aime2025": ("aime25", aime2025),
    "gpqa_diamond": ("gpqa-diamond", gpqa_diamond),
    "mmlu_0_shot": ("mmlu", mmlu),
    "humaneval": ("humaneval", humaneval),
    "mbpp": ("mbpp", mbpp),
}


@contextmanager
def prepared() -> Iterator[Path]:
    """Yield a folder in memory that is the working folder and holds GPQA's file, until it ends."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as scratch:
        home = Path(scratch)
        os.environ |= {"INSPECT_EVALS_CACHE_DIR": scratch, "HF_HOME": f"{scratch}/hub"}
        (home / "gpqa").mkdir()
        with zipfile.ZipFile(DATA / "gpqa" / "gpqa_official_dataset.zip") as archive:
            questions = archive.read(MEMBER, PASSWORD.encode())
        (home / "gpqa" / "gpqa_diamond.csv").write_bytes(questions)
        with chdir(home):
            yield home


def table(names: Sequence[str]) -> Iterator[str]:
    """Yield a Markdown table: by exam and form, how many are right there, here, and differ."""
    yield "| exam | replies | n | inspect-evals right | podium right | differ |"
    yield "|---|---|---|---|---|---|"
    with prepared() as home:
        for name in names:
            suite, make = EXAMS[name]
            task, asked = make()
            pairs = zip(asked, theirs(task, asked, home / "logs"), ours(suite, asked), strict=True)
            counts: dict[str, Counter[str]] = {}
            for one, there, here in pairs:
                count = counts.setdefault(one.form, Counter())
                count.update(n=1, there=int(there), here=int(here), differ=int(there != here))
            for form, count in counts.items():
                figures = " | ".join(str(count[key]) for key in ("n", "there", "here", "differ"))
                yield f"| {name} | {form} | {figures} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Compare verdicts of inspect-evals and podium.")
    parser.add_argument("--exam", action="append", choices=EXAMS)
    parser.add_argument("--box", default="bwrap")
    chosen = parser.parse_args()
    OPEN.append(open_box(chosen.box))
    try:
        for line in table(chosen.exam or [*EXAMS]):
            print(line, flush=True)
    finally:
        OPEN.pop().close()


if __name__ == "__main__":
    main()
