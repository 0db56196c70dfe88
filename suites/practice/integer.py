"""`practice-integer`: generated questions with an integer answer, shaped like AIME questions."""

from itertools import permutations
from math import comb, factorial, gcd, lcm
from random import Random

from inspect_ai import Task, task

from harness.extract import extract_integer
from harness.inspect_adapters import as_task
from harness.records import Grade, Question
from harness.suite import Split
from sandbox import Box
from suites.base import user_errors
from suites.practice import Draft, PracticeSuite, any_of, integer_draft

# § Number-theory questions of `practice-integer`: expressions, divisors, powers, primes,
# § digits.
# §
# § Each function draws one question with its answer. The answer comes from the definition, by
# § brute
# § force where that is cheap, so that a mistake here cannot hide behind a clever formula.


Expression = tuple[str, str, int]
"""As plain text, as LaTeX, and its value."""


def divisors(n: int) -> list[int]:
    """Return the positive divisors of n in order."""
    return [d for d in range(1, n + 1) if n % d == 0]


def is_prime(n: int) -> bool:
    """Return whether n is a prime number."""
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def digit_sum(n: int) -> int:
    """Return the sum of the decimal digits of n."""
    return sum(int(digit) for digit in str(n))


def in_base(n: int, base: int) -> str:
    """Return n written in a base up to ten."""
    return (in_base(n // base, base) if n >= base else "") + str(n % base)


def _expression(rng: Random, depth: int, most: int) -> Expression:
    if depth == 0:
        n = rng.randint(2, most)
        return str(n), str(n), n
    left, right = _expression(rng, depth - 1, most), _expression(rng, rng.randrange(depth), most)
    sign, latex, value = rng.choice(
        [
            ("+", "+", left[2] + right[2]),
            ("-", "-", left[2] - right[2]),
            ("*", r"\times", left[2] * right[2]),
        ]
    )
    plain = f"{_bracket(left[0])} {sign} {_bracket(right[0])}"
    return plain, f"{_bracket(left[1])} {latex} {_bracket(right[1])}", value


def _bracket(text: str) -> str:
    return f"({text})" if " " in text else text


def expression(rng: Random) -> Draft | None:
    """Ask for the value of an expression with brackets."""
    plain, latex, value = _expression(rng, rng.randint(1, 3), 20)
    return integer_draft(
        rng,
        f"expression {plain}",
        value,
        f"What is the value of {plain}?",
        f"Compute {plain}.",
        f"Evaluate the expression ${latex}$.",
        f"Work out ${latex}$ exactly.",
    )


def expression_remainder(rng: Random) -> Draft | None:
    """Ask for the remainder of an expression with larger numbers."""
    plain, latex, value = _expression(rng, rng.randint(2, 3), 90)
    modulus = rng.randint(7, 999)
    return integer_draft(
        rng,
        f"expression {plain} mod {modulus}",
        value % modulus if value > modulus else -1,
        f"What is the remainder when {plain} is divided by {modulus}?",
        f"Let $N = {latex}$. Find the remainder when $N$ is divided by ${modulus}$.",
    )


def gcd_question(rng: Random) -> Draft | None:
    """Ask for the greatest common divisor of two numbers."""
    g = rng.randint(2, 60)
    a, b = g * rng.randint(3, 60), g * rng.randint(3, 60)
    return integer_draft(
        rng,
        f"gcd {a} {b}",
        gcd(a, b),
        f"What is the greatest common divisor of {a} and {b}?",
        f"Find the largest positive integer that divides both {a} and {b}.",
        rf"Compute $\gcd({a}, {b})$.",
        f"A {a} cm by {b} cm sheet is cut into equal squares, as large as possible, with nothing "
        "left over. What is the side of a square in centimetres?",
    )


def lcm_question(rng: Random) -> Draft | None:
    """Ask for the least common multiple of two or three numbers."""
    numbers = [rng.randint(4, 48) for _ in range(rng.choice((2, 2, 3)))]
    listed = ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"
    return integer_draft(
        rng,
        f"lcm {numbers}",
        lcm(*numbers),
        f"What is the least common multiple of {listed}?",
        f"Find the smallest positive integer that is divisible by each of {listed}.",
        f"Lamps flash every {listed} seconds. They have just flashed together. After how many "
        "seconds will they next flash together?",
    )


def power_remainder(rng: Random) -> Draft | None:
    """Ask for a power modulo a number."""
    a, b, m = rng.randint(2, 40), rng.randint(4, 2030), rng.randint(5, 999)
    return integer_draft(
        rng,
        f"power {a} {b} mod {m}",
        pow(a, b, m),
        f"What is the remainder when {a}^{b} is divided by {m}?",
        f"Find the remainder when ${a}^{{{b}}}$ is divided by ${m}$.",
        rf"Compute ${a}^{{{b}}} \bmod {m}$.",
        f"The number {a} is raised to the power {b}. What remainder does the result leave on "
        f"division by {m}?",
    )


def last_digits(rng: Random) -> Draft | None:
    """Ask for the last digits of a sum of two powers."""
    a, b, c, d = (rng.randint(2, most) for most in (19, 300, 19, 300))
    count, word = rng.choice(
        ((1, "is the last digit"), (2, "are the last two digits"), (3, "are the last three digits"))
    )
    note = "" if count == 1 else " (as an integer, dropping leading zeros)"
    return integer_draft(
        rng,
        f"last {count} {a}^{b}+{c}^{d}",
        (a**b + c**d) % 10**count,
        f"What {word}{note} of {a}^{b} + {c}^{d}?",
        f"Find the remainder when ${a}^{{{b}}} + {c}^{{{d}}}$ is divided by ${10**count}$.",
    )


def divisor_count(rng: Random) -> Draft | None:
    """Ask how many divisors a number has: all, even or odd ones."""
    n = rng.choice((rng.randint(12, 400), 12 * rng.randint(5, 120), 30 * rng.randint(3, 80)))
    which = rng.choice(("", "even ", "odd "))
    found = [d for d in divisors(n) if not which or (d % 2 == 0) == (which == "even ")]
    return integer_draft(
        rng,
        f"divisor count {which}{n}",
        len(found),
        f"How many positive {which}divisors does {n} have?",
        f"Determine the number of positive {which}integers that divide ${n}$ exactly."
        if not which
        else f"Among the positive divisors of ${n}$, how many are {which.strip()}?",
    )


def divisor_sum(rng: Random) -> Draft | None:
    """Ask for the sum of a number's divisors."""
    n = rng.randint(10, 420)
    return integer_draft(
        rng,
        f"divisor sum {n}",
        sum(divisors(n)),
        f"What is the sum of all positive divisors of {n}?",
        f"Find the sum of the positive integers that divide ${n}$.",
        f"Add up every positive divisor of {n}, including 1 and {n} itself. What do you get?",
    )


def prime_count(rng: Random) -> Draft | None:
    """Ask how many primes lie in a range."""
    low = rng.randint(1, 300)
    high = low + rng.randint(10, 400)
    return integer_draft(
        rng,
        f"primes {low} {high}",
        sum(is_prime(n) for n in range(low, high + 1)),
        f"How many prime numbers are there between {low} and {high}, inclusive?",
        rf"Find the number of primes $p$ with ${low} \le p \le {high}$.",
        f"Count the primes that are at least {low} and at most {high}.",
    )


def prime_factor(rng: Random) -> Draft | None:
    """Ask for the largest prime factor, or the sum of the distinct ones."""
    n = rng.randint(100, 6000)
    factors = [d for d in divisors(n) if is_prime(d)]
    word, answer = rng.choice((("largest", factors[-1]), ("sum", sum(factors))))
    texts = {
        "largest": (
            f"What is the largest prime factor of {n}?",
            f"Find the greatest prime number that divides ${n}$.",
        ),
        "sum": (
            f"What is the sum of the distinct prime factors of {n}?",
            f"Add up the different primes that divide ${n}$. What is the total?",
        ),
    }
    return integer_draft(rng, f"prime factor {word} {n}", answer, *texts[word])


def digits_of_power(rng: Random) -> Draft | None:
    """Ask for the digit sum of a power."""
    a, b = rng.randint(2, 15), rng.randint(3, 30)
    return integer_draft(
        rng,
        f"digit sum {a}^{b}",
        digit_sum(a**b),
        f"What is the sum of the digits of {a}^{b}?",
        f"Find the sum of the decimal digits of ${a}^{{{b}}}$.",
    )


def base_value(rng: Random) -> Draft | None:
    """Ask for the value of a number written in another base, or for its digits there."""
    n, base = rng.randint(20, 999), rng.randint(2, 9)
    written = in_base(n, base)
    if rng.random() < 0.5:
        return integer_draft(
            rng,
            f"from base {base} {written}",
            n,
            f"The number {written} is written in base {base}. What is its value in base 10?",
            f"Convert ${written}_{{{base}}}$ to base ten.",
        )
    return integer_draft(
        rng,
        f"digit sum {n} base {base}",
        digit_sum(int(written)),
        f"What is the sum of the digits of {n} when it is written in base {base}?",
        f"Write ${n}$ in base ${base}$. Find the sum of its digits.",
    )


def trailing_zeros(rng: Random) -> Draft | None:
    """Ask how many zeros end a factorial."""
    n = rng.randint(10, 600)
    text = str(factorial(n))
    return integer_draft(
        rng,
        f"zeros {n}!",
        len(text) - len(text.rstrip("0")),
        f"How many zeros are at the end of {n}! ({n} factorial)?",
        f"With how many consecutive zeros does ${n}!$ end?",
    )


NUMBERS = {
    "arithmetic": any_of(expression, expression, expression_remainder),
    "gcd and lcm": any_of(gcd_question, lcm_question),
    "powers": any_of(power_remainder, power_remainder, last_digits),
    "divisors": any_of(divisor_count, divisor_sum),
    "primes": any_of(prime_count, prime_factor),
    "digits": any_of(digits_of_power, base_value, trailing_zeros),
}


# § Counting and everyday questions of `practice-integer`: series, congruences, words,
# § searches.
# §
# § Each function draws one question with its answer, by brute force where that is cheap.


# fmt: off
ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# fmt: on


def spelt(n: int) -> str:
    """Return a number below a hundred in words.

    >>> spelt(42)
    'forty-two'
    """
    if n < 20:
        return ONES[n]
    tens = TENS[n // 10 - 2]
    return f"{tens}-{ONES[n % 10]}" if n % 10 else tens


def choose(rng: Random) -> Draft | None:
    """Ask for a binomial coefficient, in several disguises."""
    n = rng.randint(5, 45)
    k = rng.randint(2, min(6, n - 1))
    return integer_draft(
        rng,
        f"choose {n} {k}",
        comb(n, k),
        f"In how many ways can a committee of {k} people be chosen from {n} people?",
        rf"Compute $\binom{{{n}}}{{{k}}}$.",
        f"What is the binomial coefficient C({n}, {k})?",
        f"How many subsets with exactly {k} elements does a set of {n} elements have?",
    )


def handshakes(rng: Random) -> Draft | None:
    """Ask for the number of pairs, or of diagonals."""
    n = rng.randint(4, 44)
    if rng.random() < 0.6:
        return integer_draft(
            rng,
            f"handshakes {n}",
            comb(n, 2),
            f"At a party of {n} people everyone shakes hands once with everyone else. How many "
            "handshakes are there?",
            f"{spelt(n).capitalize()} teams each play every other team exactly once. How many "
            "games are played?",
        )
    return integer_draft(
        rng,
        f"diagonals {n}",
        n * (n - 3) // 2,
        f"How many diagonals does a convex polygon with {n} sides have?",
        f"A convex polygon has {spelt(n)} vertices. How many diagonals can be drawn in it?",
    )


def lattice_paths(rng: Random) -> Draft | None:
    """Ask for the number of shortest paths on a grid."""
    a, b = rng.randint(2, 9), rng.randint(2, 6)
    return integer_draft(
        rng,
        f"paths {a} {b}",
        comb(a + b, a),
        f"How many lattice paths lead from (0, 0) to ({a}, {b}) by unit steps right or up?",
        f"An ant walks on a grid from $(0,0)$ to $({a},{b})$, moving only right or up by one unit "
        "at a time. How many different paths can it take?",
    )


def arrangements(rng: Random) -> Draft | None:
    """Ask for the arrangements of a short word with repeated letters."""
    word = "".join(rng.choice("AABBCDEEL") for _ in range(rng.randint(3, 6)))
    return integer_draft(
        rng,
        f"arrangements {''.join(sorted(word))}",
        len(set(permutations(word))),
        f"How many different strings can be made by rearranging the letters of {word}?",
        f"In how many distinguishable ways can the letters of {word} be arranged in a row?",
    )


def arithmetic_series(rng: Random) -> Draft | None:
    """Ask for the sum or a term of an arithmetic series."""
    first, step, terms = rng.randint(1, 30), rng.randint(2, 15), rng.randint(5, 60)
    series = [first + step * at for at in range(terms)]
    shown = f"{series[0]}, {series[1]}, {series[2]}"
    if rng.random() < 0.4:
        return integer_draft(
            rng,
            f"arithmetic term {first} {step} {terms}",
            series[-1],
            f"An arithmetic sequence starts {shown}, ... What is term number {terms}?",
            f"Term number {terms} of the arithmetic sequence ${shown}, \\ldots$ equals what?",
        )
    return integer_draft(
        rng,
        f"arithmetic sum {first} {step} {terms}",
        sum(series) % 1000,
        f"What is the remainder when the sum {series[0]} + {series[1]} + {series[2]} + ... + "
        f"{series[-1]} (an arithmetic series) is divided by 1000?",
        f"Find the sum of the first {terms} terms of the arithmetic sequence ${shown}, \\ldots$, "
        "and give its remainder modulo $1000$.",
    )


def geometric_series(rng: Random) -> Draft | None:
    """Ask for the sum of a geometric series modulo a number."""
    first, ratio, terms = rng.randint(1, 9), rng.randint(2, 7), rng.randint(4, 40)
    modulus = rng.randint(11, 999)
    total = sum(first * ratio**at for at in range(terms))
    return integer_draft(
        rng,
        f"geometric {first} {ratio} {terms} mod {modulus}",
        total % modulus,
        f"A geometric sequence has first term {first} and common ratio {ratio}. What is the "
        f"remainder when the sum of its first {terms} terms is divided by {modulus}?",
        rf"Let $S = \sum_{{k=0}}^{{{terms - 1}}} {first} \cdot {ratio}^k$. Find the remainder when "
        f"$S$ is divided by ${modulus}$.",
    )


def congruences(rng: Random) -> Draft | None:
    """Ask for the smallest solution of two or three congruences."""
    moduli = rng.sample((3, 4, 5, 7, 8, 9, 11, 13, 17, 19), rng.choice((2, 2, 3)))
    if any(gcd(a, b) > 1 for a in moduli for b in moduli if a != b):
        return None
    rests = [rng.randrange(m) for m in moduli]
    pairs = list(zip(rests, moduli, strict=True))
    answer = next(x for x in range(1, 20_000) if all(x % m == r for r, m in pairs))
    said = [f"a remainder of {r} when divided by {m}" for r, m in pairs]
    system = ", ".join(rf"x \equiv {r} \pmod{{{m}}}" for r, m in pairs)
    return integer_draft(
        rng,
        f"congruences {sorted(pairs)}",
        answer,
        f"What is the smallest positive integer that leaves {' and '.join(said)}?",
        f"Find the least positive integer $x$ such that ${system}$.",
    )


def multiples(rng: Random) -> Draft | None:
    """Ask how many numbers up to a limit are divisible by either, neither or exactly one."""
    limit, a, b = rng.randint(60, 2000), rng.randint(2, 15), rng.randint(2, 25)
    which = rng.choice(("either", "neither", "one"))
    if a == b:
        return None
    hits = [(n % a == 0) + (n % b == 0) for n in range(1, limit + 1)]
    answer = {"either": sum(h > 0 for h in hits), "neither": hits.count(0), "one": hits.count(1)}
    said = {
        "either": f"divisible by {a} or by {b} (or by both)",
        "neither": f"divisible by neither {a} nor {b}",
        "one": f"divisible by exactly one of {a} and {b}",
    }[which]
    return integer_draft(
        rng,
        f"multiples {which} {limit} {a} {b}",
        answer[which],
        f"How many integers from 1 to {limit} inclusive are {said}?",
        rf"Find the number of integers $n$ with $1 \le n \le {limit}$ that are {said}.",
    )


def shopping(rng: Random) -> Draft | None:
    """Ask a price question in two steps."""
    pens, cost, books, price = (rng.randint(2, most) for most in (15, 9, 12, 30))
    paid = 50 * (1 + (pens * cost + books * price) // 50)
    return integer_draft(
        rng,
        f"shopping {pens} {cost} {books} {price}",
        paid - pens * cost - books * price,
        f"A pen costs {cost} dollars and a book costs {price} dollars. Mia buys {pens} pens and "
        f"{books} books and pays with {paid} dollars. How many dollars does she get back?",
        f"Omar pays {paid} dollars for {spelt(pens)} pens at {spelt(cost)} dollars each and "
        f"{spelt(books)} books at {spelt(price)} dollars each. How many dollars of change are due?",
    )


def travel(rng: Random) -> Draft | None:
    """Ask when two trains meet, or how far one has come."""
    slow, fast, hours = rng.randint(3, 9) * 10, rng.randint(4, 12) * 10, rng.randint(2, 7)
    if rng.random() < 0.5:
        return integer_draft(
            rng,
            f"meeting {slow} {fast} {hours}",
            hours,
            f"Two trains start towards each other from stations {(slow + fast) * hours} km apart, "
            f"one at {slow} km/h and the other at {fast} km/h. After how many hours do they meet?",
        )
    return integer_draft(
        rng,
        f"distance {slow} {fast} {hours}",
        slow * hours + fast * (hours + 1),
        f"A car drives for {hours} hours at {slow} km/h and then for {hours + 1} hours at {fast} "
        "km/h. How many kilometres does it drive altogether?",
        f"For {spelt(hours)} hours a bus travels at {slow} kilometres per hour, and for the next "
        f"{spelt(hours + 1)} hours at {fast} kilometres per hour. Find the total distance in km.",
    )


def filling(rng: Random) -> Draft | None:
    """Ask how long two taps take together."""
    a, b = rng.randint(4, 60), rng.randint(4, 60)
    if (a * b) % (a + b) or a == b:
        return None
    return integer_draft(
        rng,
        f"filling {a} {b}",
        a * b // (a + b),
        f"One tap fills a tank in {a} minutes, another fills it in {b} minutes. How many minutes "
        "do both together need?",
        f"Ada paints a fence in {a} hours, Ben in {b} hours. Working together, in how many hours "
        "do they finish?",
    )


def smallest_with_divisors(rng: Random) -> Draft | None:
    """Ask for the smallest number above a bound with a given number of divisors."""
    count, bound = rng.choice((3, 4, 5, 6, 8, 9, 10, 12)), rng.randint(1, 250)
    answer = next(n for n in range(bound + 1, 20_000) if len(divisors(n)) == count)
    return integer_draft(
        rng,
        f"smallest {count} divisors above {bound}",
        answer,
        f"What is the smallest integer greater than {bound} that has exactly {count} positive "
        "divisors?",
        f"Find the least integer $n > {bound}$ with exactly {spelt(count)} positive divisors.",
    )


def smallest_multiple(rng: Random) -> Draft | None:
    """Ask for the smallest multiple with a given digit sum."""
    step, total = rng.randint(3, 40), rng.randint(5, 20)
    answer = next((n for n in range(step, 1000, step) if digit_sum(n) == total), -1)
    return integer_draft(
        rng,
        f"smallest multiple {step} digits {total}",
        answer,
        f"What is the smallest positive multiple of {step} whose digits add up to {total}?",
        f"Find the least positive integer divisible by ${step}$ with digit sum ${total}$.",
    )


def next_prime(rng: Random) -> Draft | None:
    """Ask for the next prime in a residue class."""
    bound, modulus = rng.randint(10, 800), rng.choice((4, 5, 6, 8, 10))
    rest = rng.choice([r for r in range(modulus) if gcd(r, modulus) == 1])
    answer = next(n for n in range(bound + 1, 9000) if is_prime(n) and n % modulus == rest)
    return integer_draft(
        rng,
        f"next prime {bound} {rest} mod {modulus}",
        answer,
        f"What is the smallest prime greater than {bound} that leaves a remainder of {rest} when "
        f"divided by {modulus}?",
        rf"Find the least prime $p > {bound}$ with $p \equiv {rest} \pmod{{{modulus}}}$.",
    )


COUNTING = {
    "counting": any_of(choose, handshakes, lattice_paths, arrangements),
    "series": any_of(arithmetic_series, geometric_series),
    "congruences": congruences,
    "multiples": multiples,
    "word problems": any_of(shopping, travel, filling),
    "smallest": any_of(smallest_with_divisors, smallest_multiple, next_prime),
}


# § `practice-integer`: generated questions with an integer answer, shaped like AIME
# § questions.


INSTRUCTION = (
    "Put your final answer within \\boxed{}.\nThe answer is an integer between 0 and 999 inclusive."
)
"""MathArena's suffix for AIME 2025 (github.com/eth-sri/matharena @e927660), as in `aime25`."""


def integer_question(id: str, draft: Draft) -> Question:
    """Return the question with its answer-format instruction."""
    return Question(
        id=id, text=f"{draft.text}\n\n{INSTRUCTION}", kind="integer", target=draft.target
    )


def grade_integer(question: Question, reply: str, box: Box | None = None) -> Grade:
    """Grade by equality of integers; a reply without one is wrong and counted as unparsed."""
    found = extract_integer(reply)
    if found is None:
        return Grade(value=0.0, extracted=None, explanation="no integer answer found")
    right = str(found) == question.target
    verdict = "right" if right else f"expected {question.target}"
    return Grade(value=float(right), extracted=str(found), explanation=verdict)


SUITE = PracticeSuite(
    name="practice-integer",
    version="3-A",
    topics={**NUMBERS, **COUNTING},
    write=integer_question,
    judge=grade_integer,
)


@task
@user_errors
def practice_integer(split: Split = "eval", limit: int | None = None, epochs: int = 1) -> Task:
    """Generated integer-answer questions, AIME-like; splits train, validation and eval."""
    return as_task(SUITE, split=split, limit=limit, epochs=epochs)
