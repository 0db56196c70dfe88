"""What the index of the matrix says of each cell, read back from the file that a browser reads."""

import base64
import gzip
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import QuestionResult
from podium.reports.derived import Comparison, compare
from podium.reports.row import TableRow
from podium.reports.site import index
from podium.reports.site.index import TYPES, Index, SiteBlock, index_files, site_blocks
from tests.harness.runs import BOOK, Crew, Exam, Heard, failing_on, number, sit, steps, wrong

CANARY = "canary-6b1f"


def unpacked(text: str) -> bytes:
    """Return what a data file holds."""
    assert text.startswith("podium.put(")
    assert text.endswith(");\n")
    return gzip.decompress(base64.b64decode(text.split('"')[3]))


@dataclass(frozen=True, slots=True)
class Read:
    """A data file as a browser reads it."""

    head: dict[str, Any]
    data: bytes

    def cells(self, about: dict[str, Any], columns: dict[str, int]) -> dict[str, Any]:
        """Return the columns of a block, a line for each of its rows."""
        shape = (len(about["rows"]), len(about["questions"]) * about["epochs"])
        size = shape[0] * shape[1]
        return {
            name: np.frombuffer(self.data, kind, size, columns[name]).reshape(shape)
            for name, (kind, _) in TYPES.items()
        }


def read(text: str) -> Read:
    raw = unpacked(text)
    length = int.from_bytes(raw[:4], "little")
    assert (4 + length) % 8 == 0, "columns begin aligned"
    return Read(json.loads(raw[4 : 4 + length]), raw[4 + length :])


def only_cells(shown: Comparison) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the head of the index, its one block and the cells of that."""
    found = read(index_files(list(site_blocks(shown)))["data/index.js"])
    (about,) = found.head["blocks"]
    return found.head, about, found.cells(about, about["columns"])


def compared(*dirs: Path) -> Comparison:
    return compare(load_runs(dirs)[0])


def unsure(heard: Heard) -> str:
    """Know half of the answers always, of the others every second; say nothing to the first."""
    asked = int(number(heard))
    if asked == 1:
        return "I cannot say"
    return number(heard) if asked <= 3 or heard.epoch % 2 else wrong(heard)


def with_results(shown: Comparison, *results: QuestionResult) -> Comparison:
    """Return a comparison whose first row has other results."""
    ((row, system_run), *others), *blocks = shown.pairs
    first = (row, replace(system_run, attempts=results, epochs=1))
    return replace(shown, pairs=((first, *others), *blocks))


def assert_counts(row: TableRow, states: Sequence[int]) -> None:
    """Check that so many cells of each state are what the table says."""
    counts = Counter(states)
    graded = sum(counts[one] for one in (index.RIGHT, index.WRONG, index.PARTLY))
    graded += counts[index.NO_ANSWER] + counts[index.INVALID_PLAN]
    assert graded == row.n_graded
    assert counts[index.NO_ANSWER] == row.n_unparsed
    assert counts[index.INVALID_PLAN] == (row.n_invalid_plans or 0)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems on six questions, four times each; one question could not be graded."""
    logs = tmp_path_factory.mktemp("several")
    broken = Crew(sage=lambda heard: "broken" if number(heard) == "6" else unsure(heard))
    sit(logs, "single:sage", crew=broken, exam=Exam(size=6), epochs=4)
    sit(logs, "single:clerk", steps("clerk"), exam=Exam(size=6), epochs=4)
    return logs


def test_counts_of_cells_are_the_figures_of_the_table(several: Path) -> None:
    shown = compared(several)
    _, about, cells = only_cells(shown)
    for at, (row, _) in enumerate(shown.pairs[0]):
        assert_counts(row, cells["state"][at].tolist())
        right = int((cells["state"][at] == index.RIGHT).sum())
        grades = cells["score"][at].reshape(len(about["questions"]), about["epochs"])
        graded = grades[~np.isnan(grades).all(axis=1)]
        assert right == int(np.nansum(graded))
        assert row.accuracy == pytest.approx(float(np.nanmean(graded, axis=1).mean()))


