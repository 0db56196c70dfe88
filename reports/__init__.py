"""Tables and plots, rebuilt from Inspect logs alone: no model, no network, no price service.

Belongs here: statistics (`stats`, on arrays), what they say of two systems (`intervals`) and of a
block (`joint`, `field`), what is compared with what (`reference`, `wanted`, `blocks`), rows and
stable CSV columns (`row`, `tables`, `derived`), how they look (`markdown`, `significance`,
`terminal`, `plot`), published figures beside them (`published`), how many questions an effect takes
(`power_table`), our totals beside Inspect's (`reconciliation`), and the one function that writes it
all (`report`).
Does not belong here: reading logs and adding up calls (harness/ledger/), prices (harness/prices/),
anything that asks a model or grades a reply.

Reading order: intervals, reference, row, tables, joint, blocks, markdown, reconciliation, report.
"""
