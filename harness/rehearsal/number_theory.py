"""Whole-number methods that workers know, each working on scratch paper: plain, exact, bounded."""

import math
from collections.abc import Sequence

from harness.rehearsal.scratch import OutOfReach, Scratch


def factorise(n: int, paper: Scratch) -> dict[int, int]:
    """Return the prime factors of n with exponents, by trial division."""
    if n < 1:
        raise OutOfReach("only positive numbers have prime factors")
    paper.search(min(math.isqrt(n), 10**9))
    factors: dict[int, int] = {}
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors[divisor] = factors.get(divisor, 0) + 1
            n //= divisor
        divisor += 1 if divisor == 2 else 2
    if n > 1:
        factors[n] = factors.get(n, 0) + 1
    return factors


def divisor_count(n: int, paper: Scratch) -> int:
    """Return how many positive divisors n has."""
    factors = factorise(n, paper)
    paper.note(f"{n} = {_shown(factors)}, so the exponents plus one are multiplied.")
    count = math.prod(power + 1 for power in factors.values())
    return int(paper.hold(count, 2 * len(factors) + sum(factors.values())))


def divisor_sum(n: int, paper: Scratch) -> int:
    """Return the sum of the positive divisors of n."""
    factors = factorise(n, paper)
    paper.note(f"{n} = {_shown(factors)}, so geometric sums are multiplied.")
    total = math.prod((p ** (k + 1) - 1) // (p - 1) for p, k in factors.items())
    return int(paper.hold(total, 3 * len(factors) + 2 * sum(factors.values())))


def totient(n: int, paper: Scratch) -> int:
    """Return how many numbers up to n are coprime to it."""
    factors = factorise(n, paper)
    value = n
    for prime in factors:
        value -= value // prime
    return int(paper.hold(value, 3 * len(factors)))


def _shown(factors: dict[int, int]) -> str:
    return " * ".join(f"{p}^{k}" if k > 1 else str(p) for p, k in factors.items()) or "1"


def greatest_divisor(numbers: Sequence[int], paper: Scratch) -> int:
    """Return the greatest common divisor, by Euclid's steps."""
    result = abs(numbers[0])
    for other in numbers[1:]:
        a, b, steps = result, abs(other), 0
        while b:
            a, b, steps = b, a % b, steps + 1
        result = int(paper.hold(a, 1 + steps))
        paper.note(f"After {steps} division steps the common divisor so far is {result}.")
    return result


def least_multiple(numbers: Sequence[int], paper: Scratch) -> int:
    """Return the least common multiple."""
    result = abs(numbers[0])
    for other in numbers[1:]:
        shared = math.gcd(result, other) or 1
        result = int(paper.hold(abs(result * other) // shared, 4))
        paper.note(f"The least common multiple so far is {result}.")
    return result


def power_remainder(base: int, exponent: int, modulus: int, paper: Scratch) -> int:
    """Return base^exponent mod modulus by repeated squaring, each square a chance to slip."""
    if exponent < 0 or modulus < 1 or exponent.bit_length() > 4000:
        raise OutOfReach("that power has no remainder I can find")
    if paper.floats:
        return _hasty_remainder(base, exponent, modulus)
    result, square = 1 % modulus, base % modulus
    for bit in reversed(bin(exponent)[2:]):
        if bit == "1":
            result = int(paper.hold(result * square % modulus, 0.5))
        square = square * square % modulus
        paper.slips(0)
    paper.note(f"Squaring step by step, {base}^{exponent} leaves {result} modulo {modulus}.")
    return result % modulus


def _hasty_remainder(base: int, exponent: int, modulus: int) -> int:
    """Compute the power in floating point first: right only while it fits in 53 bits."""
    try:
        return int(float(base) ** exponent % modulus)
    except OverflowError as error:
        raise OutOfReach("the power is too large for my calculator") from error


def congruences(pairs: Sequence[tuple[int, int]], paper: Scratch) -> int:
    """Return the least x >= 0 with x = r (mod m) for every (r, m), by sieving."""
    value, step, looked = pairs[0][0] % pairs[0][1], pairs[0][1], 0
    for remainder, modulus in pairs[1:]:
        tries = 0
        while value % modulus != remainder % modulus:
            value, tries = value + step, tries + 1
            if tries > modulus:
                raise OutOfReach("these congruences contradict one another")
        looked += tries
        step = math.lcm(step, modulus)
        paper.note(f"Numbers {value}, {value + step}, ... satisfy the conditions so far.")
    paper.search(looked)
    return int(paper.hold(value, 2 * len(pairs) + looked / 4))


def in_base(n: int, base: int) -> list[int]:
    """Return the digits of n in a base, most significant first."""
    if base < 2 or n < 0 or n.bit_length() > 20_000:
        raise OutOfReach("that base conversion makes no sense to me")
    digits: list[int] = []
    while n:
        n, digit = divmod(n, base)
        digits.append(digit)
    return digits[::-1] or [0]


def is_prime(n: int) -> bool:
    """Say whether n is prime, by trial division (callers bound n)."""
    if n < 2 or n % 2 == 0:
        return n == 2
    return all(n % divisor for divisor in range(3, math.isqrt(n) + 1, 2))


def first_primes(many: int, paper: Scratch) -> list[int]:
    """Return the first primes, found one by one; the last may be a slip."""
    paper.search(12 * max(many, 1))
    found: list[int] = []
    at = 1
    while len(found) < max(many, 1):
        at += 1
        if is_prime(at):
            found.append(at)
    return [*found[:-1], int(paper.hold(found[-1], many / 4))]
