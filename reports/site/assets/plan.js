"use strict";
// A plan as a graph: a box for each step, an arrow to each step that may read it. A list beside the
// graph has the same content for screen readers.
podium.planGraph = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const CHARACTER = 7.4; // width of a character in px, at the font size of podium.css
  const LINES = { height: 18, padding: 12 };
  const MOST = 28;
  let graphs = 0; // number of graphs so far, which makes element ids unique

  function svg(tag, attributes = {}, ...children) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  function shortened(text) {
    const characters = [...text.replace(/\s+/g, " ")];
    return characters.length > MOST ? `${characters.slice(0, MOST - 1).join("")}…` : characters.join("");
  }

  function lines(step) {
    const named = step.number == null ? [step.name] : [`step ${step.number}`, step.worker];
    const calls = step.calls.length;
    return [...named, calls === 0 ? "not run" : calls === 1 ? "1 call" : `${calls} calls`].map(shortened);
  }

  function laidOut(steps) {
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({ rankdir: "TB", nodesep: 24, ranksep: 36, marginx: 8, marginy: 8 });
    graph.setDefaultEdgeLabel(() => ({}));
    const places = new Map(steps.map((step, at) => [step.number, String(at)]));
    steps.forEach((step, at) => {
      const said = lines(step);
      const longest = Math.max(...said.map((line) => [...line].length));
      graph.setNode(String(at), {
        width: longest * CHARACTER + 2 * LINES.padding,
        height: said.length * LINES.height + LINES.padding,
        said,
        run: step.calls.length > 0,
      });
      for (const read of step.reads) {
        if (places.has(read)) graph.setEdge(places.get(read), String(at));
      }
    });
    dagre.layout(graph);
    return graph;
  }

  function box(node) {
    const left = node.x - node.width / 2;
    const top = node.y - node.height / 2;
    const shape = svg("rect", { x: left, y: top, width: node.width, height: node.height, rx: 6 });
    const texts = node.said.map((line, at) => {
      const y = top + LINES.padding / 2 + (at + 0.75) * LINES.height;
      const text = svg("text", { x: node.x, y, "text-anchor": "middle" });
      text.textContent = line;
      return text;
    });
    return svg("g", { class: node.run ? "plan-step" : "plan-step plan-idle" }, shape, ...texts);
  }

  function arrow(edge, head) {
    const path = edge.points.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L");
    return svg("path", { class: "plan-read", d: `M${path}`, "marker-end": `url(#${head})` });
  }

  function arrowHead(id) {
    const shape = svg("path", { d: "M0,0L8,4L0,8z", class: "plan-head" });
    const size = { viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8 };
    return svg("defs", {}, svg("marker", { id, ...size, orient: "auto" }, shape));
  }

  function labelled(tag, id, text) {
    const made = svg(tag, { id });
    made.textContent = text;
    return made;
  }

  // Return the graph of some steps; `title` and `description` are its text alternatives.
  return (steps, title, description) => {
    const graph = laidOut(steps);
    const { width, height } = graph.graph();
    const name = `plan-${(graphs += 1)}`;
    const drawn = svg("svg", {
      role: "img", class: "plan-graph", width, height, viewBox: `0 0 ${width} ${height}`,
      "aria-labelledby": `${name}-title`, "aria-describedby": `${name}-said`,
    });
    drawn.append(
      labelled("title", `${name}-title`, title),
      labelled("desc", `${name}-said`, description),
      arrowHead(`${name}-head`),
      ...graph.edges().map((edge) => arrow(graph.edge(edge), `${name}-head`)),
      ...graph.nodes().map((node) => box(graph.node(node))),
    );
    return drawn;
  };
})();