def test_a_cell_has_the_figures_of_its_query_at_its_place(several: Path) -> None:
    shown = compared(several)
    (block,) = site_blocks(shown)
    _, _, cells = only_cells(shown)
    places = block.places()
    for at, (_, system_run) in enumerate(block.pairs):
        for one in system_run.attempts:
            place = places[one.question, one.epoch]
            assert place == block.questions.index(one.question) * 4 + one.epoch - 1
            usd = one.totals.usd
            assert usd is not None
            assert cells["usd"][at, place] == np.float32(usd)
            assert cells["calls"][at, place] == one.totals.calls
            told = (one.totals.tokens_in or 0) + (one.totals.tokens_out or 0)
            assert cells["tokens"][at, place] == told


def test_the_head_names_rows_runs_subjects_and_the_reference(several: Path) -> None:
    head, about, _ = only_cells(compared(several))
    assert head["runs"] == [several.name]
    assert (about["name"], about["label"], about["shown"]) == ("numbers", "live", True)
    assert about["questions"] == [f"q{n}" for n in range(1, 7)]
    assert set(about["subjects"]) == {"saying"}
    assert set(about["difficulties"]) == {None}
    systems = [one["system"] for one in about["rows"]]
    assert systems[about["reference"]] == "single:sage"
    assert [one["row"] for one in about["rows"]] == [0, 1]


def test_reasons_are_grouped_and_an_answer_that_was_not_found_is_one(several: Path) -> None:
    head, _, cells = only_cells(compared(several))
    reasons = Counter(head["reasons"][code] for code in cells["reason"].ravel().tolist() if code)
    unscored = [reason for reason in reasons if "the box is down" in reason]
    assert [reasons[one] for one in unscored] == [4]
    wrong_ones = int((cells["state"] == index.NO_ANSWER).sum())
    assert reasons[index.UNREAD] == wrong_ones > 0


def test_every_state_has_a_number_of_its_own(several: Path) -> None:
    shown = compared(several)
    one = next(one for one in shown.pairs[0][0][1].attempts if one.graded)
    kinds = {
        "q1": replace(one, question="q1", value=1.0),
        "q2": replace(one, question="q2", value=0.0, parsed=True),
        "q3": replace(one, question="q3", value=0.25),
        "q4": replace(one, question="q4", value=None, reason="Gone('after 3.27 s')"),
        "q5": replace(one, question="q5", value=0.0, parsed=False),
        "q6": replace(one, question="q6", value=0.0, parsed=False, plan_fault="no step"),
    }
    head, about, cells = only_cells(with_results(shown, *kinds.values()))
    first = cells["state"][0][:: about["epochs"]].tolist()
    assert first == [index.RIGHT, index.WRONG, index.PARTLY, index.UNSCORED, 5, 6]
    said = [head["reasons"][code] for code in cells["reason"][0][:: about["epochs"]].tolist()]
    assert said == ["", "", "", "Gone('after … s')", index.UNREAD, "no step"]
    assert set(cells["state"][0][1 :: about["epochs"]].tolist()) == {index.NOT_ASKED}


def test_what_is_unknown_is_no_number(several: Path) -> None:
    shown = compared(several)
    one = shown.pairs[0][0][1].attempts[0]
    totals = replace(one.totals, usd=None, tokens_out=None)
    _, _, cells = only_cells(with_results(shown, replace(one, totals=totals, critical_path_s=None)))
    assert np.isnan(cells["usd"][0, 0])
    assert np.isnan(cells["seconds"][0, 0])
    assert cells["tokens"][0, 0] == index.NONE


