"use strict";
// What every page uses: data files (classic scripts, since a page from a disk may fetch nothing),
// elements whose texts are text, and the state in the address.
const podium = (() => {
  const waiting = new Map();
  const loaded = new Map();

  // A data file calls this: its name and gzip in base64.
  function put(name, base64) {
    waiting.get(name)?.(base64);
  }

  async function unpacked(base64) {
    const bytes = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }

  function load(name) {
    if (!loaded.has(name)) {
      loaded.set(name, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        waiting.set(name, (base64) => resolve(unpacked(base64)));
        script.src = `data/${name}.js`;
        script.onerror = () => reject(new Error(`data/${name}.js is not here`));
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

  // Says to whoever waits that all is drawn.
  function ready() {
    document.documentElement.dataset.ready = "1";
  }

  return { put, load, json, el, ready };
})();
