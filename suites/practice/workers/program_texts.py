# ruff: noqa: E501 - one operation to a row: wrapped, nobody can compare them
"""Operations on letters and on words."""

import itertools

from podium.suites.practice.workers.program_numbers import (
    TEXT,
    TEXT_INT,
    TEXT_TEXT,
    WORD_LIST,
    WORDS_INT,
    Family,
    Variants,
)


def _palindrome(text: str, letters: bool = True) -> bool:
    kept = [letter for letter in text.lower() if letter.isalnum()] if letters else list(text)
    return kept == kept[::-1]


def _caesar(text: str, k: int) -> str:
    result = ""
    for letter in text:
        if letter.isalpha():
            start = ord("a") if letter.islower() else ord("A")
            result += chr((ord(letter) - start + k) % 26 + start)
        else:
            result += letter
    return result


def _run_lengths(text: str, first: str = "letter", single: bool = True, gap: str = "") -> str:
    parts: list[str] = []
    i = 0
    while i < len(text):
        j = i
        while j < len(text) and text[j] == text[i]:
            j += 1
        count = str(j - i) if single or j - i > 1 else ""
        parts.append(text[i] + count if first == "letter" else count + text[i])
        i = j
    return gap.join(parts)


def _balanced(text: str) -> bool:
    pairs = {")": "(", "]": "[", "}": "{"}
    stack: list[str] = []
    for mark in text:
        if mark in "([{":
            stack.append(mark)
        elif mark in pairs and (not stack or stack.pop() != pairs[mark]):
            return False
    return not stack


def _commonest_letter(text: str, earliest: bool = False) -> str:
    kept = [letter for letter in text.lower() if letter.isalpha()]
    ordered = kept if earliest else sorted(kept)
    return max(ordered, key=kept.count) if kept else ""


def _occurrences(text: str, second: str, overlap: bool = False) -> int:
    if not overlap:
        return text.count(second)
    return sum(text.startswith(second, at) for at in range(len(text)))


def _letter_counts(text: str) -> list[tuple[str, int]]:
    low = text.lower()
    return [(letter, low.count(letter)) for letter in sorted(set(low)) if letter.isalpha()]


def _longest_text_run(text: str) -> int:
    best = length = 1 if text else 0
    for before, mark in itertools.pairwise(text):
        length = length + 1 if mark == before else 1
        best = max(best, length)
    return best


RLE = r"run[- ]length|compress\w*|consecutive (?:equal|identical|repeated|same)|runs? of (?:equal|identical|the same)"
CODED: Variants = (
    {}, {"first": "count"}, {"single": False}, {"first": "count", "single": False},
    {"gap": " "}, {"first": "count", "gap": " "},
)  # fmt: skip
COUNT = r"(?:how many|(?:the )?number of|counts?)(?: the| of)*"

