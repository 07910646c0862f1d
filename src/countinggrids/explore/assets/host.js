// A page inside a notebook: items that are selected go to the widget around it, and filters come from there.

const CHANNEL = "countinggrids";

class Host {
  constructor(page) {
    Object.assign(this, { page, sent: "" });
    if (window.parent === window) return;
    addEventListener("message", ({ source, data }) => {
      if (source === window.parent && data?.[CHANNEL] === "filters" && data.filters) this.apply(data.filters);
    });
    const remember = page.remember.bind(page);
    page.remember = () => {
      remember();
      this.send();
    };
    window.parent.postMessage({ [CHANNEL]: "ready" }, "*");
  }

  // The items of what is open, but for those that are filtered out.
  selected() {
    const { opened, map, result } = this.page;
    const all = [...Array(this.page.mapData.items.n).keys()];
    if (!opened) return [];
    if (opened.item !== undefined) return [opened.item];
    if (opened.lasso) return [...this.page.selection()];
    if (opened.region !== undefined) {
      const { level } = map.regions.list[opened.region];
      return all.filter((item) => map.isShown[item] && map.regions.of(item, level) === opened.region);
    }
    if (opened.query && result) return [...(result.all || (result.found || []).map(({ item }) => item))].filter((item) => map.isShown[item]);
    return [];
  }

  send() {
    const items = this.selected();
    const text = JSON.stringify(items);
    if (text === this.sent) return;
    this.sent = text;
    window.parent.postMessage({ [CHANNEL]: "selection", items }, "*");
  }

  // Show some labels, a split and a span of time, in seconds; color by a column; search.
  apply({ labels, split, time, color, query }) {
    const { filters, mapData } = this.page;
    const { items } = mapData;
    const changes = { hidden: new Set(), split: split || "", range: [0, 1000] };
    if (labels && items.label) changes.hidden = new Set(items.label.values.filter((name) => !labels.includes(name)));
    if (time && filters.span) changes.range = time.map((seconds, end) => (seconds === null ? 1000 * end : fractionOf(seconds, filters.span)));
    if (["", ...(filters.choices || [])].includes(color)) changes.color = color;
    filters.set(changes);
    const field = document.getElementById("query");
    if (query === undefined || query === null || query === field.value) return;
    field.value = query;
    this.page.search(query);
  }
}

// A moment as a fraction of the span of all times, in thousandths.
function fractionOf(seconds, [first, last]) {
  return Math.min(1000, Math.max(0, (1000 * (seconds - first)) / (last - first || 1)));
}
