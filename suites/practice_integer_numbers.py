r"""Number-theory questions of `practice-integer`: expressions, divisors, powers, primes, digits.

Each function draws one question with its answer. The answer comes from the definition, by brute
force where that is cheap, so that a mistake here cannot hide behind a clever formula.
"""

from math import factorial, gcd, lcm
from random import Random

from suites.practice import Draft, any_of, asked

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
    return asked(
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
    return asked(
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
    return asked(
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
    return asked(
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
    return asked(
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
    return asked(
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
    return asked(
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
    return asked(
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
    return asked(
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
    return asked(rng, f"prime factor {word} {n}", answer, *texts[word])


def digits_of_power(rng: Random) -> Draft | None:
    """Ask for the digit sum of a power."""
    a, b = rng.randint(2, 15), rng.randint(3, 30)
    return asked(
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
        return asked(
            rng,
            f"from base {base} {written}",
            n,
            f"The number {written} is written in base {base}. What is its value in base 10?",
            f"Convert ${written}_{{{base}}}$ to base ten.",
        )
    return asked(
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
    return asked(
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
