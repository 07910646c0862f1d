// Pointers and keys on the map, and the filters beside it.

// Mouse, pen and fingers: drag moves, wheel and pinch zoom, a click opens.
function listen(map, act) {
  const { canvas } = map;
  const held = new Map();
  let moved = 0;
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, point(event));
    if (held.size === 1) moved = 0;
    canvas.classList.add("is-held");
    act.leave();
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = point(event);
    const before = held.get(event.pointerId);
    if (!before) return act.hover(...now);
    const gap = spanOf(held);
    held.set(event.pointerId, now);
    moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (held.size === 1) map.moveBy(before[1] - now[1], before[0] - now[0]);
    else if (gap) map.zoomBy(spanOf(held) / gap, centerOf(held));
  });
  const release = (event) => {
    const wasHeld = held.delete(event.pointerId);
    if (!held.size) canvas.classList.remove("is-held");
    if (wasHeld && !held.size && moved < 5 && event.type === "pointerup") act.open(...point(event));
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => act.leave());
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      act.leave();
      const lines = event.deltaMode === 1 ? 16 : 1;
      map.zoomBy(2 ** ((-event.deltaY * lines) / 300), point(event));
    },
    { passive: false },
  );
}

function spanOf(held) {
  const [a, b] = [...held.values()];
  return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0;
}

function centerOf(held) {
  const [a, b] = [...held.values()];
  return [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
}

function listenToKeys(map, act) {
  const { canvas } = map;
  const step = () => Math.min(canvas.clientWidth, canvas.clientHeight) / 8;
  const moves = {
    ArrowUp: () => map.moveBy(-step(), 0),
    ArrowDown: () => map.moveBy(step(), 0),
    ArrowLeft: () => map.moveBy(0, -step()),
    ArrowRight: () => map.moveBy(0, step()),
    "+": () => map.zoomBy(Math.SQRT2),
    "=": () => map.zoomBy(Math.SQRT2),
    "-": () => map.zoomBy(Math.SQRT1_2),
    Home: () => map.whole(),
    Enter: () => act.open(canvas.clientWidth / 2, canvas.clientHeight / 2, true),
    " ": () => act.play(),
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
    event.preventDefault();
    map.hasCross = true;
    moves[event.key]();
    act.announce();
  });
  canvas.addEventListener("blur", () => {
    map.hasCross = false;
    map.changed();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") act.close();
    if (event.key === "/" && !isTyping) {
      event.preventDefault();
      document.getElementById("query").focus();
    }
  });
}

const MOST_LABELS = 400; // columns with more distinct values are not offered as labels

// Which items are shown, and which column gives their colors.
class Filters {
  constructor(mapData, map, act) {
    Object.assign(this, { mapData, map, act });
    this.hidden = new Set();
    this.split = "";
    this.color = "";
    const { items } = mapData;
    this.times = (items.time || []).filter((time) => time !== null);
    this.span = this.times.length ? [this.times.reduce((a, b) => Math.min(a, b)), this.times.reduce((a, b) => Math.max(a, b))] : null;
    this.range = [0, 1000];
    this.makeColors();
    this.makeSplit();
    this.makeTime();
    this.makeLegend();
  }

  makeColors() {
    const { items } = this.mapData;
    const isChoice = (name) => items[name] && items[name].values.length > 1 && items[name].values.length <= MOST_LABELS;
    const choices = ["label", "split", "sequence"].filter(isChoice);
    if (this.span && this.span[1] > this.span[0]) choices.push("time");
    if (!choices.length) return;
    const select = document.getElementById("color");
    select.append(make("option", "nothing", { value: "" }), ...choices.map((name) => make("option", name, { value: name })));
    document.getElementById("color-row").hidden = false;
    select.addEventListener("change", () => this.set({ color: select.value }));
    this.choices = choices;
    this.color = choices.includes("label") ? "label" : "";
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
    if (!this.span || this.span[0] === this.span[1]) return;
    document.getElementById("time-row").hidden = false;
    const [from, to] = ["from", "to"].map((name) => document.getElementById(name));
    from.addEventListener("input", () => this.set({ range: [Math.min(from.value, this.range[1]), this.range[1]] }));
    to.addEventListener("input", () => this.set({ range: [this.range[0], Math.max(this.range[0], to.value)] }));
  }

