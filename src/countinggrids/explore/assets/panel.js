// The side panel: what a window holds, what an item is, what a search found.

const N_LISTED = 60;
const LEAST_SHARE = 0.01;
const N_NEIGHBOURS = 12;

function make(tag, content, attributes = {}) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  for (const each of [content].flat()) if (each !== null && each !== undefined) node.append(typeof each === "object" ? each : plain(each));
  return node;
}

class Panel {
  constructor(node, chart, source, map, act) {
    Object.assign(this, { node, chart, source, map, act });
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
    const { items, kind, grid, window: shape, names } = this.chart;
    const what = { words: "words", patches: "visual words", colours: "colours", labels: "labels" }[kind];
    this.show(
      make("h2", "How to read this map"),
      make("p", `Items lie where the grid explains them best: what is near is alike. The map wraps round${this.map.isBand ? " sideways" : " in both directions"}. ` +
        `${items.n.toLocaleString("en")} items, ${grid.join(" x ")} cells, windows of ${shape.join(" x ")}; features are ${what}.`, { class: "quiet" }),
      make("p", "Click a place for what it holds, an item to open it. Arrow keys move, + and − zoom, / searches.", { class: "quiet" }),
      kind === "words" || !names.length ? null : [make("h3", "Telling features of the most used window"), this.features(this.busiest())],
    );
  }

  busiest() {
    const { usage } = this.chart;
    return usage.indexOf(largest(usage));
  }

  // The telling features of a window: a bar for how often each occurs there, a mark for how often anywhere.
  features(cell) {
    const { cells, names, everywhere } = this.chart;
    const shown = [...Array(cells.n).keys()].map((k) => ({ name: cells.name[cell * cells.n + k], share: cells.share[cell * cells.n + k] }));
    const most = Math.max(...shown.map((each) => each.share), 1e-9);
    const rows = shown.map(({ name, share }) => {
      const bar = make("i");
      bar.style.width = `${(100 * share) / most}%`;
      const mark = make("b");
      mark.style.left = `${Math.min(99, (100 * everywhere[name]) / most)}%`;
      const times = share / Math.max(everywhere[name], 1e-12);
      const label = this.swatch(name) || make("bdi", names[name], { title: plain(names[name]) });
      const lift = times >= 100 ? `${Math.round(times)}x` : `${times.toFixed(1)}x`;
      return make("li", [label, make("span", [bar, mark], { class: "bar" }), make("span", lift, { class: "lift" })]);
    });
    const list = make("ul", rows, { class: this.chart.patch ? "features pictured" : "features" });
    list.title = "bar: share in this window; line: share everywhere; number: how many times as often as everywhere";
    return list;
  }

  // A feature's patch or colour, where it has one.
  swatch(name) {
    const { patch, colours, feature, names } = this.chart;
    if (patch) {
      const canvas = make("canvas", null, { width: 28, height: 28, class: "patch", role: "img", "aria-label": plain(names[name]) });
      const { patches } = this.source;
      const paint = () => canvas.getContext("2d").drawImage(patches, feature[name] * patch, 0, patch, patch, 0, 0, 28, 28);
      if (patches.complete) paint();
      else patches.addEventListener("load", paint, { once: true });
      return canvas;
    }
    if (!colours) return null;
    const dot = make("span", null, { class: "swatch" });
    dot.style.background = colours[name];
    return make("span", [dot, " ", make("bdi", names[name])]);
  }

  // Items with posterior in and around a window, most first.
  itemsAt([row, column], radius = 1) {
    const { grid, items } = this.chart;
    const near = new Set();
    for (let i = -radius; i <= radius; i++)
      for (let j = -radius; j <= radius; j++) near.add(wrap(row + i, grid[0]) * grid[1] + wrap(column + j, grid[1]));
    const found = [];
    for (let i = 0; i < items.n; i++) {
      let share = 0;
      for (let k = items.start[i]; k < items.start[i + 1]; k++) if (near.has(items.cell[k])) share += items.posterior[k];
      if (share >= LEAST_SHARE && this.map.isShown[i]) found.push({ item: i, posterior: share });
    }
    return found.sort((a, b) => b.posterior - a.posterior || a.item - b.item);
  }

  neighbours(item) {
    const { grid, items } = this.chart;
    const here = [items.row[item], items.column[item]];
    const all = [];
    for (let i = 0; i < items.n; i++) if (i !== item && this.map.isShown[i]) all.push({ item: i, distance: distance(here, [items.row[i], items.column[i]], grid) });
    return all.sort((a, b) => a.distance - b.distance || a.item - b.item).slice(0, N_NEIGHBOURS);
  }

