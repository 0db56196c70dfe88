"use strict";
// The matrix page: the reader's choices are stored in the URL, which determines the picture, the
// counts and the table.
(() => {
  const ROWS = 50; // questions on a page of the table
  const ACROSS = 8; // systems on a page of the table
  const LISTED = 100; // systems on a page of the table of counts
  const by = (id) => document.getElementById(id);
  const { STATES, GLYPHS } = matrixView;
  const page = {
    index: null, view: null, shown: null, board: null,
    first: 0, // system in the first column of the table
    listed: 0, // system in the first line of counts
    at: [0, 0], // the table's cell that has the keyboard
  };

  function grouped(number) {
    return number.toLocaleString("en-GB");
  }

  // Six significant digits of a cell's dollars; the query's page has all digits.
  function dollars(value) {
    return Number.isNaN(value) ? "dollars unknown" : `USD ${Number(value.toPrecision(6))}`;
  }

  function cellAt({ question, place, epoch }) {
    const { block } = page.shown;
    return (place * block.questions.length + question) * block.epochs + epoch - 1;
  }

  // A cell in words.
  function words(at) {
    const { block, reference } = page.shown;
    const cell = cellAt(at);
    const { state, score, reason, usd, tokens, calls, seconds } = block.cells;
    const name = block.rows[at.place].name;
    const epoch = block.epochs > 1 ? `, epoch ${at.epoch}` : "";
    const begin = `${block.questions[at.question]}, ${name}${epoch}: `;
    if (state[cell] === 0) return `${begin}not asked.`;
    const share = state[cell] === 3 ? ` (${Math.round(100 * score[cell])} %)` : "";
    const why = reason[cell] ? `, ${block.reasons[reason[cell]]}` : "";
    const spent = [
      dollars(usd[cell]),
      tokens[cell] === 0xffffffff ? "tokens unknown" : `${grouped(tokens[cell])} tokens`,
      `${calls[cell]} ${calls[cell] === 1 ? "call" : "calls"}`,
      ...(Number.isNaN(seconds[cell]) ? [] : [`${Number(seconds[cell].toPrecision(3))} s`]),
    ].join(", ");
    return `${begin}${STATES[state[cell]]}${share}${why}; ${spent}.${against(at, reference)}`;
  }

  function against({ question, place }, reference) {
    if (reference === null || reference === place) return "";
    const { block } = page.shown;
    const by = matrixView.meanOf(block, place, question) - matrixView.meanOf(block, reference, question);
    if (Number.isNaN(by)) return "";
    const word = by > 0 ? "Won against" : by < 0 ? "Lost to" : "As good as";
    return ` ${word} ${block.rows[reference].name}.`;
  }

  function hrefOf({ question, place, epoch }) {
    const { block, reference } = page.shown;
    const names = [place, reference].filter((one, at, all) => one !== null && all.indexOf(one) === at);
    const query = new Map([["sys", podium.joined(names.map((one) => block.rows[one].name))]]);
    return `query.html${podium.hash(["q", block.name, block.questions[question], String(epoch)], query)}`;
  }

  function say(at) {
    page.board.mark(at);
    by("said").replaceChildren(
      ...(at ? [`${words(at)} `, podium.el("a", { href: hrefOf(at) }, "Open this query")] : [HINT]),
    );
  }

  const HINT = "Point at a cell, or tap it, to read its details.";

  // Change the view, the address and the page.
  function change(changes) {
    show({ ...page.view, page: 1, ...changes });
    podium.go(...matrixView.written(page.view, page.shown.block));
  }

  function show(view) {
    const block = page.index.blocks.find((one) => one.name === view.block);
    page.view = view;
    page.shown = matrixView.shownOf(block, view);
    page.at = [0, 0];
    fillFilters();
    page.board.show(page.shown);
    showCounts();
    showReasons();
    showSystems();
    showGrid();
    say(null);
  }

  function options(select, pairs, chosen) {
    select.replaceChildren(...pairs.map(([value, text]) => podium.el("option", { value }, text)));
    select.value = chosen;
    select.parentElement.hidden = pairs.length < 2;
  }

  function valuesOf(values) {
    const known = [...new Set(values.filter((one) => one !== null))].sort();
    return known.length ? [["", "all"], ...known.map((one) => [one, one])] : [];
  }

  function fillFilters() {
    const { view, shown: { block } } = page;
    const form = by("filters").elements;
    options(form.block, page.index.blocks.map((one) => [one.name, one.title]), view.block);
    const rows = block.rows.filter((one) => !one.targets || one.name === view.ref);
    options(form.ref, [["none", "no system"], ...rows.map(({ name }) => [name, name])], view.ref);
    options(form.subject, valuesOf(block.subjects), view.subject);
    options(form.difficulty, valuesOf(block.difficulties), view.difficulty);
    for (const name of ["mode", "sort", "size"]) form[name].value = view[name];
    form.least.value = view.least ?? "";
    form.most.value = view.most ?? "";
  }

  // Read an input of dollars; anything but a number is marked as invalid and ignored.
  function amount(input) {
    const value = input.value.trim() === "" ? null : Number(input.value.trim().replace(",", "."));
    const wrong = value !== null && !(value >= 0 && value < Infinity);
    input.setAttribute("aria-invalid", String(wrong));
    return wrong ? null : value;
  }

  function listen() {
    const form = by("filters");
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", async ({ target }) => {
      if (target.name === "block") {
        await begin(podium.address(podium.hash(["m", target.value])));
        podium.go(...matrixView.written(page.view, page.shown.block));
      } else if (target.name === "least" || target.name === "most") {
        change({ [target.name]: amount(target) });
      } else {
        change({ [target.name]: target.value, ...(target.name === "mode" ? { reason: "" } : {}) });
      }
    });
    by("everything").addEventListener("click", () => {
      const { block } = page.view;
      show(matrixView.read(podium.address(podium.hash(["m", block])), page.index));
      podium.go(...matrixView.written(page.view, page.shown.block));
    });
  }

  function showCounts() {
    const { block, questions, places, passes } = page.shown;
    if (!block.questions.length) {
      by("counts").textContent = "No question has been asked yet.";
      return;
    }
    const counts = new Array(STATES.length).fill(0);
    for (const place of places) {
      page.shown.counts ??= new Map();
      const own = matrixView.countsOf(block, place, page.shown);
      page.shown.counts.set(place, own);
      own.states.forEach((n, state) => { counts[state] += n; });
    }
    const said = STATES.map((name, state) => [counts[state], name]).filter(([n]) => n);
    by("counts").textContent =
      `${block.title}: ${grouped(questions.length)} of ${grouped(block.questions.length)} questions × ` +
      `${places.length} of ${block.rows.length} systems` +
      `${block.epochs > 1 ? ` × ${block.epochs} epochs` : ""}: ` +
      `${said.map(([n, name]) => `${grouped(n)} ${name}`).join(", ") || "nothing is like that"}`;
  }

  function showReasons() {
    const { reasons } = page.shown;
    by("reasons").hidden = !reasons.length;
    by("reasons").querySelector("ul").replaceChildren(...reasons.slice(0, 50).map((one) => {
      const mode = one.state === 5 || one.state === 7 ? "no-answer" : "errors";
      const pressed = page.view.reason === one.reason;
      const click = ({ currentTarget: { textContent } }) => {
        change(pressed ? { mode: "all", reason: "" } : { mode, reason: one.reason });
        focusAgain(by("reasons"), textContent);
      };
      return podium.el("li", {}, podium.el(
        "button", { type: "button", "aria-pressed": String(pressed), click },
        `${grouped(one.n)} × `, podium.el("bdi", {}, one.reason),
      ));
    }));
  }

  const FIGURES = [
    ["graded", (one) => one.graded], ["right", (one) => one.right],
    ["partly", (one) => one.states[3]], ["wrong", (one) => one.states[2]],
    ["no answer", (one) => one.states[5]], ["too long", (one) => one.states[7]],
    ["invalid plan", (one) => one.states[6]],
    ["unscored", (one) => one.states[4]], ["not asked", (one) => one.states[0]],
    ["won", (one) => one.won], ["lost", (one) => one.lost],
  ];

  // Show a line for each system, with a checkbox that hides or shows the system in the picture.
  function showSystems() {
    const { block, places, counts, reference } = page.shown;
    const several = page.index.runs.length > 1 && new Set(block.rows.map((one) => one.run)).size > 1;
    const lines = block.rows.slice(page.listed, page.listed + LISTED).map((row, at) => {
      const place = page.listed + at;
      const box = podium.el("input", {
        type: "checkbox", checked: places.includes(place), change: ({ target }) => toggle(place, target.checked),
      });
      const run = several ? ` (${page.index.runs[row.run]})` : "";
      const own = counts?.get(place);
      const held = (head) => (head === "won" || head === "lost") && (reference === null || place === reference);
      return podium.el(
        "tr", { "data-row": row.row },
        podium.el("th", { scope: "row" }, podium.el("label", {}, box, " ", podium.el("bdi", {}, `${row.name}${run}`))),
        ...FIGURES.map(([head, figure]) => podium.el(
          "td", { class: "num" }, own && !held(head) ? grouped(figure(own)) : "-",
        )),
        podium.el("td", {}, alone(place)),
      );
    });
    const heads = ["system", ...FIGURES.map(([head]) => head), "alone"];
    by("systems").replaceChildren(
      podium.el("thead", {}, podium.el("tr", {}, ...heads.map((head) => podium.el("th", { scope: "col" }, head)))),
      podium.el("tbody", {}, ...lines),
    );
    pager(by("more-systems"), "systems", page.listed, LISTED, block.rows.length, (first) => {
      page.listed = first;
      showSystems();
    });
  }

  // Return a button that shows only one system and the reference.
  function alone(place) {
    const { block, reference } = page.shown;
    const names = block.rows.filter((_, at) => at === place || at === reference).map((one) => one.name);
    return podium.el("button", {
      type: "button", "aria-label": `Show ${names.join(" and ")} alone`, click: () => {
        change({ sys: names });
        by("systems").querySelector(`tr[data-row="${block.rows[place].row}"] button`)?.focus();
      },
    }, "alone");
  }

  function toggle(place, checked) {
    const { block, places } = page.shown;
    const chosen = block.rows.filter((_, at) => (at === place ? checked : places.includes(at)));
    const all = chosen.length === block.rows.length || !chosen.length;
    change({ sys: all ? [] : chosen.map((one) => one.name) });
    by("systems").querySelector(`tr[data-row="${block.rows[place].row}"] input`)?.focus();
  }

  // After a redraw, focus the button with the same text as the pressed one, else the first button.
  function focusAgain(place, text) {
    const buttons = [...place.querySelectorAll("button:not([disabled])")];
    (buttons.find((one) => one.textContent === text) ?? buttons[0])?.focus();
  }

  // Show buttons for the previous and next page, if there is more than one page.
  function pager(place, what, first, step, count, turn) {
    if (count <= step) {
      place.replaceChildren();
      return;
    }
    const last = Math.min(first + step, count);
    const button = (text, to, off) => podium.el("button", {
      type: "button", disabled: off, click: () => { turn(to); focusAgain(place, text); },
    }, text);
    place.replaceChildren(
      button(`Earlier ${what}`, Math.max(0, first - step), first === 0),
      ` ${grouped(first + 1)} to ${grouped(last)} of ${grouped(count)} ${what} `,
      button(`Later ${what}`, first + step, last >= count),
    );
  }

  // Return a system's verdict on a question; for several epochs, how many are right.
  function verdict(question, place) {
    const { block } = page.shown;
    const { state } = block.cells;
    const first = cellAt({ question, place, epoch: 1 });
    if (block.epochs === 1) return `${GLYPHS[state[first]]} ${STATES[state[first]]}`;
    const own = state.slice(first, first + block.epochs);
    const right = own.filter((one) => one === 1).length;
    return `${Array.from(own, (one) => GLYPHS[one]).join("")} ${right} of ${own.filter((one) => one).length}`;
  }

  function showGrid() {
    const { block, questions, places } = page.shown;
    const pages = Math.max(1, Math.ceil(questions.length / ROWS));
    page.view.page = Math.min(page.view.page, pages);
    page.first = Math.min(page.first, Math.max(0, places.length - 1));
    const rows = questions.slice((page.view.page - 1) * ROWS, page.view.page * ROWS);
    const across = places.slice(page.first, page.first + ACROSS);
    const heads = ["question", ...across.map((place) => block.rows[place].name)];
    by("grid").replaceChildren(
      podium.el("thead", {}, podium.el("tr", { role: "row" }, ...heads.map((head) => podium.el("th", { scope: "col", role: "columnheader" }, head)))),
      podium.el("tbody", {}, ...rows.map((question) => podium.el(
        "tr", { role: "row" },
        podium.el("th", { scope: "row", role: "rowheader" }, podium.el("bdi", {}, block.questions[question])),
        ...across.map((place) => podium.el(
          "td", { role: "gridcell", tabindex: "-1", class: stateClass(question, place) }, verdict(question, place),
        )),
      ))),
    );
    by("grid").setAttribute("aria-rowcount", String(questions.length + 1));
    by("grid").setAttribute("aria-colcount", String(places.length + 1));
    gridCell()?.setAttribute("tabindex", "0");
    const first = (page.view.page - 1) * ROWS;
    pager(by("more-questions"), "questions", first, ROWS, questions.length, (to) => turn(to / ROWS + 1));
    pager(by("more-columns"), "systems", page.first, ACROSS, places.length, (to) => turnAcross(to, 0));
  }

  function stateClass(question, place) {
    const state = page.shown.block.cells.state[cellAt({ question, place, epoch: 1 })];
    return page.shown.block.epochs > 1 ? "" : `state-${state}`;
  }

  function turn(to) {
    page.view.page = to;
    page.at = [0, page.at[1]];
    showGrid();
    podium.go(...matrixView.written(page.view, page.shown.block));
  }

  function turnAcross(first, column) {
    page.first = first;
    page.at = [page.at[0], column];
    showGrid();
  }

  function gridCell([down, across] = page.at) {
    return by("grid").tBodies[0]?.rows[down]?.cells[across + 1];
  }

  // Return the matrix cell of the table's focused cell.
  function held() {
    const { questions, places } = page.shown;
    const question = questions[(page.view.page - 1) * ROWS + page.at[0]];
    return { question, place: places[page.first + page.at[1]], epoch: 1 };
  }

  function focusOn(at) {
    if (!gridCell(at)) return;
    gridCell()?.setAttribute("tabindex", "-1");
    page.at = at;
    gridCell().setAttribute("tabindex", "0");
    gridCell().focus();
    const cell = held();
    say(cell);
    page.board.reveal(cell);
  }

  const KEYS = {
    ArrowDown: ([down, across]) => (gridCell([down + 1, across]) ? focusOn([down + 1, across]) : keyTurn(1, 0)),
    ArrowUp: ([down, across]) => (down > 0 ? focusOn([down - 1, across]) : keyTurn(-1, ROWS - 1)),
    ArrowRight: ([down, across]) => {
      if (gridCell([down, across + 1])) focusOn([down, across + 1]);
      else if (page.first + ACROSS < page.shown.places.length) {
        turnAcross(page.first + ACROSS, 0);
        focusOn([down, 0]);
      }
    },
    ArrowLeft: ([down, across]) => {
      if (across > 0) focusOn([down, across - 1]);
      else if (page.first > 0) {
        turnAcross(page.first - ACROSS, ACROSS - 1);
        focusOn([down, ACROSS - 1]);
      }
    },
    Home: ([down]) => focusOn([down, 0]),
    End: ([down]) => focusOn([down, by("grid").tBodies[0].rows[down].cells.length - 2]),
    PageDown: () => keyTurn(1, 0),
    PageUp: () => keyTurn(-1, 0),
    Enter: () => { location.href = hrefOf(held()); },
  };

  function keyTurn(by, down) {
    const to = page.view.page + by;
    if (to < 1 || to > Math.ceil(page.shown.questions.length / ROWS)) return;
    const { at } = page;
    turn(to);
    focusOn([down, at[1]]);
  }

  function listenToGrid() {
    by("grid").addEventListener("keydown", (event) => {
      if (!KEYS[event.key] || !event.target.closest("td")) return;
      event.preventDefault();
      KEYS[event.key](page.at);
    });
    by("grid").addEventListener("click", ({ target }) => {
      const cell = target.closest("td");
      if (!cell) return;
      const at = [cell.parentElement.sectionRowIndex, cell.cellIndex - 1];
      const again = at[0] === page.at[0] && at[1] === page.at[1] && document.activeElement === cell;
      if (again) location.href = hrefOf(held());
      else focusOn(at);
    });
  }

  function listenToCanvas() {
    let last = "";
    const under = (event) => {
      const { left, top } = by("board").getBoundingClientRect();
      return page.board.under(event.clientX - left, event.clientY - top);
    };
    const hear = (event) => {
      const at = under(event);
      const now = JSON.stringify(at);
      if (now !== last) say(at);
      last = now;
      return at;
    };
    by("board").addEventListener("pointermove", hear);
    by("board").addEventListener("click", (event) => {
      const at = hear(event);
      // On a touch screen, a tap shows the cell's details and a link that opens the query.
      if (at && event.pointerType !== "touch") location.href = hrefOf(at);
    });
  }

  function showLegend() {
    by("legend").replaceChildren(...[1, 2, 3, 5, 7, 6, 4, 0].map((state) => podium.el(
      "li", {}, matrixCanvas.sample(state), ` ${STATES[state]}`,
    )));
  }

  async function begin(address = podium.address()) {
    const block = address.route[1];
    page.index = await podium.index(block);
    if (!page.index.blocks.some((one) => one.name === block)) {
      await podium.index(page.index.blocks[0]?.name);
    }
    const view = matrixView.read(address, page.index);
    if (!page.index.blocks.find((one) => one.name === view.block).cells) return false;
    by("matrix").hidden = false;
    show(view);
    return true;
  }

  async function main() {
    page.board = matrixCanvas.board(by("board"), by("canvas"), by("spacer"));
    if (await begin()) {
      showLegend();
      listen();
      listenToGrid();
      listenToCanvas();
      addEventListener("hashchange", () => begin());
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showLegend);
    }
    podium.ready();
  }

  main().catch((error) => {
    by("missing").hidden = false;
    by("missing").textContent = `The matrix cannot be drawn: ${error.message}. ${podium.REMEDY}`;
    podium.ready();
  });
})();
