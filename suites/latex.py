"""Normalise an answer and its unit: its LaTeX, Unicode and plain forms become the same string.

Spaces, fonts, bracket sizes and maths delimiters are removed. Words and units get the quotes « »,
with an underscore for each space, so that they are not read as variables. A comma before a space
becomes a semicolon, unlike that of `11,111`. No unit is converted. Of the other words, names of
counted things (`5 ways`) are ignored, `million` is a factor, and any other word makes the value
different.
"""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

UNITS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("units.toml").read_text(encoding="utf-8")
)
_THIN = re.compile(r"(?<=\d)(?:,\s*\\!\s*|\{,\}|\\[,;: ]|~|[\u2009\u202f\u00a0])\s*(?=\d{3}(?!\d))")
_SIZES = re.compile(
    r"\\(?:(?:left|right|middle)(?![A-Za-z])\s*\.?|[bB]igg?[lrm]?(?![A-Za-z])"
    r"|(?:displaystyle|textstyle|limits|tiny|small|normalsize|[lL]arge|LARGE|[hH]uge|bf|rm|it|sf|tt"
    r"|therefore|checkmark|blacksquare|square|qed)(?![A-Za-z])|(?:hspace|tag)\*?\s*\{[^{}]*\})\s*"
)
_COLOUR = re.compile(
    r"\\(?:(?:text)?color|colorbox|fcolorbox\s*\{[^{}]*\})\*?(?:\[\w+\])?\s*\{(?!white)[^{}]*\}"
)
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)", re.S)
_SPELT: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("latex.toml").read_text(encoding="utf-8")
)
_SAME, _SPELT_SIGNS = (
    {variant: spelling for spelling, variants in _SPELT[kind].items() for variant in variants}
    for kind in ("commands", "signs")
)
_GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho"
_VULGAR = (
    "\u00bd\u2153\u2154\u00bc\u00be\u2155\u2156\u2157\u2158\u2159\u215a\u215b\u215c\u215d\u215e",
    "12 13 23 14 34 15 25 35 45 16 56 18 38 58 78",
)
_SIGNS = (
    _SPELT_SIGNS
    | {chr(0x3B1 + offset): f"\\{name} " for offset, name in enumerate(_GREEK.split())}
    | {
        char: f"\\frac{{{digits[0]}}}{{{digits[1]}}}"
        for char, digits in zip(_VULGAR[0], _VULGAR[1].split(), strict=True)
    }
)
_TABLE = str.maketrans(_SIGNS)
_POWERS_OF = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b\u207a"
_RAISED = dict(zip(_POWERS_OF, "0123456789-+", strict=True))
_POWER = re.compile(f"[{''.join(_RAISED)}]+")
_INDEX = re.compile("[\u2080-\u2089]+")
_ROOT_SIGN = re.compile(r"\u221a\s*(\d+(?:\.\d+)?|[A-Za-z]|\([^()]*\))")
_FONT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal|up)?|mathrm|mbox|operatorname)\s*"
    r"\{([^{}]*(?:\{[^{}]{0,20}\}[^{}]*){0,3})\}"
)
_BOLD = re.compile(
    r"\\(?:math(?:bf|it|sf|tt|normal)|bm|pmb|emph|boldsymbol|boxed|f(?:rame)?box|underline"
    r"|bbox\s*\[[^\]]*\])\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
)
_DEGREES = re.compile(r"\^\s*\{?\s*\\circ(?![A-Za-z])\s*\}?")
_FUNCTIONS = (
    r"(?:a?(?:rc)?(?:sin|cos|tan)h?|cot|sec|csc|log|exp|max|min|gcd|lcm|det|[pbvBV]?matrix"
    r"|cases|array|aligned|mathbb)(?![A-Za-z])"
)
_BARE = re.compile(
    rf"(?<![\\A-Za-z])(?!{_FUNCTIONS})(?:[A-Za-z](?:[A-Za-z]|['-](?=[A-Za-z]))"
    r"{2,}[A-Za-z]|or|and|not|but|per|mod|the|yes|way|[ckm]m|kg|ft|mph|oz|lbs?"
    r"|USD|EUR|GBP)(?![A-Za-z])|(?:(?<=\d)|(?<=\^)|(?<=\^\{))(?:st|nd|rd|th)(?![A-Za-z])"
)
_PLAIN_NAMES = re.compile(r"(?<![\\A-Za-z])(pi|infinity|infty|theta)(?![A-Za-z])")
_PLAIN_FUNCTION = re.compile(
    r"(?<![\\A-Za-z\u00ab])(ln|log|sin|cos|tan|exp)(?=\s*(?:[\d(_^\\]|[a-z](?![A-Za-z])))"
)
_MICRO = re.compile("(?<=[\\d ])\u03bc(?=[A-Za-z\u03a9])")
_MICRO_SET = re.compile(r"(?<=\d)(?:\\[,;: ]|\s)*\\mu\s*\\(?:text|mathrm)\s*\{(\w{1,3})\}")
_CALL = re.compile(r"(\\(?:ln|log|sin|cos|tan|cot|sec|csc))\s*\((\w{1,4})\)")
_COUNTS: list[str] = UNITS["words"]["counts"]
_COUNT = re.compile(rf"^({'|'.join(_COUNTS)})(?=\s+[a-z])", re.I)
_PLAIN_ROOT = re.compile(r"(?<![\\A-Za-z])sqrt\s*\(([^()]*)\)|\\sqrt\s*\(([^()]*)\)")
_QUOTED = re.compile("\u00ab[^\u00ab\u00bb]*\u00bb")
_LOOSE = re.compile(r",\s+")
_KEPT_GAP = re.compile(r"(\\[A-Za-z]+)\s+(?=[A-Za-z])|(?<=\d)\s+(?=[\d.])")
_LETTER = re.compile(r"(?<![\d})\u00bb/.])\u00ab([A-Za-z])\u00bb")
_CELSIUS = re.compile("\u00abdeg\u00bb\u00ab?([CFK])\u00bb?$")
_ONE = re.compile(r"([_^])\{(\w)\}")
_PART = r"(\{[^{}]*\}|[0-9a-zA-Z]|\\[a-z]+)"
_SHORT_FRACTION = re.compile(rf"\\frac\s*{_PART}\s*{_PART}")
_SHORT_ROOT = re.compile(r"\\sqrt\s*(\[\w+\]|)\s*([0-9a-zA-Z])")
_WORDY = re.compile("[A-Za-z]{2}")
_UNIT_OF = re.compile(
    r"([-+]?\s*(?:\\?\$)?\s*[\d.,]+(?:/\d+)?(?:\s*(?:\\cdot|[x*])\s*10\s*\^\s*\{?[+-]?\d+\}?|[eE][+-]?\d+)?)"
    r"(\s*)((?:[A-Za-z\u00b5\u03a9 /.*^(){}\d-]|\\(?:cdot|Omega)(?![A-Za-z])){1,40})"
)
_TIGHT = re.compile(
    r"(?:[kcmn\u00b5]m|k?g|mg|ms|k?J|k?Pa|[kMG]?Hz|[kMG]?eV|mol|ft|lbs?|mph)(?:[/^].*)?"
)
_BEFORE = re.compile(r"(?<![\\A-Za-z])(?:in|the|US)\s*(?=\$?\d)")
_POWER_SIGN = re.compile(r"\*\*(?=[\d({])")
_NUMBERED = re.compile(r"\s*[-+$]?\d")

