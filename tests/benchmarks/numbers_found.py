"""How sure a checkpoint is of the numbers in a plan, given all that stands before each of them.

    python tests/benchmarks/numbers_found.py runs/adaptive-0/start runs/adaptive-0/best

Fresh plans of the warm start's own kind (another seed) over the questions that teach, workers drawn
anew: for each place of a number, in the thought and in the list, the mean probability of the right
one. Chance is one in the workers shown. Needs the extra `train`.
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from podium.cli.list_commands import controls, whole_catalogue
from podium.conductor.training.config import read_config
from podium.conductor.training.job import find_job
from podium.conductor.training.training_rows import PlanCorpus

LIST, END = "model_id = [", "]"
Found = defaultdict[tuple[str, int], list[float]]


def plans(config_name: str, count: int) -> list[tuple[str, str]]:
    """Return prompts and plans of a configuration; none of the plans was in a warm start."""
    config = read_config(config_name)
    training = find_job(config, Path("unused"), whole_catalogue(), controls().bare, dry=True)
    shown = [training.prompts.shown(row) for row in training.rows(2000)]
    corpus = PlanCorpus(shown, config.form, config.warm_start.options, seed=10**6)
    rng = Random("numbers found")
    return [(one.prompt, corpus.plan(one, rng)) for one in rng.choices(shown, k=count)]


def probabilities(model: Any, tokenizer: Any, prompt: str, plan: str) -> Found:
    """Return the probability of each number of one plan, by where it stands."""
    import torch

    asked = tokenizer.encode(prompt)
    tokens = asked + tokenizer.encode(plan)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([tokens])).logits[0].float()
    sure, part, place, said = Found(list), "thought", 0, ""
    for at in range(len(asked), len(tokens)):
        word = tokenizer.decode([tokens[at]])
        if word.strip().isdigit():
            sure[part, place].append(float(logits[at - 1].softmax(-1)[tokens[at]]))
            place += 1
        said += word
        if part == "thought" and LIST in said:
            part, place = "list", 0
        elif part == "list" and END in said.rpartition(LIST)[2]:
            break
    return sure


def main(words: Sequence[str] | None = None) -> int:
    """Print a line per checkpoint."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoints", nargs="+", type=Path)
    parser.add_argument("--config", default="practice-cpu-adaptive")
    parser.add_argument("--plans", type=int, default=100)
    given = parser.parse_args(words)
    held = plans(given.config, given.plans)
    for folder in given.checkpoints:
        model: Any = AutoModelForCausalLM.from_pretrained(folder)
        tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        sure = Found(list)
        for prompt, plan in held:
            for key, values in probabilities(model, tokenizer, prompt, plan).items():
                sure[key] += values
        means = (f"{name} {at}: {sum(v) / len(v):.3f}" for (name, at), v in sorted(sure.items()))
        print(f"{folder}: {', '.join(means)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
