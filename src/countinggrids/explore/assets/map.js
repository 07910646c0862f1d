// The map: a canvas over an endless plane that repeats the torus.

const FLIGHT = 260; // milliseconds to fly to a region
const FARTHEST = 0.55; // the smallest fraction of the view's shorter side that one copy of the torus takes

class MapView extends Painter {
  constructor(canvas, mapData, source) {
    super();
    Object.assign(this, { canvas, mapData, source, grid: mapData.grid });
    this.context = canvas.getContext("2d");
    this.isBand = mapData.grid[0] === 1; // a grid of one axis is a ring, and its map a band that repeats sideways only
    this.middle = mapData.window.map((length) => (length - 1) / 2);
    Object.assign(this, spread(mapData.items, mapData.grid, this.middle, Boolean(mapData.sheets)));
    this.buckets = bucketsOf(this.places, this.grid);
    this.everyItem = [...this.places.keys()];
    this.isShown = new Uint8Array(mapData.items.n).fill(1);
    this.colorOf = null; // (item) => color
    this.view = { row: mapData.start[0], column: mapData.start[1], scale: 1 };
    this.emphasized = null; // items that are drawn stronger than the others
    this.lit = null; // a posterior, drawn as heat
    this.outline = null; // the first cell of a window
    this.marked = null; // an item
    this.path = []; // items of a sequence, up to the present one
    this.tint = null; // (region) => color of its land, or null
    this.tintLevel = 0;
    this.spot = null; // a region that is open
    this.hovered = null; // a region that is pointed at
    this.isLasso = false; // whether a drag draws a line around items
    this.lasso = null; // corners of a line around items
    this.shownNames = [];
    this.writer = new NameWriter();
    this.sheets = new Map();
    this.kept = new Map(); // layouts by level
    this.widths = new Map();
    this.version = 0; // of what the items look like
    this.size = [canvas.clientWidth, canvas.clientHeight];
    this.regions = new Regions(mapData);
    this.land = new Land(this);
    this.readStyle();
    if (mapData.picture) this.loadPicture();
    this.paintLand();
  }

