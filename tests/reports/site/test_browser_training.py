"""The training page in a real browser."""

from pathlib import Path

import pytest

from podium.reports.site.build import write_training_site
from tests.reports.site.conftest import Look, Open, serious_faults
from tests.reports.site.trained import trained


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of three seeds of a training."""
    home = tmp_path_factory.mktemp("trainings")
    folders = [trained(home / f"<b>seed-{seed}", seed) for seed in range(3)]
    return write_training_site(folders, home / "page").folder / "training.html"


def test_curves_are_drawn_in_place_of_the_image_and_a_tip_has_their_figures(
    training: Path, site_page: Open
) -> None:
    page = site_page(training)
    assert page.locator("#curves img").count() == 0
    assert page.locator("#curves svg[role=img]").count() == 10
    first = page.locator("#curves svg").first
    first.hover(position={"x": 300, "y": 100})
    assert "seed-" in (first.locator("[aria-label=tip] text").text_content() or "")
    assert page.locator("#curves b, #curves style").count() == 0
    assert "<b>seed-0" in (page.locator("#curves .key").first.text_content() or "")


def test_without_scripts_the_page_has_the_image_and_every_table(
    training: Path, site_page: Open
) -> None:
    page = site_page(training, Look(javascript=False))
    assert page.locator("#curves img").evaluate("image => image.naturalWidth") > 500
    assert page.locator("table").count() == 4


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_is_wider_than_a_narrow_window(
    training: Path, site_page: Open, *, dark: bool
) -> None:
    page = site_page(training, Look(width=320, dark=dark))
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert serious_faults(page) == []
