// Puts the parts together; the view is in the address, so that it can be shared.

const THEMES = ["light", "dark"];

async function main() {
  const source = await openSource();
  const chart = await source.chart();
  document.title = plain(chart.title);
  document.getElementById("title").textContent = plain(chart.title);
  const act = {};
  setTheme(null);
  const map = new MapView(document.getElementById("map"), chart, source);
  const panel = new Panel(document.getElementById("detail"), chart, source, map, act);
  const page = new Explorer(chart, source, map, panel, act);
  page.start();
  document.body.dataset.ready = "true";
  performance.mark("ready");
}

class Explorer {
  constructor(chart, source, map, panel, act) {
    Object.assign(this, { chart, source, map, panel, act });
    this.opened = null; // {item}, {cell} or {query}
    this.turn = 0; // counts what is opened, so that a late answer knows that it is late
    this.hover = document.getElementById("hover");
    this.live = document.getElementById("live");
    Object.assign(act, {
      open: (x, y, isKey) => this.openAt(x, y, isKey),
      openItem: (item, options) => this.openItem(item, options),
      hover: (x, y) => this.hoverAt(x, y),
      leave: () => (this.hover.hidden = true),
      close: () => this.close(),
      play: () => this.player.toggle(),
      say: () => this.sayMiddle(),
      changed: () => this.remember(),
      refresh: () => this.refresh(),
    });
    this.filters = new Filters(chart, map, act);
    this.player = new Player(chart, map, act);
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
      this.search(document.getElementById("query").value);
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
    this.opened = { cell };
    Object.assign(this.map, { outline: cell, marked: null, lit: null });
    this.panel.cell(cell);
    this.shown(isKey);
  }

  openItem(item, { isKey = false, isFollowing = false, isPlaying = false } = {}) {
    this.turn++;
    if (!isPlaying) this.player.stop();
    this.opened = { item };
    const { items, grid } = this.chart;
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
    const away = [row, column].map((now, axis) => shortest(now, this.map.places[item][axis], this.chart.grid[axis]));
    if (Math.abs(away[0]) * scale > height / 4 || Math.abs(away[1]) * scale > width / 4)
      this.map.moveTo({ row: row + away[0], column: column + away[1] });
  }

  // Show again what is open, with the items that are left by the filters.
  refresh() {
    if (this.opened?.cell) this.panel.cell(this.opened.cell);
    if (this.opened?.item !== undefined) this.panel.item(this.opened.item);
  }

  shown(isKey = false, isPlaying = false) {
    if (!isPlaying) this.openPanel();
    if (isKey) document.getElementById("detail").focus();
    this.map.changed();
    this.remember();
  }

  close() {
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
    Object.assign(this.map, { outline: null, marked: null, lit: null });
    document.getElementById("query").value = "";
    this.panel.overview();
  }

  search(text, isMoving = true) {
    const query = text.trim();
    if (!query) return this.close();
    return this.answered(this.source.search(query), `“${query}”`, { query }, isMoving);
  }

  locate(file) {
    this.live.textContent = "Locating";
    return this.answered(this.source.drop(file), `“${file.name || "text"}” would fall here`, null, true);
  }

  // Show an answer when it comes, unless something else has been opened since.
  async answered(question, title, opened, isMoving) {
    const turn = ++this.turn;
    try {
      const result = await question;
      if (turn === this.turn) this.light(result, title, opened, isMoving);
    } catch (error) {
      if (turn !== this.turn) return;
      this.live.textContent = "";
      this.panel.problem(error.message);
      this.openPanel();
    }
  }

  // Light the map up by a posterior, or by where the items lie that were found by name.
  light(result, title, opened, isMoving) {
    const { items, grid } = this.chart;
    let lit = result.posterior;
    if (!lit.length && result.named)
      lit = result.named.map(({ item }) => [Math.floor(items.cell[items.start[item]] / grid[1]), items.cell[items.start[item]] % grid[1], 1]);
    this.opened = opened;
    Object.assign(this.map, { lit: lit.length ? lit : null, marked: null, outline: lit.length ? lit[0].slice(0, 2) : null });
    this.panel.found(result, title);
    if (lit.length && isMoving) this.showWindow(lit[0]);
    this.live.textContent = lit.length ? `Most likely at row ${lit[0][0]}, column ${lit[0][1]}` : "Nothing was found";
    this.shown();
  }

  showWindow([row, column]) {
    const { middle } = this.map;
    this.map.moveTo({ row: row + middle[0] + 0.5, column: column + middle[1] + 0.5 });
  }

