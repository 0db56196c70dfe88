"""The query page in a real browser: both systems, the plan drawn, every call, and only as text."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from podium.harness.ledger.call import shortest
from podium.harness.ledger.details import QueryDetail, QuestionFilter, details
from podium.harness.records import READ_BY, Grade, Question
from podium.harness.suite import Split
from podium.harness.system import planned
from podium.harness.workflow import Step, Workflow
from podium.reports.report import report_of
from podium.reports.site import SiteOptions, write_site
from tests.harness.foreign_tasks import SEEN
from tests.harness.runs import Crew, Exam, failing_on, sit, steps, wrong
from tests.harness.test_inspect_tasks import act, ran
from tests.providers.scripted import Heard
from tests.providers.server import serve
from tests.reports.site.conftest import Look, Open, serious_faults
from tests.reports.site.hostile import CLASSICS, hostile_run
from tests.reports.site.viewed import viewed

SECRET = "Say what nobody may pass on"
LONG = "word " * 20_000
# No time, size or digest on a page has these digits by chance.
PRIVATE_ANSWER = "860714935271"


@dataclass(frozen=True, slots=True)
class OddlyNamed(Exam):
    """Questions whose ids need quoting in an address."""

    def load(self, split: Split = "eval") -> list[Question]:
        """Return two."""
        return [
            Question(id=f"q/{n}, 1", text=f"Say {n}", kind="integer", target=str(n), topic="saying")
            for n in (1, 2)
        ]

    def grade(self, question: Question, reply: str, box: object = None) -> Grade:
        """Name a rule of the table and a comparison that it does not hold."""
        grade = Exam.grade(self, question, reply, box)
        return replace(grade, metadata={READ_BY: "label-line", "look": "exact"})


@dataclass(frozen=True, slots=True)
class Private(Exam):
    """What it asks may not be passed on."""

    def load(self, split: Split = "eval") -> list[Question]:
        """Return one."""
        return [Question(id="q1", text=SECRET, kind="integer", target=PRIVATE_ANSWER, topic="")]


def at_length(heard: Heard) -> str:
    return LONG


PLAN = planned(
    lambda question, pool: Workflow(
        (Step("clerk", "Find out."), Step("sage"), Step("clerk", "Decide.", (0, 1)), Step("sage"))
    )
)


def aside(work: Callable[..., Path], *arguments: Path) -> Path:
    """Return what a function does in a thread: the browser's driver has a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work, *arguments).result()


def built(home: Path) -> Path:
    """Sit one exam by two systems, of which one was interrupted, and by a worker who says much."""
    exam, run = OddlyNamed(), home / "run"
    sit(run, "single:clerk", steps("clerk"), Crew(clerk=failing_on("Say 2", wrong)), exam=exam)
    sit(run, "single:clerk", steps("clerk"), Crew(clerk=wrong), exam=exam)
    sit(run, "planner", PLAN, exam=exam, ask_grader=True)
    sit(run, "single:sage", crew=Crew(sage=at_length), exam=exam)
    write_site([run], report_of([run]), home / "site")
    return home


def private_run(run: Path) -> Path:
    sit(run, "planner", PLAN, Crew(sage=wrong), exam=Private(publishable=False))
    return run


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return aside(built, tmp_path_factory.mktemp("query"))


@pytest.fixture(scope="module")
def url(home: Path) -> Iterator[str]:
    with viewed(home / "run") as address:
        yield address


def address(question: str, *systems: str, suite: str = "numbers") -> str:
    return f"#/q/{suite}/{quote(question, safe='')}/1?sys={','.join(map(quote, systems))}"


BOTH = address("q/1, 1", "planner", "single:clerk")


def pages(home: Path) -> Path:
    return home / "site" / "query.html"


def query(home: Path, system: str, question: str) -> QueryDetail:
    (found,) = details(home / "run", QuestionFilter(question, system))
    return found


def system_box(page: Page, name: str) -> Page:
    """Return the part of a page that shows a system."""
    return page.locator(".query-system").filter(has=page.get_by_role("heading", name=name))  # pyright: ignore[reportReturnType]


