"""Every query of a run in full, in the files of a site: whole, exact, and nothing of a secret."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from inspect_ai.model import ChatMessageUser

from podium.cli import main
from podium.harness.ledger.details import QuestionFilter, as_json, details
from podium.harness.ledger.logs import Json
from podium.harness.pool import Pool
from podium.harness.records import CONDUCTOR, Answer, Grade, Question
from podium.harness.system import planned
from podium.harness.workflow import MALFORMED, Step, Workflow
from podium.reports.audit import Audit, AuditFault, audit
from podium.reports.report import report_of
from podium.reports.site import texts, write_site
from podium.reports.site.index import SHARD, site_blocks
from podium.reports.site.texts import LONGEST, RowTexts, row_texts, text_files, text_shard
from tests.harness.runs import BoxDown, Crew, Exam, sit, steps
from tests.providers.scripted import Heard
from tests.reports.audit.audited_run import edit_samples, model_events
from tests.reports.site.hostile import ALL, CLASSICS, LINE, ODD, hostile_run
from tests.reports.site.site_bytes import files_with, queries_in, texts_in

PLANTED = {
    name: f"canary{name}{at}x7f3a"
    for at, name in enumerate(
        (
            *("question", "option", "target", "metadata", "prompt", "reply", "subtask"),
            *("malformed", "found", "explanation", "rule", "error", "grader"),
            *("subject", "difficulty"),
        )
    )
}
"""A word for each place where a text of a suite may stand."""


class CanaryExam(Exam):
    """Questions that are full of canaries, and so is what their grader says."""

    def load(self, split: str = "eval") -> Sequence[Question]:
        """Return two questions."""
        return [
            Question(
                id=f"q{at}",
                text=f"Say {at} {PLANTED['question']}",
                kind="choice",
                target=PLANTED["target"],
                topic=f"{PLANTED['subject']} {at}",
                metadata={
                    "choices": [PLANTED["option"]],
                    "note": PLANTED["metadata"],
                    "difficulty": PLANTED["difficulty"],
                },
            )
            for at in (1, 2)
        ]

    def grade(self, question: Question, reply: str, box: object = None) -> Grade:
        """Fail on the second question of a system that replies at length."""
        if "broken" in reply:
            raise BoxDown(f"the box is down: {PLANTED['grader']}")
        facts = {"rule": PLANTED["rule"], "reason": PLANTED["rule"]}
        return Grade(0.0, PLANTED["found"], PLANTED["explanation"], facts)


def canary_run(home: Path, *, publishable: bool) -> Path:
    """Let four systems sit it: one that plans, one whose provider fails, one that plans wrongly."""
    exam = CanaryExam(publishable=publishable)
    crew = Crew(
        sage=lambda heard: PLANTED["reply"],
        clerk=lambda heard: f"broken {PLANTED['reply']}",
        planner=lambda heard: PLANTED["reply"],
    )

    def failing(heard: Heard) -> str:
        raise RuntimeError(f"the provider quotes {PLANTED['error']}")

    async def conducted(question: Question, pool: Pool) -> Answer:
        asked = [ChatMessageUser(content=f"{question.text} {PLANTED['prompt']}")]
        await pool.ask(CONDUCTOR, asked, "conductor: plan")
        said = PLANTED["subtask"]
        plan = Workflow((Step("clerk", said), Step("sage", said, "all")))
        return await planned(lambda *_: plan)(question, pool)

    async def malformed(question: Question, pool: Pool) -> Answer:
        await pool.ask(CONDUCTOR, [ChatMessageUser(content=question.text)], "conductor: plan")
        return Answer("", plan=f"{MALFORMED}{PLANTED['malformed']}")

    sit(home, "single:sage", crew=crew, exam=exam)
    sit(home, "single:clerk", steps("clerk"), crew, exam=exam)
    sit(home, "conductor", conducted, crew, exam=exam)
    sit(home, "failing", crew=replace(crew, sage=failing), exam=exam)
    sit(home, "conductor-prompted", malformed, crew, exam=exam)
    return home


def site_of(home: Path, out: Path) -> Path:
    """Write the site of a run and return its folder."""
    return write_site([home], report_of([home]), out).folder


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("private")
    return site_of(canary_run(home / "run", publishable=False), home / "site")


@pytest.mark.parametrize("place", PLANTED)
def test_no_byte_of_a_site_holds_a_text_of_a_private_suite(private: Path, place: str) -> None:
    assert files_with(private, PLANTED[place]) == []


def test_the_same_canaries_are_found_in_the_site_of_a_suite_that_is_shown(tmp_path: Path) -> None:
    site = site_of(canary_run(tmp_path / "run", publishable=True), tmp_path / "site")
    found = {place for place, word in PLANTED.items() if files_with(site, word)}
    assert found == PLANTED.keys() - {"metadata"}  # of which a page shows only the choices


def test_of_a_private_suite_there_are_figures_and_no_text(private: Path) -> None:
    for row in range(5):
        for query in texts_in(private, row):
            assert query["shown"] is False
            texts = ("input", "choices", "target", "answer", "rule")
            assert [query[name] for name in texts] == [None] * 5
            assert {step["subtask"] for step in query["steps"]} <= {None}
            assert {(one["prompt"], one["reply"]) for one in query["calls"]} == {(None, None)}
            assert query["sums"]["calls"] >= 0


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_run(tmp_path_factory.mktemp("hostile") / "run")


@pytest.mark.slow
def test_texts_that_attack_survive_as_data_and_long_ones_are_cut(
    hostile: Path, tmp_path: Path
) -> None:
    report = report_of([hostile])
    rows = row_texts([hostile], site_blocks(report.shown), {})
    with text_files(rows) as files:
        assert [*files] == [f"data/text/{row}/0.js" for row in range(3)]
        for name, write in files.items():
            (tmp_path / name).parent.mkdir(parents=True)
            assert callable(write)
            write(tmp_path / name)
            assert (tmp_path / name).read_bytes().isascii()
    by_system = {row.system: texts_in(tmp_path, at) for at, row in enumerate(report.rows)}
    for at, one in enumerate(by_system["conductor"]):
        assert one["input"] == f"{CLASSICS[at]} {ODD}"
        if at != 4:  # whose provider fails
            assert [step["subtask"] for step in one["steps"]] == [ALL, CLASSICS[0]]
            assert [call["reply"] for call in one["calls"]] == [ALL, ALL]
    (cut,) = [call["reply"] for call in by_system["single:sage"][9]["calls"]]
    assert cut == {"cut": LINE[:LONGEST], "length": len(LINE)}


def test_no_text_that_attacks_reaches_a_terminal_as_it_is(
    hostile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for brief in ([], ["--brief"]):
        asked = f"q0/{CLASSICS[0]}"
        assert main(["audit", str(hostile), "--query", asked, *brief]) == 0
        said = capsys.readouterr().out
        assert said.count(", epoch 1: ") == 3
        assert all(one.isprintable() or one in "\n\ufffe" for one in said)


def test_half_a_character_and_a_reply_of_several_parts_survive(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", crew=Crew(sage=lambda heard: "half \ud83d"), limit=1)
    parts: list[Json] = [
        {"type": "reasoning", "reasoning": "thought \ud83d"},
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two"},
    ]

    def edit(sample: Json) -> None:
        sample["input"] += "\ud83d"
        (event,) = model_events(sample)
        event["working_time"] = float("inf")
        del event["completed"]
        event["output"]["choices"][0]["message"]["content"] = parts

    (one,) = queries_in(text_shard(rows_of(tmp_path)["single:sage"], 0))
    assert one["calls"][0]["reply"] == "half \\ud83d"
    edit_samples(tmp_path, edit)
    (one,) = queries_in(text_shard(rows_of(tmp_path)["single:sage"], 0))
    assert one["calls"][0]["reply"] == "[reasoning] thought \\ud83d\n\none\ntwo"
    assert one["calls"][0]["latency_s"] is None
    assert one["input"] == "Say 1\\ud83d"


@pytest.mark.slow
def test_a_server_sends_texts_of_any_length(hostile: Path) -> None:
    one = rows_of(hostile)["single:sage"]
    assert queries_in(text_shard(one, 0))[9]["calls"][0]["reply"] == LINE
    with pytest.raises(IndexError):
        text_shard(one, 1)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four questions to one system, three of them to another."""
    home = tmp_path_factory.mktemp("numbers")
    sit(home, "single:sage")
    sit(home, "pair", steps("sage", "clerk"), limit=3)
    return home


