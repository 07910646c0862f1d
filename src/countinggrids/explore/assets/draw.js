// Drawing, layer by layer: ground, posterior, dots, thumbnails, words, names, paths.

const PATCHES_FROM = 40; // pixels a cell, from which on single patches are drawn
const LARGEST_ROUND = 6e6; // pixels of the torus up to which its items are kept as one picture
const MAP_FONT = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', 'Liberation Sans', Arial, system-ui, sans-serif";
const MOST_ROUND = 20000; // dots up to which small ones are round; more are squares, which are faster

class Painter {
  draw() {
    const { canvas, context } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    this.size = [width, height];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.style.ground;
    context.fillRect(0, 0, width, height);
    this.drawGround();
    if (this.lit) this.drawHeat();
    if ((this.hovered ?? this.spot) !== null) this.drawSpot(this.hovered ?? this.spot);
    this.drawItems(ratio);
    this.drawFrame();
    if (this.outline) this.drawWindow(this.outline, this.style.accent);
    this.drawNames(ratio);
    if (this.lasso) this.drawLasso(this.lasso);
    if (this.path.length) this.drawPath();
    if (this.marked !== null) this.drawMark(this.marked);
    if (this.hasCross) this.drawCross();
  }

  // Borders, dots, thumbnails and words. While only the place of the view changes they come from one picture of the torus.
  drawItems(ratio) {
    const { context } = this;
    const round = this.roundAt(ratio);
    if (!round) return this.drawLayers();
    const even = (length) => Math.round(length * ratio) / ratio;
    this.rounds((x, y) => context.drawImage(round, even(x), even(y), round.width / ratio, round.height / ratio));
  }

  drawLayers() {
    if (!this.mapData.sheets) this.drawBorders();
    this.drawDots();
    this.drawThumbs();
    if (this.mapData.sheets) this.drawBorders();
    this.drawWords();
  }

  // The level of the regions whose borders are drawn strongest: the finest that is named.
  borderLevel() {
    const named = this.names().map((name) => name.level);
    return named.length ? Math.max(...named) : 0;
  }

  drawBorders() {
    const { context, view, land } = this;
    const level = this.borderLevel();
    const isPhotos = Boolean(this.mapData.sheets) && !this.tint;
    for (let k = Math.min(level, land.borders.length - 1); k >= 0; k--) {
      const isFine = k === level && level > 0;
      this.rounds((x, y) => {
        context.save();
        context.translate(x, y);
        context.scale(view.scale, view.scale);
        for (const [width, color, alpha] of isPhotos ? [[5, this.style.halo, 0.75], [1.6, this.style.ink, 0.7]] : [[k === 0 ? 1.6 : 1, this.style.border, k === 0 ? 0.9 : 0.55]]) {
          if (isPhotos && k > 0) continue;
          context.globalAlpha = isFine ? alpha * 0.8 : alpha;
          context.strokeStyle = color;
          context.lineWidth = width / view.scale;
          context.setLineDash(k > 0 && !isPhotos ? [4 / view.scale, 3 / view.scale] : []);
          context.stroke(land.borders[k]);
        }
        context.restore();
      }, 0, 0, 1);
    }
  }

  // Every place lies once inside a frame around the middle of the view; beyond it the map repeats, and is dimmed.
  drawFrame() {
    const { context } = this;
    const [width, height] = this.size;
    const [tall, wide] = this.grid.map((length) => length * this.view.scale);
    const band = height / 2 - this.view.row * this.view.scale;
    const [left, top] = [Math.max(-2, (width - wide) / 2), this.isBand ? band : Math.max(-2, (height - tall) / 2)];
    if (left < 0 && (top < 0 || this.isBand)) return;
    const [right, bottom] = [width - left, this.isBand ? band + tall : height - top];
    context.fillStyle = this.style.ground;
    context.globalAlpha = 0.72;
    if (!this.isBand) {
      context.fillRect(0, 0, width, top);
      context.fillRect(0, bottom, width, top);
    }
    context.fillRect(0, top, left, bottom - top);
    context.fillRect(right, top, left, bottom - top);
    context.globalAlpha = 1;
    context.strokeStyle = this.style.quiet;
    context.lineWidth = 1;
    context.strokeRect(Math.round(left) + 0.5, Math.round(top) + 0.5, Math.round(right - left) - 1, Math.round(bottom - top) - 1);
  }

  // Where on the screen the copy of a place is that is nearest to the middle of the view.
  onScreen(place) {
    const { row, column, scale } = this.view;
    return [
      this.size[0] / 2 + shortest(column, place[1], this.grid[1]) * scale,
      this.size[1] / 2 + (this.isBand ? place[0] - row : shortest(row, place[0], this.grid[0])) * scale,
    ];
  }

  drawNames(ratio) {
    const level = this.borderLevel();
    this.shownNames = [];
    for (const { name, at: [x, y], half: [tall, wide] } of namesOnScreen(this).reverse()) {
      if (x + wide < 0 || x - wide > this.size[0] || y + tall < 0 || y - tall > this.size[1]) continue;
      const isFaint = Boolean(this.lit || this.emphasized) || name.level < level - 1;
      this.writer.draw(this.context, name, [x, y], this.view.scale, ratio, this.style, isFaint);
      this.shownNames.push({ id: name.id, box: [x - wide, y - tall, x + wide, y + tall] });
    }
  }

