"""Where a reply states its answer: boxes, tags, labels, and what takes a statement back.

Every rule is linear in the length of the reply. What a statement says is read in extract.py.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from podium.harness.reasoning import INVISIBLE
from podium.harness.rules import expanded, pattern, rules, words

TAIL = 4000  # Characters at the end of a reply in which labels and conclusions are looked for
LONGEST = 400  # Characters of a value behind a label
MOST_BOXES = 10  # Boxes that are looked at, from the end
MOST_BETWEEN = 6  # Words, but for joining ones, between two sentences that stand together
ANSWER_WORDS, CHOICE_WORDS, FOREIGN_WORDS = words("ANSWER"), words("CHOICE"), words("FOREIGN")
"""Words before a value, in small letters."""
ASCII_FOREIGN_WORDS = tuple(word for word in FOREIGN_WORDS if word.isascii())
SENTENCE_END = re.compile(r"(?<!\bvs)(?<!\\)[.!?\u3002](?=[\"'\u201d\u2019)\]*$]*(?:\s|$))|\n")
MATHS = re.compile(
    r"(?s)\$\$(.{1,400}?)\$\$|(?<!\\)\$([^$]{1,400}?)(?<!\\)\$|\\\((.{1,400}?)\\\)"
    r"|\\\[(.{1,400}?)\\\]"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A place in a reply that gives an answer."""

    form: Literal["box", "tag", "line", "sentence"]
    start: int
    end: int
    text: str  # What it gives, as it is written
    more: str = ""  # What follows a box in its sentence; the rest of the line of a label
    value: int = 0  # Where the value behind a label begins
    explicit: bool = True  # an answer wherever it stands: a box, a tag, `Answer: C`
    rule: str = "label"
    flaw: str = ""  # The rule that drops it at once


_AFTER = pattern("label")
_AFTER_FOREIGN = pattern("foreign-label")
_ALONE = pattern("label-line")
_BEFORE_VALUE = re.compile(r"(?:\s*\n[>#]+|\s*\n```\w*\n|\s|\.{2,}|\u2026)*")
_NEXT_LINE = pattern("next-line")
_OPTIONS = pattern("options")
_TRAILING = pattern("second-label")
_TAG = pattern("tag")
_SHOWS_FORMAT = pattern("placeholder")
_HOLDS_WORD = re.compile(r"[a-zA-Z]{3}|\.\.|\u2026|__")
_BOX_FORMAT = pattern("box-placeholder")
_OR_BOXED = pattern("or-box")
_LEADS = re.compile(expanded(r"[:=\uff1a]|\b{IS}"))
_INSIDE_BEFORE, _INSIDE_BEHIND = pattern("inside-before"), pattern("inside-behind")
_REJECTING_BEFORE, _REJECTING_BEHIND = pattern("rejecting-before"), pattern("rejecting-behind")
_HEDGING_BEFORE = pattern("hedging-before")
_STRUCK, _QUESTION = pattern("struck"), pattern("question")
_BEFORE_IS = pattern("value-before")


def find(said: str, labels: Sequence[str] = ANSWER_WORDS) -> list[Statement]:
    """Return the last boxes of a text and the tags and labels near its end, in order."""
    base = max(0, len(said) - TAIL)
    return in_order(said, [*_boxes(said), *_tags(said), *_labelled(said, base, labels)])


def in_order(said: str, found: list[Statement]) -> list[Statement]:
    """Return statements by their place; of two, one inside the other, the inner says it better."""
    kept: list[Statement] = []
    for one in sorted(found, key=lambda each: -each.start):
        inner = kept[-1] if kept and kept[-1].start < one.end else None
        if inner is None or inner.start == one.start:
            kept.append(one)
        elif one.value and one.flaw and not inner.flaw:  # "Rejected answer: \\boxed{B}"
            kept[-1] = replace(inner, flaw=one.flaw)
        elif one.form == "box" and inner.value:
            kept[-1] = replace(one, text=said[inner.value : one.end].strip(" {}$"))
        elif (
            one.value and inner.value and (own := _TRAILING.sub("", said[one.value : inner.start]))
        ):
            kept.append(replace(one, end=inner.start, text=own, more=own))
    return kept[::-1]


