"""One case per trap that graders are known to fall into (each id names the trap)."""

import time

import pytest

from podium.harness.extract import extract_choice, extract_integer, extract_program, normalised

INTEGERS: dict[str, tuple[str, int | None]] = {
    "boxed": (r"So \boxed{70}.", 70),
    "fboxed": (r"So \fbox{70}.", 70),
    "box-in-maths": (r"$\boxed{70}$", 70),
    "box-holds-maths": (r"\boxed{$70$}", 70),
    "box-holds-paren-maths": (r"\boxed{\(70\)}", 70),
    "text-in-box": (r"\boxed{\text{70}}", 70),
    "bold-in-box": (r"\boxed{\mathbf{70}}", 70),
    "textbf-in-box": (r"\boxed{\textbf{ 70 }}", 70),
    "nested-fonts": (r"\boxed{\text{\textbf{70}}}", 70),
    "half-as-a-sign": ("Answer: 70\u00bd", None),
    "power-as-a-sign": ("The answer is 7\u00b2.", None),
    "nested-boxes": (r"\boxed{\fbox{70}}", 70),
    "nested-boxes-with-text": (r"\boxed{\boxed{70}\text{ units}}", 70),
    "leading-zero": (r"\boxed{070}", 70),
    "two-leading-zeros": (r"\boxed{007}", 7),
    "zero": (r"\boxed{0}", 0),
    "degrees": (r"\boxed{70^\circ}", 70),
    "braced-degrees": (r"\boxed{70^{\circ}}", 70),
    "degree-sign": ("\\boxed{70\u00b0}", 70),
    "unit-in-box": (r"\boxed{70 \text{ square units}}", 70),
    "spaces-in-box": (r"\boxed{ \, 70 \; }", 70),
    "space-before-brace": (r"\boxed {70}", 70),
    "box-without-braces": (r"$\boxed 70$", 70),
    "equation-in-box": (r"\boxed{m+n = 70}", 70),
    "decimal-point-zero": (r"\boxed{70.0}", 70),
    "thousands-brace": (r"\boxed{1{,}234}", 1234),
    "thousands-comma": (r"\boxed{1,234}", 1234),
    "thousands-thin-space": (r"\boxed{10\,080}", 10080),
    "thousands-negative-space": (r"\boxed{10,\!080}", 10080),
    "negative": (r"\boxed{-3}", -3),
    "unicode-minus": ("\\boxed{\u22123}", -3),
    "last-box-wins": (r"\boxed{12} no, \boxed{70}", 70),
    "text-after-box": (r"... \boxed{70}. There are 3 cases.", 70),
    "box-before-answer-line": ("\\boxed{70}\nANSWER: 12", 12),
    "suffix-is-not-equal": (r"\boxed{149}", 149),
    "prefix-is-not-equal": (r"\boxed{711}", 711),
    "comma-splits": (r"\boxed{7,0}", None),
    "list-in-box": (r"\boxed{70, 71}", None),
    "either-in-box": (r"\boxed{70 \text{ or } 71}", None),
    "fraction-in-box": (r"\boxed{\frac{437}{3}}", None),
    "power-in-box": (r"\boxed{10^{2}}", None),
    "product-in-box": (r"\boxed{7 \cdot 10}", None),
    "decimal-in-box": (r"\boxed{70.5}", None),
    "spaced-digits": (r"\boxed{7 0}", None),
    "space-command-digits": (r"\boxed{7\ 0}", None),
    "word-in-box": (r"\boxed{ANSWER}", None),
    "non-integer-box-hides-earlier": (r"\boxed{70} hmm, \boxed{x}", None),
    "non-integer-box-then-line": ("\\boxed{\\frac{7}{3}}\n\nANSWER: 10", 10),
    "cut-off-box": (r"\boxed{12} and finally \boxed{7", None),
    "empty-box-quotes-instruction": ("I put it within \\boxed{}.\nANSWER: 70", 70),
    "boxed-fraction-of-digits": ("\\boxed{" + "9" * 5000 + "}", None),
    "answer-line": ("ANSWER: 70", 70),
    "answer-line-maths": ("ANSWER: $70$", 70),
    "answer-line-lower": ("work\nanswer: 70", 70),
    "answer-line-bold": ("**ANSWER: 70**", 70),
    "answer-line-bold-label": ("**Answer:** 70", 70),
    "answer-line-heading": ("### Final Answer\n\n70", 70),
    "answer-line-next-line-box": ("**Answer:**\n\n\\fbox{70}", 70),
    "answer-line-next-line": ("**Answer:**\n\n**70**", 70),
    "answer-line-zeros": ("ANSWER: 070", 70),
    "answer-line-dot": ("ANSWER: 70.", 70),
    "answer-line-equation": ("ANSWER: m + n = 70", 70),
    "answer-line-remark": ("ANSWER: 70 (there are 3 cases)", 70),
    "answer-line-pleasantry": ("ANSWER: 70\n\nHope this helps!", 70),
    "answer-line-then-sentence": ("ANSWER: 70\nThere are 3 cases.", 70),
    "answer-line-full-width-colon": ("ANSWER\uff1a70", 70),
    "answer-line-last-wins": ("ANSWER: 12\nNo.\nANSWER: 70", 70),
    "answer-line-comma": ("ANSWER: 7,0", None),
    "answer-line-list": ("ANSWER: 70, 71", None),
    "answer-line-either": ("ANSWER: 70 or 71", None),
    "answer-line-fraction": ("ANSWER: 70/3", None),
    "answer-line-decimal": ("ANSWER: 70.5", None),
    "answer-line-unknown": ("ANSWER: unknown, but see 70", None),
    "answer-line-suffix": ("ANSWER: 149", 149),
    "answer-line-far-back": ("ANSWER: 70\n" + "More words follow.\n" * 500, None),
    "prose-bold": ("the final answer is **70**.", 70),
    "prose-maths": ("Therefore, the final answer is: $70$.", 70),
    "prose-answer-variable": ("Hence the answer is m+n = 70.", 70),
    "prose-therefore": ("Therefore m+n = 70", 70),
    "prose-sum": ("So the sum is 70", 70),
    "prose-remainder": ("Thus, the remainder is 70.", 70),
    "prose-degrees": ("Hence the angle is 70 degrees.", 70),
    "prose-pleasantry": ("Thus the sum is 70.\n\nHope this helps!", 70),
    "prose-then-remark": ("The answer is 70. I hope that is clear.", 70),
    "prose-either": ("The answer is 70 or 71.", None),
    "prose-negated": ("So the answer is not 70.", None),
    "prose-question": ("Is the answer 70? The answer is 70?", None),
    "prose-taken-back": ("The answer is 70. Wait, that is wrong.", None),
    "prose-product": ("The answer is 70 * 3 modulo something.", None),
    "prose-fraction": ("Therefore the ratio is 70/3.", None),
    "prose-root": ("Therefore the area is 70\u221a3.", None),
    "prose-decimal": ("So it is 70.5.", None),
    "prose-comma": ("The answer is 7,0.", None),
    "bare-last-number": ("We try 3 cases, then 70", None),
    "no-conclusion-word": ("k = 70", None),
    "empty": ("", None),
    "only-words": ("I do not know.", None),
    "thinking-then-answer": (r"<think>\boxed{12}</think> The answer is 70.", 70),
    "thinking-then-box": (r"<think>\boxed{12}</think> \boxed{70}", 70),
    "thinking-without-opening-tag": ("So it is 12.\n</think>\n\nANSWER: 70", 70),
    "thinking-then-nothing": (r"<think>so \boxed{70}</think>", None),
    "thinking-then-no-answer": ("<think>so the answer is 70.</think> I used symmetry.", None),
    "thinking-then-broken-box": (r"<think>\boxed{12}</think> \boxed{7", None),
    "unclosed-thinking-prose": ("<think>So the answer is 70.", None),
    "unclosed-thinking-box": (r"<think>So \boxed{70}. Let me", 70),
    "cut-off": ("Then 70 + 3 = 73, and 73 *", None),
}


