"""How fast the site is: a million calls built, the matrix of MMLU's size scrolled in Chromium.

    python tests/benchmarks/site_speed.py /scratch/folder              # the matrix alone, a minute
    python tests/benchmarks/site_speed.py /scratch/folder --calls 1000 # so many logs of 1,000 calls

Measured are (1) `podium report --site` of logs as ledger_speed.py makes them: wall time, processor
time and the peak of all processes' memory together, and the size of the index; (2) a page of the
matrix with made-up verdicts of 30 systems on 14,042 questions, and of 1,000,000 cells: bytes of the
index, first paint, time until it is drawn, and the time between frames while it scrolls.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import QuestionResult
from podium.reports.derived import Comparison, compare
from podium.reports.site.index import Index, site_blocks
from podium.reports.site.pages import ASSETS, VENDOR, render_page
from tests.benchmarks.ledger_speed import CALLS, made, measure, rehearse

READY = 'html[data-ready="1"]'
SIZES = {"MMLU": (30, 14_042), "a million cells": (50, 20_000), "cells apart": (75, 14_042)}
FRAMES = 300
UNLIMITED = ("--disable-frame-rate-limit", "--disable-gpu-vsync")
"""So that a frame takes as long as its work does, and not a 60th of a second."""
LIMIT_MS = 16
SCROLL = """async (frames) => {
  const board = document.getElementById("board");
  const deltas = [];
  let before = await new Promise(requestAnimationFrame);
  for (let at = 0; at < frames; at += 1) {
    board.scrollTop += at % 50 === 49 ? 20000 : 97;  // steadily, with a leap now and then
    const now = await new Promise(requestAnimationFrame);
    deltas.push(now - before);
    before = now;
  }
  return deltas;
}"""
PAINT = "() => performance.getEntriesByName('first-contentful-paint').map((one) => one.startTime)"


def sat(one: QuestionResult, number: int, luck: random.Random, skill: float) -> QuestionResult:
    """Return a result on another question, with figures of its own."""
    tokens = luck.randrange(50, 9000)
    usd = Decimal(tokens * luck.randrange(1, 60)) / 10**7
    totals = replace(one.totals, tokens_in=luck.randrange(50, 900), tokens_out=tokens, usd=usd)
    return replace(
        one,
        question=f"subject-{number % 57:02d}-{number:05d}",
        topic=f"subject {number % 57}",
        value=float(luck.random() < skill),
        parsed=luck.random() < 0.98,
        critical_path_s=round(luck.random() * 20, 6),
        totals=totals,
    )


def made_up(source: Comparison, systems: int, questions: int) -> Comparison:
    """Return a comparison of so many systems on so many questions, from one real row."""
    row, system_run = source.pairs[0][0]
    luck = random.Random(0)

    def pairs() -> Iterator[Any]:
        for at in range(systems):
            skill = 0.3 + 0.6 * at / systems
            results = (sat(system_run.attempts[0], n, luck, skill) for n in range(questions))
            name = f"system-{at:02d}"
            verdict = "reference" if at == 3 else "inconclusive"
            yield (
                replace(row, system=name, verdict=verdict),
                replace(system_run, attempts=tuple(results), epochs=1),
            )

    found = tuple(pairs())
    return replace(source, rows=tuple(row for row, _ in found), pairs=(found,))


def written(shown: Comparison, out: Path) -> int:
    """Write the matrix page alone; return the bytes of its index."""
    index, scripts = Index(tuple(site_blocks(shown))), out / "assets"
    site = SimpleNamespace(pages=[("matrix.html", "Matrix")], made="made up")
    for folder in (scripts, out / "data" / "index"):
        folder.mkdir(parents=True, exist_ok=True)
    for folder in (ASSETS, VENDOR):
        for one in folder.iterdir():
            if one.is_file():
                (scripts / one.name).write_bytes(one.read_bytes())
    (out / "matrix.html").write_text(render_page("matrix.html", site=site, index=index))
    texts = {name: index.text(name) or "" for name in index.files}
    for name, text in texts.items():
        (out / "data" / f"{name}.js").write_text(text)
    return sum(map(len, texts.values()))


def looked_at(page: Page, place: Path) -> str:
    """Open a page and scroll; return first paint, time until drawn and frame times."""
    began = time.perf_counter()
    page.goto(place.as_uri(), wait_until="commit")
    page.wait_for_selector(READY, state="attached", timeout=120_000)
    drawn = time.perf_counter() - began
    deltas: list[float] = sorted(page.evaluate(SCROLL, FRAMES))
    within = sum(delta < LIMIT_MS for delta in deltas) / len(deltas)
    paint = page.evaluate(PAINT)[0] / 1000
    return (
        f"first paint {paint:.2f} s, drawn after {drawn:.2f} s; {len(deltas)} frames: median "
        f"{statistics.median(deltas):.1f} ms, longest {deltas[-1]:.1f} ms, "
        f"{100 * within:.1f} % under {LIMIT_MS} ms"
    )


def scroll(scratch: Path, browser: str) -> None:
    """Measure pages of the matrix in a browser."""
    source = compare(load_runs([rehearse(scratch / "small")])[0])
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=browser, args=["--no-sandbox", "--disable-gpu", *UNLIMITED]
        )
        for name, (systems, questions) in SIZES.items():
            out = scratch / name.replace(" ", "-")
            began = time.process_time()
            size = written(made_up(source, systems, questions), out)
            took = time.process_time() - began
            page = opened.new_page(viewport={"width": 1280, "height": 900})
            print(f"{name}: {systems} x {questions:,}, index {size / 1e6:.1f} MB ({took:.0f} s)")
            print(f"  {looked_at(page, out / 'matrix.html')}", flush=True)
            page.close()
        opened.close()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description="How fast the site is.")
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--calls", type=int, default=0, help="build so many logs of 1,000 calls")
    parser.add_argument("--browser", default="/usr/bin/chromium")
    asked = parser.parse_args()
    if asked.calls:
        place = asked.scratch / "source"
        source = next(place.glob("*.eval"), None) or rehearse(place)
        folder, out = made(asked.scratch, source, asked.calls), asked.scratch / "site"
        words = ["report", str(folder), "--out", str(asked.scratch / "report"), "--site", str(out)]
        print(f"{asked.calls * CALLS:,} calls: {measure(words)}")
        largest = max(out.glob("data/**/*.js"), key=lambda one: one.stat().st_size)
        print(f"  largest data file: {largest.name}, {largest.stat().st_size / 1e6:.1f} MB")
    scroll(asked.scratch, asked.browser)


if __name__ == "__main__":
    main()
