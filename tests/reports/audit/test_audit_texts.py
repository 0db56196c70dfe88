"""What a log says in words is held against its journal: every call, answer and verdict."""

import json
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
)
from inspect_ai.tool import ToolCall

from podium.cli import main
from podium.harness.ledger.hooks import SampleDigests, reply_digest, sent_digest, text_digest
from podium.harness.ledger.logs import open_log
from podium.harness.model_judge import regrade_dir, remade_dir
from podium.harness.request import request_digest
from podium.reports.audit import audit, given_anew
from tests.harness.faulty_run import run
from tests.harness.test_regrade import Unlucky
from tests.harness.toy_run import Toy, toy_pool, toy_run
from tests.providers import CLIENTS_WARN, ok
from tests.reports.audit.audited_run import (
    Json,
    edit_journal,
    edit_log,
    edit_samples,
    failing,
    model_events,
    said,
    sat,
)

pytestmark = CLIENTS_WARN
LONG = "A long text, which a log keeps apart from its events. " * 5
HALF = "half a character: \ud800"


def logged(folder: Path, output: ModelOutput, asked: list[Any]) -> SampleDigests:
    """Let Inspect write a log of one call, and read its digests."""
    event = ModelEvent(
        uuid="the-event", model="m/m", input=asked, tools=[], tool_choice="none",
        config=GenerateConfig(), output=output,
    )  # fmt: skip
    eval_ = EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="t",
        dataset=EvalDataset(),
        model="m/m",
        config=EvalConfig(),
    )
    sample = EvalSample(id="q1", epoch=1, input="asked", target="4", output=output, events=[event])
    path = folder / "one.eval"
    write_eval_log(EvalLog(eval=eval_, status="success", samples=[sample]), str(path))
    with open_log(path) as log:
        return SampleDigests(next(log.samples()))


@pytest.mark.parametrize("text", ["short", LONG, f"{LONG} \u00e9 \U0001f600", ""], ids=ascii)
def test_a_call_and_its_log_have_the_same_digests_whatever_was_said(
    text: str, tmp_path: Path
) -> None:
    parts = [ContentReasoning(reasoning=f"thinking {text}"), ContentText(text=text)]
    calls = [ToolCall(id="1", function="search", arguments={"q": text, "n": 1.5, "none": None})]
    turn = ChatMessageAssistant(content=parts, tool_calls=calls)
    output = ModelOutput(model="m", choices=[ChatCompletionChoice(message=turn)])
    asked = [ChatMessageSystem(content=LONG), ChatMessageUser(content=text), turn]
    found = logged(tmp_path, output, asked).calls["the-event"]
    assert found.sent == sent_digest(asked)
    assert found.reply == reply_digest(output)
    assert found.said == text_digest(output.completion)


def test_a_request_of_nothing_but_texts_has_the_digest_that_intents_have() -> None:
    asked = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content=HALF)]
    assert sent_digest(asked) == request_digest(asked)


def test_half_a_character_has_the_digest_of_what_a_log_keeps_of_it() -> None:
    whole, half = (
        ModelOutput(
            model="m", choices=[ChatCompletionChoice(message=ChatMessageAssistant(content=text))]
        )
        for text in ("half a character: \\ud800", HALF)
    )
    assert reply_digest(half) == reply_digest(whole)
    assert text_digest(HALF) == text_digest("half a character: \\ud800")


def older(line: Json) -> Json | None:
    """Return a line as podium wrote it before it compared texts."""
    for name in ("sent_sha256", "reply_sha256"):
        line.pop(name, None)
    return None if line["kind"] in ("answer", "grade", "closed") else line


def test_an_older_journal_is_compared_as_far_as_it_goes(tmp_path: Path) -> None:
    sat(tmp_path, journal=1)
    edit_journal(tmp_path, older)
    found = audit(tmp_path)
    assert found.ok
    assert said(found, "I15").startswith("pass")
    assert "only the completion's digest" in said(found, "I15")
    assert "verdicts that no journal has" in said(found, "I16")

    def another(sample: Json) -> None:
        model_events(sample)[0]["output"]["completion"] = "no"

    edit_samples(tmp_path, another)
    assert failing(tmp_path) == {"I15"}


