"""Tables and plots, rebuilt from Inspect logs alone: no model, no network, no price service.

Read arrays (`stats`, `costs`), systems (`intervals`), groups (`blocks`), rows (`row`, `build`), all
that is shown (`derived`), looks (`render`, `columns`, `markdown`, `terminal`, `plot`, `published`),
`report`, and what papers take from one (`paper`).
"""
