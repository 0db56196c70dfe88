"""The HTML site of a comparison: tables, matrix, all queries, audit; opens from disk, no server.

Modules: `build` writes a site; `index` has the data of the matrix, `texts` the queries in full;
`comparison`, `audit_page` and `training_page` give variables to templates; `view` is the server of
`podium view`.
"""

from podium.reports.site.board import write_board
from podium.reports.site.build import (
    Site,
    SiteOptions,
    refuse_foreign_site,
    write_audit_site,
    write_site,
    write_training_site,
)

__all__ = [
    "Site",
    "SiteOptions",
    "refuse_foreign_site",
    "write_audit_site",
    "write_board",
    "write_site",
    "write_training_site",
]
