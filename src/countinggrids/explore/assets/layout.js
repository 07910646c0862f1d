// What is drawn at a zoom: which thumbnails and words have room. Zooms come in levels, so that panning changes nothing
// and zooming lets more appear in steps; between two levels everything just grows.

const LEVELS_PER_OCTAVE = 2;
const WORDS_FROM = 150; // pixels across the finest regions, from which on single words are written
const SETTLED = 0.5; // fraction of the mean density of items from which on single words are written
const NEAR = 128; // pixels a cell, from which on dots have their titles beside them

function levelOf(scale) {
  return 2 ** (Math.round(Math.log2(scale) * LEVELS_PER_OCTAVE) / LEVELS_PER_OCTAVE);
}

// Boxes on a torus that may not overlap.
class Room {
  constructor(grid, bucket) {
    this.grid = grid;
    this.n = grid.map((length) => Math.max(1, Math.floor(length / bucket)));
    this.taken = new Map();
  }

  *buckets(box) {
    const [n, size] = [this.n, this.n.map((count, axis) => this.grid[axis] / count)];
    const spans = [0, 1].map((axis) => {
      const first = Math.floor((box.at[axis] - box.half[axis]) / size[axis]);
      const last = Math.floor((box.at[axis] + box.half[axis]) / size[axis]);
      return [first, Math.min(last, first + n[axis] - 1)];
    });
    for (let i = spans[0][0]; i <= spans[0][1]; i++)
      for (let j = spans[1][0]; j <= spans[1][1]; j++) yield wrap(i, n[0]) * n[1] + wrap(j, n[1]);
  }

  isFree(box) {
    for (const bucket of this.buckets(box))
      for (const other of this.taken.get(bucket) || []) if (this.overlaps(box, other)) return false;
    return true;
  }

  // Take the room for a box if it is free.
  take(box) {
    if (!this.isFree(box)) return false;
    for (const bucket of this.buckets(box)) {
      if (!this.taken.has(bucket)) this.taken.set(bucket, []);
      this.taken.get(bucket).push(box);
    }
    return true;
  }

  overlaps(a, b) {
    return [0, 1].every((axis) => Math.abs(shortest(a.at[axis], b.at[axis], this.grid[axis])) < a.half[axis] + b.half[axis]);
  }
}

// Pictures of one cell stand in rows within it: none hides another once one is close enough. Dots are strewn over it, evenly
// but without rows to catch the eye.
function spread(items, grid, middle, hasThumbs) {
  const off = middle.map((length) => length % 1); // windows of even length have their middle between two cells
  const places = new Array(items.n);
  const inCell = new Map();
  for (let i = 0; i < items.n; i++) {
    const [row, column] = [items.row[i], items.column[i]].map((at, axis) => wrap(Math.floor(at - off[axis] + 0.5), grid[axis]));
    const cell = row * grid[1] + column;
    if (!inCell.has(cell)) inCell.set(cell, []);
    inCell.get(cell).push(i);
  }
  let densest = 1;
  const rank = new Int32Array(items.n);
  const gap = new Float32Array(items.n); // cells from an item to the next
  for (const [cell, members] of inCell) {
    const side = Math.ceil(Math.sqrt(members.length));
    densest = Math.max(densest, side);
    members.sort((a, b) => items.posterior[items.start[b]] - items.posterior[items.start[a]] || lot(a) - lot(b));
    members.forEach((item, k) => {
      const inside = hasThumbs ? [(Math.floor(k / side) + 0.5) / side, ((k % side) + 0.5) / side] : strewn(k + (cell % 97));
      places[item] = [Math.floor(cell / grid[1]) + off[0] + inside[0], (cell % grid[1]) + off[1] + inside[1]];
      rank[item] = k;
      gap[item] = 1 / side;
    });
  }
  // The surest item of every cell comes first, then every second one, and so on.
  const order = [...rank.keys()].sort((a, b) => rank[a] - rank[b] || lot(a) - lot(b));
  return { places, order, gap, densest };
}

// A number that decides between items that are alike otherwise, the same every time: by their order in the collection,
// where items of one kind follow each other, one kind would take the room of all.
function lot(item) {
  let mixed = Math.imul(item + 1, 0x9e3779b1);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}

