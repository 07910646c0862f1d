// The application; the state of the view is kept in the address, so that it can be shared.

const THEMES = ["light", "dark"];
const PAUSE = 250; // milliseconds without a key, after which one sees what was found so far

async function main() {
  const source = await openSource();
  const mapData = await source.mapData();
  document.title = plain(mapData.title);
  document.getElementById("title").textContent = plain(mapData.title);
  const act = {};
  setTheme(null);
  const map = new MapView(document.getElementById("map"), mapData, source);
  const panel = new Panel(document.getElementById("detail"), mapData, source, map, act);
  const page = new Explorer(mapData, source, map, panel, act);
  page.start();
  new Host(page);
  document.body.dataset.ready = "true";
  performance.mark("ready");
}

class Explorer {
  constructor(mapData, source, map, panel, act) {
    Object.assign(this, { mapData, source, map, panel, act });
    this.opened = null; // {item}, {cell} or {query}
    this.trail = []; // what was open before, to which Close goes back
    this.result = null; // of the last search
    this.turn = 0; // counts what is opened, so that a late response is ignored
    this.hover = document.getElementById("hover");
    this.live = document.getElementById("live");
    Object.assign(act, {
      open: (x, y, isKey) => this.openAt(x, y, isKey),
      openItem: (item, options) => this.openItem(item, options),
      hover: (x, y) => this.hoverAt(x, y),
      leave: () => (this.hover.hidden = true),
      close: () => this.close(),
      play: () => this.player.toggle(),
      announce: () => this.announceMiddle(),
      changed: () => this.remember(),
      refresh: () => this.refresh(),
      query: () => this.result?.query || "",
      light: (posterior) => this.light(posterior),
    });
    this.filters = new Filters(mapData, map, act);
    this.player = new Player(mapData, map, act);
    map.onMove = () => this.remember();
  }

