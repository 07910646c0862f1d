// The side panel: what a window holds, what an item is, what a search found.

const N_LISTED = 60;
const LEAST_POSTERIOR = 0.01;
const N_NEIGHBORS = 12;
const LONGEST_TEXT = 100_000; // characters shown at first
const N_NEAR = 8; // items listed where a search would lie

function make(tag, content, attributes = {}) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  for (const each of [content].flat()) if (each !== null && each !== undefined) node.append(typeof each === "object" ? each : plain(each));
  return node;
}

class Panel {
  constructor(node, mapData, source, map, act) {
    Object.assign(this, { node, mapData, source, map, act });
  }

  show(...parts) {
    const hadFocus = this.node.contains(document.activeElement);
    this.node.replaceChildren(...parts.flat().filter(Boolean));
    this.node.parentElement.scrollTop = 0;
    if (hadFocus) this.node.focus();
  }

  head(title) {
    const close = make("button", "Close", { type: "button", id: "close" });
    close.addEventListener("click", () => this.act.close());
    return make("div", [make("h2", make("bdi", title)), close], { class: "head" });
  }

  overview() {
    const { items, kind, grid, window: shape } = this.mapData;
    const what = { words: "words", patches: "visual words", colors: "colors", labels: "labels" }[kind];
    const help = make("details", [
      make("summary", "How to read this map"),
      make("p", `Each item lies where the grid explains it best, so that similar items lie near each other. Names are those of regions: their most distinctive ${kind === "words" ? "words" : "labels"}. The framed part is the whole map; beyond the frame it repeats, for it wraps around${this.map.isBand ? " horizontally" : " in both directions"}.`, { class: "quiet" }),
      make("p", `${items.n.toLocaleString("en")} items, ${grid.join(" x ")} cells, windows of ${shape.join(" x ")}; features are ${what}.`, { class: "quiet" }),
      make("p", "Click a name, a place or an item to open it. Arrow keys move, + and − zoom, / searches, L draws a lasso, V selects what is in view, Escape closes.", { class: "quiet" }),
    ]);
    this.show(this.act.contents(), help);
  }

  // The distinctive features of a window: a bar for the frequency there, a mark for that on the whole grid.
  features(cell) {
    const { cells, names, everywhere } = this.mapData;
    const shown = [...Array(cells.n).keys()].map((k) => ({ name: cells.name[cell * cells.n + k], frequency: cells.frequency[cell * cells.n + k] }));
    const most = Math.max(...shown.map((each) => each.frequency), 1e-9);
    const rows = shown.map(({ name, frequency }) => {
      const bar = make("i");
      bar.style.width = `${(100 * frequency) / most}%`;
      const mark = make("b");
      mark.style.left = `${Math.min(99, (100 * everywhere[name]) / most)}%`;
      const times = frequency / Math.max(everywhere[name], 1e-12);
      const label = this.swatch(name) || make("bdi", names[name], { title: plain(names[name]) });
      const lift = times >= 100 ? `${Math.round(times)}x` : `${times.toFixed(1)}x`;
      return make("li", [label, make("span", [bar, mark], { class: "bar" }), make("span", lift, { class: "lift" })]);
    });
    const list = make("ul", rows, { class: this.mapData.patch ? "features pictured" : "features" });
    list.title = "bar: frequency in this window; line: frequency on the whole grid; number: ratio of the two";
    return list;
  }

  // A feature's name, or its patch.
  featureNode(word, number) {
    return this.mapData.patch && number !== undefined ? this.patch(number, word) : make("bdi", word, { title: plain(word) });
  }

  patch(number, name) {
    const { patch } = this.mapData;
    const canvas = make("canvas", null, { width: 28, height: 28, class: "patch", role: "img", "aria-label": plain(name) });
    const { patches } = this.source;
    const paint = () => canvas.getContext("2d").drawImage(patches, number * patch, 0, patch, patch, 0, 0, 28, 28);
    if (patches.complete) paint();
    else patches.addEventListener("load", paint, { once: true });
    return canvas;
  }