def _boxes(said: str) -> Iterator[Statement]:
    """Yield the last boxes, the last one first; empty ones quote the instruction."""
    end = len(said)
    for _ in range(MOST_BOXES):
        box = _box_before(said, end)
        if box is None:
            return
        content, end, stop = box
        if said[stop : stop + 5].strip(" $*(").startswith("?"):
            continue
        if content and _is_placeholder(content):
            continue
        more = SENTENCE_END.split(said[stop : stop + 200], maxsplit=1)[0]
        near = said[max(0, end - 40) : end]
        if hedged := _OR_BOXED.search(near) if "or" in near.lower() else None:
            more = f"or {hedged[1]}"
        sign = "-" if content and said[max(0, end - 1) : end] in ("-", "\u2212") else ""
        inside = _INSIDE_BEFORE.search(said, max(0, end - 12), end)
        inside = inside or _INSIDE_BEHIND.match(said, stop)
        flaw = "question" if content and _QUESTION.search(content) else ""
        flaw = "inside-expression" if inside else flaw
        yield Statement("box", end, stop, f"{sign}{content or ''}", more, 0, True, "box", flaw)


def _is_placeholder(content: str) -> bool:
    if len(content) > 60 or content.isdigit() or not _HOLDS_WORD.search(content):
        return False
    return bool(_BOX_FORMAT.fullmatch(without_markup(content)))


def _tags(said: str) -> Iterator[Statement]:
    for tag in (
        list(_TAG.finditer(said))[-MOST_BOXES:]
        if "</" in said and "answer>" in said.lower()
        else ()
    ):
        content = tag[2].rpartition("<answer>")[2]
        if not _SHOWS_FORMAT.fullmatch(content):
            start = tag.end() - len(content) - len(tag[1]) - 4
            flaw = "question" if _QUESTION.search(content) else ""
            yield Statement("tag", start, tag.end(), content.strip(), rule="tag", flaw=flaw)


def _labelled(said: str, base: int, label_words: Sequence[str]) -> Iterator[Statement]:
    """Yield "Answer: C" and "the answer is 70" near the end."""
    tail = said[base:]
    lower = small = tail.lower()
    foreign = ASCII_FOREIGN_WORDS
    if not tail.isascii():  # as long as the text; lower() alone is not
        lower = tail.encode("ascii", "replace").decode().lower()
        small, foreign = tail.replace("\u0130", "I").lower(), FOREIGN_WORDS
    labels = {  # `answer` replaces the `ans` that it begins with
        at: (len(word), _AFTER) for word in reversed(label_words) for at in places(lower, word)
    }
    for word in [word for word in foreign if word in small]:
        labels |= {at: (len(word), _AFTER_FOREIGN) for at in places(small, word)}
    for at, (length, after) in labels.items():
        if not (at and lower[at - 1].isalpha() and lower[at].isalpha()):
            statement = _before_label(tail, at, base, length)
            statement = statement or _behind_label(said, base, at, length, after)
            if statement:
                yield statement