_BODY = r"((?:(?!\\begin|\\end).)*)\\end\{\1\}\s*"
_COLUMNS = r"(?:(?<=array\})\s*\{(?:[^{}|]|\{[^{}|]*\})*\})?"
_GRID = re.compile(rf"[(\[]\s*\\begin\{{(array|smallmatrix|matrix)\}}{_COLUMNS}{_BODY}[)\]]", re.S)
_LINES = re.compile(
    r"(?:\\\{\s*)?\\begin\{((?:align|gather)(?:ed)?(?:\\cdot )?|equation(?:\\cdot )?|split|array)\}"
    rf"(?:\[\w\])?{_COLUMNS}{_BODY}",
    re.S,
)  # at this point the `*` of `align*` is \\cdot
_ALIGNED = re.compile(r"&\s*(?=[=<>]|\\[lg]eq?)|^\s*&|(?<=\\\\)\s*&")
_ROW_SPACE = re.compile(r"(\\\\)\[[^\]]{0,9}\]")
_BASE_WORD = re.compile("(?<=_)\\{?\u00ab([a-z]+)\u00bb\\}?")
_BRACKET = re.compile(r"\\[lr]angle(?![A-Za-z])|\\begin|\\end|\\?[()\[\]{}]")
_OPENS = ("(", "[", "{", "\\{", "\\langle", "\\begin")
_CHARACTERS = str.maketrans(
    {"\u03bc": "\u00b5", "\u2126": "\u03a9", "\u00b2": "^2", "\u00b3": "^3"}
)
_TOKEN = re.compile(r"[A-Za-z\u00b5\u03a9\u00b0\u00a2\u20ac\u00a3\u00a5\u20b9$]+|\^-?\d+|/|\d+")
_POWERS = {"square": "^2", "sq": "^2", "cubic": "^3", "cu": "^3"}
_BEHIND = {"squared": "^2", "cubed": "^3", "per": "/"}
_OF_SCALE = re.compile("deg(?=[CFK]$)")
SCALES = {word + end: scale for word, scale in UNITS["scales"].items() for end in ("", "s")}
_NO_UNIT = frozenset(
    {
        "units^2",
        "units^3",
        "unit",
        "units",
        "square units",
        "square unit",
        "cubic units",
        "cubic unit",
    }
)
_PLURALS, _CHANGING = (frozenset(UNITS["words"][name].split()) for name in ("plurals", "changing"))
_CHUNK = "\u00ab[^\u00ab\u00bb]{1,60}\u00bb(?:\\^\\{?-?\\d\\}?)?"
_TAIL = re.compile(rf"\^?\{{?{_CHUNK}\}}?(?:(?:/|\\cdot|\.|;)?{_CHUNK}){{0,7}}$")
_WORD = re.compile("[A-Za-z]{2,}")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)(?![A-Za-z])")
_MONEY = re.compile(
    "([-+]?)(?:US)?\u00ab([$\u20ac\u00a3\u00a5\u20b9]|USD|EUR|GBP|dollars?|euros?)\u00bb([-+]?)"
)


