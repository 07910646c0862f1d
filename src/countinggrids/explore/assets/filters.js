// Which items are shown, what gives their colors, and the legend.

const MOST_LABELS = 400; // columns with more distinct values are not offered as labels
const TICK = 700; // milliseconds a period while playing

class Filters {
  constructor(mapData, map, act) {
    Object.assign(this, { mapData, map, act });
    this.hidden = new Set();
    this.split = "";
    this.color = "";
    this.comparison = null; // {colorOf, tint} while two groups are compared
    this.isCounted = new Uint8Array(mapData.items.n).fill(1); // shown but for the time
    this.periods = new Periods(mapData.items.time || []);
    this.span = this.periods.span;
    this.range = [0, 1000];
    this.makeColors();
    this.makeSplit();
    this.makeTime();
    this.makeLegend();
  }

  // A column with few values: {values, which}.
  column(name) {
    const { items } = this.mapData;
    return ["label", "split", "sequence"].includes(name) ? items[name] : items.columns?.[name];
  }

  get allColumns() {
    return ["label", "split", "sequence", ...Object.keys(this.mapData.items.columns || {})].filter((name) => this.column(name));
  }

  get columnNames() {
    return this.allColumns.filter((name) => this.column(name).values.length > 1 && this.column(name).values.length <= MOST_LABELS);
  }

  makeColors() {
    const numbers = Object.keys(this.mapData.numbers || {});
    const choices = [...(this.map.regions.byLevel[0].length > 1 ? ["region"] : []), ...this.columnNames, ...(this.periods.isUseful ? ["time"] : []), ...numbers.map((name) => `number ${name}`)];
    if (!choices.length) return;
    const select = document.getElementById("color");
    const titled = (name) => make("option", name.replace(/^number /, ""), { value: name });
    select.append(make("option", "nothing", { value: "" }), ...choices.filter((name) => !name.startsWith("number ")).map(titled));
    if (numbers.length) select.append(make("optgroup", choices.filter((name) => name.startsWith("number ")).map(titled), { label: "mean of" }));
    document.getElementById("color-row").hidden = false;
    select.addEventListener("change", () => this.set({ color: select.value }));
    this.choices = choices;
    this.color = choices.includes("label") ? "label" : choices.includes("region") && !this.mapData.picture ? "region" : "";
  }

  makeSplit() {
    const { split } = this.mapData.items;
    if (!split || split.values.length < 2) return;
    const select = document.getElementById("split");
    select.append(make("option", "all", { value: "" }), ...split.values.map((name) => make("option", name, { value: name })));
    document.getElementById("split-row").hidden = false;
    select.addEventListener("change", () => this.set({ split: select.value }));
  }

  makeTime() {
    if (!this.periods.isUseful) return;
    document.getElementById("time-row").hidden = false;
    const [from, to] = ["from", "to"].map((name) => document.getElementById(name));
    from.addEventListener("input", () => this.set({ range: [Math.min(from.value, this.range[1]), this.range[1]] }));
    to.addEventListener("input", () => this.set({ range: [this.range[0], Math.max(this.range[0], to.value)] }));
    document.getElementById("play-time").addEventListener("click", () => (this.timer ? this.stop() : this.play()));
    document.getElementById("all-time").addEventListener("click", () => {
      this.stop();
      this.set({ range: [0, 1000] });
    });
    this.listenToBrush(document.getElementById("brush"));
  }

