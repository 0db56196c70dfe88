"""Workers that are language models: four specialists on SmolLM2-135M-Instruct, and a conductor.

On a GPU:               python tests/benchmarks/real_workers.py --out DIR --device cuda
On a CPU, tiny sizes:   python tests/benchmarks/real_workers.py --out DIR --rehearse

Four stages, of which each is kept when it ends: `tune` fine-tunes four adapters on practice train
splits (what a rehearsal program without slips writes for them is what is learnt) and merges them;
`pool` writes DIR/local.toml, whose workers Inspect's own `hf` provider runs in one batched process;
`conduct` trains a conductor on it; `exams` asks everyone, and makes the table. No reply is scripted
once the workers are tuned. Needs torch, transformers, accelerate, peft, trl and the smollm extra.
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from inspect_ai.model import ChatMessage

from podium.conductor.base_model import base_folder
from podium.harness.execute import messages
from podium.harness.records import Question, Reply
from podium.harness.workflow import Step
from podium.suites import SUITES
from podium.suites.practice.workers.provider import respond
from podium.suites.practice.workers.workers import find_worker

INTEGER, CHOICE, CODE, COMPOSED = (
    f"practice-{kind}" for kind in ("integer", "choice", "code", "composed")
)
PRACTICE = (INTEGER, CHOICE, CODE, COMPOSED)
REAL = ("aime25", "gpqa-diamond", "livecodebench", "humaneval")
SYSTEMS = ("single", "best-single", "random-worker", "random-workflow", "moa-lite")


@dataclass(frozen=True, slots=True)
class Lesson:
    """Train questions of a suite, and whose reply a specialist may read before its own."""

    suite: str
    after: str = ""


@dataclass(frozen=True, slots=True)
class Specialist:
    """A worker: the program whose replies it learns, what it learns on, and its card."""

    name: str
    program: str
    lessons: tuple[Lesson, ...]
    card: str


SPECIALISTS = (
    Specialist("facts", "scholar", (Lesson(CHOICE), Lesson(COMPOSED)),
               "Looks up facts about elements, planets and units. Does not compute."),
    Specialist("arithmetic", "abacus", (Lesson(INTEGER), Lesson(COMPOSED, "scholar")),
               "Careful with arithmetic and number theory, also with facts that others found."),
    Specialist("programs", "scribe", (Lesson(CODE),), "Writes Python programs."),
    Specialist("checking", "verifier", (Lesson(INTEGER, "swift"), Lesson(COMPOSED, "sage")),
               "Checks the work of others: recomputes and corrects it."),
)  # fmt: skip


def lesson_rows(one: Specialist, limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield prompts and completions as chats; who is read slips as usual, who teaches does not."""
    for lesson in one.lessons:
        for question in SUITES[lesson.suite].load("train")[:limit]:
            turns = _asked(question, lesson, one.program)
            said = respond(find_worker(one.program), turns, Random(question.id), 0.0)
            prompt = [{"role": turn.role, "content": turn.text} for turn in turns]
            yield {"prompt": prompt, "completion": [{"role": "assistant", "content": said}]}


def _asked(question: Question, lesson: Lesson, program: str) -> list[ChatMessage]:
    if not lesson.after:
        return messages(question, Step(program), [])
    first = Step(lesson.after)
    before = respond(
        find_worker(lesson.after), messages(question, first, []), Random(question.id), 1.0
    )
    return messages(
        question, Step(program, reads="all"), [(first, Reply(lesson.after, before, None))]
    )


