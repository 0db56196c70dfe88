"""A checkpoint as a model repository of the Hugging Face Hub: files, and a card that it reads."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard

from podium.conductor import checkpoint
from podium.conductor.training.model_card import KEPT
from podium.harness.errors import UserError
from podium.harness.files import refuse_unwritable

CARD = "README.md"
RESULTS = ".eval_results"
LOG = "log"  # of every seed, as the card of a release says
DATASET = re.compile(r"([\w.-]+/[\w.-]+)@")
BASE = f"HuggingFaceTB/{checkpoint.BASE}"
ABOUT: Mapping[str, Any] = {"library_name": "transformers", "pipeline_tag": "text-generation"}


def write_model(folder: Path, out: Path, results: str, files: Mapping[str, str]) -> None:
    """Write a checkpoint's files, its card with `results`, and what the Hub reads of `files`."""
    if out.exists() or out.is_symlink():
        raise UserError(f"{out} exists already, and nothing is overwritten: name another --out.")
    about = checkpoint.read_info(folder)
    if not (folder / CARD).is_file():
        raise UserError(f"{folder} has no {CARD}: name a checkpoint that `podium train` wrote.")
    card = hub_card(folder, about, results)
    refuse_unwritable(out, "--out")
    out.mkdir(parents=True)
    kept = {*KEPT, checkpoint.WEIGHTS, checkpoint.ADAPTERS, checkpoint.ADAPTED, checkpoint.STUDY}
    for path in folder.iterdir():
        if path.name in kept:
            shutil.copyfile(path, out / path.name)
    if (folder / LOG).is_dir():
        shutil.copytree(folder / LOG, out / LOG)
    (out / CARD).write_text(card, encoding="utf-8")
    if files:
        (out / RESULTS).mkdir()
    for name, content in files.items():
        (out / RESULTS / name).write_text(content, encoding="utf-8")


def hub_card(folder: Path, about: checkpoint.CheckpointInfo, results: str) -> str:
    """Return the checkpoint's own card with what the Hub asks of one, and its results."""
    card = ModelCard((folder / CARD).read_text(encoding="utf-8"))
    told = dict(ABOUT)
    if folder.parent == checkpoint.RELEASED:
        told["license"] = "apache-2.0"  # ours; of other weights their owner says it
    if checkpoint.stands_on_base(folder):
        told |= {"base_model": BASE, "library_name": "peft"}
    if taught := [found[1] for one in about.data.values() if (found := DATASET.match(one))]:
        told["datasets"] = sorted(set(taught))
    for name, value in told.items():
        card.data[name] = value
    card.text = f"{card.text.rstrip()}\n\n## Results\n\n{results}"
    return str(card)
