r"""Counting and everyday questions of `practice-integer`: series, congruences, words, searches.

Each function draws one question with its answer, by brute force where that is cheap.
"""

from itertools import permutations
from math import comb, gcd
from random import Random

from suites.practice import Draft, any_of, asked
from suites.practice_integer_numbers import digit_sum, divisors, is_prime

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
    return asked(
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
        return asked(
            rng,
            f"handshakes {n}",
            comb(n, 2),
            f"At a party of {n} people everyone shakes hands once with everyone else. How many "
            "handshakes are there?",
            f"{spelt(n).capitalize()} teams each play every other team exactly once. How many "
            "games are played?",
        )
    return asked(
        rng,
        f"diagonals {n}",
        n * (n - 3) // 2,
        f"How many diagonals does a convex polygon with {n} sides have?",
        f"A convex polygon has {spelt(n)} vertices. How many diagonals can be drawn in it?",
    )


def lattice_paths(rng: Random) -> Draft | None:
    """Ask for the number of shortest paths on a grid."""
    a, b = rng.randint(2, 9), rng.randint(2, 6)
    return asked(
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
    return asked(
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
        return asked(
            rng,
            f"arithmetic term {first} {step} {terms}",
            series[-1],
            f"An arithmetic sequence starts {shown}, ... What is term number {terms}?",
            f"Term number {terms} of the arithmetic sequence ${shown}, \\ldots$ equals what?",
        )
    return asked(
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
    return asked(
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
    return asked(
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
    return asked(
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
    return asked(
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
        return asked(
            rng,
            f"meeting {slow} {fast} {hours}",
            hours,
            f"Two trains start towards each other from stations {(slow + fast) * hours} km apart, "
            f"one at {slow} km/h and the other at {fast} km/h. After how many hours do they meet?",
        )
    return asked(
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
    return asked(
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
    return asked(
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
    return asked(
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
    return asked(
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
