# ruff: noqa: E501 - one operation to a row: wrapped, nobody can compare them
"""Operations on letters and on words."""

import itertools

from harness.rehearsal.program_numbers import (
    TEXT,
    TEXT_INT,
    TEXT_TEXT,
    WORD_LIST,
    WORDS_INT,
    Family,
    Variants,
    Words,
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


def _uncaesar(text: str, k: int) -> str:
    result = ""
    for letter in text:
        if letter.isalpha():
            start = ord("a") if letter.islower() else ord("A")
            result += chr((ord(letter) - start - k) % 26 + start)
        else:
            result += letter
    return result


def _atbash(text: str) -> str:
    result = ""
    for letter in text:
        if letter.isalpha():
            ends = ord("a") + ord("z") if letter.islower() else ord("A") + ord("Z")
            letter = chr(ends - ord(letter))
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


def _expand_runs(text: str, first: str = "letter") -> str:
    result, number, letter = "", "", ""
    for mark in text:
        if mark.isdigit():
            number += mark
        elif first == "letter":
            result += letter * int(number or 1)
            letter, number = mark, ""
        else:
            result += mark * int(number or 1)
            number = ""
    return result + letter * int(number or 1)


def _balanced(text: str) -> bool:
    pairs = {")": "(", "]": "[", "}": "{"}
    stack: list[str] = []
    for mark in text:
        if mark in "([{":
            stack.append(mark)
        elif mark in pairs and (not stack or stack.pop() != pairs[mark]):
            return False
    return not stack


def _depth(text: str) -> int:
    depth = best = 0
    for mark in text:
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
        best = max(best, depth)
    return best


def _unmatched(text: str) -> int:
    opened = missing = 0
    for mark in text:
        if mark in "([{":
            opened += 1
        elif mark in ")]}" and opened:
            opened -= 1
        elif mark in ")]}":
            missing += 1
    return opened + missing


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


def _is_subsequence(text: str, second: str) -> bool:
    rest = iter(second)
    return all(letter in rest for letter in text)


def _common_prefix(text: str, second: str) -> str:
    at = 0
    while at < min(len(text), len(second)) and text[at] == second[at]:
        at += 1
    return text[:at]


def _longest_text_run(text: str) -> int:
    best = length = 1 if text else 0
    for before, mark in itertools.pairwise(text):
        length = length + 1 if mark == before else 1
        best = max(best, length)
    return best


def _longest_palindrome(text: str) -> int:
    size = len(text)
    return max(
        (j - i for i in range(size) for j in range(i, size + 1) if text[i:j] == text[i:j][::-1]),
        default=0,
    )


def _longest_without_repeat(text: str) -> int:
    start = best = 0
    for at, mark in enumerate(text):
        if mark in text[start:at]:
            start = text.index(mark, start) + 1
        best = max(best, at - start + 1)
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
    Family("upper case", 2, r"(?:to|in(?:to)?) (?:upper ?-?case|capitals?)", TEXT, "text", stage=2,
       called="upper", does=lambda text: text.upper()),
    Family("lower case", 2, r"(?:to|in(?:to)?) lower ?-?case", TEXT, "text", stage=2,
       called="lower", does=lambda text: text.lower()),
    Family("swapping case", 3, r"(?:swap\w*|toggl\w+|flip\w*|invert\w*)[^.]{0,30}case|upper[^.]{0,30}lower[^.]{0,40}vice versa", TEXT, "text", stage=2,
       called="swap_case", does=lambda text: text.swapcase()),
    Family("consonants", 3, rf"{COUNT} consonants?", TEXT, "int", called="consonants", does=lambda text:
           sum(1 for letter in text.lower() if letter.isalpha() and letter not in "aeiou")),
    Family("capital letters", 3, rf"{COUNT} (?:upper ?-?case|capital)(?: letters)?", TEXT, "int",
       called="upper_letters", does=lambda text: sum(1 for letter in text if letter.isupper())),
    Family("digits of a text", 3, rf"{COUNT} (?:digits|digit characters)", TEXT, "int",
       called="digits", does=lambda text: sum(1 for letter in text if letter.isdigit())),
    Family("sum of digits in a text", 3, r"sum of (?:all |the )*digits (?:in|that|contained|appearing)", TEXT, "int", called="digit_total",
       does=lambda text: sum(int(letter) for letter in text if letter.isdigit())),
    Family("length of a text", 2, rf"length of (?:the |a |this )?(?:string|text|line|word)|{COUNT} (?:characters|symbols)", TEXT, "int",
       called="length", does=lambda text: len(text)),
    Family("Caesar shift", 2, r"caesar(?: cipher| shift)*|(?:shift|rotat)\w*[^.]{0,60}(?:letter|alphabet)[^.]{0,40}|(?:mov|replac|encod|encrypt)\w*[^.]{0,60}(?:alphabet|positions|places)[^.]{0,40}|(?:letter|alphabet)[^.]{0,60}(?:shift|rotat)\w*[^.]{0,20}", TEXT_INT, "text", _caesar, r"(?:shift(?:ed)?|shift of|by|key|rotation of) (\d+)"),
    Family("undoing a Caesar shift", 3, r"(?:decrypt|decod|decipher|undo)\w*[^.]{0,90}(?:shift|caesar|cipher)\w*|shift\w*[^.]{0,40}(?:back|left)\w*[^.]{0,20}", TEXT_INT, "text", _uncaesar, r"(?:shift(?:ed)?|shift of|by|key|back) (\d+)"),
    Family("mirrored alphabet", 4, r"atbash|a (?:becomes|with|to|->) z[^.]{0,40}|revers\w+ alphabet", TEXT, "text", _atbash),
    Family("run-length encoding", 2, rf"(?:{RLE})[^.]{{0,60}}(?:encod\w*)?", TEXT, "text", _run_lengths, variants=CODED),
    Family("run-length decoding", 3, r"(?:run[- ]length|compress\w*|encod\w*)[^.]{0,80}(?:decod\w*|expand\w*|original|decompress\w*)[^.]{0,30}|(?:decod\w*|expand\w*|decompress\w*)[^.]{0,70}", TEXT, "text", _expand_runs, variants=({}, {"first": "count"})),
    Family("anagrams", 2, r"anagrams?(?: of (?:each other|one another|the other))?|rearrang\w+[^.]{0,60}|same letters[^.]{0,40}", TEXT_TEXT, "bool", called="anagrams", does=lambda text, second:
           sorted(text.replace(" ", "").lower()) == sorted(second.replace(" ", "").lower())),
    Family("balanced brackets", 2, r"(?:balanced|valid|properly|correctly|well)[^.]{0,40}(?:brackets?|parenthes[ei]s|nested|matched|formed)|(?:brackets?|parenthes[ei]s)[^.]{0,60}(?:balanced|valid|properly|match\w*|correctly|closed)", TEXT, "bool", _balanced),
    Family("depth of brackets", 3, r"(?:maximum|deepest|largest|greatest)?[^.]{0,20}(?:nesting )?depth[^.]{0,50}|(?:deepest|how deep\w*)[^.]{0,40}", TEXT, "int", _depth),
    Family("unmatched brackets", 3, r"(?:unmatched|unbalanced|minimum number of (?:brackets|parenthes[ei]s|insertions|additions))[^.]{0,60}", TEXT, "int", _unmatched),
    Family("the commonest letter", 3, r"(?:letter|character)[^.]{0,40}(?:most (?:often|frequent\w*)|most times|the most)|most (?:common|frequent) (?:letter|character)", TEXT, "text", _commonest_letter, variants=({}, {"earliest": True})),
    Family("the first single letter", 3, r"first (?:letter|character|non-repeat\w+ (?:letter|character)|unique (?:letter|character))[^.]{0,60}(?:once|repeat\w*|unique)?", TEXT, "text", variants=({}, {"missing": "-"}, {"missing": "none"}, {"missing": "NONE"}), called="first_single", does=lambda text, missing='-1':
           next((letter for letter in text if text.count(letter) == 1), missing)),
    Family("place of the first single letter", 4, r"(?:index|position) of the first[^.]{0,60}(?:once|repeat\w*|unique)[^.]{0,20}", TEXT, "int", variants=({}, {"base": 1}), called="first_single_place", does=lambda text, base=0:
           next((at + base for at, mark in enumerate(text) if text.count(mark) == 1), -1)),
    Family("leaving vowels out", 3, r"(?:remov\w+|delet\w+|drop\w*|without|omit\w*)[^.]{0,20}vowels", TEXT, "text", stage=1, called="without_vowels",
       does=lambda text: "".join(letter for letter in text if letter.lower() not in "aeiou")),
    Family("different letters", 3, rf"{COUNT} (?:distinct|different|unique) (?:letters|characters)", TEXT, "int", called="distinct_letters",
       does=lambda text: len({letter for letter in text.lower() if letter.isalpha()})),
    Family("each letter once", 3, r"remov\w+ (?:the |all )?(?:duplicate|repeated) (?:letters|characters)|(?:letter|character)[^.]{0,30}first (?:occurrence|appearance)", TEXT, "text", stage=1,
       called="letters_once", does=lambda text: "".join(dict.fromkeys(text))),
    Family("collapsing runs", 4, r"(?:collaps\w+|squeez\w+|remov\w+|reduc\w+|replac\w+)[^.]{0,30}(?:adjacent|consecutive|runs?)[^.]{0,40}", TEXT, "text", stage=1, called="without_repeats", does=lambda text:
           "".join(a for a, before in zip(text, " " + text, strict=False) if a != before)),
    Family("sorting letters", 3, r"(?:letters|characters)[^.]{0,30}(?:sorted|alphabetical(?:ly)?(?: order)?)|sort[^.]{0,20}(?:letters|characters)[^.]{0,30}", TEXT, "text", stage=3,
       called="sorted_letters", does=lambda text: "".join(sorted(text))),
    Family("occurrences in a text", 2, r"(?:how many times|(?:the )?number of (?:times|occurrences)|count\w*|occurrences)[^.]{0,60}(?:occurs?|appears?|substring|letter|character|pattern|word|second (?:string|text))", TEXT_TEXT, "int", _occurrences, variants=({}, {"overlap": True})),
    Family("letter counts", 3, r"(?:each|every) (?:distinct |different )?(?:letter|character)[^.]{0,60}(?:times|count|frequency|number)?|(?:letter|character) counts|frequency of each", TEXT, "pairs", _letter_counts),
    Family("differing places", 3, r"hamming(?: distance)?|positions[^.]{0,30}differ\w*", TEXT_TEXT, "int", called="differing",
       does=lambda text, second: sum(a != b for a, b in zip(text, second, strict=False))),
    Family("subsequences", 3, r"(?:is )?(?:a )?subsequence of[^.]{0,20}", TEXT_TEXT, "bool", _is_subsequence),
    Family("rotations", 4, r"(?:is )?(?:a )?rotation of[^.]{0,20}|rotat\w+ (?:one|the first)[^.]{0,40}", TEXT_TEXT, "bool", called="is_rotation",
       does=lambda text, second: len(text) == len(second) and second in text + text),
    Family("common letters", 4, r"(?:letters|characters)[^.]{0,30}(?:in common|both|common)", TEXT_TEXT, "int",
       called="common_letters", does=lambda text, second: len(set(text) & set(second))),
    Family("common prefix", 3, r"(?:longest )?common prefix[^.]{0,20}", TEXT_TEXT, "text", _common_prefix),
    Family("longest run in a text", 3, r"longest[^.]{0,40}(?:run|equal|identical|same|repeated)[^.]{0,30}(?:letters?|characters?)?", TEXT, "int", _longest_text_run),
    Family("longest palindrome", 4, r"longest palindromic (?:substring|part)", TEXT, "int", _longest_palindrome),
    Family("longest part without repeats", 4, r"longest (?:substring|part|stretch|run)[^.]{0,30}(?:without|no|distinct|different|unique)[^.]{0,30}", TEXT, "int", _longest_without_repeat),
    Family("pangrams", 3, r"pangrams?|(?:every|all) (?:the )?(?:26 )?letters? of the (?:english )?alphabet", TEXT, "bool",
       called="pangram", does=lambda text: set("abcdefghijklmnopqrstuvwxyz") <= set(text.lower())),
)  # fmt: skip