  hoverAt(x, y) {
    const { chart, map, hover } = this;
    const item = map.itemAt(x, y);
    const [row, column] = map.windowAt(x, y);
    const { cells, names } = chart;
    const first = (row * chart.grid[1] + column) * cells.n;
    const parts = [];
    if (item !== null) {
      const { label, title } = chart.items;
      parts.push(make("div", make("strong", make("bdi", title[item].slice(0, 120)))));
      if (this.panel.lead(item)) parts.push(this.panel.lead(item));
      if (label && label.values[label.which[item]]) parts.push(make("div", label.values[label.which[item]], { class: "quiet" }));
    }
    const shown = [...Array(Math.min(8, cells.n)).keys()].map((k) => cells.name[first + k]);
    if (chart.patch || chart.colours) parts.push(make("div", shown.map((name) => this.panel.swatch(name)).flatMap((node) => [node, " "])));
    else parts.push(make("div", shown.map((name) => names[name]).join(", ")));
    hover.replaceChildren(...parts);
    hover.hidden = false;
    const [width, height] = [map.canvas.clientWidth, map.canvas.clientHeight];
    hover.style.left = `${Math.min(x + 14, width - hover.offsetWidth - 6)}px`;
    hover.style.top = `${y + 18 + hover.offsetHeight > height ? y - hover.offsetHeight - 10 : y + 18}px`;
  }

  // For those who do not see the map: what is in its middle.
  sayMiddle() {
    const { clientWidth: width, clientHeight: height } = this.map.canvas;
    const [row, column] = this.map.windowAt(width / 2, height / 2);
    const { cells, names, grid } = this.chart;
    const first = (row * grid[1] + column) * cells.n;
    const told = [0, 1, 2].filter((k) => k < cells.n).map((k) => names[cells.name[first + k]]);
    this.live.textContent = plain(`Row ${row}, column ${column}: ${told.join(", ")}`);
  }

  listenToDrops() {
    if (!this.source.canDrop) return;
    const stage = document.getElementById("stage");
    const hint = document.getElementById("drop-hint");
    const file = document.getElementById("file");
    document.getElementById("drop-tool").hidden = false;
    document.getElementById("drop-label").textContent = this.chart.kind === "words" ? "Locate a text" : "Locate an image";
    file.accept = this.chart.kind === "words" ? ".txt,text/plain" : "image/*";
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

  // Write the view into the address, not more often than a browser likes; what is opened can be gone back to.
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
    const told = new URLSearchParams({ row: row.toFixed(3), column: column.toFixed(3), scale: scale.toFixed(2) });
    if (opened?.item !== undefined) told.set("item", opened.item);
    if (opened?.cell) told.set("cell", opened.cell.join(","));
    if (opened?.query) told.set("q", opened.query);
    if (filters.choices) told.set("colour", filters.colour);
    if (filters.split) told.set("split", filters.split);
    if (filters.range[0] > 0 || filters.range[1] < 1000) told.set("range", filters.range.join(","));
    for (const name of filters.hidden) told.append("hide", name);
    if (player.name !== null && player.sequences.size) {
      told.set("sequence", player.name);
      told.set("at", player.at);
    }
    if (this.theme) told.set("theme", this.theme);
    return told.toString();
  }

  // Take the view from the address; what is not there or makes no sense stays as it is.
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

  take(told) {
    const { grid, items } = this.chart;
    const number = (name) => (told.has(name) && Number.isFinite(Number(told.get(name))) ? Number(told.get(name)) : undefined);
    if (THEMES.includes(told.get("theme"))) this.setTheme(told.get("theme"));
    this.clear();
    this.filters.set({
      hidden: new Set(told.getAll("hide").filter((name) => items.label?.values.includes(name))),
      split: items.split?.values.includes(told.get("split")) ? told.get("split") : "",
      range: this.rangeOf(told.get("range")),
      ...(["", ...(this.filters.choices || [])].includes(told.get("colour")) ? { colour: told.get("colour") } : {}),
    });
    const cell = (told.get("cell") || "").split(",").map(Number);
    const item = number("item");
    if (this.player.sequences.has(told.get("sequence"))) this.player.choose(told.get("sequence"), number("at") || 0);
    if (Number.isInteger(item) && item >= 0 && item < items.n) this.openItem(item, { isPlaying: true });
    else if (cell.length === 2 && cell.every((n, axis) => Number.isInteger(n) && n >= 0 && n < grid[axis])) this.openCell(cell);
    else if (told.get("q")) {
      document.getElementById("query").value = told.get("q");
      this.search(told.get("q"), !told.has("row"));
    }
    if (told.has("row")) this.map.moveTo({ row: number("row"), column: number("column"), scale: number("scale") });
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
