# ruff: noqa: E501 - one operation to a row: wrapped, nobody can compare them
"""Operations on one integer, or on two or three."""

import math

from harness.rehearsal.program_kinds import Family
from harness.rehearsal.program_lists import MODULO

Ints = list[int]


def _count_primes(n: int, closed: int = 0) -> int:
    return sum(
        all(value % d for d in range(2, int(value**0.5) + 1)) for value in range(2, n + closed)
    )


def _list_primes(n: int, closed: int = 0) -> Ints:
    return [
        value
        for value in range(2, n + closed)
        if all(value % d for d in range(2, int(value**0.5) + 1))
    ]


def _keep_primes(values: Ints) -> Ints:
    return [v for v in values if v > 1 and all(v % d for d in range(2, int(v**0.5) + 1))]


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def _nth_prime(n: int) -> int:
    value, found = 1, 0
    while found < n:
        value += 1
        if all(value % d for d in range(2, int(value**0.5) + 1)):
            found += 1
    return value


def _factors(n: int) -> Ints:
    result: Ints = []
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            result.append(divisor)
            n //= divisor
        divisor += 1
    if n > 1:
        result.append(n)
    return result


def _fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def _fibonacci_numbers(n: int, start: int = 0) -> Ints:
    result = [start, 1]
    while len(result) < n:
        result.append(result[-1] + result[-2])
    return result[:n]


