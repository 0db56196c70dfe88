"""The hub: nouns, the pool, the executor, the ledger, and the adapters to Inspect.

What every part of podium needs lies here and imports no other part; only harness/cli/ knows them.
"""


# § The hub: nouns, the pool, the executor, the ledger, and the adapters to Inspect.
# §
# § Belongs here: what every other part needs, and what must not differ between two table
# § rows.
# § Does not: exams (suites), systems (baselines, conductor), untrusted code (sandbox), pages
# § (reports).
# § Read in this order: records, workflow, pool_file, pool, execute, session, system, solver,
# § suite,
# § trials, task; then compose, field, run, entries, late and eval_set for `podium run`, with
# § learning/
# § for systems that learn and bridging/ for frameworks; logs, ledger, sittings and totals for
# § what it
# § cost.
# § Only `cli` knows the spokes, and nothing imports it.
