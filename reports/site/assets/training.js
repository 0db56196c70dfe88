"use strict";
// Curves of trainings, drawn from data/training.js instead of the image; tooltips have the figures.
(async () => {
  const { el } = podium;
  const [HEIGHT, LEAST, GAP] = [260, 416, 32]; // pixels, as in the grid of the style sheet
  const PLACES = { share: 3, steps: 2, calls: 2, tokens: 1, USD: 6 };

  const plain = (value) => value.toLocaleString("en", { maximumSignificantDigits: 6 });
  const rounded = (value, unit) => value.toLocaleString("en", { maximumFractionDigits: PLACES[unit] });

  function rows(panel) {
    return panel.curves.flatMap((curve) =>
      curve.points.map(([step, value, low, high]) => ({ run: curve.run, mean: curve.mean, step, value, low, high })));
  }

  function said(one, unit) {
    const bounds = one.low == null ? "" : ` [${rounded(one.low, unit)}, ${rounded(one.high, unit)}]`;
    return `${one.run}\nstep ${one.step}: ${rounded(one.value, unit)}${bounds}`;
  }

  function axes(unit, width) {
    const y = unit === "share" ? { domain: [0, 1] } : { zero: true };
    return {
      width, height: HEIGHT, marginLeft: 56, marginBottom: 40,
      x: { label: "step", labelAnchor: "center", labelArrow: "none", tickFormat: plain },
      y: { ...y, grid: true, ticks: 5, label: unit, labelArrow: "none", tickFormat: plain, clamp: true },
    };
  }

  function drawnPanel({ unit, ...panel }, colour, width) {
    const points = rows(panel);
    const means = points.some((one) => one.mean);
    const banded = points.filter((one) => one.low != null && (one.mean || !means));
    const line = { x: "step", y: "value", z: "run", stroke: colour };
    return Plot.plot({
      ...axes(unit, width),
      marks: [
        Plot.areaY(banded, { x: "step", y1: "low", y2: "high", z: "run", fill: colour, fillOpacity: 0.15 }),
        Plot.line(points.filter((one) => !one.mean), { ...line, strokeWidth: 1.3 }),
        Plot.line(points.filter((one) => one.mean), { ...line, strokeWidth: 2.5 }),
        Plot.tip(points, Plot.pointerX({ maxRadius: Infinity, x: "step", y: "value", title: (one) => said(one, unit) })),
      ],
    });
  }

  function drawnAsked(asked, colour, width) {
    const title = (one) => `${one.worker}\nstep ${one.step}: ${rounded(one.share, "share")}`;
    const stacked = Plot.stackY({ x: "step", y: "share", z: "worker", fill: colour, title });
    return Plot.plot({
      ...axes("share", width),
      marks: [Plot.areaY(asked, stacked), Plot.tip(asked, Plot.pointerX(Plot.stackY({ maxRadius: Infinity, x: "step", y: "share", z: "worker", title })))],
    });
  }

  // Our security policy forbids inline style sheets, and parts of a graphic must not have names.
  function allowed(svg, name) {
    svg.querySelectorAll("style").forEach((one) => one.remove());
    svg.querySelectorAll("[aria-label]").forEach((one) => one.removeAttribute("aria-label"));
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", name);
    return svg;
  }

  function key(entries) {
    return el("p", { class: "key" }, ...entries.map(([name, colour]) => {
      const mark = el("span", { class: "swatch", "aria-hidden": "true" });
      mark.style.background = colour;
      return el("span", {}, mark, name);
    }));
  }

  function figure(title, draw, ...below) {
    return (width) => el("figure", { class: "plot" }, el("figcaption", {}, title), allowed(draw(width), title), ...below);
  }

  function colours(names, palette) {
    const found = new Map(names.map((name, at) => [name, palette[at % palette.length]]));
    return (name) => found.get(name) ?? "var(--ink)";
  }

  const place = document.getElementById("curves");
  const data = await podium.json("training");
  const palette = data.colours.map((one) => (one === "#000000" ? "var(--ink)" : one));
  const ofRun = colours(data.runs, palette);
  const workers = [...new Set(data.asked.map((one) => one.worker))].sort();
  const ofWorker = colours(workers, palette);
  const runs = [...new Set(data.panels.flatMap((panel) => panel.curves.map((curve) => curve.run)))];
  const figures = data.panels.map((panel) =>
    figure(panel.title, (width) => drawnPanel(panel, (one) => ofRun(one.run), width)));
  for (const [training, asked] of d3.group(data.asked, (one) => one.training)) {
    if (new Set(asked.map((one) => one.step)).size < 2) continue; // an area chart needs two steps
    const named = workers.filter((name) => asked.some((one) => one.worker === name));
    figures.push(figure(`whom ${training} asks, on held-out questions`,
      (width) => drawnAsked(asked, (one) => ofWorker(one.worker), width), key(named.map((one) => [one, ofWorker(one)]))));
  }

  function draw() {
    const across = Math.max(1, Math.floor((place.clientWidth + GAP) / (LEAST + GAP)));
    const width = Math.floor((place.clientWidth - GAP * (across - 1)) / across);
    place.replaceChildren(key(runs.map((one) => [one, ofRun(one)])), ...figures.map((one) => one(width)));
  }

  place.classList.add("curves");
  draw();
  let before = place.clientWidth;
  new ResizeObserver(() => {
    if (place.clientWidth !== before) draw();
    before = place.clientWidth;
  }).observe(place);
  podium.ready();
})();
