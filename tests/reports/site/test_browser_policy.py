"""What our policy lets a page do, shown by pages that try."""

from pathlib import Path

import pytest

from podium.reports.site.pages import CSP
from tests.reports.site.conftest import Look, Open, Watch

PAGE = """<!doctype html><html data-ready="1"><head>
<meta http-equiv="Content-Security-Policy" content="{csp}"></head><body>{body}</body></html>"""


@pytest.mark.parametrize(
    "body",
    [
        "<script>document.title = 'ran'</script>",
        "<img src=x onerror=\"document.title = 'ran'\">",
        "<a id=a href=\"javascript:document.title = 'ran'\">x</a>",
        "<script src='https://example.org/x.js'></script>",
    ],
)
def test_a_text_that_became_a_tag_would_still_not_run(
    tmp_path: Path, site_page: Open, watch: Watch, body: str
) -> None:
    (tmp_path / "page.html").write_text(PAGE.format(csp=CSP, body=body))
    page = site_page(tmp_path / "page.html", Look())
    if "javascript:" in body:
        page.click("#a")
    assert page.title() != "ran"
    assert watch.errors, "the browser says that it was refused"
    watch.errors.clear()
    watch.requests.clear()
