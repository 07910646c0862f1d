// The data of the page: from a server, or from the page itself if it was exported.

const N_FOUND = 60;
const [N_WORDS, N_COMPARED, N_TYPICAL, LEAST_Z] = [16, 40, 8, 1e-9]; // as in groups.py

class Source {
  // The patches of all features, side by side.
  get patches() {
    this._patches ||= Object.assign(new Image(), { src: this.image("patches.png") });
    return this._patches;
  }
}

class Served extends Source {
  async mapData() {
    this.map = await this.json("map.json");
    this.canDrop = this.map.can_drop;
    return this.map;
  }

  async json(address, options) {
    const answer = await fetch(address, options);
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    return found;
  }

  image(name) {
    return name;
  }

  full(item) {
    return `item/${item}.jpg`;
  }

  async known(item) {
    return (await this.item(item)).known;
  }

  // The finest region of each word of an item, where the model has a place for each.
  async wordRegions(item) {
    const { word_places: places } = await this.item(item);
    const finest = this.map.regions.levels[this.map.regions.levels.length - 1];
    return new Map(Object.entries(places || {}).map(([word, [row, column]]) => [word, finest[row * this.map.grid[1] + column]]));
  }

  // The view of an item; the last one is kept.
  item(item) {
    if (this._item?.number !== item) this._item = { number: item, view: this.json(`item/${item}.json`) };
    return this._item.view;
  }

  search(query) {
    return this.json(`search.json?all=1&q=${encodeURIComponent(query)}`);
  }

  // The part of each text where a query is found, by item.
  async snippets(query, items) {
    if (!items.length) return {};
    return (await this.json(`snippets.json?q=${encodeURIComponent(query)}&items=${items.join(",")}`)).snippets;
  }

  // What distinguishes some items, or two groups; null for all others.
  selection(items) {
    return this.post("selection.json", { items });
  }

  compare(a, b) {
    return this.post("compare.json", { a, b });
  }

  post(address, content) {
    return this.json(address, { method: "POST", body: JSON.stringify(content), headers: { "content-type": "application/json" } });
  }

  drop(file) {
    const kind = file.type.startsWith("image/") ? file.type : "text/plain";
    return this.json("locate.json", { method: "POST", body: file, headers: { "content-type": kind } });
  }
}

class Embedded extends Source {
  constructor(pack, images) {
    super();
    this.pack = pack;
    this.images = images;
    this.canDrop = false;
  }

  async mapData() {
    return this.pack.map;
  }

  image(name) {
    const kind = name.endsWith(".png") ? "png" : "jpeg";
    return `data:image/${kind};base64,${this.images[name]}`;
  }

  full() {
    return null;
  }

  async known(item) {
    const { map: mapData, known } = this.pack;
    const found = {};
    for (const name of Object.keys(known)) if (known[name][item] !== "") found[name] = known[name][item];
    for (const name of ["label", "split", "sequence"]) {
      const column = mapData.items[name];
      if (column && column.values[column.which[item]] !== "") found[name] = column.values[column.which[item]];
    }
    if (mapData.items.time && mapData.items.time[item] !== null) found.time = mapData.items.time[item];
    return found;
  }

  async wordRegions(item) {
    if (!this.images["word_regions.bin"]) return new Map();
    const table = await this.countTable();
    this._regions ||= numbersOf(await unzipped(bytes(this.images["word_regions.bin"])), table.items.length);
    const first = this.pack.map.regions.list.find(({ level }) => level === this.pack.map.regions.levels.length - 1).id;
    return new Map([...entriesOf(table, item)].map(([i, k]) => [table.terms[i], first + this._regions[k]]));
  }

  async search(query) {
    const index = await this.textIndex();
    const { items: all, nWithAll } = index.find(query);
    const found = { query, all, n_found: all.length, n_with_all: nWithAll, posterior: [], items: [], n_left_out: this.pack.search.n_left_out };
    if (!this.pack.word_index) return found;
    const tokens = tokensOf(positiveText(query), this.pack.word_index, (word) => this.numbers.has(word));
    found.words = [...new Set(tokens)];
    if (!tokens.length) return found;
    const q = this.posterior(tokens);
    const { rows, columns } = this.pack.word_index;
    const order = [...q.keys()].sort((a, b) => q[b] - q[a]).slice(0, 400).filter((k) => q[k] > 1e-4);
    found.posterior = order.map((k) => [rows[Math.floor(k / columns.length)], columns[k % columns.length], q[k]]);
    found.items = this.nearby(q);
    return found;
  }

  async snippets(query, items) {
    const texts = this.pack.known.text;
    return texts ? Object.fromEntries(items.map((item) => [item, snippetOf(texts[item], query)])) : {};
  }

  // The counts of features by item.
  async countTable() {
    if (!this.pack.counts) throw new Error("This file does not hold the counts of features; countinggrids browse shows the map with all of them.");
    this._counts ||= readPostings(await unzipped(bytes(this.images["counts.bin"])));
    return this._counts;
  }

  async selection(items) {
    const table = await this.countTable();
    const groups = new Uint8Array(table.n).fill(2);
    for (const item of items) groups[item] = 1;
    const test = new GroupTest(table, groups);
    const top = [...test.z.keys()].sort((a, b) => test.z[b] - test.z[a] || a - b).slice(0, N_WORDS).filter((i) => test.z[i] > 0);
    const words = top.map((i) => ({ word: table.terms[i], feature: this.pack.counts.features[i], z: test.z[i], log_odds: test.odds[i], count: test.inA[i] }));
    return { n_items: items.length, words, representatives: typicalItems(table, items, top, test.z) };
  }

