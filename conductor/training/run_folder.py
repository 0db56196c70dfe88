"""A training's folder: its manifest, a line per step, and what a resumed run must find again.

Beside the files named here it holds TRL's checkpoints, first rounds, and every call in ledger/.
"""

import hashlib
import json
import resource
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from conductor.checkpoint import MANIFEST
from conductor.training.config import TrainingConfig
from conductor.training.grpo_options import CHECKPOINTS, is_main
from conductor.training.job import TrainingJob
from harness.errors import UserError
from harness.files import replace_file
from harness.suite import moved_versions

METRICS = "metrics.jsonl"  # a line per step; with `validation` where one was made
PLANS = "plans.jsonl"  # what was planned; texts only where every suite's may be published
WARM = "warm_start.jsonl"
START, BEST, LAST = "start", "best", "last"

PINNED = (
    *("podium", "torch", "transformers", "trl", "accelerate", "peft", "vllm", "datasets"),
    *("tokenizers", "inspect-ai", "numpy"),
)

FREE = (
    *("run.save_every", "run.keep", "run.tensorboard", "run.threads", "title", "name"),
    *("reward.max_usd", "reward.concurrency", "reward.rpm"),
)  # of a configuration that is resumed: it changes no step
SHAPE = ("architectures", "hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
CPU = "cpu.jsonl"


def job_manifest(training: TrainingJob) -> dict[str, Any]:
    """Return what a run's manifest says; plain JSON values."""
    config, spec, book, versions = training.config, training.spec, training.book, dict[str, str]()
    for name in PINNED:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "schema": 1,
        "config": config.model_dump(mode="json"),
        "seed": config.run.seed,
        "reward": config.reward.name,
        "pool": {
            "name": spec.name,
            "label": spec.label,
            "sha256": spec.sha256,
            "workers": list(spec.names),
            "cards_sha256": _sha256_of(json.dumps([one.card for one in spec.workers])),
        },
        "prices": {"name": book.name, "date": book.date, "sha256": book.sha256},
        "data": {name: _data(training, name) for name in training.splits},
        "questions_left_out": training.left_out,
        "versions": versions,
        "code_revision": code_revision(),
    }


def _data(training: TrainingJob, name: str) -> dict[str, Any]:
    suite, asked = training.splits[name].suite, training.splits[name].questions
    held = training.held_out[name].questions
    return {
        "version": suite.version,
        "data_revision": suite.data_revision,
        "publishable": suite.publishable,
        "train_questions": len(asked),
        "train_ids_sha256": _sha256_of("\n".join(asked)),
        "validation_questions": len(held),
        "validation_ids_sha256": _sha256_of("\n".join(held)),
    }


