"""Where do our verdicts differ from those of inspect-evals' own scorers on the same replies?

    export PYTHONPATH=.
    python tests/benchmarks/agree_with_inspect_evals.py --python ENV/bin/python [--list]

ENV is an environment with `inspect-evals[math]` (0.26.0 was used): its scorers cannot be imported
here, where they would cost every process its start. Replies are the recorded ones of real models
(PODIUM_DATA) and the battery of tests/suites/corpus. `--list` names every reply on which the two
differ.
"""

import argparse
import gzip
import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podium.harness.records import Question
from podium.suites import SUITES
from podium.suites.data import data_folder, fetch_rows
from tests.suites.battery import KINDS, files, rows

THEIRS = Path(__file__).parent / "inspect_evals_scorers.py"
SCORERS = {
    "aime25": ("aime",),
    "math500": ("math", "math-sympy"),
    "gpqa-diamond": ("choice",),
    "mmlu": ("choice",),
}
OPTIONS = ["one", "two", "three", "four"]


@dataclass(frozen=True, slots=True)
class Row:
    """One reply, graded by us."""

    group: str
    suite: str
    name: str
    target: str
    reply: str
    ours: float
    found: str
    """The answer that we found in the reply; empty when there is none."""


def main() -> None:
    """Print a table of agreement, and with --list every difference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", required=True, help="an interpreter with inspect-evals[math]")
    parser.add_argument("--list", action="store_true", help="name every difference")
    args = parser.parse_args()
    rows = [*_recorded_aime(), *_recorded_math(), *_recorded_choices(), *_corpora()]
    asked = [(row, scorer) for row in rows for scorer in SCORERS[row.suite]]
    theirs = _theirs(args.python, asked)
    print(
        f"{'replies':<32} {'scorer':<11} {'n':>5} {'alike':>6} {'ours only':>10} {'theirs':>7} only"
    )
    for group, scorer in dict.fromkeys((row.group, scorer) for row, scorer in asked):
        pairs = [
            (row, said)
            for (row, used), said in zip(asked, theirs, strict=True)
            if (row.group, used) == (group, scorer)
        ]
        alike = sum((row.ours == 1) == (said == 1) for row, said in pairs)
        ours = [row for row, said in pairs if row.ours == 1 and said != 1]
        only = [row for row, said in pairs if row.ours != 1 and said == 1]
        print(
            f"{group:<32} {scorer:<11} {len(pairs):>5} {alike:>6} {len(ours):>10} {len(only):>12}"
        )
        for sign, differing in (("+", ours), ("-", only)) if args.list else ():
            for row in differing:
                print(f"    {sign} {row.name}: target {row.target!r}")


def _row(group: str, suite: str, name: str, case: dict[str, Any]) -> Row:
    question = Question(
        id="q",
        text="?",
        kind=KINDS[suite],
        target=case["target"],
        metadata={"choices": case.get("choices", OPTIONS)} if KINDS[suite] == "choice" else {},
    )
    grade = SUITES[suite].grade(question, case["reply"])
    return Row(
        group, suite, name, case["target"], case["reply"], grade.value, grade.extracted or ""
    )


def _read(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _recorded_aime() -> Iterator[Row]:
    for row in _read(data_folder() / "saturn_lighteval/aime25_4models.jsonl.gz"):
        case = {"target": row["gold"], "reply": row["output"]}
        yield _row("AIME25, 4 models", "aime25", f"{row['model']} {row['problem_id']}", case)


def _recorded_math() -> Iterator[Row]:
    known = {row["solution"]: row for row in fetch_rows("math500")}
    for row in _read(data_folder() / "saturn_lighteval/math500_1model.jsonl.gz"):
        question = known[row["gold"]]
        case = {"target": question["answer"], "reply": row["output"]}
        row = _row("MATH-500, R1-Distill-7B", "math500", question["unique_id"], case)
        yield row
        if row.found:  # their scorers read answer lines only: let them compare what we found
            group = "MATH-500, our finding as a line"
            yield replace(row, group=group, reply=f"ANSWER: {row.found}")


def _recorded_choices() -> Iterator[Row]:
    for model in ("claude-3-haiku-20240307", "gemini-2.0-flash-001"):
        for row in _read(data_folder() / f"routerarena_cached/{model}.jsonl.gz"):
            truth = str(row["evaluation_result"]["ground_truth"])
            if row["global_index"].startswith("MMLU_") and truth in ("0", "1", "2", "3"):
                case = {"target": "ABCD"[int(truth)], "reply": row["generated_answer"]}
                yield _row("MMLU, 2 models", "mmlu", f"{model} {row['global_index']}", case)


def _corpora() -> Iterator[Row]:
    for suite in SCORERS.keys() & {path.stem for path in files()}:
        for line, row in rows(suite):
            if not row.noise_kb:
                case = {"target": row.gold, "reply": row.reply, "choices": row.choices or OPTIONS}
                yield _row(f"corpus of {suite}", suite, f"line {line}, {row.why}", case)


def _theirs(python: str, asked: Iterable[tuple[Row, str]]) -> list[float]:
    lines = [
        json.dumps(
            {"scorer": scorer, "reply": row.reply, "target": row.target}
            | ({"choices": OPTIONS} if scorer == "choice" else {})
        )
        for row, scorer in asked
    ]
    done = subprocess.run(
        [python, str(THEIRS)], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    return [json.loads(line)["value"] for line in done.stdout.splitlines()]


if __name__ == "__main__":
    main()
