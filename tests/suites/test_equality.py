"""Equality of answers: what the first look decides, and the process that asks math-verify."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

from podium.suites import math_verify_pool
from podium.suites.latex import normalise_answer
from podium.suites.math_equality import LONGEST, compare
from podium.suites.math_verify_pool import (
    EqualityError,
    MathVerifyPool,
    MathVerifyProcess,
    math_verify_all,
)
from podium.suites.quantities import parse_rational

TOWER = r"2003^{2002^{2001}}"

FIRST: dict[str, tuple[str, str, bool | None]] = {
    "same-text": ("p - q", "p-q", True),
    "same-integer": ("7", "007", True),
    "other-integer": ("7", "70", False),
    "fraction-and-decimal": (r"\frac{1}{2}", "0.5", True),
    "rounded-third": (r"\frac{1}{3}", "0.333333", True),
    "third-rounded-too-much": (r"\frac{1}{3}", "0.33", False),
    "six-places-of-another-number": (r"\frac{1}{3}", "0.333334", False),
    "no-rounding-of-a-decimal": ("1.25", "1.2500001", False),
    "division-by-zero": ("5", "5/0", None),
    "list-for-a-value": ("5", "5, 6", False),
    "list-for-a-list": ("1,-2", "-2,1", True),
    "no-letter-and-no-digit": ("5", r"\%", False),
    "another-base": ("52_8", "52_7", False),
    "base-ten": ("52", "52_{10}", True),
    "a-base-too-many": ("52", "52_8", False),
    "a-word": (r"\text{even}", "Even", True),
    "another-word": (r"\text{even}", "odd", False),
    "two-names": ("y=2", "x=2", False),
    "needs-algebra": ("2x", "x+x", None),
}


@pytest.mark.parametrize(("target", "answer", "said"), FIRST.values(), ids=FIRST.keys())
def test_the_first_look_decides_or_abstains(target: str, answer: str, said: bool | None) -> None:
    found = compare(target, answer)
    assert (found.equal if found.look == "exact" else None) is said


RIGHT: dict[str, tuple[str, ...]] = {
    "12": (r"12^{\text{th}}\text{ grade}", r"12^{\text{th}}", r"12\text{th grade}", "12th grade",
        r"12^\text{th} \text{ grade}", r"\text{12th grade}", "12th", "the 12th"),
    r"\text{(C)}": (r"\text{(C) Plane}", r"(C)\text{ Plane}", r"\textbf{(C)}\ \text{Plane}", "C",
        "(C) Plane", "C. Plane", r"\mathrm{C}", r"\text{C}", r"\text{C: Plane}",
        r"\textbf{(C) } 5", r"\boxed{\textbf{(C)}}", r"\text{(C)}\ 15", r"\text{C) Plane}",
        r"(\text{C})", r"\textbf{C}", r"\text{Choice (C)}", r"\text{The answer is (C)}",
        r"(C) $\frac{1}{2}$"),
    r"\pi": ("\u03c0", "pi"),
    r"12\pi": ("12\u03c0",),
    r"2\sqrt{13}": ("2\u221a13",),
    r"\frac{1}{3}": (r"0.\overline{3}", r"0.\bar{3}", r"\frac{1}{3} \approx 0.333",
        r"$\frac{1}{3}$.", "1/3"),
    r"\frac{1}{6}": (r"0.1\overline{6}",),
    r"\frac{13}{11}": (r"1.\overline{18}",),
    "(3,4)": ("y=4, x=3", "x=3, y=4", r"x=3 \text{ and } y=4", "$x=3$ and $y=4$", "(x,y)=(3,4)",
        "(y,x)=(4,3)", r"\langle 3,4\rangle", "(3.0, 4)", "(x, y) = (3, 4)", "P(3,4)",
        r"\text{the point } (3,4)", r"x=3,\ y=4", r"x = 3, \text{ and } y = 4",
        r"\begin{cases} x=3 \\ y=4\end{cases}", r"\{(3,4)\}", "(3;4)", "$x = 3$, $y = 4$"),
    r"(3,\frac{\pi}{2})": (r"(r,\theta)=(3,\frac\pi2)", r"r = 3, \theta = \pi/2",
        r"\theta = \frac{\pi}{2}, r = 3"),
    "1,-2": ("$1$ and $-2$", "-2, 1", r"\{-2,1\}", "x=1, x=-2", r"x=1 \text{ or } x=-2",
        "x = 1, -2", r"1 \text{ and } -2", "-2 and 1", "\u22122, 1", r"x \in \{1, -2\}",
        "x_1 = 1, x_2=-2", r"1\text{ and }-2", r"\boxed{1}, \boxed{-2}", r"\text{$1$ and $-2$}",
        r"-2 \quad\text{and}\quad 1", r"x=1\quad\text{or}\quad x=-2", "1 , -2",
        r"x = 1 \lor x = -2", r"\left\{1,-2\right\}", "$x = 1$ and $x = -2$", "{1, -2}"),
    r"1 \pm \sqrt{19}": (r"1+\sqrt{19}, 1-\sqrt{19}", r"x = 1 \pm \sqrt{19}", r"1\mp\sqrt{19}",
        r"1-\sqrt{19} \text{ and } 1+\sqrt{19}"),
    r"\{1\pm\sqrt{5},-2\}": (r"-2, 1+\sqrt{5}, 1-\sqrt5", r"-2, 1\pm\sqrt{5}"),
    "3, 5, 7": ("5, 3, 7", "3,5,7", "3, 5, and 7", "$3$, $5$, and $7$", r"3,\ 5,\ 7"),
    "58,500": ("58500", "58{,}500", r"58\,500", r"58500\text{ people}", r"58,500\text{ people}",
        "$58,500$"),
    r"\$32,\!348": (r"\$32,348", "32348", "$32,348"),
    r"\$18.90": ("18.9", r"18.90\text{ dollars}", "$18.90$ dollars", r"\$18.90.", r"$\$18.90$"),
    r"11,\! 111,\! 111,\! 100": ("11111111100", "11,111,111,100"),
    r"15\mbox{ cm}^2": (r"15\,\text{cm}^2", "15", r"15\text{ square centimeters}", "15 cm\u00b2",
        r"15\ \mathrm{cm^2}", "15 square cm", "$15$ square centimeters", "15 square centimetres",
        r"$15\text{ cm}^2$"),
    r"864 \mbox{ inches}^2": (r"864\text{ in}^2", r"864 \text{ square inches}",
        r"864 \, \text{sq in}"),
    r"5.4 \text{ cents}": ("5.4\u00a2", "5.4", "5.4\\text{ \u00a2}"),
    r"90^\circ": ("90", r"90 \text{ degrees}", r"90^{\circ}", "90\u00b0", "90 degrees",
        "$90$ degrees"),
    r"\frac{270}7\text{ degrees}": (r"\frac{270}{7}^\circ", r"\left(\frac{270}{7}\right)^\circ",
        r"\frac{270}{7}", r"38\frac47"),
    "9": (r"9\text{ cm}", r"9~\text{units}"),
    "5": (r"5 \text{ ways}", "x=5", r"\text{The answer is } 5", "5.0", "5.00", r"\mathbf{5}",
        r"\boxed{5}", "5.", "**5**", "5 times", "2+3=5", r"\text{5}", "$$5$$", r"\(5\)",
        r"\[5\]", r"\textbf{5}", r"\mathrm{5}", "{5}", "(5)", r"\left(5\right)",
        r"x=5\text{ cm}", "x = 5.", "n=5", "+5", r"5 \text{ units}", r"5\text{ solutions}",
        r"5\,\text{positive integers}", r"\text{Total: }5", r"\text{Total} = 5", "f(2)=5",
        "|AB|=5", "AB = 5", r"\overline{AB}=5", "a_5 = 5", r"m\angle A = 5^\circ",
        r"\log_2 32 = 5", r"\frac{10}{2}=5", r"\sqrt{25}=5", "$5$ ways", "5 ways", "$x = 5$.",
        "05"),
    "x=5": ("5", "x = 5", "5=x", "$x=5$"),
    "10": (r"10\%", r"10\text{ percent}", "10 percent", "10 %"),
    "0.15": (r"15\%",),
    r"(-\infty, 0]": (r"x \le 0", r"(-\infty,0]"),
    r"(2,\infty)": ("x>2", r"(2,+\infty)", r"]2,\infty[", r"$(2, \infty)$"),
    r"(-\infty, 2) \cup (3, \infty)": (r"x<2 \text{ or } x>3", r"(3,\infty)\cup(-\infty,2)"),
    r"x \in [-2,7]": (r"-2 \le x \le 7", "[-2,7]"),
    r"(-\sqrt{3}, \sqrt{3})": (r"-\sqrt3<x<\sqrt3",),
    r"\left(\frac{3}{5},\frac{8}{3}\right]": ("(0.6, 8/3]",),
    r"(0,9) \cup (9,36)": (r"(0,36)\setminus\{9\}", r"0<x<9 \text{ or } 9<x<36",
        r"(0,9)\cup(9,36)."),
    "2516_8": ("2516_{8}", "2516", "(2516)_8", r"2516_{\text{eight}}"),
    "70": ("70_{10}",),
    "5x - 7y + 11z + 4 = 0": ("11z+5x-7y+4=0", "5x-7y+11z=-4"),
    "y = 2x + 3": ("2x+3", "y=3+2x", "f(x)=2x+3", "y=2x+3.", "2x+3=y", "y-2x=3", "$y = 2x + 3$"),
    "y = -2x": ("y=-2x",),
    "p - q": ("p-q", "-q+p"),
    "2k+2": ("2(k+1)", "2k + 2"),
    "(a+5)(b+2)": ("(b+2)(a+5)", r"(5+a)\cdot(b+2)"),
    r"\begin{pmatrix} -1/3 \\ 2/3 \\ 5/3 \end{pmatrix}": (
        r"\begin{bmatrix} -\frac13 \\ \frac23 \\ \frac53 \end{bmatrix}",),
    r"\begin{pmatrix} -1 & 0 \\ 0 & -1 \end{pmatrix}": (
        r"\begin{bmatrix}-1&0\\0&-1\end{bmatrix}",),
    r"\text{Evelyn}": ("Evelyn", r"\textbf{Evelyn}", r"\mathrm{Evelyn}", r"$\text{Evelyn}$"),
    r"\text{even}": ("even", r"\textbf{even}", "Even."),
    r"\text{east}": (r"\text{East}", r"\text{ east }"),
    r"\text{ellipse}": (r"\text{an ellipse}",),
    r"\cot x": (r"\frac{\cos x}{\sin x}", r"\cot(x)", r"\cot{x}", r"\frac{1}{\tan x}"),
    r"-\frac{24}{25}": ("-24/25", r"\frac{-24}{25}"),
    r"1\frac{4}{5}": ("1.8", r"\frac95"),
    r"137 \frac{1}{2}": ("137.5", "137\u00bd"),
    "5000000": (r"5\text{ million}", "5 million"),
    "60": (r"5\text{ dozen}",),
    r"5\text{ million}": ("5,000,000",),
    "6+9i": ("6 + 9i", "9i+6", "(6+9i)", "z = 6 + 9i", "6 + 9 i"),
    ".0000672": (r"6.72\times10^{-5}",),
    "2k": ("2k", "$2k$"),
    "3R^2": ("3R\u00b2", "3 R^2"),
    r"10,\!080": (r"10\,080",),
    r"\frac{20000}{\pi}": ("20000/\u03c0", r"\frac{20000}{\pi}\text{ feet}"),
    "x^2": ("x\u00b2",),
    "1.25": (r"1\frac14", "5/4"),
    "8n^2 + 4n + 1": ("4n + 8n^2 + 1",),
    "28": (r"4\cdot 7 = 28", "A + B = 28", r"\text{Area} = 28"),
    r"\frac{3}{4}": ("0.75", "3 / 4"),
    r"\frac 59": (r"\tfrac{5}{9}",),
    r"\sqrt{51}": (r"\sqrt {51}",),
    r"30^\circ": (r"\angle ABC = 30^\circ", r"30^{\circ}", r"\theta = 30^\circ", r"30\degree",
        "30 deg"),
    "6 - 5i": ("z=6-5i",),
    "3:2": ("3:2", "3 : 2", r"3\colon 2"),
    "(1,-16,-4,43)": ("(1, -16, -4, 43)",),
    "(6,31,-1)": ("6, 31, -1",),
    "(15,-29)": (r"\left(15,-29\right)",),
    r"45 \text{ minutes}": (r"45\text{ min}", "45 mins"),
    "720": ("6! = 720",),
    "t^3-49t": ("-49t + t^3",),
    r"12^{\text{th}}\text{ grade}": (r"12^{th}\text{ grade}", "the 12th grade"),
    "-5": (r"\text{-}5", "- 5"),
    "25": ("5^2", "5^2=25"),
    "120": ("5!", "5! = 120", "120 square units"),
    r"\frac{1}{2}": ("1/2", ".5", r"50\%", r"{1 \over 2}", r"P = \frac{1}{2}", r"\frac{2}{4}",
        "0.5", r"\frac{1}{2} \approx 0.5"),
    r"\frac{\sqrt{3}}{3}": (r"\frac{1}{\sqrt{3}}", r"\sqrt{3}/3", r"\frac{\sqrt3}3"),
    r"2\sqrt{5}": (r"\sqrt{20}", r"2\cdot\sqrt{5}", "2*sqrt(5)", "2\u221a5 cm",
        r"2\sqrt{5}\text{ units}", "2sqrt(5)"),
    r"288 \pi": ("288\u03c0", r"288\pi\text{ cubic units}"),
    r"288\pi": ("288 pi",),
    "-2,2": (r"\pm 2", r"x=\pm2"),
    r"3 \pm 2 \sqrt{2}": (r"3+\sqrt{8},3-\sqrt{8}", r"$3 + 2\sqrt{2}$ and $3 - 2\sqrt{2}$"),
    r"(-\infty,2)\cup(3,\infty)": (r"x\in(-\infty,2)\cup(3,\infty)",
        r"(-\infty,2)\text{ or }(3,\infty)", r"\{x \mid x<2 \text{ or } x>3\}"),
    "[-2,7]": (r"\{x \mid -2 \le x \le 7\}", r"\{x : -2 \le x \le 7\}"),
    r"(5,\infty)": ("x>5", "5<x", r"5 < x < \infty", "k>5"),
    r"(-\infty,2)\cup(2,\infty)": (r"\mathbb{R}\setminus\{2\}", r"x\neq 2"),
    "x^3+3x-6": ("f(x)=x^3+3x-6", "p(x) = x^3 + 3x - 6", "y = x^3+3x-6"),
    "5r^5": ("5 r^5",),
    r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}": (r"\begin{bmatrix} 1 \\ 2 \end{bmatrix}",
        r"\mathbf{v}=\begin{pmatrix} 1 \\ 2 \end{pmatrix}",
        r"\begin{pmatrix} 1 \\\\ 2 \end{pmatrix}"),
    r"\begin{pmatrix} 1/5 \\ -18/5 \end{pmatrix}": (
        r"\begin{pmatrix} 1/5 \\[4pt] -18/5 \end{pmatrix}",),
    "1+274i": ("274i+1",),
    r"\$36": (r"\$36.00", r"36\text{ USD}"),
    "326.5": ("326.50", r"\frac{653}{2}"),
    ".35625": (r"\frac{57}{160}",),
    "15": (r"15.0\text{ cm}",),
    r"8 \pi": (r"8\pi\ \text{cm}^2",),
    "3": (r"3\text{rd}",),
    r"16 \sqrt{3}": (r"16\sqrt3\text{ square units}",),
    "204_5": ("204_{5}", r"204_{\text{five}}"),
    "(8,-2)": (r"\left( 8 , -2 \right)",),
    r"\left[ \frac{\pi^2}{8}, \frac{5 \pi^2}{4} \right]": (r"[\pi^2/8,5\pi^2/4]",),
    "x^8 + x^7 + x^6 + x^5 + x^4 + x^3 + x^2 + x + 1": (r"\frac{x^9-1}{x-1}",),
    r"12.5\%": ("12.5 per cent",),
    "x^2+1": ("x**2+1", "x^2 + 1"),
    "45": ("45 minutes",),
    r"\{1,2\}": ("{1, 2}",),
    r"2\pi": ("2pi", "2*pi"),
    r"\infty": ("infinity",),
    "1000000": ("10^6",),
    "0": ("-0", "0.0"),
    r"\sqrt{2}": ("2^{1/2}",),
    r"\frac{1+\sqrt{5}}{2}": ("(1+\u221a5)/2",),
    r"\frac{\sqrt{21}}{5}": (r"\frac{1}{5}\sqrt{21}",),
    r"-\frac{35}{9}": (r"-3\frac{8}{9}", "-3 8/9"),
    "e": ("e",),
    "e^2": ("e^2",),
    "i": ("i",),
    "AB": ("AB",),
    "n": ("n",),
    "no solution": ("No solution",),
}  # fmt: skip
"""Answers that a careful examiner takes, by key."""
WRONG: dict[str, tuple[str, ...]] = {
    "9": (r"9\,\text{thousand}", r"9\text{ thousand}", r"9\ \text{thousand}",
        r"9~\text{million}", r"9\quad\text{hundred}", r"9\;\text{dozen}", "9 thousand",
        "$9$ thousand", r"9 \mathrm{\,thousand}", r"9\textbf{ thousand}",
        r"9\hspace{1mm}\text{thousand}", "9 or 8", "9 and 8", r"9\text{ or }8", "$9$ or $8$",
        "$9$ and $8$", r"9 \lor 8", "9, 8", "9; 8", "9/8", r"9 \pm 1", "9 | 8", r"\{9,8\}",
        "(9,8)", r"9\text{ (or 8)}", r"9 \quad 8", r"9\ 8", r"9 \vee 8", r"9\&8",
        "either 9 or 8", r"9 \text{ and/or } 8", r"9\ \text{versus}\ 8", r"9 \cup 8", r"9\to 8",
        r"8 \to 9", r"9 \neq 8", "8 < 9", "x>9", r"\ge 9", "9:1", "[9]", "8=9", "9=8", "9?",
        "9'", "9+", r"9\ldots", r"\approx 9", r"9.\overline{9}", "-9", "9!", "9i", "9x", "9e",
        r"9\pi", "x=9,y=8", "y=8, x=9", "$9$, $8$", "$9$ (or $18$ if order matters)",
        "$9$, or possibly $6$", "$9$ or more", "between 8 and 9", "more than $9$", "$9$?",
        "not $9$", "$9$ is wrong", "$9$ million", "9 (or 18)", "9 [or 18]", "9 / 8", "9 vs. 8",
        "$9$ but maybe $8$", "$9$ unless $8$", "$8$ or $9$", "8 and 9", r"$n \ge 9$",
        "at least 9", "at most $9$", "roughly 9", "~9", "9 - 1", "9 + 8", "9.5", "9,5", "9 5",
        "{9, 8}", "[9, 8]", "{9} or {8}", "9 or eight", "nine or 9", "9 <strike>8</strike>",
        "x = 9 or x = 8", "x = 9 and y = 8", "a=9,b=8"),
    r"15\mbox{ cm}^2": (r"15\,\text{m}^2", r"15\,\text{cm}", r"15\,\text{mm}^2",
        r"15\ \mathrm{m^2}", r"15\text{ cm}^3", "15 m\u00b2", r"15^\circ", r"15\text{ apples}",
        "15 cm", "15 m^2", "15 square meters"),
    r"90^\circ": (r"90\,\text{radians}", r"90\ \text{rad}", r"90\text{ minutes}", "90 radians",
        "$90$ radians", "90 rad", "90 minutes"),
    r"5.4 \text{ cents}": (r"5.4\,\text{dollars}", r"\$5.4", "$5.40", "5.4\u20ac"),
    "5": (r"5\ \text{or more}", "5 or more", r"5\,\text{or so}", r"5\,\text{at least}",
        r"5~\text{to } 6", "5 to 6", "5-6 or so", r"\text{about } 5", r"\text{at most }5",
        r"5 \text{ not } 6", r"\text{not } 5", "not 5", r"5\,\text{is wrong}", r"\text{maybe }5",
        r"5\ (\text{or }6)", r"5 \text{ if lucky}", "$5$ million", r"5\text{ million}",
        "5 hundred", r"5\%\text{ of }6", "5k", "five or six", r"\text{5 or 6}", r"5\\6",
        r"5\begin{cases}", r"\text{at least five}", r"5\text{ is the lower bound}",
        r"x \approx 5", r"5 \text{ (approximately)}", r"\lceil 4.2\rceil", "5^{*}",
        r"\text{If } x=1, 5", r"5 \implies 6", r"\sqrt{25}=6", "5,000", "5.000.000",
        r"5\text{ squared}", r"5\text{ pairs of }2", "5^2", r"5\cdot 10", r"5\times10^3", "5e3",
        "5E3", r"5\text{ m}\times 2", r"5\text{ and a half}", r"5\frac12", r"5 \text{ minus } 1",
        r"5\text{ factorial}", r"5\text{ remainder }2", r"5 \text{ R } 2", "5 R2", r"5\text{ k}",
        r"5\text{ bn}", r"5\text{ lakh}", r"5\text{ gross}", r"5\text{ score}", r"5\text{ tens}",
        r"5\text{ or }5+1", r"\{5,6\}", r"5\ldots 6", "5..6", r"5 \sim 6", "[5,6]", "5-6",
        "5\u20136", "5\\text{\u2013}6", r"5\text{ through }6", r"5\text{ vs }6", r"5\;/\;6",
        r"5\text{,}6", r"5\text{ , }6", "56", r"5\hspace{2em}6",
        r"\begin{pmatrix}5\\6\end{pmatrix}", r"\underline{5}\,\underline{6}",
        r"\text{No solution}", r"\cancel{5} 6", r"\overline{5}6", r"\color{red}{5} 6",
        r"5\phantom{6}", r"5 \neq x", r"\neg 5", r"\not= 5", r"x\ne 5", r"x \ge 5", r"x\leq5",
        r"5\le x", ">5", "5<", r"\min\{5,6\}", r"\max(4,5)", r"\gcd(5,10)"),
    "1,-2": ("-2<x<1", r"x\in(-2,1)", "(-2,1)", "[-2,1]", r"x \in [-2,1]", r"-2\le x\le 1", "1",
        "-2", "1,2", "1,-2,3", "1,1", r"(-2,\infty)", r"x<1 \text{ or } x>-2", r"x\neq 1,-2",
        r"\mathbb{R}\setminus\{1,-2\}", r"1 \text{ or } -2 \text{ or } 3", "1/-2", "1:-2",
        r"\pm 1, \pm 2", "(1)(-2)", r"1\text{ thousand}, -2", "x^2+x-2=0", "(x-1)(x+2)=0",
        "x=1, y=-2, z=0", "1-2", r"1\cdot -2", r"\langle 1,-2\rangle",
        r"\begin{pmatrix}1\\-2\end{pmatrix}", "1>-2", "-2<1", r"-2\to1", r"-2 \text{ to } 1",
        r"\text{between } -2 \text{ and } 1", r"\text{not } 1, -2", r"1, -2, \ldots", "1,-2,1+0",
        "from -2 to 1", "1 to -2", "1 or 2"),
    "-2,1": ("(-2,1)",),
    r"(2,\infty)": (r"(2,\infty]", r"[2,\infty)", r"[2,\infty]", r"2,\infty", r"\{2,\infty\}",
        r"x\ge2", "x<2", "2", r"x\neq 2"),
    "(8,-2)": ("[8,-2]", r"\{8,-2\}", "(-2,8)", "(8,2)", "[8,-2)", "(8,-2]", "x=-2,y=8",
        "(y,x)=(8,-2)", "8", "-2, 8", "(8,-2,0)", "y=8, x=-2", "(8,-2) or (8,2)",
        "(8,-2), (-2,8)"),
    "(3,4)": (r"\{3,4\}", "[3,4]", "(3,4),(4,3)", r"\{(3,4),(4,3)\}", "3<x<4, y",
        r"(3,4)\text{ or }(4,3)", r"x=3 \text{ or } y=4", "(3,4,5)", "34", "3/4", "3:4", "3+4i",
        "|3,4|", "(4,3)^T", "-(3,4)", "2(3,4)", "(3,4)+(1,1)", r"(3,4)\text{ km}",
        "(3,4) or (4,3)", "x = 4, y = 3", "between 3 and 4", "3 to 4", "3-4"),
    "(3,4]": ("(3,4)", "[3,4]", "[3,4)", "3<x<4", r"3\le x\le4"),
    r"(0,9) \cup (9,36)": ("(0,36)", r"(0,9) \cap (9,36)", "(0,9), (9,36)", r"[0,9)\cup(9,36)",
        r"(0,9) \text{ and } (9,36)", r"[0,9]\cup[9,36]", r"[0,36]\setminus\{9\}"),
    "11111": ("11, 111", r"11,\ 111", "11; 111", "11 111 1"),
    "58,500": ("58, 500", "58.500", "585,00", "58,500,000", "58{,}5000"),
    r"\$50,000": ("\u20ac50,000", "\u00a350,000", r"50,000 \text{ euros}"),
    r"\$18.90": (r"18.90\text{ cents}", "1890", "18.90 euros", "18.90 cents", "\u20ac18.90"),
    r"\$36": (r"36\text{ hours}", r"36\text{ cents}", r"\$36,000", r"\$36\text{k}",
        r"\$36\text{ million}", r"36\%", r"-\$36", "CAD 36"),
    "5x - 7y + 11z + 4 = 0": ("10x - 14y + 22z + 8 = 0", "-5x + 7y - 11z - 4 = 0",
        r"\frac52x - \frac72y + \frac{11}2z + 2 = 0", "5x - 7y + 11z + 4",
        "5x - 7y + 11z + 4 = 1", "5x + 7y + 11z + 4 = 0", "15x - 21y + 33z = -12"),
    "y = 2x + 3": ("y=2x-3", "x=2y+3", r"y \ge 2x+3", "y=2x+3, y=x", "y=2x+3+c", "y<2x+3",
        r"y=2x+3 \text{ or } y=2x-3", "z=2x+3", "y = 2x + 3 or y = 2x"),
    "x=5": ("y=5", "2x=10", "x>5"),
    "(a+5)(b+2)": ("ab+2a+5b+10", "a(b+2)+5(b+2)", "(ab+2a+5b+10)(1)"),
    "2k+2": ("2k-2",),
    r"\text{(C)}": (r"\text{(C) or (D)}", r"\text{(B)}", r"\text{(C), (D)}",
        r"\text{(C) is wrong}", "C or D", "not C", "(B) not (C)", "C, D", "(C)(D)", "(C)/(D)",
        r"\{C, D\}", r"\text{(C) and (D)}", "CD", r"\text{C}, \text{D}", r"\text{(A) (B) (C)}",
        r"\text{(C)?}", r"\text{none}", r"\text{(C) is incorrect}", r"\text{not (C)}",
        r"\text{anything but (C)}", r"\text{(C) or something else}", "(C) or (D)", "C, maybe D",
        "(C), (B)"),
    r"\text{Evelyn}": (r"\text{Evelyn or Navin}", r"\text{not Evelyn}", "Evelyn or Navin",
        "Evelyn, Navin", "not Evelyn"),
    r"\text{even}": (r"\text{odd}", r"\text{even or odd}", r"\text{neither even nor odd}",
        r"\text{even, odd}", r"\text{not even}", r"\text{even?}", "evenodd"),
    r"\text{east}": (r"\text{northeast}", r"\text{east, west}", r"\text{east or west}"),
    "2516_8": ("2516_7", "2516_{10}", "2517_8", "2516_9", r"2516\text{ base }10"),
    "2516": ("2516_8",),
    "52_8": ("42",),
    r"\begin{pmatrix} -1/3 \\ 2/3 \\ 5/3 \end{pmatrix}": (
        r"\begin{pmatrix} -1/3 & 2/3 & 5/3 \end{pmatrix}",
        r"\begin{pmatrix} 2/3 \\ -1/3 \\ 5/3 \end{pmatrix}", r"\{-1/3,2/3,5/3\}"),
    r"\begin{pmatrix} -1 & 0 \\ 0 & -1 \end{pmatrix}": (
        r"\begin{vmatrix} -1 & 0 \\ 0 & -1 \end{vmatrix}",
        r"\begin{pmatrix} -1 & 0 \\ 0 & 1 \end{pmatrix}"),
    r"\frac{1}{3}": ("0.33", r"0.\overline{33}4", r"0.\overline{34}"),
    r"\frac{\pi}{6}": (r"\frac{\pi}{6}^\circ",),
    r"-\frac{\pi}{6}": (r"-\frac{\pi}{6}\text{ degrees}",),
    "3": (r"\log_2 8", r"\sqrt{9}=4", r"x=3 \text{ or } y=4"),
    "1": (r"\sin 90^\circ",),
    "10": (r"\sum_{n=1}^4 n",),
    "2": (r"\lfloor 2.5\rfloor",),
    "0.15": (r"0.15\%",),
    r"1 \pm \sqrt{19}": (r"1+\sqrt{19}", r"1\pm\sqrt{17}", r"-1\pm\sqrt{19}",
        r"(1-\sqrt{19},1+\sqrt{19})"),
    r"\{1\pm\sqrt{5},-2\}": (r"(1\pm\sqrt5,-2)", r"1\pm\sqrt5", r"[1+\sqrt5,1-\sqrt5,-2]"),
    "3:2": ("2:3", "6:4:1"),
    "3, 5, 7": ("3, 5", "3, 5, 8", "[3,5,7]", r"3, 5 \text{ or } 9", "357"),
    "15x - 80": ("15x+80",),
    r"\cot x": (r"\tan x", r"\cot", r"\cot y"),
    "6+9i": ("6-9i", "(6,9)", "9+6i", "6+9", "(6,9i)", "6+9j", "6, 9i", "15i"),
    "p - q": ("q - p", "p + q", "|p-q|"),
    r"60^\circ": (r"60\%",),
    "2s+3": ("3+2t",),
    "70": ("7 + 1 = 70",),
    r"10\text{ ohms}": (r"10\text{ megaohms}",),
    r"5 \text{ million}": ("5",),
    "-2,2": (r"\pm\sqrt{2}",),
    r"(2,12) \cup (12,102)": ("(2,102)", r"(2,12)\cup[12,102)", "2<x<102", "(2,12),(12,102)",
        r"x\ne 12", r"(2,102)\setminus\{13\}", r"(2,102]\setminus\{12\}"),
    "x^3+3x-6": ("x^3+3x-6=0",),
    "6r^2-4r-24": ("6r^2-4r-24=0", "6x^2-4x-24"),
    "p-q": (r"\pm(p-q)",),
    r"30^\circ": ("30'", r"30\pi", r"30\%", r"30^\circ\text{C}", r"30\text{ rad}",
        r"30^\circ 15'", r"30\text{ gradians}"),
    r"\frac{1}{2}": (r"\frac{1}{2}\text{ or }\frac13", "1:2", r"\binom{1}{2}", "1|2",
        r"\frac{1}{2}\%", "(1,2)", r"\frac{1}{2}\pi"),
    r"\pi": ("3.14", "22/7"),
    r"\sqrt{51}": ("7.14", r"\pm\sqrt{51}", r"-\sqrt{51}"),
    "3R^2": ("3r^2",),
    r"3 \pm 2 \sqrt{2}": (r"3+2\sqrt{2}", r"(3-2\sqrt2,3+2\sqrt2)", r"[3-2\sqrt2,3+2\sqrt2]",
        r"\pm3 \pm 2 \sqrt{2}"),
    r"\frac{1}{4}": (r"$\frac{1}{4}$ or $\frac{3}{4}$",),
    "8": ("$8$ hundred",),
    r"45 \text{ minutes}": ("45 hours", "45 seconds", "45 s"),
    "12": ("12th or 11th",),
    r"2\sqrt{5}": ("2 or sqrt(5)",),
    "1000000": ("10^5",),
    r"\frac{3}{4}": ("3 and 4",),
    r"-\frac{35}{9}": ("3 8/9",),
    "2k": ("2k or 3k", "2k+1", "2m"),
}  # fmt: skip
"""Answers that a careful examiner refuses, by key."""


def pairs(table: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(target, answer) for target, answers in table.items() for answer in answers]


@pytest.mark.parametrize(("target", "answer"), pairs(RIGHT))
def test_what_says_the_same_is_right(target: str, answer: str) -> None:
    assert compare(target, answer).equal


@pytest.mark.parametrize(("target", "answer"), pairs(WRONG))
def test_what_says_more_less_or_another_thing_is_wrong(target: str, answer: str) -> None:
    assert not compare(target, answer).equal


def test_a_number_is_read_exactly_and_nothing_else_is_a_number() -> None:
    assert parse_rational(normalise_answer(r"-1\tfrac{4}{5}")) == Fraction(-9, 5)
    assert parse_rational(normalise_answer(r"6.72 \times 10^{-5}")) == Fraction(672, 10_000_000)
    assert parse_rational("1" * 5000) is parse_rational("5/0") is parse_rational("x") is None
    assert (
        parse_rational(normalise_answer("1.2e5"))
        == parse_rational(normalise_answer("120,000"))
        == 120_000
    )
    assert parse_rational(r"-0.1\overline{6}") == Fraction(-1, 6)


def test_a_long_answer_equals_nothing_and_costs_no_time() -> None:
    started = time.process_time()
    assert not compare("5", "5" + " " * LONGEST + "+0").equal
    assert time.process_time() - started < 2


def test_a_comparison_without_an_end_is_not_equal_and_says_so() -> None:
    assert math_verify_all((("5", "6+x", 6),)) == (False,)  # started and warm
    verdict = compare("5", TOWER)
    assert (verdict.equal, verdict.gave_up) == (False, True)
    assert compare("x+5", "5+x").equal


def test_all_values_of_a_list_share_one_limit() -> None:
    before = compare(r"\sqrt{2},\sqrt{3}", r"\sqrt{3},\sqrt{8}/2")
    assert (before.equal, before.look) == (True, "math-verify")
    asked = math_verify_all.cache_info().misses
    verdict = compare(r"\sqrt{2},\sqrt{3},\sqrt{5}", f"{TOWER},1+{TOWER},2+{TOWER}")
    assert (verdict.equal, verdict.gave_up) == (False, True)
    assert math_verify_all.cache_info().misses == asked + 1, "all in one question, of one limit"


def test_a_verdict_is_kept() -> None:
    compare("5", TOWER)
    asked = math_verify_all.cache_info().misses
    assert compare("5", TOWER).gave_up
    assert math_verify_all.cache_info().misses == asked


HOSTILE = (
    "__import__('os').system('touch {}')",
    r"\text{{__import__('os').system('touch {}')}}",
    r"\operatorname{{__import__('os').system}}(touch {})",
    r"\mathrm{{eval}}(open('{}','w'))",
    "(lambda: open('{}', 'w'))()",
    r"\boxed{{exec(\"open('{}','w')\")}}",
    r"\frac{{open('{}','w')}}{{1}}",
    r"x_{{open('{}','w')}}",
    r"f(open('{}','w'))",
    "[c for c in ().__class__.__base__.__subclasses__()][0]('{}')",
)


@pytest.mark.parametrize("attack", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_answer_leaves_no_trace(attack: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    assert math_verify_all((("5", attack.format(trace), 6),)) != (True,)
    assert math_verify_all(((attack.format(trace), "5", 6),)) != (True,)
    assert not trace.exists()


def test_the_process_has_no_environment_but_path_and_no_file_of_ours(tmp_path: Path) -> None:
    with (tmp_path / "ours").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        worker = MathVerifyProcess()
        process = Path(f"/proc/{worker.pid}")
        names = {entry.split(b"=")[0] for entry in (process / "environ").read_bytes().split(b"\0")}
        opened = {str(path.readlink()) for path in (process / "fd").iterdir()}
        limits = (process / "limits").read_text()
        worker.end()
    assert names - {b""} == {b"PATH"}
    assert {target.partition(":")[0] for target in opened} == {"pipe", os.devnull}
    assert "Max file size             0 " in limits


def test_a_process_that_was_killed_is_replaced() -> None:
    workers = MathVerifyPool(1)
    line = b'{"pairs": [["5", "5", 6]]}\n'
    assert workers.ask(line) == {"equal": [True]}
    os.kill(workers.pids()[0], signal.SIGKILL)
    assert workers.ask(line) == {"equal": [True]}
    workers.end()


@pytest.mark.slow
def test_threads_share_as_many_processes_as_are_allowed() -> None:
    workers = MathVerifyPool(2)
    lines = [b'{"pairs": [["%d", "x+%d-x", 6]]}\n' % (n, n % 7) for n in range(40)]
    with ThreadPoolExecutor(8) as threads:
        said = [answer["equal"][0] for answer in threads.map(workers.ask, lines)]
    assert said == [n == n % 7 for n in range(40)]
    assert 1 <= len(workers.pids()) <= 2
    workers.end()
    assert workers.pids() == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_asks_a_process_of_its_own() -> None:
    assert math_verify_all((("5", "x+5-x", 6),)) == (True,)
    before = math_verify_pool.POOL.pids()
    child = os.fork()
    if child == 0:  # pragma: no cover - runs in the fork
        own = not math_verify_pool.POOL.pids() and math_verify_all((("7", "x+7-x", 6),)) == (True,)
        os._exit(0 if own else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert math_verify_pool.POOL.pids() == before
    assert math_verify_all((("8", "x+8-x", 6),)) == (True,)


def test_a_process_that_cannot_start_is_our_failure_and_no_verdict(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('no such library')\n")
    with pytest.raises(EqualityError, match="no such library"):
        MathVerifyProcess([sys.executable, "-I", str(broken)])


GUARDED = """
import runpy, subprocess, socket, sys
worker = runpy.run_path(sys.argv[1])
sys.addaudithook(worker["_refuse"])
attempts = {
    "eval": lambda: eval("1 + 1"),
    "exec": lambda: exec("x = 1"),
    "write": lambda: open(sys.argv[2], "w"),
    "program": lambda: subprocess.run(["true"]),
    "socket": lambda: socket.socket(),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except PermissionError:
        print(name)
"""


def test_the_process_can_run_no_string_write_no_file_start_no_program_and_call_nobody(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", GUARDED, str(math_verify_pool.PROGRAM), str(tmp_path / "x")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["eval", "exec", "write", "program", "socket"]
