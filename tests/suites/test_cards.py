"""Every suite has a card whose facts are complete, and that agrees with what the suite loads."""

from pathlib import Path

import pytest

from podium.cli import main
from podium.cli.list_commands import whole_catalogue
from podium.harness.errors import UserError
from podium.harness.run.catalogue import show_suites
from podium.harness.suite import Card
from podium.suites import SUITES
from podium.suites.base import card, cards
from podium.suites.bigcodebench import skipped_tasks
from podium.suites.data import data_folder, sources
from podium.suites.data_command import sources_of
from tests.suites.toy_card import CARD

TABLE = """
[toy]
title = "A toy"
paper = "none: made for a test"
sizes = { eval = 4 }
licence = "Apache-2.0"
human = "none published"
about = "One\\nparagraph."
changes = ["1-A (2026-11-21): first version"]
"""


def read(tmp_path: Path, text: str) -> Card:
    path = tmp_path / "cards.toml"
    path.write_text(text)
    return cards(path)["toy"]


def loadable() -> list[str]:
    """Return the suites whose files are all here, or that generate their questions."""
    folder = data_folder()
    return [
        name
        for name, suite in SUITES.items()
        if all((folder / sources()[one].file).is_file() for one in sources_of(suite))
    ]


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_s_card_is_complete_and_tells_of_its_version(name: str) -> None:
    suite = SUITES[name]
    assert isinstance(suite.card, Card)
    assert all((suite.card.title, suite.card.paper, suite.card.licence, suite.card.about))
    assert suite.card.human
    assert suite.card.changes[-1].startswith(f"{suite.version} ("), "the newest line is last"
    assert set(suite.card.sizes) <= set(suite.splits)


@pytest.mark.parametrize("name", [name for name in SUITES if SUITES[name].card.teacher])
def test_a_suite_that_may_teach_another_has_a_train_split(name: str) -> None:
    assert "train" not in SUITES[name].splits
    assert "train" in SUITES[SUITES[name].card.teacher].splits


def test_doctor_proposes_what_may_teach(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["doctor", "--suite", "aime25", "--system", "router-knn", "--pool", "rehearsal"]
    assert main(words) == 1
    assert "--train-on SUITE, such as math500." in capsys.readouterr().out


def test_a_card_without_a_suite_is_noticed() -> None:
    assert [name for name in cards() if name not in SUITES] == []


@pytest.mark.parametrize("name", loadable())
def test_a_suite_loads_as_many_questions_as_its_card_says(name: str) -> None:
    suite = SUITES[name]
    for split, size in suite.card.sizes.items():
        assert len(suite.load(split)) == size


@pytest.mark.parametrize("name", SUITES)
def test_the_card_is_printed_with_all_its_facts(name: str) -> None:
    suite = SUITES[name]
    said = " ".join(show_suites(whole_catalogue(), name)[1].split())
    facts = [suite.card.title, suite.card.paper, suite.card.licence, suite.card.human]
    facts += [suite.version, suite.data_revision, suite.dates, suite.card.about]
    facts += [f"{split} {size}" for split, size in suite.card.sizes.items()]
    assert [fact for fact in facts if " ".join(fact.split()) not in said] == []


def test_the_list_of_suites_has_a_line_for_each() -> None:
    table, _, described = show_suites(whole_catalogue(), None)[1].partition("\n\n")
    assert [line.split()[0] for line in table.splitlines()] == ["suite", *SUITES]
    assert "livecodebench-train" in described


def test_a_release_of_livecodebench_has_its_own_size_and_a_window_is_counted_when_loaded() -> None:
    assert SUITES["livecodebench"].card.sizes == {"eval": 175}
    assert SUITES["livecodebench-v3"].card.sizes == {"eval": 612}
    assert SUITES["livecodebench-v3@2024-01-01.."].card.sizes == {}
    window = show_suites(whole_catalogue(), "livecodebench-v3@2024-01-01..")[1]
    assert "known when they are loaded" in window


def test_bigcodebench_tells_how_many_tasks_are_not_asked() -> None:
    assert card("bigcodebench").sizes["eval"] == 148 - len(skipped_tasks())


def test_a_table_becomes_a_card_with_its_paragraph_on_one_line(tmp_path: Path) -> None:
    assert read(tmp_path, TABLE).about == "One paragraph."
    assert read(tmp_path, TABLE).changes == CARD.changes


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('licence = "Apache-2.0"\n', "", r"cards\.toml, \[toy\], licence: Field required"),
        ('"A toy"', '" "', r"cards\.toml, \[toy\], title: String should have at least 1"),
        ("eval = 4", "exam = 4", r"cards\.toml, \[toy\], sizes\.exam\.\[key\]: Input should be"),
        ("eval = 4", "eval = 0", r"cards\.toml, \[toy\], sizes\.eval: Input should be greater"),
        ("(2026-11-21)", "(soon)", r"cards\.toml, \[toy\], changes\.0: String should match"),
        ("title =", "titel =", r"cards\.toml, \[toy\], title: Field required"),
        ("[toy]", "[toy", r"cards\.toml is not valid TOML: "),
    ],
)
def test_a_mistake_in_a_card_names_table_and_field(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=said):
        read(tmp_path, TABLE.replace(old, new))
