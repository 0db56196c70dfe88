"""The page of a served request in a browser: its plan as a graph, its calls, texts where kept."""

from collections.abc import Iterator

import pytest

from tests.harness.ledger.served_journal import served, trace_of
from tests.reports.site.conftest import Look, Open, serious_faults
from tests.reports.site.viewed import viewed


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    served(folder / "kept", "What is 6 times 7?", keep_texts=True)
    served(folder / "bare", "What is 6 times 7?", system="bare")
    with viewed(folder) as address:
        yield address


def test_the_page_of_a_request_draws_its_plan_and_shows_what_was_kept(
    url: str, site_page: Open
) -> None:
    page = site_page(url, Look(ready=False))
    assert serious_faults(page) == []
    page.locator("a", has_text=trace_of(1)).last.click()
    page.wait_for_selector('html[data-ready="1"]', state="attached")
    said = page.inner_text("main")
    for word in (trace_of(1), "served, not graded", "podium/pair", "answered 200", "alice"):
        assert word in said, word
    assert page.locator("svg.plan-graph .plan-step").count() == 2
    assert "The answer is" in said
    assert serious_faults(page) == []
    page.select_option("#query-suite", label="bare")
    page.get_by_text("Its texts were not kept").wait_for()
    assert "The answer is" not in page.inner_text("main")
