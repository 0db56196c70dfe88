"""`podium data fetch` and `verify`, and the download of a pinned file, over real HTTP."""

import gzip
import hashlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyarrow import Table
from pyarrow.parquet import write_table

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.harness.suite import Card, Split
from podium.suites.data import DataSource, Original, data_folder, local_rows, sources
from podium.suites.data_command import (
    MIRROR,
    address,
    count_questions,
    download,
    fetch_public,
    list_data,
)
from tests.harness.runs import Exam
from tests.providers.hub import Host, hosting
from tests.suites.toy_card import CARD

CONTENT = b"\x00pinned\n" * 50_000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
LOCAL = ("aime25", "humaneval", "mbpp", "bigcodebench", "gpqa-diamond")
HERE = all((data_folder() / sources()[name].file).is_file() for name in LOCAL)
needs_data = pytest.mark.skipif(not HERE, reason="no local data; name its folder in PODIUM_DATA")


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # no line is folded


def put(folder: Path, source: str, content: str) -> Path:
    path = folder / sources()[source].file
    path.parent.mkdir(parents=True)
    path.write_text(content)
    return path


# --- verify -------------------------------------------------------------------------------------


@needs_data
def test_what_is_as_pinned_is_ok(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "verify", *LOCAL]) == 0
    said = capsys.readouterr().out
    assert "eval: 30 questions" in said
    assert "eval: 198 questions" in said
    assert said.endswith("All files are as pinned.\n")


def test_what_is_absent_is_named_with_the_place_it_belongs_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["gpqa-diamond", "routerarena", "livecodebench"]
    assert main(["data", "verify", *words, "--data", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    path = tmp_path / "routerarena_cached" / "cost.json"
    assert (
        "podium data fetch routerarena:cost, or put cost.json (sha256 a8175554ab0e, 1 row" in said
    )
    assert f") at {path}" in said
    assert "livecodebench-6: podium data fetch livecodebench, or put test6.jsonl (sha256" in said
    assert said.endswith("No file is wrong; 5 absent.\n")


def test_a_file_with_another_digest_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(tmp_path, "aime25", "{}\n")
    assert main(["data", "verify", "aime25", "--data", str(tmp_path)]) == 1
    found = hashlib.sha256(b"{}\n").hexdigest()[:12]
    said = f"wrong   {path} is not the pinned file: its sha256 is {found}, not f25b933cfadf"
    assert said in capsys.readouterr().out


def test_a_file_that_was_cut_off_is_wrong_by_its_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, "livecodebench-6", "{}\n")
    assert main(["data", "verify", "livecodebench", "--data", str(tmp_path)]) == 1
    assert "has 3 bytes, not the pinned 134,303,240" in capsys.readouterr().out


@dataclass(frozen=True, slots=True)
class Twice(Exam):
    """An exam that has its second question twice, and whose card promises five."""

    card: Card = CARD

    def load(self, split: Split = "eval") -> Sequence[Question]:
        questions = Exam.load(self, split)
        return [*questions, questions[1]]


def test_an_id_that_repeats_is_named() -> None:
    with pytest.raises(UserError, match="numbers, eval, has the id 'q2' twice"):
        count_questions(Twice(), "eval", None)


def test_another_number_of_questions_than_the_card_says_is_refused() -> None:
    card = Card("T", "p", {"eval": 5}, "l", "none published", "a", ("1-A (2026-11-21): x",))
    with pytest.raises(UserError, match="numbers, eval, has 4 questions, but its card says 5"):
        count_questions(Exam(card=card), "eval", None)


@pytest.mark.parametrize("action", ["fetch", "verify"])
def test_an_unknown_suite_is_refused_with_those_that_are_known(
    action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", action, "nix"]) == 2
    assert "There is no suite or source 'nix'; there are: aime25, gpqa-d" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["fetch", "verify"])
def test_a_practice_suite_has_nothing_to_fetch(
    action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", action, "practice-code"]) == 0
    assert "generated; nothing to fetch" in capsys.readouterr().out


# --- fetch --------------------------------------------------------------------------------------


@needs_data
def test_what_is_here_is_not_fetched_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "fetch", "aime25", "gpqa-diamond"]) == 0
    assert capsys.readouterr().out.count("  ok  ") == 2


def test_what_is_here_and_wrong_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(tmp_path, "gpqa-diamond", "mine\n")
    assert main(["data", "fetch", "gpqa-diamond", "--data", str(tmp_path)]) == 1
    assert path.read_text() == "mine\n"
    assert "Wrong files are not overwritten" in capsys.readouterr().out


def public_path(original: Original) -> str:
    """Return where a mirror has a file."""
    return address(original).removeprefix("https://raw.githubusercontent.com")


