# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""What has to be looked up before a calculation can go on: an element or planet yet to be found.

"The element whose atomic number is the sum of ..." asks for a number first and for a fact second:
a computing worker states the number and leaves the look-up to whoever knows facts.
"""

import re

_OPEN = (
    re.compile(
        r"\b(?:element|planet)\b[^.?;]{0,16}?\b(?:with|whose|having|has|of)\s+(?:the |an? |its )?"
        r"(?:atomic number|proton number|position|place|number)(?: from the sun| in the periodic table)?"
        r"\s+(?:that )?(?:is |equals |equal to |of |= |: )*(?P<what>[^.,;?]{1,160}?)"
        r"(?=[.,;?]|\s+(?:in the periodic|has\b|have\b|is\b)|$)",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?:element|planet) (?:number|no\.) (?P<what>[^.,;?]{1,80}?)(?=[.,;?]|$)", re.IGNORECASE
    ),
    re.compile(
        r"(?P<what>(?:(?<=[.?!;]\s)|(?<=\n)|^)[^.;?]{5,160}?) is (?:then )?the atomic number of "
        r"(?:an?|which|what|some|another|exactly one) (?:chemical )?element",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?P<what>\b(?:this|that|the) (?:number|result|sum|product|value|difference|divisor)|"
        r"(?<![\w'])[a-z](?![\w'])) (?:is|as) (?:the |an )?(?:atomic number|position)",
        re.IGNORECASE,
    ),
)


def open_lookup(text: str) -> tuple[str, str] | None:
    """Return (words for the number to look up, the question for it), None when nothing is open."""
    for pattern in _OPEN:
        for found in pattern.finditer(text):
            what = found["what"].strip(" $")
            if re.fullmatch(r"\d*", what) or re.match(r"(?:what|which|how)\b", what):
                continue
            before = text[: found.start()]
            told = before[: max(before.rfind(mark) for mark in (". ", ".\n", "? ", "; ")) + 1]
            letter = re.fullmatch(r"[a-zA-Z]", what)
            rest = text[found.end() :] if letter and "where" in text else ""
            return what, f"{told} {rest.split('?')[-1]} What is {what}?"
    return None
