// The map itself: a canvas over an endless plane that repeats the torus.

const PATCHES_FROM = 40; // pixels a cell, from which on single patches are drawn
const FARTHEST = 0.55; // the smallest share of the view's shorter side that one round of the torus may take

class MapView {
  constructor(canvas, chart, source) {
    Object.assign(this, { canvas, chart, source, grid: chart.grid });
    this.context = canvas.getContext("2d");
    this.isBand = chart.grid[0] === 1; // a grid of one axis is a ring, and its map a band that repeats sideways only
    this.middle = chart.window.map((length) => (length - 1) / 2);
    Object.assign(this, spread(chart.items, chart.grid, this.middle, Boolean(chart.sheets)));
    this.isShown = new Uint8Array(chart.items.n).fill(1);
    this.colourOf = null; // (item) => colour
    this.view = { row: chart.start[0], column: chart.start[1], scale: 1 };
    this.lit = null; // a posterior, drawn as heat
    this.outline = null; // the first cell of a window
    this.marked = null; // an item
    this.path = []; // items of a sequence, up to the present one
    this.sheets = new Map();
    this.kept = new Map(); // layouts by level
    this.widths = new Map();
    this.readStyle();
    if (chart.picture) this.loadPicture();
    this.drawUsage();
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
    const [row, column] = this.chart.start;
    this.moveTo({ row, column, scale });
  }

  moveTo({ row = this.view.row, column = this.view.column, scale = this.view.scale }) {
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
    const sheets = this.chart.sheets;
    const consider = (item, reach) => {
      const away = [0, 1].map((axis) => Math.abs(shortest(place[axis], this.places[item][axis], this.grid[axis])));
      const far = Math.max(...away);
      if (far <= reach && far < least) [best, least] = [item, far];
    };
    if (sheets) for (const item of this.thumbs().chosen) consider(item, size / 2);
    if (best === null) for (let i = 0; i < this.isShown.length; i++) if (this.isShown[i]) consider(i, 8 / this.view.scale);
    return best;
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
      ["ground", "ink", "quiet", "accent", "low", "high", "halo", "dot", "paper"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
    );
    this.isDark = document.documentElement.dataset.theme === "dark";
  }

  restyle() {
    this.readStyle();
    this.drawUsage();
    this.changed();
  }

  forget() {
    this.kept.clear();
    this.changed();
  }

  keep(what, level, make) {
    const key = `${what} ${level}`;
    if (!this.kept.has(key)) this.kept.set(key, make());
    return this.kept.get(key);
  }

  thumbs() {
    if (!this.chart.sheets) return { chosen: [], size: 0 };
    const level = levelOf(this.view.scale);
    return this.keep("thumbs", level, () => chooseThumbs(this.places, this.order, this.isShown, this.grid, level));
  }

  // What words have taken of the map at a level.
  room(level) {
    return this.keep("room", level, () => new Room(this.grid, 60 / level));
  }

  words() {
    const level = levelOf(this.view.scale);
    return this.keep("words", level, () => chooseWords(this.chart, level, (name) => this.widthOf(name), this.room(level)));
  }

  titles() {
    const level = levelOf(this.view.scale);
    return this.keep("titles", level, () => chooseTitles(this, level));
  }

  // How wide a word is at a size of one pixel.
  widthOf(name) {
    if (!this.widths.has(name)) {
      this.context.font = "600 20px system-ui, sans-serif";
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
      image.onload = () => this.changed();
      image.src = this.source.image(`sheet/${number}.jpg`);
      this.sheets.set(number, image);
    }
    const image = this.sheets.get(number);
    return image.complete && image.naturalWidth ? image : null;
  }

  // Where on the sheets an item's thumbnail is.
  thumbOf(item) {
    const { side, across, slot, width, height } = this.chart.sheets;
    const [sheet, k] = [Math.floor(slot[item] / across ** 2), slot[item] % across ** 2];
    return { sheet, x: (k % across) * side, y: Math.floor(k / across) * side, width: width[item], height: height[item] };
  }