def test_what_is_public_comes_from_a_mirror_and_its_size_and_licence_are_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (original,) = sources()["routerarena:cost"].public
    host = Host(files={public_path(original): b"{}" + b" " * (original.size - 2)})
    with hosting(host) as url:
        monkeypatch.setenv(MIRROR, f"{url}/")
        assert main(["data", "fetch", "routerarena:cost", "--data", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    place = tmp_path / "routerarena_cached" / "cost.json"
    assert f"5,205 bytes from RouteWorks/RouterArena@4714a9ad73e8 to {place}; licence: Apac" in out
    assert "is not the pinned file: its sha256 is" in err
    assert list(place.parent.iterdir()) == []


def test_what_nobody_serves_names_the_file_and_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with hosting(Host(status=404)) as url:
        monkeypatch.setenv(MIRROR, url)
        assert main(["data", "fetch", "recorded-math500", "--data", str(tmp_path)]) == 2
    assert "no longer exists (HTTP 404). Put the file at" in capsys.readouterr().err


def test_a_file_is_made_of_its_originals_and_is_the_pinned_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suffix = "\nPlease reason step by step, and put your final answer within \\boxed{}."
    asked = [json.dumps({"prompt": f"{n}?{suffix}", "answer": n}) for n in range(30)]
    problems = "\n".join(asked).encode()
    details = tmp_path / "details.parquet"
    reply = {
        "gold": ["7"],
        "metrics": {"extractive_match": 1.0},
        "specifics": {"extracted_golds": ["7"], "extracted_predictions": ["7"]},
        "cont_tokens": [[[1, 2, 3]]],
        "input_tokens": [[4, 5]],
        "predictions": ["é 7"],
    }
    write_table(Table.from_pylist([reply]), details)
    contents = {
        "r/R/M/m-7b/details_custom_aime25_0_x.parquet": details.read_bytes(),
        "aime25.jsonl": problems,
    }
    originals = tuple(
        Original(at="o/n@c", path=path, size=len(one), sha256=hashlib.sha256(one).hexdigest())
        for path, one in contents.items()
    )
    made = (
        '{"task": "aime25", "model": "m-7b", "item": 0, "sample": 0, "problem_id": "aime25-I-8", '
        '"gold": "7", "metric": 1.0, "extracted_gold": ["7"], "extracted_pred": ["7"], '
        '"out_tokens": 3, "in_tokens": 2, "prompt": null, "output": "é 7"}\n'
    )
    digest = hashlib.sha256(made.encode()).hexdigest()
    source = DataSource(
        file="a/b.jsonl", sha256=digest, licence="MIT", made="lighteval", originals=originals
    )
    host = Host(files=dict(zip(map(public_path, originals), contents.values(), strict=True)))
    with hosting(host) as url:
        monkeypatch.setenv(MIRROR, url)
        path = tmp_path / "a" / "b.jsonl"
        fetch_public(source, path)
        assert path.read_text() == made
        assert [one.name for one in path.parent.iterdir()] == ["b.jsonl"]
        with pytest.raises(
            UserError, match=r"exists already and is not overwritten\. Move it away"
        ):
            fetch_public(source, path)
        other = source.model_copy(update={"sha256": "0" * 64})
        with pytest.raises(UserError, match="the result is not the pinned file"):
            fetch_public(other, tmp_path / "c" / "d.jsonl")
    assert not (tmp_path / "c" / "d.jsonl").exists()


def test_a_text_file_may_lie_there_packed_and_is_held_to_what_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{sources()['routerarena:cost'].file}.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(b"{}"))
    found = hashlib.sha256(b"{}").hexdigest()[:12]
    with pytest.raises(UserError, match=f"its sha256 is {found}, not a8175554ab0e"):
        local_rows("routerarena:cost", tmp_path)
    assert main(["data", "verify", "routerarena:cost", "--data", str(tmp_path)]) == 1
    assert f"its sha256 is {found}" in capsys.readouterr().out
    path.write_bytes(b"no gzip")
    assert main(["data", "verify", "routerarena:cost", "--data", str(tmp_path)]) == 1
    assert f"wrong   {path} cannot be read" in capsys.readouterr().out


def test_all_that_is_pinned_is_listed_with_size_licence_place_and_whether_it_is_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, "aime25", "{}\n")
    assert main(["data", "list", "--data", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert all(name in said and source.file in said for name, source in sources().items())
    (here,) = [row for row in list_data((), tmp_path) if row["here"]]
    assert here["name"] == "aime25"
    assert here["bytes"] == 15_785


# --- a download is whole or not at all ----------------------------------------------------------


def refused(host: Host, path: Path, size: int | None = None) -> str:
    """Download from a host that serves no good file; return what podium says about it."""
    with hosting(host) as url, pytest.raises(UserError) as error:
        download(f"{url}/x", path, DIGEST, size or len(CONTENT))
    kept = [f".{path.name}.part"] if host.sent else []
    assert [one.name for one in path.parent.iterdir()] == kept
    return str(error.value)


@pytest.mark.parametrize(
    ("host", "size", "said"),
    [
        (Host(status=404), None, "no longer exists (HTTP 404). Put the file at"),
        (Host(status=401), None, "needs an account with access (HTTP 401). Put the file"),
        (Host(status=403), None, "needs an account with access (HTTP 403). Put the file"),
        (
            Host(status=503),
            None,
            "cannot be downloaded now (HTTP 503). Try again later, or put the file at",
        ),
        (Host(CONTENT, sent=9000), len(CONTENT), "was cut off after 9,000 of 400,000 bytes"),
        (Host(b"another"), 7, "is not the pinned file: its sha256 is ae448ac86c4e, not"),
        (Host(CONTENT * 2), len(CONTENT), "is not the pinned file"),
    ],
)
def test_a_download_that_fails_says_why_and_keeps_only_what_can_be_gone_on_with(
    host: Host, size: int | None, said: str, tmp_path: Path
) -> None:
    assert said in refused(host, tmp_path / "x.zip", size)


def test_an_address_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be reached \(.*\)\. Go online and try again, or"):
        download("http://127.0.0.1:9/x", tmp_path / "x.zip", DIGEST, 9)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ranges", [True, False], ids=["in parts", "only whole"])
def test_a_download_that_broke_off_goes_on_where_it_stopped(tmp_path: Path, ranges: bool) -> None:
    path, host = tmp_path / "x.zip", Host(CONTENT, ranges=ranges, sent=9000)
    with hosting(host) as url:
        with pytest.raises(
            UserError, match=r"after 9,000 of 400,000 bytes\. Run the same command to resume"
        ):
            download(url, path, DIGEST, len(CONTENT))
        host.sent = None
        download(url, path, DIGEST, len(CONTENT))
    assert host.asked == ["/", "/ bytes=9000-"]
    assert path.read_bytes() == CONTENT
    assert list(tmp_path.iterdir()) == [path]


def test_what_an_earlier_run_left_of_another_file_is_not_gone_on_with_twice(tmp_path: Path) -> None:
    (tmp_path / ".x.zip.part").write_bytes(b"of another file")
    with hosting(Host(CONTENT)) as url:
        with pytest.raises(UserError, match="is not the pinned file"):
            download(url, tmp_path / "x.zip", DIGEST, len(CONTENT))
        download(url, tmp_path / "x.zip", DIGEST, len(CONTENT))
    assert (tmp_path / "x.zip").read_bytes() == CONTENT


def test_a_folder_that_cannot_be_written_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file where a folder should be")
    with pytest.raises(UserError, match=r"cannot be written .* with --data, and set PODIUM_DATA"):
        download("http://127.0.0.1:9/x", tmp_path / "a" / "b" / "x.zip", DIGEST, 9)


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs Linux's read-only /sys")
def test_a_read_only_folder_is_named_with_the_way_out() -> None:
    with pytest.raises(
        UserError, match=r"^/sys/podium cannot be written \(.*Give a writable folder"
    ):
        download("http://127.0.0.1:9/x", Path("/sys/podium/x.zip"), DIGEST, 9)


INTERRUPTED = """
import sys
from pathlib import Path
from podium.suites.data_command import download
download(sys.argv[1], Path(sys.argv[2]), sys.argv[3], 400_000)
"""


def started(url: str, path: Path) -> subprocess.Popen[bytes]:
    """Start a download in a process of its own and wait until some of it is written."""
    words = [sys.executable, "-c", INTERRUPTED, url, str(path), DIGEST]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    part = path.with_name(f".{path.name}.part")
    for _ in range(600):
        if part.is_file() and part.stat().st_size:  # an empty one is removed
            return process
        time.sleep(0.05)
    raise AssertionError("the download did not start")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["break", "kill"])
def test_after_a_break_the_next_download_goes_on_and_two_at_once_are_refused(
    how: signal.Signals, tmp_path: Path
) -> None:
    path = tmp_path / "x.zip"
    with hosting(Host(CONTENT, sent=9000, stalls=True)) as url:
        process = started(url, path)
        with pytest.raises(UserError, match="Another podium process is downloading"):
            download(url, path, DIGEST, len(CONTENT))
        process.send_signal(how)
        process.wait(30)
    assert [one.name for one in tmp_path.iterdir()] == [".x.zip.part"]
    with hosting(Host(CONTENT)) as url:
        download(url, path, DIGEST, len(CONTENT))
    assert [one.name for one in tmp_path.iterdir()] == ["x.zip"]


# --- the card -----------------------------------------------------------------------------------


def test_the_card_on_the_command_line_names_what_the_data_is_pinned_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["suites", "aime25"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    source = sources()["aime25"]
    assert f"hub math-ai/aime25 at {str(source.revision)[:12]}, test" in said
    assert f"file {source.file} (sha256 {source.sha256[:12]}); 30 rows" in said


def test_a_folder_of_data_is_named_by_argument_then_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_DATA", str(tmp_path / "b"))
    assert data_folder(tmp_path / "a") == tmp_path / "a"
    assert data_folder() == tmp_path / "b"