def tune(one: Specialist, given: argparse.Namespace, folder: Path) -> str:
    """Fine-tune a specialist's adapters and write the merged model; return what it came to."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    base = str(base_folder())
    rows = Dataset.from_list([*lesson_rows(one, given.train)])
    settings: Any = SFTConfig(
        output_dir=str(folder.with_name(f"{folder.name}-steps")),
        per_device_train_batch_size=given.batch,
        num_train_epochs=given.epochs,
        max_steps=given.tune_steps,
        learning_rate=2e-4,
        lr_scheduler_type="cosine",
        warmup_steps=5,
        max_length=1024,
        completion_only_loss=True,
        bf16=given.device == "cuda",
        use_cpu=given.device == "cpu",
        logging_steps=2,
        gradient_checkpointing=given.device == "cuda",
        save_strategy="no",
        report_to=[],
        seed=given.seed,
    )
    trainer: Any = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(base, dtype="float32"),
        args=settings,
        train_dataset=rows,
        processing_class=AutoTokenizer.from_pretrained(base),
        peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"),
    )
    trainer.train()
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    merged = trainer.model.merge_and_unload()
    part = folder.with_name(f"{folder.name}.part")
    merged.save_pretrained(part)
    trainer.processing_class.save_pretrained(part)
    part.rename(folder)
    loss = f"loss {losses[0]:.3f} to {losses[-1]:.3f}"
    return f"{one.name}: {len(rows)} rows, {trainer.state.global_step} steps, {loss}"


def pool_text(given: argparse.Namespace) -> str:
    """Return the pool: a specialist is a folder of weights that the `hf` provider loads."""
    lines = ['name = "local"', 'label = "live"', 'prices = "none"',
             'description = "Four specialists on SmolLM2-135M-Instruct, run here."']  # fmt: skip
    for one in SPECIALISTS:
        lines += [
            "",
            "[[workers]]",
            f'name = "{one.name}"',
            f'model = "hf/{one.name}"',
            f'card = "{one.card}"',
            'not_auditable = "it runs here, and nobody sells it by the token"',
            f"config = {{ temperature = 1.0, max_tokens = {given.tokens}, max_connections = 32 }}",
            f'args = {{ model_path = "{given.out / one.name}", device = "{given.device}" }}',
        ]
    return "\n".join(lines) + "\n"


def podium(*words: str) -> None:
    """Run one command of podium; CalledProcessError where it fails."""
    env = {"OMP_NUM_THREADS": "1", **os.environ, "HF_HUB_OFFLINE": "1"}  # workers are folders
    subprocess.run([sys.executable, "-m", "podium", *words], check=True, env=env)


def conduct(given: argparse.Namespace) -> None:
    """Train the half-million-weight conductor on the pool, or go on with that."""
    out, pool = given.out / "conductor", given.out / "local.toml"
    again = ["--resume"] if (out / "manifest.json").is_file() else []
    settings = [f"pool.name={pool}", f"grpo.max_steps={given.steps}", *given.set]
    words = [word for one in settings for word in ("--set", one)]
    podium("train", "practice-cpu", "--out", f"{out}", "--seed", f"{given.seed}", *words, *again)


def exams(given: argparse.Namespace, suites: Sequence[str]) -> None:
    """Ask everyone the suites, and write the table."""
    logs = given.out / "logs"
    systems = (f"conductor@{given.out / 'conductor' / 'best'}", *SYSTEMS)
    podium(
        "run", *(word for one in suites for word in ("--suite", one)),
        *(word for one in systems for word in ("--system", one)),
        "--pool", f"{given.out / 'local.toml'}", "--train-on", INTEGER,
        "--train-calls", f"{given.calls}", "--log-dir", f"{logs}", "--display", "none", "--yes",
        *(["--limit", f"{given.limit}"] if given.limit else []),
    )  # fmt: skip
    podium("report", f"{logs}", "--out", f"{given.out / 'report'}")


TINY: dict[str, Any] = {
    "train": 8, "tune_steps": 6, "batch": 4, "tokens": 48, "steps": 1, "limit": 2, "calls": 8,
    "set": [
        "warm_start.steps=40", "grpo.num_generations=4", "grpo.per_device_train_batch_size=8",
        "validation.questions=2", "grpo.warmup_steps=1",
    ],
}  # fmt: skip
FULL: dict[str, Any] = {
    "train": None, "tune_steps": -1, "batch": 16, "tokens": 320, "steps": 120, "limit": None,
    "calls": 160, "set": [],
}  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    """Run the stages that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rehearse", action="store_true", help="tiny sizes: it says nothing")
    parser.add_argument("--suites", nargs="+", default=[*PRACTICE, *REAL])
    parser.add_argument("--epochs", type=int, default=3, help="of the specialists' lessons")
    parser.add_argument("--seed", type=int, default=0)
    for name, value in FULL.items():
        kind = str if name == "set" else int
        more: dict[str, Any] = {"action": "append"} if name == "set" else {}
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help=f"({value})", **more)
    given = parser.parse_args(words)
    for name, value in (TINY if given.rehearse else FULL).items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    given.out = given.out.resolve()
    given.out.mkdir(parents=True, exist_ok=True)
    began = monotonic()
    for one in SPECIALISTS:
        if not (given.out / one.name).is_dir():
            print(
                f"{tune(one, given, given.out / one.name)}, {monotonic() - began:.0f} s", flush=True
            )
    (given.out / "local.toml").write_text(pool_text(given))
    conduct(given)
    print(f"conductor: {monotonic() - began:.0f} s", flush=True)
    exams(given, given.suites)
    print(f"exams: {monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
