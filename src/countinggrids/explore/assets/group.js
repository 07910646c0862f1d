// A region or a selection: its words, labels, times and items, and how to take them away.

const N_SHARES = 8; // labels listed

class GroupPanel {
  constructor(panel, map, filters, act) {
    Object.assign(this, { panel, map, filters, act, mapData: panel.mapData, source: panel.source });
  }

  region(id) {
    const { regions } = this.map;
    const region = regions.list[id];
    const items = regions.members(id).filter((item) => this.map.isShown[item]);
    const path = regions.path(id);
    const around = path.slice(0, -1);
    const isAll = items.length === region.n_items;
    const title = region.is_named ? region.name : `Region ${id}`;
    this.show(items, {
      title,
      note: around.length ? `in ${around.reverse().join(", in ")}` : null,
      words: isAll && this.mapData.kind === "words" ? region.words.map(([word, z]) => ({ word, z })) : null,
      representatives: isAll ? region.representatives : null,
      inside: this.inside(region),
      group: `region:${id}`,
      number: this.filters.meanOf(id),
    });
  }

  lasso(items) {
    this.show(items, { title: `Selection of ${counted(items.length, "item")}`, note: null, words: null, representatives: null, group: "selection" });
  }

  inside(region) {
    const found = this.map.regions.children(region.id).filter((child) => child.n_items && child.name !== region.name);
    if (!found.length || !region.is_named) return null;
    const chips = found.map((child) => {
      const chip = make("button", make("bdi", child.name.split(", ").slice(0, 2).join(", ")), { type: "button", class: "chip", "data-region": child.id });
      chip.addEventListener("click", () => this.act.openRegion(child.id));
      return chip;
    });
    return [make("h3", "Inside it"), make("p", chips, { class: "chips" })];
  }

  show(items, { title, note, words, representatives, inside, group, number }) {
    const { panel } = this;
    const ticket = (panel.ticket = (panel.ticket || 0) + 1);
    const size = `${counted(items.length, "item")}, ${percent(items.length / Math.max(1, this.mapData.items.n))} of all`;
    const [told, typical] = [make("div", null, { id: "group-words" }), make("div")];
    panel.show(
      panel.head(title),
      make("p", [note ? [make("bdi", note), make("br")] : null, size, number ? [make("br"), `mean ${number}`] : null].flat(), { class: "quiet" }),
      items.length ? this.actions(items, title, group) : make("p", "No item is selected: the filters leave none, or the line has none inside. Try a larger line, or All in the filters.", { class: "empty" }),
      inside,
      told,
      this.labels(items),
      this.times(items),
      typical,
      items.length ? [make("h3", items.length > N_LISTED ? `Items: the first ${N_LISTED} of ${items.length.toLocaleString("en")}` : "Items"), panel.list(items.map((item) => ({ item })))] : null,
    );
    if (!items.length) return;
    const fill = (foundWords, foundTypical) => {
      if (ticket !== panel.ticket) return;
      told.replaceChildren(...this.words(foundWords, items.length));
      if (foundTypical.length) typical.replaceChildren(make("h3", "Representative items"), panel.list(foundTypical.map((item) => ({ item }))));
    };
    if (words && representatives) return fill(words, representatives);
    told.replaceChildren(make("p", "Comparing with all other items …", { class: "quiet" }));
    this.source.selection(items).then(
      (found) => fill(found.words, representatives || found.representatives.map((each) => each.item ?? each)),
      (error) => ticket === panel.ticket && told.replaceChildren(make("p", error.message, { class: "quiet" })),
    );
  }

  words(words, nItems) {
    const what = this.mapData.kind === "words" ? "words" : "features";
    if (!words.length) return [make("p", nItems === this.mapData.items.n ? "These are all items: there is nothing to compare them with." : `No ${what} distinguish it.`, { class: "quiet" })];
    const most = Math.max(...words.map((each) => each.z), 1e-9);
    const rows = words.slice(0, 12).map(({ word, feature, z }) => {
      const bar = make("i");
      bar.style.width = `${(100 * z) / most}%`;
      return make("li", [this.panel.featureNode(word, feature), make("span", bar, { class: "bar" }), make("span", z.toFixed(1), { class: "lift" })]);
    });
    const list = make("ul", rows, { class: this.mapData.patch ? "features pictured" : "features" });
    list.title = "z-score of the log-odds against all other items";
    return [make("h3", `Distinctive ${what}, by z-score`), list];
  }