def rows_of(home: Path, found: Audit | None = None) -> dict[str, RowTexts]:
    """Return what the texts of each row are made of, by system."""
    report = report_of([home])
    audits = {home: found} if found else {}
    rows = row_texts([home], site_blocks(report.shown), audits)
    assert [one.row for one in rows] == [*range(len(rows))]
    return dict(zip((one.system for one in report.rows), rows, strict=True))


def test_each_query_stands_where_its_cell_says_and_others_are_null(numbers: Path) -> None:
    rows = rows_of(numbers)
    asked = queries_in(text_shard(rows["single:sage"], 0))
    assert [one["question"] for one in asked] == ["q1", "q2", "q3", "q4"]
    asked = queries_in(text_shard(rows["pair"], 0))
    assert [one and one["question"] for one in asked] == ["q1", "q2", "q3", None]


def test_a_file_has_so_many_queries_and_the_next_one_the_others(numbers: Path) -> None:
    others = {(f"never{at}", 1): at for at in range(SHARD - 1)}
    places = {**others, ("q3", 1): SHARD - 1, ("q1", 1): SHARD, ("never", 1): SHARD + 1}
    one = replace(rows_of(numbers)["single:sage"], places=places)
    assert [*one.numbers] == [0, 1]
    first, last = (queries_in(text_shard(one, number)) for number in one.numbers)
    assert first[:-1] == [None] * (SHARD - 1)
    assert first[-1]["question"] == "q3"
    assert [found and found["question"] for found in last] == ["q1", None]