  // A feature's patch or color, where it has one.
  swatch(name) {
    const { patch, colors, feature, names } = this.mapData;
    if (patch) return this.patch(feature[name], names[name]);
    if (!colors) return null;
    const dot = make("span", null, { class: "swatch" });
    dot.style.background = colors[name];
    return make("span", [dot, " ", make("bdi", names[name])]);
  }

  // Items with posterior in and around a window, by decreasing posterior.
  itemsAt([row, column], radius = 1) {
    const { grid, items } = this.mapData;
    const near = new Set();
    for (let i = -radius; i <= radius; i++)
      for (let j = -radius; j <= radius; j++) near.add(wrap(row + i, grid[0]) * grid[1] + wrap(column + j, grid[1]));
    const found = [];
    for (let i = 0; i < items.n; i++) {
      let posterior = 0;
      for (let k = items.start[i]; k < items.start[i + 1]; k++) if (near.has(items.cell[k])) posterior += items.posterior[k];
      if (posterior >= LEAST_POSTERIOR && this.map.isShown[i]) found.push({ item: i, posterior });
    }
    return found.sort((a, b) => b.posterior - a.posterior || a.item - b.item);
  }

  neighbors(item) {
    const { grid, items } = this.mapData;
    const here = [items.row[item], items.column[item]];
    const all = [];
    for (let i = 0; i < items.n; i++) if (i !== item && this.map.isShown[i]) all.push({ item: i, distance: distance(here, [items.row[i], items.column[i]], grid) });
    return all.sort((a, b) => a.distance - b.distance || a.item - b.item).slice(0, N_NEIGHBORS);
  }

  // A list of items: pictures in rows, or titles one below the other.
  list(found, note, query = "") {
    const hasThumbs = Boolean(this.mapData.sheets);
    const { items } = this.mapData;
    const nodes = found.slice(0, N_LISTED).map((each) => {
      const title = items.title[each.item];
      const label = items.label ? items.label.values[items.label.which[each.item]] : "";
      const name = label && label !== title ? `${title}, ${label}` : title;
      const button = make("button", null, { type: "button", "data-item": each.item, title: plain(name) });
      if (hasThumbs) {
        button.setAttribute("aria-label", plain(name));
        button.append(this.thumb(each.item, 56));
      } else {
        if (label && this.map.colorOf) button.append(this.dot(each.item));
        button.append(make("span", [make("bdi", highlighted(title, query)), this.lead(each.item)]));
        if (note) button.append(make("span", note(each), { class: "note" }));
      }
      button.addEventListener("click", () => this.act.openItem(each.item, { isFollowing: true }));
      return make("li", button);
    });
    return make("ul", nodes, { class: hasThumbs ? "items tiles" : "items" });
  }

  // The beginning of a text.
  lead(item) {
    const lead = this.mapData.items.lead?.[item];
    return lead ? make("span", make("bdi", lead), { class: "lead" }) : null;
  }

  dot(item) {
    const dot = make("span", null, { class: "swatch" });
    dot.style.background = this.map.colorOf(item);
    return dot;
  }

  thumb(item, side) {
    const { sheet, x, y, width, height } = this.map.thumbOf(item);
    const scale = side / Math.max(width, height);
    const ratio = 2;
    const canvas = make("canvas", null, { class: "thumb", width: Math.round(width * scale * ratio), height: Math.round(height * scale * ratio) });
    canvas.style.width = `${Math.round(width * scale)}px`;
    canvas.style.height = `${Math.round(height * scale)}px`;
    const paint = () => canvas.getContext("2d").drawImage(this.map.sheets.get(sheet), x, y, width, height, 0, 0, canvas.width, canvas.height);
    if (this.map.sheet(sheet)) paint();
    else this.map.sheets.get(sheet).addEventListener("load", paint, { once: true });
    return canvas;
  }

