"""Operations on letters and on words."""

import itertools

from harness.rehearsal.program_numbers import Family, Variants

# § Operations on the letters of one text, or of two.


# ruff: noqa: E501 - one operation to a row: wrapped, nobody can compare them


def _vowels(text: str) -> int:
    return sum(1 for letter in text.lower() if letter in "aeiou")


def _consonants(text: str) -> int:
    return sum(1 for letter in text.lower() if letter.isalpha() and letter not in "aeiou")


def _upper_letters(text: str) -> int:
    return sum(1 for letter in text if letter.isupper())


def _digits(text: str) -> int:
    return sum(1 for letter in text if letter.isdigit())


def _digit_total(text: str) -> int:
    return sum(int(letter) for letter in text if letter.isdigit())


def _length(text: str) -> int:
    return len(text)


def _reverse_text(text: str) -> str:
    return text[::-1]


def _palindrome(text: str, letters: bool = True) -> bool:
    kept = [letter for letter in text.lower() if letter.isalnum()] if letters else list(text)
    return kept == kept[::-1]


def _upper(text: str) -> str:
    return text.upper()


def _lower(text: str) -> str:
    return text.lower()


def _swap_case(text: str) -> str:
    return text.swapcase()


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


def _anagrams(text: str, second: str) -> bool:
    return sorted(text.replace(" ", "").lower()) == sorted(second.replace(" ", "").lower())


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


def _first_single(text: str, missing: str = "-1") -> str:
    return next((letter for letter in text if text.count(letter) == 1), missing)


def _first_single_place(text: str, base: int = 0) -> int:
    return next((at + base for at, mark in enumerate(text) if text.count(mark) == 1), -1)


def _without_vowels(text: str) -> str:
    return "".join(letter for letter in text if letter.lower() not in "aeiou")


def _distinct_letters(text: str) -> int:
    return len({letter for letter in text.lower() if letter.isalpha()})


def _letters_once(text: str) -> str:
    return "".join(dict.fromkeys(text))


def _without_repeats(text: str) -> str:
    return "".join(a for a, before in zip(text, " " + text, strict=False) if a != before)


def _sorted_letters(text: str) -> str:
    return "".join(sorted(text))


def _occurrences(text: str, second: str, overlap: bool = False) -> int:
    if not overlap:
        return text.count(second)
    return sum(text.startswith(second, at) for at in range(len(text)))


def _letter_counts(text: str) -> list[tuple[str, int]]:
    low = text.lower()
    return [(letter, low.count(letter)) for letter in sorted(set(low)) if letter.isalpha()]


def _differing(text: str, second: str) -> int:
    return sum(a != b for a, b in zip(text, second, strict=False))


def _is_subsequence(text: str, second: str) -> bool:
    rest = iter(second)
    return all(letter in rest for letter in text)


def _is_rotation(text: str, second: str) -> bool:
    return len(text) == len(second) and second in text + text


def _common_letters(text: str, second: str) -> int:
    return len(set(text) & set(second))


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


def _pangram(text: str) -> bool:
    return set("abcdefghijklmnopqrstuvwxyz") <= set(text.lower())


RLE = r"run[- ]length|compress\w*|consecutive (?:equal|identical|repeated|same)|runs? of (?:equal|identical|the same)"
CODED: Variants = (
    {}, {"first": "count"}, {"single": False}, {"first": "count", "single": False},
    {"gap": " "}, {"first": "count", "gap": " "},
)  # fmt: skip
COUNT = r"(?:how many|(?:the )?number of|counts?)(?: the| of)*"