  labels(items) {
    const { label } = this.mapData.items;
    if (!label || label.values.length < 2 || !items.length) return null;
    const [here, all] = [new Uint32Array(label.values.length), new Uint32Array(label.values.length)];
    for (const which of label.which) all[which]++;
    for (const item of items) here[label.which[item]]++;
    const order = [...here.keys()].filter((which) => here[which]).sort((a, b) => here[b] - here[a] || a - b);
    const rows = order.slice(0, N_SHARES).map((which) => {
      const [bar, mark] = [make("i"), make("b")];
      bar.style.width = `${(100 * here[which]) / items.length}%`;
      bar.style.background = this.filters.color === "label" ? hue(which) : "";
      mark.style.left = `${Math.min(99, (100 * all[which]) / this.mapData.items.n)}%`;
      return make("li", [make("bdi", label.values[which] || "(none)"), make("span", [bar, mark], { class: "bar" }), make("span", percent(here[which] / items.length), { class: "lift" })]);
    });
    const list = make("ul", rows, { class: "features" });
    list.title = "bar: fraction of these items; line: fraction of all items";
    return [make("h3", order.length > N_SHARES ? `Labels: the first ${N_SHARES} of ${order.length}` : "Labels"), list];
  }

  times(items) {
    const { periods } = this.filters;
    if (!periods.isUseful || !items.length) return null;
    const has = new Uint8Array(this.mapData.items.n);
    for (const item of items) has[item] = 1;
    const counts = periods.counts((item) => has[item]);
    if (!largest(counts)) return null;
    return [make("h3", `Items by ${periods.unit}, ${periods.names[0]} to ${periods.names[periods.n - 1]}`), histogram(periods, counts, null, { height: 40, label: "These items by time" })];
  }

  actions(items, title, group) {
    const button = (text, id, use) => {
      const node = make("button", text, { type: "button", id });
      node.addEventListener("click", () => use(node));
      return node;
    };
    const rows = () => rowsOf(this.mapData, this.map.regions, this.filters, items);
    return make(
      "p",
      [
        button("Compare with the rest", "compare-rest", () => this.act.openCompare(group, "rest")),
        button("CSV", "save-csv", () => download(fileName(title, "csv"), csvOf(rows()), "text/csv")),
        button("JSON", "save-json", () => download(fileName(title, "json"), JSON.stringify(rows(), null, 1), "application/json")),
        button("Copy ids", "copy-ids", async (node) => {
          await copyText(items.join("\n"));
          node.textContent = `${counted(items.length, "id")} copied`;
          this.act.say(node.textContent);
        }),
      ],
      { class: "actions" },
    );
  }
}

// Items as rows of a table, with all that the page knows of them but their texts.
function rowsOf(mapData, regions, filters, chosen) {
  const { items } = mapData;
  return chosen.map((item) => {
    const row = { item, title: items.title[item] };
    for (const name of filters.allColumns) row[name] = filters.column(name).values[filters.column(name).which[item]];
    if (items.time) row.time = items.time[item] === null ? null : isSmall(items.time[item]) ? items.time[item] : new Date(items.time[item] * 1000).toISOString();
    for (const name of Object.keys(mapData.numbers || {})) row[name] = mapData.numbers[name][item];
    row.map_row = items.row[item];
    row.map_column = items.column[item];
    for (let level = 0; level < regions.nLevels; level++) row[`region_${level + 1}`] = regions.list[regions.of(item, level)].name;
    return row;
  });
}

// A table as CSV; texts that a spreadsheet would take for a formula begin with an apostrophe.
function csvOf(rows) {
  const names = Object.keys(rows[0]);
  const field = (value) => {
    if (value === null || value === undefined) return "";
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `\ufeff${[names, ...rows.map((row) => names.map((name) => row[name]))].map((line) => line.map(field).join(",")).join("\r\n")}\r\n`;
}

function fileName(title, ending) {
  const kept = title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60);
  return `${kept || "items"}.${ending}`;
}

function download(name, text, kind) {
  const address = URL.createObjectURL(new Blob([text], { type: `${kind};charset=utf-8` }));
  const link = make("a", null, { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", null, { class: "unseen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
