"""Write a Python program for a described task: recognise operations, chain them, write them down.

A code writer fails where a word is not in its vocabulary, where more operations are combined than
it can hold, where samples do not settle what the statement leaves open, or where a line slips.
"""

import re
from itertools import islice

from harness.rehearsal.program_chains import Chain, chains, find_steps, variants, works
from harness.rehearsal.program_everyday import learnt_words
from harness.rehearsal.program_families import FAMILIES
from harness.rehearsal.program_samples import Starter, read_samples, read_starter
from harness.rehearsal.program_source import whole
from harness.rehearsal.scratch import Scratch
from harness.rehearsal.workers import Worker

_TRIES = 150
"""How many readings a writer tries on the samples before it takes the likeliest."""
_LAYOUT = re.compile(
    r"(?:first|second|third|next|following|each|only|single|one|last) (?:\w+ )?lines?\b"
    r"|\binput\b|\bconstraints?\b|\bseparated by\b",
)
_FORMAT = re.compile(r"```|\bpython\b|\bcode block|\bcomplete this\b|\byour (?:reply|answer)")
_DOES = re.compile(
    r"\b(?:prints?|output|returns?|finds?|computes?|counts?|determines?"
    r"|report|write|how many|work out|encrypt|decode)\b"
)
_GIVEN = re.compile(
    r"\b(list|array|sequence|n|two|three|single|an?|are|contains?|given)( of)?( n)? "
    r"(?:positive|distinct|non-negative|sorted|unique) (?=integers?|numbers?|values|list|array)"
)


def write_program(worker: Worker, text: str, paper: Scratch) -> tuple[str, str] | None:
    """Return (task, program) for a described task, None when the worker knows no way."""
    starter = read_starter(text)
    chain = _choose(worker, text, starter)
    if chain is None:
        return None
    task = " and ".join(step.family.name for step in chain.steps)
    return task, whole(chain, worker, paper, starter)


def _choose(worker: Worker, text: str, starter: Starter | None) -> Chain | None:
    """Return the likeliest chain that agrees with the samples, else the likeliest of all."""
    plain = _plain(text)
    most = 1 + min(2, worker.families // 25)
    steps = find_steps(_task(plain), FAMILIES[: worker.families])
    found = chains(plain, steps, most, starter)
    readings = list(
        islice(
            (
                reading
                for chain in found
                for reading in variants(chain, text, plain, functional=starter is not None)
            ),
            _TRIES,
        )
    )
    samples = read_samples(text, starter)
    fitting = (reading for reading in readings if works(reading, samples))
    first = readings[0] if readings else None
    return next(fitting, first) if samples else first


def _plain(text: str) -> str:
    low = re.sub(r"class Solution.*", " ", text, flags=re.DOTALL)
    low = re.split(r"\n\W*(?:examples?|samples?)\b[^\n]*\n", low, maxsplit=1, flags=re.IGNORECASE)[
        0
    ]
    low = re.sub(r"10\s*(?:\^|\*\*)\s*9\s*\+\s*7", "1000000007", low.lower())
    return _GIVEN.sub(r"\1\2\3 ", learnt_words(re.sub(r"\s+", " ", low)[:4000]))


def _task(plain: str) -> str:
    """Return what is to be done: sentences that only describe the input say nothing about it."""
    sentences = re.split(r"(?<=[.!?]) ", plain)
    sentences = [line for line in sentences if not _FORMAT.search(line)]
    kept = [line for line in sentences if not _LAYOUT.search(line) or _DOES.search(line)]
    return " ".join(kept) or plain
