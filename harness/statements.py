"""Find where a reply states its answer (boxes, tags, labels), and what retracts a statement.

Every rule is linear in the length of the reply. extract.py reads the statements' values.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from podium.harness.reasoning import INVISIBLE
from podium.harness.rules import RULE, expanded, may_match, pattern, search, words

TAIL = 4000  # Characters at the end of a reply that are searched for labels and conclusions
LONGEST = 400  # Maximum characters of a value after a label
MOST_BOXES = 10  # Maximum boxes that are read, from the end
SHORT = 240  # Maximum characters of a remark behind the answer that may take it back
MOST_BETWEEN = 6  # Maximum words between two sentences that agree, without joining words
ANSWER_WORDS, CHOICE_WORDS, FOREIGN_WORDS = words("ANSWER"), words("CHOICE"), words("FOREIGN")
"""Words of labels that stand before an answer, such as `answer`, in lower case."""
ASCII_FOREIGN_WORDS = tuple(word for word in FOREIGN_WORDS if word.isascii())
SENTENCE_END = re.compile(
    r"[.!?\u3002](?<!\bvs.)(?<!\bi\.e.)(?<!\be\.g.)(?<!\\.)(?=[\"'\u201d\u2019)\]*$]*(?:\s|$))|\n"
)
MATHS = re.compile(
    r"(?s)\$\$(.{1,400}?)\$\$|(?<!\\)\$([^$]{1,400}?)(?<!\\)\$|\\\((.{1,400}?)\\\)"
    r"|\\\[(.{1,400}?)\\\]"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A place in a reply that gives an answer, such as a LaTeX box or "Answer: C"."""

    form: Literal["box", "tag", "line", "sentence"]
    start: int
    end: int
    text: str  # The answer as written
    more: str = ""  # The text after a box in its sentence; the rest of a label's line
    value: int = 0  # Offset of the value behind a label; 0 without a label
    explicit: bool = True  # an answer wherever it stands: a box, a tag, `Answer: C`
    rule: str = "label"
    flaw: str = ""  # the rule that excludes the statement; empty if none

    def end_in(self, reply: str) -> int:
        """Return where the statement ends: a box in an expression, at the end of its line."""
        if self.flaw != "inside-expression":
            return self.end
        line_end = reply.find("\n", self.end)
        return len(reply) if line_end < 0 else line_end


_TIE = r"(?<=[\w}])~(?!~)|(?<=[:*])~(?=[$\\])"  # a space of LaTeX, not `~204`
_BEFORE_VALUE = re.compile(rf"(?:\s*\n[>#]+|\s*\n```\w*\n|\s|{_TIE}|\.{{2,}}|\u2026)*")
_HOLDS_WORD = re.compile(r"[a-zA-Z]{3}|\.\.|\u2026|__")
_LEADS = re.compile(expanded(r"[:=\uff1a]|\b{IS}"))
_PLURAL = ("option", "choice", "decisi")
_BOXED_LETTER = re.compile(r"(?:\\\w+\s*\{)?\s*(?:\(?[A-P]\)?|\([a-p]\))[\s.\\]*\}?[\s.]*")
_LETTER = re.compile(r"[A-P](?![\w'])")
_NUMBER = re.compile(r"\d{1,30}(?:\.\d{1,30})?")
_NUMERAL, _THE = re.compile(r"[$\d]"), re.compile(r"\s*(?:\w+ly\s+|thus\s+)?(?:the|my|our)\s")


def find(reply: str, labels: Sequence[str] = ANSWER_WORDS) -> list[Statement]:
    """Return a reply's statements of answers, in order: its last boxes, tags and labels."""
    base = max(0, len(reply) - TAIL)
    return in_order(reply, [*_boxes(reply), *_tags(reply), *_labelled(reply, base, labels)])


