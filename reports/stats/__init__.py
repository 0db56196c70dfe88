"""Statistics of a comparison on plain arrays: one entry per question, not-a-number where unknown.

Belongs here: errors and intervals of means (`means`, `proportions`), resampling (`resampling`),
paired comparisons (`paired`), many systems at once (`many`), what can be detected (`power`),
several tries (`tries`), costs (`costs`) and frontiers (`frontier`). Pure functions, numpy and scipy
alone. Does not belong here: logs, rows, verdict words of a table (reports/intervals.py), printing.

The question is the unit everywhere: whoever calls averages the epochs of a question first
(Miller 2024, arXiv 2411.00640). Randomness comes from a seed, so that a report can be rebuilt.
"""
