"""Recompute a table: verdicts and prices from the logs, tokens from the journals, without podium.

    python verify.py DIR [TABLE]       needs Python 3.11 or newer and DuckDB
DIR holds what `podium run` wrote, TABLE is a table.json of `podium report` (DIR/report/table.json).
Prints each recomputed figure; exits 1 if one differs. Omits random draws, estimates, bounds, times.
"""

import json
import re
import sys
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from math import isnan, nan
from pathlib import Path
from typing import Any

import duckdb

Json = dict[str, Any]
NONE: Json = {}
INPUT = ("input", "cache_read", "cache_write")
OWN = ("orchestration_in", "orchestration_in_cached", "orchestration_out")
PARTS = (*INPUT, "output", "reasoning", "cache_write_1h", *OWN)
BARE = dict.fromkeys((*INPUT[1:], "cache_write_1h", OWN[1]), 0)
BLOCK = ("suite", "split", "prompt", "label", "pool_sha256", "seed", "suite_version", "equal")
SUMS = ("tokens_in", "tokens_out", "tokens_reasoning", "usd_per_query")
UNZSTD = """SELECT line FROM read_csv(?, columns = {'line': 'TEXT'}, delim = chr(31), quote = '',
    escape = '', header = false, auto_detect = false, compression = 'zstd', max_line_size = ?)"""
TABLES = """CREATE TABLE call (run INT, scope TEXT, role TEXT, step TEXT, event TEXT, input DOUBLE,
    output DOUBLE, reasoning DOUBLE, usd DOUBLE, paid DOUBLE); CREATE TABLE pair (run INT, question
    TEXT, epoch INT, value DOUBLE, vote TEXT, official DOUBLE, parsed BOOL, plan TEXT, events
    TEXT[]); CREATE VIEW p AS SELECT run, question, epoch, value, vote, official, parsed, sum(usd)
    usd_per_query, count(call.event) calls, sum(input) tokens_in, sum(output) tokens_out,
    sum(reasoning) tokens_reasoning, coalesce(sum(output) FILTER (role <> 'conductor'), 0)
    worker_tokens_out, coalesce(sum(input + output) FILTER (role = 'conductor'), 0)
    conductor_tokens, CASE WHEN bool_or(step LIKE 'conductor: plan%') THEN (any_value(plan) LIKE
    'malformed: %')::INT END fault FROM (SELECT *, unnest(events) event FROM pair) LEFT JOIN (FROM
    call WHERE scope = 'inference') call USING (run, event) WHERE NOT isnan(value) GROUP BY ALL;
    CREATE VIEW q AS SELECT run, question, avg(value) v, count(*) n, count(official) judged,
    avg(usd_per_query) + 0 * sum(sum(usd_per_query)) OVER (PARTITION BY run) usd, avg(tokens_out) +
    0 * sum(sum(tokens_out)) OVER (PARTITION BY run) tokens, avg(coalesce(official, if(parsed,
    'nan', value))) official, if(bool_and(value IN (0, 1)), sum(value), 'nan') r FROM p GROUP BY 1,
    2; CREATE MACRO pass(n, r, k) AS 1 - list_product([(n - r - i) / (n - i) for i in range(k)])"""
FIGURES = """SELECT x FROM (FROM (SELECT count(*) n_graded, avg(calls) calls, avg(tokens_in)
    tokens_in, avg(tokens_out) tokens_out, avg(tokens_reasoning) tokens_reasoning,
    avg(usd_per_query) usd_per_query, avg(worker_tokens_out) worker_tokens_out,
    avg(conductor_tokens) conductor_tokens, 100 * sum(fault) / count(*) invalid_plan_pct FROM p
    WHERE run = $run), (SELECT avg(v) accuracy, median(usd) usd_median, quantile_cont(usd, 0.95)
    usd_p95, avg(usd / nullif(v, 0)) cost_of_pass, sum(usd) / nullif(sum(v), 0) usd_per_correct,
    sum(tokens) / nullif(sum(v), 0) tokens_per_correct, avg(if(isnan(usd), usd, (v = 0)::INT))
    share_infinite, CASE WHEN sum(judged) > 0 THEN avg(official) END official_accuracy, avg(pass(n,
    r, 5)) FILTER (n > 4) pass_at_5, avg(pass(n, r, 10)) FILTER (n > 9) pass_at_10 FROM q WHERE run
    = $run), (SELECT avg(a.v - b.v) paired_diff, sum(a.usd) / sum(b.usd) usd_ratio FROM q a JOIN q b
    USING (question) WHERE a.run = $run AND b.run = $other)) x"""
SPENT = """SELECT x FROM (SELECT $asked n_asked, coalesce(sum(paid) FILTER (scope = 'inference' AND
    NOT isnan(paid)), 0) / $begun usd_paid_low, coalesce(sum(usd) FILTER (scope = 'scoring'), 0) /
    nullif((SELECT count(*) FROM p WHERE run = $run AND $begun > 0), 0) usd_scoring_per_query FROM
    call WHERE run = $run) x"""
