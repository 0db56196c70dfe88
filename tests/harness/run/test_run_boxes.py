"""The box of a run: chosen once, asked before the first call, named in every log, always closed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podium.cli import main
from podium.harness.boxes import Boxes, OpenBox, inspect_box, open_run_box
from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.harness.model_judge import box_for_logs, regrade_dir
from podium.harness.records import Grade, Question
from podium.harness.run.experiment import read_experiment
from tests.harness.toy_run import Toy, calls, toy_catalogue, toy_pool, toy_run


@dataclass
class Cupboard:
    """Where boxes are kept, with a diary; each box is its own name."""

    image_id: str = "sha256:aaa"
    missing: str = ""
    no_engine: str = ""
    access_log: list[str] = field(default_factory=list[str])

    @property
    def boxes(self) -> Boxes:
        return Boxes(open=self.open, describe=self.describe, engine=lambda: self.no_engine)

    def open(self, name: str, most: int | None) -> Any:
        self.access_log.append(f"open {name} {most}")
        return SimpleNamespace(name=name, close=lambda: self.access_log.append(f"close {name}"))

    def describe(self, box: Any, image: str) -> Any:
        self.access_log.append(f"facts {image}")
        if self.missing:
            raise UserError(self.missing)
        return SimpleNamespace(
            python="3.11.2", image=image, image_id=self.image_id, packages=("six==1.16.0",)
        )


class Boxed(Toy):
    """The toy as an exam that runs programs: it needs its box open."""

    needs_box = True
    image = "toy-image"

    def __init__(self, cupboard: Cupboard, broken: Sequence[str] = ()) -> None:
        super().__init__()
        self.cupboard = cupboard
        self.broken = broken

    def grade(self, question: Question, reply: str, box: Any = None) -> Grade:
        assert f"close {box.name}" not in self.cupboard.access_log[-1:]
        if question.id in self.broken:
            raise OSError("the engine is down")
        return super().grade(question, reply)


def run_boxed(
    log_dir: Path, cupboard: Cupboard, broken: Sequence[str] = (), **changes: Any
) -> bool:
    toy_pool(log_dir)
    return toy_run(log_dir, Boxed(cupboard, broken), cupboard.boxes, limit=2, **changes).finished


def test_a_box_is_opened_once_asked_first_and_closed_at_the_end(tmp_path: Path) -> None:
    cupboard = Cupboard()
    assert run_boxed(tmp_path / "run", cupboard, max_sandboxes=3)
    assert cupboard.access_log == ["open docker 3", "facts toy-image", "close docker"]


def test_the_log_says_what_programs_ran_on(tmp_path: Path) -> None:
    run_boxed(tmp_path / "run", Cupboard())
    ((system_run,), _) = load_runs([tmp_path / "run"])
    assert system_run.facts.box == "docker"
    assert system_run.facts.box_facts is not None
    assert system_run.facts.box_facts.short == "Python 3.11.2, toy-image aaa"
    assert system_run.facts.box_facts.packages == ("six==1.16.0",)


def test_a_box_that_lacks_its_image_is_refused_before_the_first_call(tmp_path: Path) -> None:
    cupboard = Cupboard(missing="There is no image toy-image: podium sandbox build makes it.")
    with pytest.raises(UserError, match="There is no image toy-image"):
        run_boxed(tmp_path / "run", cupboard)
    assert cupboard.access_log[-1] == "close docker"
    assert calls(tmp_path / "run") == []
    assert not (tmp_path / "run").exists()


class Picky(Boxed):
    """The toy as an exam that needs a package that the cupboard's boxes lack."""

    def refusal(self, box: str, packages: Sequence[str]) -> str:
        return f"The box {box} has only {' '.join(packages)}: take another."


def test_a_box_that_lacks_a_suites_packages_is_refused_before_the_first_call(
    tmp_path: Path,
) -> None:
    cupboard = Cupboard()
    toy_pool(tmp_path / "run")
    with pytest.raises(UserError, match=r"The box docker has only six==1\.16\.0: take another"):
        toy_run(tmp_path / "run", Picky(cupboard), cupboard.boxes, limit=2)
    assert cupboard.access_log[-1] == "close docker"
    assert calls(tmp_path / "run") == []
    assert not (tmp_path / "run").exists()


def test_without_an_engine_a_run_that_names_no_box_is_refused(tmp_path: Path) -> None:
    cupboard = Cupboard(no_engine="No engine answers at nowhere: start it.")
    with pytest.raises(UserError, match="not available: No engine answers at nowhere: start it"):
        run_boxed(tmp_path / "run", cupboard)
    assert run_boxed(tmp_path / "run", cupboard, box="bwrap")


