"""Does a pretrained model's reading of a question tell who will be right? Recorded verdicts only.

    python tests/benchmarks/verdict_features.py embed FOLDER --minilm DIR [--smollm DIR]
    PYTHONPATH=. python tests/benchmarks/verdict_features.py route FOLDER [--seeds 0 1 2]

`embed` needs torch and transformers: the mean token vector of all-MiniLM-L6-v2 over a whole text,
in windows of 256 tokens (DIR: its unpacked model), and SmolLM2-135M's last hidden state, at the
last token and on average (DIR: the folder of its GGUF). Vectors are kept by the text's digest, no
text is. `route` judges every router on each of them beside TF-IDF, and a policy over them that
GRPO taught, out of time and out of fold, against the best single model that the rest chose.
"""

import argparse
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from podium.baselines.route_eval import RouterField, evaluate_routers, split_matrix
from podium.baselines.routers import Embedder, Estimates, Examples, TfIdf, unit_rows
from podium.baselines.routers.router_systems import ROUTERS
from podium.baselines.verdict_data import SourceRequest
from podium.baselines.verdict_sources import read_matrix
from podium.harness.learning import Arrays, Floats, Matrix, mean_known
from podium.reports.routes import route_rows
from podium.suites.data import data_folder
from podium.suites.gpqa_diamond import GpqaDiamond

SETS = (
    ("lcb-leaderboard", "date:0.3"),
    ("lcb-leaderboard", "folds:5"),
    ("gpqa-verdicts", "folds:5"),
)
WINDOW = 256
LONGEST = 2048  # tokens of a text that SmolLM2 reads; two problems have more


def matrix_of(source: str) -> Matrix:
    """Return a source's verdicts, its texts in memory only."""
    return read_matrix(source, SourceRequest(data_folder(), gpqa=GpqaDiamond().load)).whole()


def digest(text: str) -> str:
    """Return what a vector is kept under."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """An embedder that was run before."""

    name: str
    rows: dict[str, Floats]

    def fit(self, texts: Sequence[str]) -> Arrays:
        """Return mean and deviation of each dimension over the train texts."""
        found = np.array([self.rows[digest(text)] for text in texts])
        return {"mean": found.mean(axis=0), "deviation": found.std(axis=0) + 1e-6}

    def embed(self, fitted: Arrays, texts: Sequence[str]) -> Floats:
        """Return rows of length 1, each dimension standardised."""
        found = np.array([self.rows[digest(text)] for text in texts])
        return unit_rows((found - fitted["mean"]) / fitted["deviation"])[0]


@dataclass(frozen=True, slots=True)
class GrpoRouter:
    """A linear softmax policy over features, taught by GRPO on the recorded verdicts.

    Groups of 8 draws a question; a draw's advantage is its verdict less its group's mean, in the
    group's deviations. The step with the most right on a fifth of what teaches is kept.
    """

    name: str = "router-grpo"
    group: int = 8
    steps: int = 300
    rate: float = 0.05
    decay: float = 1e-3

    def fit(self, examples: Examples, seed: int) -> Arrays:
        """Return the weights, the worker that is best on average favoured at the start."""
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(examples.embeddings))
        held, taught = rows[: len(rows) // 5], rows[len(rows) // 5 :]
        inputs, scores = _with_one(examples.embeddings), examples.scores
        weights = np.zeros((inputs.shape[1], scores.shape[1]))
        weights[-1] = 3 * (scores[taught].mean(axis=0) - scores[taught].mean())
        means = [np.zeros_like(weights), np.zeros_like(weights)]
        best, kept = -1.0, weights.copy()
        for step in range(1, self.steps + 1):
            gradient = self._gradient(rng, weights, inputs[taught], scores[taught])
            gradient -= self.decay * weights
            means[0] = 0.9 * means[0] + 0.1 * gradient
            means[1] = 0.999 * means[1] + 0.001 * gradient**2
            steady = np.sqrt(means[1] / (1 - 0.999**step)) + 1e-8
            weights += self.rate * means[0] / (1 - 0.9**step) / steady
            chosen = (inputs[held] @ weights).argmax(axis=1)
            if (right := scores[held, chosen].mean()) > best:
                best, kept = right, weights.copy()
        return {"weights": kept, "usd": mean_known(examples.usd)}

    def _gradient(
        self, rng: np.random.Generator, weights: Floats, inputs: Floats, scores: Floats
    ) -> Floats:
        share = _softmax(inputs @ weights)
        draws = (share.cumsum(axis=1)[:, None, :] < rng.random((len(inputs), self.group, 1))).sum(2)
        draws = np.minimum(draws, scores.shape[1] - 1)
        worth = np.take_along_axis(scores, draws, axis=1)
        gain = (worth - worth.mean(axis=1, keepdims=True)) / (
            worth.std(axis=1, keepdims=True) + 1e-4
        )
        pull = -gain.sum(axis=1, keepdims=True) * share
        for number in range(self.group):
            pull[np.arange(len(inputs)), draws[:, number]] += gain[:, number]
        return inputs.T @ pull / (len(inputs) * self.group)

    def estimate(self, fitted: Arrays, embeddings: Floats) -> Estimates:
        """Return the policy's shares, as what it expects."""
        shares = _softmax(_with_one(embeddings) @ fitted["weights"])
        return Estimates(shares, np.broadcast_to(fitted["usd"], shares.shape))