  // Light up a region.
  drawSpot(id) {
    const { context, land, view } = this;
    const key = `${id} ${this.isDark}`;
    if (this.spotPicture?.key !== key) this.spotPicture = { key, picture: land.mask(id, this.regions.list[id].level, colorOf(this.style.accent)) };
    const pattern = context.createPattern(this.spotPicture.picture, "repeat");
    const scale = view.scale / land.factor;
    const [left, top] = [this.size[0] / 2 - view.column * view.scale, this.size[1] / 2 - view.row * view.scale];
    pattern.setTransform(new DOMMatrix([scale, 0, 0, scale, left, top]));
    context.fillStyle = pattern;
    context.fillRect(0, this.isBand ? top : 0, this.size[0], this.isBand ? view.scale : this.size[1]);
  }

  drawLasso(points) {
    const { context, view } = this;
    context.lineWidth = 2;
    context.lineJoin = "round";
    const first = this.onScreen(points[0]);
    context.beginPath();
    points.forEach(([row, column], k) => {
      const [x, y] = [first[0] + (column - points[0][1]) * view.scale, first[1] + (row - points[0][0]) * view.scale];
      if (k) context.lineTo(x, y);
      else context.moveTo(x, y);
    });
    context.closePath();
    context.fillStyle = this.style.accent;
    context.globalAlpha = 0.12;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = this.style.accent;
    context.stroke();
  }

  // One round of the torus as a picture, if the zoom stands still and the picture is not too large.
  roundAt(ratio) {
    const { scale } = this.view;
    const isStill = this.lastScale === scale;
    this.lastScale = scale;
    const [tall, wide] = this.grid.map((length) => length * scale);
    if (this.isBand || tall * wide * ratio ** 2 > LARGEST_ROUND) return null;
    if (!isStill) {
      this.changed();
      return null;
    }
    const key = `${scale} ${ratio} ${this.version}`;
    if (this.round?.key !== key) this.round = { key, picture: this.wholeRound(wide, tall, ratio) };
    return this.round.picture;
  }

  wholeRound(wide, tall, ratio) {
    const picture = document.createElement("canvas");
    [picture.width, picture.height] = [Math.round(wide * ratio), Math.round(tall * ratio)];
    const { context, view, size } = this;
    this.context = picture.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.size = [wide, tall];
    this.view = { row: this.grid[0] / 2, column: this.grid[1] / 2, scale: view.scale };
    this.drawLayers();
    Object.assign(this, { context, view, size });
    return picture;
  }

  drawGround() {
    const { context } = this;
    context.imageSmoothingEnabled = true;
    if (!this.pictures || this.tint) return this.drawLand();
    const wanted = this.grid[1] * this.view.scale * (window.devicePixelRatio || 1);
    const picture = this.pictures.find((each) => each.width <= wanted * 1.5) || this.pictures[this.pictures.length - 1];
    this.rounds((x, y, wide, tall) => context.drawImage(picture, Math.floor(x), Math.floor(y), Math.ceil(wide) + 1, Math.ceil(tall) + 1));
    if (this.mapData.painted.n && this.view.scale > PATCHES_FROM) this.drawPatches();
    context.fillStyle = this.isDark ? "#0007" : "#fff9";
    context.fillRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
  }

  drawLand() {
    const { context, view, land } = this;
    const [width, height] = this.size;
    const pattern = context.createPattern(this.landPicture, "repeat");
    const scale = view.scale / land.factor;
    const [left, top] = [width / 2 - view.column * view.scale, height / 2 - view.row * view.scale];
    pattern.setTransform(new DOMMatrix([scale, 0, 0, scale, left, top]));
    context.fillStyle = pattern;
    if (this.isBand) context.fillRect(0, top, width, view.scale);
    else context.fillRect(0, 0, width, height);
  }

  // Paint the land anew, in the colors of the theme and of the regions.
  paintLand() {
    const level = this.tintLevel ?? 0;
    this.landPicture = this.land.picture(this.style, this.isDark, this.tint || (() => null), Math.min(level, this.regions.nLevels - 1));
  }