  start() {
    listen(this.map, this.act);
    listenToKeys(this.map, this.act);
    const click = (id, use) => document.getElementById(id).addEventListener("click", use);
    click("zoom-in", () => this.map.zoomBy(Math.SQRT2));
    click("zoom-out", () => this.map.zoomBy(Math.SQRT1_2));
    click("zoom-whole", () => this.map.whole());
    click("theme", () => this.setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
    click("toggle-panel", () => this.togglePanel());
    document.getElementById("search").addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(this.typing);
      this.search(document.getElementById("query").value);
    });
    document.getElementById("query").addEventListener("input", (event) => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.search(event.target.value, { isTyped: true }), PAUSE);
    });
    this.listenToDrops();
    new ResizeObserver(() => this.map.moveTo({})).observe(this.map.canvas);
    addEventListener("hashchange", () => this.recall());
    this.map.whole();
    this.recall();
  }

  openAt(x, y, isKey = false) {
    const item = this.map.itemAt(x, y);
    if (item !== null) return this.openItem(item, { isKey });
    this.openCell(this.map.windowAt(x, y), isKey);
  }

  openCell(cell, isKey = false) {
    this.turn++;
    this.trail = [];
    this.opened = { cell };
    Object.assign(this.map, { outline: cell, marked: null, lit: null });
    this.panel.cell(cell);
    this.shown(isKey);
  }

  openItem(item, { isKey = false, isFollowing = false, isPlaying = false } = {}) {
    this.turn++;
    if (!isPlaying) this.player.stop();
    if (this.opened && !isPlaying) this.trail.push({ opened: this.opened, view: this.map.view });
    this.opened = { item };
    const { items, grid } = this.mapData;
    const kept = [];
    for (let k = items.start[item]; k < items.start[item + 1]; k++)
      kept.push([Math.floor(items.cell[k] / grid[1]), items.cell[k] % grid[1], items.posterior[k]]);
    Object.assign(this.map, { outline: kept[0].slice(0, 2), marked: item, lit: kept });
    if (isFollowing) this.follow(item);
    this.panel.item(item);
    this.shown(isKey, isPlaying);
  }

  // Bring an item into the middle half of the view if it has left it.
  follow(item) {
    const { row, column, scale } = this.map.view;
    const { clientWidth: width, clientHeight: height } = this.map.canvas;
    const away = [row, column].map((now, axis) => shortest(now, this.map.places[item][axis], this.mapData.grid[axis]));
    if (Math.abs(away[0]) * scale > height / 4 || Math.abs(away[1]) * scale > width / 4)
      this.map.moveTo({ row: row + away[0], column: column + away[1] });
  }

  // Show again what is open, with the items that are left by the filters.
  refresh() {
    if (this.opened?.cell) this.panel.cell(this.opened.cell);
    if (this.opened?.item !== undefined) this.panel.item(this.opened.item);
    if (this.opened?.query && this.result) this.panel.found(this.result, `“${this.opened.query}”`);
  }

  shown(isKey = false, isPlaying = false) {
    if (!isPlaying) this.openPanel();
    if (isKey) document.getElementById("detail").focus();
    this.map.changed();
    this.remember();
  }

  // Go back to what was open before, where the map was then; in the end to the overview.
  close() {
    const last = this.trail.pop();
    if (!last) return this.closeAll();
    this.opened = null;
    this.reopen(last.opened);
    this.map.moveTo(last.view);
  }

  reopen({ item, cell, query }) {
    if (query && this.result) return this.found(this.result, query, false);
    if (cell) return this.openCell(cell);
    if (item !== undefined) this.openItem(item);
  }

  closeAll() {
    const wasInside = document.getElementById("detail").contains(document.activeElement);
    this.clear();
    if (wasInside) this.map.canvas.focus();
    this.map.changed();
    this.remember();
  }

  clear() {
    this.turn++;
    this.opened = null;
    if (this.player.name !== null) this.player.choose("");
    this.trail = [];
    this.result = null;
    Object.assign(this.map, { outline: null, marked: null, lit: null });
    this.emphasize(null);
    document.getElementById("query").value = "";
    this.panel.overview();
  }

  // While one types, the last word may go on.
  search(text, { isTyped = false } = {}) {
    const query = text.trim();
    this.trail = [];
    if (!query) return this.closeAll();
    const sent = isTyped && /[^\s"*]$/.test(text) && !/"[^"]*$/.test(text) ? `${query}*` : query;
    return this.answered(this.source.search(sent), (result) => this.found(result, query, isTyped));
  }

  locate(file) {
    this.live.textContent = "Locating";
    return this.answered(this.source.drop(file), (result) => {
      this.opened = null;
      this.panel.located(result, `Most likely place of “${file.name || "text"}”`);
      this.light(result.posterior);
      this.shown();
    });
  }

  // Show a response when it arrives, unless something else has been opened since.
  async answered(question, show) {
    const turn = ++this.turn;
    try {
      const result = await question;
      if (turn === this.turn) show(result);
    } catch (error) {
      if (turn !== this.turn) return;
      this.live.textContent = "";
      this.panel.problem(error.message);
      this.openPanel();
    }
  }

  // Emphasize the items that contain a query.
  found(result, query, isTyped) {
    this.result = result;
    this.opened = { query };
    Object.assign(this.map, { lit: null, marked: null, outline: null });
    this.panel.found(result, `“${query}”`);
    this.emphasize(result.all.length ? result.all : null);
    this.live.textContent = document.getElementById("sentence").textContent;
    this.shown(false, isTyped);
  }

  // Draw some items stronger than the others; null draws all alike.
  emphasize(items) {
    this.map.emphasized = items && new Set(items);
    this.map.forget();
  }

  // Show a posterior on the map, and go there.
  light(posterior) {
    Object.assign(this.map, { lit: posterior, marked: null, outline: posterior[0].slice(0, 2) });
    this.live.textContent = plain(this.panel.place(posterior[0]));
    this.showWindow(posterior[0]);
  }

  showWindow([row, column]) {
    const { middle } = this.map;
    this.map.moveTo({ row: row + middle[0] + 0.5, column: column + middle[1] + 0.5 });
  }

  hoverAt(x, y) {
    const { mapData, map, hover } = this;
    const item = map.itemAt(x, y);
    const [row, column] = map.windowAt(x, y);
    const { cells, names } = mapData;
    const first = (row * mapData.grid[1] + column) * cells.n;
    const parts = [];
    if (item !== null) {
      const { label, title } = mapData.items;
      parts.push(make("div", make("strong", make("bdi", title[item].slice(0, 120)))));
      if (this.panel.lead(item)) parts.push(this.panel.lead(item));
      if (label && label.values[label.which[item]]) parts.push(make("div", label.values[label.which[item]], { class: "quiet" }));
    }
    const shown = [...Array(Math.min(8, cells.n)).keys()].map((k) => cells.name[first + k]);
    if (mapData.patch || mapData.colors) parts.push(make("div", shown.map((name) => this.panel.swatch(name)).flatMap((node) => [node, " "])));
    else parts.push(make("div", shown.map((name) => names[name]).join(", ")));
    hover.replaceChildren(...parts);
    hover.hidden = false;
    const [width, height] = [map.canvas.clientWidth, map.canvas.clientHeight];
    hover.style.left = `${Math.min(x + 14, width - hover.offsetWidth - 6)}px`;
    hover.style.top = `${y + 18 + hover.offsetHeight > height ? y - hover.offsetHeight - 10 : y + 18}px`;
  }

  // For screen readers: the features in the middle of the view.
  announceMiddle() {
    const { clientWidth: width, clientHeight: height } = this.map.canvas;
    const [row, column] = this.map.windowAt(width / 2, height / 2);
    const { cells, names, grid } = this.mapData;
    const first = (row * grid[1] + column) * cells.n;
    const features = [0, 1, 2].filter((k) => k < cells.n).map((k) => names[cells.name[first + k]]);
    this.live.textContent = plain(`Row ${row}, column ${column}: ${features.join(", ")}`);
  }

  listenToDrops() {
    if (!this.source.canDrop) return;
    const stage = document.getElementById("stage");
    const hint = document.getElementById("drop-hint");
    const file = document.getElementById("file");
    document.getElementById("drop-tool").hidden = false;
    document.getElementById("drop-label").textContent = this.mapData.kind === "words" ? "Locate a text" : "Locate an image";
    file.accept = this.mapData.kind === "words" ? ".txt,text/plain" : "image/*";
    file.addEventListener("change", () => {
      if (file.files.length) this.locate(file.files[0]);
      file.value = "";
    });
    addEventListener("dragover", (event) => {
      event.preventDefault();
      hint.hidden = false;
    });
    addEventListener("dragleave", (event) => {
      if (event.relatedTarget === null) hint.hidden = true;
    });
    addEventListener("drop", (event) => {
      event.preventDefault();
      hint.hidden = true;
      const { files } = event.dataTransfer;
      const text = event.dataTransfer.getData("text/plain");
      if (files.length) this.locate(files[0]);
      else if (text) this.locate(new File([text], "text", { type: "text/plain" }));
    });
    stage.append(hint);
  }

  openPanel() {
    document.getElementById("panel").classList.remove("is-closed");
    document.getElementById("toggle-panel").setAttribute("aria-expanded", "true");
  }

  togglePanel() {
    const isClosed = document.getElementById("panel").classList.toggle("is-closed");
    document.getElementById("toggle-panel").setAttribute("aria-expanded", String(!isClosed));
  }

  setTheme(name) {
    this.theme = name;
    setTheme(name);
    this.map.restyle();
    this.remember();
  }

  // Write the view into the address, rate-limited as browsers ask; opening something adds to the history.
  remember() {
    if (this.isRecalling || this.isRemembering) return;
    this.isRemembering = true;
    setTimeout(() => {
      this.isRemembering = false;
      this.written = `#${this.address()}`;
      const opened = JSON.stringify(this.opened);
      const isNew = opened !== this.last && !this.player.timer;
      this.last = opened;
      try {
        history[isNew ? "pushState" : "replaceState"](null, "", this.written);
      } catch {
        // A page inside a notebook has no address of its own.
      }
    }, 150);
  }

  address() {
    const { row, column, scale } = this.map.view;
    const { filters, player, opened } = this;
    const params = new URLSearchParams({ row: row.toFixed(3), column: column.toFixed(3), scale: scale.toFixed(2) });
    if (opened?.item !== undefined) params.set("item", opened.item);
    if (opened?.cell) params.set("cell", opened.cell.join(","));
    if (opened?.query) params.set("q", opened.query);
    if (filters.choices) params.set("color", filters.color);
    if (filters.split) params.set("split", filters.split);
    if (filters.range[0] > 0 || filters.range[1] < 1000) params.set("range", filters.range.join(","));
    for (const name of filters.hidden) params.append("hide", name);
    if (player.name !== null && player.sequences.size) {
      params.set("sequence", player.name);
      params.set("at", player.at);
    }
    if (this.theme) params.set("theme", this.theme);
    return params.toString();
  }

  // Restore the view from the address; missing or invalid parts keep their values.
  recall() {
    if (location.hash === this.written && this.written) return;
    this.isRecalling = true;
    try {
      this.take(new URLSearchParams(location.hash.slice(1)));
    } finally {
      this.isRecalling = false;
    }
    this.last = JSON.stringify(this.opened);
  }

  take(params) {
    const { grid, items } = this.mapData;
    const number = (name) => (params.has(name) && Number.isFinite(Number(params.get(name))) ? Number(params.get(name)) : undefined);
    if (THEMES.includes(params.get("theme"))) this.setTheme(params.get("theme"));
    this.clear();
    this.filters.set({
      hidden: new Set(params.getAll("hide").filter((name) => items.label?.values.includes(name))),
      split: items.split?.values.includes(params.get("split")) ? params.get("split") : "",
      range: this.rangeOf(params.get("range")),
      ...(["", ...(this.filters.choices || [])].includes(params.get("color")) ? { color: params.get("color") } : {}),
    });
    const cell = (params.get("cell") || "").split(",").map(Number);
    const item = number("item");
    if (this.player.sequences.has(params.get("sequence"))) this.player.choose(params.get("sequence"), number("at") || 0);
    if (Number.isInteger(item) && item >= 0 && item < items.n) this.openItem(item, { isPlaying: true });
    else if (cell.length === 2 && cell.every((n, axis) => Number.isInteger(n) && n >= 0 && n < grid[axis])) this.openCell(cell);
    else if (params.get("q")) {
      document.getElementById("query").value = params.get("q");
      this.search(params.get("q"));
    }
    if (params.has("row")) this.map.moveTo({ row: number("row"), column: number("column"), scale: number("scale") });
  }

  rangeOf(text) {
    const range = (text || "").split(",").map(Number);
    const isRange = this.filters.span && range.length === 2 && range.every((n) => n >= 0 && n <= 1000) && range[0] <= range[1];
    return isRange ? range : [0, 1000];
  }
}

function setTheme(name) {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = THEMES.includes(name) ? name : isDark ? "dark" : "light";
}

main().catch((error) => {
  document.getElementById("detail").textContent = `The map could not be drawn: ${error.message}`;
  throw error;
});
