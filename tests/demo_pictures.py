"""Make the documentation's pictures from the demo's pages: `python -m tests.demo_pictures DIR`.

DIR is the folder that `podium demo --out DIR` wrote. Needs Chromium (`make browser`).
"""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, FloatRect, Page, ViewportSize, sync_playwright

from tests import ROOT
from tests.reports.site.conftest import NAMES, SWITCHES

IMAGES = ROOT / "docs" / "images"
SIZE = {"width": 1200, "height": 1000}
NARROW = {"width": 320, "height": 640}
BLOCK = "practice-composed"
QUERY = f"#/q/{BLOCK}/{BLOCK}-eval-0004/1?sys=conductor,moa-lite"
"""A question that one of the two answers correctly."""
DRAWN_MS = 2000
TOP = """([name, part]) => {
    const head = [...document.querySelectorAll("h2")].find((h) => h.textContent.startsWith(name));
    const shown = part ? head.closest("section").querySelector(part) : head;
    return shown.getBoundingClientRect().top + scrollY;
}"""
"""Returns where a suite's part of the comparison begins, or an element in it, in pixels."""


def opened(browser: Browser, address: str, size: Mapping[str, int] = SIZE, **look: Any) -> Page:
    """Return a page of a site after its script has drawn it."""
    viewport = ViewportSize(width=size["width"], height=size["height"])
    page = browser.new_context(viewport=viewport, **look).new_page()
    page.goto(address)
    page.wait_for_timeout(DRAWN_MS)
    return page


def block(page: Page, name: str, size: Mapping[str, int] = SIZE, part: str = "") -> None:
    """Take a picture of the top of a suite's part of the comparison, or of an element in it."""
    top = page.evaluate(TOP, [BLOCK, part]) - 20
    clip = FloatRect(x=0, y=top, width=size["width"], height=size["height"])
    page.screenshot(path=IMAGES / name, full_page=True, clip=clip)


def pictures(browser: Browser, site: str) -> None:
    """Take every picture of a site that docs/ shows."""
    index = opened(browser, f"{site}/index.html")
    block(index, "page-comparison.png")
    block(index, "page-table.png", {"width": 1200, "height": 570}, "table")
    dark = opened(browser, f"{site}/index.html", color_scheme="dark")
    block(dark, "page-comparison-dark.png")
    block(opened(browser, f"{site}/index.html", NARROW), "page-narrow.png", NARROW)
    matrix = opened(browser, f"{site}/matrix.html#/m/{BLOCK}?mode=different")
    matrix.screenshot(path=IMAGES / "page-matrix.png")
    opened(browser, f"{site}/query.html{QUERY}").screenshot(path=IMAGES / "page-query.png")
    opened(browser, f"{site}/audit.html").screenshot(path=IMAGES / "page-audit.png")


def main() -> None:
    chromium = next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None or len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=SWITCHES.split())
        pictures(browser, Path(sys.argv[1], "site").resolve().as_uri())
        browser.close()


if __name__ == "__main__":
    main()
