"""The tables of a page as a reader sees them, by caption."""

from html.parser import HTMLParser

Table = list[list[str]]


class _Tables(HTMLParser):
    """Collects the cells of every table."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, Table] = {}
        self.rows: Table = []
        self.text: list[str] = []
        self.caption = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.rows = []
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th", "caption"):
            self.text = []

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_endtag(self, tag: str) -> None:
        said = "".join(self.text).strip()
        if tag in ("td", "th"):
            self.rows[-1].append(said)
        if tag == "caption":
            self.caption = said
        if tag == "table":
            again = sum(name.startswith(self.caption) for name in self.tables)
            self.tables[f"{self.caption} ({again + 1})" if again else self.caption] = self.rows


def tables_in(page: str) -> dict[str, Table]:
    """Return the tables of a page by their captions, heads first; a second one has its number."""
    found = _Tables()
    found.feed(page)
    return found.tables