def test_a_request_whose_turns_an_adapter_joined_is_not_comparable_with_an_older_journal(
    tmp_path: Path,
) -> None:
    sat(tmp_path, journal=1)
    edit_journal(tmp_path, older)

    def joined(sample: Json) -> None:
        message = sample["events_data"]["messages"][0]
        message["content"] += "\nand more"
        message["metadata"] = {"combined_from": ["a", "b"]}

    edit_samples(tmp_path, joined)
    found = audit(tmp_path)
    assert found.ok
    assert "whose turns the provider's adapter merged" in said(found, "I15")


def test_texts_that_were_taken_out_are_counted_and_fail_nothing(tmp_path: Path) -> None:
    sat(tmp_path, journal=1, redacted=True)

    def taken_out(sample: Json) -> None:
        for event in model_events(sample):
            event["input"], event["output"]["completion"] = [], "sha256:0"
            event["input_refs"] = None

    edit_samples(tmp_path, taken_out)
    found = audit(tmp_path)
    assert said(found, "I15").startswith("pass")
    assert ("not comparable: calls whose texts were removed from the log", 8) in next(
        one.reasons for one in found.verdicts if one.invariant == "I15"
    )


def test_a_reply_whose_digest_was_taken_out_of_the_journal_is_weak(tmp_path: Path) -> None:
    sat(tmp_path, journal=1)
    gone = {"output_sha256": None, "reply_sha256": None}
    edit_journal(tmp_path, lambda line: {**line, **gone} if line["kind"] == "outcome" else line)
    assert "weak\nreplies in the log without a digest" in said(audit(tmp_path), "I15")


@pytest.mark.parametrize("kind", ["answer", "grade"])
def test_what_a_journal_should_have_of_a_sample_and_has_not_is_weak(
    kind: str, tmp_path: Path
) -> None:
    sat(tmp_path, journal=1)
    edit_journal(tmp_path, lambda line: None if line["kind"] == kind else line)
    assert said(audit(tmp_path), {"answer": "I15", "grade": "I16"}[kind]).startswith("weak")


def test_another_request_id_in_one_record_fails_i4(tmp_path: Path) -> None:
    left = run(tmp_path, [ok()])
    assert (left.row.request_id, left.failing) == ("req-1", set())
    other = {"request_id": "req-2"}
    edit_journal(left.folder, lambda line: {**line, **other} if line["kind"] == "outcome" else line)
    assert "the journal names request req-2, the log req-1" in said(audit(left.folder), "I4")


def test_a_journal_cut_before_its_end_is_weak_and_one_of_a_killed_process_is_not(
    tmp_path: Path,
) -> None:
    def cut(line: Json) -> Json | None:
        return None if line["kind"] in ("totals", "closed") else line

    sat(tmp_path, journal=1, limit=2)
    for path in tmp_path.glob("*.eval"):  # what kill -9 leaves
        edit_log(path, lambda name, found: None if name == "header.json" else found)
    edit_journal(tmp_path, cut)
    assert "last lines" not in said(audit(tmp_path), "I14")
    sat(tmp_path / "more", journal=1)
    edit_journal(tmp_path / "more", cut)
    assert "journals without their last lines" in said(audit(tmp_path / "more"), "I14")


def test_verdicts_that_were_given_again_are_weak_until_they_are_given_anew(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, Unlucky())
    assert audit(log_dir, strict=True).ok
    assert regrade_dir(log_dir, {"toy": Toy()}, None)[0].changed == 6
    assert said(audit(log_dir), "I16").startswith("weak")
    anew = given_anew(remade_dir(log_dir, {"toy": Toy()}, None))
    assert (
        said(audit(log_dir, anew=anew), "I16") == "pass\nverdicts graded again with the same result"
    )


