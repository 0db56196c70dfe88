"""Forgeries in a table: each changes a run of two systems the way somebody would who wants more.

`run(home)` makes the run, `FORGERIES` are what may be done to it, `caught` says what an audit then
shows. The same file works on older versions of podium, so that before and after can be compared.
"""

import json
import shutil
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from podium.cli import main
from podium.harness.ledger.manifest import FILE, write_manifest
from podium.reports.audit import audit
from tests.reports.audit.audited_run import Json, edit_journal, edit_log, model_events, of_kind

SINGLE, MOA = "single-sage", "moa-lite"
RUN = ["--suite", "practice-integer", "--limit", "3", "--display", "line"]
LIE = "It is plain that the answer is \\boxed{105}."
ALL = ("header.json", "_journal/start.json")


def run(home: Path) -> Path:
    """Let two systems sit three questions, as `podium run` does."""
    asked = ["run", *RUN, "--system", "single:sage", "--system", "moa-lite", "--log-dir", str(home)]
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        assert main(asked) == 0
    return home


@dataclass(frozen=True, slots=True)
class Forgery:
    """One way to forge a run."""

    name: str
    forge: Callable[[Path], None]
    caught: str
    """By what, with a manifest that was made anew; `nothing` where no file can show it."""
    regrade: str = ""
    """By what with --regrade, where that is more."""


def caught(folder: Path, *, anew: bool = False) -> str:
    """Return what an audit shows: the invariants that fail, else those that are weak."""
    verdicts = _audited(folder, anew=anew)
    failed = [one.invariant for one in verdicts if one.status == "fail"]
    weak = [one.invariant for one in verdicts if one.status == "weak"]
    if failed:
        return f"fail {' '.join(failed)}"
    return f"weak {' '.join(weak)}" if weak else "nothing"


def _audited(folder: Path, *, anew: bool) -> Any:
    if not anew:
        return audit(folder).verdicts
    from podium.cli.list_commands import whole_catalogue
    from podium.harness.model_judge import remade_dir
    from podium.reports.audit import given_anew

    suites = whole_catalogue().suites
    return audit(folder, anew=given_anew(remade_dir(folder, suites, None))).verdicts


def rewritten(folder: Path) -> None:
    """Make the manifest anew, as if there had never been another."""
    (folder / FILE).unlink(missing_ok=True)
    write_manifest(folder)


def log_of(folder: Path, system: str = SINGLE) -> Path:
    """Return the oldest log of a system."""
    return sorted(folder.glob(f"*{system}*.eval"))[0]


def first(change: Callable[[Json], None], system: str = SINGLE) -> Callable[[Path], None]:
    """Return a change of one sample of a system's log."""

    def forge(folder: Path) -> None:
        edit_log(log_of(folder, system), changing_first(change))

    return forge


def changing_first(change: Callable[[Json], None]) -> Callable[[str, Json], Json]:
    """Return a change of a log's first sample."""

    def changed(name: str, found: Json) -> Json:
        if name.startswith("samples/") and "0001" in name:
            change(found)
        return found

    return changed


def header(change: Callable[[Json], None], system: str = SINGLE) -> Callable[[Path], None]:
    """Return a change of a log's header, in both places."""

    def changed(name: str, found: Json) -> Json:
        if name in ALL:
            change(found)
        return found

    return lambda folder: edit_log(log_of(folder, system), changed)


def lines(change: Callable[[Json], Json | None]) -> Callable[[Path], None]:
    """Return a change of all journals, whose chains are then made whole again."""
    return lambda folder: edit_journal(folder, change)


def experiment(change: Callable[[Json], None]) -> Callable[[Path], None]:
    """Return a change of the experiment's record."""

    def forge(folder: Path) -> None:
        path = folder / "experiment.json"
        found = json.loads(path.read_bytes())
        change(found)
        path.write_text(json.dumps(found, indent=1))

    return forge


def both(*forgeries: Callable[[Path], None]) -> Callable[[Path], None]:
    """Return several changes, one after the other."""

    def forge(folder: Path) -> None:
        for one in forgeries:
            one(folder)

    return forge