TEXTS: tuple[Family, ...] = (
    Family("vowels", 1, rf"{COUNT} vowels?(?: \(a, e, i, o,? (?:and )?u\))?|\bvowels\b", ("text",), "int", _vowels),
    Family("reversing a text", 1, r"\brevers\w+(?: of)?(?: the| a| this| it| that| given)* ?(?:string|text|line|word\b|characters|letters)?|\bbackwards\b", ("text",), "text", _reverse_text, stage=3),
    Family("palindromes", 2, r"palindrom\w*|(?:reads?|is) the same (?:forwards?|backwards?)[^.]{0,30}", ("text",), "bool", _palindrome, variants=({}, {"letters": False})),
    Family("upper case", 2, r"(?:to|in(?:to)?) (?:upper ?-?case|capitals?)", ("text",), "text", _upper, stage=2),
    Family("lower case", 2, r"(?:to|in(?:to)?) lower ?-?case", ("text",), "text", _lower, stage=2),
    Family("swapping case", 3, r"(?:swap\w*|toggl\w+|flip\w*|invert\w*)[^.]{0,30}case|upper[^.]{0,30}lower[^.]{0,40}vice versa", ("text",), "text", _swap_case, stage=2),
    Family("consonants", 3, rf"{COUNT} consonants?", ("text",), "int", _consonants),
    Family("capital letters", 3, rf"{COUNT} (?:upper ?-?case|capital)(?: letters)?", ("text",), "int", _upper_letters),
    Family("digits of a text", 3, rf"{COUNT} (?:digits|digit characters)", ("text",), "int", _digits),
    Family("sum of digits in a text", 3, r"sum of (?:all |the )*digits (?:in|that|contained|appearing)", ("text",), "int", _digit_total),
    Family("length of a text", 2, rf"length of (?:the |a |this )?(?:string|text|line|word)|{COUNT} (?:characters|symbols)", ("text",), "int", _length),
    Family("Caesar shift", 2, r"caesar(?: cipher| shift)*|(?:shift|rotat)\w*[^.]{0,60}(?:letter|alphabet)[^.]{0,40}|(?:mov|replac|encod|encrypt)\w*[^.]{0,60}(?:alphabet|positions|places)[^.]{0,40}|(?:letter|alphabet)[^.]{0,60}(?:shift|rotat)\w*[^.]{0,20}", ("text", "int"), "text", _caesar, r"(?:shift(?:ed)?|shift of|by|key|rotation of) (\d+)"),
    Family("undoing a Caesar shift", 3, r"(?:decrypt|decod|decipher|undo)\w*[^.]{0,90}(?:shift|caesar|cipher)\w*|shift\w*[^.]{0,40}(?:back|left)\w*[^.]{0,20}", ("text", "int"), "text", _uncaesar, r"(?:shift(?:ed)?|shift of|by|key|back) (\d+)"),
    Family("mirrored alphabet", 4, r"atbash|a (?:becomes|with|to|->) z[^.]{0,40}|revers\w+ alphabet", ("text",), "text", _atbash),
    Family("run-length encoding", 2, rf"(?:{RLE})[^.]{{0,60}}(?:encod\w*)?", ("text",), "text", _run_lengths, variants=CODED),
    Family("run-length decoding", 3, r"(?:run[- ]length|compress\w*|encod\w*)[^.]{0,80}(?:decod\w*|expand\w*|original|decompress\w*)[^.]{0,30}|(?:decod\w*|expand\w*|decompress\w*)[^.]{0,70}", ("text",), "text", _expand_runs, variants=({}, {"first": "count"})),
    Family("anagrams", 2, r"anagrams?(?: of (?:each other|one another|the other))?|rearrang\w+[^.]{0,60}|same letters[^.]{0,40}", ("text", "text"), "bool", _anagrams),
    Family("balanced brackets", 2, r"(?:balanced|valid|properly|correctly|well)[^.]{0,40}(?:brackets?|parenthes[ei]s|nested|matched|formed)|(?:brackets?|parenthes[ei]s)[^.]{0,60}(?:balanced|valid|properly|match\w*|correctly|closed)", ("text",), "bool", _balanced),
    Family("depth of brackets", 3, r"(?:maximum|deepest|largest|greatest)?[^.]{0,20}(?:nesting )?depth[^.]{0,50}|(?:deepest|how deep\w*)[^.]{0,40}", ("text",), "int", _depth),
    Family("unmatched brackets", 3, r"(?:unmatched|unbalanced|minimum number of (?:brackets|parenthes[ei]s|insertions|additions))[^.]{0,60}", ("text",), "int", _unmatched),
    Family("the commonest letter", 3, r"(?:letter|character)[^.]{0,40}(?:most (?:often|frequent\w*)|most times|the most)|most (?:common|frequent) (?:letter|character)", ("text",), "text", _commonest_letter, variants=({}, {"earliest": True})),
    Family("the first single letter", 3, r"first (?:letter|character|non-repeat\w+ (?:letter|character)|unique (?:letter|character))[^.]{0,60}(?:once|repeat\w*|unique)?", ("text",), "text", _first_single, variants=({}, {"missing": "-"}, {"missing": "none"}, {"missing": "NONE"})),
    Family("place of the first single letter", 4, r"(?:index|position) of the first[^.]{0,60}(?:once|repeat\w*|unique)[^.]{0,20}", ("text",), "int", _first_single_place, variants=({}, {"base": 1})),
    Family("leaving vowels out", 3, r"(?:remov\w+|delet\w+|drop\w*|without|omit\w*)[^.]{0,20}vowels", ("text",), "text", _without_vowels, stage=1),
    Family("different letters", 3, rf"{COUNT} (?:distinct|different|unique) (?:letters|characters)", ("text",), "int", _distinct_letters),
    Family("each letter once", 3, r"remov\w+ (?:the |all )?(?:duplicate|repeated) (?:letters|characters)|(?:letter|character)[^.]{0,30}first (?:occurrence|appearance)", ("text",), "text", _letters_once, stage=1),
    Family("collapsing runs", 4, r"(?:collaps\w+|squeez\w+|remov\w+|reduc\w+|replac\w+)[^.]{0,30}(?:adjacent|consecutive|runs?)[^.]{0,40}", ("text",), "text", _without_repeats, stage=1),
    Family("sorting letters", 3, r"(?:letters|characters)[^.]{0,30}(?:sorted|alphabetical(?:ly)?(?: order)?)|sort[^.]{0,20}(?:letters|characters)[^.]{0,30}", ("text",), "text", _sorted_letters, stage=3),
    Family("occurrences in a text", 2, r"(?:how many times|(?:the )?number of (?:times|occurrences)|count\w*|occurrences)[^.]{0,60}(?:occurs?|appears?|substring|letter|character|pattern|word|second (?:string|text))", ("text", "text"), "int", _occurrences, variants=({}, {"overlap": True})),
    Family("letter counts", 3, r"(?:each|every) (?:distinct |different )?(?:letter|character)[^.]{0,60}(?:times|count|frequency|number)?|(?:letter|character) counts|frequency of each", ("text",), "pairs", _letter_counts),
    Family("differing places", 3, r"hamming(?: distance)?|positions[^.]{0,30}differ\w*", ("text", "text"), "int", _differing),
    Family("subsequences", 3, r"(?:is )?(?:a )?subsequence of[^.]{0,20}", ("text", "text"), "bool", _is_subsequence),
    Family("rotations", 4, r"(?:is )?(?:a )?rotation of[^.]{0,20}|rotat\w+ (?:one|the first)[^.]{0,40}", ("text", "text"), "bool", _is_rotation),
    Family("common letters", 4, r"(?:letters|characters)[^.]{0,30}(?:in common|both|common)", ("text", "text"), "int", _common_letters),
    Family("common prefix", 3, r"(?:longest )?common prefix[^.]{0,20}", ("text", "text"), "text", _common_prefix),
    Family("longest run in a text", 3, r"longest[^.]{0,40}(?:run|equal|identical|same|repeated)[^.]{0,30}(?:letters?|characters?)?", ("text",), "int", _longest_text_run),
    Family("longest palindrome", 4, r"longest palindromic (?:substring|part)", ("text",), "int", _longest_palindrome),
    Family("longest part without repeats", 4, r"longest (?:substring|part|stretch|run)[^.]{0,30}(?:without|no|distinct|different|unique)[^.]{0,30}", ("text",), "int", _longest_without_repeat),
    Family("pangrams", 3, r"pangrams?|(?:every|all) (?:the )?(?:26 )?letters? of the (?:english )?alphabet", ("text",), "bool", _pangram),
)  # fmt: skip


