"""Rehearsal workers: small programs that read a chat and really compute, as an Inspect provider.

Read the modules `workers` (who the workers are, what they see) and `provider` (how a reply comes
about); for numbers `choices`, `understanding`, `phrases`, `stories` and `arithmetic`; then `facts`;
`program_writer`, which uses the catalogues of operations `program_*`; and `agents`, for agentic
tasks. `drawing` makes pools of workers.
"""