def message(sample: Json) -> Json:
    """Return the message of a sample's first reply."""
    return model_events(sample)[0]["output"]["choices"][0]["message"]


def completion(sample: Json) -> None:
    model_events(sample)[0]["output"]["completion"] = LIE


def content(sample: Json) -> None:
    message(sample)["content"] = LIE


def answer(sample: Json) -> None:
    """Change what a sample shows as its answer, in all places."""
    sample["output"]["completion"] = LIE
    sample["output"]["choices"][0]["message"]["content"] = LIE
    sample["messages"][-1]["content"] = LIE


def reply(sample: Json) -> None:
    completion(sample)
    content(sample)
    answer(sample)


def reasoning(sample: Json) -> None:
    said = {"type": "reasoning", "reasoning": "I know it by heart.", "redacted": False}
    message(sample)["content"] = [said, {"type": "text", "text": message(sample)["content"]}]


def tool_call(sample: Json) -> None:
    message(sample)["tool_calls"] = [{"id": "1", "function": "search", "arguments": {"q": "it"}}]


def prompt(sample: Json) -> None:
    """Change what was asked, where the log keeps what its calls share."""
    sample["events_data"]["messages"][0]["content"] = "What is 1 + 1?"


def score(value: float, answer: str = "105") -> Callable[[Json], None]:
    def change(sample: Json) -> None:
        given = [sample["scores"]["podium"]]
        given += [event["score"] for event in sample["events"] if event["event"] == "score"]
        for one in given:
            one["value"], one["answer"] = value, answer

    return change


def all_scores(value: float, system: str = SINGLE) -> Callable[[Path], None]:
    """Return a change of a verdict wherever a log has it."""

    def mean(found: Json) -> None:
        others = 2.0
        if found.get("results"):
            found["results"]["scores"][0]["metrics"]["mean"]["value"] = (others + value) / 3

    def forge(folder: Path) -> None:
        first(score(value), system)(folder)
        header(mean, system)(folder)
        summaries(lambda row: row["scores"]["podium"].update(value=value), system)(folder)

    return forge


def summaries(change: Callable[[Json], None], system: str = SINGLE) -> Callable[[Path], None]:
    """Return a change of a log's summary of its first sample."""

    def forge(folder: Path) -> None:
        path = log_of(folder, system)
        contents = members(path)
        for at, (name, data) in enumerate(contents):
            if name == "summaries.json":
                rows = json.loads(data)
                for row in rows:
                    if "0001" in row["id"]:
                        change(row)
                contents[at] = (name, json.dumps(rows).encode())
        repack(path, contents)

    return forge


def members(path: Path) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        return [(one.filename, archive.read(one)) for one in archive.infolist()]


