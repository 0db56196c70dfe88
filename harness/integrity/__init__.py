"""What a run's directory held when it ended, and whether it still does.

`manifest.py` writes down files and one Merkle root over them (`merkle.py`, `inventory.py`),
`tampering.py` finds what was changed since, `signing.py` says who vouches for it. That a journal is
an unbroken chain is harness/ledger/chain.py.
"""
