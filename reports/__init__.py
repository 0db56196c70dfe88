"""Tables and plots, rebuilt from Inspect logs alone: no model, no network, no price service.

Belongs here: statistics on arrays (`stats`, `costs`), what they say of systems (`intervals`), what
is compared with what (`blocks`), rows with stable columns (`row`, `build`, `derived`), how they
look (`render`, `significance`, `markdown`, `terminal`, `plot`, `published`), and what writes it all
(`report`, `routes`, `ablations`, `scores` and `targets`, `power`); read in this order. Not here:
reading logs and adding up calls (harness/ledger/), prices, anything that asks a model.
"""
