// Lines around items on the torus.

const MOST_CORNERS = 48;

// A line with few corners, in hundredths of a cell, so that it fits into an address.
function simplified(points) {
  const step = Math.max(1, points.length / MOST_CORNERS);
  const kept = [];
  for (let k = 0; k < points.length; k += step) kept.push(points[Math.floor(k)].map((at) => Math.round(at * 100) / 100));
  return kept;
}

// Whether a point is inside a closed line, by the number of its edges to the right of the point.
function isInside([row, column], corners) {
  let inside = false;
  for (let i = 0, j = corners.length - 1; i < corners.length; j = i++) {
    const [a, b] = [corners[i], corners[j]];
    if (a[0] > row !== b[0] > row && column < ((b[1] - a[1]) * (row - a[0])) / (b[0] - a[0]) + a[1]) inside = !inside;
  }
  return inside;
}

// The items inside a line; it may go over the edge of the torus, and round it more than once.
function itemsInside(map, corners) {
  const bounds = [0, 1].map((axis) => {
    const along = corners.map((corner) => corner[axis]);
    return [Math.min(...along), Math.max(...along)];
  });
  const found = [];
  map.places.forEach((place, item) => {
    if (!map.isShown[item]) return;
    const firsts = place.map((at, axis) => bounds[axis][0] + wrap(at - bounds[axis][0], map.grid[axis]));
    for (let row = firsts[0]; row <= bounds[0][1]; row += map.isBand ? Infinity : map.grid[0])
      for (let column = firsts[1]; column <= bounds[1][1]; column += map.grid[1])
        if (isInside([row, column], corners)) return found.push(item);
  });
  return found;
}

// A lasso as it is in the address, and back; null if it makes no sense.
function lassoText(corners) {
  return corners.map((corner) => corner.map((at) => Number(at.toFixed(2))).join(" ")).join(",");
}

function lassoOf(text) {
  const corners = (text || "").split(",").map((corner) => corner.trim().split(/\s+/).map(Number));
  const isRight = corners.length > 2 && corners.length <= 4 * MOST_CORNERS && corners.every((corner) => corner.length === 2 && corner.every((at) => Number.isFinite(at) && Math.abs(at) < 1e5));
  return isRight ? corners : null;
}