@lru_cache(maxsize=4096)
def normalise_answer(text: str) -> str:
    r"""Return an answer in the spelling that all its LaTeX, Unicode and plain forms share.

    >>> normalise_answer(r"\left( 3, \dfrac\pi2 \right)"), normalise_answer("3π cm²")
    ('(3;\\frac{\\pi}{2})', '3\\pi«cm»^2')
    """
    spelling = _signs(_BEFORE.sub("", text.strip().strip("*`").strip()))
    if "\\" in spelling:
        spelling = _without_commands(spelling)
    spelling = _CALL.sub(r"\1 \2", spelling)
    if "$" in spelling or "%" in spelling:
        spelling = _delimited(spelling)
    if match := _UNIT_OF.fullmatch(spelling):
        spelling = _with_unit(match)
    if _WORDY.search(spelling):
        spelling = _outside_quotes(spelling, _named)
    spelling = _without_gaps(spelling)
    spelling = spelling if spelling.endswith("..") else spelling.removesuffix(".")
    return _braced(spelling)


def _signs(text: str) -> str:
    spelling = _COUNT.sub(lambda word: str(_COUNTS.index(word[1].lower()) + 1), text)
    spelling = spelling if spelling.isascii() else _ascii(spelling)
    spelling = _PLAIN_FUNCTION.sub(r"\\\1 ", spelling)
    if spelling[:1] == "~" and "\\" not in spelling:  # `~5`: about 5
        spelling = f"\\sim{spelling[1:]}"
    if "*" in spelling:
        spelling = _POWER_SIGN.sub("^", spelling).replace("*", "\\cdot ")
    return _THIN.sub("", spelling).replace("~", " ").replace(" != ", "\\neq ")


