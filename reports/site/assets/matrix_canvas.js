"use strict";
// The matrix as a picture: a row per question, a column per system; only the visible part is drawn.
// Each state is a tile, painted once: a colour and, if there is room, a shape.
const matrixCanvas = (() => {
  const SIZES = { large: 24, medium: 14, small: 7 };
  const LABEL = 11; // font size of names, in px
  const LINE = LABEL + 2;
  const DEEPEST = 220; // maximum height of the systems' names above the cells, in px
  const TONES = ["--soft", "--cell-right", "--cell-wrong", "--cell-right", "--cell-unscored",
    "--cell-wrong", "--cell-wrong", "--cell-wrong"];

  const INKS = ["--rule", "--cell-on-right", "--cell-on-wrong", "--cell-on-wrong",
    "--cell-on-unscored", "--cell-on-wrong", "--cell-on-wrong", "--cell-on-wrong"];

  function tone(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  const headOf = (shown, column) => (column.places.includes(shown.reference) ? `◆ ${column.name}` : column.name);

  // Return the cells' size and position; a column is as wide as its epochs and runs need.
  function measured(shown, width, length) {
    const { block, columns, view } = shown;
    const parts = Math.max(1, ...columns.map((one) => one.places.length)) * block.epochs;
    const names = Math.min(170, Math.round(width * 0.3));
    const room = (width - names) / Math.max(1, columns.length);
    const fits = Object.keys(SIZES).find((one) => SIZES[one] <= room) ?? "small";
    const high = SIZES[view.size || fits];
    const part = Math.max(3, Math.floor(Math.min(Math.max(room, high), 1.6 * high) / parts));
    const deep = Math.max(...columns.map((one) => length(headOf(shown, one))), 3 * LINE);
    return {
      high, part, parts, wide: part * parts, left: names, top: Math.min(DEEPEST, Math.ceil(deep) + 14),
      across: names + columns.length * part * parts, down: shown.questions.length * high,
    };
  }

  const DRAWN = {
    1: (draw, w, h) => line(draw, [[0.22, 0.55], [0.42, 0.75], [0.78, 0.28]], w, h),
    2: (draw, w, h) => cross(draw, w, h),
    5: (draw, w, h) => {
      draw.beginPath();
      draw.ellipse(w / 2, h / 2, w * 0.24, h * 0.24, 0, 0, 2 * Math.PI);
      draw.stroke();
    },
    6: (draw, w, h) => line(draw, [[0.5, 0.22], [0.8, 0.75], [0.2, 0.75], [0.5, 0.22]], w, h),
    7: (draw, w, h) => line(draw, [[0.15, 0.35], [0.85, 0.35], [0.85, 0.65], [0.15, 0.65], [0.15, 0.35]], w, h),
  };

  function line(draw, points, w, h) {
    draw.beginPath();
    for (const [x, y] of points) draw.lineTo(x * w, y * h);
    draw.stroke();
  }

  function cross(draw, w, h) {
    line(draw, [[0.28, 0.28], [0.72, 0.72]], w, h);
    line(draw, [[0.72, 0.28], [0.28, 0.72]], w, h);
  }

  function stripes(draw, w, h, gap) {
    draw.beginPath();
    for (let x = -h; x < w; x += gap) {
      draw.moveTo(x, h);
      draw.lineTo(x + h, 0);
    }
    draw.stroke();
  }

  // Paint half of a tile in the colour of wrong; the other half has the colour of right.
  function half(draw, w, h) {
    draw.fillStyle = tone("--cell-wrong");
    draw.beginPath();
    for (const [x, y] of [[w, 0], [w, h], [0, h]]) draw.lineTo(x, y);
    draw.fill();
  }

  function paint(draw, state, w, h) {
    draw.save();
    draw.beginPath();
    draw.rect(0, 0, w, h);
    draw.clip();
    draw.fillStyle = tone(TONES[state]);
    if (state === 0) {
      draw.fillRect(w / 2 - 1, h / 2 - 1, 2, 2);
    } else {
      draw.fillRect(0, 0, w, h);
    }
    if (state === 3) half(draw, w, h);
    const small = Math.min(w, h) < 9;
    draw.strokeStyle = tone(INKS[state]);
    draw.lineWidth = Math.min(w, h) < 16 ? 1.2 : 1.8;
    if (state === 4) stripes(draw, w, h, small ? 4 : 6);
    else if (small && state > 4) line(draw, state % 2 ? [[0, 0.5], [1, 0.5]] : [[0, 0], [1, 1]], w, h);
    else if (!small) shape(draw, state, w, h);
    draw.restore();
  }

  // Draw a shape, undistorted, in the middle of a tile that is wider than high.
  function shape(draw, state, w, h) {
    const side = Math.min(w, h);
    draw.translate((w - side) / 2, (h - side) / 2);
    DRAWN[state]?.(draw, side, side);
  }

  // Return all tiles in one picture: a column per state; the second row is for cells filtered out.
  function tilesOf(part, high, ratio) {
    const [w, h] = [part - (part > 4 ? 1 : 0), high - 1];
    const sheet = document.createElement("canvas");
    sheet.width = Math.ceil(part * ratio) * matrixView.STATES.length;
    sheet.height = Math.ceil(high * ratio) * 2;
    const draw = sheet.getContext("2d");
    const [stepX, stepY] = [Math.ceil(part * ratio), Math.ceil(high * ratio)];
    for (const dim of [0, 1]) {
      matrixView.STATES.forEach((_, state) => {
        draw.setTransform(ratio, 0, 0, ratio, state * stepX, dim * stepY);
        draw.globalAlpha = dim ? 0.16 : 1;
        paint(draw, state, w, h);
      });
    }
    return { sheet, stepX, stepY };
  }

  // Return a board in a scrolling element: `show(shown)` draws a view, `mark(cell)` frames a cell.
  function board(scroller, canvas, spacer) {
    const draw = canvas.getContext("2d", { alpha: false });
    const drawing = { shown: null, at: null, marked: null, tiles: null, waiting: false };
    const ratio = () => window.devicePixelRatio || 1;

    function fit() {
      if (!drawing.shown) return;
      drawing.font = getComputedStyle(scroller).fontFamily;
      const at = measured(drawing.shown, scroller.clientWidth, (name) => {
        draw.font = `bold ${LABEL}px ${drawing.font}`;
        return draw.measureText(name).width;
      });
      drawing.at = at;
      drawing.tiles = tilesOf(at.part, at.high, ratio());
      scroller.style.height = `${Math.min(at.top + at.down + 20, 0.75 * window.innerHeight)}px`;
      spacer.style.width = `${at.across}px`;
      spacer.style.height = `${at.top + at.down}px`;
      const [w, h] = [scroller.clientWidth, scroller.clientHeight];
      canvas.width = Math.round(w * ratio());
      canvas.height = Math.round(h * ratio());
      canvas.style.width = `${w}px`;
      canvas.style.height = `${h}px`;
      drawing.before = null;
      drawing.paper = tone("--paper") || "white";
      drawing.ink = tone("--ink") || "black";
      drawing.soft = tone("--soft") || "grey";
      drawing.rule = tone("--rule") || "silver";
      draw.fillStyle = drawing.paper;  // an opaque canvas is black until something is drawn
      draw.fillRect(0, 0, canvas.width, canvas.height);
      later();
    }

    // Redraw at most once per frame, however often this is called.
    function later() {
      if (drawing.waiting) return;
      drawing.waiting = true;
      requestAnimationFrame(() => {
        drawing.waiting = false;
        if (drawing.shown) drawAll();
      });
    }

    // Return the range of visible rows or columns: first, and last + 1.
    function inSight(scrolled, room, step, count) {
      return [Math.max(0, Math.floor(scrolled / step)), Math.min(count, Math.ceil((scrolled + room) / step))];
    }

    // After vertical scrolling, move the picture and draw only the part that became visible.
    function drawAll() {
      const { at, shown } = drawing;
      const [w, h, dpr] = [scroller.clientWidth, scroller.clientHeight, ratio()];
      const scrolled = { x: Math.round(scroller.scrollLeft * dpr), y: Math.round(scroller.scrollTop * dpr) };
      let [begin, end] = moved(scrolled, Math.round(at.top * dpr));
      drawing.before = scrolled;
      const top = at.top - scrolled.y / dpr;
      const columns = inSight(scrolled.x / dpr, w - at.left, at.wide, shown.columns.length);
      const rows = [
        Math.max(0, Math.floor((begin / dpr - top) / at.high)),
        Math.min(shown.questions.length, Math.ceil((end / dpr - top) / at.high)),
      ];
      draw.setTransform(dpr, 0, 0, dpr, 0, 0);
      draw.save();
      draw.beginPath();
      draw.rect(0, at.top, w, h);
      draw.clip();
      draw.fillStyle = drawing.paper;
      begin = Math.min(begin / dpr, top + rows[0] * at.high);
      draw.fillRect(0, begin, w, Math.max(end / dpr, top + rows[1] * at.high) - begin);
      drawCells(rows, columns, scrolled);
      drawMark(at.left - scrolled.x / dpr, top);
      drawNames(rows, top);
      draw.restore();
      if (end - begin * dpr >= canvas.height - at.top * dpr) drawHeads(columns, at.left - scrolled.x / dpr);
    }

    // Move the picture; return the range, in device pixels, that must be redrawn.
    function moved(scrolled, top) {
      const { before } = drawing;
      const by = before && before.x === scrolled.x ? scrolled.y - before.y : Infinity;
      const room = canvas.height - top;
      if (Math.abs(by) >= room) return [top, canvas.height];
      draw.setTransform(1, 0, 0, 1, 0, 0);
      const kept = room - Math.abs(by);
      const from = top + Math.max(0, by);
      draw.drawImage(canvas, 0, from, canvas.width, kept, 0, top + Math.max(0, -by), canvas.width, kept);
      return by > 0 ? [canvas.height - by, canvas.height] : [top, top - by];
    }

    function drawCells(rows, columns, scrolled) {
      const { at, shown, tiles } = drawing;
      const { state } = shown.block.cells;
      const [E, Q, dpr] = [shown.block.epochs, shown.block.questions.length, ratio()];
      draw.setTransform(1, 0, 0, 1, 0, 0); // tiles are in device pixels
      for (let down = rows[0]; down < rows[1]; down += 1) {
        const question = shown.questions[down];
        const y = Math.round((at.top + down * at.high) * dpr) - scrolled.y;
        for (let across = columns[0]; across < columns[1]; across += 1) {
          let x = at.left + across * at.wide;
          for (const place of shown.columns[across].places) {
            const first = (place * Q + question) * E;
            for (let cell = first; cell < first + E; cell += 1) {
              draw.drawImage(
                tiles.sheet, state[cell] * tiles.stepX, shown.passes(cell) ? 0 : tiles.stepY,
                tiles.stepX, tiles.stepY, Math.round(x * dpr) - scrolled.x, y, tiles.stepX, tiles.stepY,
              );
              x += at.part;
            }
          }
        }
      }
      draw.setTransform(dpr, 0, 0, dpr, 0, 0);
    }

    function drawMark(left, top) {
      const { at, shown, marked } = drawing;
      const down = marked ? shown.questions.indexOf(marked.question) : -1;
      if (down < 0) return;
      const across = shown.columns.findIndex((one) => one.places.includes(marked.place));
      const [x, y] = [left + across * at.wide, top + down * at.high];
      draw.strokeStyle = drawing.ink;
      draw.lineWidth = 2;
      draw.strokeRect(x - 1, y - 1, at.wide + 1, at.high + 1);
    }

    function drawNames(rows, top) {
      const { at, shown, marked } = drawing;
      const step = Math.ceil(LINE / at.high); // low rows: only every second or third has a name
      const from = rows[0] - (rows[0] % step);
      draw.fillStyle = drawing.paper;
      draw.fillRect(0, top + from * at.high, at.left, (rows[1] + step - from) * at.high);
      draw.font = `${LABEL}px ${drawing.font}`;
      draw.textBaseline = "middle";
      draw.textAlign = "right";
      for (let down = from; down < Math.min(rows[1] + step, shown.questions.length); down += step) {
        const question = shown.questions[down];
        draw.fillStyle = marked?.question === question ? drawing.ink : drawing.soft;
        // Ids of questions differ at their end, so the beginning is cut off.
        draw.fillText(ending(shown.block.questions[question]), at.left - 6, top + down * at.high + Math.max(LINE, at.high) / 2);
      }
    }

    function ending(name) {
      const most = Math.floor((drawing.at.left - 12) / (LABEL * 0.56));
      return name.length > most ? `…${name.slice(1 - most)}` : name;
    }

    function drawHeads(columns, left) {
      const { at, shown } = drawing;
      draw.fillStyle = drawing.paper;
      draw.fillRect(0, 0, scroller.clientWidth, at.top);
      draw.textBaseline = "middle";
      draw.textAlign = "right";
      draw.font = `${LABEL}px ${drawing.font}`;
      draw.fillStyle = drawing.ink;
      draw.fillText("system →", at.left - 6, at.top - 2 * LINE);
      draw.fillText("question ↓", at.left - 6, at.top - LINE);
      draw.save();
      draw.beginPath();
      draw.rect(at.left - 2, 0, scroller.clientWidth, at.top);
      draw.clip();
      draw.textAlign = "left";
      const step = Math.ceil(LINE / at.wide);
      for (let across = columns[0] - (columns[0] % step); across < columns[1]; across += step) {
        const column = shown.columns[across];
        const held = column.places.includes(shown.reference);
        draw.save();
        draw.translate(left + (across + 0.5) * at.wide, at.top - 6);
        draw.rotate(-Math.PI / 2);
        draw.font = `${held ? "bold " : ""}${LABEL}px ${drawing.font}`;
        draw.fillStyle = held ? drawing.ink : drawing.soft;
        draw.fillText(headOf(shown, column), 0, 0, at.top - 12);
        draw.restore();
      }
      draw.restore();
      draw.fillStyle = drawing.rule;
      draw.fillRect(0, at.top - 1, scroller.clientWidth, 1);
    }

    // Return the cell under a point of the canvas: a question, a row of the block and an epoch.
    function under(x, y) {
      const { at, shown } = drawing;
      if (!shown || x < at.left || y < at.top) return null;
      const [right, down] = [x - at.left + scroller.scrollLeft, y - at.top + scroller.scrollTop];
      const column = shown.columns[Math.floor(right / at.wide)];
      const question = shown.questions[Math.floor(down / at.high)];
      const part = Math.floor((right % at.wide) / at.part);
      const place = column?.places[Math.floor(part / shown.block.epochs)];
      if (question === undefined || place === undefined) return null;
      return { question, place, epoch: (part % shown.block.epochs) + 1 };
    }

    // Scroll so that a cell is visible.
    function reveal(cell) {
      const { at, shown } = drawing;
      const down = shown.questions.indexOf(cell.question) * at.high;
      const room = scroller.clientHeight - at.top - at.high;
      if (down < scroller.scrollTop || down > scroller.scrollTop + room) {
        scroller.scrollTop = Math.max(0, down - room / 2);
      }
    }

    scroller.addEventListener("scroll", later, { passive: true });
    new ResizeObserver(fit).observe(scroller);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", fit);
    return {
      show(shown) {
        Object.assign(drawing, { shown, marked: null });
        fit();
        drawAll();
      },
      mark(cell) {
        drawing.marked = cell;
        drawing.before = null; // redraw everything, because the frame overlaps other cells
        later();
      },
      reveal, under,
    };
  }

  // Return a tile with its shape, for the legend.
  function sample(state) {
    const ratio = window.devicePixelRatio || 1;
    const canvas = podium.el("canvas", { width: 18 * ratio, height: 18 * ratio, class: "tile", "aria-hidden": "true" });
    const draw = canvas.getContext("2d");
    draw.scale(ratio, ratio);
    paint(draw, state, 18, 18);
    return canvas;
  }

  return { board, sample };
})();
