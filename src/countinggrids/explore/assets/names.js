// Names on the map: of large regions far out, of finer ones closer in; none overlaps another.

const NAME_SIZES = [[17, 27], [14, 17], [12.5, 14]]; // pixels of the first word, at least and at most, by level
const SECOND_LINE = 0.64; // size of the other words beside the first
const SMALLEST = 10; // pixels
const NAMED_FROM = [0, 135, 112]; // pixels across a region from which on its level is named
const NAMED_TO = [900, 900, Infinity];
const AMONG_PICTURES = 2.6; // times as large must regions be where pictures fill the map
const TOOLS = 50; // pixels at the right edge where the buttons are
const SIDESTEPS = [0, 16, -16, 32, -32, 48, -48]; // pixels that a name moves up or down for others
const NAME_MARGIN = 8; // pixels by which the boxes of names are larger than the names

// A name as lines: the first word large, the others below it.
function nameLines(name) {
  const [first, ...others] = name.split(", ").slice(0, 3);
  return others.length ? [first, others.join(", ")] : [first];
}

// Choose which names are written at a zoom, and where; sizes are in cells.
function chooseNames(map, scale) {
  const { regions, grid } = map;
  const room = map.room(scale);
  const chosen = [];
  const written = new Set();
  regions.byLevel.forEach((members, level) => {
    const sizes = NAME_SIZES[Math.min(level, NAME_SIZES.length - 1)];
    const across = Math.sqrt((grid[0] * grid[1]) / members.length) * scale;
    const [from, to] = [NAMED_FROM, NAMED_TO].map((limits) => limits[Math.min(level, limits.length - 1)]);
    if (level && map.mapData.sheets && !map.tint && across < from * AMONG_PICTURES) return;
    if (level && (across < from || across > to) && level < regions.nLevels - 1) return;
    if (level && across < from) return;
    if (!level && regions.nLevels > 1 && across > to) return;
    const pixels = Math.min(sizes[1], Math.max(sizes[0], across / 9));
    for (const region of members) {
      if (!region.is_named || !region.n_items || written.has(`${region.parent} ${region.name}`)) continue;
      const size = pixels * (level ? 1 : 0.86 + 0.28 * Math.min(1, region.n_items / (map.places.length / members.length) / 1.5));
      const box = placeName(map, region, size, scale, room);
      if (!box) continue;
      chosen.push({ id: region.id, level, lines: nameLines(region.name), at: box.at, half: box.half, size: size / scale });
      for (const child of regions.children(region.id)) if (child.name === region.name) written.add(`${region.id} ${child.name}`);
    }
  });
  return chosen;
}

// Room for a name at the middle of its region, or else somewhere else inside it.
function placeName(map, region, size, scale, room) {
  const lines = nameLines(region.name);
  const wide = Math.max(map.widthOf(lines[0]) * size, lines[1] ? map.widthOf(lines[1]) * secondSize(size) : 0);
  const tall = size + (lines[1] ? 1.25 * secondSize(size) : 0);
  const half = [(tall + 8) / scale / 2, (wide + 12) / scale / 2];
  if (half[1] * 2 > map.grid[1] || half[0] * 2 > Math.max(map.grid[0], 2)) return null;
  for (const at of spotsOf(map, region)) {
    const box = { at, half };
    if (room.take(box)) return box;
  }
  return null;
}

function secondSize(size) {
  return Math.max(SMALLEST, size * SECOND_LINE);
}

// Places for the name of a region, the best first: its middle, then cells of it by their distance from there.
function spotsOf(map, region) {
  map.spots ||= new Map();
  if (!map.spots.has(region.id)) {
    const { grid, middle, regions } = map;
    const center = region.center.map((at) => at + 0.5);
    const found = [];
    regions.cells[region.level].forEach((id, k) => {
      if (id !== region.id || regions.isEmpty[k]) return;
      const at = [Math.floor(k / grid[1]) + middle[0] + 0.5, (k % grid[1]) + middle[1] + 0.5];
      found.push({ at: at.map((place, axis) => wrap(place, grid[axis])), far: distance(center, at, grid) });
    });
    found.sort((a, b) => a.far - b.far);
    map.spots.set(region.id, [center, ...found.slice(0, 40).map((spot) => spot.at)]);
  }
  return map.spots.get(region.id);
}

