// The ground of the map: land where items lie, tinted by region, and calm water where hardly any do.

const FINEST = 12; // pixels a cell of the picture of the land
const COAST = 0.16; // fraction of the mean density from which on there is land

// The land as a picture of the whole torus.
class Land {
  constructor(map) {
    const { grid, places, regions } = map;
    this.factor = Math.max(2, Math.min(FINEST, Math.floor(420 / Math.max(...grid))));
    this.size = grid.map((length) => length * this.factor);
    this.density = this.densityOf(places);
    this.labels = regions.cells.map((cells) => fineLabels(cells, grid, this.factor, map.middle));
    this.borders = this.labels.map((labels) => borderPath(labels, this.size, this.factor));
  }

  // How many items lie around every pixel, as a fraction of the mean.
  densityOf(places) {
    const [rows, columns] = this.size;
    const counts = new Float32Array(rows * columns);
    for (const [row, column] of places) counts[wrap(Math.floor(row * this.factor), rows) * columns + wrap(Math.floor(column * this.factor), columns)]++;
    const soft = blurredTorus(counts, this.size, this.factor * 0.75);
    const mean = places.length / counts.length || 1;
    return soft.map((value) => value / mean);
  }

  densityAt(place) {
    const [row, column] = place.map((at, axis) => wrap(Math.floor(at * this.factor), this.size[axis]));
    return this.density[row * this.size[1] + column];
  }

  // Paint with a color for each region of a level, or null for plain land.
  picture(style, isDark, tint, level) {
    const [rows, columns] = this.size;
    const picture = document.createElement("canvas");
    [picture.width, picture.height] = [columns, rows];
    const context = picture.getContext("2d");
    const pixels = context.createImageData(columns, rows);
    const [water, low, high] = ["water", "low", "high"].map((name) => colorOf(style[name]));
    const colors = new Map();
    for (let k = 0; k < this.density.length; k++) {
      const height = this.density[k];
      const coast = smoothstep(COAST * 0.6, COAST * 1.5, height);
      const rise = Math.min(1, Math.sqrt(height) / 1.8);
      const id = this.labels[level][k];
      if (!colors.has(id)) colors.set(id, tint(id));
      const color = colors.get(id);
      const land = color ? mixed(low, color, (isDark ? 0.4 : 0.45) + 0.55 * rise) : mixed(low, high, rise);
      pixels.data.set([...mixed(water, land, coast), 255], 4 * k);
    }
    context.putImageData(pixels, 0, 0);
    return picture;
  }

  // One region, in a color that lets the land through.
  mask(id, level, color) {
    const picture = document.createElement("canvas");
    [picture.width, picture.height] = [this.size[1], this.size[0]];
    const context = picture.getContext("2d");
    const pixels = context.createImageData(this.size[1], this.size[0]);
    this.labels[level].forEach((label, k) => label === id && pixels.data.set([...color, 46], 4 * k));
    context.putImageData(pixels, 0, 0);
    return picture;
  }
}

function smoothstep(from, to, value) {
  const at = Math.min(1, Math.max(0, (value - from) / (to - from)));
  return at * at * (3 - 2 * at);
}

// Three box blurs in each direction, round the torus: nearly a Gaussian of that deviation.
function blurredTorus(values, [rows, columns], deviation) {
  const radius = Math.max(1, Math.round((Math.sqrt(4 * deviation * deviation + 1) - 1) / 2));
  let now = Float32Array.from(values);
  for (let pass = 0; pass < 3; pass++) {
    now = blurredLines(now, rows, columns, columns, 1, radius);
    now = blurredLines(now, columns, rows, 1, columns, radius);
  }
  return now;
}

function blurredLines(values, nLines, length, lineStep, step, radius) {
  const soft = new Float32Array(values.length);
  const width = 2 * radius + 1;
  for (let line = 0; line < nLines; line++) {
    const first = line * lineStep;
    let sum = 0;
    for (let k = -radius; k <= radius; k++) sum += values[first + wrap(k, length) * step];
    for (let k = 0; k < length; k++) {
      soft[first + k * step] = sum / width;
      sum += values[first + ((k + radius + 1) % length) * step] - values[first + wrap(k - radius, length) * step];
    }
  }
  return soft;
}

// The region of every pixel: that which has most of the surroundings, so that borders are round.
function fineLabels(cells, grid, factor, middle) {
  const [rows, columns] = grid.map((length) => length * factor);
  const shift = middle.map((length) => Math.round(length * factor));
  const labels = new Int32Array(rows * columns);
  const most = new Float32Array(rows * columns).fill(-1);
  const radius = grid[0] === 1 ? 0 : Math.max(1, Math.round(factor * 0.62));
  for (const id of new Set(cells)) {
    const patch = patchOf(cells, grid, id);
    const inside = new Float32Array(patch.size[0] * factor * (patch.size[1] * factor));
    for (const [row, column] of patch.members)
      for (let i = 0; i < factor; i++) {
        const start = (row * factor + i) * patch.size[1] * factor + column * factor;
        inside.fill(1, start, start + factor);
      }
    const size = patch.size.map((length) => length * factor);
    let soft = inside;
    if (radius)
      for (let pass = 0; pass < 2; pass++) {
        soft = blurredLines(soft, size[0], size[1], size[1], 1, radius);
        soft = blurredLines(soft, size[1], size[0], 1, size[1], radius);
      }
    for (let i = 0; i < size[0]; i++)
      for (let j = 0; j < size[1]; j++) {
        const at = wrap(i + patch.corner[0] * factor + shift[0], rows) * columns + wrap(j + patch.corner[1] * factor + shift[1], columns);
        if (soft[i * size[1] + j] > most[at]) [most[at], labels[at]] = [soft[i * size[1] + j], id];
      }
  }
  return labels;
}

// The box around a region with a cell to spare, and its cells inside it.
function patchOf(cells, grid, id) {
  const inside = [];
  for (let k = 0; k < cells.length; k++) if (cells[k] === id) inside.push([Math.floor(k / grid[1]), k % grid[1]]);
  const spans = [0, 1].map((axis) => {
    const [start, length] = spanOn(new Set(inside.map((cell) => cell[axis])), grid[axis]);
    return length + 4 >= grid[axis] ? [0, grid[axis]] : [start - 2, length + 4];
  });
  const [corner, size] = [spans.map(([start]) => start), spans.map(([, length]) => length)];
  return { corner, size, members: inside.map((cell) => cell.map((at, axis) => wrap(at - corner[axis], grid[axis]))) };
}

// The shortest run on a circle with all that is used: its start and its length.
function spanOn(used, n) {
  const sorted = [...used].sort((a, b) => a - b);
  let [start, longest] = [sorted[0], 0];
  sorted.forEach((at, k) => {
    const gap = wrap((sorted[k + 1] ?? sorted[0]) - at - 1, n);
    if (gap > longest) [start, longest] = [sorted[(k + 1) % sorted.length], gap];
  });
  return [start, n - longest];
}
