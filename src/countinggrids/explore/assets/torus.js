// Distances on the torus.

function wrap(x, n) {
  return ((x % n) + n) % n;
}

// The shortest displacement from one coordinate to another.
function shortest(from, to, n) {
  const way = wrap(to - from, n);
  return way > n / 2 ? way - n : way;
}

// The largest of many numbers; spreading them over arguments would overflow the stack.
function largest(values) {
  let most = -Infinity;
  for (const value of values) if (value > most) most = value;
  return most;
}

// Rounded to three decimals, as in the table of items, so that the page and the JSON views agree on neighbors.
function distance(a, b, grid) {
  return Math.round(Math.hypot(shortest(a[0], b[0], grid[0]), shortest(a[1], b[1], grid[1])) * 1000) / 1000;
}