def _without_commands(text: str) -> str:
    text = _SIZES.sub(" ", text)
    if "\\begin" in text:
        text = _GRID.sub(r"\\begin{pmatrix}\2\\end{pmatrix}", text)
        text = _LINES.sub(_as_cases, text)
    text = _COLOUR.sub("", text) if "color" in text else text
    text = _MICRO_SET.sub(" \\\\text{\u00b5\\1}", text)
    text = _COMMAND.sub(lambda name: _SAME.get(name[0], name[0]), text)
    text = _DEGREES.sub("\u00abdeg\u00bb", text)
    for _ in range(3):
        if "{" not in text:
            break
        text = _FONT.sub(_quoted, _BOLD.sub(r"\1", text))
    return text


def _as_cases(lines: re.Match[str]) -> str:
    return f"\\begin{{cases}}{_ALIGNED.sub('', lines[2])}\\end{{cases}}"


def _ascii(text: str) -> str:
    """Replace Unicode signs by LaTeX commands, full-width letters and foreign digits by ASCII."""
    micro = _MICRO.sub("\u00b5", text)
    raised = _POWER.sub(lambda power: f"^{{{''.join(_RAISED[char] for char in power[0])}}}", micro)
    low = _INDEX.sub(
        lambda index: f"_{{{''.join(chr(ord(char) - 0x2050) for char in index[0])}}}", raised
    )
    rooted = _ROOT_SIGN.sub(lambda root: f"\\sqrt{{{root[1].strip('()')}}}", low)
    signs = rooted.translate(_TABLE)
    narrow = (chr(ord(char) - 0xFEE0) if "\uff01" <= char <= "\uff5e" else char for char in signs)
    return "".join(str(int(char)) if char.isdecimal() else char for char in narrow)


def _with_unit(match: re.Match[str]) -> str:
    """Return a number with its unit between « and » if the unit is known: `5«m»` of `5 m`."""
    unit = match[3].strip(" .")
    is_one = is_unit(unit) and (match[2] or _TIGHT.fullmatch(unit))
    return f"{match[1]}\u00ab{'_'.join(unit.split())}\u00bb" if is_one else match[0]


def _quoted(match: re.Match[str]) -> str:
    """Return the words in a LaTeX font command between « and »; numbers and functions without."""
    content = match[1].replace("\u00ab", " ").replace("\u00bb", " ")
    if len(content) > 1 and content.strip()[:1] + content.strip()[-1:] == "$$":
        return content.replace("$", " ")
    if not any(char.isalpha() for char in content) or _NUMBERED.match(content):
        return match[1]
    if re.fullmatch(_FUNCTIONS, content.strip()) and content.strip() != "min":
        return f"\\{content.strip()} "
    inside = "_".join(content.replace("$", " ").split()).strip(",.;_")
    return f"\u00ab{inside}\u00bb"


def _delimited(text: str) -> str:
    """Return the text without maths delimiters ($); a single $ before a digit is a currency."""
    if _QUOTED.sub("", text).count("$") == 1:
        pos = text.rfind("$")
        if re.match(r"\s*\.?\d", text[pos + 1 :]) and not text[:pos].endswith("\u00ab"):
            return (text[:pos] + "\u00ab$\u00bb" + text[pos + 1 :]).replace("%", "\u00ab%\u00bb")
    return _outside_quotes(text, lambda span: span.replace("$", " ").replace("%", "\u00ab%\u00bb"))


def _named(span: str) -> str:
    spelling = _PLAIN_ROOT.sub(lambda root: f"\\sqrt{{{root[1] or root[2]}}}", span)
    spelling = _PLAIN_NAMES.sub(lambda name: f"\\{name[1].replace('infinity', 'infty')} ", spelling)
    return _BARE.sub(lambda word: f"\u00ab{word[0]}\u00bb", spelling)


def _outside_quotes(text: str, change: Callable[[str], str]) -> str:
    """Return the text with `change` applied to every span outside « and »."""
    spans, quotes = map(change, _QUOTED.split(text)), [*_QUOTED.findall(text), ""]
    return "".join(span + quoted for span, quoted in zip(spans, quotes, strict=True))


def _without_gaps(text: str) -> str:
    if " " in text or "\n" in text or "\t" in text:
        with_nuls = _KEPT_GAP.sub(lambda gap: f"{gap[1] or ''}\0", _LOOSE.sub(";", text))
        text = "".join(with_nuls.split()).replace("\0", " ")
    text = _CELSIUS.sub("\u00ab\\1\u00bb", text) if "deg\u00bb" in text else text
    return _LETTER.sub(r"\1", text) if "\u00ab" in text else text


