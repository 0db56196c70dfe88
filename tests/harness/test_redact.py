"""An exam that must not be published: private logs, silent reports, copies that can be shared."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log, write_eval_log

from podium.cli import main
from podium.harness.cassette import record
from podium.harness.errors import UserError
from podium.harness.ledger.manifest import write_manifest
from podium.harness.model_judge import regrade_dir
from podium.harness.records import Question
from podium.harness.redact import redact
from podium.harness.suite import Split
from podium.reports.audit.verify import verify
from podium.reports.report import write_report
from tests.harness.runs import Crew, Exam, number, sit, steps
from tests.providers.scripted import Heard
from tests.reports.small_reports import report

SECRET = "Which hidden mineral of the seventh moon glows when two quiet rivers meet below it?"
OPTIONS = ["the pale stone that the first settlers named after rain", "salt", "iron", "clay"]


@dataclass(frozen=True, slots=True)
class Hidden(Exam):
    """Questions that nobody may publish."""

    name: str = "hidden"
    publishable: bool = False

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return questions whose first line says what to answer."""
        return [
            Question(
                id=f"q{n}",
                text=f"Say {n}\n{SECRET} {n}",
                kind="integer",
                target=str(n),
                metadata={"choices": OPTIONS, "permutation": [2, 0, 3, 1]},
            )
            for n in range(1, 4)
        ]


def quoting(heard: Heard) -> str:
    """Answer, and repeat the question on the way."""
    return f"You ask: {heard.messages[-1].text}\nso {number(heard)}"


def failing(heard: Heard) -> str:
    """Fail on one question, in words that repeat it."""
    if "Say 2" in heard.last:
        raise RuntimeError(f"content filter: {heard.last}".replace("\n", " "))
    return quoting(heard)


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Give the other tests back the mode of their files."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    home = tmp_path / "logs"
    sit(home, "single:sage", crew=Crew(sage=failing), exam=Hidden())
    sit(home, "pair", steps("sage", "clerk"), Crew(sage=quoting, clerk=quoting), exam=Hidden())
    return home


def texts(folder: Path) -> str:
    """Return all that a folder's files say, logs unpacked."""
    found: list[str] = []
    for path in folder.rglob("*"):
        if path.suffix == ".eval":
            found.append(read_eval_log(str(path), resolve_attachments="full").model_dump_json())
        elif path.is_file():
            found.append(path.read_bytes().decode("utf-8", errors="replace"))
    return "\n".join(found)


def test_the_log_of_an_exam_that_must_not_be_published_is_its_owners_alone(logs: Path) -> None:
    found = list(logs.rglob("*.eval"))
    assert len(found) == 2
    assert {path.stat().st_mode & 0o777 for path in found} == {0o600}
    assert SECRET in texts(logs)


def test_no_report_quotes_a_question_not_even_in_a_provider_s_words(
    logs: Path, tmp_path: Path
) -> None:
    made = report(tmp_path, logs)
    assert "WorkerError (its text is withheld" in texts(tmp_path / "report")
    for said in (made.text, texts(tmp_path / "report")):
        assert "mineral" not in said
        assert "settlers" not in said


def test_a_redacted_log_keeps_every_number_and_no_word(logs: Path, tmp_path: Path) -> None:
    done = redact([logs], tmp_path / "shared")
    assert [one.samples for one in done] == [3, 3]
    said = texts(tmp_path / "shared")
    for word in ("mineral", "settlers", "You ask", "content filter"):
        assert word not in said
    assert said.count("sha256:") > 10
    tables = [
        json.loads((path / "table.json").read_text())
        for path in (tmp_path / "of-logs", tmp_path / "of-copies")
        if write_report([logs if path.name == "of-logs" else tmp_path / "shared"], path)
    ]
    assert tables[0] == tables[1]


