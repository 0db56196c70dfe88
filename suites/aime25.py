"""AIME 2025, exams I and II: 30 problems with integer answers, and recorded replies to them.

With 30 questions, accuracy in one pass has a standard error of about nine percentage points.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.model import ChatMessageUser

from podium.harness.cassette import CassetteHeader, RecordedReply, RecordedTokens, write_cassette
from podium.harness.errors import UserError
from podium.harness.extract import Reading, extract_expressions, read_integer
from podium.harness.files import cache_folder, read_rows
from podium.harness.inspect_adapters import as_task
from podium.harness.records import READ_BY, Grade, Question
from podium.harness.request import request_digest
from podium.harness.suite import OFFICIAL, Prompt, Split
from podium.suites.base import PromptedSuite, unsealed, user_errors
from podium.suites.data import Rows, local_path, local_rows, sources
from podium.suites.math_equality import compare

SUFFIX = (
    "Put your final answer within \\boxed{}.\nThe answer is an integer between 0 and 999 inclusive."
)
"""Instruction that ends `official` prompts, from github.com/eth-sri/matharena at e927660."""

PREFIX = (
    "Solve the following math problem efficiently and clearly.  The last line of your response "
    "should be of the following format: 'Therefore, the final answer is: $\\boxed{ANSWER}$. I hope "
    "it is correct' (without quotes) where ANSWER is just the final number or expression that "
    "solves the problem. Think step by step before answering."
)
"""Instruction that begins `paper` prompts: `aime_prompt_fn` of huggingface/lighteval at
c7a063a, with which the Conductor paper ran AIME."""

PAPERS = ("I", "II")
PROBLEMS = 15

_SUM = re.compile(
    r"(?:[\d\s+\-*/^!(){}.$,=]|\\(?:[dt]?frac|cdot|times|div|sqrt|left|right|binom|[,!;:]))+"
)
"""Matches arithmetic with digits only: no variables, percent signs or subscripts (number bases)."""
LONGEST = 400
MOST_SIDES = 4
"""LONGEST: maximum characters of an expression in a reply. MOST_SIDES: maximum number of its sides
(separated by `=`), because the comparison of one side may take 1 s."""
_WHOLE = re.compile(r"[\d\s$]*")
"""Matches plain integers, which the function `read_integer` has already rejected as the answer."""
# Real replies of four models, one per problem. The source lacks prompts, so each reply is stored as
# the answer to each of our prompts (`prompt_recorded` is False); input token counts fit `paper`.
SATURN = "saturn-aime25"
"""Name of the cassette (a file of recorded replies) that the pool recorded-aime25 replays; it is
built from the data source RECORDED."""
RECORDED = "recorded-aime25"
SATURN_WORKERS = {
    "DeepSeek-R1-Distill-Qwen-1.5B": "r1-distill-1.5b",
    "DeepSeek-R1-Distill-Qwen-7B": "r1-distill-7b",
    "Saturn-1.5B": "saturn-1.5b",
    "Saturn-7B": "saturn-7b",
}
SATURN_IMPORT = "3"
SATURN_NOTE = (
    "prompt not recorded; one reply per model and problem; token counts as lighteval kept them"
)


@dataclass(frozen=True, slots=True)
class Aime25(PromptedSuite):
    """The AIME 2025 suite: SUFFIX ends an `official` prompt, PREFIX begins a `paper` prompt."""

    name: str = "aime25"
    version: str = "5-A"
    dates: str = "2025-02"
    source = "aime25"

    def questions(self, split: Split) -> Sequence[Question]:
        """Return the 30 questions, AIME I first."""
        return aime25_questions(self.rows(), self.prompt)

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Return the questions of a file; UserError unless it has 30 rows with integer answers."""
        rows = [row for _, row in read_rows(path)]
        if len(rows) != 2 * PROBLEMS:
            raise UserError(
                f"{path} has {len(rows)} rows, but AIME25 has {2 * PROBLEMS}. "
                "Use the file of `podium data fetch aime25`."
            )
        for number, row in enumerate(rows, start=1):
            _refuse_malformed(row, f"{path}, row {number}")
        return aime25_questions(rows, self.prompt)

    def grade(self, question: Question, reply: str, box: None = None) -> Grade:
        """Grade a reply by equality of integers; a leading zero makes no difference.

        A reply without an integer but with arithmetic, such as 140/2, is compared by its value.
        `look` in the grade's metadata says what decided: `exact` (podium itself) or `math-verify`.
        """
        gold, reading = int(unsealed(question)), read_integer(reply)
        answer, facts = reading.value, {"look": "exact", READ_BY: reading.rule}
        if answer is None:
            return _grade_sum(gold, reply)
        verdict = "equals" if answer == gold else "differs from"
        sentence = f"{answer} {verdict} the target {gold}."
        return Grade(float(answer == gold), str(answer), sentence, facts)

    def read(self, question: Question, reply: str) -> Reading[int]:
        """Return a reply's integer and the rule that found it, for `podium grade --explain`."""
        return read_integer(reply)