def unfold(page: Page) -> None:
    """Open all that is folded, also what that holds."""
    page.evaluate(
        "async () => { for (let shut; (shut = document.querySelector('details:not([open])'));) {"
        " shut.open = true; await new Promise((done) => setTimeout(done)); } }"
    )


def test_two_systems_stand_side_by_side_with_their_verdicts(home: Path, site_page: Open) -> None:
    page = site_page(pages(home), address=BOTH)
    assert page.locator("h1").inner_text() == "numbers: q/1, 1, epoch 1"
    assert page.locator(".query-system h2").all_inner_texts() == ["planner", "single:clerk"]
    assert page.locator(".query-verdict").all_inner_texts() == ["✓ right (1)", "✗ wrong (0)"]
    left, right = [one.bounding_box() for one in page.locator(".query-system").all()]
    assert left
    assert right
    assert (left["y"], left["x"] + left["width"] <= right["x"]) == (right["y"], True)


def test_question_answer_and_verdict_come_before_the_calls_and_figures_come_last(
    home: Path, site_page: Open
) -> None:
    page = site_page(pages(home), address=BOTH)
    text = page.inner_text("main")
    order = ["Question", "right (1)", "answer found", "Reply (", "What was answered, and what it"]
    assert [text.index(one) for one in order] == sorted(text.index(one) for one in order)
    box = page.locator(".query-system").last.inner_text()
    assert box.index("wrong") < box.index("answer found") < box.index("Reply (")


def played(home: Path) -> Path:
    """Let two systems play a task with tools."""
    with serve(act) as server:
        ran(home, server, "looking", "moa-lite", "single:a", limit=1)
    write_site([home / "run"], report_of([home / "run"]), home / "site")
    return home


def test_a_task_is_shown_turn_by_turn(tmp_path: Path, site_page: Open) -> None:
    aside(played, tmp_path)
    suite = quote("foreign_tasks.py@looking", safe="")
    page = site_page(pages(tmp_path), address=address("0", "moa-lite", "single:a", suite=suite))
    heads = page.locator(".query-turn h4").all_inner_texts()
    assert heads == ["Turn 1: a acted", "Turn 2: a acted"] * 2
    turn = page.locator(".query-turn").first
    tool = turn.locator(".query-call h5").filter(has_text="tool").inner_text()
    assert tool == 'tool look({"place":"box"})'
    assert f"{SEEN} the box." in turn.inner_text()
    turn.locator("summary", has_text="3 calls").click()
    expect(turn.locator(".query-call h5").filter(has_text="call of")).to_have_count(3)
    assert page.locator(".query-system h3", has_text="Calls by step").count() == 0
    (found,) = details(tmp_path / "run", QuestionFilter("0", "moa-lite"))
    assert f"So far ${shortest(found.row.usd_list)} listed" in page.inner_text("main")
    assert serious_faults(page) == []


def test_the_rule_that_decided_links_to_its_row_with_examples(home: Path, site_page: Open) -> None:
    page = site_page(pages(home), address=BOTH)
    link = page.locator(".query-system a[href='rules.html#rule-label-line']").first
    assert link.locator("xpath=../..").inner_text() == "label-line, exact"
    rules_page = site_page(pages(home).with_name("rules.html"), Look(width=320, ready=False))
    row = rules_page.locator("#rule-label-line").inner_text()
    assert "an answer line, if nothing else stands before the word" in row
    assert "## Answer 42 → 42" in " ".join(row.split())
    assert serious_faults(rules_page) == []
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert rules_page.evaluate(wide)


def test_the_plan_is_drawn_with_a_box_for_each_step_and_an_arrow_for_each_read(
    home: Path, site_page: Open
) -> None:
    page = site_page(pages(home), address=BOTH)
    drawn = system_box(page, "planner").locator("svg[role=img]")
    found = query(home, "planner", "q/1, 1")
    assert drawn.locator(".plan-step").count() == len(found.steps) == 4
    assert drawn.locator(".plan-read").count() == sum(len(one.reads) for one in found.steps) == 2
    assert drawn.locator("title").text_content() == "Plan of planner"
    assert "step 3: clerk, reads the question and steps 1 and 2" in str(
        drawn.locator("desc").text_content()
    )
    listed = system_box(page, "planner").locator(".query-plan li")
    assert listed.all_inner_texts()[1] == "step 2: sage: reads the question only"