# § Operations on words: of a sentence, or of a list of strings.


# ruff: noqa: E501 - one operation to a row: wrapped, nobody can compare them


Words = list[str]


def _words(text: str) -> Words:
    return text.split()


def _joined(words: Words) -> str:
    return " ".join(words)


def _count_words(words: Words) -> int:
    return len(words)


def _reverse_words(words: Words) -> Words:
    return words[::-1]


def _each_reversed(words: Words) -> Words:
    return [word[::-1] for word in words]


def _title_case(words: Words) -> Words:
    return [word[:1].upper() + word[1:].lower() for word in words]


def _longest_word(words: Words, last: bool = False) -> str:
    return max(words[::-1] if last else words, key=len)


def _shortest_word(words: Words, last: bool = False) -> str:
    return min(words[::-1] if last else words, key=len)


def _longest_length(words: Words) -> int:
    return max(len(word) for word in words)


def _lengths(words: Words) -> list[int]:
    return [len(word) for word in words]


def _sorted_words(words: Words) -> Words:
    return sorted(words)


def _by_length(words: Words, alphabet: bool = False) -> Words:
    return sorted(words, key=lambda word: (len(word), word if alphabet else ""))


def _words_once(words: Words) -> Words:
    return list(dict.fromkeys(words))


def _count_different_words(words: Words, fold: bool = False) -> int:
    return len({word.lower() if fold else word for word in words})