def test_a_redacted_log_says_so_and_what_is_published_is_left_alone(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sit(logs, "single:clerk", steps("clerk"), exam=Exam())
    assert main(["redact", str(logs), "--out", str(tmp_path / "shared")]) == 0
    copies = list((tmp_path / "shared").rglob("*.eval"))
    assert len(copies) == 2
    for path in copies:
        metadata = read_eval_log(str(path), header_only=True).eval.metadata or {}
        assert (metadata["podium"]["redacted"], metadata["podium"]["publishable"]) == (True, False)
    said = capsys.readouterr().out
    assert said.count("3 samples; kept numbers and digests") == 2
    assert "share it as it is" in said


def test_a_copy_is_never_overwritten(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    redact([logs], tmp_path / "shared")
    before = texts(tmp_path / "shared")
    assert main(["redact", str(logs), "--out", str(tmp_path / "shared")]) == 2
    assert "exists already: name another --out directory" in capsys.readouterr().err
    assert texts(tmp_path / "shared") == before


def test_a_redacted_log_cannot_be_graded_or_replayed(logs: Path, tmp_path: Path) -> None:
    redact([logs], tmp_path / "shared")
    with pytest.raises(UserError, match="is redacted, so its replies are gone"):
        regrade_dir(tmp_path / "shared", {"hidden": Hidden()}, None, everything=True)
    with pytest.raises(UserError, match="is redacted"):
        record(sorted((tmp_path / "shared").glob("*.eval")), tmp_path / "tape.jsonl")


def test_no_cassette_is_made_of_an_exam_that_must_not_be_published(
    logs: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="questions that must not be published"):
        record(sorted(logs.glob("*.eval")), tmp_path / "tape.jsonl")
    assert not (tmp_path / "tape.jsonl").exists()


def test_a_regraded_log_stays_private(logs: Path) -> None:
    os.umask(0o022)
    done = regrade_dir(logs, {"hidden": Hidden()}, None, everything=True)
    assert {one.log.stat().st_mode & 0o777 for one in done} == {0o600}


def test_a_damaged_log_is_refused_before_anything_is_written(logs: Path, tmp_path: Path) -> None:
    (logs / "broken.eval").write_bytes(b"PK nothing")
    with pytest.raises(UserError, match=r"broken\.eval is damaged or no Inspect log"):
        redact([logs], tmp_path / "shared")
    assert not (tmp_path / "shared").exists()


def test_redacted_logs_keep_the_digests_of_their_originals(logs: Path, tmp_path: Path) -> None:
    root = write_manifest(logs).root
    redact([logs], tmp_path / "shared")
    copies = tmp_path / "shared"
    assert verify(copies, root, shared=True) == ()
    changed = {(one.kind, Path(one.path).suffix) for one in verify(copies, root)}
    assert changed == {("edited", ".eval"), ("deleted", ".py")}  # verify.py, which is not shared
    redact([copies], tmp_path / "again")
    assert verify(tmp_path / "again", root, shared=True) == ()


def test_a_redacted_sample_that_never_was_in_the_run_is_found(logs: Path, tmp_path: Path) -> None:
    root = write_manifest(logs).root
    regrade_dir(logs, {"hidden": Hidden()}, None, everything=True)
    write_manifest(logs)
    redact([logs], tmp_path / "shared")
    path = sorted((tmp_path / "shared").glob("*.eval"))[0]
    log = read_eval_log(str(path))
    assert log.eval.metadata is not None
    kept = log.eval.metadata["podium"]["originals"]
    first = min(kept)
    kept[first] = "0" * 64
    write_eval_log(log, str(path))
    (found,) = verify(tmp_path / "shared", shared=True)
    assert (found.kind, found.path, found.where) == ("edited", path.name, first)
    assert "root" in {one.kind for one in verify(tmp_path / "shared", root, shared=True)}


def test_a_manifest_is_never_overwritten_by_one_of_other_logs(logs: Path, tmp_path: Path) -> None:
    write_manifest(logs)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "MANIFEST.json").write_text("mine")
    with pytest.raises(UserError, match=r"MANIFEST\.json exists already"):
        redact([logs], tmp_path / "shared")
    assert [path.name for path in (tmp_path / "shared").iterdir()] == ["MANIFEST.json"]
