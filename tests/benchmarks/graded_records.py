r"""Do our grades agree with the verdicts recorded beside real replies, and what did a change move?

    PYTHONPATH=. python tests/benchmarks/graded_records.py [--differences]
    PYTHONPATH=. python tests/benchmarks/graded_records.py --against CHECKOUT
    PYTHONPATH=. python tests/benchmarks/graded_records.py --rows ROWS.jsonl
    PYTHONPATH=. python tests/benchmarks/graded_records.py --json > VERDICTS
    PYTHONPATH=. python tests/benchmarks/graded_records.py --peers [--rows ROWS.jsonl]

Sets: AIME25 (four models) and MATH-500 with lighteval's verdicts, ARC's letters in RouterBench,
letters, numbers and words in RouterArena. A question that is no row of a suite of ours is made up
for its grader. `--differences` prints the end of each reply whose grades differ, never of a set
whose text may not be shown; `--against` grades with another checkout's graders too, and
prints every reply whose grade changed; it also takes a file of verdicts that `--json` printed on
the same rows. `--rows` adds replies of one's own: a JSON object a line with suite, gold, reply and
right, perhaps set, id and choices. Rows of suites that run programs are left out. `--peers` prints
confusion tables by suite, beside math-verify and Inspect's own scorers (graders_judges.py).
"""

import argparse
import ast
import csv
import gzip
import json
import os
import re
import string
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from podium.harness.errors import UserError
from podium.harness.model_judge import JudgeError
from podium.harness.records import Kind, Question
from podium.suites import SUITES
from podium.suites.aime25 import AIME25
from podium.suites.data import data_folder, local_rows
from podium.suites.math500 import MATH500_ALL
from podium.suites.rlpr import reference_kind

SHOWN = 400
"""Characters of a reply, its end."""
KINDS: dict[str, Kind] = {"aime25": "integer", "math500": "text", "gpqa-diamond": "choice"}
OPTION = re.compile(r"^([A-P])\s*[.)]\s*(.*)$", re.M)