TEXTS: tuple[Family[...], ...] = (
    Family("vowels", 1, rf"{COUNT} vowels?(?: \(a, e, i, o,? (?:and )?u\))?|\bvowels\b", TEXT, "int",
       called="vowels", does=lambda text: sum(1 for letter in text.lower() if letter in "aeiou")),
    Family("reversing a text", 1, r"\brevers\w+(?: of)?(?: the| a| this| it| that| given)* ?(?:string|text|line|word\b|characters|letters)?|\bbackwards\b", TEXT, "text", stage=3,
       called="reverse_text", does=lambda text: text[::-1]),
    Family("palindromes", 2, r"palindrom\w*|(?:reads?|is) the same (?:forwards?|backwards?)[^.]{0,30}", TEXT, "bool", _palindrome, variants=({}, {"letters": False})),
    Family("Caesar shift", 2, r"caesar(?: cipher| shift)*|(?:shift|rotat)\w*[^.]{0,60}(?:letter|alphabet)[^.]{0,40}|(?:mov|replac|encod|encrypt)\w*[^.]{0,60}(?:alphabet|positions|places)[^.]{0,40}|(?:letter|alphabet)[^.]{0,60}(?:shift|rotat)\w*[^.]{0,20}", TEXT_INT, "text", _caesar, r"(?:shift(?:ed)?|shift of|by|key|rotation of) (\d+)"),
    Family("run-length encoding", 2, rf"(?:{RLE})[^.]{{0,60}}(?:encod\w*)?", TEXT, "text", _run_lengths, variants=CODED),
    Family("anagrams", 2, r"anagrams?(?: of (?:each other|one another|the other))?|rearrang\w+[^.]{0,60}|same letters[^.]{0,40}", TEXT_TEXT, "bool", called="anagrams", does=lambda text, second:
           sorted(text.replace(" ", "").lower()) == sorted(second.replace(" ", "").lower())),
    Family("balanced brackets", 2, r"(?:balanced|valid|properly|correctly|well)[^.]{0,40}(?:brackets?|parenthes[ei]s|nested|matched|formed)|(?:brackets?|parenthes[ei]s)[^.]{0,60}(?:balanced|valid|properly|match\w*|correctly|closed)", TEXT, "bool", _balanced),
    Family("the commonest letter", 3, r"(?:letter|character)[^.]{0,40}(?:most (?:often|frequent\w*)|most times|the most)|most (?:common|frequent) (?:letter|character)", TEXT, "text", _commonest_letter, variants=({}, {"earliest": True})),
    Family("leaving vowels out", 3, r"(?:remov\w+|delet\w+|drop\w*|without|omit\w*)[^.]{0,20}vowels", TEXT, "text", stage=1, called="without_vowels",
       does=lambda text: "".join(letter for letter in text if letter.lower() not in "aeiou")),
    Family("different letters", 3, rf"{COUNT} (?:distinct|different|unique) (?:letters|characters)", TEXT, "int", called="distinct_letters",
       does=lambda text: len({letter for letter in text.lower() if letter.isalpha()})),
    Family("sorting letters", 3, r"(?:letters|characters)[^.]{0,30}(?:sorted|alphabetical(?:ly)?(?: order)?)|sort[^.]{0,20}(?:letters|characters)[^.]{0,30}", TEXT, "text", stage=3,
       called="sorted_letters", does=lambda text: "".join(sorted(text))),
    Family("occurrences in a text", 2, r"(?:how many times|(?:the )?number of (?:times|occurrences)|count\w*|occurrences)[^.]{0,60}(?:occurs?|appears?|substring|letter|character|pattern|word|second (?:string|text))", TEXT_TEXT, "int", _occurrences, variants=({}, {"overlap": True})),
    Family("letter counts", 3, r"(?:each|every) (?:distinct |different )?(?:letter|character)[^.]{0,60}(?:times|count|frequency|number)?|(?:letter|character) counts|frequency of each", TEXT, "pairs", _letter_counts),
    Family("longest run in a text", 3, r"longest[^.]{0,40}(?:run|equal|identical|same|repeated)[^.]{0,30}(?:letters?|characters?)?", TEXT, "int", _longest_text_run),
)  # fmt: skip


def _text_runs(text: str) -> list[int]:
    marks = [at for at in range(1, len(text)) if text[at] != text[at - 1]]
    ends = [0, *marks, len(text)]
    return [b - a for a, b in itertools.pairwise(ends)]


JOINING = Family(
    "a line of words", 1, r"(?!)", WORD_LIST, "text", stage=6,
    called="joined", does=lambda words: " ".join(words),
)  # fmt: skip
"""What a method that returns a text does with words at the end."""

