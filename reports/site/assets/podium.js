"use strict";
// Shared by all pages: loading of data files (classic scripts, because a page opened from disk must
// not fetch), elements whose content is text only, and the view's state in the URL.
const podium = (() => {
  const waiting = new Map();
  const loaded = new Map();

  // Each data file calls this with its name and its gzipped content in base64.
  function put(name, base64) {
    waiting.get(name)?.(base64);
  }

  async function unpacked(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }

  function load(name) {
    if (!loaded.has(name)) {
      loaded.set(name, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        waiting.set(name, (base64) => resolve(unpacked(base64)));
        script.src = `data/${name}.js`;
        script.onerror = () => reject(new Error(`data/${name}.js is missing`));
        document.head.append(script);
      }));
    }
    return loaded.get(name);
  }

  async function json(name) {
    return JSON.parse(new TextDecoder().decode(await load(name)));
  }

  // An element; strings among the children become text, never HTML.
  function el(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") made.addEventListener(name, value);
      else if (value === true) made.setAttribute(name, "");
      else if (value !== false && value != null) made.setAttribute(name, value);
    }
    made.append(...children.filter((one) => one != null));
    return made;
  }

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text; // a lone % in a typed URL
    }
  }

  // Parse the part of a URL after #: `#/m/aime25?mode=all` has a route and a query.
  function address(hash = location.hash) {
    const [route, ...query] = hash.replace(/^#\/?/, "").split("?");
    const pairs = query.join("?").split("&").filter(Boolean).map((one) => one.split("="));
    return {
      route: route.split("/").filter(Boolean).map(decoded),
      query: new Map(pairs.map(([name, ...value]) => [decoded(name), decoded(value.join("="))])),
    };
  }

  // The inverse of `address`; null and empty values are left out.
  function hash(route, query = new Map()) {
    const encoded = (text) => encodeURIComponent(text).replace(/%(3A|2C|2F)/g, decodeURIComponent);
    const pairs = [...query].filter(([, value]) => value != null && value !== "");
    const words = pairs.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join("&");
    return `#/${route.map(encodeURIComponent).join("/")}${words ? `?${words}` : ""}`;
  }

  // Store the state in the URL without a new history entry: a reload gives the same view.
  function go(route, query) {
    history.replaceState(null, "", hash(route, query));
  }

  // Names of systems as one value of a URL; commas in a name are escaped.
  function joined(names) {
    return names.map((one) => one.replace(/[%,]/g, encodeURIComponent)).join(",");
  }

  function split(text) {
    return (text ?? "").split(",").filter(Boolean).map(decoded);
  }

  const COLUMNS = {
    score: Float32Array, usd: Float32Array, seconds: Float32Array, tokens: Uint32Array,
    reason: Uint16Array, calls: Uint16Array, state: Uint8Array,
  };

  // Parse a file of the index: length of the JSON (4 bytes), JSON, columns of numbers.
  function unframed(buffer) {
    const length = new DataView(buffer).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    const columns = (block, places) => Object.fromEntries(
      Object.entries(COLUMNS).map(([name, Kind]) => {
        const count = block.rows.length * block.questions.length * block.epochs;
        return [name, new Kind(buffer, 4 + length + places[name], count)];
      }),
    );
    return { head, columns };
  }

  let found = null;

  // Return blocks, rows and questions, with all cells; if a site has a file of cells per block, only
  // with those of the block `name`. `cells` is null if they are not stored.
  async function index(name) {
    found ??= load("index").then(unframed).then(({ head, columns }) => {
      for (const block of head.blocks) {
        block.cells = block.columns ? columns(block, block.columns) : null;
        block.reasons = head.reasons;
      }
      return head;
    });
    const head = await found;
    const block = head.blocks.find((one) => one.name === name);
    if (block && !block.cells && head.cells === "apart") {
      const file = unframed(await load(`index/${name}`));
      block.cells = file.columns(block, file.head.columns[0]);
      block.reasons = file.head.reasons;
    }
    return head;
  }

  // Mark the page as drawn, for tests that wait for it.
  function ready() {
    document.documentElement.dataset.ready = "1";
  }

  const REMEDY = "Copy the whole folder of pages, or reload the page if a server shows it.";

  return { put, load, json, el, ready, address, hash, go, joined, split, index, REMEDY };
})();
