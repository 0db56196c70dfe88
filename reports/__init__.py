"""Tables and plots, rebuilt from Inspect logs alone: no model, no network, no price service.

Belongs here: statistics of a comparison (`intervals`), what is compared with what (`reference`,
`blocks`), rows and stable CSV columns (`tables`), how they look (`markdown`, `terminal`, `plot`),
our totals beside Inspect's (`reconciliation`), and the one function that writes it all (`report`).
Does not belong here: reading logs and adding up calls (harness/ledger.py, harness/sittings.py,
harness/totals.py), prices (harness/prices/books.py), anything that asks a model or grades a reply.

Reading order: intervals, reference, tables, blocks, markdown, reconciliation, report.
"""
