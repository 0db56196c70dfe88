"""Datasets of the hub at a pinned revision: downloaded once, read from its cache, or refused.

The hub is a real server on this machine, and podium a process of its own.
"""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from podium.harness.errors import UserError
from podium.suites.data import hub_left_alone, hub_refusal, hub_rows, sources
from tests.providers.hub import (
    GATED,
    NO_DATASET,
    NO_REVISION,
    NOWHERE,
    Done,
    FakeHub,
    podium,
    python,
    serving,
)

pytestmark = pytest.mark.slow

AIME = [{"problem": f"{n}?", "answer": f"{n:03}", "id": str(n)} for n in range(30)]
LACKING: dict[str, Any] = {"problem": "?", "subject": "", "level": 1, "unique_id": "x"}


def hub_name(source: str) -> str:
    return str(sources()[source].hub)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose hub cache the fetches below have filled."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def fetched(home: Path) -> Generator[Done]:
    """One `podium data fetch` of a right dataset and of five that are wrong in their own way."""
    rows = {
        hub_name("aime25"): {"test": AIME},
        hub_name("math500"): {"test": [LACKING] * 500},
        hub_name("humaneval"): {"test": [{"task_id": n} for n in range(4)]},
    }
    refused = {
        hub_name("mbpp"): GATED,
        hub_name("bigcodebench"): NO_REVISION,
        hub_name("mmlu"): NO_DATASET,
    }
    names = ("aime25", "math500", "humaneval", "mbpp", "bigcodebench", "mmlu")
    with serving(FakeHub(rows, refused)) as hub:
        yield podium("data", "fetch", *names, "--data", str(home), home=home, hub=hub.url)


def test_a_dataset_is_fetched_into_the_hub_s_cache(fetched: Done) -> None:
    assert "ok      aime25: in the hub's cache, math-ai/aime25 at 563bb8404243 (30 rows)" in (
        fetched.out
    )


def test_a_gated_dataset_says_to_accept_its_terms_or_to_bring_the_file(
    fetched: Done, home: Path
) -> None:
    name = hub_name("mbpp")
    said = f"{name} is gated. Accept the terms on the hub's page of {name} and set HF_TOKEN"
    assert f"{said}, or put the file at {home}/humaneval_mbpp/mbpp.jsonl.gz" in fetched.err


def test_a_revision_that_is_gone_is_named_as_that(fetched: Done) -> None:
    said = f"The hub's {hub_name('bigcodebench')} no longer has the pinned revision: put the file"
    assert said in fetched.err


def test_a_dataset_that_is_not_there_may_be_somebody_s_own(fetched: Done) -> None:
    assert f"The hub has no {hub_name('mmlu')}, or your account has no access to it" in fetched.err


def test_another_number_of_rows_is_refused(fetched: Done) -> None:
    assert f"{sources()['humaneval'].revision} has 4 rows, not the pinned 164" in fetched.err


def test_a_column_that_the_hub_dropped_is_named(fetched: Done) -> None:
    assert "row 1 has no column 'answer'" in fetched.err


def test_what_could_not_be_fetched_is_said_once_each_at_the_end(
    fetched: Done,
) -> None:
    assert fetched.code == 2
    said = fetched.err[fetched.err.index("podium: ") :].splitlines()
    assert "row 1 has no column 'answer'" in said[0]
    assert len(said) == len(set(said)) == 7  # each source by its name
    assert fetched.out.count("could not be fetched") == 7
    assert not set(said) & set(fetched.out.splitlines())
    assert "Traceback" not in fetched.out + fetched.err


@pytest.mark.usefixtures("fetched")
def test_what_the_hub_s_cache_holds_is_verified_without_any_hub(home: Path) -> None:
    words = ("data", "verify", "aime25", "math500", "humaneval", "--data", str(home))
    done = podium(*words, home=home)
    assert "ok      aime25: in the hub's cache, math-ai/aime25 at 563bb8404243 (30" in done.out
    assert "ok      eval: 30 questions" in done.out
    assert "wrong   in the hub's cache, HuggingFaceH4/MATH-500 at 6e4ed1a2a79a, row 1" in done.out
    assert (
        "wrong   in the hub's cache, openai/openai_humaneval at 7dce6050a7d6 has 4 rows" in done.out
    )
    assert done.code == 1


@pytest.mark.usefixtures("fetched")
def test_a_suite_loads_from_the_hub_s_cache_without_a_request(home: Path) -> None:
    with serving(FakeHub()) as hub:
        replies = home / "replies.jsonl"
        replies.write_text('{"question_id": "aime25-I-8", "reply": "\\\\boxed{7}"}\n')
        words = ("grade", "--suite", "aime25", "--replies", str(replies), "--out", "verdicts.jsonl")
        done = podium(*words, home=home, hub=hub.url, PODIUM_DATA=str(home))
    assert (done.code, hub.asked) == (0, [])
    assert "1 of 1 graded, mean value 1.0000" in done.out


def test_a_hub_that_cannot_be_reached_is_one_sentence_said_once(tmp_path: Path) -> None:
    words = ("data", "fetch", "aime25", "--data", str(tmp_path))
    done = podium(*words, home=tmp_path)
    (line,) = done.err.splitlines()
    assert line.startswith("podium: aime25 was not fetched: ")
    assert " cannot be reached (" in line  # GitHub or its mirror, by the name of its host
    assert f"; math-ai/aime25 cannot be loaded (nothing answers at {NOWHERE}: " in line
    assert line.endswith(f"put the file at {tmp_path}/aime25_problems/aime25.jsonl {ELSEWHERE}")
    assert done.out.startswith("aime25\n  aime25: 15,785 bytes from QwenLM/QwQ@620a5eadc89f to ")
    assert done.out.endswith("\n  absent  aime25: could not be fetched\n")
    assert done.code == 2


ELSEWHERE = "(PODIUM_DATA can name another folder)."


def test_a_file_of_the_hub_is_held_to_its_size_and_digest(tmp_path: Path) -> None:
    content = {"test6": [{"question_id": "1"}]}
    with serving(FakeHub({hub_name("livecodebench-6"): content})) as hub:
        words = ("data", "fetch", "livecodebench", "--data", str(tmp_path))
        done = podium(*words, home=tmp_path, hub=hub.url)
    assert "has 21 bytes, not the pinned 134,303,240" in done.out
    assert done.code == 1


@pytest.mark.usefixtures("fetched")
def test_offline_another_revision_in_the_cache_is_not_taken_for_the_pinned_one(home: Path) -> None:
    code = (
        "from podium.suites.data import hub_rows\n"
        "try: hub_rows('math-ai/aime25', None, 40 * 'a', 'test')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = python(code, home=home, HF_HUB_OFFLINE="1")
    said = "the cache does not have revision aaaaaaaaaaaa"
    assert done.out.splitlines()[-1] == f"HubError {said}"


def test_a_hub_that_is_left_alone_is_not_asked() -> None:
    with hub_left_alone(), pytest.raises(Exception, match="it is not in the hub's cache"):
        hub_rows("math-ai/aime25", None, None, "test")


def test_a_full_disk_is_named_as_that() -> None:
    error = hub_refusal(OSError(28, "No space left on device"), "a/b", "put the file at x")
    assert isinstance(error, UserError)
    assert str(error).startswith("a/b cannot be loaded: the disk is full. Free some space, or")