  get limits() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const farthest = ((this.isBand ? width : Math.min(width, height)) * FARTHEST) / Math.max(...this.grid);
    return [Math.max(farthest, 1), Math.max(140, 80 * this.densest, farthest * 2)];
  }

  // Fit one round of the torus into the view.
  whole() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const scale = Math.max(Math.min(width / this.grid[1], height / this.grid[0] / (this.isBand ? 4 : 1)), this.limits[0]);
    const [row, column] = this.mapData.start;
    this.moveTo({ row, column, scale });
  }

  moveTo({ row = this.view.row, column = this.view.column, scale = this.view.scale }, isFlight = false) {
    if (!isFlight) this.flight = (this.flight || 0) + 1;
    const [least, most] = this.limits;
    this.view = {
      row: this.isBand ? Math.min(1, Math.max(0, row)) : wrap(row, this.grid[0]),
      column: wrap(column, this.grid[1]),
      scale: Math.min(most, Math.max(least, scale)),
    };
    this.changed();
    this.onMove?.();
  }

  moveBy(down, right) {
    this.moveTo({ row: this.view.row + down / this.view.scale, column: this.view.column + right / this.view.scale });
  }

  // Zoom so that what is under a point of the screen stays there.
  zoomBy(factor, point) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const [x, y] = point || [width / 2, height / 2];
    const before = this.at(x, y);
    const [least, most] = this.limits;
    const scale = Math.min(most, Math.max(least, this.view.scale * factor));
    this.moveTo({ row: before[0] - (y - height / 2) / scale, column: before[1] - (x - width / 2) / scale, scale });
  }

  // The place on the map under a point of the screen, in cells from the upper left corner of the torus.
  at(x, y) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const { row, column, scale } = this.view;
    return [row + (y - height / 2) / scale, column + (x - width / 2) / scale];
  }

  // The window (its first cell) whose middle is nearest to a point of the screen.
  windowAt(x, y) {
    return this.at(x, y).map((place, axis) => wrap(Math.floor(place - 0.5 - this.middle[axis] + 0.5), this.grid[axis]));
  }

  // The item drawn nearest to a point of the screen, if one is near enough.
  itemAt(x, y) {
    const place = this.at(x, y);
    const { size } = this.thumbs();
    let [best, least] = [null, Infinity];
    const sheets = this.mapData.sheets;
    const consider = (item, reach) => {
      const away = [0, 1].map((axis) => Math.abs(shortest(place[axis], this.places[item][axis], this.grid[axis])));
      const far = Math.max(...away);
      if (far <= reach && far < least) [best, least] = [item, far];
    };
    if (sheets) for (const item of this.thumbs().chosen) consider(item, size / 2);
    const reach = 8 / this.view.scale;
    if (best === null) for (const i of this.around(place, reach)) if (this.isShown[i]) consider(i, reach);
    return best;
  }

  // The region whose name is under a point of the screen.
  nameAt(x, y) {
    const found = this.shownNames.filter(({ box }) => x >= box[0] && x <= box[2] && y >= box[1] && y <= box[3]);
    return found.length ? found[found.length - 1].id : null;
  }

  // Items within a square around a place, and some beside it.
  around(place, reach) {
    const ends = place.map((at) => [Math.floor(at - reach), Math.floor(at + reach)]);
    return this.within(ends);
  }

  // Items that may be in view.
  visible() {
    const [width, height] = this.size;
    const { row, column, scale } = this.view;
    const halves = [height, width].map((length) => length / 2 / scale + 0.2);
    return this.within([row, column].map((at, axis) => [Math.floor(at - halves[axis]), Math.floor(at + halves[axis])]));
  }

  // Items in the cells between two rows and two columns, each once.
  within([rows, columns]) {
    const spans = [rows, columns].map(([first, last], axis) => [first, Math.min(last - first + 1, this.grid[axis])]);
    if (spans[0][1] >= this.grid[0] && spans[1][1] >= this.grid[1]) return this.everyItem;
    const found = [];
    for (let i = 0; i < spans[0][1]; i++)
      for (let j = 0; j < spans[1][1]; j++) {
        const cell = wrap(spans[0][0] + i, this.grid[0]) * this.grid[1] + wrap(spans[1][0] + j, this.grid[1]);
        for (let k = this.buckets.start[cell]; k < this.buckets.start[cell + 1]; k++) found.push(this.buckets.items[k]);
      }
    return found;
  }

  highlight(id) {
    this.hovered = id;
    this.changed();
  }

  // The corners of the view, as a lasso.
  viewCorners() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const [top, left] = this.at(0, 0);
    const [tall, wide] = [height, width].map((length, axis) => Math.min(length / this.view.scale, this.grid[axis] - 1e-6));
    const [row, column] = [top + (height / this.view.scale - tall) / 2, left + (width / this.view.scale - wide) / 2];
    return [[row, column], [row, column + wide], [row + tall, column + wide], [row + tall, column]];
  }

  // Go to a region so that it fills most of the view, and no closer than its names need.
  fly(id) {
    const { bounds, center } = this.regions.list[id];
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const fit = 0.75 * Math.min(width / Math.max(bounds[3], 2), height / Math.max(bounds[2], this.isBand ? 1 : 2));
    const isWhole = [bounds[2], bounds[3]].map((length, axis) => length >= this.grid[axis] - 1);
    const place = [0, 1].map((axis) => (isWhole[axis] ? center[axis] + 0.5 : bounds[axis] + 0.5 + bounds[axis + 2] / 2));
    this.flyTo({ row: place[0], column: place[1], scale: Math.min(fit, NEAR * 0.95) });
  }

  // Move there in steps, by the short way round; at once for those who prefer less motion.
  flyTo({ row, column, scale }) {
    const from = { ...this.view };
    const [least, most] = this.limits;
    const to = { row: from.row + shortest(from.row, row, this.grid[0]), column: from.column + shortest(from.column, column, this.grid[1]), scale: Math.min(most, Math.max(least, scale)) };
    const flight = (this.flight = (this.flight || 0) + 1);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.moveTo(to);
    const first = performance.now();
    const step = () => {
      if (flight !== this.flight) return;
      const at = Math.min(1, (performance.now() - first) / FLIGHT);
      const eased = at * at * (3 - 2 * at);
      this.moveTo({ row: from.row + (to.row - from.row) * eased, column: from.column + (to.column - from.column) * eased, scale: from.scale * (to.scale / from.scale) ** eased }, true);
      if (at < 1) requestAnimationFrame(step);
    };
    step();
  }

  changed() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.draw();
    });
  }

  readStyle() {
    const style = getComputedStyle(document.documentElement);
    this.style = Object.fromEntries(
      ["ground", "ink", "quiet", "accent", "low", "high", "halo", "dot", "paper", "water", "border", "word"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
    );
    this.isDark = document.documentElement.dataset.theme === "dark";
  }

  restyle() {
    this.readStyle();
    this.paintLand();
    this.redraw();
  }

  forget() {
    this.kept.clear();
    this.redraw();
  }

  // Draw the items anew: something else than the view has changed.
  redraw() {
    this.version++;
    this.changed();
  }

  keep(what, level, make) {
    const key = `${what} ${level}`;
    if (!this.kept.has(key)) this.kept.set(key, make());
    return this.kept.get(key);
  }

  // Pictures are drawn unless the land shows something and one is far away.
  thumbs() {
    if (!this.mapData.sheets || (this.tint && this.view.scale < NEAR)) return { chosen: [], size: 0 };
    const level = levelOf(this.view.scale);
    return this.keep("thumbs", level, () => chooseThumbs(this, level));
  }

  // What words have taken of the map at a level.
  room(level) {
    return this.keep("room", level, () => new Room(this.grid, 60 / level));
  }

  names() {
    const level = levelOf(this.view.scale);
    return this.keep("names", level, () => chooseNames(this, level));
  }

  words() {
    this.names();
    const level = levelOf(this.view.scale);
    return this.keep("words", level, () => chooseWords(this, level));
  }

  titles() {
    const level = levelOf(this.view.scale);
    return this.keep("titles", level, () => chooseTitles(this, level));
  }

  // How wide a word is at a size of one pixel.
  widthOf(name) {
    if (!this.widths.has(name)) {
      this.context.font = `700 20px ${MAP_FONT}`;
      this.widths.set(name, this.context.measureText(plain(name)).width / 20);
    }
    return this.widths.get(name);
  }

  loadPicture() {
    this.picture = new Image();
    this.picture.onload = () => {
      this.pictures = shrunken(this.picture);
      this.changed();
    };
    this.picture.src = this.source.image("picture.jpg");
  }

  sheet(number) {
    if (!this.sheets.has(number)) {
      const image = new Image();
      const address = this.source.image(`sheet/${number}.jpg`);
      let tries = 0;
      image.onload = () => this.redraw();
      // A server that has too much to do says so; it is asked again a few times.
      image.onerror = () => (tries += 1) < 5 && setTimeout(() => (image.src = address), 2000 * tries);
      image.src = address;
      this.sheets.set(number, image);
    }
    const image = this.sheets.get(number);
    return image.complete && image.naturalWidth ? image : null;
  }

  // Where on the sheets an item's thumbnail is.
  thumbOf(item) {
    const { side, across, slot, width, height } = this.mapData.sheets;
    const [sheet, k] = [Math.floor(slot[item] / across ** 2), slot[item] % across ** 2];
    return { sheet, x: (k % across) * side, y: Math.floor(k / across) * side, width: width[item], height: height[item] };
  }

  // Call with the screen position of the torus's corner, or a point so far from it, for every round that is in view.
  rounds(use, down = 0, right = 0, extra = 0) {
    const [width, height] = this.size;
    const { row, column, scale } = this.view;
    const [tall, wide] = [this.grid[0] * scale, this.grid[1] * scale];
    const top = height / 2 - row * scale + down;
    const left = width / 2 - column * scale + right;
    const far = [tall, wide].map((length) => extra * length);
    for (let y = this.isBand ? top : top - Math.ceil(top / tall) * tall - far[0]; y < height + far[0]; y += this.isBand ? Infinity : tall)
      for (let x = left - Math.ceil(left / wide) * wide - far[1]; x < width + far[1]; x += wide) use(x, y, wide, tall);
  }

  // Call with the screen position of a place, once for every round of the torus in which it is in view.
  copies(place, reach, use) {
    const [width, height] = this.size;
    const { row, column, scale } = this.view;
    const [tall, wide] = [this.grid[0] * scale, this.grid[1] * scale];
    const y0 = height / 2 + (place[0] - row) * scale;
    const x0 = width / 2 + (place[1] - column) * scale;
    const firstX = x0 - Math.floor((x0 + reach) / wide) * wide;
    const firstY = this.isBand ? y0 : y0 - Math.floor((y0 + reach) / tall) * tall;
    for (let y = firstY; y < height + reach; y += this.isBand ? Infinity : tall)
      for (let x = firstX; x < width + reach; x += wide) use(x, y);
  }
}