  cell(corner) {
    const found = this.itemsAt(corner);
    const flat = corner[0] * this.mapData.grid[1] + corner[1];
    this.show(
      this.head(this.map.regions.path(this.regionAt(corner)).pop()),
      make("p", this.around(corner), { class: "quiet" }),
      make("h3", `${this.mapData.kind === "words" ? "Words" : "Features"} of this place, compared with the whole map`),
      this.features(flat),
      make("h3", found.length > N_LISTED ? `Items here: the first ${N_LISTED} of ${found.length}` : `Items here: ${found.length}`),
      found.length ? this.list(found, (each) => percent(each.posterior)) : make("p", "No item lies here.", { class: "quiet" }),
    );
  }

  async item(item) {
    const { items } = this.mapData;
    const ticket = (this.ticket = (this.ticket || 0) + 1);
    const facts = make("dl", null, { class: "facts" });
    const body = make("div", make("p", "…", { class: "quiet" }));
    const own = this.ownImage(item);
    const near = this.list(this.neighbors(item), (each) => `${each.distance.toFixed(1)}`);
    this.show(
      this.head(items.title[item]),
      make("p", ["Lies in ", ...this.around(this.cornerOf(item)).slice(1)], { class: "quiet" }),
      own,
      facts,
      body,
      make("h3", "Nearest on the map"),
      make("p", this.distanceNote(), { class: "quiet small" }),
      near,
    );
    let [known, regions] = [{}, new Map()];
    try {
      known = await this.source.known(item);
      if (known.text) regions = await this.source.wordRegions(item);
    } catch (error) {
      known = { ...known, problem: error.message };
    }
    if (ticket !== this.ticket) return;
    facts.replaceChildren(...this.facts(known));
    body.replaceChildren(...(known.text ? this.text(known.text, LONGEST_TEXT, regions) : []));
    if (regions.size) body.prepend(...regionKey(this.map, regions, this.act));
  }

  // The most likely window of an item.
  cornerOf(item) {
    const { items, grid } = this.mapData;
    const cell = items.cell[items.start[item]];
    return [Math.floor(cell / grid[1]), cell % grid[1]];
  }

  distanceNote() {
    const [tall, wide] = this.mapData.window;
    return `Numbers are distances in cells. The frame on the map is the item's window of ${tall} x ${wide} cells: items closer than that share part of it, those further apart nothing. Orange is where else the item might lie.`;
  }

  // A text with the words of the last search marked; a very long one is cut until one asks for all of it.
  text(text, length = LONGEST_TEXT, wordRegions = new Map()) {
    const part = text.slice(0, length);
    const nodes = wordRegions.size && !this.act.query() ? this.placed(part, wordRegions) : highlighted(part, this.act.query());
    const node = make("div", nodes, { class: "text", tabindex: 0, "aria-label": "Text" });
    if (text.length <= length) return [node];
    const more = make("button", `Show all ${text.length.toLocaleString("en")} characters`, { type: "button" });
    more.addEventListener("click", () => more.parentElement.replaceChildren(...this.text(text, Infinity, wordRegions)));
    return [node, more];
  }

  // A text whose words have the colors of their regions.
  placed(text, wordRegions) {
    const { regions } = this.map;
    const nodes = [];
    let last = 0;
    for (const match of text.matchAll(RUNS)) {
      const word = tokensOfText(match[0]).find((token) => wordRegions.has(token));
      if (word === undefined) continue;
      const id = regions.above(wordRegions.get(word), Math.min(1, regions.nLevels - 1));
      const node = make("span", match[0], { class: "placed", title: plain(regions.list[id].name) });
      node.style.color = regionColor(this.map, id);
      nodes.push(plain(text.slice(last, match.index)), node);
      last = match.index + match[0].length;
    }
    return [...nodes, plain(text.slice(last))];
  }

  ownImage(item) {
    if (!this.mapData.sheets) return null;
    const address = this.source.full(item);
    if (!address) return make("div", this.thumb(item, 224), { class: "own" });
    return make("img", null, { src: address, class: "own", alt: plain(this.mapData.items.title[item]) });
  }

  facts(known) {
    const rows = [];
    const add = (name, value) => rows.push(make("dt", name), make("dd", value));
    for (const name of ["label", "split", "sequence", "path", "problem"]) if (known[name]) add(name, known[name]);
    if (known.time !== undefined) add("time", moment(known.time));
    if (known.link) add("link", this.link(known.link));
    return rows;
  }

