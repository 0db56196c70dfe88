"""The core: data types, the pool of models, the executor of workflows, the ledger of calls.

Read the modules in this order: records, workflow, pool_config, pool, execute, system, suite,
inspect_adapters; then run/run.py, learning for systems that learn, bridge for agent frameworks, and
ledger/ for the costs. The core imports no suites, systems, sandbox or reports; only podium/cli/
imports all of them.
"""
