"""The ledger: two records of every model call (Inspect's log, podium's journal), joined and summed.

Read call.py (the columns of a call's row) first. During a run, recorder.py (through which our code
calls every model), hooks.py and journal.py write both records. Afterwards, logs.py and runs.py read
them, join.py joins them, and totals.py adds up the calls for the report, the audit, spending
limits, `reprice` and the export.
"""