def in_order(reply: str, statements: list[Statement]) -> list[Statement]:
    """Return statements in order of position; of two nested statements, prefer the inner."""
    result: list[Statement] = []
    for statement in sorted(statements, key=lambda each: -each.start):
        inner = result[-1] if result and result[-1].start < statement.end else None
        if inner is None or inner.start == statement.start:
            result.append(statement)
            continue
        own = _until(reply, statement, inner) if statement.value and inner.value else ""
        if statement.value and statement.flaw and not (inner.flaw or own):
            result[-1] = replace(inner, flaw=statement.flaw)  # "Rejected answer: \\boxed{B}"
        elif statement.form == "box" and inner.value:
            result[-1] = replace(statement, text=reply[inner.value : statement.end].strip(" {}$"))
        elif own:
            result.append(replace(statement, end=inner.start, text=own, more=own))
    return result[::-1]


def _until(reply: str, outer: Statement, inner: Statement) -> str:
    return RULE["second-label"].sub("", reply[outer.value : inner.start])


def _boxes(reply: str) -> Iterator[Statement]:
    """Yield a reply's last LaTeX boxes, from the end on, without boxes copied from the prompt."""
    end = len(reply)
    for _ in range(MOST_BOXES):
        box = _box_before(reply, end)
        if box is None:
            return
        content, end, stop = box
        if reply[stop : stop + 5].strip(" $*(").startswith("?"):
            continue
        if content and is_placeholder(content):
            continue
        tail = SENTENCE_END.split(reply[stop : stop + 200], maxsplit=1)[0]
        near = reply[max(0, end - 40) : end]
        if hedged := RULE["or-box"].search(near) if "or" in near.lower() else None:
            tail = f"or {hedged[1]}"
        sign = "-" if content and reply[max(0, end - 1) : end] in ("-", "\u2212") else ""
        flaw = "question" if content and RULE["question"].search(content) else ""
        flaw = "inside-expression" if _is_inside(reply, end, stop, content or "") else flaw
        yield Statement("box", end, stop, f"{sign}{content or ''}", tail, 0, True, "box", flaw)


def _is_inside(reply: str, start: int, stop: int, content: str) -> bool:
    """Return whether a box from `start` to `stop` is a part of an expression."""
    minus = reply[max(0, start - 3) : start].rstrip(" {")[-1:] in ("-", "\u2212")
    far = 48 if minus else 12  # `$100000 - ` is longer than what else may stand before a box
    if RULE["inside-before"].search(reply, max(0, start - far), start):
        return True
    if reply[stop : stop + 1] in ("", "$", "\n"):  # the usual case, decided without a search
        return False
    if RULE["inside-behind"].match(reply, stop):
        return True
    return bool(RULE["factor-behind"].match(reply, stop)) and not _BOXED_LETTER.fullmatch(content)


def is_placeholder(content: str) -> bool:
    """Return whether a value only shows the format, copied from the prompt: `final answer`."""
    if len(content) > 60 or content.isdigit() or not _HOLDS_WORD.search(content):
        return False
    return bool(RULE["box-placeholder"].fullmatch(without_markup(content)))


def _tags(reply: str) -> Iterator[Statement]:
    if "<" not in reply or "answer>" not in reply.lower():
        return
    for tag in [*RULE["tag"].finditer(reply)][-MOST_BOXES:]:
        content = tag[2].rpartition("<answer>")[2]
        if not RULE["placeholder"].fullmatch(content):
            start = tag.end() - len(content) - len(tag[1]) - 4
            flaw = "question" if RULE["question"].search(content) else ""
            yield Statement("tag", start, tag.end(), content.strip(), rule="tag", flaw=flaw)


def _labelled(reply: str, base: int, label_words: Sequence[str]) -> Iterator[Statement]:
    """Yield statements with a label near the end: "Answer: C", "the answer is 70"."""
    tail = reply[base:]
    lower = small = tail.lower()
    foreign = ASCII_FOREIGN_WORDS
    if not tail.isascii():  # keeps the length; lower() can change it
        lower = tail.encode("ascii", "replace").decode().lower()
        small, foreign = tail.replace("\u0130", "I").lower(), FOREIGN_WORDS
    labels = {  # `answer` replaces `ans` at the same offset
        offset: (len(word), RULE["label"])
        for word in reversed(label_words)
        for offset in places(lower, word)
    }
    for word in [word for word in foreign if word in small]:
        labels |= {offset: (len(word), RULE["foreign-label"]) for offset in places(small, word)}
    for offset, (length, label) in labels.items():
        if not (offset and lower[offset - 1].isalpha() and lower[offset].isalpha()):
            statement = _before_label(tail, offset, base, length)
            statement = statement or _behind_label(reply, base, offset, length, label)
            if statement:
                yield statement


