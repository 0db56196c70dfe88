"""The hub: nouns, the pool, the executor, the ledger, and the adapters to Inspect.

Belongs here: what every other part needs, and what must not differ between two table rows.
Does not: suites, systems (baselines, conductor), untrusted code (sandbox), pages (reports).
Read in this order: records, workflow, pool_config, pool, execute, system, suite, inspect_adapters;
then run/run.py for `podium run`, learning for systems that learn, bridge for frameworks, and
ledger/ for what it cost. Only cli/ knows the spokes, and nothing imports it.
"""
