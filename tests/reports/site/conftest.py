"""A real browser on our pages: no console error, and no request but for files of the page."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
REQUIRED = "PODIUM_REQUIRE_BROWSER"
READY = 'html[data-ready="1"]'
"""What our scripts set when they have drawn; our policy forbids the driver's own way to wait."""
SWITCHES = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
WAIT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Look:
    """How a reader looks at a page."""

    dark: bool = False
    javascript: bool = True
    width: int = 1280
    height: int = 800
    scale: float = 1.0
    """Zoom: a page at 400 % has a quarter of the width."""
    ready: bool | None = None
    """Whether to wait until a script has drawn; None: where scripts run."""


@dataclass(slots=True)
class Watch:
    """What pages did that they should not."""

    errors: list[str] = field(default_factory=list[str])
    requests: list[str] = field(default_factory=list[str])

    def hear(self, said: ConsoleMessage) -> None:
        """Keep what the browser calls an error, and what our policy refused."""
        if said.type == "error" or "Content Security Policy" in said.text:
            self.errors.append(said.text)

    def refuse(self, asked: Dialog) -> None:
        """Keep that a page opened a dialogue, and close it."""
        self.errors.append(f"dialogue: {asked.message}")
        asked.dismiss()


Open = Callable[..., Page]


def serious_faults(page: Page) -> list[str]:
    """Return what keeps people from reading a page, by axe-core's judgement."""
    # It would fetch style sheets, which our policy refuses.
    found = Axe().run(page, options={"preload": False}).response["violations"]
    return [one["id"] for one in found if one["impact"] in ("serious", "critical")]


@pytest.fixture(scope="module")  # its loop stands in the way of whoever runs one later
def chromium() -> Iterator[Browser]:
    """One browser for a module; skipped without, failed where PODIUM_REQUIRE_BROWSER is set."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        said = "there is no Chromium here: `make browser` installs it"
        if os.environ.get(REQUIRED):
            pytest.fail(said)
        pytest.skip(said)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=SWITCHES.split())
        yield browser
        browser.close()


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def site_page(chromium: Browser, watch: Watch) -> Iterator[Open]:
    """Return what opens a page: `site_page(PATH or URL, Look(...))`; its sins fail the test."""
    contexts = []

    def open_page(place: Path | str, look: Look = Look(), address: str = "") -> Page:
        url = (place.resolve().as_uri() if isinstance(place, Path) else place) + address
        context = chromium.new_context(
            viewport={"width": int(look.width / look.scale), "height": look.height},
            device_scale_factor=look.scale,
            color_scheme="dark" if look.dark else "light",
            java_script_enabled=look.javascript,
            offline=isinstance(place, Path),
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        page.on("console", lambda said: watch.hear(said))  # it marks what it is given
        page.on("pageerror", lambda error: watch.errors.append(str(error)))
        page.on("dialog", lambda asked: watch.refuse(asked))
        page.on("request", lambda request: watch.requests.append(request.url))
        page.goto(url)
        if look.javascript if look.ready is None else look.ready:
            page.wait_for_selector(READY, state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    own = ("file:", "data:", "blob:", "http://127.0.0.1", "http://localhost")
    assert watch.errors == []
    assert [url for url in watch.requests if not url.startswith(own)] == []