@pytest.mark.parametrize(("reply", "expected"), INTEGERS.values(), ids=INTEGERS.keys())
def test_an_integer_is_found_or_abstained_from(reply: str, expected: int | None) -> None:
    assert extract_integer(reply) == expected


LETTERS: dict[str, tuple[str, str | None]] = {
    "strict": ("Answer: B", "B"),
    "bold": ("**Answer: B**", "B"),
    "bold-label": ("**Answer:** B", "B"),
    "dollars": ("ANSWER: $B$", "B"),
    "parentheses": ("Answer: (B)", "B"),
    "closing-parenthesis": ("Answer: B) 42 metres", "B"),
    "lower": ("answer: b", "B"),
    "boxed-in-line": (r"ANSWER: \boxed{B}", "B"),
    "text-in-line": (r"ANSWER: \text{B}", "B"),
    "boxed": (r"So \boxed{B}.", "B"),
    "boxed-text": (r"So \boxed{\text{(B)}}.", "B"),
    "boxed-with-choice": (r"So \boxed{B. 42}.", "B"),
    "line-before-box": ("\\boxed{C}\nAnswer: B", "B"),
    "two-boxes-on-the-line": (r"Answer: \boxed{A} or \boxed{B}", None),
    "two-boxes-that-agree": (r"Answer: \boxed{B}, \boxed{B}", "B"),
    "foreign-word-in-another-line": ("The field is 3 \u00b5T.\nThe answer is B.", "B"),
    "last-line-wins": ("Answer: A\nOn reflection\nAnswer: B", "B"),
    "prose": ("The answer is B.", "B"),
    "prose-bold": ("So the correct answer is **(B)**.", "B"),
    "prose-option": ("The answer is option B because it is.", "B"),
    "next-line": ("**Answer:**\n\nB", "B"),
    "thinking": ("<think>Answer: A</think>Answer: B", "B"),
    "because": ("Answer: Because of entropy", None),
    "none-of-the-above": ("Answer: None of the above", None),
    "article": ("The answer is A function of time", None),
    "lower-article": ("The answer is a function of time", None),
    "two-letters": ("Answer: A or B", None),
    "list": ("Answer: A, B", None),
    "outside": ("Answer: E", None),
    "delta-e": (r"\boxed{\Delta E}", None),
    "delta-d": (r"\boxed{\Delta D}", None),
    "any-letter": ("A lot of work, but I Cannot tell", None),
    "negated": ("The answer is not B.", None),
    "empty": ("", None),
}


