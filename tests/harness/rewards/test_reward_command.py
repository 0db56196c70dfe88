"""`podium reward serve`: what it refuses, and its life in a process of its own."""

import json
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from podium.cli import main
from podium.cli.list_commands import whole_catalogue
from podium.harness.boxes import Boxes
from podium.harness.errors import UserError
from podium.harness.listener import bound_socket, listen
from podium.harness.records import Grade, Question
from podium.harness.rewards.outcome import as_reply
from podium.harness.rewards.reward_service import RewardHooks, ServeRequest, serve_rewards
from podium.harness.rewards.server import user_prompt
from podium.suites import SUITES
from tests.harness.rewards.service import get, post, started
from tests.harness.toy_run import Toy, toy_catalogue
from tests.suites.gold import gold_reply

INTEGER, CODE = SUITES["practice-integer"], SUITES["practice-code"]


# --- what is refused before anything listens --------------------------------------------------

REFUSED = [
    (("--suite", "no-such"), "There is no suite 'no-such'"),
    (("--suite", "aime25"), "has no 'train' split"),
    (("--suite", "practice-integer", "--limit", "0"), "--limit must be at least 1"),
    (("--suite", "practice-integer", "--box", "no-such"), "no-such"),
    (("--suite", "practice-integer", "--pool", "no-such"), "no-such"),
    (("--suite", "practice-integer", "--pool", "recorded-aime25"), "recorded"),
    (("--suite", "practice-integer", "--max-usd", "1"), "Add --pool, or leave --max-usd out"),
    (
        ("--suite", "practice-integer", "--values", "paper"),
        "Add --pool, or leave --values paper out",
    ),
    (("--suite", "practice-integer", "--timeout", "0"), "more than 0 seconds"),
    (("--suite", "practice-integer", "--timeout", "nan"), "more than 0 seconds"),
    (("--suite", "practice-integer", "--max-masked", "1.5"), "a share from 0 to 1"),
    (("--suite", "practice-integer", "--most", "-1"), "must be at least 1, not"),
    (("--suite", "practice-integer", "--most", "0"), "must be at least 1, not"),
    (("--suite", "practice-integer", "--workers", "0"), "--workers must be at least 1, not 0"),
    (("--suite", "practice-integer", "--workers", "-2"), "--workers must be at least 1, not -2"),
    (("--suite", "practice-code", "--max-sandboxes", "0", "--workers", "2"), "at least 1, not 0"),
    (("--suite", "practice-integer", "--port", "70000"), "from 0 (any free port) to 65535"),
    (("--suite", "practice-integer", "--host", "203.0.113.1"), "--host 203.0.113.1"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_what_cannot_be_served_is_refused_in_one_sentence(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reward", "serve", *arguments]) == 2
    out, error = capsys.readouterr()
    assert said in error
    assert (out, error.count("\n")) == ("", 1)


def test_the_split_that_is_the_exam_is_no_choice(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["reward", "serve", "--suite", "practice-integer", "--split", "eval"])
    assert "invalid choice: 'eval'" in capsys.readouterr().err


def test_a_port_that_is_taken_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["reward", "serve", "--suite", "practice-integer", "--port", port]) == 2
    assert f"Port {port} of 127.0.0.1 is in use" in capsys.readouterr().err


def test_a_reply_is_not_held_back_until_an_acknowledgement_comes() -> None:
    with bound_socket("127.0.0.1", 0) as taken:
        listen(taken)
        with socket.create_connection(taken.getsockname()), taken.accept()[0] as accepted:
            assert accepted.proto == socket.IPPROTO_TCP  # asyncio sets TCP_NODELAY for these only


ANY = RewardHooks(lambda *_: as_reply, lambda _: user_prompt, whole_catalogue)


def refusal(suite: Toy, boxes: Boxes | None = None) -> str:
    with pytest.raises(UserError) as raised:
        serve_rewards(ServeRequest(("toy",)), toy_catalogue(suite, boxes), ANY, say=print)
    return str(raised.value)


class Programs(Toy):
    """A suite that runs programs."""

    needs_box = True


def test_programs_run_in_no_box_that_cannot_be_had() -> None:
    down = Boxes(lambda *_: None, lambda *_: None, lambda: "No engine answers.")
    assert "No engine answers." in refusal(Programs(), down)


class Talked(Toy):
    """A suite some of whose replies only a model can judge."""

    def needs_judge(self, question: Question) -> bool:
        return question.id == "train-3"

    async def judged(self, state: object, question: Question) -> object:
        raise NotImplementedError


def test_a_suite_that_only_a_model_can_judge_is_refused() -> None:
    assert "1 of the 12 questions of suite 'toy' need a model as judge" in refusal(Talked())


class Leaky(Toy):
    """A suite that teaches nothing but what it asks."""

    def load(self, split: object = "eval") -> list[Question]:
        return [Question(f"{split}-0", "The very same?", "integer", "42")]


def test_a_suite_that_teaches_nothing_but_what_it_asks_is_refused() -> None:
    assert "are in both training and evaluation" in refusal(Leaky())


class Generous(Toy):
    """A suite that gives an empty reply its point."""

    def grade(self, question: Question, reply: str, box: object | None = None) -> Grade:
        return Grade(float(not reply), reply)


def test_a_grader_that_gives_something_for_nothing_is_refused() -> None:
    assert "rewards the attack 'empty' on train-0 with 1" in refusal(Generous())


# --- a process of its own ---------------------------------------------------------------------


@pytest.mark.slow
def test_it_serves_until_ctrl_c_and_says_what_came_of_it() -> None:
    with started("--suite", INTEGER.name, "--limit", "5") as running:
        question = INTEGER.load("train")[0]
        item = {"suite": INTEGER.name, "question": question.id}
        items = [{**item, "completion": said} for said in (gold_reply(question), "no idea")]
        rows = post(f"{running.url}/score", {"items": items})[1]["outcomes"]
        ids = get(f"{running.url}/questions?suite={INTEGER.name}")[1]["questions"]
        out, error, code = running.stopped(signal.SIGINT)
    assert "replies to train questions of practice-integer (5), no box" in running.first
    assert [row["value"] for row in rows] == [1.0, 0.0]
    assert len(ids) == 5
    assert (out, error, code) == ("Stopped. 2 rewards: 2 scored; $0 spent.\n", "", 0)


@pytest.mark.slow
def test_it_can_be_stopped_as_soon_as_it_says_that_it_serves() -> None:
    with started("--suite", INTEGER.name, "--limit", "1") as running:
        out, error, code = running.stopped(signal.SIGTERM)
    assert (out, error, code) == ("Stopped. 0 rewards: none; $0 spent.\n", "", 0)


PLAN = 'model_id = [1]\nsubtasks = ["Solve it."]\naccess_list = [[]]'


@pytest.mark.slow
def test_it_rewards_workflows_over_a_pool_and_programs_in_a_box() -> None:
    arguments = ("--suite", CODE.name, "--suite", INTEGER.name, "--pool", "rehearsal")
    with started(*arguments, "--limit", "3", "--max-usd", "5") as running:
        question = INTEGER.load("train")[0]
        items = [
            {"suite": INTEGER.name, "question": question.id, "completion": PLAN},
            {"suite": CODE.name, "question": CODE.load("train")[0].id, "completion": PLAN},
            {"suite": INTEGER.name, "question": question.id, "completion": "no plan"},
        ]
        rows = post(f"{running.url}/score", {"items": items})[1]["outcomes"]
        shown = get(f"{running.url}/rows?suite={INTEGER.name}")[1]["rows"][0]["messages"]
        out, _, code = running.stopped(signal.SIGTERM)
    assert "workflows for pool rehearsal" in running.first
    assert "box subprocess" in running.first
    assert [row["status"] for row in rows] == ["scored", "scored", "invalid_action"]
    assert [row["calls"] for row in rows] == [1, 1, 0]
    assert "AVAILABLE LANGUAGE MODELS" in shown[0]["content"]
    assert "2 scored, 1 invalid_action; $0.0" in out
    assert code == 0


SLEEPING = "```python\nimport time\ntime.sleep(1.5)\n```"


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"], ids=["one process", "replicas"])
def test_a_request_in_flight_is_answered_after_the_signal(workers: str) -> None:
    arguments = ("--suite", CODE.name, "--limit", "1", "--box", "subprocess")
    with started(*arguments, "--workers", workers) as running:
        item = {"suite": CODE.name, "question": CODE.load("train")[0].id, "completion": SLEEPING}
        replies: list[tuple[int, object]] = []

        def ask() -> None:
            replies.append(post(f"{running.url}/score", {"items": [item]}))

        thread = threading.Thread(target=ask)
        thread.start()
        while not get(f"{running.url}/counts")[1]["in_flight"]:
            time.sleep(0.01)
        out, error, code = running.stopped(signal.SIGINT)
        thread.join()
    assert [status for status, _ in replies] == [200], json.dumps(replies)
    assert out == "Stopped. 1 rewards: 1 scored; $0 spent.\n"
    assert (error, code) == ("", 0)


@pytest.mark.slow
def test_it_listens_to_this_machine_only_unless_told_otherwise() -> None:
    with started("--suite", INTEGER.name, "--limit", "1") as running:
        assert addresses(running.process.pid) == {"127.0.0.1"}


def addresses(pid: int) -> set[str]:
    """Return the addresses at which a process listens, as the kernel lists them."""
    links: list[str] = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            links.append(str(file.readlink()))
    inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    listening = [row[1].split(":")[0] for row in rows if row[9] in inodes and row[3] == "0A"]
    return {socket.inet_ntoa(bytes.fromhex(address)[::-1]) for address in listening}
