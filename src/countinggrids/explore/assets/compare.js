// The comparison of two groups: words that each uses more, and the map colored by region.

const N_SHOWN = 15; // words on each side
const MOST_CHOICES = 80; // values of a column that are offered as groups

class ComparePanel {
  constructor(panel, map, filters, act) {
    Object.assign(this, { panel, map, filters, act, mapData: panel.mapData, source: panel.source });
  }

  // The groups that can be compared: {group: title}, in sections.
  choices() {
    const { filters, map } = this;
    const sections = [];
    for (const name of filters.allColumns) {
      const { values } = filters.column(name);
      if (values.length <= MOST_CHOICES) sections.push([name, values.filter(Boolean).map((value) => [`${name}:${value}`, value])]);
    }
    const { periods } = filters;
    if (periods.isUseful) sections.push(["time", this.periodChoices(periods)]);
    sections.push(["region", map.regions.byLevel[0].filter((region) => region.n_items).map((region) => [`region:${region.id}`, region.name])]);
    if (this.act.selection()) sections.push(["selection", [["selection", `the selection, ${counted(this.act.selection().length, "item")}`]]]);
    return sections;
  }

  // Halves and single periods; groups are by seconds.
  periodChoices(periods) {
    const name = (from, to) => `time:${periods.edges[from]}..${periods.edges[to]}`;
    const half = this.medianEdge(periods);
    const halves = half > 0 && half < periods.n ? [[name(0, half), `before ${periods.names[half]}`], [name(half, periods.n), `from ${periods.names[half]} on`]] : [];
    return [...halves, ...periods.names.map((title, k) => [name(k, k + 1), title])];
  }

  medianEdge(periods) {
    const counts = periods.counts(() => true);
    const total = counts.reduce((a, b) => a + b, 0);
    let [sum, k] = [0, 0];
    while (k < periods.n && sum + counts[k] / 2 < total / 2) sum += counts[k++];
    return k;
  }

  // The items of a group; all but those of the other one for "rest", null for a group that does not exist.
  itemsOf(group) {
    const { regions } = this.map;
    const at = group.indexOf(":");
    const [kind, value] = at < 0 ? [group, ""] : [group.slice(0, at), group.slice(at + 1)];
    const all = [...Array(this.mapData.items.n).keys()];
    if (kind === "selection") return this.act.selection();
    if (kind === "region") return regions.list[Number(value)] && /^\d+$/.test(value) ? regions.members(Number(value)) : null;
    if (kind === "time") {
      const [from, to] = value.split("..").map((text) => (text === "" ? NaN : Number(text)));
      const { time } = this.mapData.items;
      return time ? all.filter((item) => time[item] !== null && !(time[item] < from) && !(time[item] >= to)) : null;
    }
    const column = this.filters.allColumns.includes(kind) ? this.filters.column(kind) : null;
    if (!column) return null;
    const which = column.values.indexOf(value);
    return which < 0 ? null : all.filter((item) => column.which[item] === which);
  }

  titleOf(group) {
    if (group === "rest") return "all other items";
    for (const [, members] of this.choices()) for (const [name, title] of members) if (name === group) return title;
    if (group.startsWith("region:")) return this.map.regions.list[Number(group.slice(7))]?.name ?? group;
    return group;
  }

  // Two choices and, once both are there, what distinguishes them.
  open(a, b) {
    const body = make("div", null, { id: "comparison" });
    const choose = (id, label, chosen, hasRest) => {
      const select = make("select", null, { id });
      if (hasRest) select.append(make("option", "all other items", { value: "rest" }));
      else select.append(make("option", "choose a group", { value: "" }));
      const known = new Set(["", "rest"]);
      for (const [name, members] of this.choices()) {
        select.append(make("optgroup", members.map(([value, title]) => (known.add(value), make("option", title, { value }))), { label: name }));
      }
      if (!known.has(chosen)) select.append(make("option", this.titleOf(chosen), { value: chosen }));
      select.value = chosen;
      return make("p", [make("label", label, { for: id }), select], { class: "row" });
    };
    const rows = [choose("group-a", "A", a, false), choose("group-b", "B", b, true)];
    rows.forEach((row) => row.querySelector("select").addEventListener("change", () => this.act.openCompare(document.getElementById("group-a").value, document.getElementById("group-b").value)));
    this.panel.show(this.panel.head("Compare"), make("p", "Which words and which regions does A have more of than B?", { class: "quiet" }), rows, body);
    if (a) this.run(a, b, body);
  }

  async run(a, b, body) {
    const ticket = (this.panel.ticket = (this.panel.ticket || 0) + 1);
    const inA = this.itemsOf(a);
    const inB = b === "rest" ? null : this.itemsOf(b);
    const problem = this.problem(a, b, inA, inB);
    const say = (text) => body.replaceChildren(make("p", text, { class: "empty", role: "status" }));
    if (problem) return say(problem);
    body.replaceChildren(make("p", "Comparing …", { class: "quiet" }));
    try {
      const found = await this.source.compare(inA, inB);
      if (ticket !== this.panel.ticket) return;
      body.replaceChildren(...this.result(found, a, b));
      this.color(found, inA, inB, a, b);
      this.act.say(body.querySelector("p").textContent);
    } catch (error) {
      if (ticket === this.panel.ticket) say(error.message);
    }
  }

