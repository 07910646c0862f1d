// Full-text search in an exported page, and the highlighting of what was found; as queries.py and text_search.py.

const [K1, B] = [1.2, 0.75];
const FORM = 0.5; // weight of a longer form of a word
const [SHORTEST_WITH_FORMS, LONGEST_ENDING] = [4, 3];
const SNIPPET = 180;
const PARTS = /(-?)(?:"([^"]*)"?|([^\s"]+))/g;
const DENSE_WORD = new RegExp(`^[${DENSE}]`, "u");

function tokensOfText(text) {
  return cutQuery(text.normalize("NFKC").toLowerCase(), "auto", () => false);
}

// The parts of a query: {words, isPhrase, isExcluded, isPrefix}.
function parseQuery(query) {
  const found = new Map();
  const add = (words, isPhrase, isExcluded, isPrefix = false) => {
    const part = { words, isPhrase, isExcluded, isPrefix };
    found.set(JSON.stringify(part), part);
  };
  for (const [, sign, quoted, bare] of query.matchAll(PARTS)) {
    const words = tokensOfText(quoted || bare || "");
    if (!words.length) continue;
    if (quoted || (sign && words.length > 1)) add(words, true, Boolean(sign));
    else words.forEach((word, k) => add([word], false, Boolean(sign), k === words.length - 1 && bare.endsWith("*")));
  }
  return [...found.values()];
}

// A query without its exclusions and marks, as a text.
function positiveText(query) {
  return [...query.matchAll(PARTS)].filter(([, sign]) => !sign).map(([, , quoted, bare]) => quoted || (bare || "").replace(/\*+$/, "")).join(" ");
}

// How much a term counts for a word of a part: 1 for the word itself, less for its forms, 0 for others.
function weightOf(term, word, { isPhrase, isPrefix }) {
  if (!term.startsWith(word)) return 0;
  if (isPrefix || term.length === word.length) return 1;
  const longest = word.length + (isPhrase || word.length < SHORTEST_WITH_FORMS ? 0 : LONGEST_ENDING);
  return term.length <= longest ? FORM : 0;
}

// The inverted index: for each word the items that have it, and how often.
class TextIndex {
  constructor(content, textOf) {
    this.textOf = textOf; // (item) => the whole text of an item, or null where it was cut
    const { n, nColumns, start, items, counts, terms } = readPostings(content);
    Object.assign(this, { n, nTerms: nColumns, start, items, counts, terms });
    this.lengths = new Float64Array(this.n);
    for (let k = 0; k < items.length; k++) this.lengths[this.items[k]] += this.counts[k];
    this.mean = this.lengths.reduce((a, b) => a + b, 0) / Math.max(1, this.n) || 1e-12;
  }

  find(query) {
    const parts = parseQuery(query);
    const wanted = parts.filter((part) => !part.isExcluded);
    const score = new Float64Array(this.n);
    const matched = new Uint8Array(this.n);
    const kept = new Uint8Array(this.n).fill(parts.length ? 1 : 0);
    for (const part of parts) {
      const { has, gains } = this.scored(part);
      for (let i = 0; i < this.n; i++) {
        if (part.isExcluded ? has[i] : part.isPhrase && !has[i]) kept[i] = 0;
        if (part.isExcluded || !has[i]) continue;
        score[i] += gains[i];
        matched[i]++;
      }
    }
    const rounded = score.map((value) => Math.round(value * 1e6));
    const items = [...score.keys()].filter((i) => kept[i] && (matched[i] || !wanted.length));
    items.sort((a, b) => matched[b] - matched[a] || rounded[b] - rounded[a] || a - b);
    return { items, nWithAll: items.filter((i) => matched[i] === wanted.length).length };
  }

  scored(part) {
    const { words, isPhrase } = part;
    const all = words.map((word) => this.frequencies(word, part));
    const gains = new Float64Array(this.n);
    const has = Uint8Array.from(all[0], (_, i) => (all.every((frequency) => frequency[i]) ? 1 : 0));
    if (isPhrase && words.length > 1)
      for (let i = 0; i < this.n; i++) if (has[i] && !hasSequence(this.textOf(i), words)) has[i] = 0;
    for (const frequency of all) this.addGains(frequency, has, gains);
    return { has, gains };
  }

  addGains(frequency, has, gains) {
    let nWith = 0;
    for (const value of frequency) if (value) nWith++;
    const weight = Math.log1p((this.n - nWith + 0.5) / (nWith + 0.5));
    for (let i = 0; i < this.n; i++) {
      if (!has[i]) continue;
      const norm = K1 * (1 - B + (B * this.lengths[i]) / this.mean);
      gains[i] += (weight * frequency[i] * (K1 + 1)) / (frequency[i] + norm);
    }
  }

  frequencies(word, part) {
    const frequency = new Float64Array(this.n);
    this.terms.forEach((term, i) => {
      const weight = weightOf(term, word, part);
      if (weight) for (let k = this.start[i]; k < this.start[i + 1]; k++) frequency[this.items[k]] += weight * this.counts[k];
    });
    return frequency;
  }
}

// Whether a text has words in sequence; true for one that the page does not hold in full.
function hasSequence(text, wanted) {
  if (text === null) return true;
  const words = tokensOfText(text);
  return words.some((_, i) => wanted.every((word, k) => words[i + k] === word));
}

// The part of a text where most words of a query are, or its beginning.
function snippetOf(text, query) {
  const words = parseQuery(query).filter((part) => !part.isExcluded).flatMap((part) => part.words);
  const start = densest(text, words);
  const cut = text.slice(start, start + SNIPPET).split(/\s+/).filter(Boolean).join(" ");
  return (start ? "… " : "") + cut + (start + SNIPPET < text.length ? " …" : "");
}

function densest(text, words) {
  if (!text || !words.length) return 0;
  const escaped = words.map((word) => (DENSE_WORD.test(word) ? "" : "(?<![\\p{L}\\p{N}_])") + word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const places = [];
  for (const match of text.toLowerCase().matchAll(new RegExp(escaped.join("|"), "gu"))) {
    places.push([match.index, match[0]]);
    if (places.length >= 500) break;
  }
  let [best, most] = [0, 0];
  for (const [at] of places) {
    const n = new Set(places.filter(([other]) => other >= at && other - at < SNIPPET).map(([, word]) => word)).size;
    if (n > most) [best, most] = [at, n];
  }
  const start = Math.max(0, best - SNIPPET / 4);
  const space = text.indexOf(" ", start);
  return start && space >= 0 && space < best ? space + 1 : 0;
}

// A text as nodes, with the words of a query marked.
function highlighted(text, query) {
  const parts = query ? parseQuery(query).filter((part) => !part.isExcluded) : [];
  if (!parts.length) return [plain(text)];
  const isFound = (token) => parts.some((part) => part.words.some((word) => weightOf(token, word, part)));
  const nodes = [];
  let last = 0;
  for (const match of text.matchAll(RUNS)) {
    if (!tokensOfText(match[0]).some(isFound)) continue;
    nodes.push(plain(text.slice(last, match.index)), make("mark", match[0]));
    last = match.index + match[0].length;
  }
  return [...nodes, plain(text.slice(last))];
}