  // From near, every cell shows the four patches it holds most of.
  drawPatches() {
    const { context, mapData, view } = this;
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
        for (let k = 0; k < mapData.painted.n; k++) {
          const left = mapData.feature[mapData.painted.name[cell * mapData.painted.n + k]] * mapData.patch;
          context.drawImage(image, left, 0, mapData.patch, mapData.patch, x + (k % 2) * half, y + Math.floor(k / 2) * half, half, half);
        }
      }
    context.globalAlpha = 1;
  }

  // Draw a picture with a pixel a window at the windows' middles.
  drawCells(picture) {
    const [down, right] = this.middle.map((length) => length * this.view.scale);
    this.rounds((x, y, wide, tall) => this.context.drawImage(picture, 1, 1, picture.width - 2, picture.height - 2, x, y, wide, tall), down, right);
  }

  drawHeat() {
    const { context } = this;
    if (this.litPicture?.of !== this.lit) {
      const values = new Float32Array(this.grid[0] * this.grid[1]);
      for (const [row, column, posterior] of this.lit) values[row * this.grid[1] + column] += posterior;
      const soft = blurred(values, this.grid);
      const top = largest(soft) || 1;
      const heat = cellsPicture(this.grid, (cell) => [235, 94, 20, 225 * Math.sqrt(soft[cell] / top)]);
      this.litPicture = { of: this.lit, heat };
    }
    context.fillStyle = this.isDark ? "#0006" : "#fff6";
    context.fillRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    this.drawCells(this.litPicture.heat);
  }

  // Dots of one color after another; those that are emphasized come last, larger.
  drawDots() {
    const { context, view, emphasized } = this;
    const largest = Math.min(5, Math.max(1.4, view.scale * 0.06));
    const hidden = new Set(this.thumbs().chosen);
    const groups = new Map();
    for (const i of this.visible()) {
      if (!this.isShown[i] || hidden.has(i)) continue;
      const isStrong = emphasized ? emphasized.has(i) : false;
      const color = (isStrong ? "+" : "-") + (this.colorOf ? this.colorOf(i) : isStrong ? this.style.accent : this.style.dot);
      if (!groups.has(color)) groups.set(color, []);
      groups.get(color).push(i);
    }
    for (const [color, members] of [...groups].sort((a, b) => (a[0] < b[0] ? 1 : -1))) {
      const isStrong = color[0] === "+";
      context.fillStyle = color.slice(1);
      context.globalAlpha = isStrong ? 1 : emphasized ? 0.18 : this.colorOf ? 0.85 : 0.5;
      for (const item of members) {
        const usual = Math.min(largest, Math.max(0.6, this.gap[item] * view.scale * 0.36));
        const radius = isStrong ? Math.max(usual, 3.5) : usual;
        this.copies(this.places[item], radius, (x, y) => this.drawDot(x, y, radius));
      }
    }
    context.globalAlpha = 1;
  }

  drawDot(x, y, radius) {
    const { context } = this;
    if (radius < 2.5 && this.places.length > MOST_ROUND) return context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
  }

  drawThumbs() {
    if (!this.mapData.sheets) return;
    const { context, emphasized } = this;
    const { chosen, size } = this.thumbs();
    const pixels = size * this.view.scale;
    for (const item of chosen) {
      const thumb = this.thumbOf(item);
      const scale = pixels / Math.max(thumb.width, thumb.height);
      const [wide, tall] = [thumb.width * scale, thumb.height * scale];
      context.globalAlpha = emphasized && !emphasized.has(item) ? 0.18 : 1;
      this.copies(this.places[item], pixels / 2, (x, y) => {
        const image = this.sheet(thumb.sheet);
        const [left, top] = [x - wide / 2, y - tall / 2];
        context.fillStyle = this.colorOf ? this.colorOf(item) : this.style.paper;
        const border = this.colorOf ? 2.5 : 1;
        context.fillRect(left - border, top - border, wide + 2 * border, tall + 2 * border);
        if (image) context.drawImage(image, thumb.x, thumb.y, thumb.width, thumb.height, left, top, wide, tall);
        else {
          context.fillStyle = this.style.low;
          context.fillRect(left, top, wide, tall);
        }
      });
    }
    context.globalAlpha = 1;
  }

  drawWords() {
    const { context } = this;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.strokeStyle = this.style.halo;
    context.fillStyle = this.style.word;
    for (const word of this.words()) this.write(word, "500");
    if (this.mapData.sheets) return;
    context.fillStyle = this.style.quiet;
    for (const title of this.titles()) this.write(title, "400");
  }

  write({ name, at, size }, weight) {
    const { context } = this;
    const pixels = size * this.view.scale;
    this.copies(at, (this.widthOf(name) * pixels) / 2 + 4, (x, y) => {
      context.font = `${weight} ${pixels.toFixed(1)}px ${MAP_FONT}`;
      context.lineWidth = Math.max(2.5, pixels / 6);
      context.strokeText(plain(name), x, y);
      context.fillText(plain(name), x, y);
    });
  }

  drawWindow(corner, color) {
    const { context, view } = this;
    const [tall, wide] = this.mapData.window.map((length) => length * view.scale);
    context.strokeStyle = color;
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
      for (const [width, color] of [[6, this.style.halo], [3, this.style.accent]]) {
        context.lineWidth = width;
        context.strokeStyle = color;
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
function cellsPicture(grid, color) {
  const [rows, columns] = grid;
  const picture = document.createElement("canvas");
  picture.width = columns + 2;
  picture.height = rows + 2;
  const context = picture.getContext("2d");
  const pixels = context.createImageData(columns + 2, rows + 2);
  for (let i = 0; i < rows + 2; i++)
    for (let j = 0; j < columns + 2; j++)
      pixels.data.set(color(wrap(i - 1, rows) * columns + wrap(j - 1, columns)), 4 * (i * (columns + 2) + j));
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
