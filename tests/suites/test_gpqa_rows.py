"""Where GPQA's rows come from and what is refused, on made-up rows: no message quotes a cell."""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from podium.harness.errors import UserError
from podium.suites.data import sources
from podium.suites.gpqa_diamond import ARCHIVE, GpqaDiamond
from tests import ROOT

SECRET = "xylograph"
"""Stands in every cell; no message may have it."""
AGAIN = "Remove this copy of the data, then run `podium data fetch SUITE`."


def row(id: str, **changes: object) -> dict[str, object]:
    return {
        "Record ID": id,
        "Question": f"{SECRET} of {id}?",
        "Correct Answer": f"right {SECRET} ",
        **{f"Incorrect Answer {n}": f"{SECRET} {n}\n" for n in (1, 2, 3)},
        "High-level domain": "Botany",
        "Subdomain": "Wood",
        **changes,
    }


def without(column: str) -> dict[str, object]:
    return {name: value for name, value in row("r2").items() if name != column}


def as_csv(rows: list[dict[str, object]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def jsonl(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def refusal(path: Path) -> str:
    """Return why a file is refused, after a look at everything a traceback could print."""
    with pytest.raises(UserError) as refused:
        GpqaDiamond().read_problems(path)
    error: BaseException | None = refused.value
    while error:
        assert SECRET not in f"{error} {error!r} {vars(error)}"
        error = error.__cause__ or error.__context__
    return str(refused.value)


def test_own_rows_in_the_official_columns_become_questions(tmp_path: Path) -> None:
    plain = tmp_path / "own.csv"
    plain.write_bytes(as_csv([row(f"r{n}") for n in range(4)]))
    lines = jsonl(tmp_path / "own.jsonl", *(row(f"r{n}") for n in range(4)))
    made = GpqaDiamond().read_problems(plain)
    assert made == GpqaDiamond().read_problems(lines)
    assert [one.id for one in made] == ["r0", "r1", "r2", "r3"]
    assert {one.target for one in made} == set("ABCD")
    assert {one.topic for one in made} == {"Botany/Wood"}
    for one in made:
        right = one.metadata["choices"]["ABCD".index(one.target or "")]
        assert right == f"right {SECRET} "


def test_the_papers_prompt_strips_every_cell(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "own.jsonl", row("r1", Question=f" {SECRET}? \n"))
    (official,) = GpqaDiamond().read_problems(path)
    (paper,) = GpqaDiamond().prompted("paper").read_problems(path)
    assert f"\n\n {SECRET}? \n\n\nA) " in official.text
    assert f"\n\n{SECRET}?\n\nA) " in paper.text
    assert paper.text.splitlines()[-4:] == [
        f"{letter}) {option}"
        for letter, option in zip("ABCD", paper.metadata["choices"], strict=True)
    ]
    assert paper.target == official.target


def test_a_subject_is_not_needed(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "own.jsonl", without("Subdomain"))
    assert [one.topic for one in GpqaDiamond().read_problems(path)] == ["Botany"]


@pytest.mark.parametrize("column", ["Record ID", "Question", "Correct Answer"])
def test_a_column_that_is_absent_or_empty_is_named(tmp_path: Path, column: str) -> None:
    path = jsonl(tmp_path / "own.jsonl", row("r1"), without(column))
    assert refusal(path) == f"{path}, row 2 has no column {column!r}. Add the column."
    said = f"row 2: its {column!r} is empty or not text. Correct the row."
    path = jsonl(tmp_path / "own.jsonl", row("r1"), row("r2", **{column: "  "}))
    assert refusal(path) == f"{path}, {said}"
    path = jsonl(tmp_path / "own.jsonl", row("r1"), row("r2", **{column: 5}))
    assert refusal(path) == f"{path}, {said}"


def test_two_rows_with_one_id_are_refused(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "own.jsonl", row("r1"), row("r1"))
    assert refusal(path) == f"{path} has the Record ID 'r1' twice. Give each row its own."


def test_a_right_option_that_is_also_a_wrong_one_is_refused(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "own.jsonl", row("r1", **{"Correct Answer": f"{SECRET} 2"}))
    said = "its 'Correct Answer' is also an incorrect answer. Correct the row."
    assert refusal(path) == f"{path}, row 1: {said}"


def test_a_file_that_is_no_csv_no_json_or_empty_is_refused_without_its_text(tmp_path: Path) -> None:
    latin = tmp_path / "latin.csv"
    latin.write_bytes(as_csv([row("r1")]) + f"{SECRET} \u00e4".encode("latin-1"))
    assert "cannot be read as CSV in UTF-8" in refusal(latin)
    quoted = tmp_path / "quoted.csv"
    quoted.write_bytes(as_csv([row("r1")]) + f'"{SECRET}" {SECRET}"'.encode())
    assert "cannot be read as CSV" in refusal(quoted)
    broken = tmp_path / "broken.jsonl"
    broken.write_text(f'{{"Question": "{SECRET}')
    assert "line 1 is not JSON" in refusal(broken)
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert refusal(empty) == f"{empty} has no rows. Give one row per question."


def test_a_split_or_prompt_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UserError, match="has no 'train' split"):
        GpqaDiamond().load("train")
    with pytest.raises(UserError, match="no prompt 'short'; it has: official, paper"):
        GpqaDiamond().prompted("short")  # pyright: ignore[reportArgumentType]


def test_a_plain_csv_that_is_not_the_pinned_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "gpqa" / "gpqa_diamond.csv"
    path.parent.mkdir(mode=0o700)
    path.write_bytes(as_csv([row(f"r{n}") for n in range(198)]))
    with pytest.raises(UserError, match=r"gpqa_diamond\.csv is not the pinned file: its sha256"):
        GpqaDiamond(data=tmp_path).load()


def test_without_a_local_file_the_revision_is_the_hubs(tmp_path: Path) -> None:
    assert (
        GpqaDiamond(data=tmp_path).data_revision == f"Idavidrein/gpqa@{sources()[ARCHIVE].revision}"
    )


# --- the hub, as a server of our own ----------------------------------------------------------


@dataclass
class Hub:
    """A hub that has one file, or refuses everybody."""

    content: bytes = b""
    gated: bool = False
    asked: list[str] = field(default_factory=list[str])
    url: str = ""


@pytest.fixture
def hub() -> Generator[Hub]:
    """Serve on a port of this machine; what it serves is the test's to set."""
    state = Hub()

    class Answers(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._head()

        def do_GET(self) -> None:
            self._head()
            if not state.gated:
                self.wfile.write(state.content)

        def _head(self) -> None:
            state.asked.append(self.path)
            self.send_response(401 if state.gated else 200)
            if state.gated:
                self.send_header("X-Error-Code", "GatedRepo")
                self.send_header("X-Error-Message", "Access to this dataset is restricted.")
            else:
                self.send_header("X-Repo-Commit", str(sources()[ARCHIVE].revision))
                self.send_header("ETag", '"0123456789"')
            self.send_header("Content-Length", "0" if state.gated else str(len(state.content)))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


LOAD = """
from podium.harness.errors import UserError
from podium.suites.gpqa_diamond import GpqaDiamond
try:
    print(len({question.id for question in GpqaDiamond().load()}))
except UserError as error:
    print(error)
"""


def loaded(folder: Path, url: str, **settings: str) -> str:
    """Load the exam in a process of its own, for the hub's client reads its settings once."""
    inherited = ("PATH", "HOME", "LANG", "VIRTUAL_ENV")
    env = {name: os.environ[name] for name in inherited if name in os.environ}
    env |= {"HF_ENDPOINT": url, "HF_HOME": str(folder / "hf"), "PODIUM_DATA": str(folder / "data")}
    env |= {"HF_HUB_DISABLE_TELEMETRY": "1", "NO_PROXY": "127.0.0.1", **settings}
    done = subprocess.run(
        [sys.executable, "-c", LOAD], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_a_gated_set_without_a_token_says_where_to_accept_and_which_file_will_do(
    hub: Hub, tmp_path: Path
) -> None:
    hub.gated = True
    said = loaded(tmp_path, hub.url)
    assert said.startswith(
        "Idavidrein/gpqa is gated. Accept the terms on the hub's page of Idavidrein/gpqa and set "
        "HF_TOKEN, or run `podium data fetch gpqa-diamond`"
    )
    assert f"put the authors' file at {tmp_path}/data/gpqa/gpqa_official_dataset.zip or " in said
    assert hub.asked[1].endswith(f"/{sources()[ARCHIVE].revision}/gpqa_diamond.csv")


@pytest.mark.slow
def test_offline_without_a_copy_the_message_says_which_file_to_put_where(tmp_path: Path) -> None:
    said = loaded(tmp_path, "http://127.0.0.1:9", HF_HUB_OFFLINE="1")
    assert said.startswith("Idavidrein/gpqa cannot be loaded (")
    assert f"put the authors' file at {tmp_path}/data/gpqa/gpqa_official_dataset.zip or " in said
    asked = (
        "which forbids requests to the hub). Unset it and try again, or "
        "run `podium data fetch gpqa-diamond`"
    )
    assert asked in said
    assert "\n" not in said


@pytest.mark.slow
def test_the_hubs_rows_load_and_load_again_from_its_cache_when_offline(
    hub: Hub, tmp_path: Path
) -> None:
    hub.content = as_csv([row(f"r{n}") for n in range(198)])
    assert loaded(tmp_path, hub.url) == "198"
    asked = len(hub.asked)
    assert loaded(tmp_path, hub.url, HF_HUB_OFFLINE="1") == "198"
    assert len(hub.asked) == asked


@pytest.mark.slow
def test_hub_rows_that_drifted_name_the_column(hub: Hub, tmp_path: Path) -> None:
    drifted = [{**row(f"r{n}"), "Domain": "Botany"} for n in range(198)]
    for one in drifted:
        del one["High-level domain"]
    hub.content = as_csv(drifted)
    where = f"Idavidrein/gpqa at {sources()[ARCHIVE].revision}"
    said = f"row 1 has no column 'High-level domain'. {AGAIN}"
    assert loaded(tmp_path, hub.url) == f"{where}, {said}"


@pytest.mark.slow
def test_a_hub_file_that_is_no_text_is_refused_without_its_bytes(hub: Hub, tmp_path: Path) -> None:
    hub.content = as_csv([row("r1")]) + f"{SECRET} \u00e4".encode("latin-1")
    where = f"Idavidrein/gpqa at {sources()[ARCHIVE].revision}"
    assert loaded(tmp_path, hub.url) == f"{where} cannot be read as CSV in UTF-8. {AGAIN}"
