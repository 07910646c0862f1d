// Distances on the torus.

function wrap(x, n) {
  return ((x % n) + n) % n;
}

// The way from one coordinate to another that does not go the long way round.
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

// Three decimals, as the table of items has them: then the page and the JSON views agree on who is nearest.
function distance(a, b, grid) {
  return Math.round(Math.hypot(shortest(a[0], b[0], grid[0]), shortest(a[1], b[1], grid[1])) * 1000) / 1000;
}