def _braced(text: str) -> str:
    if "\\\\[" in text:
        text = _ROW_SPACE.sub(r"\1", text)
    if "_" in text and "\u00ab" in text:
        numbers = {name: f"{{{count}}}" for count, name in enumerate(_COUNTS, 1) if count > 1}
        text = _BASE_WORD.sub(lambda word: numbers.get(word[1], word[0]), text)
    if "{" in text:
        text = _ONE.sub(r"\1\2", text)
    if "\\frac" in text:
        text = _SHORT_FRACTION.sub(lambda match: f"\\frac{_in_braces(match)}", text)
    return _SHORT_ROOT.sub(r"\\sqrt\1{\2}", text) if "\\sqrt" in text else text


def _in_braces(match: re.Match[str]) -> str:
    return "".join(operand if operand[0] == "{" else f"{{{operand}}}" for operand in match.groups())


def split_outside_brackets(text: str, separator: re.Pattern[str]) -> list[str]:
    r"""Split a normalised answer at the separators that are outside all brackets.

    >>> split_outside_brackets(r"(1;2);\{3,4\},f(5,6)", re.compile("[,;]"))
    ['(1;2)', '\\{3,4\\}', 'f(5,6)']
    """
    depth, position, pieces, start = 0, 0, list[str](), 0
    for end in separator.finditer(text):
        brackets = _BRACKET.findall(text[position : end.start()])
        depth += sum(1 if bracket in _OPENS else -1 for bracket in brackets)
        position = end.start()
        if depth == 0:
            pieces.append(text[start:position])
            start = end.end()
    return [*pieces, text[start:]]


def _table() -> dict[str, str]:
    table = dict[str, str]()
    prefixes: dict[str, str] = {name: sign for name, (sign, _) in UNITS["prefixes"].items()}
    si, everyday = cast(list[dict[str, str]], [UNITS["si"], UNITS["everyday"]])
    for units, allowed in ((si, prefixes), (everyday, {"": ""})):
        for symbol, names in units.items():
            for prefix, sign in allowed.items():
                table.setdefault(sign + symbol, sign + symbol)
                for name in names.split():
                    shorts = (prefix,) if len(name) > 3 else (sign, prefix)
                    for short in shorts[: 1 + (len(name) == 3)]:
                        table |= dict.fromkeys((short + name, f"{short}{name}s"), sign + symbol)
    return {**table, "mph": "mi/h", "kph": "km/h", "kmh": "km/h", "Celsius": "C", "Fahrenheit": "F"}


SYMBOLS = _table()


@lru_cache(maxsize=4096)
def normalise_unit(unit: str) -> str:
    """Return a unit in symbols, without spaces; words not in the table `SYMBOLS` stay unchanged.

    >>> [normalise_unit(unit) for unit in ("meters per second squared", "square inches", "apples")]
    ['m/s^2', 'in^2', 'apples']
    """
    return _OF_SCALE.sub("", "".join(_tokens(unit)))


@lru_cache(maxsize=4096)
def is_unit(unit: str) -> bool:
    """Return whether a text is a unit: the table `SYMBOLS` has each of its words.

    >>> is_unit("km/h"), is_unit("or so"), is_unit("")
    (True, False, False)
    """
    tokens = (token for token in _tokens(unit) if token[0] not in "/^")
    words = [word for token in tokens for word in token.split("/")]
    in_table = (word in SYMBOLS or (len(word) > 1 and word.lower() in SYMBOLS) for word in words)
    return bool(words) and all(in_table)


def units_contradict(gold: "Measured", answer: "Measured") -> bool:
    """Return whether the target and an answer are values with different units.

    A percent sign or a count (5 ways) differs from every unit. Case distinguishes known units (mW,
    MW), but not unknown ones.
    """
    if gold.unit and answer.unit:
        both_known = gold.unit in SYMBOLS and answer.unit in SYMBOLS
        alike = not both_known and gold.unit.casefold() == answer.unit.casefold()
        return gold.unit != answer.unit and not alike
    unitless = gold if answer.unit else answer
    return bool((gold.unit or answer.unit) and (unitless.percent or unitless.counted))