def test_a_file_says_what_the_command_says_and_the_row_sums(numbers: Path) -> None:
    pair = rows_of(numbers)["pair"]
    found = queries_in(text_shard(pair, 0))[1]
    (detail,) = details(numbers, QuestionFilter("q2", "pair"))
    assert found == {"row": pair.row, **as_json(detail, numbers), "checks": []}
    dollars = [Decimal(call["usd_list"]) for call in found["calls"]]
    assert Decimal(found["sums"]["usd_list"]) == sum(dollars) == detail.row.usd_list


def test_the_same_logs_give_the_same_bytes(numbers: Path) -> None:
    first, again = rows_of(numbers), rows_of(numbers)
    assert [text_shard(one, 0) for one in first.values()] == [
        text_shard(one, 0) for one in again.values()
    ]


def test_a_query_has_the_status_of_every_invariant_and_its_own_faults(numbers: Path) -> None:
    found = audit(numbers)
    planted = (
        AuditFault("I1", "numbers pair", "sample q2 epoch 1", "its tokens do not add up"),
        AuditFault("I1", "numbers single:sage", "sample q2 epoch 1", "another system's"),
    )
    first, *others = found.verdicts
    first = replace(first, status="fail", faults=planted)
    pair = rows_of(numbers, replace(found, verdicts=(first, *others)))["pair"]
    for one in queries_in(text_shard(pair, 0))[:3]:
        checks = one["checks"]
        assert [check["invariant"] for check in checks] == [f"I{at}" for at in range(1, 19)]
        assert (checks[0]["title"], checks[0]["status"]) == ("token partition", "fail")
        said = [words for check in checks for words in check["said"]]
        assert said == (["its tokens do not add up"] if one["question"] == "q2" else [])


def test_above_so_many_queries_a_site_has_no_texts_and_says_so(numbers: Path) -> None:
    rows = [*rows_of(numbers).values()]
    many = [replace(one, places={("q", at): at for at in range(texts.MOST)}) for one in rows]
    with text_files(many) as files:
        assert files == {}
    assert texts.left_out(many, None) == (
        "The texts of 40,000 queries are not included; `podium view` shows them.",
    )
    assert texts.left_out(many, True) == texts.left_out(rows, None) == ()
    with text_files(rows, False) as files:
        assert files == {}
