"""The reward service over a real connection: every endpoint, every refusal, limits and parity."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest

from podium.harness.records import Grade, Question
from podium.harness.rewards.outcome import PAPER, BadBody, Status, completion_of, item_of
from podium.harness.rewards.reward import RewardSettings
from podium.harness.rewards.server import MOST_BYTES
from podium.suites import SUITES
from tests.harness.rewards.service import get, listening, post, service_of, train
from tests.harness.toy_run import Toy
from tests.suites.gold import gold_reply

INTEGER, CODE = SUITES["practice-integer"], SUITES["practice-code"]
EXAMS = train(INTEGER)
FIRST = next(iter(EXAMS[INTEGER.name].questions.values()))
LABEL = f"{INTEGER.name}/{FIRST.id}"
RIGHT, WRONG = gold_reply(FIRST), "The answer is \\boxed{-1}."


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    with listening(service_of(EXAMS)) as where:
        yield where


def native(completion: object, **changes: Any) -> dict[str, Any]:
    item = {"suite": INTEGER.name, "question": FIRST.id, "completion": completion}
    return {"items": [{**item, **changes}]}


@dataclass
class Broken(Toy):
    """A suite whose grader always fails, as when a disk is full."""

    name = "broken"

    def __post_init__(self) -> None:
        Toy.__init__(self)

    def grade(self, question: Question, reply: str, box: object | None = None) -> Grade:
        raise OSError("the disk is full")


def test_score_gives_one_outcome_per_item_in_order(url: str) -> None:
    one = native(RIGHT)["items"] + native(WRONG)["items"] + native("I give up.")["items"]
    status, body = post(f"{url}/score", {"items": one})
    assert status == 200
    assert [row["value"] for row in body["outcomes"]] == [1.0, 0.0, 0.0]
    first, _, unread = body["outcomes"]
    assert {name: first[name] for name in ("status", "usd", "calls", "reason")} == {
        "status": "scored",
        "usd": "0",
        "calls": 0,
        "reason": "",
    }
    assert first["usage"] == {
        "input": 0,
        "output": 0,
        "cache_read": 0,
        "cache_write": 0,
        "reasoning": None,
        "orchestration_in": 0,
        "orchestration_in_cached": 0,
        "orchestration_out": 0,
        "cache_write_1h": 0,
        "total_reported": None,
    }
    assert unread["components"] == {"correct": 0.0, "parsed": 0.0}


def test_get_reward_cuts_the_prompt_off_and_speaks_as_openrlhf_reads(url: str) -> None:
    prompt = f"<|im_start|>user\n{FIRST.text}<|im_end|>\n<|im_start|>assistant\n"
    said = {
        "query": [f"{prompt}{RIGHT}<|im_end|>", f"{prompt}{WRONG}<|im_end|>\n"],
        "prompts": [prompt, prompt],
        "labels": [LABEL, LABEL],
    }
    status, body = post(f"{url}/get_reward", said)
    assert status == 200
    assert body["rewards"] == body["scores"] == [1.0, 0.0]
    assert set(body["extra_logs"]) == {"unscored", "invalid_action", "worker_calls", "latency_s"}
    assert body["extra_logs"]["unscored"] == [0.0, 0.0]


def test_rm_answers_slime_with_a_bare_number(url: str) -> None:
    said = {"prompt": [{"role": "user", "content": "..."}], "response": RIGHT, "label": LABEL}
    assert post(f"{url}/rm", said) == (200, 1.0)


def gym(text: str, **more: Any) -> dict[str, Any]:
    """Return what NeMo-Gym's simple agent posts: the row of the data set, and the response."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"id": "m", "type": "message", "role": "assistant", "content": content}
    thought = {"id": "r", "type": "reasoning", "summary": [], "content": None}
    params = {"input": [{"role": "user", "content": "..."}]}
    response = {"id": "x", "object": "response", "output": [thought, message], "tools": []}
    return {"responses_create_params": params, "response": response, **more}