AIME25 = Aime25()


def _grade_sum(gold: int, reply: str) -> Grade:
    r"""Grade a reply without an integer: `\boxed{\frac{140}{2}}` may still equal the target."""
    expressions = extract_expressions(reply)
    sides = [side for expression in expressions for side in expression[:LONGEST].split("=")]
    sums = len(sides) <= MOST_SIDES and all(
        len(expression) < LONGEST and _SUM.fullmatch(expression) for expression in expressions
    )
    if sums and not all(map(_WHOLE.fullmatch, expressions)):
        verdict = None
        for side in sides:
            verdict = compare(str(gold), side)
            if not verdict.equal:
                break
        if verdict and verdict.equal:
            sentence = f"{expressions[-1]} equals the target {gold}."
            return Grade(1.0, str(gold), sentence, {"look": verdict.look})
    return Grade(0.0, None, f"No integer answer was found; the target is {gold}.")


@task
@user_errors
def aime25(
    split: Split = "eval",
    limit: int | None = None,
    epochs: int = 1,
    data: str | None = None,
    prompt: Prompt = OFFICIAL,
) -> Task:
    """AIME 2025: 30 integer-answer competition problems."""
    return as_task(Aime25(data).prompted(prompt), split=split, limit=limit, epochs=epochs)


def aime25_questions(rows: Rows, prompt: Prompt = OFFICIAL) -> list[Question]:
    """Return the questions aime25-I-1 to aime25-II-15 of 30 rows; UserError if out of order."""
    ids = [f"aime25-{paper}-{n}" for paper in PAPERS for n in range(1, PROBLEMS + 1)]
    for name, row in zip(ids, rows, strict=True):
        row_id = str(row.get("id", row.get("question_id", "")))
        if row_id.startswith("aime25-") and row_id != name:
            wrong = f"The rows of AIME25 are out of order: {row_id} is in the place of {name}"
            raise UserError(f"{wrong}. Sort them by exam and number.")
    return [_question(name, row, prompt) for name, row in zip(ids, rows, strict=True)]


def _refuse_malformed(row: Mapping[str, object], origin: str) -> None:
    if not str(row.get("problem") or "").strip():
        raise UserError(f"{origin} has no `problem`. Add the problem's text.")
    answer = str(row.get("answer"))
    if not (answer.isascii() and answer.isdigit() and len(answer) <= 3):
        wrong = f"its `answer` {answer[:40]!r} is not an integer from 0 to 999"
        raise UserError(f"{origin}: {wrong}. Correct the row.")


def _question(name: str, row: Mapping[str, object], prompt: Prompt) -> Question:
    problem = str(row["problem"]).strip()
    return Question(
        id=name,
        text=f"{problem}\n\n{SUFFIX}" if prompt == OFFICIAL else f"{PREFIX}\n\n{problem}",
        kind="integer",
        target=str(int(str(row["answer"]))),
        topic=f"AIME {name.split('-')[1]}",
    )


def saturn_cassette(data: str | Path | None = None) -> Path:
    """Return the path of the cassette (file of recorded replies) for AIME25, in the user's cache.

    The file is built on first use. Its name has a digest of the data source, the prompts and
    SATURN_IMPORT, so that any change makes another file. Raises UserError if data is missing.
    """
    local_path(RECORDED, data)  # fails before a request to the hub if the replies are missing
    source, suite = sources()[RECORDED], Aime25(data)
    digests = [  # per prompt: question id -> digest of its request, one user message
        {
            question.id: request_digest([ChatMessageUser(content=question.text)])
            for question in suite.prompted(prompt).load()
        }
        for prompt in suite.prompts
    ]
    request_digests = [digest for each in digests for digest in each.values()]
    made_of = "".join([SATURN_IMPORT, source.sha256, *request_digests])
    name = f"{SATURN}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}.jsonl"
    path = cache_folder() / "cassettes" / name
    if not path.is_file():
        rows = [_cassette_row(row, each) for each in digests for row in local_rows(RECORDED, data)]
        facts: dict[str, Any] = {"created_from": (source.file,), "source_sha256": (source.sha256,)}
        header = CassetteHeader(**facts, source_label="live", note=SATURN_NOTE)
        write_cassette(path, header, rows)
    return path


def _cassette_row(row: dict[str, Any], digests: dict[str, str]) -> RecordedReply:
    return RecordedReply(
        worker=SATURN_WORKERS[row["model"]],
        digest=digests[row["problem_id"]],
        epoch=1,
        occurrence=0,
        text=row["output"],
        usage=RecordedTokens(input=row["in_tokens"], output=row["out_tokens"]),
        model=row["model"],
        question=row["problem_id"],
        prompt_recorded=False,
        source=f"gtxygyzb/Saturn-code ({sources()[RECORDED].file})",
    )