def test_verdicts_are_left_out_with_their_reason(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir)
    (log,) = remade_dir(log_dir, {}, None)
    assert dict(log.left) == {"this podium lacks suite 'toy'": 12}
    (log,) = remade_dir(log_dir, {"toy": Toy(version="9-A")}, None)
    assert list(log.left) == ["version 1-A of toy graded it, now 9-A (regrade --all)"]
    boxed = Toy()
    boxed.needs_box = True
    (log,) = remade_dir(log_dir, {"toy": boxed}, None)
    assert list(log.left) == ["it needs a box (--box)"]


def test_both_commands_give_verdicts_anew_and_name_the_ones_that_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = str(tmp_path / "run")
    asked = ["run", "--suite", "practice-integer", "--limit", "2", "--system", "single:sage"]
    assert main([*asked, "--log-dir", home]) == 0
    for command in (["audit", home], ["manifest", "verify", home]):
        capsys.readouterr()
        assert main([*command, "--regrade"]) == 0
        assert "graded again with the same result" in capsys.readouterr().out
        assert main([*command, "--box", "bwrap"]) == 2
        assert "Add --regrade" in capsys.readouterr().err
        assert main([*command, "--regrade", "--box", "nowhere"]) == 2
        assert "nowhere" in capsys.readouterr().err

    def wrong(sample: Json) -> None:
        sample["scores"]["podium"]["value"] = 0.25

    edit_samples(tmp_path, wrong)
    for command in (["audit", home], ["manifest", "verify", home]):
        capsys.readouterr()
        assert main([*command, "--regrade"]) == 1
        shown = " ".join(capsys.readouterr().out.split())
        assert "the log's verdict is 0.25, the new verdict is 1.0" in shown


def test_what_a_manifest_replaces_is_printed_and_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "run"
    asked = ["run", "--suite", "practice-integer", "--limit", "2", "--log-dir", str(home)]
    assert main([*asked, "--system", "single:sage"]) == 0
    first = json.loads((home / "MANIFEST.json").read_bytes())
    assert main([*asked, "--system", "moa-lite"]) == 0
    capsys.readouterr()
    assert main(["manifest", "verify", str(home)]) == 0
    shown = capsys.readouterr().out
    assert f"It replaces root {first['root']}" in shown
    assert "added since; 2 files grown since" in shown
    assert audit(home, strict=True).ok
    path = home / "experiment.json"
    was = next(one for one in json.loads((home / "MANIFEST.json").read_bytes())["files"]
               if one["path"] == path.name)  # fmt: skip
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    assert main(["manifest", "write", str(home)]) == 0
    shown = capsys.readouterr().out
    assert "1 file changed or gone since" in shown
    assert f"experiment.json: seed changed (it was sha256 {was['sha256']})" in shown
    assert main(["manifest", "verify", str(home)]) == 1
    assert "before it was extended, experiment.json: seed changed" in capsys.readouterr().out
    assert failing(home) == {"I14"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda event: event.update(input_refs=[[-5, 10**12]] * 2), id="endless references"
        ),
        pytest.param(lambda event: event["output"].update(choices=[{}]), id="no message"),
        pytest.param(
            lambda event: event["output"]["choices"][0]["message"].update(
                tool_calls=[{"arguments": json.loads('{"a":' * 900 + "1" + "}" * 900)}]
            ),
            id="deep arguments",
        ),
        pytest.param(
            lambda event: event["output"]["choices"][0]["message"].update(content=[{"type": 7}]),
            id="a part of no kind",
        ),
    ],
)
def test_texts_that_no_log_has_are_a_fault_and_no_traceback(change: Any, tmp_path: Path) -> None:
    sat(tmp_path, journal=1)
    edit_samples(tmp_path, lambda sample: change(model_events(sample)[0]))
    assert "I15" in failing(tmp_path)
