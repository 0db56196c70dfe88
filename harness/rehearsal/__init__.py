"""Rehearsal workers: small programs that read a chat and really compute, as an Inspect provider.

Belongs here: what a worker can read, know, compute and say, and what it costs in tokens and time.
Does not belong here: questions, targets and suites; a worker sees chat messages and nothing else.

Reading order: `workers` (who they are), `provider` (the seam to Inspect), `chat` (what a worker
sees), `reading` -> `phrases` -> `evaluate` (understanding and computing numbers), `facts`,
`formulas`, `programs` (the other fields), `minds` (how a reply comes about), `planning`,
`checking`.
"""
