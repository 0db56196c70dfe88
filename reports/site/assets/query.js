"use strict";
// The query page: one question, at most two systems side by side, with all their calls in full.
// All figures come from the data files; nothing is computed here.
(() => {
  const { el } = podium;
  const SHARD = 256; // queries per text file
  const UNKNOWN = "unknown";
  const FOLDED = 1500; // texts with more characters are folded
  const CHUNK = 10_000; // characters per chunk of a long text: to lay out ten million takes seconds
  const LISTED = 1000; // with more questions, a text field replaces the list
  const VERDICTS = {
    right: ["✓", "right"], wrong: ["✗", "wrong"], partly: ["~", "partly right"], unscored: ["?", "unscored"],
  };
  const STATUSES = { pass: "✓", weak: "~", fail: "✗" };

  // --- words ---------------------------------------------------------------------------------

  const or = (value) => value ?? UNKNOWN;
  const several = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;
  const seconds = (value) => (value == null ? UNKNOWN : `${value.toFixed(3)} s`);
  const count = (value) => (value == null ? UNKNOWN : value.toLocaleString("en-GB"));
  const listed = (numbers) => numbers.map(String).join(", ").replace(/, ([^,]*)$/, " and $1");

  // Dollars are decimals as text; only trailing zeros are removed.
  function usd(value) {
    if (value == null) return UNKNOWN;
    const text = String(value);
    return `$${text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text}`;
  }

  const between = (one) => `between ${usd(one.usd_low)} and ${usd(one.usd_high)}`;
  const billed = (one) => (one.billable === "unknown" ? between(one) : usd(one.usd));

  function paid(label) {
    if (label === "live") return "";
    return label ? " (would-be; nothing was paid)" : " (no record states whether it was paid)";
  }

  function readable(step) {
    if (step.number == null) return "no plan states what it could read";
    if (step.reads.length === 0) return "reads the question only";
    return `reads the question and ${step.reads.length === 1 ? "step" : "steps"} ${listed(step.reads)}`;
  }

  // --- texts: output of models and data sets is inserted as text, never HTML, in its own box -----

  // A truncated text is an object of its beginning (`cut`) and its full `length`.
  const isCut = (value) => value != null && typeof value === "object";

  function short(value) {
    const text = isCut(value) ? value.cut : String(value);
    return text.length > FOLDED || isCut(value) ? `${text.slice(0, FOLDED)}…` : text;
  }

  const quoted = (value) => el("bdi", {}, short(value));

  function whole(value) {
    return isCut(value) ? { text: value.cut, length: value.length } : { text: value, length: value.length };
  }

  async function copy(text, box, button) {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(box); // the reader can copy the selection by keyboard
      button.textContent = "selected";
    }
  }

  // Yield the parts of a long text; invisible parts are not laid out. A part ends at a line's end if
  // one is near.
  function* chunks(text) {
    for (let from = 0, part; from < text.length; from += part.length) {
      part = text.slice(from, from + CHUNK);
      if (from + part.length < text.length) {
        const end = part.lastIndexOf("\n") + 1;
        if (end > CHUNK / 2) part = part.slice(0, end);
        else if (/[\ud800-\udbff]$/.test(part)) part = part.slice(0, -1); // half of a surrogate pair
      }
      yield el("span", { class: "query-chunk" }, part);
    }
  }

  function textBox(label, value) {
    const { text, length } = whole(value);
    const box = el("pre", { class: "query-text", tabindex: "0", role: "region", "aria-label": label });
    const parts = [box];
    const tools = el("p", { class: "query-tools" });
    tools.append(el("button", { type: "button", click: (event) => copy(text, box, event.target) }, "copy"));
    box.append(...(text.length > CHUNK ? chunks(text) : [text]));
    if (isCut(value)) {
      parts.push(el("p", { class: "muted" },
        `The first ${count(text.length)} of ${count(length)} characters; `, el("code", {}, "podium view"), " has them all."));
    }
    parts.push(tools);
    return el("div", {}, ...parts);
  }

  // Return a folded text; its content is laid out when it is opened.
  function longText(label, value, { open = false } = {}) {
    if (value == null) return null;
    const { text, length } = whole(value);
    if (text === "") return el("p", {}, `${label}: empty.`);
    const folded = el("details", { class: "query-fold", open: open && text.length <= FOLDED });
    folded.append(el("summary", {}, `${label} (${count(length)} characters)`));
    const fill = () => {
      if (folded.open && folded.children.length === 1) folded.append(textBox(label, value));
    };
    folded.addEventListener("toggle", fill);
    fill();
    return folded;
  }

  function messages(label, prompt) {
    if (prompt == null) return null;
    if (!Array.isArray(prompt)) return longText(label, prompt, { open: true });
    const folded = el("details", { class: "query-fold" });
    folded.append(el("summary", {}, `${label} (${several(prompt.length, "message")})`));
    folded.addEventListener("toggle", () => {
      if (folded.children.length > 1) return;
      folded.append(...prompt.map(({ role, text }) => el("div", {},
        el("p", { class: "query-role" }, quoted(role)), textBox(`${label}, ${role}`, text))));
    });
    return folded;
  }

  // --- tables --------------------------------------------------------------------------------

  const row = (head, cells) => el("tr", {}, el("th", { scope: "row" }, head), ...cells.map((cell) => el("td", {}, cell)));

  function table(caption, heads, rows) {
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      el("table", { class: "figures" },
        el("caption", {}, caption),
        el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))),
        el("tbody", {}, ...rows)));
  }

  function facts(pairs) {
    return el("dl", { class: "facts query-facts" },
      ...pairs.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
  }

  // --- one call ------------------------------------------------------------------------------

  const tokensOf = (call) => [
    ["input, uncached", count(call.input_uncached)],
    ["cache, read", count(call.cache_read)],
    ["cache, written", count(call.cache_write)],
    ["output", count(call.output)],
    ["of it reasoning", count(call.reasoning)],
    ...(call.orchestration_in || call.orchestration_out
      ? [["orchestration", `${count(call.orchestration_in)} in, ${count(call.orchestration_out)} out`]] : []),
  ];

  const CACHES = { none: "not cached here", read: "from the local cache", write: "kept in the local cache" };

  const endOf = (call) => [
    ["stopped by", quoted(or(call.stop))],
    ["HTTP status", quoted(or(call.http_status))],
    ["attempt", String(call.attempt)],
    ["latency", seconds(call.latency_s)],
    ["local cache", call.shared_from
      ? `shared: call ${short(call.shared_from)} of another system bought it` : CACHES[call.cache] ?? call.cache],
  ];

  const moneyOf = (call) => [
    ["listed", usd(call.usd_list)],
    ["billed", billed(call)],
  ];

  // Return a link to a question in Inspect View. (A URL by the sample's uuid would lose the event.)
  function inspectLink(detail, log, text, place = "") {
    if (!podium.served?.inspect || !log) return null;
    const sample = `${encodeURIComponent(detail.question)}/${detail.epoch}`;
    const href = `${podium.served.inspect}#/logs/${encodeURIComponent(log)}/samples/sample/${sample}${place}`;
    return el("p", { class: "query-inspect" }, el("a", { href, target: "_blank", rel: "noopener" }, text));
  }

  function eventLink(detail, call) {
    const place = `/transcript?event=${encodeURIComponent(call.event)}`;
    return call.event ? inspectLink(detail, call.log, "this call in Inspect View", place) : null;
  }

  function callBox(detail, place) {
    const call = detail.calls[place];
    const other = call.served_model && !call.model.endsWith(call.served_model);
    const model = other ? `${call.model}, served by ${call.served_model}` : call.model;
    return el("article", { class: call.error ? "query-call query-failed" : "query-call" },
      el("h5", {}, "call of ", quoted(call.role), ": ", quoted(model)),
      call.error ? el("p", { class: "query-error" }, "✗ error: ", quoted(call.error)) : null,
      messages("Prompt", call.prompt),
      longText("Reply", call.reply, { open: true }),
      detail.shown && !detail.served && call.reply == null ? el("p", {}, "The log has no reply.") : null,
      el("div", { class: "query-figures" },
        el("div", {}, el("h6", {}, "Tokens"), facts(tokensOf(call))),
        el("div", {}, el("h6", {}, "US dollars"), facts(moneyOf(call))),
        el("div", {}, el("h6", {}, "How it went"), facts(endOf(call)))),
      eventLink(detail, call));
  }

  function apart(detail, heading, places) {
    if (places.length === 0) return null;
    return el("section", {}, el("h3", {}, heading), ...places.map((place) => callBox(detail, place)));
  }

  // --- plan and steps --------------------------------------------------------------------------

  function planText(detail) {
    return detail.steps.map((step) => `${short(step.name)}, ${readable(step)}`).join("; ");
  }

  function planOf(detail) {
    const planned = detail.steps.some((step) => step.number != null);
    const system = short(detail.system);
    const title = planned ? `Plan of ${system}` : `Calls of ${system} by step`;
    const section = el("section", {}, el("h3", {}, planned ? "Plan" : "Calls by step"));
    if (detail.steps.length === 0) {
      section.append(el("p", {}, "No step was carried out."));
    } else {
      section.append(
        el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}, drawn` },
          podium.planGraph(detail.steps, title, planText(detail))),
        el("ol", { class: "query-plan" }, ...detail.steps.map((step) => el("li", {}, quoted(step.name), `: ${readable(step)}`))));
    }
    section.append(...writtenPlan(detail));
    return section;
  }

  // Return the plan as the model wrote it, and its digest.
  function writtenPlan(detail) {
    const said = [longText("Plan as written", detail.plan)];
    if (detail.plan_sha256) said.push(el("p", { class: "muted mono" }, `sha256 of the plan: ${detail.plan_sha256}`));
    return said.filter((one) => one);
  }

  function stepBox(detail, step) {
    return el("section", { class: "query-step" },
      el("h4", {}, quoted(step.name)),
      el("p", {}, `${readable(step)[0].toUpperCase()}${readable(step).slice(1)}.`),
      longText("Subtask", step.subtask || null, { open: true }),
      step.calls.length === 0 ? el("p", {}, "Not run.") : null,
      ...step.calls.map((place) => callBox(detail, place)));
  }

  function steps(detail) {
    if (detail.steps.length === 0) return null;
    return el("section", {}, el("h3", {}, "Steps"), ...detail.steps.map((step) => stepBox(detail, step)));
  }

  // --- turns of a task: calls, the acting role, tool results, cost so far ------------------------

  function toolBox({ function: name, arguments: given, answer, failed }) {
    const told = given == null ? "" : `(${JSON.stringify(given)})`;
    const label = failed ? "The tool failed" : "The tool answered";
    return el("article", { class: failed ? "query-call query-failed" : "query-call" },
      el("h5", {}, "tool ", quoted(name + told)),
      longText(label, answer, { open: true }) ?? el("p", {}, `${label}.`));
  }

  function actedIn(detail, { acted, calls }) {
    if (acted != null) return el("span", {}, quoted(detail.calls[acted].role), " acted");
    return calls.length ? "no reply became the turn's" : "no model was asked";
  }

  function turnBox(detail, turn, at) {
    const calls = el("details", { class: "query-fold" }, el("summary", {}, several(turn.calls.length, "call")));
    calls.addEventListener("toggle", () => {
      if (calls.children.length === 1) calls.append(...turn.calls.map((place) => callBox(detail, place)));
    });
    return el("section", { class: "query-step query-turn" },
      el("h4", {}, `Turn ${at + 1}: `, actedIn(detail, turn)),
      el("p", {}, `So far ${usd(turn.usd_list)} listed, ${usd(turn.usd)} billed${paid(detail.label)}.`),
      longText("Reply", turn.reply, { open: true }),
      calls,
      ...turn.tools.map(toolBox),
      ...turn.others.map(({ role, text }) => longText(`Said by the task's ${short(role)}`, text, { open: true })
        ?? el("p", {}, "The task's ", quoted(role), " spoke.")));
  }

  function turns(detail) {
    return el("section", {}, el("h3", {}, `Turns (${detail.turns.length})`),
      ...detail.turns.map((turn, at) => turnBox(detail, turn, at)));
  }

  function work(detail) {
    if (detail.turns) return [turns(detail)];
    return [planOf(detail), apart(detail, "Calls of the conductor", detail.conductor), steps(detail)];
  }

  // --- verdict, checks, rows ---------------------------------------------------------------------

  function verdictOf(detail) {
    if (detail.served) return { mark: "–", said: "served, not graded" };
    const [mark, word] = VERDICTS[detail.verdict] ?? ["?", detail.verdict];
    return { mark, said: detail.score == null ? word : `${word} (${detail.score})` };
  }

  function verdict(detail) {
    const { mark, said } = verdictOf(detail);
    const missing = detail.too_long ? ": its request was longer than the worker's context"
      : ": no answer was found in the reply";
    const why = detail.verdict === "wrong" && !detail.parsed ? missing : "";
    return el("p", { class: `query-verdict verdict-${detail.verdict}` },
      el("span", { "aria-hidden": "true" }, `${mark} `), said, why);
  }

  // Return the name of a rule; rules that read a reply have a link to the rules page.
  function decidedBy(rule) {
    const explained = (document.getElementById("query").dataset.rules ?? "").split(" ");
    const name = isCut(rule) ? "" : rule.split(", ")[0];
    if (!name || !explained.includes(name)) return quoted(rule);
    return el("span", {}, el("a", { href: `rules.html#rule-${name}` }, name), quoted(rule.slice(name.length)));
  }

  function grade(detail) {
    const { tests } = detail;
    return facts([
      ["answer found", detail.answer == null ? withheldOr(detail, "none") : quoted(detail.answer)],
      ["target", detail.target == null ? withheldOr(detail, "none") : quoted(detail.target)],
      ["decided by", detail.rule ? decidedBy(detail.rule) : withheldOr(detail, "its grader states no rule")],
      ["tests passed", tests ? `${tests.passed} of ${tests.total}` : "the suite runs none"],
      ...(detail.reason ? [["reason", quoted(detail.reason)]] : []),
    ]);
  }

  // Return what the server recorded of a request, and its answer if texts were kept.
  function servedAs({ served, answer, refused_texts: refused }) {
    return facts([
      ["asked as", quoted(served.model)],
      ["which was", quoted(or(served.resolved))],
      ["dialect", quoted(served.dialect)],
      ["key", quoted(served.key ?? "none")],
      ["ended", quoted([served.ending, served.status, served.error].filter((one) => one != null).join(" "))],
      ["answer", answer == null ? "not kept" : quoted(answer)],
      ...refused.map((said) => ["a text is not shown", quoted(said)]),
    ]);
  }

  const withheldOr = (detail, other) => (detail.shown ? other : "withheld");

  function checks(detail) {
    if (!detail.checks?.length) return null;
    return el("section", {}, el("h3", {}, "Audit of this question"),
      el("ul", { class: "query-checks" }, ...detail.checks.map((check) => el("li", { class: `check-${check.status}` },
        `${STATUSES[check.status] ?? "–"} ${check.status}: ${check.invariant}. ${check.title}`,
        check.said.length ? el("ul", {}, ...check.said.map((said) => el("li", {}, quoted(said)))) : null))));
  }

  const TEXTS = new Set(["prompt", "reply"]);

  function ledger(detail) {
    const names = Object.keys(detail.calls[0] ?? {}).filter((name) => !TEXTS.has(name));
    if (names.length === 0) return null;
    const summary = el("summary", {}, `Ledger: ${several(detail.calls.length, "row")}`);
    const folded = el("details", { class: "query-fold" }, summary);
    folded.addEventListener("toggle", () => {
      if (folded.children.length > 1) return;
      const rows = detail.calls.map((call, at) => row(String(at + 1), names.map((name) => quoted(or(call[name])))));
      folded.append(table("Every attempt to call a model, as the ledger has it", ["row", ...names], rows));
    });
    return folded;
  }

  // --- figures of both systems, side by side -----------------------------------------------------

  const inCalls = (calls, dollars) => (calls ? `${several(calls, "call")}, ${usd(dollars)}` : "none");
  const unpriced = ({ n_unpriced: calls }) => (calls ? ` (${several(calls, "call")} without a price)` : "");
  const FIGURES = [
    ["verdict", (_, one) => Object.values(verdictOf(one)).join(" ")],
    ["US dollars, listed", (sums) => usd(sums.usd_list) + unpriced(sums)],
    ["US dollars, billed", (sums, one) => (sums.n_unknown
      ? `${between(sums)} (unknown for ${several(sums.n_unknown, "attempt")})` : usd(sums.usd)) + paid(one.label)],
    ["calls", (sums) => count(sums.calls)],
    ["attempts, of them retries", (sums) => `${count(sums.attempts)}, ${count(sums.retries)}`],
    ["failed attempts", (sums) => count(sums.failed)],
    ["from the local cache", (sums) => count(sums.cached_calls)],
    ["steps, depth", (sums) => `${count(sums.steps)}, ${count(sums.depth)}`],
    ["tokens of workers", (sums) => `${count(sums.worker_in)} in, ${count(sums.worker_out)} out`],
    ["tokens of the conductor", (sums) => `${count(sums.conductor_in)} in, ${count(sums.conductor_out)} out`],
    ["tokens of reasoning", (sums) => count(sums.reasoning)],
    ["tokens read from caches, written", (sums) => `${count(sums.cache_read)}, ${count(sums.cache_write)}`],
    ["tokens of orchestration", (sums) => count(sums.orchestration)],
    ["latency", (sums) => seconds(sums.latency_s)],
    ["critical path", (sums) => seconds(sums.critical_path_s)],
    ["grading by models", (sums) => inCalls(sums.grader_calls, sums.usd_scoring)],
    ["attempts not graded", (sums) => inCalls(sums.discarded_calls, sums.usd_discarded)],
    ["own hardware", (sums) => (sums.gpu_s == null ? "none" : `${sums.gpu_s} GPU s, ${usd(sums.usd_gpu)}`)],
    ["stopped by its budget", (sums) => sums.stopped ?? "no"],
  ];

  function figures(details) {
    const rows = FIGURES.map(([name, show]) => row(name, details.map((one) => show(one.sums, one))));
    const heads = ["figure", ...details.map((one) => quoted(one.system))];
    return table("What was answered, and what it cost", heads, rows);
  }

  // --- the page --------------------------------------------------------------------------------

  const NOT_KEPT = "Its texts were not kept: podium serve keeps them with --keep-texts only.";

  function questionBox(detail) {
    const section = el("section", {}, el("h2", {}, "Question"));
    if (!detail.shown) {
      section.append(el("p", {},
        "This suite does not allow its texts to be shared: question, prompts, replies, answers and targets are withheld here. ",
        "Figures and digests are not."));
    } else {
      const options = detail.choices?.length
        ? [el("ol", { class: "query-options", type: "A" }, ...detail.choices.map((one) => el("li", {}, quoted(one))))] : [];
      section.append(messages("Question", detail.input) ?? el("p", {}, detail.served ? NOT_KEPT : "The log does not hold its text."), ...options);
    }
    return section;
  }

  function systemBox({ chosen, detail, said }) {
    const label = detail && el("span", { class: `badge ${detail.label}` }, detail.label || "unlabelled");
    const name = el("div", { class: "query-name" }, el("h2", {}, quoted(chosen.system)), label);
    if (!detail) return el("section", { class: "query-system" }, name, el("p", {}, said));
    return el("section", { class: "query-system" }, name,
      verdict(detail),
      detail.served ? servedAs(detail) : grade(detail),
      inspectLink(detail, detail.log, "open in Inspect View"),
      ...work(detail),
      apart(detail, "Calls of graders (in no figure of the answer)", detail.graders),
      apart(detail, "Attempts that were not graded (in no figure of the answer)", detail.discarded),
      checks(detail),
      ledger(detail));
  }

  // --- the URL of what is shown, and the controls that change it ---------------------------------

  function wanted() {
    const { route, query } = podium.address();
    const [, block, question, epoch] = route;
    return { block, question, epoch: Number(epoch) || 1, systems: podium.split(query.get("sys")).slice(0, 2) };
  }

  function address(block, question, epoch, systems) {
    const names = podium.joined(systems.map((one) => one.name));
    return podium.hash(["q", block.name, question, String(epoch)], new Map([["sys", names]]));
  }

  // Resolve a URL; unknown names are listed in `missing` and replaced by the first known one.
  function resolved(blocks) {
    const asked = wanted();
    const missing = [];
    const found = (all, fits, name) => all.find(fits) ?? (name && missing.push(name), all[0]);
    const block = found(blocks, (one) => one.name === asked.block, asked.block);
    const question = found(block.questions, (one) => one === asked.question, asked.question);
    const systems = asked.systems.map((name) => found(block.rows, (one) => one.name === name, name));
    const epoch = Math.min(Math.max(Math.trunc(asked.epoch), 1), block.epochs);
    return { block, question, epoch, systems: systems.length ? systems : block.rows.slice(0, 2), missing };
  }

  const option = (value, text, chosen) => el("option", { value, selected: value === chosen }, text);

  function field(label, control) {
    return el("label", { class: "query-field" }, el("span", {}, label), control);
  }

  function choice(label, options, chosen, change) {
    return field(label, el("select", { id: `query-${label}`, change: (event) => change(event.target.value) },
      ...options.map(([value, text]) => option(value, text, chosen))));
  }

  const go = (...parts) => { location.hash = address(...parts); };

  function questionField({ block, question, epoch, systems }) {
    const change = (name) => go(block, name, epoch, systems);
    if (block.questions.length <= LISTED) {
      return choice("question", block.questions.map((one) => [one, one]), question, change);
    }
    const typed = (event) => change(event.target.value);
    return field("question", el("input", { id: "query-question", value: question, change: typed }));
  }

  function neighbours({ block, question, epoch, systems }) {
    const at = block.questions.indexOf(question);
    const link = (to, id, text) => {
      const name = block.questions[to];
      return name === undefined ? null : el("a", { id, href: address(block, name, epoch, systems) }, text);
    };
    return el("nav", { class: "query-neighbours", "aria-label": "Questions" },
      link(at - 1, "query-previous", "← previous question"),
      el("span", {}, ` ${at + 1} of ${count(block.questions.length)} `),
      link(at + 1, "query-next", "next question →"));
  }

  function controls(blocks, shown) {
    const { block, question, epoch, systems } = shown;
    const suites = blocks.map((one) => [one.name, one.title]);
    const rows = block.rows.map((one) => [one.name, one.name]);
    const epochs = Array.from({ length: block.epochs }, (_, at) => [String(at + 1), String(at + 1)]);
    const named = (name) => block.rows.find((one) => one.name === name);
    const other = systems[1] ? [systems[1]] : [];
    const fields = [
      choice("suite", suites, block.name, (name) => { location.hash = podium.hash(["q", name]); }),
      questionField(shown),
      choice("epoch", epochs, String(epoch), (value) => go(block, question, value, systems)),
      choice("system", rows, systems[0].name, (name) => go(block, question, epoch, [named(name), ...other])),
      choice("beside", [["", "no other"], ...rows], systems[1]?.name ?? "",
        (name) => go(block, question, epoch, [systems[0], ...(name ? [named(name)] : [])])),
    ];
    return [...fields, neighbours(shown)];
  }

  async function sitting({ block, question, epoch }, chosen) {
    const place = block.questions.indexOf(question) * block.epochs + epoch - 1;
    const number = Math.floor(place / SHARD);
    const { missing } = document.getElementById("query").dataset;
    const lost = "The file with its queries cannot be read. Write these pages again, or reload them if a server shows them.";
    const absent = { chosen, detail: null, said: podium.served ? lost : missing ?? lost };
    if (missing && !podium.served) return absent; // a server renders texts on request
    try {
      const { queries } = await podium.json(`text/${chosen.row}/${number}`);
      const detail = queries[place % SHARD] ?? null;
      return { chosen, detail, said: "It was not asked this question." };
    } catch {
      return absent;
    }
  }

  let drawing = 0; // number of the newest drawing; older ones stop

  async function draw() {
    const mine = (drawing += 1);
    delete document.documentElement.dataset.ready;
    const { index } = document.getElementById("query").dataset; // served requests have an own index
    const blocks = (await (index ? podium.json(index) : podium.index())).blocks.filter((one) => one.questions.length > 0);
    if (mine !== drawing) return undefined;
    if (blocks.length === 0) return say("No question has been answered in these runs yet.", []);
    const shown = resolved(blocks);
    head(blocks, shown);
    const found = await Promise.all(shown.systems.map((one) => sitting(shown, one)));
    if (mine !== drawing) return undefined;
    const details = found.map(({ detail }) => detail).filter((one) => one);
    const gone = shown.missing.map((name) => `There is no ${name} here; the first one is shown. `).join("");
    return say(gone, [
      ...(details.length ? [questionBox(details[0])] : []),
      el("div", { class: found.length > 1 ? "query-pair" : "" }, ...found.map(systemBox)),
      ...(details.length ? [figures(details)] : []),
    ]);
  }

  // Show the choice at once, because texts may take a moment; keep the keyboard focus.
  function head(blocks, shown) {
    const { id } = document.activeElement;
    const title = `${shown.block.suite}: ${shown.question}, epoch ${shown.epoch}`;
    document.title = `${title} · podium`;
    document.getElementById("query-title").replaceChildren(quoted(title));
    document.getElementById("query-choice").replaceChildren(...controls(blocks, shown));
    document.getElementById("query-status").textContent = "Reading …";
    if (id) document.getElementById(id)?.focus();
  }

  function say(sentence, parts) {
    document.getElementById("query-status").textContent = sentence;
    document.getElementById("query").replaceChildren(...parts);
    podium.ready();
  }

  const failed = (error) => say(`This page cannot be drawn: ${error.message}. ${podium.REMEDY}`, []);
  addEventListener("hashchange", () => draw().catch(failed));
  draw().catch(failed);
})();
