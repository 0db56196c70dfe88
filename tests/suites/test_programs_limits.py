"""Judging on a scripted box: order, early stop, reruns near the time limit, our failures."""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from podium.sandbox import Limits, Program, ProgramOutcome, SandboxError, SandboxFacts
from podium.suites.code_grading import ProgramCase, ProgramTests, judge_program

LIMITS = Limits(cpu_s=10, wall_s=30)
THREE = ProgramTests((ProgramCase("1", "1"), ProgramCase("333", "333"), ProgramCase("22", "22")))


@dataclass
class ScriptedBox:
    """A box where the program echoes its input and takes the CPU times of a script, in turn."""

    script: Sequence[float | str | SandboxError]
    name: str = "scripted"
    taken: list[bytes] = field(default_factory=list)
    alone: list[bool] = field(default_factory=list)
    limits: list[Limits] = field(default_factory=list)
    closed: int = 0

    def run(
        self,
        program: Program,
        inputs: Iterable[bytes],
        limits: Limits = LIMITS,
        *,
        alone: bool = False,
    ) -> Generator[ProgramOutcome]:
        self.limits.append(limits)
        try:
            for data in inputs:
                step = self.script[len(self.taken)]
                self.taken.append(data)
                self.alone.append(alone)
                if isinstance(step, SandboxError):
                    raise step
                yield outcome(step, data)
        finally:
            self.closed += 1

    def facts(self, image: str = "") -> SandboxFacts:
        return SandboxFacts(self.name, "3.11.2")

    def close(self) -> None:
        pass


def outcome(step: float | str, data: bytes) -> ProgramOutcome:
    """`2.5` takes so long, `wrong` is wrong, `9.0 killed` is stopped after so long.

    `2.0 killed starved` is stopped when real time is up.
    """
    words = str(step).split()
    wrong, killed = words == ["wrong"], "killed" in words
    return ProgramOutcome(
        status="time" if killed else "exited",
        exit_code=0,
        stdout=b"?" if wrong else data,
        stderr=b"",
        result=b"",
        cpu_s=0.5 if wrong else float(words[0]),
        wall_s=LIMITS.wall_s if "starved" in words else 1.0,
    )


def test_the_longest_input_comes_first_and_results_keep_the_order_of_the_tests() -> None:
    box = ScriptedBox([3.0, 2.0, 1.0])
    found = judge_program("", THREE, box, LIMITS)
    assert box.taken == [b"333", b"22", b"1"]
    assert [result.cpu_s for result in found.results] == [1.0, 3.0, 2.0]
    assert (found.passed, found.margin, found.fragile, box.closed) == (True, 0.3, False, 1)
    assert found.cpu_s == 6.0


def test_a_failure_is_the_last_test_run_unless_all_are_asked_for() -> None:
    box = ScriptedBox([1.0, "wrong", 1.0])
    assert judge_program("", THREE, box, LIMITS).verdicts == ("not run", "pass", "wrong answer")
    assert (box.taken, box.closed) == ([b"333", b"22"], 1)
    box = ScriptedBox([1.0, "wrong", 1.0])
    found = judge_program("", THREE, box, LIMITS, stop_early=False)
    assert box.taken == [b"1", b"333", b"22"]
    assert found.verdicts == ("pass", "wrong answer", "pass")


@pytest.mark.parametrize(
    ("first", "alone", "verdict", "margin"),
    [
        (9.0, 7.0, "pass", 0.7),
        (9.0, 11.0, "time limit", 1.1),
        (11.0, 9.5, "pass", 0.95),
        ("11.9 killed", 4.0, "pass", 0.4),
        ("8.5 killed", "12.1 killed", "time limit", 1.21),
    ],
)
def test_a_test_near_the_time_limit_is_settled_alone_at_the_end(
    first: float | str, alone: float | str, verdict: str, margin: float
) -> None:
    box = ScriptedBox([first, 1.0, 1.0, alone])
    found = judge_program("", THREE, box, LIMITS)
    assert box.taken == [b"333", b"22", b"1", b"333"]
    assert box.alone == [False, False, False, True]
    assert found.verdicts == ("pass", verdict, "pass")
    assert (found.reruns, found.rerun_s) == (1, 1.0)
    assert found.margin == pytest.approx(margin)
    assert found.fragile is (0.8 <= margin <= 1.2)
    assert [limits.cpu_s for limits in box.limits] == [12.0, 12.0]


@pytest.mark.parametrize("step", [12.5, "12.1 killed", "0.1 killed", "7.9 killed"])
def test_a_test_far_from_the_time_limit_is_judged_once(step: float | str) -> None:
    box = ScriptedBox([step])
    found = judge_program("", THREE, box, LIMITS)
    assert found.verdicts == ("not run", "time limit", "not run")
    assert (found.reruns, box.alone) == (0, [False])


def test_a_program_that_got_no_processor_is_run_again_and_one_that_slept_is_not() -> None:
    box = ScriptedBox(["2.0 killed starved", 1.0, 1.0, 3.0])
    assert judge_program("", THREE, box, LIMITS).passed
    assert box.alone == [False, False, False, True]
    box = ScriptedBox(["0.1 killed starved"])
    assert judge_program("", THREE, box, LIMITS).verdicts == ("not run", "time limit", "not run")


def test_a_program_that_fails_anyway_is_not_run_again() -> None:
    box = ScriptedBox([9.0, "wrong"])
    found = judge_program("", THREE, box, LIMITS)
    assert found.verdicts == ("not run", "pass", "wrong answer")
    assert (found.reruns, found.fragile) == (0, True)
    box = ScriptedBox([9.0, "wrong", 9.0, 9.0, 10.5])
    found = judge_program("", THREE, box, LIMITS, stop_early=False)
    assert found.verdicts == ("pass", "wrong answer", "time limit")
    assert (found.reruns, found.rerun_s) == (2, 2.0)


def test_inputs_are_handed_over_one_at_a_time() -> None:
    box = ScriptedBox([1.0, SandboxError("down")])
    with pytest.raises(SandboxError, match="down"):
        judge_program("", THREE, box, LIMITS)
    assert (box.taken, box.closed) == ([b"333", b"22"], 1)


@pytest.mark.parametrize("rules", ["real", "official"])
def test_a_problem_without_tests_is_refused_before_anything_runs(rules: str) -> None:
    box = ScriptedBox([])
    with pytest.raises(ValueError, match="has no tests"):
        judge_program(
            "", ProgramTests(()), box, rules="official" if rules == "official" else "real"
        )
    assert not box.limits


def test_an_expected_output_fits_below_the_output_limit() -> None:
    box = ScriptedBox([1.0])
    judge_program("", ProgramTests((ProgramCase("1", "1" * (20 << 20)),)), box, LIMITS)
    assert box.limits[0].output_bytes > 40 << 20
    judge_program("", THREE, box := ScriptedBox([1.0, 1.0, 1.0]), LIMITS)
    assert box.limits[0].output_bytes == LIMITS.output_bytes


def test_by_the_official_rules_the_order_stays_and_all_tests_share_one_limit() -> None:
    box = ScriptedBox([1.0])
    found = judge_program("", THREE, box, LIMITS, rules="official", stop_early=False)
    assert found.verdicts == ("runtime error", "not run", "not run")
    assert box.taken == [b"1"]
    assert (box.limits[0].cpu_s, box.limits[0].wall_s) == (26.0, 26.0)