  problem(a, b, inA, inB) {
    if (inA === null) return `A, “${a}”, is not in this collection; choose another group.`;
    if (inB === null && b !== "rest") return `B, “${b}”, is not in this collection; choose another group.`;
    if (!inA.length) return "A has no items; choose another group.";
    if (inB && !inB.length) return "B has no items; choose another group.";
    if (!inB && inA.length === this.mapData.items.n) return "A has all items, so that none are left to compare with; choose B.";
    const inside = new Set(inA);
    const nBoth = inB ? inB.filter((item) => inside.has(item)).length : 0;
    return nBoth ? `A and B share ${counted(nBoth, "item")}, and must not overlap; choose other groups.` : "";
  }

  result(found, a, b) {
    const what = this.mapData.kind === "words" ? "words" : "features";
    const few = Math.min(found.n_a, found.n_b) < 5 ? ` With so few items hardly anything can be significant.` : "";
    const left = found.n_left_out ? ` ${found.n_left_out} very frequent ${what} are not in this file.` : "";
    const nRegions = found.regions.filter((row) => row.is_significant).length;
    return [
      make("p", `A has ${counted(found.n_a, "item")}, B ${found.n_b.toLocaleString("en")}. ${counted(found.n_significant, what.slice(0, -1))} and ${counted(nRegions, "region")} differ significantly (●), at a family-wise error of 5%.${few}${left}`, { class: "quiet" }),
      make("h3", [make("span", null, { class: "swatch a" }), ` More in A: ${this.titleOf(a)}`]),
      this.words(found.over, "a"),
      make("h3", [make("span", null, { class: "swatch b" }), ` More in B: ${this.titleOf(b)}`]),
      this.words(found.under, "b"),
      make("h3", "Regions"),
      this.regions(found.regions),
      make("p", "Numbers are z-scores of log-odds with an informative Dirichlet prior. For p-values each is divided by how much it varies under random groups of the same sizes, because items repeat their own words, and compared with the largest under such groups: so a word that a few items repeat may have a large z-score and not be significant.", { class: "quiet small" }),
    ];
  }

  words(rows, side) {
    if (!rows.length) return make("p", "None.", { class: "quiet" });
    const most = Math.max(...rows.map((row) => Math.abs(row.z)), 1e-9);
    const nodes = rows.slice(0, N_SHOWN).map((row) => {
      const bar = make("i", null, { class: side });
      bar.style.width = `${(100 * Math.abs(row.z)) / most}%`;
      const number = `${row.z.toFixed(1)}${row.is_significant ? " ●" : ""}`;
      const note = `log-odds ${row.log_odds.toFixed(2)}, counts ${row.count_a} and ${row.count_b}, p = ${row.p_value === null ? "unknown" : row.p_value.toFixed(3)}`;
      return make("li", [this.panel.featureNode(row.word, row.feature), make("span", bar, { class: "bar" }), make("span", number, { class: "lift" })], { title: note, class: row.is_significant ? "" : "weak" });
    });
    return make("ul", nodes, { class: `features ${this.mapData.patch ? "pictured" : ""}` });
  }

  regions(rows) {
    const level = Math.min(1, this.map.regions.nLevels - 1);
    const shown = rows.filter((row) => row.level === level && row.n_a + row.n_b).sort((x, y) => y.z - x.z);
    const nodes = shown.map((row) => {
      const dot = make("span", null, { class: "swatch" });
      dot.style.background = css(diverging(strength(row), this.map.isDark));
      const button = make("button", [dot, make("span", make("bdi", row.name), { class: "name" }), make("span", `${row.n_a} : ${row.n_b}`, { class: "quiet" }), make("span", `${row.z.toFixed(1)}${row.is_significant ? " ●" : ""}`, { class: "n" })], { type: "button", class: "go", title: `items of A and of B; p = ${row.p_value === null ? "unknown" : row.p_value.toFixed(3)}` });
      button.addEventListener("click", () => this.act.fly(row.id));
      return make("li", make("div", button, { class: "line" }));
    });
    return make("ul", nodes, { class: "contents" });
  }

  // Color the land by the log-odds of regions, and the items by their group.
  color(found, inA, inB, a, b) {
    const { map } = this;
    const group = new Uint8Array(this.mapData.items.n).fill(inB ? 0 : 2);
    for (const item of inB || []) group[item] = 2;
    for (const item of inA) group[item] = 1;
    const byId = new Map(found.regions.map((row) => [row.id, row]));
    this.filters.set({
      comparison: {
        colorOf: (item) => css(group[item] ? oklch(map.isDark ? 0.75 : 0.55, 0.15, group[item] === 1 ? 50 : 250) : oklch(0.7, 0.01, 90)),
        tint: (id) => diverging(strength(byId.get(id)), map.isDark),
      },
    });
    this.key(this.titleOf(a), this.titleOf(b));
  }

  // What the colors of the land mean, on the map.
  key(a, b) {
    const steps = [...Array(9).keys()].map((k) => {
      const part = make("i");
      part.style.background = css(diverging((k - 4) / 4, this.map.isDark));
      return part;
    });
    const node = document.getElementById("key");
    node.replaceChildren(make("span", ["more ", make("bdi", b)]), make("span", steps, { class: "ramp" }), make("span", ["more ", make("bdi", a)]), make("span", "log-odds by region; pale where not significant", { class: "quiet small" }));
    node.hidden = false;
  }
}

// How strongly a region is colored: by its log-odds, and faintly where they are not significant.
function strength(row) {
  return (Math.sign(row.log_odds) * Math.min(1, Math.abs(row.log_odds) / 2.5 + 0.15)) * (row.is_significant ? 1 : 0.3);
}
