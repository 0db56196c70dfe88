"""Rehearsal workers: small programs that read a chat and really compute, as an Inspect provider.

Read `workers` (who they are, what they see), `provider` (how a reply comes about), then numbers
(`choices` -> `understanding` -> `phrases`, `stories` -> `arithmetic`), `facts`, and `programs` over
the catalogues `program_*`; `drawing` makes pools.
"""
