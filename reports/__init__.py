"""Tables and plots, rebuilt from Inspect logs alone: no model, no network, no price service.

Read the modules in this order: statistics on arrays (`stats`, `costs`), on systems (`intervals`);
groups of comparable rows (`blocks`); table rows (`row`, `comparison_rows`, `derived`); layout
(`render`, `columns`, `markdown`, `terminal`, `plot`, `published`); `report`; papers (`paper`).
"""