def _commonest_word(words: Words, earliest: bool = False) -> str:
    return max(words if earliest else sorted(words), key=words.count)


def _word_counts(words: Words, alphabet: bool = True) -> list[tuple[str, int]]:
    kept = sorted(set(words)) if alphabet else list(dict.fromkeys(words))
    return [(word, words.count(word)) for word in kept]


def _vowel_first(words: Words) -> Words:
    return [word for word in words if word[:1].lower() in "aeiou"]


def _vowel_last(words: Words) -> Words:
    return [word for word in words if word[-1:].lower() in "aeiou"]


def _capitalised(words: Words) -> Words:
    return [word for word in words if word[:1].isupper()]


def _palindromic(words: Words) -> Words:
    return [word for word in words if word.lower() == word.lower()[::-1]]


def _longer(words: Words, k: int) -> Words:
    return [word for word in words if len(word) > k]


def _shorter(words: Words, k: int) -> Words:
    return [word for word in words if len(word) < k]


def _long_enough(words: Words, k: int) -> Words:
    return [word for word in words if len(word) >= k]


def _of_length(words: Words, k: int) -> Words:
    return [word for word in words if len(word) == k]


def _initials(words: Words, upper: bool = True) -> str:
    letters = "".join(word[0] for word in words)
    return letters.upper() if upper else letters


def _longest_prefix(words: Words) -> str:
    prefix = words[0]
    for word in words:
        while not word.startswith(prefix):
            prefix = prefix[:-1]
    return prefix


def _anagram_groups(words: Words) -> int:
    return len({"".join(sorted(word)) for word in words})


def _anagram_pairs(words: Words) -> int:
    return sum(sorted(words[i]) == sorted(words[j]) for i in range(len(words)) for j in range(i))


def _anagrams_of_first(words: Words) -> int:
    return sum(sorted(word) == sorted(words[0]) for word in words[1:])


def _letter_multiplicities(text: str) -> list[int]:
    return [text.count(letter) for letter in dict.fromkeys(text) if letter.strip()]


def _text_runs(text: str) -> list[int]:
    marks = [at for at in range(1, len(text)) if text[at] != text[at - 1]]
    ends = [0, *marks, len(text)]
    return [b - a for a, b in itertools.pairwise(ends)]


def _letters(text: str) -> int:
    return sum(1 for letter in text if letter.isalpha())


def _letters_of_all(words: Words) -> int:
    return sum(len(word) for word in words)


JOINING = Family("a line of words", 1, r"(?!)", ("words",), "text", _joined, stage=6)
"""What a method that returns a text does with words at the end."""