def _before_label(tail: str, offset: int, base: int, length: int) -> Statement | None:
    """Return the statement "9, which is the answer", whose value stands before its label."""
    verb = tail.rfind(" is ", max(0, offset - 25), offset)
    numeral = verb >= 0 and _THE.match(tail, verb + 4, offset)
    if not numeral or not _NUMERAL.search(tail, max(0, verb - 40), verb):
        return None
    ahead = RULE["value-before"].search(tail, max(0, offset - LONGEST // 2), offset)
    if not ahead:
        return None
    start, end, text = base + ahead.start(1), base + offset + length, ahead[1]
    return Statement("sentence", start, end, text, text, start or 1, rule="value-before")


def _behind_label(
    reply: str, base: int, offset: int, length: int, behind: re.Pattern[str]
) -> Statement | None:
    offset += base
    if reply.startswith("s", offset + length) and reply[offset : offset + 6].lower() in _PLURAL:
        return None
    label = behind.match(reply, offset + length)
    if label is None and behind is not RULE["label"]:
        label = RULE["label"].match(reply, offset + length)
    statement = _valued(reply, offset, label.end()) if label else None
    if not label or not statement or not statement.text:
        return None
    gap = reply[offset + length : statement.value]
    if _below(gap, statement, reply):
        return None
    flaw = _flaw(reply, offset, gap, statement)
    if label.re is RULE["foreign-label"]:
        return replace(statement, rule="foreign-label", flaw=flaw)
    return replace(statement, flaw=flaw) if flaw else statement


def _flaw(reply: str, offset: int, gap: str, statement: Statement) -> str:
    if reply[statement.end : statement.end + 1] == "?":
        return "question"
    prefix = reply[max(reply.rfind("\n", 0, offset) + 1, offset - 60) : offset]
    if RULE["hedging-before"].search(prefix):
        return "hedging-before"
    near = max(0, len(prefix) - 40)
    rejecting = RULE["rejecting-before"].search(prefix, near)
    rejecting = rejecting or RULE["rejecting-behind"].search(gap)
    return "rejecting-label" if rejecting else ""


def _below(gap: str, statement: Statement, reply: str) -> bool:
    # A value on the next line needs a verb or a bare label before it, and is no list of options.
    head, below, _ = gap.partition("\n")
    bare = statement.form == "line" and not head.strip(" *_#`\"'")
    led = bare or _LEADS.search(head)
    return bool(below) and (not led or bool(RULE["options"].match(reply, statement.value)))


def places(text: str, word: str, start: int = 0) -> Iterator[int]:
    """Yield the offset of each occurrence of a word in a text, from `start` on."""
    offset = text.find(word, start)
    while offset >= 0:
        yield offset
        offset = text.find(word, offset + len(word))


def _valued(reply: str, offset: int, start: int) -> Statement:
    """Return the statement whose label is at `offset`, and whose value begins after `start`."""
    prefix = reply[reply.rfind("\n", 0, offset) + 1 : offset]
    while (blank := _BEFORE_VALUE.match(reply, start)) and blank.end() > start:
        start = blank.end()
    maths = MATHS.match(reply, start)
    stop = maths.end() if maths else start
    end = SENTENCE_END.search(reply, stop, stop + LONGEST)
    text_end = end.start() if end else min(len(reply), stop + LONGEST)
    line = reply[start : stop + LONGEST].partition("\n")[0] if not maths else reply[start:text_end]
    if goes_on := RULE["next-line"].match(reply, text_end):
        text_end = goes_on.end()
        line = reply[start:text_end]
    form = "line" if RULE["label-line"].fullmatch(prefix) else "sentence"
    explicit = form == "line" and bool(re.search(r"[:=\uff1a\n]", reply[offset:start]))
    text, line = reply[start:text_end].partition("</")[0].strip(), line.partition("</")[0].strip()
    rule = "label-line" if form == "line" else "label"
    text = "" if text.startswith("<answer") else text
    return Statement(form, offset, text_end, text, line, start, explicit, rule)


# --- rules that drop a statement ----------------------------------------------------------------

_SENTENCE = re.compile(
    r".*(?:[.!?][\"'\u201d\u2019)\]*$]*\s|(?<!\bif )\b(?:so|thus|therefore|hence)\b)", re.I
)
_CLAUSE = re.compile(r".*(?:[,;:]|\b(?:and|but|because)\b)", re.I)
_LABEL_BEFORE = re.compile(r"\b(?:the|my)?\s*answer\b[^.\n]{0,30}$", re.I)
_IS_WRONG = expanded("{IS_WRONG}")
_FIRST = re.compile(r"\S+")
_TAG_OR_SOURCE = re.compile(r"\A\s*<\w+>|\A[\s.$*]*[\"\u201d]\s*[\u2014\u2013-]+[^\n]{0,80}(?=\n)")
_WORDS = re.compile(r"[^\W\d_]{2,}")
MOST_WORDS = 3  # Maximum words of a value; a longer text is a sentence


def dropped(reply: str, statement: Statement) -> str:
    """Return the name of the rule that drops a statement, e.g. as denied or quoted; or ""."""
    text, context = _ends(statement.text), _ends(statement.more)
    if denied := statement.flaw or _denied(text) or ("" if statement.value else _denied(context)):
        return denied
    prefix = reply[max(0, statement.start - 200) : statement.start]
    prefix = prefix[prefix.rfind("\n") + 1 :]
    if RULE["edited"].search(text):
        return "edited"
    if RULE["naive-behind"].search(text if statement.value else f"0{context}"):
        return "naive-behind"
    if statement.form in ("box", "tag"):
        return _dropped_box(f"{text} {context}", prefix)
    if "would" in reply[statement.start : statement.value] and " if " in text:
        return "supposed"
    return "about" if RULE["about"].search(prefix) else doubted_sentence(prefix)


def _dropped_box(text: str, prefix: str) -> str:
    if " if " in text and prefix.rstrip(" $").endswith("would be"):
        return "supposed"
    if RULE["not-boxed"].search(prefix, max(0, len(prefix) - 110)):  # it spans no more
        return "not-boxed"
    label = _LABEL_BEFORE.search(prefix)
    return doubted_sentence(prefix[: label.start()]) if label else ""


def _ends(text: str) -> str:
    """Return a text, cut to its beginning and its end if it is far longer than any statement."""
    return text if len(text) <= 2 * TAIL else f"{text[:TAIL]}\n{text[-TAIL:]}"


def contradicted(text: str) -> bool:
    """Return whether a text denies or takes back the statement that it contains."""
    return bool(_denied(text) or search("takes-back", text))


def _denied(text: str) -> str:
    """Return the rule by which a text calls the words before it wrong or uncertain; or ""."""
    return next((name for name in ("denies", "hesitates") if search(name, text)), "")


def doubted(prefix: str) -> str:
    """Return the rule by which the words before a statement suppose, deny or quote it; or ""."""
    small = prefix.lower()
    if not may_match("supposed", small) and not may_match("not-said", small):
        return ""
    prefix = RULE["of-others"].sub("", prefix)
    if search("supposed", prefix):
        return "supposed"
    return "not-said" if search("not-said", _behind(_CLAUSE, prefix)) else ""


def doubted_sentence(prefix: str) -> str:
    """Return the rule by which the last sentence of `prefix` supposes or denies a value; or ""."""
    return doubted(_behind(_SENTENCE, prefix))


def _behind(beginning: re.Pattern[str], line: str) -> str:
    match = beginning.match(line)
    return line[match.end() :] if match else line


def stand_together(reply: str, earlier: Statement, later: Statement) -> bool:
    """Return whether both statements count: the text between does not retract the earlier one."""
    between = reply[earlier.end : later.start]
    if later.value:
        outranked = not earlier.value and (later.form == "line" or earlier.form == "sentence")
    else:
        outranked = earlier.value and len(_WORDS.findall(earlier.text)) > MOST_WORDS
    if outranked or len(between) > LONGEST or search("takes-back", between):
        return False
    between_words = [
        word for word in _WORDS.findall(between) if not RULE["joining"].fullmatch(word)
    ]
    if RULE["or-else"].match(between):
        return True
    limit = MOST_BETWEEN if "sentence" in (earlier.form, later.form) else 1
    value = _FIRST.match(reply, earlier.value)
    behind = value.end() if earlier.value and value else earlier.end
    return len(between_words) <= limit and not RULE["decides"].search(reply, behind, later.start)


def withdrawn(reply: str, statement: Statement) -> str:
    """Return the rule by which later text retracts the last statement; or "" if it stands."""
    behind = _ends(reply[statement.end :])
    remaining = _TAG_OR_SOURCE.sub("", behind).lstrip(" .!*$\n")
    if not remaining:
        return ""
    following = SENTENCE_END.split(remaining, maxsplit=1)[0]
    if denied := _denied(following[:200]):
        return denied
    if RULE["or-else"].match(behind):
        return "or-else"
    if RULE["next-naive"].match(following):
        return "naive-behind"
    if contradicting := _contradicting(statement.text, behind):
        return contradicting
    if not may_match("takes-back", behind.lower()):
        return ""
    ends = [match.end() for match in RULE["takes-back"].finditer(behind)]
    return "takes-back" if ends and not RULE["confirms"].search(behind, ends[-1]) else ""


def _contradicting(text: str, behind: str) -> str:
    """Return the rule by which later text calls a value wrong, or another right; "" if none."""
    value, near = text.strip(" $.*()")[:20], behind[:LONGEST]
    # Compiling a pattern for each new value takes a hundred times as long as the rest.
    if value and value in near:
        again = rf"(?<![\w.])(?<!option ){re.escape(value)}[)$]?\s+{_IS_WRONG}"
        if re.search(again, near):
            return "denies"
    right = [_numbers(without_markup(match[1])) for match in RULE["corrects"].finditer(behind)]
    plain = without_markup(text) if right else ""
    if _LETTER.match(plain.lstrip("(")) or re.search(r"[/\\^]", plain):
        return ""
    stated = _numbers(plain)
    return "corrects" if stated and any(not stated & numbers for numbers in right) else ""


def _numbers(text: str) -> set[Decimal]:
    return {Decimal(number) for number in _NUMBER.findall(text.replace(",", ""))}


def another_letter(remark: str, letter: str, letters: str) -> str:
    """Return the rule by which a short remark below the answer's line names another option."""
    remark = remark.partition("\n")[2].strip()  # an option's own text may stand on the line
    if len(remark) > SHORT or RULE["no-other"].search(remark):
        return ""
    named = {*pattern("another-letter", letters).findall(remark)}
    return "another-letter" if named - {letter} else ""


def another_number(remark: str, number: int) -> str:
    """Return the rule by which a short remark behind the answer concludes with another integer."""
    remark = remark.strip()
    last = RULE["another-number"].search(remark) if len(remark) <= SHORT else None
    if not last or RULE["no-other"].search(remark):
        return ""
    repeated = re.search(rf"(?<!\d){number}(?!\d)", remark)
    return "" if repeated or int(last[1].replace(",", "")) == number else "another-number"


def last_lines(tail: str) -> list[str]:
    """Return non-blank lines of `tail` without closing wishes; none if `or` or `and` ends it."""
    lines = [line for line in tail.splitlines() if line and not line.isspace()]
    while lines and RULE["wishes"].match(lines[-1]):
        lines.pop()
    return [] if any(line.strip().lower() in ("or", "and") for line in lines[-2:]) else lines


def last_sentences(lines: Sequence[str]) -> list[str]:
    """Return the sentences of the last three of `lines`, the last sentence first."""
    sentences = re.split(r"(?<=[.!?])\s+|\n+", "\n".join(lines[-3:]))
    return [sentence.strip(" *") for sentence in reversed(sentences)]


def is_bare(value: str) -> bool:
    r"""Return whether a text is a value and not a sentence: `9 cm`, `\frac{1}{2}`, `ribosome`."""
    if not re.search(r"[\w<>]", value) or "\\boxed" in value or "<answer" in value:
        return False
    if RULE["verb"].match(MATHS.sub("", value)):
        return False
    words = re.findall(r"(?<![\\A-Za-z])[A-Za-z]{3,}", value)
    counted = len(words) <= 3 and (value[0].isdigit() or value[0] in "$-\\(+.")
    return not words or counted or len(value.split()) == 1


# --- removing markup ----------------------------------------------------------------------------

_BARE = re.compile(r"[^\s$}]*")
_BRACE = re.compile(
    r"\\.|(?:\{[^{}\\]*+\})++|[{}]"
)  # an escaped character; pairs with no brace inside; one brace
_FONT = re.compile(
    r"\\(?:emph|underline|text(?:bf|it|rm|sf|tt)?|math(?:bf|rm|it|sf|tt)?|mbox|bm)\s*\{([^{}]*)\}"
)
_DEGREES = re.compile(r"\^? ?\{? ?(?:\\circ|\u00b0|\\degree) ?\}?")
_SPACING = re.compile(
    r"\\(?:[;: ]|(?:q?quad|displaystyle|left|right|strut|checkmark|bf|rm|it|[lL]arge|LARGE|[hH]uge)"
    r"(?![a-zA-Z]))"
)
_COLOUR = re.compile(r"\\(?:(?:text)?color|colorbox|hspace\*?)\s*\{[\w.]+\}")
_HTML = re.compile(r"</?(?:b|i|u|em|strong|code|p|span|br)\s*/?>", re.I)
_DIGITS_APART = re.compile(r"(?<=\d)\\,(?=\d)")
_MATHS_SIGN = re.compile(r"\\[()\[\]]")
_STARS = re.compile(r"\*(?:(?<![0-9A-Za-z]\*)\**|\**(?![0-9A-Za-z]))")


def without_struck(text: str) -> str:
    """Replace struck-out text (`~~8~~`) with spaces of the same length."""
    marked = ("~" in text and "~~" in text) or ("\\" in text and "cancel" in text)
    if marked or ("<" in text and RULE["struck"].search(text)):
        return RULE["struck"].sub(lambda struck: " " * len(struck.group()), text)
    return text


def _box_before(reply: str, end: int) -> tuple[str | None, int, int] | None:
    while (end := reply.rfind("box", 0, end)) >= 0:  # from the end: most replies are long
        start = reply.rfind("\\", max(0, end - len("\\frame")), end)
        box = RULE["box"].match(reply, start) if start >= 0 else None
        if box:
            content, stop = _braced(reply, box.end())
            if content is None or content.strip():
                return content, start, stop
    return None


def _braced(reply: str, start: int) -> tuple[str | None, int]:
    if start < len(reply) and reply[start] != "{":
        bare = _BARE.match(reply, start)
        return (bare.group(), bare.end()) if bare else (None, start)
    depth = 1
    for brace in _BRACE.finditer(reply, start + 1):
        if brace.end() - brace.start() > 1:
            continue
        depth += 1 if reply[brace.start()] == "{" else -1
        if depth == 0:
            return reply[start + 1 : brace.start()], brace.end()
    return None, len(reply)


def folded(text: str) -> str:
    """Return a text with full-width letters normalised and direction marks removed."""
    return text if text.isascii() else INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def without_markup(text: str) -> str:
    """Remove markup that does not change a number: fonts, maths signs, degrees, thin spaces."""
    plain = " ".join(text.split()).replace("{,}", ",").replace("\u2212", "-")
    plain = _without_latex(plain) if "\\" in plain or "\u00b0" in plain else plain
    plain = _HTML.sub("", plain) if "<" in plain else plain
    plain = plain.replace("\\$", "")
    plain = plain.replace("~", " ").replace("$", "").replace("`", "").replace("__", "")
    return (_STARS.sub("", plain) if "*" in plain else plain).strip()


def _without_latex(text: str) -> str:
    plain = _DIGITS_APART.sub(",", text).replace("\\!", "").replace("\\,", " ")
    if "circ" in plain or "\u00b0" in plain or "degree" in plain:
        plain = _DEGREES.sub("", plain)
    plain = _SPACING.sub(
        " ", _COLOUR.sub("", plain) if "color" in plain or "hspace" in plain else plain
    )
    for _ in range(4 if "{" in plain else 0):
        plain = _FONT.sub(r"\1", plain)
    return _MATHS_SIGN.sub("", plain)
