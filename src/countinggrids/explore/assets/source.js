// Where the page has its data from: a server, or the page itself when it was exported.

const N_FOUND = 60;

class Source {
  // The patches of all features, side by side.
  get patches() {
    this._patches ||= Object.assign(new Image(), { src: this.image("patches.png") });
    return this._patches;
  }
}

class Served extends Source {
  async chart() {
    const chart = await this.json("map.json");
    this.canDrop = chart.can_drop;
    return chart;
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
    return (await this.json(`item/${item}.json`)).known;
  }

  search(query) {
    return this.json(`search.json?q=${encodeURIComponent(query)}`);
  }

  drop(file) {
    const kind = file.type.startsWith("image/") ? file.type : "text/plain";
    return this.json("locate.json", { method: "POST", body: file, headers: { "content-type": kind } });
  }
}

class Held extends Source {
  constructor(pack, images) {
    super();
    this.pack = pack;
    this.images = images;
    this.canDrop = false;
  }

  async chart() {
    return this.pack.chart;
  }

  image(name) {
    const kind = name.endsWith(".png") ? "png" : "jpeg";
    return `data:image/${kind};base64,${this.images[name]}`;
  }

  full() {
    return null;
  }

  async known(item) {
    const { chart, known } = this.pack;
    const found = {};
    for (const name of Object.keys(known)) if (known[name][item] !== "") found[name] = known[name][item];
    for (const name of ["label", "split", "sequence"]) {
      const column = chart.items[name];
      if (column && column.values[column.which[item]] !== "") found[name] = column.values[column.which[item]];
    }
    if (chart.items.time && chart.items.time[item] !== null) found.time = chart.items.time[item];
    return found;
  }

  async search(query) {
    const named = this.named(query);
    const found = { query, named: named.slice(0, N_FOUND), n_named: named.length, posterior: [], items: [] };
    if (!this.pack.lexicon) return found;
    const tokens = (query.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) || []).filter((word) => this.numbers.has(word));
    found.words = [...new Set(tokens)];
    found.n_left_out = this.pack.lexicon.n_left_out;
    if (!tokens.length) return found;
    const q = this.posterior(tokens);
    const { rows, columns } = this.pack.lexicon;
    const order = [...q.keys()].sort((a, b) => q[b] - q[a]).slice(0, 400).filter((k) => q[k] > 1e-4);
    found.posterior = order.map((k) => [rows[Math.floor(k / columns.length)], columns[k % columns.length], q[k]]);
    found.items = this.nearby(q);
    return found;
  }

  named(query) {
    const wanted = query.trim().toLowerCase();
    const { items } = this.pack.chart;
    const paths = this.pack.known.path;
    const has = (text) => text !== undefined && text.toLowerCase().includes(wanted);
    const found = [];
    for (let i = 0; wanted && i < items.n; i++) {
      const label = items.label && items.label.values[items.label.which[i]];
      if (has(items.title[i]) || has(label) || (paths && has(paths[i]))) found.push({ item: i });
    }
    return found;
  }

  get numbers() {
    this._numbers ||= new Map(this.pack.lexicon.names.map((name, i) => [name, i]));
    return this._numbers;
  }

  posterior(tokens) {
    const { step, log_prior: prior } = this.pack.lexicon;
    this._levels ||= bytes(this.pack.lexicon.levels);
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

  // Items whose own posterior lies where the query's does; the lattice stands for the cells around it.
  nearby(q) {
    const { chart, lexicon } = this.pack;
    const { rows, columns } = lexicon;
    const strides = [rows[1] - rows[0] || 1, columns[1] - columns[0] || 1];
    const at = (cell) => {
      const row = Math.min(rows.length - 1, Math.floor(Math.floor(cell / chart.grid[1]) / strides[0]));
      return row * columns.length + Math.min(columns.length - 1, Math.floor((cell % chart.grid[1]) / strides[1]));
    };
    const { start, cell, posterior, n } = chart.items;
    const likeness = new Float64Array(n);
    for (let i = 0; i < n; i++) for (let k = start[i]; k < start[i + 1]; k++) likeness[i] += posterior[k] * q[at(cell[k])];
    const order = [...likeness.keys()].sort((a, b) => likeness[b] - likeness[a] || a - b);
    return order.slice(0, N_FOUND).map((item) => ({ item }));
  }
}

function bytes(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

async function openSource() {
  const pack = document.getElementById("pack");
  if (!pack) return new Served();
  const stream = new Blob([bytes(pack.textContent)]).stream().pipeThrough(new DecompressionStream("gzip"));
  const text = await new Response(stream).text();
  return new Held(JSON.parse(text), JSON.parse(document.getElementById("images").textContent));
}