MAJORITY = """WITH tries AS (SELECT *, row_number() OVER w - 1 nth, count(*) OVER w n, if(vote <>
    '', avg(value) OVER (PARTITION BY question, vote), 0) v FROM p WHERE run = $run WINDOW w AS
    (PARTITION BY question)), led AS (SELECT question, pick, vote, v, count(nullif(vote, '')) c FROM
    tries, range(1 << $n) t(pick) WHERE n >= $k AND pick < 1 << n AND bit_count(pick) = $k AND (pick
    >> nth) & 1 = 1 GROUP BY question, pick, vote, v QUALIFY c = max(c) OVER (PARTITION BY question,
    pick)) SELECT avg(v) accuracy FROM (SELECT avg(v) v FROM (SELECT question, avg(v) v FROM led
    GROUP BY question, pick) GROUP BY question)"""
ROUTED = """SELECT x FROM (WITH s AS (FROM q WHERE list_contains($runs, run)) SELECT avg(v)
    accuracy, avg(usd) usd_per_query, avg(tokens) tokens_out FROM (FROM s QUALIFY count(*) OVER
    (PARTITION BY question) = len($runs) AND row_number() OVER (PARTITION BY question ORDER BY v
    DESC, if((SELECT isnan(sum(usd)) FROM s), tokens, usd), run) = 1)) x"""


def _members(path: Path, prefix: str) -> Iterator[Json]:
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for info in (info for name, info in archive.NameToInfo.items() if name.startswith(prefix)):
            try:
                yield json.loads(archive.read(info))
            except NotImplementedError:  # Zstandard, before Python 3.14: DuckDB unpacks it
                file.seek(info.header_offset + 26)
                file.seek(sum(int.from_bytes(file.read(2), "little") for _ in range(2)), 1)
                with tempfile.NamedTemporaryFile(buffering=0) as frame:
                    frame.write(file.read(info.compress_size))
                    lines = duckdb.execute(UNZSTD, [frame.name, info.file_size + 2]).fetchall()
                yield json.loads("\n".join(line or "" for (line,) in lines))


def _cost(use: Json, price: Json, service: str | None = None) -> float:
    prompt = sum(use[name] for name in INPUT)  # the tier depends on the sum
    rates = [price, *(tier for tier in price.get("tiers", []) if prompt > tier["above"])][-1]
    thought = use["reasoning"] if "reasoning" in rates and use["output"] else 0
    tokens = {**use, "output": use["output"] - thought, "reasoning": thought}
    tokens |= {INPUT[2]: use[INPUT[2]] - use["cache_write_1h"], OWN[0]: use[OWN[0]] - use[OWN[1]]}
    factor = float({"standard": 1, **price.get("services", NONE)}.get(service or "standard", nan))
    full = price.get("full_rate", NONE).get(service, ())
    usd = [n * float(rates.get(k, nan)) * (k in full or factor) for k, n in tokens.items() if n]
    return nan if tokens["output"] < 0 else sum(usd) / 1e6 + float(price.get("request", 0))


def _calls(folder: Path, head: Json) -> Iterator[list[Any]]:
    facts, intents = head["metadata"]["podium"], dict[str, Json]()
    book, rules = facts["prices"]["usd_per_mtok"], facts["prices"].get("built_in", NONE)
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", head["task"])
    places = [up / "ledger" / name for up in (folder, *folder.parents)][:5]
    for path in sorted(next(filter(Path.is_dir, places), places[0]).glob("*.jsonl")):
        for text in path.read_bytes().splitlines():
            line: Json = json.loads(text) if text.count(b"{") == text.count(b"}") else NONE
            if line.get("kind") == "intent":
                intents[line["call"]] = line
            elif line.get("kind") == "outcome":
                call, usage = intents[line["call"]], line["usage"]
                spared = line.get("refused") or (not usage and (line.get("http_status") or 0) > 299)
                usage = usage or dict.fromkeys(PARTS, 0 if spared else None)  # refused: none used
                use: Json = {k: nan if (n := usage.get(k, 0)) is None else n for k in PARTS}
                ref, free = call["price_ref"], line["cache"] == "read" or facts["label"] != "live"
                price = book.get(ref) or rules.get(ref[: ref.find("/") + 1]) or {"request": nan}
                listed = use | BARE | {"input": sum(use[name] for name in INPUT)}
                usd = [_cost(listed, price), 0 if free else _cost(use, price, call.get("service"))]
                by = [*map(call.get, ("scope", "role", "step")), line["event"], listed["input"]]
                yield [*by, *map(use.get, PARTS[3:5]), *([0, 0] if spared else usd)]


