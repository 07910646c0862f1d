// The timeline: a sequence as a path over the map.

const PACE = 350; // milliseconds a frame
const TRAIL = 40; // frames of the path that stay visible

class Player {
  constructor(mapData, map, act) {
    Object.assign(this, { mapData, map, act });
    this.node = document.getElementById("timeline");
    this.choice = document.getElementById("sequence");
    this.slider = document.getElementById("moment");
    this.text = document.getElementById("moment-text");
    this.button = document.getElementById("play");
    this.sequences = this.ordered();
    this.name = null;
    if (!this.sequences.size) return;
    this.node.hidden = false;
    this.choice.append(make("option", "no sequence", { value: "" }));
    for (const name of this.sequences.keys()) this.choice.append(make("option", name, { value: name }));
    this.choice.addEventListener("change", () => this.choose(this.choice.value));
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.button.addEventListener("click", () => this.toggle());
    this.choose("");
  }

  // The items of each sequence in the order of time; items without one are unrelated, and have no path.
  ordered() {
    const { items } = this.mapData;
    const found = new Map();
    if (!items.sequence || !items.time) return found;
    for (let i = 0; i < items.n; i++) {
      if (items.time[i] === null) continue;
      const name = items.sequence.values[items.sequence.which[i]];
      if (!name) continue;
      if (!found.has(name)) found.set(name, []);
      found.get(name).push(i);
    }
    for (const [name, members] of found) {
      if (members.length < 2) found.delete(name);
      else members.sort((a, b) => items.time[a] - items.time[b] || a - b);
    }
    return found;
  }

  choose(name, at = 0) {
    this.stop();
    this.name = this.sequences.has(name) ? name : null;
    this.choice.value = this.name ?? "";
    const isOn = this.name !== null;
    this.slider.disabled = this.button.disabled = !isOn;
    this.slider.max = isOn ? this.sequences.get(this.name).length - 1 : 0;
    this.text.textContent = "";
    if (isOn) return this.go(at);
    this.map.path = [];
    this.map.changed();
    this.act.changed();
  }

  get at() {
    return Number(this.slider.value);
  }

  go(at) {
    const members = this.sequences.get(this.name);
    const now = Math.max(0, Math.min(members.length - 1, Math.round(at)));
    this.slider.value = now;
    const item = members[now];
    this.map.path = members.slice(Math.max(0, now - TRAIL), now + 1);
    const label = this.mapData.items.label;
    const place = label ? ` ${label.values[label.which[item]]}` : "";
    this.text.textContent = plain(`${now + 1} of ${members.length}, ${moment(this.mapData.items.time[item])}${place}`);
    this.slider.setAttribute("aria-valuetext", this.text.textContent);
    this.act.openItem(item, { isFollowing: true, isPlaying: true });
  }

  toggle() {
    if (this.timer) return this.stop();
    if (this.name === null) return;
    if (this.at >= Number(this.slider.max)) this.go(0);
    this.timer = setInterval(() => (this.at >= Number(this.slider.max) ? this.stop() : this.go(this.at + 1)), PACE);
    this.showState(true);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.showState(false);
  }

  showState(isPlaying) {
    this.button.setAttribute("aria-pressed", String(isPlaying));
    this.button.setAttribute("aria-label", isPlaying ? "Pause" : "Play");
    this.button.textContent = isPlaying ? "▮▮" : "▶";
  }
}