def test_every_call_says_its_tokens_and_dollars_as_the_ledger_has_them(
    home: Path, site_page: Open
) -> None:
    page = site_page(pages(home), address=BOTH)
    for system in ("planner", "single:clerk"):
        calls = query(home, system, "q/1, 1").calls
        boxes = system_box(page, system).locator(".query-call").all()
        assert len(boxes) == len(calls)
        for box, call in zip(boxes, calls, strict=True):
            said = box.locator("dl").all_inner_texts()
            lines = [line for one in said for line in one.split("\n")]
            shown = dict(zip(lines[::2], lines[1::2], strict=True))
            assert shown["listed"] == f"${shortest(call.usd_list)}"
            assert shown["billed"] == f"${shortest(call.usd)}"
            assert shown["input, uncached"] == f"{call.input_uncached}"
            assert shown["output"] == f"{call.output}"
            assert shown["latency"] == f"{call.latency_s:.3f} s"


def test_graders_and_attempts_that_were_not_graded_stand_apart(home: Path, site_page: Open) -> None:
    page = site_page(pages(home), address=BOTH)
    assert page.get_by_role("heading", name="Calls of graders").count() == 1
    page = site_page(pages(home), address=address("q/2, 1", "single:clerk"))
    apart = page.locator("section").filter(
        has=page.get_by_role("heading", name="Attempts that were not graded")
    )
    assert "error: " in apart.last.inner_text()


def test_the_ledger_is_there_with_every_column(home: Path, site_page: Open) -> None:
    page = site_page(pages(home), address=BOTH)
    unfold(page)
    found = query(home, "planner", "q/1, 1").calls
    table = page.locator("table").filter(has_text="Every attempt to call a model").first
    assert table.locator("tbody tr").count() == len(found)
    assert table.locator("thead th").all_inner_texts()[1:] == list(found[0].as_json())


def test_another_choice_is_another_address_and_the_same_address_the_same_page(
    home: Path, site_page: Open
) -> None:
    page = site_page(pages(home), address=BOTH)
    page.locator("#query-beside").select_option("single:sage")
    expect(page.locator(".query-system h2").last).to_have_text("single:sage")
    page.get_by_role("link", name="next question").click()
    expect(page.locator("h1")).to_have_text("numbers: q/2, 1, epoch 1")
    page.locator("#query-system").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".query-system h2").first).to_have_text("single:clerk")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".query-system h2").first).to_have_text("planner")
    again = site_page(page.url)
    assert again.locator("h1").inner_text() == "numbers: q/2, 1, epoch 1"
    assert again.locator(".query-system h2").all_inner_texts() == ["planner", "single:sage"]
    assert again.get_by_role("link", name="next question").count() == 0


def test_an_address_that_nobody_has_says_so_and_shows_the_first(
    home: Path, site_page: Open
) -> None:
    page = site_page(pages(home), address=address("q9", "planner", "nobody"))
    said = page.get_by_role("status").inner_text()
    assert said.startswith("There is no q9 here; the first one is shown. There is no nobody here;")
    assert page.locator("h1").inner_text() == "numbers: q/1, 1, epoch 1"


def test_a_text_that_was_cut_says_how_long_it_is_and_who_has_it(
    home: Path, site_page: Open, url: str
) -> None:
    for place, whole in ((pages(home), False), (f"{url}/query.html", True)):
        page = site_page(place, address=address("q/1, 1", "single:sage"))
        reply = page.locator("details").filter(has_text="Reply (100,000 characters)")
        reply.locator("summary").click()
        text = str(reply.locator("pre").text_content())
        assert text == (LONG if whole else LONG[:32_000])
        said = "The first 32,000 of 100,000 characters; podium view has them all."
        assert (said in reply.inner_text()) != whole


