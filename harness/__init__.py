"""The hub: nouns, the pool, the executor, the ledger, and the adapters to Inspect.

Read in this order: records, workflow, pool_config, pool, execute, system, suite, inspect_adapters;
then run/run.py, learning for systems that learn, bridge for frameworks, and ledger/ for the costs.
Only cli/ knows the spokes (suites, systems, sandbox, reports), and nothing imports it.
"""
