"""Tables and plots, rebuilt from Inspect logs alone: no model, no network, no price service.

Reading order: arrays (`stats`, `costs`), systems (`intervals`), groups (`blocks`), rows (`row`,
`build`), all shown rows (`derived`), layout (`render`, `columns`, `markdown`, `terminal`, `plot`,
`published`), `report`, and its files for papers (`paper`).
"""
