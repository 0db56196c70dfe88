"""`podium data fetch` and `verify`, and the download of a pinned file, over real HTTP."""

import hashlib
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.cli import main
from harness.errors import UserError
from harness.records import Question
from harness.suite import Card, Split
from suites.data import DataSource, data_folder, sources
from suites.data_command import count_questions, download, download_source
from tests.harness.runs import Exam
from tests.providers.hub import Host, hosting
from tests.suites.toy_card import CARD

CONTENT = b"\x00pinned\n" * 50_000
DIGEST = hashlib.sha256(CONTENT).hexdigest()
LOCAL = ("aime25", "humaneval", "mbpp", "bigcodebench", "gpqa-diamond")
HERE = all((data_folder() / sources()[name].file).is_file() for name in LOCAL)
needs_data = pytest.mark.skipif(not HERE, reason="no local data; name its folder in PODIUM_DATA")


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
    assert said.endswith("All is as pinned.\n")


def test_what_is_absent_is_named_with_the_place_it_belongs_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "verify", "saturn-aime25", "livecodebench", "--data", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    path = tmp_path / "saturn_lighteval" / "aime25_4models.jsonl.gz"
    assert f"put aime25_4models.jsonl.gz (sha256 f04c081d80d9, 120 rows) at {path}" in said
    assert "livecodebench-6: podium data fetch livecodebench, or put test6.jsonl (sha256" in said
    assert said.endswith("Nothing here is wrong; 2 absent.\n")


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
    with pytest.raises(UserError, match="numbers, eval, has 4 questions, its card says 5"):
        count_questions(Exam(card=card), "eval", None)


@pytest.mark.parametrize("action", ["fetch", "verify"])
def test_an_unknown_suite_is_refused_with_those_that_are_known(
    action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", action, "nix"]) == 2
    assert "There is no suite 'nix'; known suites: aime25, big" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["fetch", "verify"])
def test_a_practice_suite_has_nothing_to_fetch(
    action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", action, "practice-code"]) == 0
    assert "generated; there is nothing to fetch" in capsys.readouterr().out


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
    assert "What is wrong is not overwritten" in capsys.readouterr().out


def test_what_nobody_publishes_says_which_file_to_put_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "fetch", "saturn-aime25", "--data", str(tmp_path)]) == 2
    path = tmp_path / "saturn_lighteval" / "aime25_4models.jsonl.gz"
    assert f"no hub has it: put the file at {path}" in capsys.readouterr().err


def test_a_source_with_an_address_goes_into_the_data_folder(tmp_path: Path) -> None:
    with hosting(Host(CONTENT)) as url:
        source = DataSource(file="a/b.zip", sha256=DIGEST, licence="MIT", url=f"{url}/b.zip")
        download_source(source, tmp_path)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.zip"]
    assert (tmp_path / "a" / "b.zip").read_bytes() == CONTENT


# --- a download is whole or not at all ----------------------------------------------------------


def refused(host: Host, path: Path, size: int | None = None) -> str:
    """Download from a host that serves no good file; return what podium says about it."""
    with hosting(host) as url, pytest.raises(UserError) as error:
        download(f"{url}/x", path, DIGEST, size)
    assert list(path.parent.iterdir()) == []
    return str(error.value)


@pytest.mark.parametrize(
    ("host", "size", "said"),
    [
        (Host(status=404), None, "is no longer there (HTTP 404): put the file at"),
        (Host(status=401), None, "asks for an account that may see it (HTTP 401): put the file"),
        (Host(status=403), None, "asks for an account that may see it (HTTP 403): put the file"),
        (Host(status=503), None, "cannot be had now (HTTP 503); try again later: put the file at"),
        (Host(CONTENT, sent=9000), len(CONTENT), "was cut off after 9,000 of 400,000 bytes"),
        (Host(b"another"), None, "is not the pinned file: its sha256 is ae448ac86c4e, not"),
        (Host(CONTENT * 2), len(CONTENT), "is not the pinned file"),
    ],
)
def test_a_download_that_fails_leaves_nothing_and_says_why(
    host: Host, size: int | None, said: str, tmp_path: Path
) -> None:
    assert said in refused(host, tmp_path / "x.zip", size)


def test_an_address_that_does_not_answer_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be reached \(.*\): go online and try again, or"):
        download("http://127.0.0.1:9/x", tmp_path / "x.zip", DIGEST)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_text("mine")
    with hosting(Host(CONTENT)) as url, pytest.raises(UserError, match="is not overwritten"):
        download(url, path, DIGEST)
    assert path.read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file where a folder should be")
    with pytest.raises(UserError, match=r"cannot be written .* with --data, and the same in PODIU"):
        download("http://127.0.0.1:9/x", tmp_path / "a" / "b" / "x.zip", DIGEST)


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs Linux's read-only /sys")
def test_a_read_only_folder_is_named_with_the_way_out() -> None:
    with pytest.raises(
        UserError, match=r"^/sys/podium cannot be written \(.*name a folder that can"
    ):
        download("http://127.0.0.1:9/x", Path("/sys/podium/x.zip"), DIGEST)


INTERRUPTED = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would ignore it
from suites.data_command import download
download(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
"""


def started(url: str, path: Path) -> subprocess.Popen[bytes]:
    """Start a download in a process of its own and wait until some of it is written."""
    words = [sys.executable, "-c", INTERRUPTED, url, str(path), DIGEST]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    part = path.with_name(f".{path.name}.part")
    for _ in range(600):
        if part.is_file():
            return process
        time.sleep(0.05)
    raise AssertionError("the download did not start")


def test_a_break_leaves_no_half_file(tmp_path: Path) -> None:
    with hosting(Host(CONTENT, sent=9000, stalls=True)) as url:
        process = started(url, tmp_path / "x.zip")
        process.send_signal(signal.SIGINT)
        process.wait(30)
    assert list(tmp_path.iterdir()) == []


def test_after_a_kill_the_next_download_starts_anew_and_two_at_once_are_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.zip"
    with hosting(Host(CONTENT, sent=9000, stalls=True)) as url:
        process = started(url, path)
        with pytest.raises(UserError, match="Another podium is downloading"):
            download(url, path, DIGEST)
        process.kill()
        process.wait(30)
    assert [one.name for one in tmp_path.iterdir()] == [".x.zip.part"]
    with hosting(Host(CONTENT)) as url:
        download(url, path, DIGEST)
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