def _read(db: Any, run: int, row: Json, logs: list[Any]) -> Json:
    newest = {log.parent: head for _, _, log, head in reversed(logs)}  # newest log of each shard
    head, plans, pairs = logs[0][3], logs[0][2].parents[2].glob("shards.json"), set[Any]()
    for call in (call for folder in newest for call in _calls(folder, newest[folder])):
        db.execute(f"INSERT INTO call VALUES (?{', ?' * len(call)})", [run, *call])
    for sample in (sample for log in logs for sample in _members(log[2], "samples/")):
        pair = str(sample["id"]), sample["epoch"]
        if pair not in pairs and pair[1] <= row["epochs"]:
            pairs.add(pair)
            score = (sample.get("scores") or NONE).get("podium") or NONE
            facts, notes = sample.get("metadata") or NONE, score.get("metadata") or NONE
            value = nan if sample.get("error") or score.get("value") is None else score["value"]
            plan, parsed = (facts.get("podium") or NONE).get("plan"), notes.get("parsed", True)
            orders = [(facts.get(key) or NONE).get("permutation") for key in ("asked", "question")]
            order, vote = next(filter(None, orders), ()), str(score.get("answer") or "").rstrip()
            vote = dict(zip("ABCDEFGHIJ", order, strict=False)).get(vote, "" if order else vote)
            events = [*(event.get("uuid") for event in sample.get("events") or list[Json]()), None]
            values = [run, *pair, value, vote, notes.get("official"), parsed, plan, events]
            db.execute(f"INSERT INTO pair VALUES ({'?, ' * 8}?)", values)
    shards = (shard for plan in plans for shard in json.loads(plan.read_text())["shards"])
    slots = (slot for shard in shards for slot in shard["parts"] if slot["entry"] == head["task"])
    count = sum(slot["last"] - slot["first"] for slot in slots)
    count = count or sum(len(head["dataset"]["sample_ids"]) for head in newest.values())
    paid = len(pairs) if row["epochs"] == (head["config"].get("epochs") or 1) else None
    sums = {"run": run, "asked": max(count * row["epochs"], len(pairs)), "begun": paid}
    spent = db.execute(SPENT, sums).fetchone()[0]
    if row["usd_paid_per_query"] is not None:  # else a range: some calls' end is unknown
        spent |= dict.fromkeys(("usd_paid_per_query", "usd_paid_high"), spent["usd_paid_low"])
    return spent


def _remade(db: Any, rows: list[Json], run: int) -> Json:
    row, k = rows[run], rows[run]["maj_k"]
    beside = [i for i, peer in enumerate(rows) if all(peer.get(k) == row.get(k) for k in BLOCK)]
    singles = [i for i in beside if rows[i]["system"].startswith("single:")]
    if row["derived"] and not k:
        return db.execute(ROUTED, {"runs": singles}).fetchone()[0]
    base = next((i for i in singles if row["system"].endswith(f" of {rows[i]['system']})")), run)
    reference = next((i for i in beside if rows[i]["verdict"] == "reference" != row["verdict"]), -1)
    values = db.execute(FIGURES, {"run": base, "other": reference}).fetchone()[0]
    values = {name: k * values[name] for name in SUMS} if row["derived"] else values  # k samples
    if k and rows[base]["epochs"] <= 12:  # with more, podium samples majorities
        majority = db.execute(MAJORITY, {"run": base, "k": k, "n": rows[base]["epochs"]}).fetchone()
        values["accuracy" if row["derived"] else "maj_accuracy"] = majority[0]
    return values


def figures(folder: Path, path: Path | None = None) -> Iterator[tuple[str, bool]]:
    """Yield a line on each figure that can be recomputed, and whether the table has this value."""
    try:
        rows = json.loads((path or folder / "report" / "table.json").read_text())["rows"]
    except (OSError, TypeError, ValueError, KeyError) as error:
        sys.exit(f"No table ({error}). Run `podium report DIR`, or: python verify.py DIR TABLE")
    db, sums = duckdb.connect().execute(TABLES), list[Json]()
    groups = defaultdict[Any, dict[Path, list[Any]]](dict)
    for log in folder.resolve().rglob("*.eval"):
        head = [*_members(log, "header.json"), *_members(log, "_journal/start.json")][0]["eval"]
        facts = (head.get("metadata") or NONE).get("podium", NONE)
        if facts.get("purpose", "eval") == "eval" and "system" in facts:
            names = tuple(facts.get(name) or "official" for name in (*BLOCK, "system"))
            place = log.parents[2] if log.parents[1].name == "shards" else log.parent
            groups[names].setdefault(place, []).append((head["created"], log.name, log, head))
    for run, row in enumerate(rows):
        sat = groups[tuple(row.get(name) or "official" for name in (*BLOCK, "system"))]
        sums.append(_read(db, run, row, sorted(sat.pop(min(sat)), reverse=True)) if sat else NONE)
    for run, row in enumerate(rows):
        for name, figure in (sums[run] | _remade(db, rows, run)).items():
            old, new = row[name], nan if figure is None else figure
            line = f"{row['suite']}, {row['system']}, {name}: {old}"
            near = 5.1e-9 if "query" in name or "paid" in name else min(5.1e-7, 5.1e-5 * abs(new))
            same = isnan(new) == (old is None) and not abs(new - (old or 0)) > near
            yield line if same else f"{line} in the table, {new:.10g} by its files", same


if __name__ == "__main__":
    results = list(figures(*map(Path, sys.argv[1:3] or ["."])))
    sys.stdout.writelines(f"{line}\n" for line, _ in results)
    sys.exit(not all(same for _, same in results))