  draw() {
    const { canvas, context } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.style.ground;
    context.fillRect(0, 0, width, height);
    this.drawGround();
    if (this.lit) this.drawHeat();
    if (this.outline) this.drawWindow(this.outline, this.style.accent);
    this.drawDots();
    this.drawThumbs();
    this.drawWords();
    if (this.path.length) this.drawPath();
    if (this.marked !== null) this.drawMark(this.marked);
    if (this.hasCross) this.drawCross();
  }

  // Call with the screen position of the torus's corner, or a point so far from it, for every round that is in view.
  rounds(use, down = 0, right = 0) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const { row, column, scale } = this.view;
    const [tall, wide] = [this.grid[0] * scale, this.grid[1] * scale];
    const top = height / 2 - row * scale + down;
    const left = width / 2 - column * scale + right;
    for (let y = this.isBand ? top : top - Math.ceil(top / tall) * tall; y < height; y += this.isBand ? Infinity : tall)
      for (let x = left - Math.ceil(left / wide) * wide; x < width; x += wide) use(x, y, wide, tall);
  }

  // Call with the screen position of a place, once for every round of the torus in which it is in view.
  copies(place, reach, use) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const { row, column, scale } = this.view;
    const [tall, wide] = [this.grid[0] * scale, this.grid[1] * scale];
    const y0 = height / 2 + (place[0] - row) * scale;
    const x0 = width / 2 + (place[1] - column) * scale;
    const firstX = x0 - Math.floor((x0 + reach) / wide) * wide;
    const firstY = this.isBand ? y0 : y0 - Math.floor((y0 + reach) / tall) * tall;
    for (let y = firstY; y < height + reach; y += this.isBand ? Infinity : tall)
      for (let x = firstX; x < width + reach; x += wide) use(x, y);
  }

  drawGround() {
    const { context } = this;
    context.imageSmoothingEnabled = true;
    if (!this.pictures) {
      this.drawCells(this.usage);
      return;
    }
    const wanted = this.grid[1] * this.view.scale * (window.devicePixelRatio || 1);
    const picture = this.pictures.find((each) => each.width <= wanted * 1.5) || this.pictures[this.pictures.length - 1];
    this.rounds((x, y, wide, tall) => context.drawImage(picture, Math.floor(x), Math.floor(y), Math.ceil(wide) + 1, Math.ceil(tall) + 1));
    if (this.chart.painted.n && this.view.scale > PATCHES_FROM) this.drawPatches();
    context.fillStyle = this.isDark ? "#0005" : "#fff4";
    context.fillRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
  }

  // From near, every cell shows the four patches it holds most of.
  drawPatches() {
    const { context, chart, view } = this;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const image = this.source.patches;
    if (!image.complete) return image.addEventListener("load", () => this.changed(), { once: true });
    const [first, last] = [this.at(0, 0), this.at(width, height)].map((corner) => corner.map(Math.floor));
    const half = view.scale / 2;
    context.globalAlpha = Math.min(0.7, view.scale / PATCHES_FROM - 1);
    for (let row = first[0]; row <= last[0]; row++)
      for (let column = first[1]; column <= last[1]; column++) {
        const cell = wrap(row, this.grid[0]) * this.grid[1] + wrap(column, this.grid[1]);
        const [x, y] = [width / 2 + (column - view.column) * view.scale, height / 2 + (row - view.row) * view.scale];
        for (let k = 0; k < chart.painted.n; k++) {
          const left = chart.feature[chart.painted.name[cell * chart.painted.n + k]] * chart.patch;
          context.drawImage(image, left, 0, chart.patch, chart.patch, x + (k % 2) * half, y + Math.floor(k / 2) * half, half, half);
        }
      }
    context.globalAlpha = 1;
  }

  // Draw a picture with a pixel a window at the windows' middles.
  drawCells(picture) {
    const [down, right] = this.middle.map((length) => length * this.view.scale);
    this.rounds((x, y, wide, tall) => this.context.drawImage(picture, 1, 1, picture.width - 2, picture.height - 2, x, y, wide, tall), down, right);
  }

  // The usage of the grid as soft hills, one pixel a cell and a border that repeats the other side.
  drawUsage() {
    const [low, high] = [colourOf(this.style.low), colourOf(this.style.high)];
    const hills = blurred(this.chart.usage, this.grid);
    const top = largest(hills) || 1;
    this.usage = cellsPicture(this.grid, (cell) => {
      const share = Math.sqrt(hills[cell] / top);
      return [...[0, 1, 2].map((i) => low[i] + (high[i] - low[i]) * share), 255];
    });
  }

  drawHeat() {
    const { context } = this;
    if (this.litPicture?.of !== this.lit) {
      const values = new Float32Array(this.grid[0] * this.grid[1]);
      for (const [row, column, share] of this.lit) values[row * this.grid[1] + column] += share;
      const soft = blurred(values, this.grid);
      const top = largest(soft) || 1;
      const heat = cellsPicture(this.grid, (cell) => [235, 94, 20, 225 * Math.sqrt(soft[cell] / top)]);
      this.litPicture = { of: this.lit, heat };
    }
    context.fillStyle = this.isDark ? "#0006" : "#fff6";
    context.fillRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    this.drawCells(this.litPicture.heat);
  }

  drawDots() {
    const { context, view } = this;
    const largest = Math.min(5, Math.max(1.3, view.scale * 0.055));
    const hidden = new Set(this.thumbs().chosen);
    const groups = new Map();
    for (let i = 0; i < this.places.length; i++) {
      if (!this.isShown[i] || hidden.has(i)) continue;
      const colour = this.colourOf ? this.colourOf(i) : this.style.dot;
      if (!groups.has(colour)) groups.set(colour, []);
      groups.get(colour).push(i);
    }
    context.globalAlpha = this.colourOf ? 0.9 : 0.55;
    for (const [colour, members] of groups) {
      context.fillStyle = colour;
      for (const item of members) {
        const radius = Math.min(largest, Math.max(0.6, this.gap[item] * view.scale * 0.36));
        this.copies(this.places[item], radius, (x, y) => this.drawDot(x, y, radius));
      }
    }
    context.globalAlpha = 1;
  }

  drawDot(x, y, radius) {
    const { context } = this;
    if (radius < 2.5) return context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
  }

  drawThumbs() {
    if (!this.chart.sheets) return;
    const { context } = this;
    const { chosen, size } = this.thumbs();
    const pixels = size * this.view.scale;
    for (const item of chosen) {
      const thumb = this.thumbOf(item);
      const scale = pixels / Math.max(thumb.width, thumb.height);
      const [wide, tall] = [thumb.width * scale, thumb.height * scale];
      this.copies(this.places[item], pixels / 2, (x, y) => {
        const image = this.sheet(thumb.sheet);
        const [left, top] = [x - wide / 2, y - tall / 2];
        context.fillStyle = this.colourOf ? this.colourOf(item) : this.style.paper;
        const border = this.colourOf ? 2.5 : 1;
        context.fillRect(left - border, top - border, wide + 2 * border, tall + 2 * border);
        if (image) context.drawImage(image, thumb.x, thumb.y, thumb.width, thumb.height, left, top, wide, tall);
        else {
          context.fillStyle = this.style.low;
          context.fillRect(left, top, wide, tall);
        }
      });
    }
  }

  drawWords() {
    const { context } = this;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.strokeStyle = this.style.halo;
    context.fillStyle = this.style.ink;
    for (const word of this.words()) this.write(word, "600");
    if (this.chart.sheets) return;
    context.fillStyle = this.style.quiet;
    for (const title of this.titles()) this.write(title, "400");
  }

  write({ name, at, size }, weight) {
    const { context } = this;
    const pixels = size * this.view.scale;
    this.copies(at, (this.widthOf(name) * pixels) / 2 + 4, (x, y) => {
      context.font = `${weight} ${pixels.toFixed(1)}px system-ui, sans-serif`;
      context.lineWidth = Math.max(2.5, pixels / 6);
      context.strokeText(plain(name), x, y);
      context.fillText(plain(name), x, y);
    });
  }

  drawWindow(corner, colour) {
    const { context, view } = this;
    const [tall, wide] = this.chart.window.map((length) => length * view.scale);
    context.strokeStyle = colour;
    context.lineWidth = 2;
    this.copies(corner, Math.max(tall, wide), (x, y) => context.strokeRect(x, y, wide, tall));
  }

  drawMark(item) {
    const { context, view } = this;
    const { size, chosen } = this.thumbs();
    const half = Math.max(9, chosen.includes(item) ? (size * view.scale) / 2 + 4 : 0);
    context.lineWidth = 3;
    this.copies(this.places[item], half, (x, y) => {
      context.strokeStyle = this.style.halo;
      context.strokeRect(x - half - 1.5, y - half - 1.5, 2 * half + 3, 2 * half + 3);
      context.strokeStyle = this.style.accent;
      context.strokeRect(x - half, y - half, 2 * half, 2 * half);
    });
  }

  // The way so far, newest last; every step takes the short way round.
  drawPath() {
    const { context, view } = this;
    const points = [[0, 0]];
    for (let i = this.path.length - 1; i > 0; i--) {
      const [to, from] = [this.places[this.path[i]], this.places[this.path[i - 1]]];
      const last = points[points.length - 1];
      points.push([0, 1].map((axis) => last[axis] + shortest(to[axis], from[axis], this.grid[axis])));
    }
    const reach = Math.max(...points.map((point) => Math.hypot(...point))) * view.scale + 10;
    context.lineCap = "round";
    this.copies(this.places[this.path[this.path.length - 1]], reach, (x, y) => {
      for (const [width, colour] of [[6, this.style.halo], [3, this.style.accent]]) {
        context.lineWidth = width;
        context.strokeStyle = colour;
        for (let i = points.length - 1; i > 0; i--) {
          context.globalAlpha = Math.max(0.15, 1 - i / 40);
          context.beginPath();
          context.moveTo(x + points[i][1] * view.scale, y + points[i][0] * view.scale);
          context.lineTo(x + points[i - 1][1] * view.scale, y + points[i - 1][0] * view.scale);
          context.stroke();
        }
      }
      context.globalAlpha = 1;
      context.fillStyle = this.style.accent;
      context.beginPath();
      context.arc(x, y, 6, 0, 2 * Math.PI);
      context.fill();
    });
  }

  drawCross() {
    const { context } = this;
    const [x, y] = [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2];
    context.strokeStyle = this.style.accent;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x - 12, y);
    context.lineTo(x + 12, y);
    context.moveTo(x, y - 12);
    context.lineTo(x, y + 12);
    context.stroke();
  }
}