def _sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def code_revision() -> str:
    """Return the commit of this checkout, `+` when it has changes; empty where there is none."""
    root = Path(__file__).parents[2]

    def git(*words: str) -> str:
        command = ["git", "-C", str(root), *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("rev-parse", "HEAD")
    if not commit or git("rev-parse", "--show-toplevel") != str(root):
        return ""
    return commit + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def prepare_folder(training: TrainingJob) -> Path:
    """Make the run folder or check the one to resume; UserError where neither will do."""
    out = training.request.out
    said = job_manifest(training)
    path = out / MANIFEST
    if not is_main():  # the first process has looked, or is about to
        return out
    if not path.is_file():
        if training.request.resume:
            raise UserError(f"There is nothing to resume in {out}: it has no {MANIFEST}.")
        if out.exists() and any(out.iterdir()):
            raise UserError(f"{out} is there already and no training: name another with --out.")
        write_json(path, said)
        return out
    if not training.request.resume:
        raise UserError(f"{out} holds a training already: --resume goes on, or name another --out.")
    before = json.loads(path.read_text())
    refuse_moved_graders(before, said)
    refuse_changed({**before, "config": config_of(before).model_dump(mode="json")}, said)
    return out


def refuse_moved_graders(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise UserError where a manifest's graders are not those that would reward from now on."""
    here = graders_in(now)
    then = {name: version for name, version in graders_in(before).items() if name in here}
    if unknown := [name for name, version in then.items() if not version]:
        raise UserError(
            f"This training's manifest does not say which version of {', '.join(unknown)} rewarded "
            "it, and two graders are two rewards: begin anew with --out."
        )
    if what := moved_versions(then, here):
        raise UserError(
            f"This training was rewarded by {what}, and two graders are two rewards: resume it "
            f"with {_podium_of(before)}, or begin anew with --out."
        )


def graders_in(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the version of each suite's grader by a manifest; empty where that says none."""
    return {name: one.get("version") or "" for name, one in manifest.get("data", {}).items()}


def _podium_of(manifest: Mapping[str, Any]) -> str:
    version = manifest.get("versions", {}).get("podium")
    commit = manifest.get("code_revision")
    found = f"podium {version}" if version else "the podium that it began with"
    return f"{found} (commit {commit[:12]})" if commit else found


def refuse_changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise UserError, naming the first field, when a resumed run is not the one that began."""
    for key in ("config", "pool", "prices", "data"):
        old, new = flatten(before.get(key), key), flatten(now.get(key), key)
        for name in sorted({*old, *new}):
            plain = name.removeprefix("config.")
            if plain in FREE and key == "config":
                continue
            if old.get(name) != new.get(name):
                said = f"{plain} = {old.get(name)!r}, not {new.get(name)!r}: resume it as it began"
                if plain.endswith("sha256"):
                    said = _another(plain, before)
                raise UserError(f"This run began with {said}, or begin anew with --out.")


def _another(name: str, before: Mapping[str, Any]) -> str:
    kind, _, rest = name.partition(".")
    if kind == "data":
        suite, _, which = rest.rpartition(".")
        which = which.removesuffix("_ids_sha256")
        return f"other {which} questions of suite {suite!r}: put its data back as they were"
    what = {"pool": "pool", "prices": "price book"}.get(kind, kind)
    part = "its workers' cards" if "cards" in rest else "the file"
    named = before.get(kind, {}).get("name", "")
    return f"another {what} {named!r}, whose file was edited since: put {part} back"


def flatten(value: Any, prefix: str) -> dict[str, Any]:
    """Return nested tables as one, with dotted names."""
    if not isinstance(value, dict):
        return {prefix: value}
    found: dict[str, Any] = {}
    for key, inner in cast("dict[str, Any]", value).items():
        found |= flatten(inner, f"{prefix}.{key}")
    return found


def write_json(path: Path, value: Any) -> None:
    """Write JSON so that a reader finds the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    said = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    replace_file(path, f"{said}\n".encode())


def append_line(path: Path, value: Mapping[str, Any]) -> None:
    """Add one JSON object to a file of lines."""
    with path.open("a") as file:
        file.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of lines; a last line that was cut short is left out."""
    if not path.is_file():
        return []
    found: list[dict[str, Any]] = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return found


def rewind_lines(path: Path, step: int) -> list[dict[str, Any]]:
    """Drop the lines after a step, which a resumed run writes anew; return those that stay."""
    kept = [line for line in read_lines(path) if line["step"] <= step]
    if path.is_file():
        lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in kept)
        replace_file(path, "".join(lines).encode())
    return kept


def newest_checkpoint(out: Path) -> Path | None:
    """Return the newest whole checkpoint; a killed run may have left half of a newer one."""
    found = (out / CHECKPOINTS).glob("checkpoint-*")
    whole = [one for one in found if (one / "trainer_state.json").is_file()]
    return max(whole, key=lambda one: int(one.name.rpartition("-")[2]), default=None)


def refuse_foreign_checkpoint(checkpoint: Path, shape: Mapping[str, Any], tokens: int) -> None:
    """Raise UserError for a checkpoint of another architecture or tokenizer than is trained."""
    path = checkpoint / "config.json"
    if not path.is_file():
        return
    said = json.loads(path.read_text())
    for name in SHAPE:
        if said.get(name) != shape.get(name):
            raise UserError(
                f"{checkpoint} is of another model: its {name} is {said.get(name)!r}, and this "
                f"training's {shape.get(name)!r}. Restore the checkpoint, or begin anew with --out."
            )
    found = json.loads((checkpoint / "tokenizer.json").read_text())
    known = len(found["model"]["vocab"])
    extra = sum(one["content"] not in found["model"]["vocab"] for one in found["added_tokens"])
    if known + extra != tokens:
        raise UserError(
            f"{checkpoint} has another tokenizer, of {known + extra} tokens and not {tokens}. "
            "Restore the checkpoint, or begin anew with --out."
        )


def config_of(manifest: Mapping[str, Any]) -> TrainingConfig:
    """Return the configuration that a manifest holds."""
    return TrainingConfig.model_validate(manifest["config"])


class CpuClock:
    """Counts processor seconds, children's too; writes as soon as it is told where."""

    def __init__(self) -> None:
        """Begin to count."""
        self.folder: Path | None = None  # None until it is known to be this training's
        self._noted, self._step = _used(), 0

    def note(self, step: int | None = None) -> None:
        """Write what was used since the last time; without a step, as part of the latest one."""
        self._step = self._step if step is None else step
        spent = round(_used() - self._noted, 2)
        if self.folder and spent > 0:
            self._noted += spent
            append_line(self.folder / CPU, {"step": self._step, "cpu_s": spent})


def cpu_seconds(folder: Path) -> float | None:
    """Return what all sessions of a run have used; None where none has written it."""
    lines = read_lines(folder / CPU)
    return sum(line["cpu_s"] for line in lines) if lines else None


def peak_gib() -> float:
    """Return the most memory that this process has held so far, in GiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30, 3)


def _used() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)
