"""Reasoning in the marks of every model: what stands outside it is the reply, and nothing else."""

import time
from collections.abc import Iterator

import pytest

from podium.harness.extract import extract_choice, extract_expressions, extract_integer
from podium.harness.program_text import extract_program
from podium.harness.reasoning import ReasoningMark, reasoning_marks, spoken

MARKS = reasoning_marks()
EXAMPLES = pytest.mark.parametrize("mark", MARKS, ids=[mark.name for mark in MARKS])
HARMONY = "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}"
HARMONY_STRIPPED = "analysis{}assistantfinal{}"


def pairs(mark: ReasoningMark) -> Iterator[tuple[str, str]]:
    opens = ("analysis",) if mark.name == "harmony-stripped" else mark.open
    return ((start, end) for start in opens for end in mark.close)


@EXAMPLES
def test_the_example_of_a_mark_says_what_stands_outside_it(mark: ReasoningMark) -> None:
    said, cut_off = spoken(mark.example)
    assert (said.strip(), cut_off) == ("Answer: 8.", False)
    assert mark.source
    assert extract_integer(mark.example) == 8


@EXAMPLES
@pytest.mark.parametrize("behind", ["", "\n\nI cannot commit to an answer.", " It is done."])
def test_an_answer_that_stands_only_in_closed_reasoning_is_none(
    mark: ReasoningMark, behind: str
) -> None:
    for start, end in pairs(mark):
        for thought in (r"So \boxed{204}.", "Answer: 204\n", "<answer>204</answer>"):
            reply = f"{start}{'<|message|>' * ('|channel|' in start)}{thought}{end}{behind}"
            assert extract_integer(reply) is None, reply
            assert extract_expressions(reply) == ()
        code = f"{start}```python\ndef f(): ...\n```{end}{behind}"
        assert extract_program(code) is extract_program(code, ["f"]) is None


@EXAMPLES
def test_reasoning_that_is_cut_off_gives_boxes_and_answer_lines_alone(mark: ReasoningMark) -> None:
    for start, _ in pairs(mark):
        assert spoken(f"{start}So it is 7.")[1]
        assert extract_integer(f"{start}So the answer is 70.") is None
        assert extract_integer(f"{start}So \\boxed{{70}}. Let me") == 70


@EXAMPLES
def test_reasoning_that_began_in_the_prompt_is_taken_away(mark: ReasoningMark) -> None:
    if mark.first:
        pytest.skip("its words are no marks where they do not begin a reply")
    for _, end in pairs(mark):
        assert extract_choice(f"Answer: A\n{end}\nAnswer: B") == "B"
        assert extract_choice(f"Answer: A\n{end}\nI am not sure.") is None


SPOKEN = {
    "harmony": (HARMONY.format("7", "8"), "8"),
    "harmony-begins-in-the-prompt": ("7<|end|><|start|>assistant<|channel|>final<|message|>8", "8"),
    "harmony-final-only": ("<|channel|>final<|message|>8<|return|>", "8"),
    "harmony-tool-between": (
        HARMONY.format("7", "").replace("final", "commentary to=functions.f")
        + '{"x": 7}<|call|><|start|>assistant<|channel|>final<|message|>8',
        "8",
    ),
    "harmony-json": (HARMONY.format("7", "8").replace("final", "final <|constrain|>json"), "8"),
    "harmony-stripped": (HARMONY_STRIPPED.format("We need 7.", "8"), "8"),
    "harmony-stripped-lines": (HARMONY_STRIPPED.format("\nWe need 7.\n", "\n8"), "\n8"),
    "harmony-stripped-final-only": ("final**8**", "**8**"),
    "harmony-stripped-commentary": ("analysisA 7.assistantcommentaryTool 7assistantfinal8", "8"),
    "the-word-final": ("final answer: 8", "final answer: 8"),
    "the-word-analysis": ("analysis of 7 gives 8", "analysis of 7 gives 8"),
    "reasoning-behind": ("<answer>8</answer><reasoning>not 7</reasoning>", "<answer>8</answer>"),
    "between-two-parts": ("It is\n<think>7?</think>\n8", "It is\n\n\n\n8"),
    "marks-in-reasoning": ("<think>use <reasoning></reasoning> 7</think>8", "8"),
    "other-marks-around": ("<reasoning><think>7</think> 7</reasoning>8", "8"),
    "capitals": ("<Think>7</THINK>8", "8"),
    "glm-box": ("<think>7</think><|begin_of_box|>8<|end_of_box|>", r"\boxed{8}"),
    "another-turn": ("8<|im_end|>\n<|im_start|>assistant\n<think>7</think>9", "8"),
    "phi-turn": ("<think>7</think>8<|end|><|user|>9", "8"),
    "granite-words-elsewhere": ("So. Here is my response: 8", "So. Here is my response: 8"),
    "no-marks": (r"\[ x < 3 \] THINK", r"\[ x < 3 \] THINK"),
}


@pytest.mark.parametrize(("reply", "said"), SPOKEN.values(), ids=SPOKEN)
def test_what_is_said_outside_reasoning_is_kept(reply: str, said: str) -> None:
    assert spoken(reply) == (said, False)


LONG = {
    "open": "<think>" * 150_000, "pairs": "<think>a</think>" * 60_000,
    "close": "</think>" * 130_000,
    "less": "<" * 1_000_000, "brackets": "[THINK" * 160_000 + "THINK]", "spaces": " " * 1_000_000,
    "ends": "<|end|>" * 140_000, "end-then-spaces": "<|end|>" + " " * 1_000_000,
    "channels": "<|channel|>" * 90_000, "assistants": "assistant" * 110_000 + "assistantfinal",
    "turns": "</s> " * 200_000, "granite": "Here is my thought process:" + "Here is my " * 90_000,
}  # fmt: skip


@pytest.mark.parametrize("reply", LONG.values(), ids=LONG)
def test_a_megabyte_of_marks_is_read_in_linear_time(reply: str) -> None:
    started = time.process_time()
    spoken(reply)
    assert time.process_time() - started < 2