  // A list of items: pictures in rows, or titles one below the other.
  list(found, note) {
    const hasThumbs = Boolean(this.chart.sheets);
    const { items } = this.chart;
    const nodes = found.slice(0, N_LISTED).map((each) => {
      const title = items.title[each.item];
      const label = items.label ? items.label.values[items.label.which[each.item]] : "";
      const name = label && label !== title ? `${title}, ${label}` : title;
      const button = make("button", null, { type: "button", "data-item": each.item, title: plain(name) });
      if (hasThumbs) {
        button.setAttribute("aria-label", plain(name));
        button.append(this.thumb(each.item, 56));
      } else {
        if (label && this.map.colourOf) button.append(this.dot(each.item));
        button.append(make("span", [make("bdi", title), this.lead(each.item)]));
        if (note) button.append(make("span", note(each), { class: "share" }));
      }
      button.addEventListener("click", () => this.act.openItem(each.item, { isFollowing: true }));
      return make("li", button);
    });
    return make("ul", nodes, { class: hasThumbs ? "items tiles" : "items" });
  }

  // How a text begins, where its title does not say.
  lead(item) {
    const lead = this.chart.items.lead?.[item];
    return lead ? make("span", make("bdi", lead), { class: "lead" }) : null;
  }

  dot(item) {
    const dot = make("span", null, { class: "swatch" });
    dot.style.background = this.map.colourOf(item);
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
    const flat = corner[0] * this.chart.grid[1] + corner[1];
    this.show(
      this.head(`Window at row ${corner[0]}, column ${corner[1]}`),
      make("h3", "Telling features, against the whole"),
      this.features(flat),
      make("h3", found.length > N_LISTED ? `Items here: the first ${N_LISTED} of ${found.length}` : `Items here: ${found.length}`),
      found.length ? this.list(found, (each) => percent(each.posterior)) : make("p", "No item lies here.", { class: "quiet" }),
    );
  }

  async item(item) {
    const { items } = this.chart;
    const ticket = (this.ticket = (this.ticket || 0) + 1);
    const facts = make("dl", null, { class: "facts" });
    const body = make("div", make("p", "…", { class: "quiet" }));
    const own = this.ownImage(item);
    this.show(
      this.head(items.title[item]),
      own,
      facts,
      body,
      make("h3", "Nearest on the map"),
      this.list(this.neighbours(item), (each) => each.distance.toFixed(1)),
    );
    let known = {};
    try {
      known = await this.source.known(item);
    } catch (error) {
      known = { problem: error.message };
    }
    if (ticket !== this.ticket) return;
    facts.replaceChildren(...this.facts(known));
    body.replaceChildren(known.text ? make("div", known.text, { class: "text", tabindex: 0, "aria-label": "Text" }) : "");
  }

  ownImage(item) {
    if (!this.chart.sheets) return null;
    const address = this.source.full(item);
    if (!address) return make("div", this.thumb(item, 224), { class: "own" });
    return make("img", null, { src: address, class: "own", alt: plain(this.chart.items.title[item]) });
  }

  facts(known) {
    const rows = [];
    const add = (name, value) => rows.push(make("dt", name), make("dd", value));
    for (const name of ["label", "split", "sequence", "path", "problem"]) if (known[name]) add(name, known[name]);
    if (known.time !== undefined) add("time", moment(known.time));
    if (known.link) add("link", this.link(known.link));
    return rows;
  }

  // Only addresses of the web become links; anything else is shown as it is written.
  link(address) {
    if (!/^https?:\/\//i.test(address)) return address;
    return make("a", address, { href: address, rel: "noopener noreferrer nofollow", target: "_blank" });
  }

  found(result, what) {
    const known = result.words && result.words.length ? `Known words: ${result.words.join(", ")}.` : "None of the words is known here.";
    const words = result.n_left_out ? `${known} This page holds only the more frequent words.` : known;
    const isText = this.chart.kind === "words";
    this.show(
      this.head(what),
      isText && result.words ? make("p", words, { class: "quiet" }) : null,
      result.items.length ? [make("h3", "Items where it would fall"), this.list(result.items)] : null,
      result.named && result.named.length ? [make("h3", result.n_named > N_LISTED ? `Found by name: the first ${N_LISTED} of ${result.n_named}` : `Found by name: ${result.n_named}`), this.list(result.named)] : null,
      !result.items.length && !(result.named || []).length ? make("p", "Nothing was found.", { class: "quiet" }) : null,
    );
  }

  problem(message) {
    this.show(this.head("That did not work"), make("p", message));
  }
}

function percent(share) {
  return `${share >= 0.1 ? Math.round(100 * share) : (100 * share).toFixed(1)}%`;
}

// Seconds since 1970 as a date; small numbers are seconds into something.
function moment(seconds) {
  if (Math.abs(seconds) < 1e7) return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
  return new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
}