def _before_label(tail: str, at: int, base: int, length: int) -> Statement | None:
    """Return the value of "9, which is the answer"."""
    if " is " not in tail[max(0, at - 25) : at]:
        return None
    ahead = _BEFORE_IS.search(tail, max(0, at - LONGEST // 2), at)
    if not ahead:
        return None
    start, end, text = base + ahead.start(1), base + at + length, ahead[1]
    return Statement("sentence", start, end, text, text, start or 1, rule="value-before")


def _behind_label(
    said: str, base: int, at: int, length: int, after: re.Pattern[str]
) -> Statement | None:
    at += base
    if said[at + length : at + length + 1] == "s" and _plural(said, at):
        return None
    label = after.match(said, at + length)
    if label is None and after is not _AFTER:
        label = _AFTER.match(said, at + length)
    statement = _valued(said, at, label.end()) if label else None
    if not label or not statement or not statement.text:
        return None
    gap = said[at + length : statement.value]
    if _below(gap, statement, said):
        return None
    flaw = _flaw(said, at, gap, statement)
    if label.re is _AFTER_FOREIGN:
        return replace(statement, rule="foreign-label", flaw=flaw)
    return replace(statement, flaw=flaw) if flaw else statement


def _plural(tail: str, at: int) -> bool:
    return tail[at : at + 6].lower() in ("option", "choice", "decisi")


def _flaw(said: str, at: int, gap: str, statement: Statement) -> str:
    if said[statement.end : statement.end + 1] == "?":
        return "question"
    before = said[max(said.rfind("\n", 0, at) + 1, at - 60) : at]
    if _HEDGING_BEFORE.search(before):
        return "hedging-before"
    rejecting = _REJECTING_BEFORE.search(before) or _REJECTING_BEHIND.search(gap)
    return "rejecting-label" if rejecting else ""


def _below(gap: str, one: Statement, said: str) -> bool:
    # A verb or a bare label must lead to a value on the next line, and that be no list of options.
    head, below, _ = gap.partition("\n")
    bare = one.form == "line" and not head.strip(" *_#`\"'")
    led = bare or _LEADS.search(head)
    return bool(below) and (not led or bool(_OPTIONS.match(said, one.value)))


def places(text: str, word: str, start: int = 0) -> Iterator[int]:
    """Yield where a word stands in a text."""
    at = text.find(word, start)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def _valued(said: str, at: int, start: int) -> Statement:
    """Return the statement whose label stands at `at` and whose value begins behind `start`."""
    before = said[said.rfind("\n", 0, at) + 1 : at]
    while (blank := _BEFORE_VALUE.match(said, start)) and blank.end() > start:
        start = blank.end()
    maths = MATHS.match(said, start)
    stop = maths.end() if maths else start
    end = SENTENCE_END.search(said, stop, stop + LONGEST)
    last = end.start() if end else min(len(said), stop + LONGEST)
    line = said[start : stop + LONGEST].partition("\n")[0] if not maths else said[start:last]
    if goes_on := _NEXT_LINE.match(said, last):
        last = goes_on.end()
        line = said[start:last]
    form = "line" if _ALONE.fullmatch(before) else "sentence"
    explicit = form == "line" and bool(re.search(r"[:=\uff1a\n]", said[at:start]))
    text, line = said[start:last].partition("</")[0].strip(), line.partition("</")[0].strip()
    rule = "label-line" if form == "line" else "label"
    text = "" if text.startswith("<answer") else text
    return Statement(form, at, last, text, line, start, explicit, rule)


# --- what is said against a statement -----------------------------------------------------------

_SENTENCE = re.compile(
    r".*(?:[.!?][\"'\u201d\u2019)\]*$]*\s|(?<!\bif )\b(?:so|thus|therefore|hence)\b)", re.I
)
_CLAUSE = re.compile(r".*(?:[,;:]|\b(?:and|but|because)\b)", re.I)
_SUPPOSED = pattern("supposed")
_NOT_SAID = pattern("not-said")
_RELATIVE = pattern("of-others")
_NOT_BOXED = pattern("not-boxed")
_LABEL_BEFORE = re.compile(r"\b(?:the|my)?\s*answer\b[^.\n]{0,30}$", re.I)
_ABOUT = pattern("about")
_NAIVE_BEHIND, _NEXT_NAIVE = pattern("naive-behind"), pattern("next-naive")
_DENIES, _EDITED = pattern("denies"), pattern("edited")
_HESITATES, _NEEDS = pattern("hesitates"), rules()["hesitates"].needs
_OR_ELSE = pattern("or-else")
_TAKES_BACK = pattern("takes-back")
_CONFIRMS = pattern("confirms")
_DECIDES = pattern("decides")
_IS_WRONG = expanded("{IS_WRONG}")
_FIRST = re.compile(r"\S+")
_WORDS = re.compile(r"[^\W\d_]{2,}")
MOST_WORDS = 3  # Words of a value; what is longer is a sentence
_JOINING = pattern("joining")


def dropped(said: str, statement: Statement) -> str:
    """Return the rule that drops a statement: a condition, a denial, hearsay, called wrong."""
    text, more = _ends(statement.text), _ends(statement.more)
    if denied := statement.flaw or _denied(text) or ("" if statement.value else _denied(more)):
        return denied
    before = said[max(0, statement.start - 200) : statement.start]
    before = before[before.rfind("\n") + 1 :]
    if _EDITED.search(text):
        return "edited"
    if _NAIVE_BEHIND.search(text if statement.value else f"0{more}"):
        return "naive-behind"
    if statement.form in ("box", "tag"):
        return _dropped_box(f"{text} {more}", before)
    if "would" in said[statement.start : statement.value] and " if " in text:
        return "supposed"
    return "about" if _ABOUT.search(before) else doubted_sentence(before)


def _dropped_box(text: str, before: str) -> str:
    if " if " in text and before.rstrip(" $").endswith("would be"):
        return "supposed"
    if _NOT_BOXED.search(before):
        return "not-boxed"
    label = _LABEL_BEFORE.search(before)
    return doubted_sentence(before[: label.start()]) if label else ""


def _ends(text: str) -> str:
    """Return a text without the middle of what is far longer than a statement can be."""
    return text if len(text) < 20_000 else f"{text[:9_000]}\n{text[-9_000:]}"


def contradicted(text: str) -> bool:
    """Return whether a text says that what it states is wrong."""
    return bool(_denied(text) or _TAKES_BACK.search(text))


def _denied(text: str) -> str:
    """Return the rule by which a text calls what stands before it wrong or uncertain."""
    if _DENIES.search(text):
        return "denies"
    small = text.lower()
    return "hesitates" if any(n in small for n in _NEEDS) and _HESITATES.search(text) else ""


def doubted(before: str) -> str:
    """Return the rule by which the words before a statement suppose, deny or quote it."""
    before = _RELATIVE.sub("", before)
    if _SUPPOSED.search(before):
        return "supposed"
    return "not-said" if _NOT_SAID.search(_behind(_CLAUSE, before)) else ""


def doubted_sentence(before: str) -> str:
    """Return the rule by which the beginning of a sentence denies what follows it."""
    return doubted(_behind(_SENTENCE, before))


def _behind(beginning: re.Pattern[str], line: str) -> str:
    match = beginning.match(line)
    return line[match.end() :] if match else line


def stand_together(said: str, one: Statement, after: Statement) -> bool:
    """Return whether nothing between two statements says that the second replaces the first."""
    between = said[one.end : after.start]
    if after.value:
        outranked = not one.value and (after.form == "line" or one.form == "sentence")
    else:
        outranked = one.value and len(_WORDS.findall(one.text)) > MOST_WORDS
    if outranked or len(between) > LONGEST or _TAKES_BACK.search(between):
        return False
    between_words = [word for word in _WORDS.findall(between) if not _JOINING.fullmatch(word)]
    if _OR_ELSE.match(between):
        return True
    most = MOST_BETWEEN if "sentence" in (one.form, after.form) else 1
    value = _FIRST.match(said, one.value)
    behind = value.end() if one.value and value else one.end
    return len(between_words) <= most and not _DECIDES.search(said, behind, after.start)


def withdrawn(said: str, last: Statement) -> str:
    """Return the rule by which what follows the last statement takes it back, unless confirmed."""
    behind = said[last.end :]
    behind = behind if len(behind) <= 2 * TAIL else f"{behind[:TAIL]}\n{behind[-TAIL:]}"
    following = SENTENCE_END.split(behind.lstrip(" .!*$\n"), maxsplit=1)[0]
    if denied := _denied(following[:200]):
        return denied
    if _OR_ELSE.match(behind):
        return "or-else"
    if _NEXT_NAIVE.match(following):
        return "naive-behind"
    value, near = last.text.strip(" $.*()")[:20], behind[:LONGEST]
    # Compiling a pattern for each new value takes a hundred times what else there is to do.
    if value and value in near:
        again = rf"(?<![\w.])(?<!option ){re.escape(value)}[)$]?\s+{_IS_WRONG}"
        if re.search(again, near):
            return "denies"
    ends = [match.end() for match in _TAKES_BACK.finditer(behind)]
    return "takes-back" if ends and not _CONFIRMS.search(behind, ends[-1]) else ""


_PLEASANTRY = pattern("wishes")


def last_lines(tail: str) -> list[str]:
    """Return the lines that are not blank, without those at the end that only wish well."""
    lines = [line for line in tail.splitlines() if line.strip()]
    while lines and _PLEASANTRY.match(lines[-1]):
        lines.pop()
    return [] if any(line.strip().lower() in ("or", "and") for line in lines[-2:]) else lines


def last_sentences(lines: Sequence[str]) -> list[str]:
    """Return the sentences of the last three lines, the last one first."""
    found = re.split(r"(?<=[.!?])\s+|\n+", "\n".join(lines[-3:]))
    return [sentence.strip(" *") for sentence in reversed(found)]


VERB = pattern("verb")


def is_bare(value: str) -> bool:
    r"""Return whether a text is a value and no sentence: `9 cm`, `\frac{1}{2}`, `ribosome`."""
    if not re.search(r"[\w<>]", value) or "\\boxed" in value or "<answer" in value:
        return False
    if VERB.match(MATHS.sub("", value)):
        return False
    words = re.findall(r"(?<![\\A-Za-z])[A-Za-z]{3,}", value)
    counted = len(words) <= 3 and (value[0].isdigit() or value[0] in "$-\\(+.")
    return not words or counted or len(value.split()) == 1


# --- what is left of a reply --------------------------------------------------------------------

_BOX = pattern("box")
_BARE = re.compile(r"[^\s$}]*")
_BRACE = re.compile(r"\\.|(?:\{[^{}\\]*+\})++|[{}]")  # escaped; pairs with none inside; one alone
_FONT = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|rm|it|sf|tt)?|mbox|bm)\s*\{([^{}]*)\}")
_DEGREES = re.compile(r"\^? ?\{? ?(?:\\circ|\u00b0|\\degree) ?\}?")
_SPACING = re.compile(
    r"\\(?:[;: ]|(?:q?quad|displaystyle|left|right|bf|rm|it|[lL]arge|LARGE|[hH]uge)(?![a-zA-Z]))"
)
_COLOUR = re.compile(r"\\(?:text)?color\s*\{\w+\}")
_HTML = re.compile(r"</?(?:b|i|u|em|strong|code|p|span|br)\s*/?>", re.I)
_DIGITS_APART = re.compile(r"(?<=\d)\\,(?=\d)")
_MATHS_SIGN = re.compile(r"\\[()\[\]]")
_STARS = re.compile(r"(?<![0-9A-Za-z])\*+|\*+(?![0-9A-Za-z])")


