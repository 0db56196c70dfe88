"""The operations that rehearsal code writers know, commonest first.

An operation is one Python function of ours with the ways people ask for it. A program is a short
chain of them. Functions are real: a worker tries a chain on the statement's samples by calling
them, and writes it down as their source. Reading and printing are in `program_inputs`.
"""

from harness.rehearsal.program_arrays import ARRAYS
from harness.rehearsal.program_kinds import Family
from harness.rehearsal.program_lists import LISTS
from harness.rehearsal.program_numbers import NUMBERS
from harness.rehearsal.program_tables import TABLES
from harness.rehearsal.program_texts import TEXTS
from harness.rehearsal.program_words import WORDS

FAMILIES: tuple[Family, ...] = tuple(
    sorted((*LISTS, *TEXTS, *NUMBERS, *ARRAYS, *WORDS, *TABLES), key=lambda family: family.level)
)
"""Patterns are read against the plain lower-case statement; levels order them by how common."""
