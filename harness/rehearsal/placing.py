# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Put what earlier replies stated in the place of the words that ask for it. Knows no facts itself.

"The atomic number of tin is 50." places 50; "The value of d is 6." places 6 where d stands; an
element so many places after a known one becomes the element with that atomic number.
"""

import re
from collections.abc import Sequence

from harness.rehearsal.reading import spell_out

_STATEMENT = re.compile(
    r"^\W*(?:so |here |also |thus )?(?:the )?([a-z][^.:;=?]{2,160}?) (?:is|are|="
    r"|equals) (-?\d+(?:(?:, | and )\d+)*)\W*$",
    re.IGNORECASE,
)
_VALUE = re.compile(r"^the value of (.{1,160}) is (-?\d+)(?:\.|$)", re.IGNORECASE)
_BACK = r"back\w*|before|left\w*|preced\w+|earlier|down\w*|prior"
_WAY = rf"(?:{_BACK}|after|beyond|past|follow\w+|forwards?|ahead|further|farther|later|right\w*|up\w*|on|along|from)"
_COUNT = r"(\$?[\w()+*^-]{1,24}\$?)"
_STEPS = rf"{_COUNT} (?:places?|positions?|elements?|steps?|spots?|squares?|boxes)"
_REACHED = r"(?:that |which |you |we |one |is |are |lies |comes |stands |reached |found |located |obtained |gets? |reach(?:es)? |arrived? |at |to |by |sits |when |if |on |after |moving |going |counting |stepping |moves? |goes |go |steps? |forwards? |back\w* |ahead |in the periodic table )*"


def read_statements(replies: Sequence[str]) -> dict[str, str]:
    """Return phrase -> number for every sentence of earlier replies that says "P is N"."""
    found: dict[str, str] = {}
    for reply in replies:
        for sentence in re.split(r"(?<=\d)\.\s+|(?<=[a-z])[.:]\s+|\n+", reply):
            match = _STATEMENT.match(sentence.strip())
            if match and not match[1].lower().startswith("value of"):
                phrase = match[1].lower().removeprefix("number asked for by ")
                found[phrase] = match[2]
                owned = re.fullmatch(r"(.+?) of (?:the )?(\w+)", phrase)
                if owned:
                    found.setdefault(f"{owned[2]}'s {owned[1]}", match[2])
    return found


def placed(text: str, replies: Sequence[str]) -> str:
    """Return a text with what each reply in turn stated put in its place."""
    for reply in replies:
        bindings = read_statements([reply])
        text = substitute(_values(text, reply), bindings)[0]
        text = _walked(_set_by_name(text, bindings), bindings)
    return text


def _set_by_name(text: str, bindings: dict[str, str]) -> str:
    """Read "tin has atomic number n" and "Mars is the k-th planet" as what the letters are."""
    for phrase, value in bindings.items():
        known = re.fullmatch(r"(?:atomic number|position) of ([a-z]+)", phrase)
        if known is None:
            continue
        place = r"(?:the )?(?:planet )?(?:number )?(?:in (?:position|place) (?:number )?)?"
        text = re.sub(
            rf"(?i)\b{known[1]}(?: (?:has|having|with)(?: the| an?)? atomic number (?:of )?| is {place})"
            r"\$?\b([a-z])\b\$?(?:\s?-?\s?th)?(?: planet)?(?:[^.,;?]{0,20}from the sun)?",
            rf" \1 = {value} ",
            text,
        )
    return text


def _values(text: str, reply: str) -> str:
    """Put the values of letters and of expressions in their place."""
    for line in reply.splitlines():
        found = _VALUE.match(line.strip())
        if found and len(found[1]) == 1:
            own = rf"\$?(?<![\w']){re.escape(found[1])}(?![\w'])\$?"
            kept = re.sub(rf"(?i)\b(?:let|call)\s+{own}\s+(?:be|denote)\b", "take ", text)
            text = re.sub(own, f" {found[2]} ", kept) if found[1] != "a" else text
        elif found:
            text = text.replace(found[1], f" {found[2]} ")
    return text


def substitute(text: str, bindings: dict[str, str]) -> tuple[str, int]:
    """Put numbers in the place of phrases, longest phrase first; return how many were placed."""
    count = 0
    for phrase in sorted(bindings, key=len, reverse=True):
        words = r"\s+".join(map(re.escape, phrase.split()))
        pattern = re.compile(rf"(?:\bthe\s+)?(?<![\w']){words}(?![\w'])", re.IGNORECASE)
        text, done = pattern.subn(f" {bindings[phrase]} ", text)
        count += done
    return text, count


def _walked(text: str, bindings: dict[str, str]) -> str:
    """Write "the element 5 places after zinc" as the element with atomic number (30 + 5)."""
    numbers = {k.removeprefix("atomic number of "): v for k, v in bindings.items() if k.startswith("atomic number of ")}  # fmt: skip
    for name, start in sorted(numbers.items(), key=lambda item: -len(item[0])):
        if not re.fullmatch(r"[a-z]+", name) or not start.isdigit():
            continue
        for pattern in _walks(name):
            found = pattern.search(text)
            if found is None:
                continue
            steps = spell_out(found["steps"].strip("$"))
            way = "-" if re.search(rf"\b(?:{_BACK})\b", found[0], re.IGNORECASE) else "+"
            text = f"{text[: found.start()]}the element with atomic number ({start} {way} {steps}){text[found.end() :]}"
            text = re.sub(
                r"(?i)(?:the )?(?:atomic|proton) number (?:of|for) the element with atomic number (\([^()]*\))",
                r" \1 ",
                text,
            )
            text = re.sub(
                r"(?i)(?:the )?number of protons (?:of|in) (?:(?:the|an?|atoms?|nucleus|of) )*the element with atomic number (\([^()]*\))",
                r" \1 ",
                text,
            )
            text = re.sub(
                r"(?i)(?:the )?(?:atomic number|number of protons) (?:of|in) (?:the|this|that)(?: new| resulting)? element(?: (?:that )?(?:you|we|one) (?:reach|arrive|land|end up|get to)\w*(?: on| at)?| reached| found)?",
                f" ({start} {way} {steps}) ",
                text,
            )
    return text


def _walks(name: str) -> list[re.Pattern[str]]:
    steps = _STEPS.replace("(", "(?P<steps>", 1)
    return [
        re.compile(rf"(?:the )?(?:chemical )?element {_REACHED}{steps} (?:{_WAY}|in the periodic table|of|the|table|element| )*\s*\b{name}\b(?: in the periodic table)?", re.I),
        re.compile(rf"(?:the )?(?:chemical )?element {_REACHED}(?:(?:starting|beginning) )?(?:from|at|with) {name}[^.?]{{0,40}}?{steps}(?: {_WAY}| in the periodic table)*", re.I),
        re.compile(rf"(?:start\w*|begin\w*) (?:at|from|with|on) (?:the )?(?:element )?{name}\b[^?]{{0,80}}?{steps}(?: {_WAY}| in the periodic table)*", re.I),
        re.compile(rf"from {name},? (?:move|go|step|count)\w* [^.?]{{0,30}}?{steps}(?: {_WAY}| in the periodic table)*", re.I),
    ]  # fmt: skip