  // Drag over the histogram to choose periods; a click chooses one.
  listenToBrush(node) {
    const periodAt = (event) => {
      const box = node.getBoundingClientRect();
      return Math.min(this.periods.n - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * this.periods.n)));
    };
    let first = null;
    const choose = (event) => {
      const [from, to] = [first, periodAt(event)].sort((a, b) => a - b);
      this.set({ range: this.periods.fractions([this.periods.edges[from], this.periods.edges[to + 1]]) });
    };
    node.addEventListener("pointerdown", (event) => {
      this.stop();
      first = periodAt(event);
      node.setPointerCapture(event.pointerId);
      choose(event);
    });
    node.addEventListener("pointermove", (event) => first !== null && choose(event));
    for (const kind of ["pointerup", "pointercancel"]) node.addEventListener(kind, () => (first = null));
  }

  // Show one period after another, and in the end all of them again.
  play() {
    let k = 0;
    const step = () => {
      if (k >= this.periods.n) {
        this.stop();
        return this.set({ range: [0, 1000] });
      }
      this.set({ range: this.periods.fractions([this.periods.edges[k], this.periods.edges[k + 1]]) });
      k++;
    };
    this.timer = setInterval(step, TICK);
    this.showState();
    step();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.showState();
  }

  showState() {
    const button = document.getElementById("play-time");
    button.setAttribute("aria-pressed", String(Boolean(this.timer)));
    button.textContent = this.timer ? "▮▮ Pause" : `▶ Play by ${this.periods.unit}`;
  }

  makeLegend() {
    const { label } = this.mapData.items;
    if (!label || label.values.length < 2 || label.values.length > MOST_LABELS) return;
    document.getElementById("legend-row").hidden = false;
    this.rows = label.values.map((name) => {
      const box = make("input", null, { type: "checkbox" });
      box.addEventListener("change", () => {
        if (box.checked) this.hidden.delete(name);
        else this.hidden.add(name);
        this.set({});
      });
      const [swatch, n] = [make("span", null, { class: "swatch" }), make("span", null, { class: "n" })];
      document.getElementById("legend").append(make("li", make("label", [box, swatch, make("bdi", name || "(none)"), n])));
      return { box, swatch, n };
    });
    document.getElementById("all-labels").addEventListener("click", () => this.set({ hidden: new Set() }));
    document.getElementById("no-labels").addEventListener("click", () => this.set({ hidden: new Set(label.values) }));
  }

  // Apply changes, and show them.
  set(changes) {
    Object.assign(this, changes);
    const { items } = this.mapData;
    const [from, to] = this.span ? this.periods.seconds(this.range) : [0, 0];
    const isWhole = this.range[0] <= 0 && this.range[1] >= 1000;
    const isLast = this.range[1] >= 1000;
    const byLabel = items.label ? new Uint32Array(items.label.values.length) : null;
    let n = 0;
    for (let i = 0; i < items.n; i++) {
      const isInSplit = !this.split || !items.split || items.split.values[items.split.which[i]] === this.split;
      const time = items.time?.[i] ?? null;
      const isInTime = isWhole || (time !== null && time >= from && (isLast || time < to));
      const hasLabel = !items.label || !this.hidden.has(items.label.values[items.label.which[i]]);
      if (byLabel && isInSplit && isInTime) byLabel[items.label.which[i]]++;
      this.isCounted[i] = isInSplit && hasLabel ? 1 : 0;
      this.map.isShown[i] = this.isCounted[i] && isInTime ? 1 : 0;
      n += this.map.isShown[i];
    }
    this.paint();
    this.mirror(n, from, to, byLabel);
    this.map.forget();
    this.act.refresh();
    this.act.changed();
  }

  // Colors of items and of the land.
  paint() {
    const { map } = this;
    const before = this.painted;
    this.painted = this.comparison ? this.comparison : `${this.color} ${map.isDark}`;
    map.colorOf = this.comparison ? this.comparison.colorOf : this.colors();
    map.tint = this.comparison ? this.comparison.tint : this.tint();
    map.tintLevel = Math.min(1, map.regions.nLevels - 1);
    if (this.painted !== before) map.paintLand();
    this.makeScale();
  }

  tint() {
    const { map, color } = this;
    if (color === "region" && !this.mapData.picture) return (id) => oklch(map.isDark ? 0.36 : 0.885, map.isDark ? 0.045 : 0.06, map.regions.hues[id]);
    const means = this.means;
    if (!means) return this.mapData.picture ? null : (id) => oklch(map.isDark ? 0.3 : 0.93, map.isDark ? 0.036 : 0.03, map.regions.hues[id]);
    const [low, high] = this.meanSpan();
    return (id) => (means[id][0] ? mixed(sequential((means[id][1] - low) / (high - low || 1)), map.isDark ? [20, 24, 28] : [255, 255, 255], 0.35) : null);
  }

  // Number, mean and confidence interval of the chosen column in each region.
  get means() {
    return this.color.startsWith("number ") ? this.mapData.means[this.color.slice(7)] : null;
  }

  meanSpan() {
    const { regions, tintLevel } = this.map;
    const known = regions.byLevel[tintLevel].map(({ id }) => this.means[id]).filter(([n]) => n).map(([, mean]) => mean);
    return [Math.min(...known), Math.max(...known)];
  }

  // The mean of a region, where a number gives the colors.
  meanOf(id) {
    if (!this.means) return null;
    const [n, mean, low, high] = this.means[id];
    if (!n) return "no values";
    return low === null ? short(mean) : `${short(mean)} (${short(low)} to ${short(high)})`;
  }

  // The scale of a number, below its name.
  makeScale() {
    const node = document.getElementById("scale-row");
    node.hidden = !this.means;
    if (!this.means) return;
    const [low, high] = this.meanSpan();
    const steps = [...Array(12).keys()].map((k) => {
      const part = make("i");
      part.style.background = css(sequential(k / 11));
      return part;
    });
    node.replaceChildren(make("span", short(low)), make("span", steps, { class: "ramp" }), make("span", short(high)), make("span", "mean by region, with its 95% confidence interval in the contents", { class: "quiet small" }));
  }

  // Update the controls.
  mirror(n, from, to, byLabel) {
    const total = this.mapData.items.n;
    document.getElementById("count").textContent = n === total ? n.toLocaleString("en") : `${n.toLocaleString("en")} of ${total.toLocaleString("en")}`;
    this.rows?.forEach(({ box, swatch, n: count }, which) => {
      box.checked = !this.hidden.has(this.mapData.items.label.values[which]);
      swatch.style.background = this.color === "label" && !this.comparison ? hue(which) : "transparent";
      count.textContent = byLabel[which].toLocaleString("en");
    });
    document.getElementById("color").value = this.color;
    document.getElementById("split").value = this.split;
    if (this.periods.isUseful) this.mirrorTime(from, to);
  }

  mirrorTime(from, to) {
    const { periods } = this;
    document.getElementById("from").value = this.range[0];
    document.getElementById("to").value = this.range[1];
    const isWhole = this.range[0] <= 0 && this.range[1] >= 1000;
    const k = periods.at(from + 1e-6 * (to - from));
    const isOne = !isWhole && periods.at(to - 1e-6 * (to - from)) === k;
    document.getElementById("time-text").textContent = isOne ? periods.names[k] : `${moment(from)} to ${moment(to)}`;
    document.getElementById("all-time").disabled = isWhole;
    const shown = periods.counts((i) => this.map.isShown[i]);
    const all = periods.counts((i) => this.isCounted[i]);
    document.getElementById("brush").replaceChildren(histogram(periods, shown, all));
    if (!this.timer) this.showState();
  }

  colors() {
    const { items, numbers } = this.mapData;
    const { map } = this;
    if (this.color === "region") {
      const hues = map.regions.list.map(({ id }) => regionColor(map, id));
      return (item) => hues[map.regions.of(item, Math.min(1, map.regions.nLevels - 1))];
    }
    if (this.color === "time") {
      const [first, last] = this.span;
      return scaled(items.time, first, last);
    }
    if (this.color.startsWith("number ")) {
      const values = numbers[this.color.slice(7)];
      return scaled(values, ...quantiles(values, 0.02, 0.98));
    }
    const column = this.column(this.color);
    if (!column || column.values.length < 2) return null;
    const hues = column.values.map((_, which) => hue(which));
    return (item) => hues[column.which[item]];
  }
}

// Colors of numbers between two limits, in so many steps that none is seen.
function scaled(values, low, high) {
  const steps = [...Array(65).keys()].map((k) => css(sequential(k / 64)));
  return (item) => (values[item] === null ? "#8886" : steps[Math.round(64 * Math.min(1, Math.max(0, (values[item] - low) / (high - low || 1))))]);
}

function quantiles(values, ...fractions) {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  return fractions.map((fraction) => known[Math.round(fraction * (known.length - 1))] ?? 0);
}

// A number with three digits.
function short(value) {
  return Math.abs(value) >= 1e6 || (value && Math.abs(value) < 1e-3) ? value.toExponential(2) : String(Number(value.toPrecision(3)));
}
