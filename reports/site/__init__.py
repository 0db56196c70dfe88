"""The page: a comparison, its matrix, every query and its audit, as files that open from a disk.

Read `build` (the order of it all), `index` (what a cell of the matrix is), `texts` (queries in
full), `comparison`, `audit_page` and `training_page` (what templates show), `view` (served).
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
