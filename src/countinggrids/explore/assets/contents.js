// The table of contents: regions inside regions, with counts and trends; a click goes there.

const N_IN_KEY = 6; // regions listed for the words of an item

class Contents {
  constructor(map, filters, act) {
    Object.assign(this, { map, filters, act });
    this.opened = new Set();
  }

  node() {
    const { regions } = this.map;
    const counts = regions.counts(this.map.isShown);
    const trends = this.filters.periods?.isUseful ? trendsOf(regions, this.filters.periods, this.filters.isCounted) : null;
    const list = this.list(regions.byLevel[0], counts, trends, largest(counts));
    list.id = "contents";
    return [make("h2", "Contents"), list, trends ? make("p", `Lines: fraction of the items by ${this.filters.periods.unit}. ▲ rises, ▼ falls (|z| above ${RISES_FROM}).`, { class: "quiet small" }) : null];
  }

  list(members, counts, trends, most) {
    const rows = members.filter((region) => region.n_items).map((region) => this.row(region, counts, trends, most));
    return make("ul", rows, { class: "contents" });
  }

  row(region, counts, trends, most) {
    const { regions } = this.map;
    const inside = regions.children(region.id).filter((child) => child.n_items);
    const hasInside = inside.length > 1 || inside.some((child) => child.name !== region.name);
    const item = make("li");
    const toggle = make("button", null, { type: "button", class: "toggle", "aria-label": plain(`Regions inside ${region.name}`), "aria-expanded": String(this.opened.has(region.id)) });
    toggle.disabled = !hasInside;
    toggle.addEventListener("click", () => {
      if (!this.opened.delete(region.id)) this.opened.add(region.id);
      toggle.setAttribute("aria-expanded", String(this.opened.has(region.id)));
      item.querySelector("ul")?.remove();
      if (this.opened.has(region.id)) item.append(this.list(inside, counts, trends, most));
    });
    item.append(make("div", [toggle, this.goTo(region, counts, trends)], { class: "line" }));
    if (this.opened.has(region.id) && hasInside) item.append(this.list(inside, counts, trends, most));
    return item;
  }

  goTo(region, counts, trends) {
    const { map, filters } = this;
    const [first, ...others] = region.name.split(", ");
    const swatch = make("span", null, { class: "swatch" });
    const color = map.tint?.(map.regions.above(region.id, Math.min(region.level, map.tintLevel)));
    swatch.style.background = filters.color === "region" ? regionColor(map, region.id) : color ? css(color) : "transparent";
    swatch.hidden = !(filters.color === "region" || color);
    const name = make("span", [make("bdi", first), others.length ? make("bdi", ` ${others.join(", ")}`, { class: "quiet" }) : null], { class: "name" });
    const button = make("button", [swatch, name], { type: "button", class: "go", "data-region": region.id });
    if (!region.is_named && map.mapData.sheets && region.representatives.length) name.replaceChildren(...region.representatives.slice(0, 4).map((each) => this.act.thumb(each, 34)));
    if (trends) {
      const z = trends.z[region.id];
      if (Math.abs(z) > RISES_FROM) button.append(make("span", z > 0 ? "▲" : "▼", { class: z > 0 ? "rises" : "falls", role: "img", "aria-label": z > 0 ? "rises" : "falls" }));
      button.append(trendLine(trends.counts[region.id], trends.totals));
    }
    const mean = filters.meanOf(region.id);
    button.append(make("span", mean ?? counts[region.id].toLocaleString("en"), { class: "n" }));
    if (!region.is_named) button.setAttribute("aria-label", plain(`${region.name}, ${counted(counts[region.id], "item")}`));
    button.addEventListener("click", () => this.act.openRegion(region.id));
    const light = (id) => () => map.highlight(id);
    for (const [event, id] of [["mouseenter", region.id], ["focus", region.id], ["mouseleave", null], ["blur", null]]) button.addEventListener(event, light(id));
    return button;
  }
}


function regionColor(map, id) {
  return css(oklch(map.isDark ? 0.74 : 0.58, 0.11, map.regions.hues[id]));
}

// Which color is which region, for the words of an item: the regions with most of its words first.
function regionKey(map, wordRegions, act) {
  const { regions } = map;
  const counts = new Map();
  for (const finest of wordRegions.values()) {
    const id = regions.above(finest, Math.min(1, regions.nLevels - 1));
    counts.set(id, (counts.get(id) || 0) + 1);
  }
  const largest = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, N_IN_KEY);
  const chips = largest.map(([id, n]) => {
    const dot = make("span", null, { class: "swatch" });
    dot.style.background = regionColor(map, id);
    const chip = make("button", [dot, " ", make("bdi", regions.list[id].name.split(", ").slice(0, 2).join(", ")), ` ${n}`], { type: "button", class: "chip" });
    chip.addEventListener("click", () => act.openRegion(id));
    return chip;
  });
  const note = "Words have the color of the region where the model puts them; the numbers count them.";
  return [make("p", note, { class: "quiet small" }), make("div", chips, { class: "chips", role: "group", "aria-label": "Regions of the words" })];
}