def repack(path: Path, contents: list[tuple[str, bytes]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents:
            archive.writestr(name, data)


def repacked(
    change: Callable[[list[tuple[str, bytes]]], list[tuple[str, bytes]]],
) -> Callable[[Path], None]:
    """Return a change of the members of a log."""

    def forge(folder: Path) -> None:
        path = log_of(folder)
        repack(path, change(members(path)))

    return forge


def twice(contents: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Put a second copy of a sample first, with another verdict."""
    name, data = next(one for one in contents if "0001" in one[0])
    sample = json.loads(data)
    score(0.0, "1")(sample)
    return [(name, json.dumps(sample).encode()), *contents]


def renamed(contents: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Hide a sample behind another sample's name."""
    return [(name.replace("0001", "0009"), data) for name, data in contents]


def hidden_twice(contents: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Add a second copy of a sample, with another verdict, under a name of its own."""
    (_, data), *_ = twice(contents)
    return [*contents, ("samples/zzz_epoch_1.json", data)]


def without_sample(contents: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    kept = [one for one in contents if not (one[0].startswith("samples/") and "0001" in one[0])]
    for at, (name, data) in enumerate(kept):
        if name == "summaries.json":
            rows = [row for row in json.loads(data) if "0001" not in row["id"]]
            kept[at] = (name, json.dumps(rows).encode())
    return kept


def not_of_first(line: Json) -> Json | None:
    """Leave out all that a journal says of the first question."""
    asked = line.get("sample") or {}
    if line["kind"] == "intent" and "0001" in asked.get("question", ""):
        GONE.append(line["call"])
    gone = line.get("call") in GONE or "0001" in asked.get("question", "")
    return None if gone or line["kind"] == "totals" else line


GONE: list[str] = []


def journal_path(folder: Path, system: str = "moa-lite") -> Path:
    return next((folder / "ledger").glob(f"*{system.replace(':', '_')}*/*.jsonl"))


def cut(count: Callable[[list[bytes]], int]) -> Callable[[Path], None]:
    """Return a change that leaves only the first lines of a journal."""

    def forge(folder: Path) -> None:
        path = journal_path(folder)
        kept = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(kept[: count(kept)]))

    return forge


def before_closing(all_lines: list[bytes]) -> int:
    kinds = [json.loads(line)["kind"] for line in all_lines]
    return next(at for at, kind in enumerate(kinds) if kind in ("totals", "closed"))


def reordered(folder: Path) -> None:
    path = journal_path(folder)
    head, one, two, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([head, two, one, *rest]))


def copied(folder: Path, change: Callable[[str, Json], Json] | None, name: str) -> None:
    """Add another log beside the first one."""
    path = log_of(folder)
    copy = path.with_name(name + path.name.partition("_")[1] + path.name.partition("_")[2])
    shutil.copyfile(path, copy)
    if change is not None:
        edit_log(copy, change)


def newer_copy(folder: Path) -> None:
    """Add a newer log with another verdict, as `podium regrade` would."""

    def changed(name: str, found: Json) -> Json:
        if name in ALL:
            found["eval"]["created"] = "2099-01-01T00:00:00+00:00"
        return found

    older = log_of(folder)
    aside = older.with_suffix(".aside")
    copied(folder, changed, "2099-01-01T00-00-00+00-00")
    older.rename(aside)
    all_scores(0.0)(folder)
    aside.rename(older)


def of_another_run(folder: Path) -> None:
    def changed(name: str, found: Json) -> Json:
        if name in ALL:
            found["eval"]["task"] = "practice-integer single:clerk"
            found["eval"]["metadata"]["podium"]["system"] = "single:clerk"
            found["eval"]["metadata"]["podium"]["journal"] = None
        return found

    copied(folder, changed, "2020-01-01T00-00-00+00-00")


def swapped(folder: Path) -> None:
    """Let each of two systems have the other one's log."""
    ones = {SINGLE: log_of(folder), MOA: log_of(folder, MOA)}

    def changed(to: Json) -> Callable[[str, Json], Json]:
        def change(name: str, found: Json) -> Json:
            if name in ALL:
                found["eval"]["task"] = to["eval"]["task"]
                facts = found["eval"]["metadata"]["podium"]
                for key in ("system", "args", "calls_expected", "order"):
                    facts[key] = to["eval"]["metadata"]["podium"].get(key)
            return found

        return change

    heads = {name: json.loads(dict(members(path))["header.json"]) for name, path in ones.items()}
    edit_log(ones[SINGLE], changed(heads[MOA]))
    edit_log(ones[MOA], changed(heads[SINGLE]))


def outcomes(change: Callable[[Json], Json]) -> Callable[[Path], None]:
    return lambda folder: edit_journal(folder, of_kind("outcome", change))


def cheaper(found: Json) -> None:
    prices = found["eval"]["metadata"]["podium"]["prices"]["usd_per_mtok"]
    prices["rehearsal/sage"]["output"] = "1.00"


def event(**fields: Any) -> Callable[[Json], None]:
    return lambda sample: model_events(sample)[0].update(fields)


def renamed_step(sample: Json) -> None:
    for one in sample["events"]:
        if one["event"] == "span_begin" and one.get("type") == "workflow_step":
            one["name"] = "step 1: swift"


def planned(sample: Json) -> None:
    sample["metadata"]["podium"]["plan"] = '[{"worker": "swift"}]'


def grade_line(line: Json) -> Json:
    """Write down another verdict, with the digest that goes with it."""
    from podium.harness.ledger.hooks import facts_digest

    return (
        {**line, "value": 0.0, "graded_sha256": facts_digest(*WRONG)} if "value" in line else line
    )


WRONG: list[str] = []


def consistent_score(folder: Path) -> None:
    """Change a verdict in the log and in the journal, with everything that is made of it."""
    all_scores(0.0)(folder)
    path = log_of(folder)
    sample = next(json.loads(data) for name, data in members(path) if "0001" in name)
    WRONG[:] = [sample["input"], sample["target"], "105"]

    def change(line: Json) -> Json:
        asked = (line.get("sample") or {}).get("uuid")
        return grade_line(line) if line["kind"] == "grade" and asked == sample["uuid"] else line

    edit_journal(folder, change)


def consistent_reply(folder: Path) -> None:
    """Change a reply in both records, with every digest of it, and so the answer."""
    first(reply)(folder)
    try:
        from podium.harness.ledger.hooks import SampleDigests
    except ImportError:  # an older podium compares no digest
        return
    sample = next(json.loads(data) for name, data in members(log_of(folder)) if "0001" in name)
    made, event_id = SampleDigests(sample), model_events(sample)[0]["uuid"]
    texts = made.calls[event_id]

    def change(line: Json) -> Json:
        if line["kind"] == "outcome" and line["event"] == event_id:
            return {**line, "output_sha256": texts.said, "reply_sha256": texts.reply}
        if line["kind"] == "answer" and line["sample"]["uuid"] == sample["uuid"]:
            return {**line, "answer_sha256": made.answer}
        return line

    edit_journal(folder, change)


def unsaid(found: Any) -> None:
    """Set all counts of output tokens below a JSON value to 0, sums included."""
    if isinstance(found, dict):
        if "output_tokens" in found and "total_tokens" in found:
            found["output_tokens"], found["total_tokens"] = 0, found["input_tokens"]
        for value in found.values():
            unsaid(value)
    elif isinstance(found, list):
        for value in found:
            unsaid(value)


def unsaid_line(line: Json) -> Json:
    """Do the same to a line of a journal, and work out its price again."""
    unsaid(line)
    if line["kind"] != "outcome":
        return line
    usage = {**line["usage"], "output": 0, "total_reported": line["usage"]["input"]}
    return {**line, "usage": usage, "usd": f"{usage['input'] * 3 / 1_000_000:.6f}"}


def silent(folder: Path) -> None:
    """Set the output tokens of a system to 0 in all records, with all that is made of them."""

    def change(_: str, found: Json) -> Json:
        unsaid(found)
        return found

    edit_log(log_of(folder), change)
    others = [*journal_path(folder).parent.glob("*")]
    kept = [path.read_bytes() for path in others]
    edit_journal(folder, unsaid_line)
    for path, data in zip(others, kept, strict=True):
        path.write_bytes(data)


def inserted(folder: Path) -> None:
    """Put a call into a journal that nobody made."""
    path = journal_path(folder)
    kept = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*kept[:2], kept[1], *kept[2:]]))


FORGERIES = (
    Forgery("a reply, in every place of the log", first(reply), "fail I15"),
    Forgery("a reply's completion", first(completion), "fail I15"),
    Forgery("a reply's message", first(content), "fail I15"),
    Forgery("reasoning put into a reply", first(reasoning), "fail I15"),
    Forgery("a tool call put into a reply", first(tool_call), "fail I15"),
    Forgery("a reply among nine", first(completion, MOA), "fail I15"),
    Forgery(
        "a reply taken out of the log",
        first(lambda one: model_events(one)[0]["output"].update(choices=[])),
        "fail I4 I15",
    ),
    Forgery("a request", first(prompt), "fail I15"),
    Forgery("a request that nine calls share", first(prompt, MOA), "fail I15"),
    Forgery("the question", first(lambda one: one.update(input="What?")), "fail I16"),
    Forgery("the target", first(lambda one: one.update(target="106")), "fail I16"),
    Forgery("a verdict in its sample", first(score(0.0)), "fail I14 I16"),
    Forgery("a verdict, wherever the log has it", all_scores(0.0), "fail I16"),
    Forgery("the answer that was found", first(score(1.0, "7")), "fail I16"),
    Forgery("the answer that was given", first(answer), "fail I15"),
    Forgery("the plan", first(planned, MOA), "fail I15"),
    Forgery(
        "the depth",
        first(lambda one: one["metadata"]["podium"].update(depth=1), MOA),
        "fail I15",
    ),
    Forgery(
        "tokens in the log",
        first(lambda one: model_events(one)[0]["output"]["usage"].update(output_tokens=1)),
        "fail I4",
    ),
    Forgery(
        "tokens in the journal",
        outcomes(lambda line: {**line, "usage": {**line["usage"], "output": 1}}),
        "fail I1 I2 I3 I4 I5",
    ),
    Forgery("a sample gone from the log", repacked(without_sample), "fail I4 I14"),
    Forgery(
        "a sample gone from log and journal",
        both(repacked(without_sample), lines(not_of_first)),
        "fail I3 I4 I14",
    ),
    Forgery("a member twice, with another verdict", repacked(twice), "fail I14"),
    Forgery("a sample twice, under another name", repacked(hidden_twice), "fail I14"),
    Forgery("a sample under another one's name", repacked(renamed), "fail I14"),
    Forgery(
        "a member that Inspect does not write",
        repacked(lambda all: [*all, ("notes/readme.txt", b"trust me")]),
        "weak I14",
    ),
    Forgery("a mean in a log's header", header(lambda found: _mean(found)), "fail I14"),
    Forgery(
        "a verdict in a log's summary",
        summaries(lambda row: row["scores"]["podium"].update(value=0.0)),
        "fail I14",
    ),
    Forgery("a journal without its closing lines", cut(before_closing), "weak I14"),
    Forgery("a journal without its second half", cut(lambda all: len(all) // 2), "fail I4"),
    Forgery(
        "a journal gone",
        lambda folder: shutil.rmtree(journal_path(folder).parent),
        "fail I4",
    ),
    Forgery("a journal's lines in another order", reordered, "fail I14"),
    Forgery("a journal's line twice", inserted, "fail I4 I14"),
    Forgery("the price book in a log", header(cheaper), "fail I5"),
    Forgery("the experiment's seed", experiment(lambda one: one.update(seed=7)), "fail I14"),
    Forgery(
        "a system's arguments in the experiment",
        experiment(lambda one: one["entries"][0].update(args={"worker": "swift"})),
        "fail I14",
    ),
    Forgery("a log of a system that never ran", of_another_run, "fail I14"),
    Forgery(
        "the same log under another name",
        lambda folder: copied(folder, None, "2020-01-01T00-00-00+00-00"),
        "fail I14",
    ),
    Forgery("a newer log with another verdict", newer_copy, "weak I16", "fail I16"),
    Forgery("the logs of two systems swapped", swapped, "fail I4 I7"),
    Forgery("the worker of a call in the log", first(event(role="swift")), "fail I4"),
    Forgery("the model of a call in the log", first(event(model="rehearsal/swift")), "fail I4"),
    Forgery(
        "the model that answered",
        first(lambda one: model_events(one)[0]["output"].update(model="gpt-5")),
        "fail I4",
    ),
    Forgery(
        "why a reply ended",
        first(
            lambda one: model_events(one)[0]["output"]["choices"][0].update(
                stop_reason="max_tokens"
            )
        ),
        "fail I4",
    ),
    Forgery(
        "when a call was made, in the log",
        first(event(timestamp="2020-01-01T00:00:00+00:00", completed="2020-01-01T00:00:01+00:00")),
        "fail I4",
    ),
    Forgery("a step's name in the log", first(renamed_step), "fail I4"),
    Forgery("what was paid for, in the log", header(lambda one: _label(one)), "fail I4"),
    Forgery("the manifest gone", lambda folder: (folder / FILE).unlink(), "nothing"),
    Forgery("a verdict, in log and journal", consistent_score, "nothing", "fail I16"),
    Forgery("a reply and the answer, in log and journal", consistent_reply, "nothing"),
    Forgery("all output tokens of a system gone, in every record", silent, "nothing"),
)


def _mean(found: Json) -> None:
    if found.get("results"):
        found["results"]["scores"][0]["metrics"]["mean"]["value"] = 0.9


def _label(found: Json) -> None:
    found["eval"]["metadata"]["podium"]["label"] = "live"
