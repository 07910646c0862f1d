// The regions of the map: which region a window or an item belongs to at each level, and how places are called.

class Regions {
  constructor({ regions, grid, items }) {
    Object.assign(this, { list: regions.list, cells: regions.levels, isEmpty: regions.is_empty, grid });
    this.nLevels = regions.levels.length;
    this.finest = regions.item;
    this.byLevel = regions.levels.map((_, level) => this.list.filter((region) => region.level === level));
    this.hues = this.chooseHues();
    this.n = items.n;
  }

  // The region of an item at a level.
  of(item, level) {
    return this.above(this.finest[item], level);
  }

  above(id, level) {
    while (this.list[id].level > level) id = this.list[id].parent;
    return id;
  }

  children(id) {
    return this.list.filter((region) => region.parent === id);
  }

  members(id) {
    const { level } = this.list[id];
    const found = [];
    for (let i = 0; i < this.n; i++) if (this.of(i, level) === id) found.push(i);
    return found;
  }

  // The number of shown items of every region.
  counts(isShown) {
    const counts = new Uint32Array(this.list.length);
    for (let i = 0; i < this.n; i++) if (isShown[i]) counts[this.finest[i]]++;
    for (let id = this.list.length - 1; id >= 0; id--) if (this.list[id].parent !== null) counts[this.list[id].parent] += counts[id];
    return counts;
  }

  // Names from the coarsest region to this one; a region that is all of a coarser one has its name once.
  path(id) {
    const names = [];
    for (let at = id; at !== null; at = this.list[at].parent) if (names[0] !== this.list[at].name) names.unshift(this.list[at].name);
    return names;
  }

  // What a window is called: the finest region, and the coarsest one around it.
  placeName([row, column]) {
    const path = this.path(this.cells[this.nLevels - 1][row * this.grid[1] + column]);
    return path.length > 1 ? `${path[path.length - 1]} (in ${path[0]})` : path[0];
  }

  // Hues by region: coarse ones far from each other, finer ones near that of the region around them.
  chooseHues() {
    const hues = new Float32Array(this.list.length);
    for (const region of this.list) {
      if (region.parent === null) hues[region.id] = (25 + (360 * region.id * 3) / (this.byLevel[0].length * (this.byLevel[0].length % 3 ? 1 : 3))) % 360;
      else {
        const siblings = this.children(region.parent).map((other) => other.id);
        const [k, n] = [siblings.indexOf(region.id), siblings.length];
        hues[region.id] = hues[region.parent] + (n > 1 ? (k / (n - 1) - 0.5) * (region.level === 1 ? 26 : 12) : 0);
      }
    }
    return hues;
  }
}