// One pixel a cell, with a border of one cell that repeats the other side: so smoothing knows no edge.
function cellsPicture(grid, colour) {
  const [rows, columns] = grid;
  const picture = document.createElement("canvas");
  picture.width = columns + 2;
  picture.height = rows + 2;
  const context = picture.getContext("2d");
  const pixels = context.createImageData(columns + 2, rows + 2);
  for (let i = 0; i < rows + 2; i++)
    for (let j = 0; j < columns + 2; j++)
      pixels.data.set(colour(wrap(i - 1, rows) * columns + wrap(j - 1, columns)), 4 * (i * (columns + 2) + j));
  context.putImageData(pixels, 0, 0);
  return picture;
}

// A blur over three by three cells, round the torus.
function blurred(values, [rows, columns]) {
  const soft = new Float32Array(values.length);
  const weights = [0.25, 0.5, 0.25];
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++)
      for (let a = -1; a <= 1; a++)
        for (let b = -1; b <= 1; b++)
          soft[i * columns + j] += weights[a + 1] * weights[b + 1] * values[wrap(i + a, rows) * columns + wrap(j + b, columns)];
  return soft;
}

// The picture and its halves, largest first: a far view draws a small one.
function shrunken(image) {
  const found = [image];
  let last = image;
  while (last.width > 96) {
    const half = document.createElement("canvas");
    half.width = Math.ceil(last.width / 2);
    half.height = Math.ceil(last.height / 2);
    half.getContext("2d").drawImage(last, 0, 0, half.width, half.height);
    found.push(half);
    last = half;
  }
  return found;
}

function colourOf(text) {
  const digits = text.replace("#", "");
  return [0, 2, 4].map((i) => parseInt(digits.slice(i, i + 2), 16));
}

// Text as it is safe to show: marks that would turn the direction of writing round, and control characters, are spelled out.
function plain(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (mark) => {
    return `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