def test_less_than_one_program_at_a_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--max-sandboxes must be at least 1, not 0"):
        run_boxed(tmp_path / "run", Cupboard(), max_sandboxes=0)


def test_a_box_is_closed_when_a_run_breaks_off(tmp_path: Path) -> None:
    cupboard = Cupboard()
    with pytest.raises(KeyboardInterrupt), open_run_box(cupboard.boxes, "docker", []):
        raise KeyboardInterrupt
    assert cupboard.access_log == ["open docker None", "close docker"]


def test_another_image_or_another_box_is_another_experiment(tmp_path: Path) -> None:
    run_boxed(tmp_path / "run", Cupboard())
    with pytest.raises(UserError, match="sandbox image for toy is 'sha256:aaa', not 'sha256:bbb'"):
        run_boxed(tmp_path / "run", Cupboard(image_id="sha256:bbb"))
    with pytest.raises(UserError, match="its box is 'docker', not 'bwrap'"):
        run_boxed(tmp_path / "run", Cupboard(), box="bwrap")


def test_a_resumed_run_takes_the_box_it_had(tmp_path: Path) -> None:
    run_boxed(tmp_path / "run", Cupboard(), box="bwrap")
    resumed = Cupboard()
    assert run_boxed(tmp_path / "run", resumed, systems=("single:bob",))
    assert resumed.access_log[0] == "open bwrap None"


def test_gaps_are_regraded_in_the_box_that_graded_the_rest(tmp_path: Path) -> None:
    log_dir, cupboard = tmp_path / "run", Cupboard()
    run_boxed(log_dir, cupboard, broken=("eval-0",), box="bwrap")
    suites = {"toy": Boxed(cupboard)}
    catalogue = replace(toy_catalogue(), suites=suites, boxes=cupboard.boxes)
    with box_for_logs(log_dir, None, catalogue) as box:
        assert box is not None
        assert box.name == "bwrap"
        other = OpenBox("docker", box.box, box.facts, 1)
        with pytest.raises(UserError, match="was graded in box bwrap, not docker"):
            regrade_dir(log_dir, suites, other)
        (result,) = regrade_dir(log_dir, suites, box)
    assert (result.graded, result.still_unscored) == (1, 0)
    assert cupboard.access_log[-1] == "close bwrap"


def test_after_all_was_graded_in_another_box_log_and_experiment_say_so(tmp_path: Path) -> None:
    log_dir, cupboard = tmp_path / "run", Cupboard()
    run_boxed(log_dir, cupboard, box="bwrap")
    newer = Cupboard(image_id="sha256:bbb")
    suites = {"toy": Boxed(newer)}
    with open_run_box(newer.boxes, "docker", suites.values()) as box:
        regrade_dir(log_dir, suites, box, everything=True)
    ((system_run,), _) = load_runs([log_dir])
    assert system_run.facts.box == "docker"
    assert system_run.facts.box_facts is not None
    assert system_run.facts.box_facts.image_id == "sha256:bbb"
    experiment = read_experiment(log_dir)
    assert experiment is not None
    assert (experiment.box, experiment.images) == ("docker", {"toy": "sha256:bbb"})
    assert run_boxed(log_dir, newer)


def test_an_inspected_box_says_what_it_is_or_what_it_lacks() -> None:
    cupboard = Cupboard()
    suites = [Toy(), Boxed(cupboard)]
    said = "Box 'docker': Python 3.11.2, toy-image aaa, 1 third-party package."
    assert inspect_box(cupboard.boxes, "docker", suites) == ([said], [])
    cupboard.missing = "There is no image toy-image."
    assert inspect_box(cupboard.boxes, "docker", suites) == (
        [],
        ["for toy: There is no image toy-image."],
    )


def test_what_suites_of_several_images_lack_alike_is_said_once() -> None:
    cupboard = Cupboard(missing="The engine is down.")
    suites = [Boxed(cupboard), Boxed(cupboard)]
    suites[1].name, suites[1].image = "other", "other-image"
    _, missing = inspect_box(cupboard.boxes, "docker", suites)
    assert missing == ["for toy, other: The engine is down."]


def test_doctor_looks_into_a_box(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--box", "subprocess"]) == 0
    assert "Box 'subprocess': Python 3." in capsys.readouterr().out
    assert main(["doctor", "--box", "cellar"]) == 1
    assert "'cellar'. Known boxes" in capsys.readouterr().out