// The items of each cell, one cell after another.
function bucketsOf(places, grid) {
  const cellOf = ([row, column]) => wrap(Math.floor(row), grid[0]) * grid[1] + wrap(Math.floor(column), grid[1]);
  const start = new Uint32Array(grid[0] * grid[1] + 1);
  for (const place of places) start[cellOf(place) + 1]++;
  for (let cell = 0; cell < grid[0] * grid[1]; cell++) start[cell + 1] += start[cell];
  const [items, next] = [new Uint32Array(places.length), start.slice()];
  places.forEach((place, item) => (items[next[cellOf(place)]++] = item));
  return { start, items };
}

// The k-th point of a sequence that fills a square evenly (Roberts' additive recurrence).
function strewn(k) {
  return [(0.5 + k * 0.7548776662466927) % 1, (0.5 + k * 0.5698402909980532) % 1];
}

// Choose the items that are shown as thumbnails at a level, emphasized ones first; the size is in cells.
function chooseThumbs({ places, order, isShown, grid, emphasized }, level) {
  const pixels = Math.min(104, Math.max(44, level * 0.95));
  const half = (pixels * 1.06) / level / 2;
  const room = new Room(grid, half * 2);
  const chosen = [];
  const ranked = emphasized ? [...order.filter((item) => emphasized.has(item)), ...order.filter((item) => !emphasized.has(item))] : order;
  for (const item of ranked) if (isShown[item] && room.take({ at: places[item], half: [half, half] })) chosen.push(item);
  return { chosen, size: pixels / level };
}

// Choose the words that are written at a level, where names leave room and the land is not empty; sizes are in cells.
function chooseWords(map, level) {
  const { grid, names, words } = map.mapData;
  const { regions } = map;
  const across = Math.sqrt((grid[0] * grid[1]) / regions.byLevel[regions.nLevels - 1].length) * level;
  if (across < WORDS_FROM) return [];
  const room = map.room(level);
  const written = map.names().flatMap((name) => name.lines.flatMap((line) => line.split(", ").map((word) => ({ word, at: name.at }))));
  const near = new Map();
  for (const { word, at } of written) near.set(word, [...(near.get(word) || []), at]);
  const chosen = [];
  const apart = Math.max(260, level * 2.5);
  for (const [name, row, column, weight] of words) {
    const pixels = 10.5 + 3.5 * Math.sqrt(Math.min(1, weight));
    const at = [row + 0.5, column + 0.5];
    const cell = at.map((place, axis) => wrap(Math.floor(place - 0.5 - map.middle[axis] + 0.5), grid[axis]));
    if (regions.isEmpty[cell[0] * grid[1] + cell[1]] || map.land.densityAt(at) < SETTLED) continue;
    const others = near.get(names[name]) || [];
    if (others.some((other) => distance(at, other, grid) * level < apart)) continue;
    const half = [(pixels * 1.35) / level / 2, (map.widthOf(names[name]) * pixels + 14) / level / 2];
    if (half[0] * 2 > grid[0] || half[1] * 2 > grid[1] || !room.take({ at, half })) continue;
    near.set(names[name], [...others, at]);
    chosen.push({ name: names[name], at, size: pixels / level });
  }
  return chosen;
}

// Choose the titles that are written beside their dots, where words leave room.
function chooseTitles(map, level) {
  const pixels = 11;
  const chosen = [];
  if (level < NEAR) return chosen;
  const dots = new Room(map.grid, 40 / level);
  for (const item of map.order) if (map.isShown[item]) dots.take({ at: map.places[item], half: [4 / level, 4 / level] });
  for (const item of map.order) {
    if (!map.isShown[item]) continue;
    const text = shortened(map.mapData.items.lead?.[item] || map.mapData.items.title[item], 34);
    const wide = (map.widthOf(text) * pixels) / level;
    const [row, column] = map.places[item];
    const box = { at: [row, column + 9 / level + wide / 2], half: [(pixels * 0.7) / level, wide / 2 + 2 / level] };
    if (wide < map.grid[1] / 2 && dots.isFree(box) && map.room(level).take(box)) chosen.push({ name: text, at: box.at, size: pixels / level });
  }
  return chosen;
}

function shortened(text, length) {
  return text.length > length ? `${text.slice(0, length).trimEnd()}…` : text;
}
