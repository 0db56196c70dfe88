"""The core: data types, the pool, the executor, the ledger of calls, and the adapters to Inspect.

Read in this order: records, workflow, pool_config, pool, execute, system, suite, inspect_adapters;
then run/run.py, learning for systems that learn, bridge for frameworks, and ledger/ for the costs.
It imports no suites, systems, sandbox or reports; only podium/cli/ imports all of them.
"""
