"use strict";
// The comparison: tables that sort, any system as the reference, accuracy against dollars.
// All figures are read from the tables of the page, which need no script; none is computed here.
(() => {
  const NAMED = 7;
  const WIDEST = 960;
  const HEIGHT = 420;
  const DECADE = 10;  // a range wider than this is drawn on a logarithmic axis

  const number = (text) => (text === "" || text == null ? NaN : Number(text));

  // Map a field of table.csv to the index of the table's column that shows it.
  function fieldsOf(table) {
    const heads = [...table.tHead.rows[0].cells];
    return new Map(heads.map((head, at) => [head.dataset.field, at]));
  }

  // -- Sorting --------------------------------------------------------------------------------

  function compared(one, other) {
    if (one === other) return 0;
    if (one === "") return 1;  // unknown values come last in either order
    if (other === "") return -1;
    const difference = Number(one) - Number(other);
    return Number.isNaN(difference) ? one.localeCompare(other) : difference;
  }

  function sortBy(table, at, way) {
    const value = (row) => row.cells[at].dataset.value ?? row.cells[at].textContent;
    const rows = [...table.tBodies[0].rows].sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      return a === "" || b === "" ? compared(a, b) : way * compared(a, b);
    });
    table.tBodies[0].append(...rows);
    for (const head of table.tHead.rows[0].cells) head.removeAttribute("aria-sort");
    table.tHead.rows[0].cells[at].setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
  }

  function makeSortable(table) {
    [...table.tHead.rows[0].cells].forEach((head, at) => {
      if (head.dataset.field === undefined) return;
      // The first click sorts numbers from the largest, texts from A.
      const first = head.classList.contains("num") ? -1 : 1;
      const sort = () => {
        const now = head.getAttribute("aria-sort");
        const way = now === null ? first : now === "ascending" ? -1 : 1;
        sortBy(table, at, way);
      };
      const button = podium.el("button", { type: "button", click: sort });
      button.append(...head.childNodes);
      head.append(button);
    });
  }

  // -- Another reference ----------------------------------------------------------------------

  // Name of a block -> its original HTML; data files have it with other references, escaped.
  const blocks = new Map();

  async function against(section, number) {
    const { name } = section.dataset;
    return number === "" ? blocks.get(name) : podium.json(`against/${name}/${number}`);
  }

  const learning = (section) => document.querySelector(`[data-learning="${CSS.escape(section.dataset.name)}"]`);

  // Replace a block's HTML; what the reader opened and sorted stays as it is.
  function exchange(section, place, html, chosen) {
    const open = [...section.querySelectorAll("details")].map((one) => one.open);
    const more = section.querySelector(".choose-more").checked;
    const sorted = section.querySelector(".comparison th[aria-sort]");
    section.innerHTML = html.block;
    if (learning(section)) learning(section).innerHTML = html.learning;
    section.querySelectorAll("details").forEach((one, at) => { one.open = open[at] ?? false; });
    section.querySelector(".choose-more").checked = more;
    const way = sorted.getAttribute("aria-sort") === "ascending" ? 1 : -1;
    sortBy(section.querySelector(".comparison"), sorted.cellIndex, way);
    begin(section, place, chosen);
    section.querySelector("[data-controls] select").focus();
  }

  function addReferences(section, place, chosen) {
    const numbers = section.dataset.references.split(" ").filter(Boolean);
    if (!numbers.length) return;
    const after = chosen && "Chosen after the run, as podium report --vs does.";
    const said = podium.el("span", { role: "status", class: "muted" }, after);
    async function choose({ target: { value } }) {
      try {
        exchange(section, place, await against(section, value), value);
      } catch (error) {
        said.textContent = `Not compared: ${error.message}. ${podium.REMEDY}`;
      }
    }
    const id = `reference-${place}`;
    const options = numbers.map((number) => {
      const { system } = section.querySelector(`tr[data-row="${number}"]`).dataset;
      return podium.el("option", { value: number, selected: number === chosen }, system);
    });
    section.querySelector("[data-controls]").append(
      podium.el("span", { class: "pair" }, podium.el("label", { for: id }, "reference"),
        podium.el("select", { id, change: choose },
          podium.el("option", { value: "" }, section.dataset.reference), ...options)),
      " ", said,
    );
  }

  // -- Accuracy against dollars ---------------------------------------------------------------

  function pointsOf(table) {
    const fields = fieldsOf(table);
    const cell = (row, field) => row.cells[fields.get(field)];
    return [...table.tBodies[0].rows].map((row) => {
      const interval = row.querySelector("[data-low]").dataset;
      return {
        system: row.dataset.system,
        accuracy: 100 * number(cell(row, "accuracy").dataset.value),
        low: 100 * number(interval.low),
        high: 100 * number(interval.high),
        usd: number(cell(row, "usd_per_query").dataset.value),
        tokens: number(cell(row, "tokens_out").dataset.value),
        frontier: "frontier" in row.dataset,
        limited: "limited" in row.dataset,
        reference: cell(row, "verdict").dataset.value === "reference",
        told: ["accuracy", "usd_per_query", "tokens_out"].map((one) => cell(row, one).textContent),
      };
    }).filter((one) => !Number.isNaN(one.accuracy));
  }

  // The reference, the frontier and the most accurate systems are named; the others are grey.
  function named(points, most) {
    const rank = (one) => (one.reference ? 0 : one.frontier ? 1 : 2);
    const sorted = [...points].sort((a, b) => rank(a) - rank(b) || b.accuracy - a.accuracy);
    return new Set(sorted.slice(0, most));
  }

  // 0.001, not "1m", which is this scale's default format.
  const plain = (value) => value.toLocaleString("en", { maximumSignificantDigits: 6, useGrouping: value >= 1 });

  function scaleOf(values, width) {
    const [low, high] = d3.extent(values);
    if (high <= DECADE * low) {
      const room = (high - low || high) / 8;
      return { type: "linear", domain: [Math.max(0, low - room), high + 2 * room], ticks: Math.round(width / 150) };
    }
    const domain = [low / 1.5, high * 2];
    return { type: "log", domain, ticks: logTicks(domain) };
  }

  function logTicks([low, high]) {
    const from = Math.floor(Math.log10(low));
    const to = Math.ceil(Math.log10(high));
    const steps = to - from > 2 ? [1] : [1, 2, 5];
    const all = d3.range(from, to + 1).flatMap((power) => steps.map((one) => one * 10 ** power));
    return all.filter((one) => one >= low && one <= high);
  }

  function marks(points, x, names) {
    const of = (wanted) => points.filter(wanted);
    const frontier = d3.sort(of((one) => one.frontier), (one) => one[x]);
    const tone = (one) => (!names.has(one) ? "var(--grey)" : one.reference ? "var(--ink)" : "var(--blue)");
    return [
      Plot.ruleY(of((one) => one.reference), { y: "accuracy", stroke: "var(--grey)", strokeDasharray: "2 3" }),
      Plot.line(frontier, { x, y: "accuracy", curve: "step-after", stroke: "var(--blue)", strokeOpacity: 0.5 }),
      Plot.ruleX(points, { x, y1: "low", y2: "high", stroke: tone, strokeOpacity: 0.45 }),
      Plot.dot(points, {
        x, y: "accuracy", r: (one) => (names.has(one) ? 5 : 3.5), symbol: (one) => (one.reference ? "diamond" : "circle"),
        stroke: tone, fill: (one) => (one.limited ? "var(--paper)" : tone(one)), className: "points", sort: null,
      }),
    ];
  }

  function drawnPlot(points, x, names, width) {
    return Plot.plot({
      width, height: HEIGHT, marginTop: 24, marginLeft: 44, marginRight: 24, marginBottom: 44, className: "drawn",
      x: {
        ...scaleOf(points.map((one) => one[x]), width), tickFormat: plain, labelAnchor: "center", labelArrow: "none",
        label: x === "usd" ? "US dollars a query, at list price" : "output tokens a query",
      },
      y: { domain: [0, 100], ticks: 5, grid: true, label: "accuracy %", labelArrow: "none" },
      symbol: { legend: false, domain: ["circle", "diamond"], range: ["circle", "diamond"] },
      marks: marks(points, x, names),
    });
  }

  const overlap = (one, other) =>
    one.x < other.x + other.w && other.x < one.x + one.w && one.y < other.y + other.h && other.y < one.y + one.h;

  // Place each name right, left, above or below its point, where it hides no name and no point.
  function placed(spots, dots, width) {
    const taken = dots.map(({ x, y }) => ({ x: x - 5, y: y - 5, w: 10, h: 10 }));
    return spots.map((spot) => {
      const w = 6.6 * spot.text.length + 6; // with a space to the next name
      const at = (x, y) => ({ x, y, w, h: 15 });
      const { x, y } = spot;
      const around = [0, -12, 12, -24, 24].flatMap((dy) => [at(x + 9, y - 7 + dy), at(x - 9 - w, y - 7 + dy)]);
      const fits = (box) => box.x >= 44 && box.x + w <= width && box.y > 0 && box.y < HEIGHT - 50;
      const free = around.find((box) => fits(box) && !taken.some((one) => overlap(one, box)));
      const box = free ?? around.find(fits) ?? around[0];
      taken.push(box);
      return { ...spot, box };
    });
  }

  function addNames(svg, points, names, [x, y]) {
    const dots = points.map((one) => ({ x: x(one), y: y(one) }));
    const spots = [...names].map((one) => ({ x: x(one), y: y(one), text: one.system }));
    d3.select(svg).append("g").selectAll("text").data(placed(spots, dots, svg.width.baseVal.value)).join("text")
      .attr("class", "named").attr("text-anchor", "start").attr("x", ({ box }) => box.x).attr("y", ({ box }) => box.y + 11)
      .text(({ text }) => text);
  }

  function tipOf(figure) {
    const tip = podium.el("p", { class: "tip", hidden: true });
    figure.append(tip);
    const hide = () => { tip.hidden = true; };
    const show = (mark, said) => {
      tip.textContent = said;
      tip.hidden = false;
      const [own, all] = [mark.getBoundingClientRect(), figure.getBoundingClientRect()];
      tip.style.left = `${Math.max(0, Math.min(own.left - all.left + 14, all.width - tip.offsetWidth))}px`;
      tip.style.top = `${own.top - all.top - tip.offsetHeight - 6}px`;
    };
    return { show, hide };
  }

  function addTips(figure, svg, points) {
    const tip = tipOf(figure);
    svg.querySelectorAll(".points > *").forEach((mark, at) => {
      const one = points[at];
      const [accuracy, usd, tokens] = one.told;
      const said = `${one.system}: ${accuracy} %, USD/query ${usd}, ${tokens} tokens out`;
      mark.setAttribute("tabindex", "0");
      mark.setAttribute("role", "img");
      mark.setAttribute("aria-label", said);
      for (const name of ["pointerenter", "focus"]) mark.addEventListener(name, () => tip.show(mark, said));
      for (const name of ["pointerleave", "blur"]) mark.addEventListener(name, tip.hide);
    });
  }

  // The library adds a style sheet, which our policy refuses (podium.css has its rules), and group
  // names, which are useless in a screen reader.
  function cleaned(svg) {
    svg.querySelectorAll("style").forEach((one) => one.remove());
    svg.querySelectorAll("[aria-label],[aria-description]").forEach((one) => {
      one.removeAttribute("aria-label");
      one.removeAttribute("aria-description");
    });
    return svg;
  }

  function draw(section, table) {
    const all = pointsOf(table);
    const x = all.some((one) => one.usd > 0) ? "usd" : "tokens";
    const there = all.filter((one) => one[x] > 0);
    if (there.length < 2) return;
    const figure = section.querySelector(".plot");
    figure.hidden = false;
    const width = Math.min(WIDEST, figure.clientWidth);
    const names = named(there, width < 500 ? 3 : NAMED);
    const points = d3.sort(there, (one) => names.has(one));  // named points are drawn last, on top
    const plot = drawnPlot(points, x, names, width);
    const svg = cleaned(plot);
    const [across, up] = [plot.scale("x"), plot.scale("y")];
    addNames(svg, points, names, [(one) => across.apply(one[x]), (one) => up.apply(one.accuracy)]);
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-label", `Accuracy against ${x === "usd" ? "dollars" : "tokens"}; the table above has the figures`);
    figure.append(svg, podium.el("figcaption", {}, captionOf(points, x, all.length - points.length)));
    addTips(figure, svg, points);
  }

  function captionOf(points, x, left) {
    const limited = points.some((one) => one.limited);
    return [
      "Lines are 95 % intervals; the steps join the systems that no other system beats in both; ◆ and the dotted line are the reference.",
      limited && "Hollow: it looks at targets, or was chosen in hindsight.",
      x === "tokens" && "Tokens stand for dollars: no worker here has a price.",
      left && `Not drawn, because ${x === "usd" ? "calls have no price" : "tokens are unknown"}: ${left}.`,
    ].filter(Boolean).join(" ");
  }

  function begin(section, place, chosen = "") {
    const table = section.querySelector(".comparison");
    draw(section, table);
    addReferences(section, place, chosen);
    makeSortable(table);
  }

  document.querySelectorAll(".block").forEach((section, place) => {
    const html = { block: section.innerHTML, learning: learning(section)?.innerHTML };
    blocks.set(section.dataset.name, html);
    begin(section, place);
  });
  podium.ready();
})();