def test_recorded_replies_have_no_seconds(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", label="recorded")
    _, _, cells = only_cells(compared(tmp_path))
    assert np.isnan(cells["seconds"]).all()


def test_a_private_suite_gives_no_word_of_an_error(tmp_path: Path) -> None:
    secret = Exam(size=3, publishable=False)
    crew = Crew(sage=failing_on("Say 2", lambda heard: CANARY))
    sit(tmp_path, "single:sage", crew=crew, exam=secret, publishable=False)
    shown = compared(tmp_path)
    row = shown.pairs[0][0][1].attempts
    leaking = [replace(one, reason=f"Error: {CANARY}") if one.reason else one for one in row]
    (text,) = index_files(list(site_blocks(with_results(shown, *leaking)))).values()
    found = read(text)
    assert found.head["blocks"][0]["shown"] is False
    assert any("withheld" in reason for reason in found.head["reasons"])
    assert CANARY.encode() not in unpacked(text)


def test_two_runs_of_one_system_share_a_column_and_have_names_of_their_own(tmp_path: Path) -> None:
    for name in ("before", "after"):
        sit(tmp_path / name, "single:sage", exam=Exam(size=2))
    head, about, _ = only_cells(compared(tmp_path / "before", tmp_path / "after"))
    assert [one["name"] for one in about["rows"]] == ["single:sage", "single:sage#2"]
    assert [one["column"] for one in about["rows"]] == [0, 0]
    assert {head["runs"][one["run"]] for one in about["rows"]} == {"before", "after"}


def test_blocks_of_one_suite_have_names_of_their_own(tmp_path: Path) -> None:
    dearer = {**BOOK.as_json(), "sha256": "c" * 64}
    sit(tmp_path / "a", "single:sage", exam=Exam(size=2))
    sit(tmp_path / "b", "single:sage", exam=Exam(size=2), prices=dearer)
    sit(tmp_path / "c", "single:sage", exam=Exam(size=2), label="rehearsal")
    blocks = list(site_blocks(compared(tmp_path)))
    assert [one.name for one in blocks] == ["numbers-live", "numbers-live.2", "numbers-rehearsal"]
    assert [one.first for one in blocks] == [0, 1, 2]


def test_the_same_logs_give_the_same_bytes(several: Path) -> None:
    first, second = (index_files(list(site_blocks(compared(several)))) for _ in range(2))
    assert first == second


def enlarged(shown: Comparison, questions: int) -> tuple[SiteBlock, ...]:
    """Return the blocks of a comparison as if its first system had been asked so many questions."""
    (((row, system_run), *others),) = shown.pairs
    one = system_run.attempts[0]
    more = range(questions - len({each.question for each in system_run.attempts}))
    new = (replace(one, question=f"z{n:06}") for n in more)
    first = (row, replace(system_run, attempts=(*system_run.attempts, *new)))
    return tuple(site_blocks(replace(shown, pairs=((first, *others),))))


def test_a_million_cells_are_in_one_file_and_more_in_a_file_for_each_block(several: Path) -> None:
    (block,) = site_blocks(compared(several))

    def sized(questions: int, *, served: bool = False) -> Index:
        return Index((replace(block, questions=("q",) * questions),), served)

    assert (sized(125_000).size, sized(125_000).files) == (1_000_000, ("index",))
    apart = sized(125_001)
    assert (apart.cells, apart.files) == ("apart", ("index", "index/numbers"))
    assert sized(250_000).cells == "apart"
    assert (sized(250_001).cells, sized(250_001).files) == ("nowhere", ("index",))
    assert sized(250_001, served=True).files == ("index", "index/numbers")


def test_a_block_apart_has_its_cells_and_reasons_in_a_file_of_its_own(several: Path) -> None:
    shown = compared(several)
    _, _, whole = only_cells(shown)
    blocks = enlarged(shown, 125_001)
    files = index_files(blocks)
    assert [*files] == ["data/index.js", "data/index/numbers.js"]
    head = read(files["data/index.js"]).head
    assert (head["cells"], "columns" in head["blocks"][0]) == ("apart", False)
    part = read(files["data/index/numbers.js"])
    cells = part.cells(head["blocks"][0], part.head["columns"][0])
    first = whole["state"].shape[1]
    assert np.array_equal(cells["state"][:, :first], whole["state"])
    assert not cells["state"][1, first:].any()
    assert index.UNREAD in part.head["reasons"]
    assert Index(blocks).text("index/other") is None


def test_a_run_of_which_nothing_was_asked_has_a_block_without_questions(several: Path) -> None:
    shown = compared(several)
    ((row, system_run), *_), *_ = shown.pairs
    nothing = replace(shown, pairs=(((row, replace(system_run, attempts=())),),))
    head, about, cells = only_cells(nothing)
    assert (about["questions"], cells["state"].size, head["reasons"]) == ([], 0, [""])
    assert row.usd_per_query is None or isinstance(row.usd_per_query, Decimal)
