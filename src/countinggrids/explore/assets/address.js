// The state of the page in its address: written as it changes, read when the page opens.

const THEMES = ["light", "dark"];

class Addressed {
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
    if (opened?.region !== undefined) params.set("region", opened.region);
    if (opened?.compare) ["a", "b"].forEach((name, k) => params.set(name, opened.compare[k]));
    if (this.lasso && (opened?.lasso || opened?.compare?.includes("selection"))) params.set("lasso", lassoText(this.lasso));
    if (filters.choices) params.set("color", filters.color);
    if (filters.split) params.set("split", filters.split);
    if ((filters.range[0] > 0 || filters.range[1] < 1000) && !filters.timer) params.set("range", filters.range.join(","));
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
    else if (params.has("a")) {
      this.lasso = lassoOf(params.get("lasso"));
      this.openCompare(params.get("a"), params.get("b") || "rest");
    } else if (lassoOf(params.get("lasso"))) this.openLasso(lassoOf(params.get("lasso")));
    else if (this.mapData.regions.list[number("region")]) this.openRegion(number("region"), { isStill: params.has("row") });
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
