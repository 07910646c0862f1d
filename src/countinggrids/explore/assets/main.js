// The application; the state of the view is kept in the address, so that it can be shared.

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

class Explorer extends Addressed {
  constructor(mapData, source, map, panel, act) {
    super();
    Object.assign(this, { mapData, source, map, panel, act });
    this.opened = null; // {item}, {cell}, {query}, {region}, {lasso} or {compare: [a, b]}
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
      openRegion: (id) => this.openRegion(id),
      openLasso: (corners) => this.openLasso(corners),
      openCompare: (a, b) => this.openCompare(a, b),
      selection: () => this.selection(),
      selectView: () => this.openLasso(this.map.viewCorners()),
      toggleLasso: () => this.setLasso(!this.map.isLasso),
      fly: (id) => this.map.fly(id),
      contents: () => this.contents.node(),
      thumb: (item, side) => this.panel.thumb(item, side),
      say: (text) => (this.live.textContent = plain(text)),
    });
    this.filters = new Filters(mapData, map, act);
    this.contents = new Contents(map, this.filters, act);
    this.groups = new GroupPanel(panel, map, this.filters, act);
    this.comparison = new ComparePanel(panel, map, this.filters, act);
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
    click("lasso", () => this.setLasso(!this.map.isLasso));
    click("select-view", () => this.act.selectView());
    click("compare", () => this.openCompare("", "rest"));
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
    const region = isKey ? null : this.map.nameAt(x, y);
    if (region !== null) return this.openRegion(region);
    const item = this.map.itemAt(x, y);
    if (item !== null) return this.openItem(item, { isKey });
    this.openCell(this.map.windowAt(x, y), isKey);
  }

  openCell(cell, isKey = false) {
    this.turn++;
    this.trail = [];
    this.replace({ cell }, { outline: cell });
    this.panel.cell(cell);
    this.shown(isKey);
  }

  openItem(item, { isKey = false, isFollowing = false, isPlaying = false } = {}) {
    this.turn++;
    if (!isPlaying) this.player.stop();
    this.keepTrail(isPlaying);
    const { items, grid } = this.mapData;
    const kept = [];
    for (let k = items.start[item]; k < items.start[item + 1]; k++)
      kept.push([Math.floor(items.cell[k] / grid[1]), items.cell[k] % grid[1], items.posterior[k]]);
    this.replace({ item }, { outline: kept[0].slice(0, 2), marked: item, lit: kept });
    if (isFollowing) this.follow(item);
    this.panel.item(item);
    this.shown(isKey, isPlaying);
  }

  openRegion(id, { isStill = false } = {}) {
    this.turn++;
    this.keepTrail();
    this.replace({ region: id }, { spot: id });
    this.groups.region(id);
    if (!isStill) this.map.fly(id);
    this.shown();
  }

  openLasso(corners) {
    this.turn++;
    this.setLasso(false);
    this.keepTrail();
    this.lasso = corners;
    this.replace({ lasso: corners }, { lasso: corners });
    const items = itemsInside(this.map, corners);
    this.emphasize(items);
    this.groups.lasso(items);
    this.live.textContent = `${counted(items.length, "item")} selected`;
    this.shown();
  }

  openCompare(a, b) {
    this.turn++;
    if (!this.opened?.compare) this.keepTrail();
    this.replace({ compare: [a, b] }, {});
    this.comparison.open(a, b);
    this.shown();
  }

  // The items of the last lasso that are shown; null without one.
  selection() {
    return this.lasso ? itemsInside(this.map, this.lasso) : null;
  }

  setLasso(isOn) {
    this.map.isLasso = isOn;
    this.map.canvas.classList.toggle("is-lasso", isOn);
    document.getElementById("lasso").setAttribute("aria-pressed", String(isOn));
  }

  keepTrail(isPlaying = false) {
    if (this.opened && !isPlaying) this.trail.push({ opened: this.opened, view: this.map.view });
  }

  // Open something instead of what is open: marks of the one go, those of the other come.
  replace(opened, marks) {
    const wasSearch = this.opened?.query !== undefined;
    this.opened = opened;
    Object.assign(this.map, { outline: null, marked: null, lit: null, spot: null, lasso: null }, marks);
    if (this.map.emphasized && !wasSearch) this.emphasize(null);
    if (this.filters.comparison && !opened?.compare) this.endComparison();
  }

  endComparison() {
    document.getElementById("key").hidden = true;
    this.filters.set({ comparison: null });
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
    if (!this.opened) this.panel.overview();
    if (this.opened?.region !== undefined) this.groups.region(this.opened.region);
    if (this.opened?.lasso) this.groups.lasso(this.selection());
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

  reopen({ item, cell, query, region, lasso, compare }) {
    if (query && this.result) return this.found(this.result, query, false);
    const trail = this.trail;
    if (cell) this.openCell(cell);
    else if (lasso) this.openLasso(lasso);
    else if (compare) this.openCompare(...compare);
    else if (region !== undefined) this.openRegion(region, { isStill: true });
    else if (item !== undefined) this.openItem(item);
    this.trail = trail;
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
    this.lasso = null;
    this.setLasso(false);
    this.replace(null, {});
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
      this.replace(null, {});
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
    this.replace({ query }, {});
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
    const region = map.nameAt(x, y);
    map.canvas.classList.toggle("is-over", region !== null || item !== null);
    parts.push(make("div", make("bdi", region === null ? this.panel.place([row, column]) : map.regions.list[region].name), { class: "where" }));
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
    this.live.textContent = plain(`${this.panel.place([row, column])}: ${features.join(", ")}`);
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
}

function setTheme(name) {
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = THEMES.includes(name) ? name : isDark ? "dark" : "light";
}

main().catch((error) => {
  document.getElementById("detail").textContent = `The map could not be drawn: ${error.message}`;
  throw error;
});