WORDS: tuple[Family[...], ...] = (
    Family("the words of a sentence", 1, r"\bwords?\b", TEXT, "words", stage=0,
       called="words", does=lambda text: text.split()),
    Family("counting words", 1, r"(?:how many|number of|count)[^.]{0,15} words|\bcount\b|\bhow many\b", WORD_LIST, "int",
       called="count_words", does=lambda words: len(words)),
    Family("reversing the order of words", 1, r"(?:revers\w+|backwards?|opposite|last to first)[^.]{0,40}\bwords\b|\bwords\b[^.]{0,50}(?:revers\w*(?: order)?|backwards?|opposite order|last to first)", WORD_LIST, "words", stage=3,
       called="reverse_words", does=lambda words: words[::-1]),
    Family("the longest word", 2, r"longest word|word[^.]{0,30}longest", WORD_LIST, "text", variants=({}, {"last": True}), called="longest_word",
       does=lambda words, last=False: max(words[::-1] if last else words, key=len)),
    Family("reversing each word", 2, r"revers\w+[^.]{0,30}(?:each|every|individual)(?: of the)? words?[^.]{0,20}|(?:each|every) word[^.]{0,30}revers\w*", WORD_LIST, "words", stage=2,
       called="each_reversed", does=lambda words: [word[::-1] for word in words]),
    Family("word lengths", 3, r"(?:lengths? of (?:each|every|the|all)(?: of the)?|word) ?(?:words?|lengths)|\blengths?\b", WORD_LIST, "ints", stage=2,
       called="lengths", does=lambda words: [len(word) for word in words]),
    Family("sorting words", 2, r"sort\w*[^.]{0,40}(?:alphabetical\w*|lexicographic\w*|dictionary)?(?: order)?|alphabetical(?:ly)?(?: order)?|lexicographic\w*(?: order)?", WORD_LIST, "words", stage=3,
       called="sorted_words", does=lambda words: sorted(words)),
    Family("each word once", 3, r"remov\w+ (?:the |all |any )?(?:duplicate|repeated)(?: words)?|first (?:occurrence|appearance)s?|\b(?:unique|distinct|different)\b", WORD_LIST, "words", stage=1,
       called="words_once", does=lambda words: list(dict.fromkeys(words))),
    Family("palindromic words", 3, r"(?:are |that are |which are )?(?:palindrom\w*|(?:read|same)[^.]{0,40}backwards?)", WORD_LIST, "words", stage=1, called="palindromic",
       does=lambda words: [word for word in words if word.lower() == word.lower()[::-1]]),
    Family("short words", 4, r"(?:shorter|fewer|less) than(?: \w+)?(?: letters| characters)?", WORDS_INT, "words", bind=r"(?:shorter|fewer|less) than (\w+)", stage=1,
       called="shorter", does=lambda words, k: [word for word in words if len(word) < k]),
    Family("words of some length or more", 3, r"at least \w+ (?:letters|characters)|length (?:of )?at least(?: \w+)?", WORDS_INT, "words", bind=r"at least (\w+)", stage=1,
       called="long_enough", does=lambda words, k: [word for word in words if len(word) >= k]),
    Family("words of one length", 3, r"(?:exactly|of length) \w+(?: letters| characters)?", WORDS_INT, "words", bind=r"(?:exactly|of length) (\w+)", stage=1,
       called="of_length", does=lambda words, k: [word for word in words if len(word) == k]),
    Family("letter multiplicities", 3, r"(?:letters|characters)[^.]{0,30}(?:occur|appear|are used)\w*(?: (?:exactly|in|more|at|only))?", TEXT, "ints", stage=0, called="letter_multiplicities",
       does=lambda text: [text.count(letter) for letter in dict.fromkeys(text) if letter.strip()]),
    Family("runs of a text", 3, r"(?:maximal )?(?:runs?|blocks?|groups?)\b[^.]{0,30}(?:letters?|characters?|symbols?|equal|same)", TEXT, "ints", _text_runs, stage=0),
    Family("letters", 3, r"(?:how many|(?:the )?number of|counts?)(?: the| of)* (?:letters|alphabetic\w*)(?: in)?", TEXT, "int",
       called="letters", does=lambda text: sum(1 for letter in text if letter.isalpha())),
    Family("letters of all words", 4, r"total (?:number of )?(?:letters|characters|length)", WORD_LIST, "int",
       called="letters_of_all", does=lambda words: sum(len(word) for word in words)),
)  # fmt: skip