  makeLegend() {
    const { label } = this.mapData.items;
    if (!label || label.values.length < 2 || label.values.length > MOST_LABELS) return;
    document.getElementById("legend-row").hidden = false;
    const counts = new Array(label.values.length).fill(0);
    for (const which of label.which) counts[which]++;
    this.boxes = label.values.map((name, which) => {
      const box = make("input", null, { type: "checkbox" });
      box.checked = true;
      box.addEventListener("change", () => {
        if (box.checked) this.hidden.delete(name);
        else this.hidden.add(name);
        this.set({});
      });
      const swatch = make("span", null, { class: "swatch" });
      swatch.style.background = hue(which);
      const row = make("label", [box, swatch, make("bdi", name || "(none)"), make("span", counts[which].toLocaleString("en"), { class: "n" })]);
      document.getElementById("legend").append(make("li", row));
      return box;
    });
    document.getElementById("all-labels").addEventListener("click", () => this.set({ hidden: new Set() }));
    document.getElementById("no-labels").addEventListener("click", () => this.set({ hidden: new Set(label.values) }));
  }

  // Apply changes, and show them.
  set(changes) {
    Object.assign(this, changes);
    const { items } = this.mapData;
    const [from, to] = this.span ? this.range.map((at) => this.span[0] + ((this.span[1] - this.span[0]) * at) / 1000) : [0, 0];
    const isWhole = this.range[0] <= 0 && this.range[1] >= 1000;
    let n = 0;
    for (let i = 0; i < items.n; i++) {
      const isHidden =
        (items.label && this.hidden.has(items.label.values[items.label.which[i]])) ||
        (this.split && items.split && items.split.values[items.split.which[i]] !== this.split) ||
        (!isWhole && (items.time[i] === null || items.time[i] < from || items.time[i] > to));
      this.map.isShown[i] = isHidden ? 0 : 1;
      n += this.map.isShown[i];
    }
    this.map.colorOf = this.colors();
    this.mirror(n, from, to);
    this.map.forget();
    this.act.refresh();
    this.act.changed();
  }

  // Update the controls.
  mirror(n, from, to) {
    const total = this.mapData.items.n;
    document.getElementById("count").textContent = n === total ? n.toLocaleString("en") : `${n.toLocaleString("en")} of ${total.toLocaleString("en")}`;
    if (this.boxes) this.boxes.forEach((box, which) => (box.checked = !this.hidden.has(this.mapData.items.label.values[which])));
    document.getElementById("color").value = this.color;
    document.getElementById("split").value = this.split;
    if (this.span) {
      document.getElementById("from").value = this.range[0];
      document.getElementById("to").value = this.range[1];
      document.getElementById("time-text").textContent = `${moment(from)} to ${moment(to)}`;
    }
  }

  colors() {
    const { items } = this.mapData;
    if (this.color === "time") {
      const [first, last] = this.span;
      const shade = (time) => `hsl(${260 - 220 * ((time - first) / (last - first))} 75% 50%)`;
      return (item) => (items.time[item] === null ? "#888" : shade(items.time[item]));
    }
    const column = items[this.color];
    if (!column || column.values.length < 2) return null;
    const hues = column.values.map((_, which) => hue(which));
    return (item) => hues[column.which[item]];
  }
}

// Colors a golden section apart, in three tones that take turns.
function hue(which) {
  const [saturation, lightness] = [[72, 46], [58, 62], [85, 34]][which % 3];
  return `hsl(${Math.round(212 + which * 137.508) % 360} ${saturation}% ${lightness}%)`;
}
