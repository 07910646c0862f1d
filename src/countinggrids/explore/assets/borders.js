// Borders of regions as smooth lines.

// All borders of an image of labels on a torus as one path, in cells.
function borderPath(labels, size, factor) {
  const path = new Path2D();
  for (const chain of chainsOf(labels, size)) {
    const line = smoothed(smoothed(chain));
    line.forEach(([row, column], k) => path[k ? "lineTo" : "moveTo"](column / factor, row / factor));
  }
  return path;
}

// The edges between different pixels, joined to chains that end where three regions meet. Corners are [row, column]; a
// chain that goes over the edge of the torus goes on beyond it.
function chainsOf(labels, [rows, columns]) {
  const at = (row, column) => labels[wrap(row, rows) * columns + wrap(column, columns)];
  // The steps from a corner along which there is a border: right, down, left, up.
  const steps = [[0, 1], [1, 0], [0, -1], [-1, 0]];
  const isBorder = (row, column, k) => {
    if (k === 0) return at(row - 1, column) !== at(row, column);
    if (k === 1) return at(row, column - 1) !== at(row, column);
    if (k === 2) return at(row - 1, column - 1) !== at(row, column - 1);
    return at(row - 1, column - 1) !== at(row - 1, column);
  };
  const number = (row, column) => wrap(row, rows) * columns + wrap(column, columns);
  const edge = (row, column, k) => (k < 2 ? number(row, column) * 2 + k : number(row + steps[k][0], column + steps[k][1]) * 2 + (k - 2));
  const degree = (row, column) => [0, 1, 2, 3].filter((k) => isBorder(row, column, k)).length;
  const used = new Uint8Array(rows * columns * 2);
  const walk = (row, column, first) => {
    const chain = [[row, column]];
    let k = first;
    while (!used[edge(row, column, k)]) {
      used[edge(row, column, k)] = 1;
      row += steps[k][0];
      column += steps[k][1];
      chain.push([row, column]);
      if (degree(row, column) !== 2) break;
      k = [0, 1, 2, 3].find((next) => isBorder(row, column, next) && !used[edge(row, column, next)]);
      if (k === undefined) break;
    }
    return chain;
  };
  const chains = [];
  const each = (isStart) => {
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) {
        if (!isStart(row, column)) continue;
        for (let k = 0; k < 4; k++) if (isBorder(row, column, k) && !used[edge(row, column, k)]) chains.push(walk(row, column, k));
      }
  };
  each((row, column) => degree(row, column) > 2);
  each((row, column) => degree(row, column) === 2);
  return chains;
}

// Average along a chain; its ends stay.
function smoothed(chain) {
  const reach = 3;
  return chain.map((point, k) => {
    const half = Math.min(reach, k, chain.length - 1 - k);
    const sum = [0, 0];
    for (let j = k - half; j <= k + half; j++) {
      sum[0] += chain[j][0];
      sum[1] += chain[j][1];
    }
    return sum.map((total) => total / (2 * half + 1));
  });
}