def without_struck(text: str) -> str:
    """Blank out what is struck out."""
    marked = ("~" in text and "~~" in text) or ("\\" in text and "cancel" in text)
    if marked or ("<" in text and _STRUCK.search(text)):
        return _STRUCK.sub(lambda struck: " " * len(struck.group()), text)
    return text


def _box_before(said: str, end: int) -> tuple[str | None, int, int] | None:
    while (end := said.rfind("box", 0, end)) >= 0:  # from the end: most replies are long
        start = said.rfind("\\", max(0, end - len("\\frame")), end)
        box = _BOX.match(said, start) if start >= 0 else None
        if box:
            content, stop = _braced(said, box.end())
            if content is None or content.strip():
                return content, start, stop
    return None


def _braced(said: str, at: int) -> tuple[str | None, int]:
    if at < len(said) and said[at] != "{":
        bare = _BARE.match(said, at)
        return (bare.group(), bare.end()) if bare else (None, at)
    depth = 1
    for brace in _BRACE.finditer(said, at + 1):
        if brace.end() - brace.start() > 1:
            continue
        depth += 1 if said[brace.start()] == "{" else -1
        if depth == 0:
            return said[at + 1 : brace.start()], brace.end()
    return None, len(said)


def folded(text: str) -> str:
    """Fold full-width letters and take away marks of direction; ASCII needs neither."""
    return text if text.isascii() else INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def without_markup(text: str) -> str:
    """Take away markup that does not change a number: fonts, maths signs, degrees, thin spaces."""
    plain = " ".join(text.split()).replace("{,}", ",").replace("\u2212", "-")
    plain = _without_latex(plain) if "\\" in plain or "\u00b0" in plain else plain
    plain = _HTML.sub("", plain) if "<" in plain else plain
    plain = plain.replace("~", " ").replace("$", "").replace("`", "").replace("__", "")
    return (_STARS.sub("", plain) if "*" in plain else plain).strip()


def _without_latex(text: str) -> str:
    plain = _DIGITS_APART.sub(",", text).replace("\\!", "").replace("\\,", " ")
    if "circ" in plain or "\u00b0" in plain or "degree" in plain:
        plain = _DEGREES.sub("", plain)
    plain = _SPACING.sub(" ", _COLOUR.sub("", plain) if "color" in plain else plain)
    for _ in range(4 if "{" in plain else 0):
        plain = _FONT.sub(r"\1", plain)
    return _MATHS_SIGN.sub("", plain)