def test_verify_answers_nemo_gym_with_its_request_and_a_reward(url: str) -> None:
    said = gym(RIGHT, label=LABEL, _ng_task_index=3)
    status, body = post(f"{url}/verify", said)
    assert status == 200
    assert {name: body[name] for name in said} == said
    assert (body["reward"], body["mask_sample"], body["failure_kind"]) == (1.0, False, None)
    assert post(f"{url}/seed_session", said) == (200, {})


def test_verify_finds_the_label_in_the_metadata_too(url: str) -> None:
    said = gym(WRONG)
    said["responses_create_params"]["metadata"] = {"label": LABEL}
    assert post(f"{url}/verify", said)[1]["reward"] == 0.0


def test_an_item_without_a_value_is_said_so_to_each_trainer() -> None:
    label = "broken/train-0"
    with listening(service_of(train(Broken()))) as url:
        item = {"suite": "broken", "question": "train-0", "completion": "42"}
        (row,) = post(f"{url}/score", {"items": [item]})[1]["outcomes"]
        asked = {"query": ["p42"], "prompts": ["p"], "labels": [label]}
        failed = post(f"{url}/get_reward", asked)
        zero = post(f"{url}/get_reward?on_unscored=zero", asked)
        slime = post(f"{url}/rm", {"prompt": "p", "response": "42", "label": label})
        gymnast = post(f"{url}/verify", gym("42", label=label))[1]
    assert (row["value"], row["status"]) == (None, "scorer_error")
    assert "disk is full" in row["reason"]
    assert (failed[0], failed[1]["kind"]) == (503, "unscored")
    assert zero[1]["rewards"] == [0.0]
    assert zero[1]["extra_logs"]["unscored"] == [1.0]
    assert (slime[0], slime[1]["kind"]) == (503, "unscored")
    assert (gymnast["reward"], gymnast["mask_sample"]) == (0.0, True)
    assert gymnast["failure_kind"] == "verifier_error"


def test_too_many_without_a_value_stop_the_service_for_good() -> None:
    settings = RewardSettings(max_masked=0.3, masked_after=4)
    service = service_of(train(Broken(), INTEGER), settings)
    with listening(service) as url:
        bad = {"suite": "broken", "question": "train-0"}
        items = [{**bad, "completion": str(n)} for n in range(6)]
        status, body = post(f"{url}/score", {"items": items})
        assert (status, body["kind"]) == (503, "too_many_masked")
        assert "no value" in body["error"]
        assert post(f"{url}/score", native(RIGHT)) == (503, body)
        assert post(f"{url}/rm", {"response": RIGHT, "label": LABEL}) == (503, body)
        assert get(f"{url}/health") == (503, body)
        counts = get(f"{url}/counts")[1]
    assert counts["stopped"] == body["error"]
    assert counts["masked_share"] == 1.0


def test_counts_say_what_became_of_every_item() -> None:
    with listening(service_of(EXAMS, RewardSettings(values=PAPER))) as url:
        assert get(f"{url}/health") == (200, {"status": "ok", "suites": [INTEGER.name]})
        (row,) = post(f"{url}/score", native(WRONG))[1]["outcomes"]
        counts = get(f"{url}/counts")[1]
    assert (row["value"], row["components"]["correct"]) == (0.5, 0.0)
    assert counts["statuses"] == {status.value: int(status == "scored") for status in Status}
    assert (counts["items"], counts["masked_share"], counts["usd"]) == (1, 0.0, "0")


def test_rows_hold_prompts_and_labels_and_never_a_target(url: str) -> None:
    rows = get(f"{url}/rows?suite={INTEGER.name}")[1]["rows"]
    assert rows[0] == {
        "label": LABEL,
        "suite": INTEGER.name,
        "question": FIRST.id,
        "messages": [{"role": "user", "content": FIRST.text}],
    }
    assert get(f"{url}/questions?suite={INTEGER.name}") == (
        200,
        {"suite": INTEGER.name, "questions": list(EXAMS[INTEGER.name].questions)},
    )


class Private(Toy):
    """A suite whose texts may be passed on to nobody."""

    publishable = False


def test_questions_that_must_not_be_published_are_served_as_ids_only() -> None:
    with listening(service_of(train(Private()))) as url:
        status, body = get(f"{url}/rows?suite=toy")
        ids = get(f"{url}/questions?suite=toy")[1]["questions"]
    assert status == 403
    assert "does not allow" in body["error"]
    assert ids[0] == "train-0"


