"""The HTML site of a comparison: tables, matrix, every query and audit, readable from a disk.

Read `build` (writes a site), `index` (cells of the matrix), `texts` (queries in full),
`comparison`, `audit_page` and `training_page` (variables of templates), `view` (the server).
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
