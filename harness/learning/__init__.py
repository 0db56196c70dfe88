"""What systems learn from and what they have learnt: scores, rounds of tries, artifacts."""


# § What systems learn from, what they have learnt, and learning by trying.
# §
# § Read in this order: matrix.py (how each worker did on each question), matrix_cells.py and
# § matrix_logs.py (where a matrix comes from), learned.py (an artefact), exploring.py (the
# § rounds of a
# § system that tries), teaching.py (which questions may teach), tuning.py (the engine of the
# § rounds).
# § What is learnt is each system's own (baselines/).