BAD = [
    ("/score", b"{", 422, "the body"),
    ("/score", b"[]", 422, "the body"),
    ("/score", b"\xff\xfe", 422, "the body"),
    ("/score", {"items": []}, 422, "items"),
    ("/score", {"items": [{"suite": "s", "question": "q"}]}, 422, "items.0.completion"),
    ("/score", native(RIGHT, epoch=0), 422, "items.0.epoch"),
    ("/score", native(RIGHT, target="42"), 422, "items.0.target"),
    ("/score", native(RIGHT, workers=["a", "a"]), 422, "without duplicates"),
    ("/score", native(RIGHT, workers="a"), 422, "items.0.workers"),
    ("/score", native(RIGHT, first=7), 422, "items.0.first"),
    ("/score", native(7), 422, "items.0.completion"),
    ("/score", native(RIGHT, suite="no-such"), 404, "practice-integer"),
    ("/score", native(RIGHT, question="no-such"), 404, "no-such"),
    ("/get_reward", {"query": ["a"], "prompts": ["a"], "labels": []}, 422, "different lengths"),
    ("/get_reward", {"query": ["a"], "prompts": ["b"], "labels": [LABEL]}, 422, "does not begin"),
    ("/get_reward?on_unscored=null", {}, 422, "error or zero"),
    ("/rm", {"response": "x", "label": "no-slash"}, 422, "SUITE/QUESTION"),
    ("/rm", {"response": "x", "label": None}, 422, "label"),
    ("/verify", {"response": {"output": []}, "label": LABEL}, 422, "responses_create_params"),
    ("/verify", gym(RIGHT), 422, "SUITE/QUESTION"),
    ("/verify", gym(RIGHT, label=LABEL, seen=float("nan")), 422, "not JSON numbers"),
    ("/verify", gym(RIGHT, label=f"{INTEGER.name}/no-such"), 404, "no-such"),
]


@pytest.mark.parametrize(("path", "body", "status", "named"), BAD)
def test_a_wrong_request_is_refused_in_one_sentence(
    path: str, body: object, status: int, named: str, url: str
) -> None:
    got, said = post(f"{url}{path}", body)
    assert got == status
    assert named in said["error"]
    assert "\n" not in said["error"]


@pytest.mark.parametrize("path", ["/rows", "/rows?suite=x", "/questions"])
def test_a_suite_that_is_not_served_is_404(path: str, url: str) -> None:
    status, body = get(f"{url}{path}")
    assert status == 404
    assert INTEGER.name in body["error"]


def test_a_body_that_is_too_long_is_refused(url: str) -> None:
    status, body = post(f"{url}/score", b" " * (MOST_BYTES + 1))
    assert status == 413
    assert "fewer items" in body["error"]


def test_a_lone_surrogate_is_graded_and_no_crash(url: str) -> None:
    raw = b'{"items":[{"suite":"practice-integer","question":"%s","completion":"\\ud800"}]}'
    status, _ = post(f"{url}/score", raw % FIRST.id.encode())
    assert status in (200, 422)


def test_every_gold_answer_is_worth_one_over_openrlhf_and_slime(url: str) -> None:
    questions = list(EXAMS[INTEGER.name].questions.values())
    for question in questions[:5]:
        label, reply = f"{INTEGER.name}/{question.id}", gold_reply(question)
        assert post(f"{url}/rm", {"response": reply, "label": label}) == (200, 1.0)
        said = {"query": [question.text + reply], "prompts": [question.text], "labels": [label]}
        assert post(f"{url}/get_reward", said)[1]["rewards"] == [1.0]


def test_a_prompt_whose_beginning_was_cut_off_is_found_by_its_end() -> None:
    prompt = "word " * 200 + "Question? Answer:"
    assert completion_of(prompt[400:] + " 42</s>", prompt) == " 42"
    with pytest.raises(BadBody, match="does not begin with its prompt"):
        completion_of("something else entirely 42", prompt)


def test_a_label_keeps_the_slashes_of_an_id() -> None:
    assert item_of("humaneval/HumanEval/0", "x").question == "HumanEval/0"