def _tokens(unit: str) -> list[str]:
    plain = re.sub(r"[{}()]", "", unit.translate(_CHARACTERS).replace("\\cdot", " "))
    symbols, power = list[str](), ""
    for token in _TOKEN.findall(plain):
        word = token.lower() if token.lower() in _POWERS or token.lower() in _BEHIND else token
        if word in _POWERS:
            power = _POWERS[word]
        elif word.startswith("^-") and symbols:
            symbols[-1:] = ["/", symbols[-1]] + ([] if word == "^-1" else [f"^{word[2:]}"])
        else:
            symbol = SYMBOLS.get(word) or (SYMBOLS.get(word.lower()) if len(word) > 3 else None)
            symbols.append(_BEHIND.get(word) or symbol or word)
            if power and symbols[-1] != "/":
                symbols.append(power)
                power = ""
    return symbols


@dataclass(frozen=True, slots=True)
class Measured:
    """An answer, separated into value, unit and other words."""

    value: str
    unit: str = ""
    """The unit in symbols, such as `m/s^2`, or empty."""
    words: str = ""
    """Words that are neither a unit nor things counted, such as `or so`; empty if none."""
    scale: int = 1
    percent: bool = False
    counted: bool = False
    """Whether the words named the things counted (`5 ways`); `words` is then empty."""


@lru_cache(maxsize=4096)
def parse_measured(text: str) -> Measured:
    r"""Return the value, unit and words of an answer that `normalise_answer` returned.

    >>> parse_measured("15\u00abcm\u00bb^2").unit, parse_measured("5\u00abmillion\u00bb").scale
    ('cm^2', 1000000)
    >>> parse_measured("5\u00abways\u00bb").words, parse_measured("5\u00abor_so\u00bb").words
    ('', 'or so')
    """
    if "\u00ab" not in text:
        return Measured(text)
    money = _MONEY.match(text)
    text = f"{money[1]}{money[3]}{text[money.end() :]}" if money else text
    currency = normalise_unit(money[2]) if money else ""
    tail = _TAIL.search(text)
    if tail is None or not tail.start() or _WORD.fullmatch(text, 0, tail.start()):
        return Measured(text, currency)
    unit_text = tail[0].replace("\u00ab%\u00bb", "\u00abpercent\u00bb").lstrip("^{")
    plain = re.sub("[\u00ab\u00bb_.;]", " ", re.sub("[{}]", "", unit_text))
    words = " ".join(plain.replace(" ^", "^").split()).replace("per cent", "percent")
    measure = _read_words(text[: tail.start()], words)
    if currency and measure.unit not in ("", currency):
        return replace(measure, words=measure.unit)
    return replace(measure, unit=currency or measure.unit)


def _read_words(value: str, words: str) -> Measured:
    ordinal = _ORDINAL.match(words)
    remaining = (words[ordinal.end() :] if ordinal else words).split()
    scale = 1
    while remaining and remaining[0].lower() in SCALES:
        scale *= SCALES[remaining.pop(0).lower()]
    remaining = remaining[remaining[:1] == ["of"] :]
    percent = remaining[:1] == ["percent"]
    unit = " ".join(remaining[percent:])
    if not unit or unit.lower() in _NO_UNIT:
        return Measured(value, scale=scale, percent=percent)
    if is_unit(unit):
        return Measured(value, normalise_unit(unit), scale=scale, percent=percent)
    counted = bool(_counted(unit, value) or (ordinal and unit.isalpha() and unit not in _CHANGING))
    return Measured(value, "", "" if counted else unit, scale, percent, counted)


def _counted(words: str, number: str) -> bool:
    """Return whether words name things counted: `ways`, `positive integers`, after 1 also `way`."""
    few = words.lower().replace("-", " ").split()
    noun = few[-1]
    if _CHANGING & set(few) or SCALES.keys() & set(few) or not "".join(few).isalpha():
        return False
    plural = noun in _PLURALS or (noun.endswith("s") and not noun.endswith(("ss", "us", "is")))
    return len(few) <= 4 and len(noun) > 2 and (plural or number == "1")
