"""A hidden state of a local transformers model as features: the only file here that needs torch.

TRINITY reads the state at the penultimate token that its 0.6B model writes; the text is thrown
away. Weights come from a folder on this machine and are never fetched. The model runs in this
process: no provider bills it, and the ledger does not know its tokens.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from baselines.calling.coordinator import transcript
from baselines.calling.turns import Turn
from harness.errors import UserError
from harness.learning.matrix import Floats
from harness.records import Question

WRITES = 8
"""Tokens that are written to get to a penultimate one; the paper does not say how many."""
READS = 4096
"""Tokens of the transcript that are read: the last ones."""


class HiddenState:
    """The last layer's state at the penultimate written token, scaled to length 1."""

    def __init__(self, path: str) -> None:
        """Load a model and its tokenizer; UserError without torch or without such a folder."""
        try:
            import torch  # pyright: ignore[reportMissingImports]
            import transformers  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise UserError(
                "features=hf:PATH needs torch and transformers: pip install '.[train]'."
            ) from None
        if not (Path(path) / "config.json").is_file():
            raise UserError(f"There is no transformers model at {path}: it has no config.json.")
        loading: Any = transformers
        self._torch: Any = torch
        self._tokens: Any = loading.AutoTokenizer.from_pretrained(path, local_files_only=True)
        model: Any = loading.AutoModelForCausalLM.from_pretrained(path, local_files_only=True)
        self._model: Any = model.eval()

    @property
    def dims(self) -> int:
        """The model's hidden size."""
        return int(self._model.config.hidden_size)

    def __call__(self, question: Question, turns: Sequence[Turn]) -> Floats:
        """Return the state; greedy, so that the same transcript has the same features."""
        read = self._tokens(transcript(question, turns), return_tensors="pt")["input_ids"]
        read = read[:, -READS:]
        with self._torch.no_grad():
            written = self._model.generate(
                read,
                attention_mask=self._torch.ones_like(read),
                max_new_tokens=WRITES,
                min_new_tokens=WRITES,
                do_sample=False,
                output_hidden_states=True,
                return_dict_in_generate=True,
                pad_token_id=0,
            )
        state = written.hidden_states[-1][-1][0, -1]  # what the last step read: the one before last
        found = np.asarray(state.float().tolist(), dtype=np.float64)
        return found / (float(np.linalg.norm(found)) or 1.0)