@dataclass(frozen=True, slots=True)
class Record:
    """A real reply with the verdict on record."""

    set: str
    id: str
    suite: str
    gold: str
    reply: str
    right: bool
    choices: tuple[str, ...] = ()

    def question(self) -> Question:
        """Return a question with this key, of the suite's kind."""
        metadata = {"choices": [*self.choices]} if self.choices else {}
        kind = KINDS.get(self.suite, "text")
        return Question(self.id, "?", kind, self.gold, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a grader said of a record."""

    right: bool
    said: str | None
    seconds: float


# --- sets ---------------------------------------------------------------------------------------


def saturn(name: str, suite: str) -> Iterator[Record]:
    """Yield real replies to AIME25 or MATH-500, by lighteval's extractive match."""
    asked = AIME25 if name == "aime25" else MATH500_ALL
    by_id = {one.id: one for one in asked.load()}
    by_text = {one.text.partition("\n\n")[2]: one for one in by_id.values()}
    for row in local_rows(f"recorded-{name}"):
        text = (row["prompt"] or "").partition("\n\n")[2].strip()
        question = by_id.get(row["problem_id"]) or by_text[text]
        yield Record(
            set=f"{name}, {suite}" if suite != name else name,
            id=f"{row['model']} {question.id}",
            suite=suite,
            gold=question.target or "",
            reply=row["output"],
            right=row["metric"] == 1.0,
        )


def arc() -> Iterator[Record]:
    """Yield RouterBench's replies to ARC, the key being what replies of a letter score 1 with."""
    csv.field_size_limit(10**9)
    for part in ("test", "train"):
        file = data_folder() / f"routerbench_zs/arc_challenge_{part}.csv.gz"
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                yield from of_arc(row)


def of_arc(row: Mapping[str, str]) -> Iterator[Record]:
    """Yield eleven models' replies to one question."""
    models = [name.partition("|")[0] for name in row if name.endswith("|model_response")]
    said = {model: response(row[f"{model}|model_response"]) for model in models}
    right = {said[m].strip() for m in models if row[m] == "1.0" and len(said[m].strip()) == 1}
    if len(right) != 1:
        return
    (gold,) = right
    asked = row["prompt"].replace("\\n", "\n").rpartition("\n\n")[2]
    choices = tuple(text for _, text in OPTION.findall(asked))
    for model in models:
        if row[model]:
            yield Record(
                set="RouterBench, ARC",
                id=f"{model} {row['sample_id']}",
                suite="gpqa-diamond",
                gold=gold,
                reply=said[model],
                right=row[model] == "1.0",
                choices=choices,
            )


def response(cell: str) -> str:
    """Return the text in a cell: a list of one string, in Python's spelling."""
    try:
        return str(ast.literal_eval(cell)[0])
    except (ValueError, SyntaxError):
        return cell


METRICS = {
    "mcq_accuracy": ("RouterArena, four letters", "gpqa-diamond"),
    "math_metric": ("RouterArena, numbers", "math500"),
    "exact_match": ("RouterArena, words", "rlpr"),
}


def routerarena() -> Iterator[Record]:
    """Yield two models' replies to mixed questions."""
    for model in ("claude-3-haiku-20240307", "gemini-2.0-flash-001"):
        file = data_folder() / f"routerarena_cached/{model}.jsonl.gz"
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                said = row["evaluation_result"]
                if said["metric"] in METRICS:
                    yield from of_routerarena(f"{model} {row['global_index']}", row, said)


def of_routerarena(name: str, row: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[Record]:
    """Yield one reply, for the graders that can look at it."""
    of_set, suite = METRICS[said["metric"]]
    gold, choices = str(said["ground_truth"]).replace("_", " "), ()
    if said["metric"] == "mcq_accuracy":
        options = OPTION.findall(str(row["question"]).rpartition("Options")[2])
        choices = tuple(text for _, text in options)
        gold = in_letters(gold, choices)
    record = Record(
        of_set, name, suite, gold, row["generated_answer"], said["score"] == 1.0, choices
    )
    if said["metric"] != "mcq_accuracy" or len(choices) == 4:
        yield record
    if said["metric"] != "exact_match":
        yield replace(record, set="RouterArena, by rlpr", suite="rlpr")


def in_letters(gold: str, choices: Sequence[str]) -> str:
    """Return the letter of a key that is a letter, a place from 0, or an option's text."""
    if re.fullmatch("[A-P]", gold):
        return gold
    if re.fullmatch(r"\d+(?:\.0)?", gold):
        return string.ascii_uppercase[int(float(gold))]
    return string.ascii_uppercase[choices.index(gold)] if gold in choices else gold


SETS: dict[str, Callable[[], Iterator[Record]]] = {
    "AIME25": lambda: saturn("aime25", "aime25"),
    "MATH-500": lambda: saturn("math500", "math500"),
    "MATH-500 by RLPR's rules": lambda: saturn("math500", "rlpr"),
    "RouterBench": arc,
    "RouterArena": routerarena,
}


def records(rows: Path | None) -> Iterator[Record]:
    """Yield the records of every set that is here, and those of a file of one's own."""
    for name, load in SETS.items():
        try:
            yield from load()
        except (OSError, UserError) as error:
            print(f"{name} is skipped: {error}; name its folder in PODIUM_DATA", file=sys.stderr)
    for number, line in enumerate(rows.read_text("utf-8").splitlines() if rows else (), start=1):
        row = json.loads(line)
        if row["suite"] in SUITES and not SUITES[row["suite"]].needs_box:
            named = {"set": f"cases, {row['suite']}", "id": str(number), **row}
            named["choices"] = tuple(row.get("choices", ()))
            yield Record(**{field.name: named[field.name] for field in fields(Record)})


# --- verdicts -----------------------------------------------------------------------------------


def verdict(record: Record) -> Verdict | None:
    """Grade a reply; None where only a model can judge it."""
    started = time.process_time()
    try:
        grade = SUITES[record.suite].grade(record.question(), record.reply)
    except JudgeError:
        return None
    return Verdict(grade.value == 1.0, grade.extracted, time.process_time() - started)


def of_checkout(checkout: Path, words: Sequence[str]) -> list[Verdict | None]:
    """Return the verdicts of this program on the same records over another checkout's graders."""
    if checkout.is_file():
        return parsed_verdicts(checkout.read_text("utf-8"))
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--json", *words],
        env=os.environ | {"PYTHONPATH": str(checkout), "PODIUM_DATA": str(data_folder())},
        cwd=checkout,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return parsed_verdicts(done.stdout)


def parsed_verdicts(text: str) -> list[Verdict | None]:
    """Return the verdicts that `--json` printed."""
    found = [json.loads(line) for line in text.splitlines()]
    return [Verdict(**one) if one else None for one in found]


Judged = tuple[Record, Verdict]


def print_table(title: str, judged: Sequence[Judged]) -> None:
    """Print how often the grades are those on record, by set."""
    print(
        f"\n{title}\n| set | replies | as recorded | right for us only | right there only | ",
        end="",
    )
    print("nothing found | seconds | replies/s |\n|---|---|---|---|---|---|---|---|")
    for name, group in groupby(judged, key=lambda one: one[0].set):
        rows = list(group)
        same = sum(mine.right == record.right for record, mine in rows)
        ours = sum(mine.right and not record.right for record, mine in rows)
        nothing = sum(mine.said is None for _, mine in rows)
        seconds = sum(mine.seconds for _, mine in rows)
        print(
            f"| {name} | {len(rows)} | {same / len(rows):.2%} | {ours} | {len(rows) - same - ours} "
            f"| {nothing} | {seconds:.2f} | {len(rows) / max(seconds, 1e-9):,.0f} |"
        )


def print_confusion(title: str, said: Sequence[tuple[bool, bool | None]]) -> None:
    """Print how often a grader passes right and wrong replies; pairs of truth and verdict."""
    count = Counter((right, verdict is True) for right, verdict in said)
    raised = sum(verdict is None for _, verdict in said)
    kinds = ((True, True), (False, True), (True, False), (False, False))
    print("| " + " | ".join(map(str, (title, *(count[kind] for kind in kinds), raised))) + " |")


def print_peers(judged: Sequence[Judged], then: Mapping[Record, Verdict]) -> None:
    """Print confusion tables of cases and recorded replies by suite; `then`: another checkout's."""
    # With another checkout's graders this file runs beside that checkout's tests, which differ.
    from tests.benchmarks.graders import BESIDE, NUMBERS_ONLY, JudgeProcess
    from tests.suites.battery import BatteryRow

    def kind(one: Judged) -> tuple[bool, str]:
        return one[0].set.startswith("cases, "), one[0].suite

    for (case, suite), group in groupby(sorted(judged, key=kind), key=kind):
        rows = list(group)
        print(f"\n{suite}, {len(rows)} {'cases' if case else 'recorded replies'}\n")
        print(
            "| grader | TP | FP | FN | TN | raised or came to no end |\n|---|---|---|---|---|---|"
        )
        print_confusion("podium", [(record.right, mine.right) for record, mine in rows])
        if then:
            old = [(record.right, then[record].right) for record, _ in rows if record in then]
            print_confusion("podium, other checkout", old)
        for name in (*BESIDE[suite], "includes()"):
            numbers = suite == "rlpr" and name in NUMBERS_ONLY
            said: list[tuple[bool, bool | None]] = []
            with closing(JudgeProcess(name)) as judge:
                for record, _ in rows:
                    if numbers and reference_kind(record.gold) not in ("number", "expression"):
                        continue
                    row = BatteryRow(
                        reply=record.reply,
                        gold=record.gold,
                        right=record.right,
                        why="-",
                        choices=record.choices or None,
                    )
                    verdict = judge.judge(suite, row)
                    said.append((record.right, None if verdict is None else verdict == 1))
            print_confusion(f"{name}, {len(said)} numbers" if numbers else name, said)


def print_reply(record: Record, *verdicts: Verdict) -> None:
    """Print the end of a reply, with all that was said of it."""
    said = "; ".join(f"ours {one.right} ({one.said!r})" for one in verdicts)
    print(f"\n## {record.set}: {record.id}: key {record.gold!r}; recorded {record.right}; {said}")
    print(record.reply[-SHOWN:])


def main(words: Sequence[str] | None = None) -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--differences", action="store_true")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT_OR_VERDICTS")
    parser.add_argument("--rows", type=Path, metavar="ROWS.jsonl")
    parser.add_argument("--json", action="store_true", help="one verdict a line, and nothing else")
    parser.add_argument("--peers", action="store_true", help="confusion tables by suite")
    given = parser.parse_args(words)
    every = sorted(records(given.rows), key=lambda record: record.set)
    verdicts = [verdict(record) for record in every]
    if given.json:
        print(*(json.dumps(one and asdict(one)) for one in verdicts), sep="\n")
        return
    judged = [(r, v) for r, v in zip(every, verdicts, strict=True) if v]
    print_table("graders of this checkout", judged)
    for record, mine in judged if given.differences else ():
        if mine.right != record.right:
            print_reply(record, mine)
    old: Sequence[Verdict | None] = ()
    if given.against:
        own = ["--rows", str(given.rows.resolve())] if given.rows else []
        old = of_checkout(given.against.resolve(), own)
        print_changes(every, verdicts, old)
    if given.peers:
        print_peers(judged, {record: one for record, one in zip(every, old, strict=False) if one})


def print_changes(
    every: Sequence[Record], new: Sequence[Verdict | None], old: Sequence[Verdict | None]
) -> None:
    """Print the other checkout's table, and every reply of which the two say something else."""
    print_table("graders of the other", [(r, v) for r, v in zip(every, old, strict=True) if v])
    both = [(r, a, b) for r, a, b in zip(every, new, old, strict=True) if a and b]
    changed = [(r, a, b) for r, a, b in both if a.right != b.right]
    print(
        f"\nverdicts changed: {len(changed)} of {len(both)} (ours is this checkout, then the other)"
    )
    for one in changed:
        print_reply(*one)


if __name__ == "__main__":
    main()
