"""The ledger: two records of every call, joined, added up, shown and exported.

Read call.py (what a row says) first. While a run goes on: recorder.py (the one way to a model),
hooks.py and journal.py. Read afterwards: logs.py and runs.py; joined in join.py; added up
in totals.py for the report, the audit, limits, `reprice` and the export.
"""
