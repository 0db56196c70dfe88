"""A count with its noun, for messages. Not here: numbers in tables."""


def counted(count: int, noun: str) -> str:
    """Return a count and what is counted.

    >>> counted(1, "sitting"), counted(1200, "sitting")
    ('1 sitting', '1,200 sittings')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
