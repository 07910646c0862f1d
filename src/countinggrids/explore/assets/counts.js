// Counts of features by item in an exported page, and the comparison of two groups; as comparison.py.

const PRIOR = 0.01; // pseudocounts for each count of the whole collection
const LEAST_PRIOR = 0.5; // smallest number of pseudocounts of a region
const LEAST_DEVIATION = 0.5; // smallest standard deviation that a z-score is divided by
const N_PERMUTATIONS = 200;

// A sparse table of counts by column: {n, nColumns, start, items, counts, terms}.
function readPostings(content) {
  const { next, rest } = numbersIn(content);
  const [n, nColumns] = [next(), next()];
  const start = new Uint32Array(nColumns + 1);
  for (let i = 0; i < nColumns; i++) start[i + 1] = start[i] + next();
  const total = start[nColumns];
  const [items, counts] = [new Uint32Array(total), new Uint32Array(total)];
  for (let i = 0; i < nColumns; i++) for (let k = start[i], item = 0; k < start[i + 1]; k++) items[k] = item += next();
  for (let k = 0; k < total; k++) counts[k] = next();
  return { n, nColumns, start, items, counts, terms: new TextDecoder().decode(rest()).split("\n") };
}

// Reads variable-length integers one after another, and what follows them.
function numbersIn(content) {
  let at = 0;
  const next = () => {
    let [value, factor, byte] = [0, 1, 128];
    while (byte & 128) {
      byte = content[at++];
      value += (byte & 127) * factor;
      factor *= 128;
    }
    return value;
  };
  return { next, rest: () => content.subarray(at) };
}

// The column of a sparse table that has an item, and where, for all columns that have it.
function* entriesOf(table, item) {
  const { nColumns, start, items } = table;
  for (let i = 0; i < nColumns; i++) {
    let [low, high] = [start[i], start[i + 1]];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (items[middle] < item) low = middle + 1;
      else high = middle;
    }
    if (low < start[i + 1] && items[low] === item) yield [i, low];
  }
}

// Log-odds of each column in a against b with pseudocounts, and their z-scores, between two columns.
function logOdds(a, b, prior, [first, last] = [0, prior.length]) {
  let [totalA, totalB] = [0, 0];
  for (let i = first; i < last; i++) {
    totalA += a[i] + prior[i];
    totalB += b[i] + prior[i];
  }
  const [odds, z] = [new Float64Array(prior.length), new Float64Array(prior.length)];
  for (let i = first; i < last; i++) {
    const [x, y] = [a[i] + prior[i], b[i] + prior[i]];
    const difference = Math.log(x / (totalA - x)) - Math.log(y / (totalB - y));
    const score = difference / Math.sqrt(1 / x + 1 / y);
    if (Number.isFinite(difference) && Number.isFinite(score)) [odds[i], z[i]] = [difference, score];
  }
  return { odds, z };
}

// The test of a table's columns between two groups of its rows; groups are 1 for a, 2 for b and 0 for neither.
class GroupTest {
  constructor(table, groups, edges = null, leastPrior = 0) {
    Object.assign(this, { table, groups, edges: edges || [0, table.nColumns] });
    const everywhere = this.sums(() => 1);
    this.prior = everywhere.map((value) => Math.max(PRIOR * value, leastPrior));
    this.total = this.sums((item) => (groups[item] ? 1 : 0));
    this.inA = this.sums((item) => (groups[item] === 1 ? 1 : 0));
    this.inB = this.total.map((value, i) => value - this.inA[i]);
    Object.assign(this, this.scores(this.inA));
  }

  sums(weight) {
    const { nColumns, start, items, counts } = this.table;
    const sums = new Float64Array(nColumns);
    for (let i = 0; i < nColumns; i++) {
      let sum = 0;
      for (let k = start[i]; k < start[i + 1]; k++) sum += counts[k] * weight(items[k]);
      sums[i] = sum;
    }
    return sums;
  }

  scores(inA) {
    const inB = this.total.map((value, i) => value - inA[i]);
    const [odds, z] = [new Float64Array(this.prior.length), new Float64Array(this.prior.length)];
    for (let k = 0; k + 1 < this.edges.length; k++) {
      const ends = [this.edges[k], this.edges[k + 1]];
      const part = logOdds(inA, inB, this.prior, ends);
      for (let i = ends[0]; i < ends[1]; i++) [odds[i], z[i]] = [part.odds[i], part.z[i]];
    }
    return { odds, z };
  }

  // p-values by the largest scaled z-score under random groups of the same sizes.
  async pValues(draws) {
    const random = [];
    for (const drawn of draws) {
      random.push(this.scores(this.sums((item) => drawn[item])).z);
      if (random.length % 20 === 0) await new Promise((done) => setTimeout(done));
    }
    const scale = Float64Array.from(this.z, (z, i) => {
      const squares = random.reduce((sum, each) => sum + each[i] ** 2, z ** 2);
      return Math.max(LEAST_DEVIATION, Math.sqrt(squares / (random.length + 1)));
    });
    const largestOf = random.map((each) => each.reduce((most, value, i) => Math.max(most, Math.abs(value) / scale[i]), 0)).sort((a, b) => a - b);
    return Float64Array.from(this.z, (z, i) => {
      const reached = (Math.abs(z) / scale[i]) * (1 - 1e-5);
      return (1 + largestOf.filter((value) => value >= reached).length) / (1 + random.length);
    });
  }
}

// Random numbers that are the same every time (mulberry32).
function seeded(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// Random groups a of the same size among the items of both.
function* randomGroups(groups, n) {
  const both = [...groups.keys()].filter((item) => groups[item]);
  const nA = both.filter((item) => groups[item] === 1).length;
  const random = seeded(0);
  for (let draw = 0; draw < n; draw++) {
    const drawn = new Uint8Array(groups.length);
    for (let k = 0; k < nA; k++) {
      const j = k + Math.floor(random() * (both.length - k));
      [both[k], both[j]] = [both[j], both[k]];
      drawn[both[k]] = 1;
    }
    yield drawn;
  }
}

// The regions of items at all levels as a table of counts.
function regionTable(regions) {
  const members = regions.list.map(() => []);
  for (let i = 0; i < regions.n; i++) for (let id = regions.finest[i]; id !== null; id = regions.list[id].parent) members[id].push(i);
  const start = new Uint32Array(members.length + 1);
  members.forEach((each, k) => (start[k + 1] = start[k] + each.length));
  const items = Uint32Array.from(members.flat());
  return { n: regions.n, nColumns: members.length, start, items, counts: new Uint8Array(items.length).fill(1) };
}
