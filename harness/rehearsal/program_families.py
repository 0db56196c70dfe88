# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""The families of programs that rehearsal code writers have learnt, commonest first.

Each family is how people ask for it (patterns), what it takes, and the body of one function. The
reading and printing around it is written by `programs`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of program."""

    name: str
    asks: tuple[str, ...]
    """Patterns; the first must match, the others make the family more likely."""
    takes: tuple[str, ...]
    """Kinds of arguments: ints, int, text, words, matrix, pairs."""
    gives: str
    """Kind of result: int, ints, text, bool, words, rows."""
    body: str


FAMILIES: tuple[Family, ...] = (
    Family("sum", (r"\bsum of (?:all |the |these )*(?:n |given )?(?:integers|numbers|elements|values|array|list|them)|\badd (?:up|together)|total of", r"\bsum\b"), ("ints",), "int", "return sum(values)"),
    Family("maximum", (r"\b(?:maximum|largest|greatest|biggest|highest)\b(?! (?:common|sum|run))", r"print the (?:maximum|largest)"), ("ints",), "int", "return max(values)"),
    Family("minimum", (r"\b(?:minimum|smallest|lowest)\b(?! prime)",), ("ints",), "int", "return min(values)"),
    Family("sort", (r"\bsort(?:ed|s|ing)?\b|(?:ascending|increasing|non-decreasing|descending) order", r"\bsort\b|in (?:ascending|descending|increasing|decreasing|non-decreasing|non-increasing) order"), ("ints",), "ints", "return sorted(values)"),
    Family("sort descending", (r"(?:descending|decreasing|non-increasing) order|largest to smallest|largest first", r"\bsort|order", r"descending|decreasing"), ("ints",), "ints", "return sorted(values, reverse=True)"),
    Family("vowels", (r"\bvowels?\b", r"how many|number of|count"), ("text",), "int", 'return sum(1 for letter in text.lower() if letter in "aeiou")'),
    Family("palindrome", (r"palindrom|same (?:forwards?|backwards?)|reads the same", r"whether|check|determine", r"palindrom"), ("text",), "bool", "kept = [c for c in text.lower() if c.isalnum()]\nreturn kept == kept[::-1]"),
    Family("reverse words", (r"(?:revers\w+|backwards?|opposite|last to first)[^.]{0,40}\bwords\b|\bwords\b[^.]{0,50}(?:revers|backwards?|opposite order|last to first)", r"order of (?:the )?words|words in reverse"), ("text",), "text", 'return " ".join(text.split()[::-1])'),
    Family("second largest", (r"second[- ](?:largest|biggest|highest|greatest|maximum)|runner-up", r"distinct|different", r"second"), ("ints",), "int", "kept = sorted(set(values))\nif len(kept) < 2:\n    return -1\nreturn kept[-2]"),
    Family("unique", (r"\b(?:unique|distinct|different|duplicates?)\b", r"remov\w+ (?:the |all )?duplicates|without (?:duplicates|repet)|first (?:appear|occur)|each value once|keep"), ("ints",), "ints", "return list(dict.fromkeys(values))"),
    Family("count distinct", (r"(?:how many|number of|count(?: the)?(?: number of)?) (?:different|distinct|unique)",  r"distinct|different|unique", r"count|how many|number of"), ("ints",), "int", "return len(set(values))"),
    Family("count even", (r"(?:how many|number of|count)[^.]{0,60}\beven\b", r"\beven\b", r"count|how many"), ("ints",), "int", "return sum(1 for value in values if value % 2 == 0)"),
    Family("count odd", (r"(?:how many|number of|count)[^.]{0,60}\bodd\b", r"\bodd\b", r"count|how many"), ("ints",), "int", "return sum(1 for value in values if value % 2 == 1)"),
    Family("count divisible", (r"(?:how many|number of|count)[^.]{0,70}(?:divisible by|multiples? of)", r"divisible", r"count|how many"), ("ints", "int"), "int", "return sum(1 for value in values if value % other == 0)"),
    Family("count greater", (r"(?:how many|number of|count)[^.]{0,70}(?:greater|larger|bigger|more|above|exceed)", r"than|exceed|above", r"count|how many"), ("ints", "int"), "int", "return sum(1 for value in values if value > other)"),
    Family("count smaller", (r"(?:how many|number of|count)[^.]{0,70}(?:smaller|less|below|under|fewer)", r"than|below", r"count|how many"), ("ints", "int"), "int", "return sum(1 for value in values if value < other)"),
    Family("count equal", (r"(?:how many times|number of times|occurrences|(?:how many|number of|count)[^.]{0,50}equal)[^.]{0,60}", r"occur|appears?|equal", r"count|how many"), ("ints", "int"), "int", "return sum(1 for value in values if value == other)"),
    Family("count negative", (r"(?:how many|number of|count)[^.]{0,60}\bnegative\b", r"\bnegative\b", r"count|how many"), ("ints",), "int", "return sum(1 for value in values if value < 0)"),
    Family("count positive", (r"(?:how many|number of|count)[^.]{0,60}\b(?:strictly )?positive (?:numbers|values|elements|ones)\b", r"\bpositive\b"), ("ints",), "int", "return sum(1 for value in values if value > 0)"),
    Family("running sums", (r"running (?:sums?|totals?)|prefix sums?|cumulative|partial sums?|sum of (?:all |the )?(?:elements|values|numbers) (?:up to|so far)", r"running|prefix|cumulative|partial", r"each position|so far"), ("ints",), "ints", "result, total = [], 0\nfor value in values:\n    total += value\n    result.append(total)\nreturn result"),
    Family("mode", (r"\bmode\b|most (?:often|frequent|common)|most frequently|highest frequency|appears? (?:the )?most", r"smallest|tie", r"frequen|often|mode"), ("ints",), "int", "counts = {}\nfor value in values:\n    counts[value] = counts.get(value, 0) + 1\nbest = max(counts.values())\nreturn min(value for value in counts if counts[value] == best)"),
    Family("gcd", (r"\bgcd\b|greatest common divisor|highest common factor|common divisor", r"gcd|greatest|highest"), ("ints",), "int", "result = 0\nfor value in values:\n    value = abs(value)\n    while value:\n        result, value = value, result % value\nreturn result"),
    Family("primes", (r"\bprimes?\b(?: numbers?)?[^.]{0,40}(?:below|less than|smaller than|up to|under|at most|not exceeding|strictly)|(?:how many|number of|count)[^.]{0,40}primes?", r"how many|number of|count", r"prime"), ("int",), "int", "return sum(1 for n in range(2, LIMIT) if all(n % d for d in range(2, int(n ** 0.5) + 1)))"),
    Family("list primes", (r"(?:all|list|print|return)(?: of)?(?: the)? (?:prime numbers|primes)[^.]{0,40}(?:below|less than|smaller than|up to|under|at most|not exceeding)", r"all (?:the )?(?:prime|primes)|list", r"prime", r"ascending|increasing|separated|order"), ("int",), "ints", "return [n for n in range(2, LIMIT) if all(n % d for d in range(2, int(n ** 0.5) + 1))]"),
    Family("fibonacci", (r"fibonacci", r"fibonacci", r"\bf\("), ("int",), "int", "a, b = 0, 1\nfor _ in range(n):\n    a, b = b, a + b\nreturn a"),
    Family("fibonacci modulo", (r"fibonacci[^#]{0,400}(?:modulo|\bmod\b|remainder)", r"fibonacci", r"modulo|mod\b|remainder", r"modulo m|mod m|second integer"), ("int", "int"), "int", "a, b = 0, 1\nfor _ in range(n):\n    a, b = b, (a + b) % other\nreturn a % other"),
    Family("power modulo", (r"(?:raised to|\*\*|\^|to the power)[^#]{0,200}(?:modulo|\bmod\b|remainder)", r"power|exponent", r"modulo|mod\b|remainder"), ("int", "int", "int"), "int", "return pow(n, other, third)"),
    Family("letter count", (r"(?:how many times|number of times|count|occurrences)[^.]{0,60}\b(?:letter|character)\b[^.]{0,60}", r"occur|appears?", r"\bletter\b|\bcharacter\b"), ("text", "text"), "int", "return text.count(second) if len(second) <= len(text) else second.count(text)"),
    Family("letter counts", (r"(?:each|every) (?:distinct |different )?(?:letter|character)[^.]{0,60}|letter counts|frequency of each", r"frequen|counts|how many times", r"alphabetical|order"), ("text",), "rows", "return [(letter, text.count(letter)) for letter in sorted(set(text)) if letter.isalpha()]"),
    Family("transpose", (r"transpos|rows (?:become|turn into) columns|swap(?:ping)? rows and columns", r"matrix|grid", r"transpos"), ("matrix",), "rows", "return [list(row) for row in zip(*matrix)]"),
    Family("diagonal", (r"diagonal", r"matrix|grid|square", r"diagonal", r"sum|trace"), ("matrix",), "int", "return sum(matrix[i][i] for i in range(len(matrix)))"),
    Family("brackets", (r"(?:bracket|parenthes|parens)", r"balanced|valid|properly|match|correctly", r"bracket|parenthes"), ("text",), "bool", 'pairs, stack = {")": "(", "]": "[", "}": "{"}, []\nfor mark in text:\n    if mark in "([{":\n        stack.append(mark)\n    elif mark in pairs:\n        if not stack or stack.pop() != pairs[mark]:\n            return False\nreturn not stack'),
    Family("merge intervals", (r"interval|segments|ranges", r"overlap|merg|union", r"merg|interval"), ("pairs",), "rows", "result = []\nfor start, end in sorted(map(tuple, pairs)):\n    if result and start <= result[-1][1]:\n        result[-1][1] = max(result[-1][1], end)\n    else:\n        result.append([start, end])\nreturn result"),
    Family("increasing run", (r"(?:longest|maximum length)[^.]{0,60}(?:increasing|ascending|rising|growing)", r"consecutive|contiguous|run|subarray|streak|adjacent", r"longest", r"strictly|increasing"), ("ints",), "int", "best = length = 1 if values else 0\nfor before, value in zip(values, values[1:]):\n    length = length + 1 if value > before else 1\n    best = max(best, length)\nreturn best"),
    Family("two sum", (r"(?:two|pair)[^.]{0,80}(?:sum|add up|adds? to|total)", r"target|add up|sum (?:is|equals|to)", r"indices|positions|index|pair"), ("ints", "int"), "ints", "seen = {}\nfor i, value in enumerate(values):\n    if other - value in seen:\n        return [seen[other - value] + BASE, i + BASE]\n    seen.setdefault(value, i)\nreturn [-1]"),
    Family("pair exists", (r"(?:whether|if|determine|check)[^.]{0,60}(?:two|pair)[^.]{0,80}(?:sum|add up|adds? to|total)", r"target|add up|sum", r"whether|check", r"yes|true"), ("ints", "int"), "bool", "seen = set()\nfor value in values:\n    if other - value in seen:\n        return True\n    seen.add(value)\nreturn False"),
    Family("caesar", (r"caesar|(?:shift|rotat|mov)\w*[^.]{0,60}(?:letter|alphabet)|(?:letter|alphabet)[^.]{0,60}(?:shift|rotat)", r"caesar|cipher|alphabet", r"shift"), ("text", "int"), "text", 'result = ""\nfor letter in text:\n    if letter.isalpha():\n        start = ord("a") if letter.islower() else ord("A")\n        result += chr((ord(letter) - start + other) % 26 + start)\n    else:\n        result += letter\nreturn result'),
    Family("run length", (r"run[- ]length|compress|consecutive (?:equal|identical|repeated|same)|runs? of (?:equal|identical|the same)", r"encod|compress", r"run|consecutive", r"followed by"), ("text",), "text", 'result, i = "", 0\nwhile i < len(text):\n    j = i\n    while j < len(text) and text[j] == text[i]:\n        j += 1\n    result += FORM\n    i = j\nreturn result'),
    Family("anagrams", (r"anagram|rearrang", r"anagram", r"two (?:words|strings)|whether|check"), ("text", "text"), "bool", 'return sorted(text.replace(" ", "").lower()) == sorted(second.replace(" ", "").lower())'),
    Family("binary", (r"\bbinary\b|base[- ](?:2|two)", r"representation|convert|form|write", r"binary"), ("int",), "text", 'return format(n, "b")'),
    Family("binary ones", (r"(?:number of|how many|count)[^.]{0,40}(?:\b1s\b|\bones\b|1-bits|1 bits|set bits|\bone bits)", r"binary|bits", r"ones|1s|set bits"), ("int",), "int", 'return bin(n).count("1")'),
    Family("reverse list", (r"revers", r"list|array|integers|numbers", r"reverse order|reversed"), ("ints",), "ints", "return values[::-1]"),
    Family("reverse string", (r"revers\w*[^.]{0,30}(?:string|text|line|word\b|characters)", r"string", r"revers"), ("text",), "text", "return text[::-1]"),
    Family("count words", (r"(?:how many|number of|count)[^.]{0,20} words", r"words"), ("text",), "int", "return len(text.split())"),
    Family("digit sum", (r"(?:sum of (?:the |its )?(?:decimal )?digits|digit sum)", r"digits", r"sum"), ("int",), "int", "return sum(int(digit) for digit in str(abs(n)))"),
    Family("range", (r"difference between (?:the )?(?:largest|maximum|biggest|greatest|highest)", r"difference", r"smallest|minimum|lowest"), ("ints",), "int", "return max(values) - min(values)"),
    Family("sum even", (r"sum of (?:all |the |only )*even", r"even", r"sum"), ("ints",), "int", "return sum(value for value in values if value % 2 == 0)"),
    Family("sum odd", (r"sum of (?:all |the |only )*odd", r"odd", r"sum"), ("ints",), "int", "return sum(value for value in values if value % 2 == 1)"),
    Family("product", (r"\bproduct of (?:all|the|these)", r"multipl|product"), ("ints",), "int", "result = 1\nfor value in values:\n    result *= value\nreturn result"),
    Family("factorial", (r"factorial", r"n!"), ("int",), "int", "result = 1\nfor value in range(2, n + 1):\n    result *= value\nreturn result"),
    Family("is prime", (r"(?:whether|if|determine|check)[^.]{0,40}\bprime\b", r"prime", r"yes|true", r"whether"), ("int",), "bool", "return n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))"),
)  # fmt: skip
"""Patterns are read against the plain lower-case statement."""