  async compare(inA, inB) {
    const table = await this.countTable();
    const groups = new Uint8Array(table.n).fill(inB ? 0 : 2);
    for (const item of inB || []) groups[item] = 2;
    for (const item of inA) groups[item] = 1;
    const regions = new Regions(this.pack.map);
    const edges = [0];
    for (const members of regions.byLevel) edges.push(edges[edges.length - 1] + members.length);
    const tests = [new GroupTest(table, groups), new GroupTest(regionTable(regions), groups, edges, LEAST_PRIOR)];
    const draws = [...randomGroups(groups, N_PERMUTATIONS)];
    const p = [await tests[0].pValues(draws), await tests[1].pValues(draws)];
    const row = (k, i) => ({ log_odds: tests[k].odds[i], z: tests[k].z[i], p_value: p[k][i], is_significant: p[k][i] <= 0.05 });
    const word = (i) => ({ word: table.terms[i], feature: this.pack.counts.features[i], count_a: tests[0].inA[i], count_b: tests[0].inB[i], ...row(0, i) });
    const order = [...tests[0].z.keys()].sort((a, b) => tests[0].z[b] - tests[0].z[a] || a - b);
    return {
      n_a: inA.length,
      n_b: inB ? inB.length : table.n - inA.length,
      n_left_out: this.pack.counts.n_left_out,
      n_significant: p[0].filter((value) => value <= 0.05).length,
      over: order.slice(0, N_COMPARED).map(word).filter((each) => each.z > LEAST_Z),
      under: order.slice(-N_COMPARED).reverse().map(word).filter((each) => each.z < -LEAST_Z),
      regions: regions.list.map(({ id, level, name }) => ({ id, level, name, n_a: tests[1].inA[id], n_b: tests[1].inB[id], ...row(1, id) })),
    };
  }

  async textIndex() {
    this._index ||= new TextIndex(await unzipped(bytes(this.images["search.bin"])), (item) => this.document(item));
    return this._index;
  }

  // All that is searched of an item, or null if the page does not hold it in full.
  document(item) {
    const { map: mapData, known } = this.pack;
    if (known.text ? known.text[item].endsWith(" …") : mapData.kind === "words") return null;
    const label = mapData.items.label ? mapData.items.label.values[mapData.items.label.which[item]] : "";
    return [mapData.items.title[item], label, known.path?.[item], known.text?.[item]].join("\n");
  }

  get numbers() {
    this._numbers ||= new Map(this.pack.word_index.names.map((name, i) => [name, i]));
    return this._numbers;
  }

  posterior(tokens) {
    const { step, log_prior: prior } = this.pack.word_index;
    this._levels ||= bytes(this.pack.word_index.levels);
    const score = Float64Array.from(prior);
    for (const token of tokens) {
      const first = this.numbers.get(token) * prior.length;
      for (let k = 0; k < prior.length; k++) score[k] += step * (this._levels[first + k] - 128);
    }
    const top = largest(score);
    const q = score.map((value) => Math.exp(value - top));
    const total = q.reduce((a, b) => a + b, 0);
    return q.map((value) => value / total);
  }

  // Items by the overlap of their posterior with that of the query; a lattice point stands for the cells around it.
  nearby(q) {
    const { map: mapData, word_index: wordIndex } = this.pack;
    const { rows, columns } = wordIndex;
    const strides = [rows[1] - rows[0] || 1, columns[1] - columns[0] || 1];
    const at = (cell) => {
      const row = Math.min(rows.length - 1, Math.floor(Math.floor(cell / mapData.grid[1]) / strides[0]));
      return row * columns.length + Math.min(columns.length - 1, Math.floor((cell % mapData.grid[1]) / strides[1]));
    };
    const { start, cell, posterior, n } = mapData.items;
    const likeness = new Float64Array(n);
    for (let i = 0; i < n; i++) for (let k = start[i]; k < start[i + 1]; k++) likeness[i] += posterior[k] * q[at(cell[k])];
    const order = [...likeness.keys()].sort((a, b) => likeness[b] - likeness[a] || a - b);
    return order.slice(0, N_FOUND).map((item) => ({ item }));
  }
}

// Items with many of the distinctive features for their length.
function typicalItems(table, items, top, z) {
  const [score, length] = [new Float64Array(table.n), new Float64Array(table.n)];
  for (const item of table.items) length[item]++;
  for (const i of top) for (let k = table.start[i]; k < table.start[i + 1]; k++) score[table.items[k]] += z[i];
  const value = (item) => Math.round((1e9 * score[item]) / Math.sqrt(Math.max(1, length[item])));
  return [...items].sort((a, b) => value(b) - value(a) || a - b).slice(0, N_TYPICAL);
}

function numbersOf(content, n) {
  const { next } = numbersIn(content);
  return Uint32Array.from({ length: n }, next);
}

function bytes(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

async function unzipped(content) {
  const stream = new Blob([content]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function openSource() {
  const pack = document.getElementById("pack");
  if (!pack) return new Served();
  const text = new TextDecoder().decode(await unzipped(bytes(pack.textContent)));
  return new Embedded(JSON.parse(text), JSON.parse(document.getElementById("images").textContent));
}
