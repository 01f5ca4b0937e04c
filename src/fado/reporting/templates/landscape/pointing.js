// The mouse, the finger and the keyboard on the chart: the line is dragged, a model is pointed at and chosen.

const REACH = 16; // how far from a mark a hand may be
const STEP = 0.005; // of the line

function snapped(line) {
  return Math.min(1, Math.max(0, Math.round(line / STEP) / Math.round(1 / STEP)));
}

// The model that is nearest to a place of the chart, within reach.
function nearest(scene, models, state, place) {
  let closest = null, least = REACH ** 2;
  for (const point of state.points) {
    if (!scene.inside(point) || (state.only !== null && models.kind(point.row) !== state.only)) continue;
    const far = (scene.x(point.tpr) - place.x) ** 2 + (scene.y(point.ratio) - place.y) ** 2;
    const onTop = closest !== null && closest.frontier === null && point.frontier !== null;
    if (far < least || (far === least && onTop)) [closest, least] = [point, far];
  }
  return closest;
}

function placeOf(scene, event) {
  const box = scene.svg.getBoundingClientRect(), scale = scene.width / box.width;
  return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
}

function listen(scene, models, state, change, tip) {
  const handle = put(scene.svg, "rect", { x: scene.left, width: scene.end - scene.left, height: 18, class: "handle" });
  scene.moveHandle = () => handle.setAttribute("y", scene.y(state.line) - 9);
  scene.moveHandle();
  let from = null; // where a drag of the line began
  handle.addEventListener("pointerdown", (event) => {
    from = { y: placeOf(scene, event).y, moved: false };
    handle.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  handle.addEventListener("pointermove", (event) => {
    if (!from) return;
    const { y } = placeOf(scene, event);
    from.moved = from.moved || Math.abs(y - from.y) > 3;
    if (from.moved) change({ line: snapped(scene.ratioAt(Math.min(scene.floor, Math.max(scene.top, y)))), dragging: true });
  });
  const release = () => {
    if (from && from.moved) change({ dragging: false });
    state.justDragged = Boolean(from && from.moved); // the click that follows chooses nothing
    from = null;
  };
  handle.addEventListener("pointerup", release);
  handle.addEventListener("pointercancel", release);
  scene.svg.addEventListener("click", (event) => {
    const point = state.justDragged ? null : nearest(scene, models, state, placeOf(scene, event));
    state.justDragged = false;
    if (point) change({ picked: point.row });
  });
  scene.svg.addEventListener("pointermove", (event) => showTip(tip, scene, models, state, from ? null : nearest(scene, models, state, placeOf(scene, event))));
  scene.svg.addEventListener("pointerleave", () => showTip(tip, scene, models, state, null));
}

function showTip(tip, scene, models, state, point) {
  tip.hidden = !point;
  if (!point) return;
  const { row } = point;
  tip.replaceChildren(
    el("div", {}, el("b", {}, name(models.look(row).name)), " ", name(models.setting(row))),
    el("div", {}, "model ", name(models.model(row))),
    el("div", {}, `true-positive rate ${withInterval(models, `${state.part}_tpr`, row)}`),
    el("div", {}, `ratio ${withInterval(models, `${state.part}_${models.views[state.view].ratio}`, row)}`),
    el("div", { class: "small" }, `on ${state.part} rows; click for its card`));
  const right = scene.x(point.tpr) > scene.width / 2;
  tip.style.top = `${scene.y(point.ratio) + 12}px`;
  tip.style.left = right ? "auto" : `${scene.x(point.tpr) + 12}px`;
  tip.style.right = right ? `${scene.width - scene.x(point.tpr) + 12}px` : "auto";
}

// Arrows: up and down move the line, left and right walk along the frontier.
function listenToKeys(box, state, change) {
  box.addEventListener("keydown", (event) => {
    const up = { ArrowUp: STEP, ArrowDown: -STEP }[event.key], along = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!up && !along) return;
    event.preventDefault();
    if (up) change({ line: snapped(state.line + up) });
    else change({ picked: nextOnFrontier(state, along) });
  });
}

function nextOnFrontier(state, along) {
  const walk = state.points.filter((point) => point.frontier !== null).sort((a, b) => a.tpr - b.tpr || b.ratio - a.ratio);
  const at = walk.findIndex((point) => point.row === state.shown);
  const next = at < 0 ? (along > 0 ? 0 : walk.length - 1) : Math.min(walk.length - 1, Math.max(0, at + along));
  return walk.length ? walk[next].row : null;
}
