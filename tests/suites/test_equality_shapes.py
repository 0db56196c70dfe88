"""How answers are laid out: environments, colours, fonts, factors before a matrix; tiny numbers."""

import pytest

from podium.suites.math_equality import compare

MATRIX = r"\begin{pmatrix} 0 & 3 \\ -1 & 2 \end{pmatrix}"
COLUMN = r"\begin{pmatrix} 4/3 \\ 2/3 \\ -2 \end{pmatrix}"
NINTHS = r"\frac{9}{4}"
RIGHT: dict[str, tuple[str, ...]] = {
    MATRIX: (
        r"\left(\begin{array}{rr} 0 & 3 \\ -1 & 2 \end{array}\right)",
        r"\left[\begin{array}{c c} 0 & 3 \\ -1 & 2 \\ \end{array}\right]",
        r"\left[\begin{array}{*{2}{c}} 0 & 3 \\ -1 & 2 \end{array}\right]",
        r"\bigl(\begin{smallmatrix} 0 & 3 \\ -1 & 2 \end{smallmatrix}\bigr)",
        r"\left(\begin{matrix} 0 & 3 \\ -1 & 2 \end{matrix}\right)",
        r"A = \left(\begin{array}{cc} 0 & 3 \\ -1 & 2 \end{array}\right)",
        r"-\begin{pmatrix} 0 & -3 \\ 1 & -2 \end{pmatrix}",
        r"\frac12\begin{pmatrix} 0 & 6 \\ -2 & 4 \end{pmatrix}",
    ),
    COLUMN: (
        r"\frac23\begin{pmatrix} 2 \\ 1 \\ -3 \end{pmatrix}",
        r"\mathbf{v} = \frac{2}{3} \cdot \begin{pmatrix} 2 \\ 1 \\ -3 \end{pmatrix}",
        r"\dfrac{2}{3}\left(\begin{array}{c} 2 \\ 1 \\ -3 \end{array}\right)",
        r"2\begin{bmatrix} 2/3 \\ 1/3 \\ -1 \end{bmatrix}",
    ),
    r"\begin{pmatrix} \sqrt{2} \\ 2 \end{pmatrix}": (
        r"\sqrt{2}\begin{pmatrix} 1 \\ \sqrt{2} \end{pmatrix}",
    ),
    NINTHS: (
        r"\begin{aligned} x &= \frac{9}{4} \end{aligned}",
        r"\begin{align*} x &= 2+\frac14 \\ &= \frac{9}{4} \end{align*}",
        r"\begin{gathered} x = \frac{9}{4} \end{gathered}", r"\begin{split}x &= \frac94\end{split}",
        r"\begin{equation*} \frac{9}{4} \end{equation*}",
        r"\begin{array}{c} \frac{9}{4} \end{array}",
        r"\color{red}{\frac{9}{4}}", r"\textcolor{#ff0000}{\frac{9}{4}}",
        r"{\color{blue}\frac{9}{4}}", r"\color[rgb]{1,0,0}{\frac94}",
        r"\colorbox{yellow}{$\frac{9}{4}$}", r"\bf{\frac{9}{4}}", r"\nicefrac{9}{4}",
        r"\mathbf{\frac{9}{4}}", r"\text{$\frac94$}", r"\frac{9}{4}\text{ units}^2",
        r"\hspace{2mm}\frac{9}{4}", r"\frac{9}{4}\tag{1}", r"\frac{9}{4}\ \checkmark",
        r"\Rightarrow \frac94", r"=\frac94", r"\text{Thus } \frac94", r"\therefore x=\frac94",
        r"x=\frac{9}{4}, x\neq 0", r"\frac{9}{4} \quad (x \ne 0)",
        r"\frac{9}{4} \text{ where } x \neq 0", "9/4 or 2.25", r"\frac{9}{4} \text{ or } 2.25",
    ),
    "5": (r"\bf{5}", r"{\bf 5}", r"\bf 5", r"\rm{5}", r"\pmb{5}", r"\Large{5}", r"{\Huge 5}",
        r"\framebox{5}", r"\emph{5}", r"\large{\textbf{5}}"),
    "9": ("ANSWER = 9", "$ANSWER = 9$", r"\text{ANSWER} = 9", r"\text{Answer} = 9",
        r"$\text{Final answer} = 9$", "ANSWER=$9$"),
    "(3,4)": (r"\begin{aligned} x&=3\\ y&=4\end{aligned}", r"\begin{cases}x=3,\\y=4\end{cases}",
        r"\left(\begin{array}{c}3\\4\end{array}\right)",
        r"\left\{\begin{array}{l}x=3\\y=4\end{array}\right."),
    "[-2,1]": (r"\{-2 \le x \le 1\}",),
    "10^{-20}": (r"\frac{1}{10^{20}}",),
    r"\frac{1}{20!}": ("1/20!", r"\frac{1}{2432902008176640000}"),
    r"\frac{\sqrt{3}}{10^{20}}": (r"\frac{3}{\sqrt{3}\cdot 10^{20}}",),
    "0": (r"\sqrt{3+2\sqrt{2}}-1-\sqrt{2}",),
    r"1000\pi": ("3141.592654",),
    r"(-\infty,\infty)": (r"\mathbb{R}", r"\text{all real numbers}"),
    r"\sqrt[3]{4}": (r"\sqrt[3]4",),
}  # fmt: skip
WRONG: dict[str, tuple[str, ...]] = {
    MATRIX: (
        r"\left(\begin{array}{cc} 0 & -1 \\ 3 & 2 \end{array}\right)",
        r"\left|\begin{array}{cc} 0 & 3 \\ -1 & 2 \end{array}\right|",
        r"\left(\begin{array}{cc} 0 & 3 \\ -1 & 2 \end{array}\right)^{-1}",
        r"\left(\begin{array}{cc} 0 & 3 \\ -1 & 2 \end{array}\right)^T",
        r"\left\{\begin{array}{cc} 0 & 3 \\ -1 & 2 \end{array}\right.",
        r"-\begin{pmatrix} 0 & 3 \\ -1 & 2 \end{pmatrix}",
        r"x\begin{pmatrix} 0 & 3 \\ -1 & 2 \end{pmatrix}",
        r"\frac{1}{2}+\begin{pmatrix} 0 & 3 \\ -1 & 2 \end{pmatrix}",
        MATRIX + MATRIX,
        r"\det\begin{pmatrix} 0 & 3 \\ -1 & 2 \end{pmatrix}",
    ),
    COLUMN: (
        r"\frac23\begin{pmatrix} 2 & 1 & -3 \end{pmatrix}",
        r"\frac32\begin{pmatrix} 2 \\ 1 \\ -3 \end{pmatrix}",
        r"t\begin{pmatrix} 2 \\ 1 \\ -3 \end{pmatrix}",
    ),
    NINTHS: (
        r"\color{red}{\frac{4}{9}}", r"\begin{aligned} x &= \frac{9}{4} \\ y &= 3\end{aligned}",
        r"\begin{aligned} x &\neq \frac{9}{4} \end{aligned}",
        r"\begin{array}{c} \frac94 \\ 3\end{array}", r"\phantom{\frac94}",
        r"4 \implies \frac94", r"\frac94\Rightarrow 4", r"\frac{9}{4}\text{ cm}^2\text{ or }3",
        r"\frac{9}{4}, x \ne \frac94", r"\frac{4}{9}, x \ne 0", "9/4 or 9/4", "9/4 or 2.5",
    ),
    "5": (r"\bf{5}6", r"\phantom{5}", r"\textcolor{red}{5}\textcolor{blue}{6}", r"\color{5}6",
        "5, x = 6", r"5, x \neq 5", r"6, x \neq 5", "5..."),
    "9": ("ANSWER = 9 or 10", "ANSWER != 9", "FALSE = 9", "WRONG = 9", r"\text{Rejected: } 9",
        r"\text{Naive answer: } 9", r"\text{Student's answer: } 9", r"\text{First answer: } 9",
        r"\text{Lower bound: } 9", r"\text{Upper bound} = 9", r"\text{Guess: } 9"),
    "1,-2": (r"\{-2<x<1\}", r"\{-2 \le t \le 1\}", r"\{x: -2<x<1\}", r"\{1>x>-2\}", "[-2<x<1]"),
    "3,4": (r"\{3<x<4\}", r"\{x\in(3,4)\}"),
    "10^{-20}": ("10^{-21}", "-10^{-20}", r"2 \cdot 10^{-20}", "0"),
    r"\frac{1}{20!}": (r"\frac{1}{21!}", r"-\frac{1}{20!}", r"\frac{1}{20!+1}", "0"),
    r"\frac{1}{2^{100}}": (r"\frac{1}{2^{101}}", r"\frac{1}{3^{100}}"),
    r"1-\frac{1}{2^{100}}": ("1", r"1-\frac{1}{2^{99}}"),
    r"\frac{\sqrt3}{10^{20}}": (r"\frac{\sqrt{2}}{10^{20}}",),
    r"\frac{\sqrt2}{10^{8}}": ("0.0000000141",),
    "e^{-50}": ("e^{-51}", "0"),
    "0": (r"\frac{1}{20!}", "10^{-20}"),
    "2^{-1000000}": ("2^{-1000001}",),
    "204": (r"204 \pm 1", "204\u2013206", "204-206", r"204\text{ through }206", "204 thru 206",
        "204 \u2192 240", r"204 \to 240", "204 => 240", "204...206", "204 +/- 1",
        r"204^{+1}_{-1}", r"204\text{ give or take }1", r"204\text{ octal}", r"204\text{ negative}",
        r"204\text{ inverse}", r"204\text{ factorials}", r"204\text{ opposites}",
        r"204\text{ reversed}", r"204\text{ base five}", r"204\text{ conjugate}"),
    "1": (r"1\text{ octal}", r"1\text{ negative}", r"1\text{ half}", r"1\text{ third}"),
}  # fmt: skip


def pairs(table: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(target, answer) for target, answers in table.items() for answer in answers]


@pytest.mark.parametrize(("target", "answer"), pairs(RIGHT))
def test_a_layout_changes_no_value(target: str, answer: str) -> None:
    assert compare(target, answer).equal


@pytest.mark.parametrize(("target", "answer"), pairs(WRONG))
def test_a_layout_hides_no_other_value(target: str, answer: str) -> None:
    assert not compare(target, answer).equal
