# ruff: noqa: E501 - one operation to a row: wrapped, nobody can compare them
"""Operations on words: of a sentence, or of a list of strings."""

import itertools

from harness.rehearsal.program_kinds import Family

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