def _fibonacci_modulo(n: int, k: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, (a + b) % k
    return a % k


def _power_modulo(base: int, exponent: int, modulus: int) -> int:
    return pow(base, exponent, modulus)


def _power(base: int, exponent: int) -> int:
    return base**exponent if abs(exponent) < 10000 else 0


def _factorial(n: int) -> int:
    result = 1
    for value in range(2, n + 1):
        result *= value
    return result


def _binary(n: int) -> str:
    return format(n, "b")


def _from_binary(text: str) -> int:
    return int(text, 2)


def _ones(n: int) -> int:
    return bin(n).count("1")


def _in_base(n: int, base: int) -> str:
    result = "" if n else "0"
    while n > 0 and base > 1:
        result = "0123456789abcdefghijklmnopqrstuvwxyz"[n % base] + result
        n //= base
    return result


def _digit_sum(n: int) -> int:
    return sum(int(digit) for digit in str(abs(n)))


def _digit_product(n: int) -> int:
    result = 1
    for digit in str(abs(n)):
        result *= int(digit)
    return result


def _digital_root(n: int) -> int:
    while n > 9:
        n = sum(int(digit) for digit in str(n))
    return n


def _digit_count(n: int) -> int:
    return len(str(abs(n)))


def _reversed_digits(n: int) -> int:
    return int(str(abs(n))[::-1]) * (-1 if n < 0 else 1)


def _number_palindrome(n: int) -> bool:
    return str(n) == str(n)[::-1]


def _common_divisor(n: int, other: int) -> int:
    return math.gcd(n, other)


def _common_multiple(n: int, other: int) -> int:
    return n * other // math.gcd(n, other)


def _added(n: int, other: int) -> int:
    return n + other


def _multiplied(n: int, other: int) -> int:
    return n * other


def _collatz(n: int) -> int:
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def _collatz_numbers(n: int) -> Ints:
    result = [n]
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        result.append(n)
    return result


def _divisors(n: int, own: int = 1) -> Ints:
    return [value for value in range(1, n + own) if n % value == 0]


def _perfect(n: int) -> bool:
    return n > 1 and sum(value for value in range(1, n) if n % value == 0) == n


def _up_to(n: int) -> Ints:
    return list(range(1, n + 1))


def _below(n: int) -> Ints:
    return list(range(1, n))


def _from_to(n: int, other: int) -> Ints:
    return list(range(n, other + 1))


def _power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def _trailing_zeros(n: int) -> int:
    result = 0
    while n > 0:
        n //= 5
        result += n
    return result


def _root(n: int) -> int:
    return int(n**0.5)


def _is_square(n: int) -> bool:
    return n >= 0 and math.isqrt(n) ** 2 == n


def _leap(n: int) -> bool:
    return n % 4 == 0 and (n % 100 != 0 or n % 400 == 0)


def _fizz(n: int) -> list[str]:
    return [("Fizz" * (i % 3 == 0) + "Buzz" * (i % 5 == 0)) or str(i) for i in range(1, n + 1)]


def _roman(n: int) -> str:
    result = ""
    signs = ["M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"]
    for value, sign in zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), signs, strict=True
    ):
        result += sign * (n // value)
        n %= value
    return result


def _stairs(n: int) -> int:
    a, b = 1, 1
    for _ in range(n):
        a, b = b, a + b
    return a


LIGHT = frozenset(
    {_binary, _ones, _digit_sum, _digit_product, _digital_root, _digit_count, _reversed_digits}
    | {_number_palindrome, _is_square, MODULO}
)
"""Operations that are quick on long numbers too."""
BOUND = r"(?:below|(?:strictly )?(?:less|smaller) than(?: or equal to)?|up to|under|at most|not exceeding|no (?:greater|larger) than|(?:between|from) \w+ (?:and|to))"
CLOSED: tuple[dict[str, int], ...] = ({}, {"closed": 1})
COUNT = r"(?:how many|(?:the )?number of|counts?)(?: the| of)*"

NUMBERS: tuple[Family, ...] = (
    Family("counting primes", 2, rf"{COUNT} (?:primes|prime numbers)[^.]{{0,40}}{BOUND}? ?(?:or equal to )?", ("int",), "int", _count_primes, variants=CLOSED),
    Family("listing primes", 2, rf"(?:all |the |list )*(?:primes|prime numbers)[^.]{{0,30}}{BOUND}", ("int",), "ints", _list_primes, variants=CLOSED, stage=0),
    Family("primes of a list", 3, r"\bprimes?\b(?: numbers| values)?", ("ints",), "ints", _keep_primes, stage=1),
    Family("whether a number is prime", 2, r"(?:whether|if|determine|check)[^.]{0,40}\bprime\b", ("int",), "bool", _is_prime),
    Family("the n-th prime", 3, r"(?:n-?th|k-?th) prime(?: number)?", ("int",), "int", _nth_prime),
    Family("prime factors", 2, r"prime factor\w*(?: of| in)?", ("int",), "ints", _factors, stage=0),
    Family("Fibonacci numbers", 2, r"fibonacci(?: numbers?)?", ("int",), "int", _fibonacci),
    Family("the first Fibonacci numbers", 3, r"first (?:n|k|\w+) (?:\w+ ){0,2}fibonacci(?: numbers)?|fibonacci (?:sequence|numbers)[^.]{0,30}(?:first n|n (?:terms|numbers))", ("int",), "ints", _fibonacci_numbers, variants=({}, {"start": 1}), stage=0),
    Family("Fibonacci modulo", 2, r"fibonacci[^#]{0,150}(?:modulo|\bmod\b|remainder)(?: (?:when )?divided by)?", ("int", "int"), "int", _fibonacci_modulo, r"(?:modulo|mod|divided by) (\d[\d_^*+ ]*)"),
    Family("powers modulo", 2, r"(?:raised to|\*\*|\^|to the power)[^#]{0,200}(?:modulo|\bmod\b|remainder|%)", ("int", "int", "int"), "int", _power_modulo, r"(?:no constant here)|(?!x)x"),
    Family("powers", 3, r"(?:raised to|\*\*|to the power)(?: of)?", ("int", "int"), "int", _power),
    Family("factorials", 2, r"factorial(?: of)?|\bn!", ("int",), "int", _factorial),
    Family("binary form", 2, r"\bbinary\b(?: (?:representation|form|notation))?(?: of)?|base[- ](?:2|two)\b", ("int",), "text", _binary, stage=2),
    Family("reading binary", 3, r"binary (?:string|number|numeral)[^.]{0,60}(?:decimal|value|integer|base 10)", ("text",), "int", _from_binary, stage=0),
    Family("ones in binary", 2, rf"{COUNT}[^.]{{0,20}}(?:\b1s\b|\b1'?s?\b|\bones\b|1-bits|1 bits|set bits|\bone bits)[^.]{{0,20}}(?:binary(?: representation| form| notation)*)?", ("int",), "int", _ones),
    Family("other bases", 3, r"(?:in|to) base[- ]\w+(?: representation| form)?|base[- ]\w+ representation|given base", ("int", "int"), "text", _in_base, r"base[- ](\d+)"),
    Family("sum of digits", 2, r"(?:sum of (?:the |its |all |their )*(?:decimal )?digits(?: of)?|digit sum(?: of)?)", ("int",), "int", _digit_sum),
    Family("product of digits", 3, r"product of (?:the |its |all )*(?:decimal )?digits", ("int",), "int", _digit_product),
    Family("digital roots", 3, r"digital root|(?:repeat\w*|until|again)[^.]{0,60}(?:single|one)[- ]digit|sum[^.]{0,30}digits[^.]{0,60}(?:single|one)[- ]digit", ("int",), "int", _digital_root),
    Family("counting digits", 3, r"(?:how many|number of) (?:decimal )?digits", ("int",), "int", _digit_count),
    Family("reversed digits", 3, r"revers\w+[^.]{0,30}digits|digits[^.]{0,40}revers\w+(?: order)?", ("int",), "int", _reversed_digits),
    Family("palindromic numbers", 3, r"palindrom\w*", ("int",), "bool", _number_palindrome),
    Family("common divisor of two", 2, r"\bgcd\b|(?:greatest|largest|highest) common (?:divisor|factor)(?: of)?", ("int", "int"), "int", _common_divisor),
    Family("common multiple of two", 2, r"\blcm\b|(?:least|lowest|smallest) common multiple(?: of)?", ("int", "int"), "int", _common_multiple),
    Family("adding two", 1, r"\bsum\b(?: of)?|\badd\b", ("int", "int"), "int", _added),
    Family("multiplying two", 2, r"\bproduct\b(?: of)?|\bmultiply\b", ("int", "int"), "int", _multiplied),
    Family("Collatz steps", 3, r"collatz[^#]{0,200}steps|(?:halv\w+|divid\w+ (?:it )?by (?:2|two)|n ?/ ?2)[^#]{0,200}(?:steps|operations|reach)|steps[^.]{0,60}(?:reach|become)s? 1|\bhal(?:f|ve)\w*[^#]{0,160}(?:steps|times|operations|moves)", ("int",), "int", _collatz),
    Family("Collatz sequence", 3, r"collatz (?:sequence|numbers)|sequence[^#]{0,100}(?:even|halv)[^#]{0,120}(?:3n ?\+ ?1|3 \* n \+ 1|three times)", ("int",), "ints", _collatz_numbers, stage=0),
    Family("divisors", 2, r"(?:positive |proper )*(?:divisors?|factors)(?: of)?", ("int",), "ints", _divisors, variants=({}, {"own": 0}), stage=0),
    Family("perfect numbers", 4, r"perfect number|\bperfect\b(?! square)", ("int",), "bool", _perfect),
    Family("numbers up to n", 2, r"(?:from|between) 1 (?:up )?(?:to|and) n\b|up to (?:and including )?n\b|(?:first n|1\.\.n|1, 2, \.\.\., n)[^.]{0,30}", ("int",), "ints", _up_to, stage=0),
    Family("numbers below n", 3, r"(?:below|less than|under|smaller than) n\b", ("int",), "ints", _below, stage=0),
    Family("numbers of a span", 3, r"(?:from|between|in the range) (?:a|l|m|x|lo|low|start|\[a) ?(?:to|and|,) ?(?:b|r|n|y|hi|high|end)\b(?:\]|,? inclusive)?", ("int", "int"), "ints", _from_to, stage=0),
    Family("powers of two", 3, r"power of (?:2|two)", ("int",), "bool", _power_of_two),
    Family("zeros of a factorial", 3, r"trailing zero\w*[^.]{0,40}(?:factorial|n!)?", ("int",), "int", _trailing_zeros),
    Family("integer roots", 3, r"integer square root|floor of the square root|square root[^.]{0,40}(?:rounded down|floor)", ("int",), "int", _root),
    Family("perfect squares", 3, r"(?:is )?a? ?perfect square", ("int",), "bool", _is_square),
    Family("leap years", 3, r"leap years?", ("int",), "bool", _leap),
    Family("FizzBuzz", 2, r"fizz[^#]*buzz", ("int",), "words", _fizz),
    Family("Roman numerals", 3, r"roman numerals?", ("int",), "text", _roman),
    Family("climbing stairs", 4, r"stairs?(?:case)?[^#]{0,120}ways|ways[^.]{0,60}(?:stairs?|steps)", ("int",), "int", _stairs),
)  # fmt: skip
