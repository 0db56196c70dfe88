"""Where programs ran, in words: every table says which box graded it."""

from collections.abc import Sequence

from harness.boxes import BoxFacts
from reports.tables import Row


def box_of(row: Row) -> str:
    """Return a row's box, e.g. `docker (Python 3.11.2, podium-sandbox 9f86d081884c)`."""
    if row.box is None:
        return ""
    if row.box_python is None:  # a log from before boxes told what they are
        return row.box
    facts = BoxFacts(python=row.box_python, image=row.box_image, image_id=row.box_image_id)
    return f"{row.box} ({facts.short})"


def boxes_of(rows: Sequence[Row]) -> list[str]:
    """Return the boxes that graded some rows; with more than one, each row must say which."""
    return sorted({box_of(row) for row in rows if row.box})


def apart(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Return each row with its box where the rows had several boxes; nothing where they had one."""
    return [(box_of(row), row) for row in rows if row.box] if len(boxes_of(rows)) > 1 else []


def packages(rows: Sequence[Row]) -> list[str]:
    """Return what programs could import beside the standard library, a sentence for each box."""
    lines: dict[str, None] = {}
    for row in rows:
        if row.box and row.box_packages is not None:
            names = row.box_packages.split()
            said = f"{len(names)} third-party packages: {', '.join(names)}" if names else "no more"
            digest = f"; image {row.box_image_id}" if row.box_image_id else ""
            lines[f"{box_of(row)}: the standard library and {said}{digest}"] = None
    return list(lines)
