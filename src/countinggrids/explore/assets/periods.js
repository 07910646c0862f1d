// Time in periods: their limits and names, histograms, and which regions rise and fall.

const DAY = 86400;
const [FEWEST_PERIODS, MOST_PERIODS] = [6, 40];
const RISES_FROM = 3; // z-score of a trend from which on it is marked

// Seconds since 1970 as a date; small numbers are seconds into something.
function moment(seconds) {
  if (isSmall(seconds)) return `${seconds < 0 ? "-" : ""}${Math.floor(Math.abs(seconds) / 60)}:${String(Math.floor(Math.abs(seconds) % 60)).padStart(2, "0")}`;
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return `${seconds} s`;
  const text = date.toISOString().replace("T", " ").replace("+0", "");
  return text.includes(" 00:00:00") ? text.split(" ")[0] : text.slice(0, text.lastIndexOf(":"));
}

function isSmall(seconds) {
  return Math.abs(seconds) < 1e7;
}

// Times cut into years, quarters, months, weeks, days or hours, or into parts of equal length.
class Periods {
  constructor(times) {
    this.times = times;
    const known = times.filter((time) => time !== null);
    this.span = known.length ? [known.reduce((a, b) => Math.min(a, b)), known.reduce((a, b) => Math.max(a, b))] : null;
    this.isUseful = Boolean(this.span) && this.span[1] > this.span[0];
    if (!this.isUseful) return;
    const calendar = isSmall(this.span[0]) && isSmall(this.span[1]) ? null : calendarEdges(...this.span);
    Object.assign(this, calendar || evenEdges(...this.span));
    this.n = this.edges.length - 1;
    this.which = Int16Array.from(times, (time) => (time === null ? -1 : this.at(time)));
  }

  // The period of a time.
  at(time) {
    let [low, high] = [0, this.n];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.edges[middle] <= time) low = middle;
      else high = middle;
    }
    return low;
  }

  // How many of some items are in each period.
  counts(has) {
    const counts = new Uint32Array(this.n);
    for (let i = 0; i < this.which.length; i++) if (this.which[i] >= 0 && has(i)) counts[this.which[i]]++;
    return counts;
  }

  // Limits in seconds as thousandths of the whole span, and back.
  fractions(limits) {
    const [first, last] = this.span;
    return limits.map((at) => Math.min(1000, Math.max(0, Number(((1000 * (at - first)) / (last - first)).toFixed(3)))));
  }

  seconds(range) {
    const [first, last] = this.span;
    return range.map((at) => first + ((last - first) * at) / 1000);
  }
}

function calendarEdges(first, last) {
  const from = new Date(first * 1000);
  const [year, month] = [from.getUTCFullYear(), from.getUTCMonth()];
  const months = (n, start) => (k) => Date.UTC(year, start + k * n, 1) / 1000;
  const even = (length) => (k) => Math.floor(first / length) * length + k * length;
  const named = (length) => (at) => new Date(at * 1000).toISOString().slice(0, length).replace("T", " ");
  const units = [
    ["10 years", (k) => Date.UTC(Math.floor(year / 10) * 10 + 10 * k, 0, 1) / 1000, (at) => `${named(4)(at)}s`],
    ["year", months(12, 0), named(4)],
    ["quarter", months(3, month - (month % 3)), (at) => `${named(4)(at)} Q${Math.floor(new Date(at * 1000).getUTCMonth() / 3) + 1}`],
    ["month", months(1, month), named(7)],
    ["week", (k) => (Math.floor((first / DAY + 3) / 7) * 7 - 3 + 7 * k) * DAY, named(10)],
    ["day", even(DAY), named(10)],
    ["hour", even(3600), named(13)],
    ["minute", even(60), named(16)],
  ];
  for (const [unit, edge, name] of units) {
    const edges = [edge(0)];
    while (edges[edges.length - 1] <= last && edges.length <= MOST_PERIODS) edges.push(edge(edges.length));
    const isFull = edges[edges.length - 1] > last;
    if (!isFull) return null;
    if (edges.length - 1 >= FEWEST_PERIODS) return { unit, edges, names: edges.slice(0, -1).map(name) };
  }
  return null;
}

function evenEdges(first, last) {
  const n = 20;
  const edges = [...Array(n + 1).keys()].map((k) => first + ((last - first) * k) / n);
  return { unit: "part", edges, names: edges.slice(0, -1).map((at, k) => `${moment(at)} to ${moment(edges[k + 1])}`) };
}

function svg(tag, attributes = {}, children = []) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// Bars by period; those of some items before those of all.
function histogram(periods, some, all, { height = 46, label = "Items by time" } = {}) {
  const most = Math.max(1, largest(all || some));
  const bars = [];
  const add = (counts, kind) => {
    for (let k = 0; k < periods.n; k++) {
      if (!counts[k]) continue;
      const tall = Math.max(0.6, (height * counts[k]) / most);
      bars.push(svg("rect", { class: kind, x: k + 0.06, width: 0.88, y: height - tall, height: tall }));
    }
  };
  if (all) add(all, "all");
  add(some, "some");
  const text = `${label}: ${periods.names[0]} to ${periods.names[periods.n - 1]} by ${periods.unit}, at most ${largest(some)}`;
  return svg("svg", { class: "histogram", viewBox: `0 0 ${periods.n} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": text }, bars);
}

// A line of a region's fraction of the items of each period.
function trendLine(counts, totals) {
  const known = [...counts.keys()].filter((k) => totals[k]); // a period without items has no fraction
  const shares = known.map((k) => counts[k] / totals[k]);
  const most = Math.max(1e-9, ...shares);
  const points = shares.map((share, i) => `${known[i]},${(12 - (11 * share) / most).toFixed(2)}`).join(" ");
  const line = svg("polyline", { points });
  return svg("svg", { class: "trend", viewBox: `0 0 ${Math.max(1, counts.length - 1)} 12.5`, preserveAspectRatio: "none", "aria-hidden": "true" }, [line]);
}

// The z-score of the trend of a fraction over periods (Cochran-Armitage).
function trendScore(counts, totals) {
  let [n, inside, mean] = [0, 0, 0];
  for (let k = 0; k < counts.length; k++) {
    n += totals[k];
    inside += counts[k];
    mean += totals[k] * k;
  }
  mean /= Math.max(1, n);
  const share = inside / Math.max(1, n);
  let [sum, spread] = [0, 0];
  for (let k = 0; k < counts.length; k++) {
    sum += (counts[k] - share * totals[k]) * (k - mean);
    spread += totals[k] * (k - mean) ** 2;
  }
  const variance = share * (1 - share) * spread;
  return variance > 0 ? sum / Math.sqrt(variance) : 0;
}

// Counts by region and period of the items that are shown but for the time, and the trend of each region.
function trendsOf(regions, periods, isCounted) {
  const counts = regions.list.map(() => new Uint32Array(periods.n));
  const totals = new Uint32Array(periods.n);
  for (let i = 0; i < regions.n; i++) {
    const k = periods.which[i];
    if (k < 0 || !isCounted[i]) continue;
    totals[k]++;
    for (let id = regions.finest[i]; id !== null; id = regions.list[id].parent) counts[id][k]++;
  }
  return { totals, counts, z: counts.map((each) => trendScore(each, totals)) };
}
