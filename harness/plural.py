"""How counts are put into words: nouns by number, and ranges."""


def counted(count: int, noun: str) -> str:
    """Return a count and what is counted.

    >>> counted(1, "sitting"), counted(1200, "sitting")
    ('1 sitting', '1,200 sittings')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def from_to(span: tuple[int, int] | None) -> str:
    """Return a range in figures; empty where there is none.

    >>> from_to((8, 8)), from_to((1, 5)), from_to(None)
    ('8', '1-5', '')
    """
    if span is None:
        return ""
    least, most = span
    return str(least) if least == most else f"{least}-{most}"
