"""Every kind of system on the paper's seven workers, against a provider of all dialects.

The pool is `paper-constrained` itself, at an address of this machine. Three exams, on made-up
questions: integers, letters that may not be published, programs in a container. Every row stands,
the audit is clean, and each worker's dollars are what the provider's own bill gives by the book.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import pytest

from podium.cli.list_commands import controls, whole_catalogue
from podium.harness.errors import UserError
from podium.harness.ledger.call import Call
from podium.harness.pool_config import PoolSpec, read_pool
from podium.harness.prices import read_book
from podium.harness.prices.cost import cost
from podium.harness.records import Question
from podium.harness.run.catalogue import Catalogue, RunRequest
from podium.harness.run.run import run
from podium.harness.suite import Split
from podium.reports.audit import Audit, audit
from podium.reports.report import write_report
from podium.reports.row import TableRow
from podium.suites.aime25 import Aime25
from podium.suites.gpqa_diamond import GpqaDiamond
from tests.providers import CLIENTS_WARN, Act, Bill, ok, serve
from tests.providers.dialect import Asked
from tests.providers.paper_pool import NAME, key, write_paper_pool
from tests.reports.audit.audited_run import rows_below
from tests.sandbox.boxes import DOCKER, needs
from tests.suites.livecodebench_rows import DOUBLE, exam
from tests.suites.livecodebench_rows import row as problem

pytestmark = [
    CLIENTS_WARN,
    # The paper's dated model has an end of life; anthropic's client says so at every call.
    pytest.mark.filterwarnings("ignore:The model 'claude-sonnet-4:DeprecationWarning"),
]

FIXED = ("conductor", "conductor-untrained", "conductor-cost-aware")
SYSTEMS = (
    "conductor-adaptive", "conductor-prompted", "moa-lite", "router-knn", "compute-matched-usd",
    "best-single",
)  # fmt: skip
QUESTIONS = 2
TRAIN_CALLS = 14
"""Two train questions for each of the seven workers."""

PLAN = (
    "First two try, then one decides.\nmodel_id = [0, 5, 2]\n"
    'subtasks = ["Solve it.", "Solve it.", "Compare both and answer."]\n'
    'access_list = [[], [], ["all"]]'
)
WOOD = "xylograph"
"""Stands in every made-up question that may not be published."""


@dataclass(frozen=True, slots=True)
class MadeUpAime(Aime25):
    """Thirty made-up problems in the exam's own frame: n plus n."""

    made_up: Path = Path()

    @property
    def data_revision(self) -> str:
        return "made-up"

    def load(self, split: Split = "eval") -> list[Question]:
        return list(self.read_problems(self.made_up))


@dataclass(frozen=True, slots=True)
class MadeUpGpqa(GpqaDiamond):
    """A few made-up questions in the authors' columns."""

    made_up: Path = Path()

    @property
    def data_revision(self) -> str:
        return "made-up"

    def load(self, split: Split = "eval") -> list[Question]:
        return list(self.read_problems(self.made_up))