@pytest.mark.slow
def test_what_attacks_is_shown_as_text(tmp_path: Path, site_page: Open) -> None:
    run = aside(hostile_run, tmp_path / "run")
    write_site([run], report_of([run]), tmp_path / "site")
    page = site_page(pages(tmp_path))
    ours = page.locator("script").count()
    for _ in range(3):
        unfold(page)
        assert any(text in page.locator("#query").inner_text() for text in CLASSICS)
        assert "pwned" not in page.title().replace("document.title='pwned'", "")
        assert page.locator("#query").locator("script, iframe, img, style, base, math").count() == 0
        assert page.locator("script").count() <= ours + 6, "but for our own data files"
        assert page.locator("[onerror], [onload], [ontoggle]").count() == 0
        page.get_by_role("link", name="next question").click()
        page.wait_for_timeout(200)


def test_texts_that_may_not_be_passed_on_are_withheld_and_the_page_says_so(
    tmp_path: Path, site_page: Open
) -> None:
    run = aside(private_run, tmp_path / "run")
    write_site([run], report_of([run]), tmp_path / "site")
    page = site_page(pages(tmp_path))
    unfold(page)
    said = page.locator("body").inner_text()
    assert "does not allow its texts to be shared" in said
    for text in (SECRET, PRIVATE_ANSWER, "the answer must be", "Find out."):
        assert text not in said, text
    assert page.locator(".plan-step").count() == 4
    assert page.locator(".query-call").count() == 4


def test_a_site_without_texts_says_where_they_are(home: Path, site_page: Open) -> None:
    bare, run = home / "bare", home / "run"
    write_site([run], report_of([run]), bare, SiteOptions(texts=False))
    page = site_page(bare / "query.html")
    assert (
        "queries are not included; `podium view` shows them." in page.locator("#query").inner_text()
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nobody_is_kept_out_of_it(home: Path, site_page: Open, dark: bool) -> None:
    page = site_page(pages(home), Look(dark=dark), address=BOTH)
    unfold(page)
    assert serious_faults(page) == []


def test_nothing_stands_out_at_the_side_of_a_narrow_page(home: Path, site_page: Open) -> None:
    for look in (Look(width=320), Look(width=1280, scale=4.0)):
        page = site_page(pages(home), look, address=BOTH)
        wide, there = page.evaluate(
            "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide <= there


def test_without_javascript_it_says_what_to_do_instead(home: Path, site_page: Open) -> None:
    page = site_page(pages(home), Look(javascript=False))
    assert "podium audit DIR --query ID" in page.locator("main").inner_text()


def test_inspect_view_opens_at_the_question_and_at_the_call(url: str, site_page: Open) -> None:
    page = site_page(f"{url}/query.html", address=BOTH)
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="open in Inspect View").first.click()
    expect(opened.value.locator("body")).to_contain_text("Sample q/1, 1 (Epoch 1)")
    with page.context.expect_page() as opened:
        system_box(page, "planner").get_by_role("link", name="this call in Inspect View").nth(
            2
        ).click()
    expect(opened.value.get_by_text("Decide.").first).to_be_in_viewport()


def test_a_page_of_somebody_else_can_run_no_data_file(url: str, chromium: Browser) -> None:
    page = chromium.new_page()
    script = f"{url}/data/index.js"
    reading = "<script>podium = { put: (name) => { document.title = name; } };</script>"
    stolen = f'{reading}<script src="{script}"></script>'
    evil = "http://evil.example/"
    page.route(evil, lambda route: route.fulfill(body=stolen, content_type="text/html"))
    with page.expect_event("requestfailed") as failed:
        page.goto(evil)
    assert failed.value.url == script
    assert page.title() == ""
    page.close()


def test_the_files_themselves_name_no_inspect_view(home: Path, site_page: Open) -> None:
    page = site_page(pages(home), address=BOTH)
    assert page.get_by_role("link", name="Inspect View").count() == 0
