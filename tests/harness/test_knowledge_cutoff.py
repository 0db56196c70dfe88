"""When a model's knowledge ends, beside when questions became public."""

import pytest

from podium.harness.knowledge_cutoff import UNKNOWN, Exposure, cutoff_lines, exposure, known_cutoff
from podium.reports.power import saturation


@pytest.mark.parametrize(
    ("dates", "cutoff", "expected"),
    [
        ("2025-02", "2025-01", "before"),
        ("2025-02", "2025-02 (a card)", "among"),
        ("2025-02", "2025-03-15", "after"),
        ("2023-05..2025-04", "2023-04", "before"),
        ("up to 2025-01", "2020-01", "among"),
        ("2024-08-01..", "2026-01", "among"),
        ("..2025-02-01", "2025-03", "after"),
        ("2025-02", UNKNOWN, UNKNOWN),
        (UNKNOWN, "2025-03", UNKNOWN),
        ("", "2025-03", UNKNOWN),
    ],
)
def test_a_cutoff_lies_before_among_or_after_the_questions(
    dates: str, cutoff: str, expected: Exposure
) -> None:
    assert exposure(dates, cutoff) == expected


def test_inspects_database_is_asked_and_a_name_that_only_begins_alike_is_unknown() -> None:
    assert known_cutoff("openai/gpt-5-2025-08-07").startswith("2024-09-30 (Inspect ")
    assert known_cutoff("google/gemini-2.5-pro").startswith("2025-01 (Inspect ")
    assert known_cutoff("openrouter/anthropic/claude-sonnet-4.5") == UNKNOWN
    assert known_cutoff("scripted/sage") == UNKNOWN


def test_generated_questions_were_never_public() -> None:
    assert cutoff_lines("generated", {"sage": "2025-03"}) == []


def test_models_without_a_known_cutoff_are_named_together() -> None:
    head = "questions public: 2025-02; knowledge cutoffs: "
    known = {"a": "2024-10 (model card)", "b": UNKNOWN, "c": UNKNOWN}
    assert cutoff_lines("2025-02", known) == [f"{head}a 2024-10, unknown for b, c"]
    assert cutoff_lines("2025-02", {"b": UNKNOWN}) == [f"{head}all unknown"]


def test_a_saturated_suite_says_what_it_can_still_show() -> None:
    assert saturation([0.95, 0.5], 30) == ""
    assert "at this accuracy they show only differences of 10.0 points or more" in saturation(
        [0.96], 30
    )
