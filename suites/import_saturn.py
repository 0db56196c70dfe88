"""Import real AIME25 replies: four models, one reply a problem, with recorded token counts.

The source (gtxygyzb/Saturn-code, lighteval details) kept no prompts, so a reply is filed under the
canonical single-worker requests of our suite, one for each prompt that it knows, marked
`prompt_recorded: false`, and under no other. Its MATH-500 rows, of the same runs, did keep theirs:
it is Lighteval's, our `paper` prompt, and the input tokens of the AIME25 rows fit that one too.
The verdicts recorded beside the replies check our grader and are not part of the cassette.
"""

import hashlib
from pathlib import Path
from typing import Any

from inspect_ai.model import ChatMessageUser

from harness.cassette import CassetteHeader, RecordedReply, RecordedTokens, write_cassette
from harness.request import request_digest
from suites.aime25 import Aime25
from suites.fetch import cache_folder, local_path, local_rows, sources

NAME = "saturn-aime25"
"""The source in sources.toml, and the cassette in harness/pools/recorded-aime25.toml."""

WORKERS = {
    "DeepSeek-R1-Distill-Qwen-1.5B": "r1-distill-1.5b",
    "DeepSeek-R1-Distill-Qwen-7B": "r1-distill-7b",
    "Saturn-1.5B": "saturn-1.5b",
    "Saturn-7B": "saturn-7b",
}
IMPORT = "3"
"""Raise when rows are made differently: 2 says that reasoning tokens were not counted apart, 3
files each reply under both prompts."""
NOTE = "prompt not recorded; one reply per model and problem; token counts as lighteval kept them"


def saturn_cassette(data: str | Path | None = None) -> Path:
    """Return the imported cassette, made in the user's cache on first use.

    Its name carries a digest of the source, of our questions and of the way it is imported, so what
    differs is another file.
    UserError names the file that is missing.
    """
    local_path(NAME, data)  # without the replies the questions are not worth a request to the hub
    source = sources()[NAME]
    digests = _digests(data)
    named = [digest for each in digests for digest in each.values()]
    made_of = "".join([IMPORT, source.sha256, *named])
    name = f"{NAME}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}.jsonl"
    path = cache_folder() / "cassettes" / name
    if not path.is_file():
        rows = [_row(row, each) for each in digests for row in local_rows(NAME, data)]
        header = CassetteHeader(
            created_from=(source.file,),
            source_sha256=(source.sha256,),
            source_label="live",
            note=NOTE,
        )
        write_cassette(path, header, rows)
    return path


def _digests(data: str | Path | None) -> list[dict[str, str]]:
    """Return, per prompt, the digest of each question's canonical request: one user message."""
    suite = Aime25(data=data)
    return [
        {
            question.id: request_digest([ChatMessageUser(content=question.text)])
            for question in suite.prompted(prompt).load()
        }
        for prompt in suite.prompts
    ]


def _row(row: dict[str, Any], digests: dict[str, str]) -> RecordedReply:
    return RecordedReply(
        worker=WORKERS[row["model"]],
        digest=digests[row["problem_id"]],
        epoch=1,
        occurrence=0,
        text=row["output"],
        usage=RecordedTokens(input=row["in_tokens"], output=row["out_tokens"]),
        model=row["model"],
        question=row["problem_id"],
        prompt_recorded=False,
        source=f"gtxygyzb/Saturn-code ({sources()[NAME].file})",
    )