@pytest.mark.parametrize(("reply", "expected"), LETTERS.values(), ids=LETTERS.keys())
def test_a_letter_is_found_or_abstained_from(reply: str, expected: str | None) -> None:
    assert extract_choice(reply) == expected


PROGRAMS: dict[str, tuple[str, str | None]] = {
    "python": ("```python\nprint(1)\n```", "print(1)"),
    "untagged": ("```\nprint(1)\n```", "print(1)"),
    "last-python": ("```python\na\n```\nbetter:\n```py\nb\n```", "b"),
    "output-after-python": ("```python\na\n```\nprints\n```output\n7\n```", "a"),
    "cut-off-second-block": ("```python\na\n```\nprose\n```python\nb", "a"),
    "only-cut-off": ("```python\na", None),
    "no-fence": ("print(1)", None),
    "empty-block-is-skipped": ("```python\na\n```\n```python\n\n```", "a"),
    "tildes": ("~~~python\na\n~~~", "a"),
    "indented-in-a-list": ("1. so\n   ```python\n   if a:\n       b\n   ```", "if a:\n    b"),
    "inner-fence-in-longer-fence": ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''"),
    "thinking": ("<think>```python\na\n```</think>\n```python\nb\n```", "b"),
    "only-in-thinking": ("<think>\n```python\na\n```\n</think> done", None),
}


@pytest.mark.parametrize(("reply", "expected"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_program_is_the_last_complete_block(reply: str, expected: str | None) -> None:
    assert extract_program(reply) == expected


def test_replies_that_agree_have_one_normal_form() -> None:
    assert normalised("integer", r"\boxed{070}") == normalised("integer", "ANSWER: 70") == "70"
    assert normalised("choice", r"\boxed{B}") == normalised("choice", "answer: b") == "B"
    assert normalised("program", "```python\na  \n\n```") == "a"
    assert normalised("text", "  yes \n") == "yes"
    assert normalised("text", r"So $\boxed{2\pi}$.") == normalised("text", r"ANSWER: $2\pi$")
    assert normalised("text", " ") is normalised("integer", "?") is normalised("choice", "") is None
    assert normalised("program", "no program") is None


LONG: dict[str, str] = {
    "open-boxes": r"\boxed{" * 28_000,
    "empty-boxes": r"\boxed{}" * 25_000,
    "nested-boxes": r"\boxed{" * 25_000 + "}" * 25_000,
    "spaces": " " * 200_000,
    "digits": "7" * 200_000,
    "boxed-digits": r"\boxed{" + "7" * 200_000 + "}",
    "answers": "answer is " * 20_000,
    "answer-lines": "Answer:\n" * 25_000,
    "stars": "*" * 200_000,
    "fences": "```\n" * 50_000,
    "backticks": "`" * 200_000,
    "backslashes": "\\" * 200_000,
    "so-is": "so it is 7, " * 17_000,
    "thinking": "<think>" * 28_000,
    "lines": "Thus k = 7 or\n" * 14_000,
}


@pytest.mark.parametrize("reply", LONG.values(), ids=LONG.keys())
def test_a_long_reply_is_read_in_linear_time(reply: str) -> None:
    started = time.process_time()  # other processes do not count
    for find in (extract_integer, extract_choice, extract_program):
        find(reply)
    assert time.process_time() - started < 20