// Names and where they are on the screen. One that is cut by the frame moves inside if there is room.
function namesOnScreen(map) {
  const found = map.names().map((name) => ({ name, at: map.onScreen(name.at), half: name.half.map((length) => length * map.view.scale) }));
  for (const one of found) {
    const [x, y] = one.at;
    const reach = (other, axis) => other.half[axis] + one.half[axis] - NAME_MARGIN;
    const isFree = (at) => found.every((other) => other === one || Math.abs(other.at[0] - at[0]) >= reach(other, 1) || Math.abs(other.at[1] - at[1]) >= reach(other, 0));
    const near = [TOOLS, 0].flatMap((kept) => SIDESTEPS.map((down) => insideFrame(map, [x, y + down], one.half, kept)));
    if (near[0][0] !== x || near[0][1] !== y) one.at = near.find(isFree) || one.at;
  }
  return found;
}

// The middle of a box, moved so that it lies within the frame along the axes along which all of the frame is in view; some pixels at the
// right are kept free for buttons.
function insideFrame(map, at, [tall, wide], kept) {
  return at.map((place, axis) => {
    const half = axis ? tall : wide;
    const long = map.grid[1 - axis] * map.view.scale;
    if (long > map.size[axis] + 2 || (map.isBand && axis)) return place;
    const end = Math.min((map.size[axis] + long) / 2, map.size[axis] - (axis ? 0 : kept));
    const [least, most] = [(map.size[axis] - long) / 2 + half, end - half];
    return least > most ? place : Math.min(most, Math.max(least, place));
  });
}

// Draws names from pictures of them that are kept: text with a halo is slow to draw.
class NameWriter {
  constructor() {
    this.kept = new Map();
  }

  draw(context, name, [x, y], scale, ratio, style, isFaint) {
    const key = `${name.id} ${(name.size * scale).toFixed(1)} ${ratio} ${style.ink} ${isFaint}`;
    if (!this.kept.has(key)) {
      if (this.kept.size > 400) this.kept.clear();
      this.kept.set(key, this.picture(name, name.size * scale, ratio, style, isFaint));
    }
    const picture = this.kept.get(key);
    const [wide, tall] = [picture.width / ratio, picture.height / ratio];
    const even = (length) => Math.round(length * ratio) / ratio;
    context.drawImage(picture, even(x - wide / 2), even(y - tall / 2), wide, tall);
  }

  picture({ lines, level }, pixels, ratio, style, isFaint) {
    const picture = document.createElement("canvas");
    let context = picture.getContext("2d");
    const fonts = lines.map((_, k) => `${k ? 500 : 700} ${(k ? secondSize(pixels) : pixels).toFixed(1)}px ${MAP_FONT}`);
    const widths = lines.map((line, k) => ((context.font = fonts[k]), context.measureText(plain(line)).width));
    const tall = pixels + (lines.length > 1 ? 1.25 * secondSize(pixels) : 0) + 10;
    picture.width = Math.ceil((Math.max(...widths) + 14) * ratio);
    picture.height = Math.ceil(tall * ratio);
    context = picture.getContext("2d");
    context.scale(ratio, ratio);
    Object.assign(context, { textAlign: "center", textBaseline: "middle", lineJoin: "round", strokeStyle: style.halo });
    lines.forEach((line, k) => {
      const y = 5 + (k ? pixels + 0.65 * secondSize(pixels) : pixels / 2);
      context.font = fonts[k];
      context.lineWidth = Math.max(3, pixels / 5);
      context.globalAlpha = isFaint ? 0.5 : 0.85;
      context.strokeText(plain(line), picture.width / ratio / 2, y);
      context.globalAlpha = isFaint ? 0.45 : 1;
      context.fillStyle = k ? style.quiet : style.ink;
      context.fillText(plain(line), picture.width / ratio / 2, y);
    });
    return picture;
  }
}
