# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""Everyday words for what programs do, put into the words that code writers have learnt.

A thesaurus applied in order to the plain statement: first what only describes the input, then what
is done. Nothing here knows an operation; `program_families` does.
"""

import re
from functools import lru_cache

_NOUN = (
    r"(?:(?:whole |integer )?(?:numbers?|integers?|values?|items?|entries|elements?)|words|lines)"
)
_BIG = r"(?:largest|biggest|highest|greatest|maximum|top)"
_LOW = r"(?:smallest|lowest|least|minimum|bottom|tiniest)"
_VAL = r"(?: (?:value|number|one|of them|element|integer))*"
_ALL = r"(?:them|these|those|everything|(?:all |the |its |these |of )+(?:numbers|values|integers|elements|them|entries|rest)|all)"
_OUTPUT = r"(?:shown|printed|listed|written|kept|given|put out|named|output|displayed)"

_THESAURUS = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        # what only describes the input
        (r"\b(?:the )?(?:amount|number|count|quantity) of (?:the )?(?:numbers|integers|values|them|these) is (?:always )?(?:odd|even)\b|\bn is (?:always )?odd\b", " "),
        (rf"\bhow many (?:of )?({_NOUN} )?(?:will |are to |to )?(?:follow|come|be given|expect|read)\b(?:[^.;?]{{0,45}}?\b(?:then|and|afterwards|followed by)\b[^.;?]{{0,30}}?\b(?:themselves|{_NOUN}))?", r" n followed by n \1 integers "),
        (rf"\bhow many (?:of )?({_NOUN} )?there (?:are|will be)\b[^.;?]{{0,45}}?\b(?:then|and|afterwards|followed by)\b[^.;?]{{0,30}}?\b(?:themselves|{_NOUN})", r" n followed by n \1 integers "),
        (r"\b(?:a|the|its) count n?,? ?(?:and )?(?:then |after that )?(?:followed by|comes first,? then)(?! (?:that|so|this|as) many)", " n followed by"),
        (rf"\bhow many ({_NOUN}) (?:it|the program) (?:is going to|will|shall|has to) (?:get|read|receive)", r" n followed by n \1 "),
        (rf"\b(?:a|the|its|their|one) (?:count|size|length|amount)\b(?: n)?[^.;?]{{0,40}}?\b(?:that|so|this|as) many ({_NOUN})(?: on the (?:second|next)(?: line)?| themselves)?", r" n followed by n \1 "),
        (r"\b(?:a |the )?(?:number|integer) n,? (?:and )?(?:then|after that|followed by) (?:that|so) many", " n followed by n"),
        (r"\b(?:one|a|the|single)? ?(?:whole )?(?:number|integer) (?:that|which) (?:is|isn't|is never) (?:not )?(?:negative|below zero)\b", " an integer "),
        (r"\bhow many \w+ there (?:are|will be)\b[^.;?]{0,45}?\b(?:then|after that)\b", " n followed by n integers, "),
        (rf"({_NOUN}) +integers\b", r"\1"),
        (r"\bwhole numbers?\b", "integers"),
        (r"\bcounts\b", "count"),
        # verbs of showing
        (r"\b(?:show|turn|crop|come)s? up\b", "appears"),
        (r"\b(?:turned|showed|cropped|came) up\b", "appeared"),
        (r"\b(?:lets? (?:us|me|the user|you) know|finds? out|says?|tells?(?: us| me| you)?|decides?|checks?) (?:whether|if)\b", "determine whether"),
        (r"\b(?:and|it) lists\b", "and print"),
        (r"\b(?:tells?|says?|puts? out|gives? back|hands? back|comes? up with|names?|lets? (?:us|me|you) know|out comes?|displays?|announces?|shows?)\b", "print"),
        # cases and letters
        (r"\bno matter (?:whether|if|how)[^.,;]{0,60}(?:capital|small|big|upper|lower)\w*(?: ?-?case)?(?: letters?| ones?)?|\b(?:capital|big|upper ?-?case) and (?:small|little|lower ?-?case)(?: letters)? (?:count |are )?(?:alike|(?:as )?the same|equal)", "ignoring case"),
        (r"\(?\ba, ?e, ?i, ?o,? ?(?:or |and |/ ?)?u\b\)?", "vowels"),
        (r"\bvowels,? (?:that is|i\.e\.|meaning|namely),? vowels", "vowels"),
        (r"\b(?:in|into|with|using|to) (?:only |all )?(?:big|capital|upper ?-?case) letters(?: only| throughout)?|\bin (?:all )?capitals\b", "to upper case"),
        (r"\b(?:in|into|with|using|to) (?:only |all )?(?:small|little|lower ?-?case) letters(?: only| throughout)?", "to lower case"),
        (r"\bbig letters\b", "capital letters"),
        (r"\b(?:swap|exchang|turn|chang)\w* (?:all |the )*(?:capital|big|upper ?-?case)[^.;]{0,30}\b(?:small|little|lower)[^.;]*", "swap the case"),
        # orders
        (r"\b(?:in )?(?:the )?order of (?:the|a) dictionary\b|\bas (?:they stand )?in a dictionary\b|\b(?:from a to z|abc order)\b", "sorted in alphabetical order"),
        (rf"\b(?:rising|growing|upward|climbing) order\b|\b{_LOW}{_VAL} (?:in front|at the front|comes? first|first)\b|\bfrom (?:the )?{_LOW}{_VAL} (?:(?:(?:upwards?|up|on) )?to (?:the )?{_BIG}{_VAL}|upwards?|up|on)|\b(?:lined up|ordered|arranged|sorted|put in order|lines? up|ranked) by size\b", "in ascending order"),
        (rf"\b(?:falling|shrinking|downward) order\b|\b{_BIG}{_VAL} (?:in front|at the front|comes? first|first)\b|\bfrom (?:the )?{_BIG}{_VAL} (?:(?:(?:downwards?|down|on) )?to (?:the )?{_LOW}{_VAL}|downwards?|down|on)", "in descending order"),
        (r"\b(?:back to front|(?:the )?other way (?:round|around)|from (?:its |the )?(?:end|last(?: \w+)?|back) to (?:its |the )?(?:beginning|start|front|first(?: \w+)?)|in reverse|from (?:the )?right to (?:the )?left|(?:starting (?:at|with|from) the|with the) (?:end|last)(?: \w+)?(?: first| in front)?)\b", "reversed"),
        (r"\b(?:stays?|is|reads?|looks?|remains?|spells?)(?: exactly| just)? the same[^.;]{0,50}(?:reversed|backwards?|both ways|either (?:end|side|direction))", "is a palindrome"),
        (r"\bthe same (?:from|in) (?:both|either) (?:ends?|sides?|directions?)", "palindrome"),
        # folds
        (r"\b(?:add|adds|adding|sums?)(?: up| together)?(?: all)?(?: of)? (?:its|the|their|all the)(?: decimal)? digits(?: together| up)?", "sum of its digits"),
        (rf"\b(?:add|adds|adding|sums?|tots?)(?: up| together)? {_ALL}(?: up| together)*", "the sum of the numbers"),
        (r"\b(?:what|how much) (?:they|the rest|these|those|all(?: of them)?|it|(?:its|the|all|all the) (?:numbers|values|integers))(?: all| \w+ly)? (?:add|come|amount|sum|make|tot)s?(?: up)?(?: to)?(?: altogether| together| in all)?", "the sum of the numbers"),
        (r"\bgrand total|\bhow much (?:is it |it is )?(?:altogether|in all)|(?<=numbers )altogether", "sum"),
        (rf"\b(?:multipl(?:y|ies|ying))(?: together)? {_ALL}(?: (?:with|by) (?:each other|one another))?(?: together)?", "the product of all"),
        (rf"\b(?:by )?how (?:much|far)(?: apart)? (?:the |its )?{_BIG}{_VAL}(?: \w+){{1,4}} (?:the |its )?{_LOW}{_VAL}(?: are)?|\b(?:gap|distance|how far) (?:between|from) (?:the |its )?(?:{_BIG}|{_LOW}){_VAL} (?:and|to) (?:the |its )?(?:{_BIG}|{_LOW}){_VAL}", "the difference between the largest and the smallest"),
        (r"\b(?:next to (?:the )?(?:largest|biggest|highest|top)|second[- ]best)(?: one| value| number)?\b", "second largest"),
        (r"\btop (?:value|number|one|score)\b|\bpeak value\b|\b(?:tallest|heaviest)\b", "largest value"),
        (r"\b(?:bottom (?:value|number|one|score)|tiniest|littlest)\b", "smallest value"),
        (r"\b(?:value|number|one|element) in the (?:very )?middle\b|\bmiddle one\b", "median"),
        (r"\bhow many (?:different|distinct|unique) ones\b|\bhow many (?:of (?:them|the \w+|its \w+) )?(?:are|differ\w*) (?:different|distinct)\b", "how many different values"),
        # words
        (r"\b(?:which (?:of (?:its|the) )?words?|the word|word|the one (?:that|which|with))[^.;,]{0,20}(?:has|with|having|have|of) (?:the )?most (?:letters|characters)|\bbiggest word\b", "the longest word"),
        (r"\b(?:which (?:of (?:its|the) )?words?|the word|word|the one (?:that|which|with))[^.;,]{0,20}(?:has|with|having|have|of) (?:the )?fewest (?:letters|characters)", "the shortest word"),
        (r"\b(?:make|get|form|build) (?:the )?(?:one|either|second|first)(?: \w+)? (?:out of|from) the (?:other|first|second)[^.;,]*|\b(?:shuffl|jumbl|scrambl)\w+ [^.;,]{0,40}|\bsame letters in (?:another|a different|some other) order", "anagrams of each other"),
        # filters
        (r"\b(?:can be halved|can be split (?:evenly )?in(?:to)? (?:two|half)(?: equal)?(?: halves| parts)?|divide evenly by two|(?:goes|go) by twos)(?: evenly)?(?: without (?:a |any )?(?:rest|remainder|leftover))?", "are even"),
        (r"\b(?:(?:those|values|numbers|integers|the ones|everything|anything|all|whatever)(?: that (?:is|are))? )?(?:under|below|less than|smaller than) (?:zero|0|nought)\b", "the negative numbers"),
        (r"\b(?:(?:those|values|numbers|integers|the ones|everything|anything|all|whatever)(?: that (?:is|are))? )?(?:above|over|more than) (?:zero|0|nought)\b", "the positive numbers"),
        (r"\bhow many (?:of )?(?:its|the|these|those|all|their|his|them)?(?: the)? ?(\w+)? ?(?:are|is) (even|odd|negative|positive|prime|vowels|consonants|digits|capital letters|capital|upper ?-?case)(?: letters| numbers)?\b", r"how many \2 \1"),
        (r"\bthrow\w* (?:away|out)|\bskip\w*|\btoss\w* out|\bcross\w* out|\bget\w* rid of", "remove"),
        (rf"\b(?:each|every)[^.;]{{0,60}}{_OUTPUT} (?:just |only )?once\b|\bno (?:value|number|integer|one|word)[^.;]{{0,15}}twice\b|\bwithout (?:any )?(?:repeats|doubles|repeating)\b", "without duplicates"),
        # whole numbers
        (r"\b(?:every|each) prime\b", "all primes"),
        (r"\b(?:(?:that|which) (?:is|are) )?(?:not|no) (?:larger|greater|bigger|higher|more) than n\b", "up to n"),
        (r"\b(?:has|with|having) (?:a 29th of february|a february 29\w*|366 days|an extra day)", "is a leap year"),
        (r"\b(?:nothing|no (?:other )?(?:number|integer)s?) (?:but|except|other than|besides|apart from) (?:1|one|itself|the number) and [^.;]{0,40}?(?:goes? into(?: it)?|divides?(?: it)?|fits? into(?: it)?)|\bdivisible only by (?:1|one) and (?:by )?itself|\b(?:just|only|exactly) two divisors\b", "the number is prime"),
        (rf"\b{_BIG} (?:\w+ )?(?:number|integers?|value) (?:that|which) (?:goes into|divides|fits into|measures)(?: evenly| exactly)?(?: into)? (?:both|them|the two|each|all)(?: of them| evenly)?", "greatest common divisor"),
        (rf"\b{_LOW} (?:\w+ )?(?:number|integers?|value) (?:(?:that|which) (?:both|all|each|the two)|into which (?:both|all|each|the two))[^.;,]{{0,30}}(?:go|divide|fit)\w*(?: into)?|\b{_LOW} [^.;,]{{0,30}}(?:multiple of|divisible by) (?:both|all|each)(?: of them)?", "least common multiple"),
        (r"\b(?:everything|all(?: the)? (?:numbers|integers)|(?:each|every) (?:number|integers?)|the numbers|numbers) (?:that|which) (?:goes?|fits?|divides?)(?: evenly| exactly)?(?: into)? (?:it|n|the number|that number)(?: without (?:a |any )?(?:remainder|rest|leftover))?", "the divisors of n"),
        (r"\b(?:one|1) (?:times|\*) (?:two|2) (?:times|\*) (?:three|3)[^.;]{0,40}?(?:up )?to n\b|\bproduct of (?:all )?(?:the )?(?:numbers|integers) from (?:1|one) (?:up )?to n\b", "the factorial of n"),
        (r"\b(?:with |in |using )?(?:only |nothing but |just )?(?:zero(?:e?s)|0s|noughts) and (?:ones|1s)(?: only)?\b|\bdual system\b", "in binary"),
        (r"\b(?:each|every)(?: \w+)? (?:times|multiplied (?:by|with)) itself\b", "squares of each"),
        (r"\b(?:each|every) (?:number |value )?(?:twice as (?:big|large)|doubled)", "doubled each"),
    )
)  # fmt: skip


@lru_cache(maxsize=2048)
def learnt_words(plain: str) -> str:
    """Return a plain lower-case statement with everyday words replaced by learnt ones."""
    for pattern, words in _THESAURUS:
        plain = pattern.sub(words, plain)
    return re.sub(r"\s+", " ", plain)