def _word_counts(words: Words, alphabet: bool = True) -> list[tuple[str, int]]:
    kept = sorted(set(words)) if alphabet else list(dict.fromkeys(words))
    return [(word, words.count(word)) for word in kept]


def _initials(words: Words, upper: bool = True) -> str:
    letters = "".join(word[0] for word in words)
    return letters.upper() if upper else letters


def _longest_prefix(words: Words) -> str:
    prefix = words[0]
    for word in words:
        while not word.startswith(prefix):
            prefix = prefix[:-1]
    return prefix


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
    Family("title case", 2, r"title case|capitali[sz]\w+[^.]{0,40}|first letter[^.]{0,30}(?:upper ?-?case|capital\w*)[^.]{0,30}", WORD_LIST, "words", stage=2, called="title_case",
       does=lambda words: [word[:1].upper() + word[1:].lower() for word in words]),
    Family("reversing each word", 2, r"revers\w+[^.]{0,30}(?:each|every|individual)(?: of the)? words?[^.]{0,20}|(?:each|every) word[^.]{0,30}revers\w*", WORD_LIST, "words", stage=2,
       called="each_reversed", does=lambda words: [word[::-1] for word in words]),
    Family("length of the longest word", 3, r"length of the longest word", WORD_LIST, "int",
       called="longest_length", does=lambda words: max(len(word) for word in words)),
    Family("the shortest word", 3, r"shortest word|word[^.]{0,30}shortest", WORD_LIST, "text", variants=({}, {"last": True}), called="shortest_word",
       does=lambda words, last=False: min(words[::-1] if last else words, key=len)),
    Family("word lengths", 3, r"(?:lengths? of (?:each|every|the|all)(?: of the)?|word) ?(?:words?|lengths)|\blengths?\b", WORD_LIST, "ints", stage=2,
       called="lengths", does=lambda words: [len(word) for word in words]),
    Family("sorting words", 2, r"sort\w*[^.]{0,40}(?:alphabetical\w*|lexicographic\w*|dictionary)?(?: order)?|alphabetical(?:ly)?(?: order)?|lexicographic\w*(?: order)?", WORD_LIST, "words", stage=3,
       called="sorted_words", does=lambda words: sorted(words)),
    Family("sorting words by length", 3, r"sort\w*[^.]{0,40}(?:by|increasing|ascending)[^.]{0,20}length[^.]{0,20}|shortest (?:first|to longest)", WORD_LIST, "words", variants=({}, {"alphabet": True}), stage=3, called="by_length", does=lambda words, alphabet=False:
           sorted(words, key=lambda word: (len(word), word if alphabet else ""))),
    Family("each word once", 3, r"remov\w+ (?:the |all |any )?(?:duplicate|repeated)(?: words)?|first (?:occurrence|appearance)s?|\b(?:unique|distinct|different)\b", WORD_LIST, "words", stage=1,
       called="words_once", does=lambda words: list(dict.fromkeys(words))),
    Family("counting different words", 2, r"(?:how many|number of|count\w*)[^.]{0,15}(?:different|distinct|unique) words", WORD_LIST, "int", variants=({}, {"fold": True}), called="count_different_words",
       does=lambda words, fold=False: len({word.lower() if fold else word for word in words})),
    Family("the commonest word", 3, r"(?:most (?:common|frequent) word|word[^.]{0,30}(?:most (?:often|frequent\w*|times)|the most))[^.]{0,20}", WORD_LIST, "text", variants=({}, {"earliest": True}), called="commonest_word", does=lambda words, earliest=False:
           max(words if earliest else sorted(words), key=words.count)),
    Family("word counts", 3, r"(?:each|every) (?:distinct |different |unique )?word[^.]{0,60}(?:times|count|frequency|number)[^.]{0,20}|word counts|frequency of each word", WORD_LIST, "pairs", _word_counts, variants=({}, {"alphabet": False})),
    Family("words with a vowel first", 3, r"(?:start\w*|begin\w*)[^.]{0,10} vowels?", WORD_LIST, "words", stage=1, called="vowel_first",
       does=lambda words: [word for word in words if word[:1].lower() in "aeiou"]),
    Family("words with a vowel last", 4, r"end\w*[^.]{0,10} vowels?", WORD_LIST, "words", stage=1, called="vowel_last",
       does=lambda words: [word for word in words if word[-1:].lower() in "aeiou"]),
    Family("capitalised words", 4, r"(?:start\w*|begin\w*)[^.]{0,15}(?:upper ?-?case|capital)(?: letter)?", WORD_LIST, "words", stage=1,
       called="capitalised", does=lambda words: [word for word in words if word[:1].isupper()]),
    Family("palindromic words", 3, r"(?:are |that are |which are )?(?:palindrom\w*|(?:read|same)[^.]{0,40}backwards?)", WORD_LIST, "words", stage=1, called="palindromic",
       does=lambda words: [word for word in words if word.lower() == word.lower()[::-1]]),
    Family("long words", 3, r"(?:longer|more) than(?: \w+)?(?: letters| characters)?", WORDS_INT, "words", bind=r"(?:longer|more) than (\w+)", stage=1,
       called="longer", does=lambda words, k: [word for word in words if len(word) > k]),
    Family("short words", 4, r"(?:shorter|fewer|less) than(?: \w+)?(?: letters| characters)?", WORDS_INT, "words", bind=r"(?:shorter|fewer|less) than (\w+)", stage=1,
       called="shorter", does=lambda words, k: [word for word in words if len(word) < k]),
    Family("words of some length or more", 3, r"at least \w+ (?:letters|characters)|length (?:of )?at least(?: \w+)?", WORDS_INT, "words", bind=r"at least (\w+)", stage=1,
       called="long_enough", does=lambda words, k: [word for word in words if len(word) >= k]),
    Family("words of one length", 3, r"(?:exactly|of length) \w+(?: letters| characters)?", WORDS_INT, "words", bind=r"(?:exactly|of length) (\w+)", stage=1,
       called="of_length", does=lambda words, k: [word for word in words if len(word) == k]),
    Family("initials", 3, r"initials|acronyms?|first letters? of (?:each|every|all)[^.]{0,15}words?", WORD_LIST, "text", _initials, variants=({}, {"upper": False})),
    Family("longest common prefix", 3, r"longest common prefix[^.]{0,30}|common prefix", WORD_LIST, "text", _longest_prefix),
    Family("groups of anagrams", 3, r"(?:how many|number of|count\w*)[^.]{0,30}groups[^.]{0,50}|anagram\w* groups|group\w*[^.]{0,30}anagrams?", WORD_LIST, "int",
       called="anagram_groups", does=lambda words: len({"".join(sorted(word)) for word in words})),
    Family("pairs of anagrams", 3, r"pairs[^.]{0,50}anagrams?(?: of each other)?", WORD_LIST, "int", called="anagram_pairs", does=lambda words:
           sum(sorted(words[i]) == sorted(words[j]) for i in range(len(words)) for j in range(i))),
    Family("anagrams of the first", 4, r"anagrams? of (?:the )?(?:first|given|target)[^.]{0,15}", WORD_LIST, "int", called="anagrams_of_first",
       does=lambda words: sum(sorted(word) == sorted(words[0]) for word in words[1:])),
    Family("letter multiplicities", 3, r"(?:letters|characters)[^.]{0,30}(?:occur|appear|are used)\w*(?: (?:exactly|in|more|at|only))?", TEXT, "ints", stage=0, called="letter_multiplicities",
       does=lambda text: [text.count(letter) for letter in dict.fromkeys(text) if letter.strip()]),
    Family("runs of a text", 3, r"(?:maximal )?(?:runs?|blocks?|groups?)\b[^.]{0,30}(?:letters?|characters?|symbols?|equal|same)", TEXT, "ints", _text_runs, stage=0),
    Family("letters", 3, r"(?:how many|(?:the )?number of|counts?)(?: the| of)* (?:letters|alphabetic\w*)(?: in)?", TEXT, "int",
       called="letters", does=lambda text: sum(1 for letter in text if letter.isalpha())),
    Family("letters of all words", 4, r"total (?:number of )?(?:letters|characters|length)", WORD_LIST, "int",
       called="letters_of_all", does=lambda words: sum(len(word) for word in words)),
)  # fmt: skip
