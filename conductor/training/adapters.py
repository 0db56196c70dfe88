"""Low-rank adapters become whole weights, which every server and the embedded decoder can read.

Training them is TRL's (grpo.py, with settings.lora_config).
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

import shutil
from pathlib import Path
from typing import Any

KEPT = "adapter"


def merge(base: Any, folder: Path) -> None:
    """Write `base` with a folder's adapters merged into it; they move to its folder adapter/.

    What stands in the way of a second try is written last: a merge that broke off is made again.
    """
    from peft import PeftModel

    merged = PeftModel.from_pretrained(base, str(folder)).merge_and_unload()
    merged.save_pretrained(folder)
    kept = folder / KEPT
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        (folder / name).rename(kept / name)