  // Only http and https addresses become links; anything else is shown as text.
  link(address) {
    if (!/^https?:\/\//i.test(address)) return address;
    return make("a", address, { href: address, rel: "noopener noreferrer nofollow", target: "_blank" });
  }

  // What a search found: items with the words, and where the words would lie as a text.
  found(result, what) {
    const all = result.all.filter((item) => this.map.isShown[item]);
    const nHidden = result.all.length - all.length;
    const parts = parseQuery(result.query).filter((part) => !part.isExcluded);
    const nWithAll = result.all.slice(0, result.n_with_all).filter((item) => this.map.isShown[item]).length;
    const some = parts.length > 1 && all.length > nWithAll ? `, ${(all.length - nWithAll).toLocaleString("en")} some of them` : "";
    const sentence = all.length ? `${counted(nWithAll, "item")} ${nWithAll === 1 ? "contains" : "contain"} ${parts.length > 1 ? "all words" : "it"}${some}.` : "No item contains it.";
    const hidden = nHidden ? ` ${counted(nHidden, "item")} more left out by the filters.` : "";
    const left = result.n_left_out ? " This page does not hold the most frequent words." : "";
    const list = this.list(all.map((item) => ({ item })), null, result.query);
    this.show(this.head(what), make("p", sentence + hidden + left, { class: "quiet", id: "sentence" }), all.length ? list : null, this.wouldFall(result));
    this.addSnippets(list, result.query, all.slice(0, N_LISTED));
  }

  // Replace the beginnings of texts in a list by the parts where the query is found.
  async addSnippets(list, query, items) {
    const snippets = await this.source.snippets(query, items).catch(() => ({}));
    for (const button of list.querySelectorAll("button[data-item]")) {
      const lead = button.querySelector(".lead");
      const snippet = snippets[button.dataset.item];
      if (lead && snippet) lead.replaceChildren(make("bdi", highlighted(snippet, query)));
    }
  }

  wouldFall(result) {
    if (!result.items.length) return null;
    const near = result.items.filter(({ item }) => this.map.isShown[item]).slice(0, N_NEAR);
    const words = result.words ? ` (by the words ${result.words.join(", ")})` : "";
    const show = make("button", "Show it on the map", { type: "button", id: "would-fall" });
    show.addEventListener("click", () => this.act.light(result.posterior));
    return [
      make("h3", "Where such a text would lie"),
      make("p", `${this.place(result.posterior[0])}${words}`, { class: "quiet" }),
      make("p", show),
      this.list(near),
    ];
  }

  // A new text or image.
  located(result, what) {
    this.show(this.head(what), make("p", this.place(result.posterior[0]), { class: "quiet" }), make("h3", "Items at its most likely place"), this.list(result.items));
  }

  // The name of a place, by its window.
  place([row, column]) {
    return this.map.regions.placeName([row, column]);
  }

  // The finest region of a window.
  regionAt([row, column]) {
    const { cells, nLevels } = this.map.regions;
    return cells[nLevels - 1][row * this.mapData.grid[1] + column];
  }

  // A line that says in which regions a place or an item lies; a click opens them.
  around(corner) {
    const { regions } = this.map;
    const finest = this.regionAt(corner);
    const ids = [];
    for (let id = finest; id !== null; id = regions.list[id].parent) if (!ids.length || regions.list[id].name !== regions.list[ids[0]].name) ids.unshift(id);
    const links = ids.map((id) => {
      const link = make("button", make("bdi", regions.list[id].is_named ? regions.list[id].name.split(", ").slice(0, 2).join(", ") : `Region ${id}`), { type: "button", class: "link", "data-region": id });
      link.addEventListener("click", () => this.act.openRegion(id));
      return link;
    });
    return ["A place in ", ...links.flatMap((link, k) => (k ? [" › ", link] : [link]))];
  }

  problem(message) {
    this.show(this.head("Error"), make("p", message));
  }
}

function counted(n, noun) {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}

function percent(fraction) {
  return `${fraction >= 0.1 ? Math.round(100 * fraction) : (100 * fraction).toFixed(1)}%`;
}
