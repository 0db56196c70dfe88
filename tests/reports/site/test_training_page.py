"""The training page: its figures are those of metrics.jsonl, and a folder is read as data."""

import json
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.journal import Head, open_journal
from podium.reports.render import count, interval, percent, usd_about
from podium.reports.site.build import write_training_site
from podium.reports.site.pages import SiteFrame, render_page
from podium.reports.site.training_page import training_context
from podium.reports.stats import t_interval, wilson
from podium.reports.training_runs import OVER, asked_shares, panels_of, training_runs
from tests.harness.runs import sit
from tests.reports.audit.tampered_run import add_call
from tests.reports.site.page_tables import Table, tables_in
from tests.reports.site.trained import STEPS, line, trained, written

FRAME = SiteFrame(pages=(("training.html", "Training"),), made="Made by a test.")


def page_of(*folders: Path) -> str:
    """Return the page of some trainings."""
    return render_page("training.html", site=FRAME, **training_context(training_runs(folders)))


def tables_of(*folders: Path) -> dict[str, Table]:
    """Return its tables."""
    return tables_in(page_of(*folders))


def test_every_figure_of_the_page_is_that_of_metrics(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    lines = [json.loads(one) for one in (run / "metrics.jsonl").read_text().splitlines()]
    tables = tables_of(run)
    _, *held = tables["Each validation"]
    expected = [(one["step"], one["validation"]) for one in lines if "validation" in one]
    assert held == [
        [
            "run", f"{step}", "40",
            f"{percent(one['correct'])} {interval(*wilson(one['correct'], 30))}",
            count(one["reward"], 3), percent(one["parsed"]), count(one["steps"], 2),
            count(one["calls"], 2), usd_about(one["usd"]),
        ]
        for step, one in expected
    ]  # fmt: skip
    _, *steps = tables["Plans that were sampled for training"]
    assert [row[-1] for row in steps] == [count(one["tokens"], 1) for one in lines[1:]]
    heads, *asked = tables["Share of the steps of held-out plans by worker, %"]
    assert heads[2:] == ["abacus", "sage"]
    assert [row[2:] for row in asked] == [
        [percent(share) for share in one["workers"].values()] for _, one in expected
    ]
    (_, row) = tables[next(name for name in tables if name.startswith("Trainings"))]
    spent = sum(one["usd"] for one in lines[1:]) + sum(one["usd"] for _, one in expected)
    assert row[-1] == usd_about(round(spent, 6))


def test_a_reward_has_students_interval_over_its_last_steps_and_seeds_have_one_over_runs(
    tmp_path: Path,
) -> None:
    runs = training_runs([trained(tmp_path / f"seed-{seed}", seed) for seed in range(3)])
    right, reward, *_ = panels_of(runs)
    alone, *_, mean = reward.curves
    rewards = [line(step, 0)["reward"] for step in range(1, STEPS + 1)]
    assert [point.low is None for point in alone.points] == [True] * (OVER - 1) + [False] * 3
    assert alone.points[-1][2:] == t_interval(rewards[-OVER:])
    assert mean.run == "practice-cpu: mean of 3 runs"
    last = [curve.points[-1].value for curve in right.curves[:3]]
    assert right.curves[-1].points[-1][2:] == t_interval(last)


def test_whom_plans_ask_is_a_mean_over_the_runs_where_all_were_validated(tmp_path: Path) -> None:
    folders = [trained(tmp_path / f"seed-{seed}", seed) for seed in range(2)]
    written(folders[1], [line(step, 1) for step in range(6)])
    found = asked_shares(training_runs(folders))
    assert [step for step, _ in found] == [0, 4]
    shares = [line(4, seed)["validation"]["workers"]["abacus"] for seed in range(2)]
    assert found[1][1]["abacus"] == pytest.approx(sum(shares) / 2)


def test_what_workers_were_asked_is_the_sum_of_the_trainings_own_ledger(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    journal = open_journal(run, Head("rewards", "rewards", "", "live", "test-book", "0" * 64))
    for _ in range(3):
        add_call(journal.intent, journal.outcome)
    journal.close()
    tables = tables_of(run)
    (bill,) = [rows for name, rows in tables.items() if name.startswith("By the training's own")]
    assert bill[1:] == [["run", "sage", "3", "0", "9", "3", "-"]]


HOSTILE = "<img src=x onerror=alert(1)>"


def test_names_in_a_training_are_text_and_never_html(tmp_path: Path) -> None:
    run = trained(
        tmp_path / HOSTILE,
        config={"name": "</script><script>alert(2)</script>"},
        pool={"name": "\u202e", "label": "live<b>"},
    )
    names = (HOSTILE, "sage\u2028")
    written(run, [line(step, 0, names) for step in range(STEPS + 1)])
    page = page_of(run)
    assert "<img src=x" not in page
    assert page.count("<script") == 4
    assert "\u202e" not in page
    heads, *_ = tables_in(page)["Share of the steps of held-out plans by worker, %"]
    assert HOSTILE in heads


def test_figures_that_are_none_are_unknown(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    odd = {"step": 1, "reward": "0.5", "parsed": True, "steps": [1], "usd": None, "workers": "sage"}
    text = "".join(json.dumps(one) + "\n" for one in (line(0, 0), odd))
    huge = '{"step": 2, "reward": 1e999, "steps": NaN, "calls": ' + "9" * 400 + "}\n"
    (run / "metrics.jsonl").write_text(text + huge)
    _, *steps = tables_of(run)["Plans that were sampled for training"]
    assert steps == [["run", "1", *["-"] * 6], ["run", "2", *["-"] * 6]]


def test_a_half_written_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 13, "workers": {"sage": 1}')
    (found,) = training_runs([run])
    assert found.lines[-1]["step"] == STEPS
    assert "The last line of run is incomplete and is left out." in found.notes


def test_a_training_without_its_manifest_says_that_its_label_is_unknown(tmp_path: Path) -> None:
    run = trained(tmp_path / "run")
    (run / "manifest.json").write_text("{")
    page = page_of(run)
    assert "its seed and label are unknown" in page
    assert '<span class="badge ">unknown</span>' in page


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        pytest.param(
            None, "it has no metrics.jsonl; name a folder that `podium train` wrote", id="none"
        ),
        pytest.param("", "has no step yet: its metrics.jsonl has no complete line", id="empty"),
        pytest.param('{"step": 0', "has no step yet", id="half a line"),
        pytest.param("spam\n" * 2, "was edited: line 1 is not a training step", id="no JSON"),
        pytest.param('{"step": 0}\n{"step": "1"}\n', "was edited: line 2", id="no step"),
        pytest.param("[" * 99999 + "\n", "was edited: line 1", id="too deep"),
    ],
)
def test_what_is_no_training_is_refused_in_one_sentence_and_nothing_is_written(
    metrics: str | None, said: str, tmp_path: Path
) -> None:
    folder, out = tmp_path / "run", tmp_path / "page"
    folder.mkdir()
    if metrics is not None:
        (folder / "metrics.jsonl").write_text(metrics)
    with pytest.raises(UserError, match=said) as refused:
        write_training_site([folder], out)
    assert "\n" not in str(refused.value)
    assert not out.exists()


@pytest.mark.slow
def test_a_folder_named_for_a_plot_becomes_a_page_and_a_file_an_image(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained(tmp_path / "run")
    assert main(["train", "--plot", str(run), "--to", str(tmp_path / "page")]) == 0
    assert capsys.readouterr().out.strip().endswith("page/training.html")
    image = tmp_path / "mine.png"
    assert main(["train", "--plot", str(run), "--to", str(image)]) == 0
    assert image.read_bytes() == (tmp_path / "page" / "curve.png").read_bytes()
    vectors = tmp_path / "mine.pdf"
    for _ in range(2):  # its own file may be replaced
        assert main(["train", "--plot", str(run), "--to", str(vectors)]) == 0
    assert vectors.read_bytes().startswith(b"%PDF")
    assert main(["train", "--plot", str(run), "--to", str(tmp_path / "mine.doc")]) == 2
    assert "png, pdf, svg; a folder becomes a page" in capsys.readouterr().err


def test_foreign_files_are_never_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained(tmp_path / "run")
    for place in (tmp_path / "mine.png", tmp_path / "page" / "notes.txt"):
        place.parent.mkdir(exist_ok=True)
        place.write_text("mine")
    for to in ("mine.png", "page"):
        assert main(["train", "--plot", str(run), "--to", str(tmp_path / to)]) == 2
        assert "was not written by podium" in capsys.readouterr().err
    assert (tmp_path / "mine.png").read_text() == "mine"
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["notes.txt"]


def test_a_training_stands_beside_a_comparison_on_pages_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained(tmp_path / "run")
    sit(tmp_path / "logs", "single:sage")
    words = ["report", str(tmp_path / "logs"), str(run), "--out", str(tmp_path / "out")]
    assert main(words) == 2
    assert "Only pages show a training next to a comparison" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main([*words, "--site", str(tmp_path / "site")]) == 0
    assert "most right" in (tmp_path / "site" / "training.html").read_text()
    assert 'href="training.html"' in (tmp_path / "site" / "audit.html").read_text()