def _with_one(rows: Floats) -> Floats:
    return np.concatenate([rows, np.ones((len(rows), 1))], axis=1)


def _softmax(values: Floats) -> Floats:
    raised = np.exp(values - values.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def embed(folder: Path, minilm: Path | None, smollm: Path | None) -> None:
    """Write the vectors of every question, a file for each way to read it."""
    texts = {
        digest(one.text): one.text for source, _ in SETS for one in matrix_of(source).questions
    }
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Any]] = {}
    for at, text in enumerate(texts.values()):
        read = [
            *(_minilm(minilm, text) if minilm else ()),
            *(_smollm(smollm, text) if smollm else ()),
        ]
        for name, row in read:
            found.setdefault(name, []).append(row)
        if at % 100 == 0:
            print(f"{at} of {len(texts)}", flush=True)
    for name, rows in found.items():
        np.savez(folder / f"{name}.npz", keys=np.array([*texts]), rows=np.array(rows, np.float32))


_LOADED: dict[Path, Any] = {}


def _minilm(folder: Path, text: str) -> Iterator[tuple[str, Any]]:
    import torch  # pyright: ignore[reportMissingImports]
    from transformers import AutoModel, AutoTokenizer  # pyright: ignore[reportMissingImports]

    if folder not in _LOADED:
        _LOADED[folder] = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    tokenizer, model = _LOADED[folder]
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    parts = [ids[at : at + WINDOW - 2] for at in range(0, len(ids), WINDOW - 2)]
    ends = tokenizer.cls_token_id, tokenizer.sep_token_id
    with torch.inference_mode():
        rows = [
            model(torch.tensor([[ends[0], *one, ends[1]]])).last_hidden_state[0] for one in parts
        ]
    yield "minilm", torch.cat(rows).mean(0).numpy()


def _smollm(folder: Path, text: str) -> Iterator[tuple[str, Any]]:
    import torch  # pyright: ignore[reportMissingImports]
    from transformers import AutoModelForCausalLM, AutoTokenizer  # pyright: ignore[reportMissingImports]

    if folder not in _LOADED:
        file = next(folder.glob("*.gguf")).name
        _LOADED[folder] = (
            AutoTokenizer.from_pretrained(folder, gguf_file=file),
            AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32).model,
        )
    tokenizer, model = _LOADED[folder]
    ids = tokenizer(text, return_tensors="pt")["input_ids"][:, :LONGEST]
    with torch.inference_mode():
        states = model(ids).last_hidden_state[0]
    yield "smollm-last", states[-1].numpy()
    yield "smollm-mean", states.mean(0).numpy()


def route(folder: Path, seeds: Sequence[int]) -> None:
    """Print each router's difference to the best single model, by source, features and seed."""
    stored = {
        path.stem: dict(zip(kept["keys"].tolist(), kept["rows"].astype(np.float64), strict=True))
        for path in sorted(folder.glob("*.npz"))
        for kept in [np.load(path)]
    }
    embedders: list[Embedder] = [TfIdf(), *(StoredVectors(*one) for one in stored.items())]
    for source, how in SETS:
        matrix = matrix_of(source)
        for embedder in embedders:
            for seed in seeds:
                routers = [GrpoRouter(), *(one() for one in ROUTERS.values())]
                field = RouterField(routers, embedder, seed)
                found = evaluate_routers(matrix, split_matrix(matrix, how, seed), field)
                rows = route_rows(found)
                for row in (
                    one for one in rows if one.kind == "router" or one.system == found.oracle
                ):
                    said = [_said(row.difference, row.difference_low, row.difference_high)]
                    said += [row.verdict, f"{row.p_holm}"]
                    said.append(_said(row.hindsight, row.hindsight_low, row.hindsight_high))
                    what = [source, how, embedder.name, f"{seed}", row.system]
                    print("\t".join([*what, f"{100 * row.accuracy:.1f}", *said]), flush=True)


def _said(middle: float | None, low: float | None, high: float | None) -> str:
    if middle is None or low is None or high is None:
        return "-"
    return f"{100 * middle:+.1f} [{100 * low:+.1f},{100 * high:+.1f}]"


def main() -> None:
    """Embed, or route on what was embedded."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["embed", "route"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minilm", type=Path)
    parser.add_argument("--smollm", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    args = parser.parse_args()
    if args.what == "embed":
        embed(args.folder, args.minilm, args.smollm)
    else:
        route(args.folder, args.seeds)


if __name__ == "__main__":
    main()