WORDS: tuple[Family, ...] = (
    Family("the words of a sentence", 1, r"\bwords?\b", ("text",), "words", _words, stage=0),
    Family("counting words", 1, r"(?:how many|number of|count)[^.]{0,15} words|\bcount\b|\bhow many\b", ("words",), "int", _count_words),
    Family("reversing the order of words", 1, r"(?:revers\w+|backwards?|opposite|last to first)[^.]{0,40}\bwords\b|\bwords\b[^.]{0,50}(?:revers\w*(?: order)?|backwards?|opposite order|last to first)", ("words",), "words", _reverse_words, stage=3),
    Family("the longest word", 2, r"longest word|word[^.]{0,30}longest", ("words",), "text", _longest_word, variants=({}, {"last": True})),
    Family("title case", 2, r"title case|capitali[sz]\w+[^.]{0,40}|first letter[^.]{0,30}(?:upper ?-?case|capital\w*)[^.]{0,30}", ("words",), "words", _title_case, stage=2),
    Family("reversing each word", 2, r"revers\w+[^.]{0,30}(?:each|every|individual)(?: of the)? words?[^.]{0,20}|(?:each|every) word[^.]{0,30}revers\w*", ("words",), "words", _each_reversed, stage=2),
    Family("length of the longest word", 3, r"length of the longest word", ("words",), "int", _longest_length),
    Family("the shortest word", 3, r"shortest word|word[^.]{0,30}shortest", ("words",), "text", _shortest_word, variants=({}, {"last": True})),
    Family("word lengths", 3, r"(?:lengths? of (?:each|every|the|all)(?: of the)?|word) ?(?:words?|lengths)|\blengths?\b", ("words",), "ints", _lengths, stage=2),
    Family("sorting words", 2, r"sort\w*[^.]{0,40}(?:alphabetical\w*|lexicographic\w*|dictionary)?(?: order)?|alphabetical(?:ly)?(?: order)?|lexicographic\w*(?: order)?", ("words",), "words", _sorted_words, stage=3),
    Family("sorting words by length", 3, r"sort\w*[^.]{0,40}(?:by|increasing|ascending)[^.]{0,20}length[^.]{0,20}|shortest (?:first|to longest)", ("words",), "words", _by_length, variants=({}, {"alphabet": True}), stage=3),
    Family("each word once", 3, r"remov\w+ (?:the |all |any )?(?:duplicate|repeated)(?: words)?|first (?:occurrence|appearance)s?|\b(?:unique|distinct|different)\b", ("words",), "words", _words_once, stage=1),
    Family("counting different words", 2, r"(?:how many|number of|count\w*)[^.]{0,15}(?:different|distinct|unique) words", ("words",), "int", _count_different_words, variants=({}, {"fold": True})),
    Family("the commonest word", 3, r"(?:most (?:common|frequent) word|word[^.]{0,30}(?:most (?:often|frequent\w*|times)|the most))[^.]{0,20}", ("words",), "text", _commonest_word, variants=({}, {"earliest": True})),
    Family("word counts", 3, r"(?:each|every) (?:distinct |different |unique )?word[^.]{0,60}(?:times|count|frequency|number)[^.]{0,20}|word counts|frequency of each word", ("words",), "pairs", _word_counts, variants=({}, {"alphabet": False})),
    Family("words with a vowel first", 3, r"(?:start\w*|begin\w*)[^.]{0,10} vowels?", ("words",), "words", _vowel_first, stage=1),
    Family("words with a vowel last", 4, r"end\w*[^.]{0,10} vowels?", ("words",), "words", _vowel_last, stage=1),
    Family("capitalised words", 4, r"(?:start\w*|begin\w*)[^.]{0,15}(?:upper ?-?case|capital)(?: letter)?", ("words",), "words", _capitalised, stage=1),
    Family("palindromic words", 3, r"(?:are |that are |which are )?(?:palindrom\w*|(?:read|same)[^.]{0,40}backwards?)", ("words",), "words", _palindromic, stage=1),
    Family("long words", 3, r"(?:longer|more) than(?: \w+)?(?: letters| characters)?", ("words", "int"), "words", _longer, r"(?:longer|more) than (\w+)", stage=1),
    Family("short words", 4, r"(?:shorter|fewer|less) than(?: \w+)?(?: letters| characters)?", ("words", "int"), "words", _shorter, r"(?:shorter|fewer|less) than (\w+)", stage=1),
    Family("words of some length or more", 3, r"at least \w+ (?:letters|characters)|length (?:of )?at least(?: \w+)?", ("words", "int"), "words", _long_enough, r"at least (\w+)", stage=1),
    Family("words of one length", 3, r"(?:exactly|of length) \w+(?: letters| characters)?", ("words", "int"), "words", _of_length, r"(?:exactly|of length) (\w+)", stage=1),
    Family("initials", 3, r"initials|acronyms?|first letters? of (?:each|every|all)[^.]{0,15}words?", ("words",), "text", _initials, variants=({}, {"upper": False})),
    Family("longest common prefix", 3, r"longest common prefix[^.]{0,30}|common prefix", ("words",), "text", _longest_prefix),
    Family("groups of anagrams", 3, r"(?:how many|number of|count\w*)[^.]{0,30}groups[^.]{0,50}|anagram\w* groups|group\w*[^.]{0,30}anagrams?", ("words",), "int", _anagram_groups),
    Family("pairs of anagrams", 3, r"pairs[^.]{0,50}anagrams?(?: of each other)?", ("words",), "int", _anagram_pairs),
    Family("anagrams of the first", 4, r"anagrams? of (?:the )?(?:first|given|target)[^.]{0,15}", ("words",), "int", _anagrams_of_first),
    Family("letter multiplicities", 3, r"(?:letters|characters)[^.]{0,30}(?:occur|appear|are used)\w*(?: (?:exactly|in|more|at|only))?", ("text",), "ints", _letter_multiplicities, stage=0),
    Family("runs of a text", 3, r"(?:maximal )?(?:runs?|blocks?|groups?)\b[^.]{0,30}(?:letters?|characters?|symbols?|equal|same)", ("text",), "ints", _text_runs, stage=0),
    Family("letters", 3, r"(?:how many|(?:the )?number of|counts?)(?: the| of)* (?:letters|alphabetic\w*)(?: in)?", ("text",), "int", _letters),
    Family("letters of all words", 4, r"total (?:number of )?(?:letters|characters|length)", ("words",), "int", _letters_of_all),
)  # fmt: skip