def written(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def exams(folder: Path) -> Catalogue:
    """Return podium's parts, three exams on made-up questions in place of the real ones."""
    sums = [{"problem": f"What is {n} plus {n}?", "answer": str(2 * n)} for n in range(1, 31)]
    choices = [
        {
            "Record ID": f"rec{n}",
            "Question": f"Which {WOOD} is the {n}th?",
            "Correct Answer": f"the {WOOD} {n}",
            **{f"Incorrect Answer {k}": f"no {WOOD} {n}{k}" for k in (1, 2, 3)},
            "High-level domain": "Botany",
            "Subdomain": "Wood",
        }
        for n in range(1, 5)
    ]
    coded = [problem(f"abc{n}_a", contest_id=f"abc{n}") for n in (998, 999)]
    parts = whole_catalogue()
    made = (
        MadeUpAime(made_up=written(folder / "aime.jsonl", sums)),
        MadeUpGpqa(made_up=written(folder / "gpqa.jsonl", choices)),
        exam(folder / "data", *coded),
    )
    return replace(parts, suites={**parts.suites, **{one.name: one for one in made}})


def answers(asked: Asked) -> Act:
    """Plan where a plan is asked for; else answer as the question wants it, at times right."""
    if "model_id = [" in asked.prompt:
        return ok(PLAN)
    if "Print twice" in asked.prompt:
        return ok(DOUBLE)
    if WOOD in asked.prompt:
        return ok("I know this one.\n\nAnswer: B")
    return ok(r"I compute. The answer is \boxed{2}.")


@dataclass(frozen=True, slots=True)
class Sat:
    """What a run of all systems left behind."""

    bill: Bill
    rows: list[Call]
    audit: Audit
    table: Mapping[tuple[str, str], TableRow]
    pool: PoolSpec


def sat(folder: Path, suites: tuple[str, ...], box: str | None = None) -> Sat:
    home = folder / "run"
    with serve(answers) as server:
        pool = write_paper_pool(folder, server)
        one = Path(pool)  # conductor-adaptive is refused on live workers of whom it knows no card
        one.write_text(one.read_text().replace("A small open model for", "Fast open model for"))
        request = RunRequest(
            suites=suites, systems=SYSTEMS, pool=pool, log_dir=home, limit=QUESTIONS, epochs=1,
            train_on=("practice-integer",), train_calls=TRAIN_CALLS, box=box, display="none",
            max_usd=Decimal(5),
        )  # fmt: skip
        outcome = run(request, exams(folder), controls())
    assert (outcome.finished, list(outcome.trouble)) == (True, [])
    rows = write_report([home], folder / "report").rows
    table = {(row.suite, row.system): row for row in rows}
    return Sat(server.bill, rows_below(home), audit(home), table, read_pool(pool))


@pytest.fixture(scope="module")
def worded(tmp_path_factory: pytest.TempPathFactory) -> Sat:
    """The two exams that run no programs."""
    return sat(tmp_path_factory.mktemp("worded"), ("aime25", "gpqa-diamond"))


def stands(found: Sat, suites: tuple[str, ...]) -> None:
    wanted = {(suite, system) for suite in suites for system in SYSTEMS}
    assert {name for name in found.table if name in wanted} == wanted
    for name in wanted:
        row = found.table[name]
        assert (row.n_graded, row.n_asked) == (QUESTIONS, QUESTIONS), name
        assert row.usd_per_query is not None, name
        assert row.n_unpriced == 0, name


def is_clean(found: Sat) -> None:
    faults = {one.invariant: one.faults for one in found.audit.verdicts if one.status == "fail"}
    assert faults == {}
    weak = {(one.invariant, said) for one in found.audit.verdicts for said, _ in one.reasons}
    assert weak == {
        ("I10", "no invoice was given (--invoice FILE)"),
        ("I17", "not cut into shards"),
        ("I18", "not cut into shards"),
    }


def is_priced_by_the_book(found: Sat) -> None:
    book = read_book(found.pool.prices)
    billed: dict[str, Decimal] = {}
    for slot in found.pool.slots:
        price = book.price(slot.price_ref)
        assert price is not None
        mine = [cost(one.usage, price) for one in found.bill.billed if one.key == key(slot.name)]
        billed[slot.name] = sum((usd for usd in mine if usd is not None), Decimal(0))
    ours: dict[str, Decimal] = dict.fromkeys(billed, Decimal(0))
    embedded: set[Decimal | None] = set()
    for row in found.rows:
        if row.model.startswith("embedded/"):
            embedded.add(row.usd)
            continue
        assert row.usd is not None
        ours[row.role] += row.usd
    assert ours == billed
    assert embedded == {Decimal(0)}
    bought = [one for one in found.rows if one.shared_from is None]
    assert len(bought) < len(found.rows), "systems share draws"
    assert len(found.bill.lines) == sum(not one.model.startswith("embedded/") for one in bought)


def test_every_row_stands_on_exams_in_words(worded: Sat) -> None:
    stands(worded, ("aime25", "gpqa-diamond"))


def test_the_audit_of_exams_in_words_is_clean(worded: Sat) -> None:
    is_clean(worded)


def test_dollars_on_exams_in_words_are_the_providers_bill_by_the_book(worded: Sat) -> None:
    is_priced_by_the_book(worded)


def test_a_prompted_conductors_plans_are_valid_and_some_answers_right(worded: Sat) -> None:
    planned = worded.table["aime25", "conductor-prompted"]
    assert (planned.invalid_plan_pct, planned.steps) == (0.0, 3.0)
    assert planned.accuracy == 0.5
    assert worded.table["aime25", "conductor-adaptive"].conductor_s is not None


def test_an_adaptive_conductor_writes_only_valid_plans_for_seven_foreign_workers(
    worded: Sat,
) -> None:
    for suite in ("aime25", "gpqa-diamond"):
        row = worded.table[suite, "conductor-adaptive"]
        assert (row.n_invalid_plans, row.invalid_plan_pct) == (0, 0.0)
        assert row.steps is not None
        assert row.steps >= 1


@pytest.mark.docker
def test_programs_in_a_container_stand_too_with_a_clean_audit_and_the_books_dollars(
    tmp_path: Path,
) -> None:
    found = sat(tmp_path, ("livecodebench",), needs(DOCKER))
    stands(found, ("livecodebench",))
    is_clean(found)
    is_priced_by_the_book(found)
    assert found.table["livecodebench", "moa-lite"].accuracy == 1.0
    assert found.table["livecodebench", "conductor-adaptive"].n_invalid_plans == 0


@pytest.mark.parametrize("system", FIXED)
@pytest.mark.parametrize("suite", ["aime25", "gpqa-diamond", "livecodebench"])
def test_a_conductor_of_another_pool_is_refused_before_anything_is_asked(
    system: str, suite: str, tmp_path: Path
) -> None:
    with serve(answers) as server:
        pool = write_paper_pool(tmp_path, server)
        request = RunRequest((suite,), (system,), pool, tmp_path / "run", limit=QUESTIONS)
        with pytest.raises(UserError) as refused:
            run(request, exams(tmp_path), controls())
    said = str(refused.value)
    assert said.startswith(f"{system} was trained for the 8 workers of pool 'rehearsal' alone")
    assert f"pool '{NAME}' has other workers or another order" in said
    assert said.endswith("Use conductor-prompted, which plans with the pool's conductor model.")
    assert server.bill.lines == []
    assert not (tmp_path / "run").exists()


def test_the_pool_at_a_local_address_is_the_shipped_one_in_all_but_addresses(
    tmp_path: Path,
) -> None:
    with serve() as server:
        made, shipped = read_pool(write_paper_pool(tmp_path, server)), read_pool(NAME)
    for one, other in zip(made.slots, shipped.slots, strict=True):
        assert one.args.items() >= other.args.items()
        assert one.model_copy(update={"args": {}}) == other.model_copy(update={"args": {}})
    assert (made.label, made.prices) == (shipped.label, shipped.prices)
