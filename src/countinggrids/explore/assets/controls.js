// Pointers and keys on the map.

// Mouse, pen and fingers: drag moves, wheel and pinch zoom, a click opens.
function listen(map, act) {
  const { canvas } = map;
  const held = new Map();
  let moved = 0;
  let drawn = null; // corners of a lasso while it is drawn
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, point(event));
    if (held.size === 1) moved = 0;
    canvas.classList.add("is-held");
    drawn = held.size === 1 && (map.isLasso || event.shiftKey) ? [map.at(...point(event))] : null;
    act.leave();
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = point(event);
    const before = held.get(event.pointerId);
    if (!before) return act.hover(...now);
    const gap = spanOf(held);
    held.set(event.pointerId, now);
    moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (drawn) {
      drawn.push(map.at(...now));
      map.lasso = drawn;
      map.changed();
    } else if (held.size === 1) map.moveBy(before[1] - now[1], before[0] - now[0]);
    else if (gap) map.zoomBy(spanOf(held) / gap, centerOf(held));
  });
  const release = (event) => {
    const wasHeld = held.delete(event.pointerId);
    if (!held.size) canvas.classList.remove("is-held");
    if (wasHeld && drawn && moved >= 5) {
      act.openLasso(simplified(drawn));
      drawn = null;
      return;
    }
    drawn = null;
    if (wasHeld && !held.size && moved < 5 && event.type === "pointerup") act.open(...point(event));
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => act.leave());
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      act.leave();
      const lines = event.deltaMode === 1 ? 16 : 1;
      map.zoomBy(2 ** ((-event.deltaY * lines) / 300), point(event));
    },
    { passive: false },
  );
}

function spanOf(held) {
  const [a, b] = [...held.values()];
  return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0;
}

function centerOf(held) {
  const [a, b] = [...held.values()];
  return [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
}

function listenToKeys(map, act) {
  const { canvas } = map;
  const step = () => Math.min(canvas.clientWidth, canvas.clientHeight) / 8;
  const moves = {
    ArrowUp: () => map.moveBy(-step(), 0),
    ArrowDown: () => map.moveBy(step(), 0),
    ArrowLeft: () => map.moveBy(0, -step()),
    ArrowRight: () => map.moveBy(0, step()),
    "+": () => map.zoomBy(Math.SQRT2),
    "=": () => map.zoomBy(Math.SQRT2),
    "-": () => map.zoomBy(Math.SQRT1_2),
    Home: () => map.whole(),
    l: () => act.toggleLasso(),
    v: () => act.selectView(),
    Enter: () => act.open(canvas.clientWidth / 2, canvas.clientHeight / 2, true),
    " ": () => act.play(),
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
    event.preventDefault();
    map.hasCross = true;
    moves[event.key]();
    act.announce();
  });
  canvas.addEventListener("blur", () => {
    map.hasCross = false;
    map.changed();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") act.close();
    if (event.key === "/" && !isTyping) {
      event.preventDefault();
      document.getElementById("query").focus();
    }
  });
}
