"use strict";
// Which cells of a block are shown, in what order, and how many of each kind; it draws nothing.
const matrixView = (() => {
  const STATES = ["not asked", "right", "wrong", "partly", "unscored", "no answer", "invalid plan", "too long"];
  const GLYPHS = ["·", "✓", "✗", "◐", "!", "?", "△", "▭"];
  // Mode -> states that it shows; `different` selects questions and shows all their states.
  const MODES = {
    all: [0, 1, 2, 3, 4, 5, 6, 7], different: [0, 1, 2, 3, 4, 5, 6, 7],
    right: [1], wrong: [2, 5, 6, 7], errors: [4, 6], "no-answer": [5, 7],
  };
  const SORTS = ["hardest", "easiest", "lost", "won", "name"];

  // Return the view that a URL describes; unknown values are replaced by defaults.
  function read({ route, query }, index) {
    const block = index.blocks.find((one) => one.name === route[1]) ?? index.blocks[0];
    const names = new Set(block.rows.map((one) => one.name));
    const known = (name, among, usual) => (among.includes(query.get(name)) ? query.get(name) : usual);
    const number = (text) => (text && Number.isFinite(Number(text)) ? Number(text) : null);
    const [least, most] = (query.get("usd") ?? "").split("..");
    return {
      block: block.name,
      ref: known("ref", [...names, "none"], usualReference(block)),
      mode: known("mode", Object.keys(MODES), "all"),
      reason: query.get("reason") ?? "",
      sys: podium.split(query.get("sys")).filter((one) => names.has(one)),
      subject: query.get("subject") ?? "",
      difficulty: query.get("difficulty") ?? "",
      least: number(least), most: number(most),
      sort: known("sort", SORTS, "hardest"),
      size: known("size", ["large", "medium", "small"], ""),
      page: Math.max(1, Math.floor(number(query.get("page")) ?? 1)),
    };
  }

  // The inverse of `read`: a view's route and query; defaults are left out.
  function written(view, block) {
    const { least, most } = view;
    return [["m", view.block], new Map(Object.entries({
      ref: view.ref === usualReference(block) ? "" : view.ref,
      mode: view.mode === "all" ? "" : view.mode,
      reason: view.reason, sys: podium.joined(view.sys),
      subject: view.subject, difficulty: view.difficulty,
      usd: least === null && most === null ? "" : `${least ?? ""}..${most ?? ""}`,
      sort: view.sort === "hardest" ? "" : view.sort,
      size: view.size, page: view.page > 1 ? view.page : "",
    }))];
  }

  function usualReference(block) {
    return block.rows.find((one) => one.row === block.reference)?.name ?? "none";
  }

  // Return the matrix's columns: all runs of one system share a column, side by side like epochs.
  function columnsOf(block, places) {
    const columns = new Map();
    for (const at of places) {
      const row = block.rows[at];
      if (!columns.has(row.column)) columns.set(row.column, { name: row.system, places: [] });
      columns.get(row.column).places.push(at);
    }
    return [...columns.values()];
  }

  // Return a function that tells whether a cell passes the filters.
  function filterOf(block, view) {
    const { state, reason, usd } = block.cells;
    const wanted = Uint8Array.from(STATES, (_, at) => Number(MODES[view.mode].includes(at)));
    const code = view.reason ? block.reasons.indexOf(view.reason) : null;
    const { least, most } = view;
    const priced = least !== null || most !== null;
    return (cell) => {
      if (!wanted[state[cell]] || (code !== null && reason[cell] !== code)) return false;
      return !priced || (usd[cell] >= (least ?? 0) && usd[cell] <= (most ?? Infinity));
    };
  }

  // Return a system's mean grade on a question; NaN if nothing was graded.
  function meanOf(block, place, question) {
    const { score } = block.cells;
    const first = (place * block.questions.length + question) * block.epochs;
    let sum = 0;
    let graded = 0;
    for (let cell = first; cell < first + block.epochs; cell += 1) {
      if (!Number.isNaN(score[cell])) {
        sum += score[cell];
        graded += 1;
      }
    }
    return graded ? sum / graded : NaN;
  }

  function eachCell(block, places, question, visit) {
    for (const place of places) {
      const first = (place * block.questions.length + question) * block.epochs;
      for (let cell = first; cell < first + block.epochs; cell += 1) visit(cell, place);
    }
  }

  // Return whether graded cells of a question differ between systems, runs or epochs.
  function differs(block, places, question) {
    let low = Infinity;
    let high = -Infinity;
    eachCell(block, places, question, (cell) => {
      const score = block.cells.score[cell];
      if (score < low) low = score;
      if (score > high) high = score;
    });
    return low < high;
  }

  function chosenQuestions(block, view, places, passes) {
    const chosen = [];
    block.questions.forEach((_, at) => {
      if (view.subject && block.subjects[at] !== view.subject) return;
      if (view.difficulty && block.difficulties[at] !== view.difficulty) return;
      if (view.mode === "different" && !differs(block, places, at)) return;
      let some = false;
      eachCell(block, places, at, (cell) => { some ||= passes(cell); });
      if (some) chosen.push(at);
    });
    return chosen;
  }

  // Return a question's sort key; a question without known grades comes last.
  function keyOf(block, view, places, reference, question) {
    let sum = 0;
    let known = 0;
    const held = reference === null ? NaN : meanOf(block, reference, question);
    const against = view.sort === "lost" || view.sort === "won";
    for (const place of places) {
      const mean = meanOf(block, place, question);
      const value = against ? Math.sign(mean - held) : mean;
      if (Number.isNaN(value)) continue;
      sum += value;
      known += 1;
    }
    if (!known) return Infinity;
    const value = against ? sum : sum / known;
    return view.sort === "easiest" || view.sort === "won" ? -value : value;
  }

  function sorted(block, view, places, reference, chosen) {
    if (view.sort === "name") return chosen;
    const keys = new Map(chosen.map((one) => [one, keyOf(block, view, places, reference, one)]));
    return chosen.sort((one, other) => {
      const [first, second] = [keys.get(one), keys.get(other)];
      return first === second ? one - other : first - second;
    });
  }

  // Count a system's cells by state, and the questions won and lost against the reference.
  function countsOf(block, place, shown) {
    const states = new Array(STATES.length).fill(0);
    let [won, lost] = [0, 0];
    for (const question of shown.questions) {
      eachCell(block, [place], question, (cell) => {
        if (shown.passes(cell)) states[block.cells.state[cell]] += 1;
      });
      if (shown.reference === null) continue;
      const by = meanOf(block, place, question) - meanOf(block, shown.reference, question);
      won += by > 0;
      lost += by < 0;
    }
    const graded = states[1] + states[2] + states[3] + states[5] + states[6] + states[7];
    return { states, graded, right: states[1], won, lost };
  }

  // Count the reasons why cells have no verdict, or a verdict without an answer.
  function reasonsOf(block, places, questions) {
    const counts = new Map();
    for (const question of questions) {
      eachCell(block, places, question, (cell) => {
        const code = block.cells.reason[cell];
        if (!code) return;
        const found = counts.get(code) ?? { reason: block.reasons[code], n: 0, state: 0 };
        found.n += 1;
        found.state = block.cells.state[cell];
        counts.set(code, found);
      });
    }
    return [...counts.values()].sort((one, other) => other.n - one.n);
  }

  // Return everything that a view shows of a block.
  function shownOf(block, view) {
    const all = block.rows.map((_, at) => at);
    const places = view.sys.length ? all.filter((at) => view.sys.includes(block.rows[at].name)) : all;
    const at = block.rows.findIndex((one) => one.name === view.ref);
    const reference = at < 0 ? null : at;
    const passes = filterOf(block, view);
    const questions = sorted(
      block, view, places, reference, chosenQuestions(block, view, places, passes),
    );
    // The list of reasons ignores the chosen reason, so that the reader can choose another.
    const mode = view.mode === "different" ? "different" : "all";
    const whole = chosenQuestions(block, { ...view, mode }, places, () => true);
    return {
      block, view, places, reference, passes, questions,
      columns: columnsOf(block, places),
      reasons: reasonsOf(block, places, whole),
    };
  }

  return { STATES, GLYPHS, MODES, read, written, shownOf, countsOf, meanOf };
})();
