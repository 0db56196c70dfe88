"""`practice-integer`: generated questions with an integer answer, shaped like AIME questions."""

from itertools import permutations
from math import comb, factorial, gcd, lcm
from random import Random

from inspect_ai import Task, task

from podium.harness.extract import read_integer
from podium.harness.inspect_adapters import as_task
from podium.harness.records import READ_BY, Grade, Question
from podium.harness.suite import Split
from podium.sandbox import Box
from podium.suites.aime25 import SUFFIX
from podium.suites.base import user_errors
from podium.suites.practice import Draft, IntegerProblem, PracticeSuite, any_of

ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def divisors(n: int) -> list[int]:
    """Return the positive divisors of n in ascending order."""
    return [d for d in range(1, n + 1) if n % d == 0]


def is_prime(n: int) -> bool:
    """Return whether n is a prime number."""
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def digit_sum(n: int) -> int:
    """Return the sum of the decimal digits of n."""
    return sum(int(digit) for digit in str(n))


def in_base(n: int, base: int) -> str:
    """Return the digits of n in a base from 2 to 10."""
    return (in_base(n // base, base) if n >= base else "") + str(n % base)


def fibonacci(n: int, modulus: int) -> int:
    """Return the n-th Fibonacci number modulo `modulus`, with F(0) = 0 and F(1) = 1."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, (a + b) % modulus
    return a % modulus


def collatz(n: int) -> int:
    """Return the number of Collatz steps from n to 1."""
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def _nested(rng: Random, depth: int, largest: int) -> tuple[str, str, int]:
    """Return a random expression of numbers from 2 to `largest`: plain text, LaTeX and value."""
    if depth == 0:
        n = rng.randint(2, largest)
        return str(n), str(n), n
    lhs, rhs = _nested(rng, depth - 1, largest), _nested(rng, rng.randrange(depth), largest)
    signs = (("+", "+", int.__add__), ("-", "-", int.__sub__), ("*", r"\times", int.__mul__))
    sign, latex, value = rng.choice(signs)
    a, b, latex_a, latex_b = (
        f"({text})" if " " in text else text for text in (lhs[0], rhs[0], lhs[1], rhs[1])
    )
    return f"{a} {sign} {b}", f"{latex_a} {latex} {latex_b}", value(lhs[2], rhs[2])


def _expression(rng: Random) -> Draft | None:
    plain, latex, value = _nested(rng, rng.randint(1, 3), 20)
    return IntegerProblem(rng, f"expression {plain}", value).worded(
        f"What is the value of {plain}?",
        f"Compute {plain}.",
        f"Evaluate the expression ${latex}$.",
        f"Work out ${latex}$ exactly.",
    )


def _expression_remainder(rng: Random) -> Draft | None:
    plain, latex, value = _nested(rng, rng.randint(2, 3), 90)
    modulus = rng.randint(7, 999)
    key = f"expression {plain} mod {modulus}"
    return IntegerProblem(rng, key, value % modulus if value > modulus else -1).worded(
        f"What is the remainder when {plain} is divided by {modulus}?",
        f"Let $N = {latex}$. Find the remainder when $N$ is divided by ${modulus}$.",
    )


def _gcd_question(rng: Random) -> Draft | None:
    g = rng.randint(2, 60)
    a, b = g * rng.randint(3, 60), g * rng.randint(3, 60)
    return IntegerProblem(rng, f"gcd {a} {b}", gcd(a, b)).worded(
        f"What is the greatest common divisor of {a} and {b}?",
        f"Find the largest positive integer that divides both {a} and {b}.",
        rf"Compute $\gcd({a}, {b})$.",
        f"A {a} cm by {b} cm sheet is cut into equal squares, as large as possible, with nothing "
        "left over. What is the side of a square in centimetres?",
    )


def _lcm_question(rng: Random) -> Draft | None:
    numbers = [rng.randint(4, 48) for _ in range(rng.choice((2, 2, 3)))]
    listed = ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"
    return IntegerProblem(rng, f"lcm {numbers}", lcm(*numbers)).worded(
        f"What is the least common multiple of {listed}?",
        f"Find the smallest positive integer that is divisible by each of {listed}.",
        f"Lamps flash every {listed} seconds. They have just flashed together. After how many "
        "seconds will they next flash together?",
    )


def _power_remainder(rng: Random) -> Draft | None:
    a, b, m = rng.randint(2, 40), rng.randint(4, 2030), rng.randint(5, 999)
    return IntegerProblem(rng, f"power {a} {b} mod {m}", pow(a, b, m)).worded(
        f"What is the remainder when {a}^{b} is divided by {m}?",
        f"Find the remainder when ${a}^{{{b}}}$ is divided by ${m}$.",
        rf"Compute ${a}^{{{b}}} \bmod {m}$.",
        f"The number {a} is raised to the power {b}. What remainder does the result leave on "
        f"division by {m}?",
    )


def _last_digits(rng: Random) -> Draft | None:
    a, b, c, d = (rng.randint(2, limit) for limit in (19, 300, 19, 300))
    count, word = rng.choice(
        ((1, "is the last digit"), (2, "are the last two digits"), (3, "are the last three digits"))
    )
    note = "" if count == 1 else " (as an integer, dropping leading zeros)"
    return IntegerProblem(rng, f"last {count} {a}^{b}+{c}^{d}", (a**b + c**d) % 10**count).worded(
        f"What {word}{note} of {a}^{b} + {c}^{d}?",
        f"Find the remainder when ${a}^{{{b}}} + {c}^{{{d}}}$ is divided by ${10**count}$.",
    )


def _divisor_count(rng: Random) -> Draft | None:
    n = rng.choice((rng.randint(12, 400), 12 * rng.randint(5, 120), 30 * rng.randint(3, 80)))
    parity = rng.choice(("", "even ", "odd "))
    matches = [d for d in divisors(n) if not parity or (d % 2 == 0) == (parity == "even ")]
    return IntegerProblem(rng, f"divisor count {parity}{n}", len(matches)).worded(
        f"How many positive {parity}divisors does {n} have?",
        f"Determine the number of positive {parity}integers that divide ${n}$ exactly."
        if not parity
        else f"Among the positive divisors of ${n}$, how many are {parity.strip()}?",
    )


def _divisor_sum(rng: Random) -> Draft | None:
    n = rng.randint(10, 420)
    return IntegerProblem(rng, f"divisor sum {n}", sum(divisors(n))).worded(
        f"What is the sum of all positive divisors of {n}?",
        f"Find the sum of the positive integers that divide ${n}$.",
        f"Add up every positive divisor of {n}, including 1 and {n} itself. What do you get?",
    )


def _prime_count(rng: Random) -> Draft | None:
    low = rng.randint(1, 300)
    high = low + rng.randint(10, 400)
    key = f"primes {low} {high}"
    return IntegerProblem(rng, key, sum(is_prime(n) for n in range(low, high + 1))).worded(
        f"How many prime numbers are there between {low} and {high}, inclusive?",
        rf"Find the number of primes $p$ with ${low} \le p \le {high}$.",
        f"Count the primes that are at least {low} and at most {high}.",
    )


def _prime_factor(rng: Random) -> Draft | None:
    n = rng.randint(100, 6000)
    factors = [d for d in divisors(n) if is_prime(d)]
    if rng.choice((True, False)):
        return IntegerProblem(rng, f"prime factor largest {n}", factors[-1]).worded(
            f"What is the largest prime factor of {n}?",
            f"Find the greatest prime number that divides ${n}$.",
        )
    return IntegerProblem(rng, f"prime factor sum {n}", sum(factors)).worded(
        f"What is the sum of the distinct prime factors of {n}?",
        f"Add up the different primes that divide ${n}$. What is the total?",
    )


def _digits_of_power(rng: Random) -> Draft | None:
    a, b = rng.randint(2, 15), rng.randint(3, 30)
    return IntegerProblem(rng, f"digit sum {a}^{b}", digit_sum(a**b)).worded(
        f"What is the sum of the digits of {a}^{b}?",
        f"Find the sum of the decimal digits of ${a}^{{{b}}}$.",
    )


def _base_value(rng: Random) -> Draft | None:
    n, base = rng.randint(20, 999), rng.randint(2, 9)
    written = in_base(n, base)
    if rng.random() < 0.5:
        return IntegerProblem(rng, f"from base {base} {written}", n).worded(
            f"The number {written} is written in base {base}. What is its value in base 10?",
            f"Convert ${written}_{{{base}}}$ to base ten.",
        )
    return IntegerProblem(rng, f"digit sum {n} base {base}", digit_sum(int(written))).worded(
        f"What is the sum of the digits of {n} when it is written in base {base}?",
        f"Write ${n}$ in base ${base}$. Find the sum of its digits.",
    )


def _trailing_zeros(rng: Random) -> Draft | None:
    n = rng.randint(10, 600)
    text = str(factorial(n))
    return IntegerProblem(rng, f"zeros {n}!", len(text) - len(text.rstrip("0"))).worded(
        f"How many zeros are at the end of {n}! ({n} factorial)?",
        f"With how many consecutive zeros does ${n}!$ end?",
    )


def spelt(n: int) -> str:
    """Return a number below a hundred in words.

    >>> spelt(42)
    'forty-two'
    """
    if n < 20:
        return ONES[n]
    tens = TENS[n // 10 - 2]
    return f"{tens}-{ONES[n % 10]}" if n % 10 else tens


def _choose(rng: Random) -> Draft | None:
    n = rng.randint(5, 45)
    k = rng.randint(2, min(6, n - 1))
    return IntegerProblem(rng, f"choose {n} {k}", comb(n, k)).worded(
        f"In how many ways can a committee of {k} people be chosen from {n} people?",
        rf"Compute $\binom{{{n}}}{{{k}}}$.",
        f"What is the binomial coefficient C({n}, {k})?",
        f"How many subsets with exactly {k} elements does a set of {n} elements have?",
    )


def _handshakes(rng: Random) -> Draft | None:
    n = rng.randint(4, 44)
    if rng.random() < 0.6:
        return IntegerProblem(rng, f"handshakes {n}", comb(n, 2)).worded(
            f"At a party of {n} people everyone shakes hands once with everyone else. How many "
            "handshakes are there?",
            f"{spelt(n).capitalize()} teams each play every other team exactly once. How many "
            "games are played?",
        )
    return IntegerProblem(rng, f"diagonals {n}", n * (n - 3) // 2).worded(
        f"How many diagonals does a convex polygon with {n} sides have?",
        f"A convex polygon has {spelt(n)} vertices. How many diagonals can be drawn in it?",
    )


def _lattice_paths(rng: Random) -> Draft | None:
    a, b = rng.randint(2, 9), rng.randint(2, 6)
    return IntegerProblem(rng, f"paths {a} {b}", comb(a + b, a)).worded(
        f"How many lattice paths lead from (0, 0) to ({a}, {b}) by unit steps right or up?",
        f"An ant walks on a grid from $(0,0)$ to $({a},{b})$, moving only right or up by one unit "
        "at a time. How many different paths can it take?",
    )


def _arrangements(rng: Random) -> Draft | None:
    word = "".join(rng.choice("AABBCDEEL") for _ in range(rng.randint(3, 6)))
    key = f"arrangements {''.join(sorted(word))}"
    return IntegerProblem(rng, key, len(set(permutations(word)))).worded(
        f"How many different strings can be made by rearranging the letters of {word}?",
        f"In how many distinguishable ways can the letters of {word} be arranged in a row?",
    )


def _arithmetic_series(rng: Random) -> Draft | None:
    start, step, terms = rng.randint(1, 30), rng.randint(2, 15), rng.randint(5, 60)
    series = [start + step * i for i in range(terms)]
    opening = f"{series[0]}, {series[1]}, {series[2]}"
    if rng.random() < 0.4:
        return IntegerProblem(rng, f"arithmetic term {start} {step} {terms}", series[-1]).worded(
            f"An arithmetic sequence starts {opening}, ... What is term number {terms}?",
            f"Term number {terms} of the arithmetic sequence ${opening}, \\ldots$ equals what?",
        )
    return IntegerProblem(rng, f"arithmetic sum {start} {step} {terms}", sum(series) % 1000).worded(
        f"What is the remainder when the sum {series[0]} + {series[1]} + {series[2]} + ... + "
        f"{series[-1]} (an arithmetic series) is divided by 1000?",
        f"Find the sum of the first {terms} terms of the arithmetic sequence ${opening}, \\ldots$, "
        "and give its remainder modulo $1000$.",
    )


def _geometric_series(rng: Random) -> Draft | None:
    start, ratio, terms = rng.randint(1, 9), rng.randint(2, 7), rng.randint(4, 40)
    modulus = rng.randint(11, 999)
    total = sum(start * ratio**i for i in range(terms))
    key = f"geometric {start} {ratio} {terms} mod {modulus}"
    return IntegerProblem(rng, key, total % modulus).worded(
        f"A geometric sequence has first term {start} and common ratio {ratio}. What is the "
        f"remainder when the sum of its first {terms} terms is divided by {modulus}?",
        rf"Let $S = \sum_{{k=0}}^{{{terms - 1}}} {start} \cdot {ratio}^k$. Find the remainder when "
        f"$S$ is divided by ${modulus}$.",
    )


def _congruences(rng: Random) -> Draft | None:
    moduli = rng.sample((3, 4, 5, 7, 8, 9, 11, 13, 17, 19), rng.choice((2, 2, 3)))
    if any(gcd(a, b) > 1 for a in moduli for b in moduli if a != b):
        return None
    rests = [rng.randrange(m) for m in moduli]
    pairs = list(zip(rests, moduli, strict=True))
    answer = next(x for x in range(1, 20_000) if all(x % m == r for r, m in pairs))
    clauses = [f"a remainder of {r} when divided by {m}" for r, m in pairs]
    system = ", ".join(rf"x \equiv {r} \pmod{{{m}}}" for r, m in pairs)
    return IntegerProblem(rng, f"congruences {sorted(pairs)}", answer).worded(
        f"What is the smallest positive integer that leaves {' and '.join(clauses)}?",
        f"Find the least positive integer $x$ such that ${system}$.",
    )


def _multiples(rng: Random) -> Draft | None:
    limit, a, b = rng.randint(60, 2000), rng.randint(2, 15), rng.randint(2, 25)
    case = rng.choice(("either", "neither", "one"))
    if a == b:
        return None
    hits = [(n % a == 0) + (n % b == 0) for n in range(1, limit + 1)]
    condition, answer = {
        "either": (f"divisible by {a} or by {b} (or by both)", limit - hits.count(0)),
        "neither": (f"divisible by neither {a} nor {b}", hits.count(0)),
        "one": (f"divisible by exactly one of {a} and {b}", hits.count(1)),
    }[case]
    return IntegerProblem(rng, f"multiples {case} {limit} {a} {b}", answer).worded(
        f"How many integers from 1 to {limit} inclusive are {condition}?",
        rf"Find the number of integers $n$ with $1 \le n \le {limit}$ that are {condition}.",
    )


def _shopping(rng: Random) -> Draft | None:
    pens, cost, books, price = (rng.randint(2, limit) for limit in (15, 9, 12, 30))
    paid = 50 * (1 + (pens * cost + books * price) // 50)
    key = f"shopping {pens} {cost} {books} {price}"
    return IntegerProblem(rng, key, paid - pens * cost - books * price).worded(
        f"A pen costs {cost} dollars and a book costs {price} dollars. Mia buys {pens} pens and "
        f"{books} books and pays with {paid} dollars. How many dollars does she get back?",
        f"Omar pays {paid} dollars for {spelt(pens)} pens at {spelt(cost)} dollars each and "
        f"{spelt(books)} books at {spelt(price)} dollars each. How many dollars of change are due?",
    )


def _travel(rng: Random) -> Draft | None:
    slow, fast, hours = rng.randint(3, 9) * 10, rng.randint(4, 12) * 10, rng.randint(2, 7)
    if rng.random() < 0.5:
        return IntegerProblem(rng, f"meeting {slow} {fast} {hours}", hours).worded(
            f"Two trains start towards each other from stations {(slow + fast) * hours} km apart, "
            f"one at {slow} km/h and the other at {fast} km/h. After how many hours do they meet?"
        )
    key = f"distance {slow} {fast} {hours}"
    return IntegerProblem(rng, key, slow * hours + fast * (hours + 1)).worded(
        f"A car drives for {hours} hours at {slow} km/h and then for {hours + 1} hours at {fast} "
        "km/h. How many kilometres does it drive altogether?",
        f"For {spelt(hours)} hours a bus travels at {slow} kilometres per hour, and for the next "
        f"{spelt(hours + 1)} hours at {fast} kilometres per hour. Find the total distance in km.",
    )


def _filling(rng: Random) -> Draft | None:
    a, b = rng.randint(4, 60), rng.randint(4, 60)
    if (a * b) % (a + b) or a == b:
        return None
    return IntegerProblem(rng, f"filling {a} {b}", a * b // (a + b)).worded(
        f"One tap fills a tank in {a} minutes, another fills it in {b} minutes. How many minutes "
        "do both together need?",
        f"Ada paints a fence in {a} hours, Ben in {b} hours. Working together, in how many hours "
        "do they finish?",
    )


def _smallest_with_divisors(rng: Random) -> Draft | None:
    count, bound = rng.choice((3, 4, 5, 6, 8, 9, 10, 12)), rng.randint(1, 250)
    answer = next(n for n in range(bound + 1, 20_000) if len(divisors(n)) == count)
    return IntegerProblem(rng, f"smallest {count} divisors above {bound}", answer).worded(
        f"What is the smallest integer greater than {bound} that has exactly {count} positive "
        "divisors?",
        f"Find the least integer $n > {bound}$ with exactly {spelt(count)} positive divisors.",
    )


def _smallest_multiple(rng: Random) -> Draft | None:
    step, total = rng.randint(3, 40), rng.randint(5, 20)
    answer = next((n for n in range(step, 1000, step) if digit_sum(n) == total), -1)
    return IntegerProblem(rng, f"smallest multiple {step} digits {total}", answer).worded(
        f"What is the smallest positive multiple of {step} whose digits add up to {total}?",
        f"Find the least positive integer divisible by ${step}$ with digit sum ${total}$.",
    )


def _next_prime(rng: Random) -> Draft | None:
    bound, modulus = rng.randint(10, 800), rng.choice((4, 5, 6, 8, 10))
    remainder = rng.choice([r for r in range(modulus) if gcd(r, modulus) == 1])
    answer = next(n for n in range(bound + 1, 9000) if is_prime(n) and n % modulus == remainder)
    return IntegerProblem(rng, f"next prime {bound} {remainder} mod {modulus}", answer).worded(
        f"What is the smallest prime greater than {bound} that leaves a remainder of {remainder} "
        f"when divided by {modulus}?",
        rf"Find the least prime $p > {bound}$ with $p \equiv {remainder} \pmod{{{modulus}}}$.",
    )


def integer_question(id: str, draft: Draft) -> Question:
    """Return a generated draft as a question with the instruction on the answer's format."""
    return Question(id, f"{draft.text}\n\n{SUFFIX}", "integer", draft.target)


def grade_integer(question: Question, reply: str, box: Box | None = None) -> Grade:
    """Grade a reply: right if its integer equals the target; without an integer, wrong."""
    reading = read_integer(reply)
    facts = {READ_BY: reading.rule}
    if reading.value is None:
        return Grade(0.0, None, "no integer answer found", facts)
    right = str(reading.value) == question.target
    reason = "right" if right else f"expected {question.target}"
    return Grade(float(right), str(reading.value), reason, facts)


SUITE = PracticeSuite(
    name="practice-integer",
    version="6-A",
    topics={
        "arithmetic": any_of(_expression, _expression, _expression_remainder),
        "gcd and lcm": any_of(_gcd_question, _lcm_question),
        "powers": any_of(_power_remainder, _power_remainder, _last_digits),
        "divisors": any_of(_divisor_count, _divisor_sum),
        "primes": any_of(_prime_count, _prime_factor),
        "digits": any_of(_digits_of_power, _base_value, _trailing_zeros),
        "counting": any_of(_choose, _handshakes, _lattice_paths, _arrangements),
        "series": any_of(_arithmetic_series, _geometric_series),
        "congruences": _congruences,
        "multiples": _multiples,
        "word problems": any_of(_shopping, _travel, _filling),
        "smallest": any_of(_smallest_with_divisors, _smallest_multiple, _next_prime),
    },
    write=integer_question,
    judge=grade_integer,
)


@task
@user_errors
def practice_integer(split: Split = "eval", limit: int | None = None, epochs: int = 1) -> Task:
    """Generated integer-answer questions, AIME-like; splits train, validation and eval."""
    return as_task(SUITE, split=split, limit=limit, epochs=epochs)
