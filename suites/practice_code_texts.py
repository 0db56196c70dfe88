"""Problems of `practice-code` about texts: sentences, words, brackets, anagrams."""

from collections.abc import Callable
from itertools import groupby
from random import Random
from typing import Any

from suites.practice import Draft
from suites.practice_code_problem import Problem, Shape, draft

WORDS = (
    "amber", "noon", "river", "level", "stone", "Anna", "cloud", "deed", "eleven", "paper", "Oslo",
    "bright", "kayak", "moss", "azure", "book", "zoo", "quiet", "radar", "tree",
)  # fmt: skip
PLACES = ("a sentence", "a message", "a line of a poem", "a headline", "a note", "a label")

Text = tuple[str, str, Shape, Callable[[str], Any]]


def sentence(rng: Random) -> tuple[str]:
    """Draw a few words with single spaces."""
    return (" ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 7))),)


def letters(rng: Random) -> tuple[str]:
    """Draw a short word over few letters, so that repetitions and palindromes appear."""
    half = "".join(rng.choice("aabbcd") for _ in range(rng.randint(1, 6)))
    return (rng.choice((half, half + half[::-1], half + "e" + half[::-1])),)


def caesar(text: str, shift: int) -> str:
    """Return a text with its letters shifted along the alphabet, case kept."""
    moved: list[str] = []
    for sign in text:
        if sign.isalpha():
            base = ord("a" if sign.islower() else "A")
            sign = chr((ord(sign) - base + shift) % 26 + base)
        moved.append(sign)
    return "".join(moved)


def balanced(text: str) -> bool:
    """Return whether the brackets match."""
    opened: list[str] = []
    for sign in text:
        if sign in "([{":
            opened.append(sign)
        elif not opened or opened.pop() + sign not in ("()", "[]", "{}"):
            return False
    return not opened


def run_lengths(text: str) -> str:
    """Return the run-length encoding, e.g. a3b1."""
    return "".join(f"{sign}{len(list(run))}" for sign, run in groupby(text))


def _set(
    rng: Random, entry: Text, draw: Callable[[Random], tuple[str]], places: tuple[str, ...] = PLACES
) -> Draft | None:
    method, wanted, returns, solve = entry
    place = rng.choice(places)
    problem = Problem(
        key=f"{method} {place} {wanted}",
        statement=rng.choice(
            (f"The string s is {place}. {wanted}", f"You are given {place} as a string s. {wanted}")
        ),
        method=method,
        inputs=(("s", "text"),),
        returns=returns,
        solve=solve,
        draw=draw,
    )
    return draft(rng, problem)


def about_sentence(rng: Random) -> Draft | None:
    """Set a problem about a text of words."""
    sign, shift = rng.choice("aeorst"), rng.randint(1, 25)
    entries: tuple[Text, ...] = (
        ("reverseWords", "Reverse the order of its words.", "text",
         lambda s: " ".join(s.split()[::-1])),
        ("countVowels", "Count its vowels (a, e, i, o, u, in either case).", "number",
         lambda s: sum(c in "aeiou" for c in s.lower())),
        ("countLetter", f"Count how often the letter {sign} occurs in it, in either case.",
         "number", lambda s: s.lower().count(sign)),
        ("countWords", "Count its words, which are separated by single spaces.", "number",
         lambda s: len(s.split())),
        ("caesarShift", f"Encrypt it with a Caesar cipher: shift every letter by {shift} places "
         "along the alphabet, from z back to a, keep upper and lower case, and leave everything "
         "else as it is.", "text", lambda s: caesar(s, shift)),
        ("longestWord", "Find its longest word; if several are equally long, the first of them.",
         "text", lambda s: max(s.split(), key=len)),
        ("removeVowels", "Remove all its vowels (a, e, i, o, u, in either case), and nothing "
         "else.", "text",
         lambda s: "".join(c for c in s if c not in "aeiouAEIOU")),
        ("reverseEachWord", "Reverse the letters of each word; the words stay where they are.",
         "text", lambda s: " ".join(word[::-1] for word in s.split())),
        ("palindromeWords", "Count the words that read the same backwards, ignoring case.",
         "number", lambda s: sum(w == w[::-1] for w in s.lower().split())),
        ("shiftWords", f"Reverse the order of its words, then shift every letter by {shift} "
         "places along the alphabet, from z back to a, keeping case.", "text",
         lambda s: caesar(" ".join(s.split()[::-1]), shift)),
    )  # fmt: skip
    return _set(rng, rng.choice(entries), sentence)


def about_word(rng: Random) -> Draft | None:
    """Set a problem about one lower-case word."""
    k = rng.randint(2, 3)
    entries: tuple[Text, ...] = (
        ("isPalindrome", "Is it a palindrome, that is, does it read the same backwards?", "truth",
         lambda s: s == s[::-1]),
        ("runLength", "Return its run-length encoding: each run of equal letters becomes the "
         "letter followed by the length of the run, as in a3b1 for aaab.", "text", run_lengths),
        ("reverseText", "Reverse it.", "text", lambda s: s[::-1]),
        ("mostFrequentLetter", "Find its most frequent letter; if several are equally frequent, "
         "the first in the alphabet.", "text",
         lambda s: min(set(s), key=lambda c: (-s.count(c), c))),
        ("sortLetters", "Sort its letters alphabetically.", "text", lambda s: "".join(sorted(s))),
        ("lettersAtLeast", f"Count the different letters that occur at least {k} times.", "number",
         lambda s: sum(s.count(c) >= k for c in set(s))),
        ("longRuns", f"Count the runs of equal letters that are at least {k} letters long.",
         "number", lambda s: sum(len(list(run)) >= k for _, run in groupby(s))),
    )  # fmt: skip
    places = ("a lower-case word", "a password of lower-case letters", "a strand of letters a-e")
    return _set(rng, rng.choice(entries), letters, places)


def brackets(rng: Random) -> Draft | None:
    """Ask whether brackets are balanced."""

    def draw(rng: Random) -> tuple[str]:
        pieces = [rng.choice(("()", "[]", "{}", "([])", "{()}")) for _ in range(rng.randint(1, 4))]
        text = "".join(pieces)
        if rng.random() < 0.5:
            signs = list(text)
            rng.shuffle(signs)
            text = "".join(signs)
        return (text,)

    entry: Text = (
        "isBalanced", "Are its brackets (), [] and {} balanced and correctly nested?", "truth",
        balanced,
    )  # fmt: skip
    places = ("a string of brackets", "a formula reduced to its brackets", "a row of brackets")
    return _set(rng, entry, draw, places)


def anagrams(rng: Random) -> Draft | None:
    """Ask whether two words are anagrams."""

    def draw(rng: Random) -> tuple[str, str]:
        word = "".join(rng.choice("aberst") for _ in range(rng.randint(2, 7)))
        other = "".join(rng.sample(word, len(word)))
        return word, rng.choice((other, other[:-1] + "a"))

    def solve(s: str, t: str) -> bool:
        return sorted(s) == sorted(t)

    what = rng.choice(("words", "names", "passwords", "labels", "codes"))
    problem = Problem(
        key=f"anagrams {what}",
        statement=f"The strings s and t are lower-case {what}. Are they anagrams of each other, "
        "that is, do they consist of the same letters, each equally often?",
        method="areAnagrams",
        inputs=(("s", "text"), ("t", "text")),
        returns="truth",
        solve=solve,
        draw=draw,
    )
    return draft(rng, problem)


TEXTS = {
    "sentences": about_sentence,
    "words": about_word,
    "brackets": brackets,
    "anagrams": anagrams,
}
