"""Rehearsal workers: small programs that read a chat and really compute, as an Inspect provider."""


# § Rehearsal workers: small programs that read a chat and really compute, as an Inspect
# § provider.
# §
# § Belongs here: what a worker can read, know, compute and say, and what it costs in tokens
# § and time.
# § Does not belong here: questions, targets and suites; a worker sees chat messages and
# § nothing else.
# §
# § Reading order:
# §
# § 1. Who and where: `workers` (what each has learnt), `settings`, `provider` (the seam to
# § Inspect),
# §    `tokens`, `chat` (what a worker sees), `minds` (how a reply comes about), `wording`
# § (its form).
# § 2. Numbers: `reading` -> `everyday` -> `understanding`, which binds letters
# § (`definitions`) and puts
# §    to a text in turn `progressions`, `searching` (with `patterns`), `phrases` (with
# § `phrase_rules`
# §    and `counting_rules`) and `stories` (with `tales`, `amounts`). The result is one of
# § `trees`;
# §    `calculating` has `evaluate` work it out on `scratch` paper (`number_theory`,
# § `scanning`).
# § 3. Facts: `facts`, `entities`, `reciting` (say them), `placing` (use what was said),
# § `lookups`,
# §    `formulas`; `choosing` for four-way choices.
# § 4. Programs: `programs` -> `program_everyday` -> `program_chains` over `program_families`
# §    (`program_lists`, `_texts`, `_numbers`, `_arrays`, `_words`, `_tables`; what one is:
# §    `program_kinds`), tried on `program_samples`, read and shown by `program_inputs`,
# § written down
# §    by `program_source`.
# § 5. Others' replies: `checking`; `planning` (as a step, and as a conductor).
# § 6. Pools: `drawing` (at random), `calibrate` (against recorded replies), `freeze` (their
# § digest).
