// The landscape: the true-positive rate on x, the ratio on y, one mark per model, as it does on the part that is shown.
// Marks of a colour are one path, so that thousands of them stay quick.

const LARGE = 5.5, SMALL = 3.5; // marks on a frontier, and others
const EDGES = { left: 50, right: 16, top: 14, foot: 46 };

// The ranges to show: all models, or the whole frontier with all that are chosen.
function rangesOf(state) {
  const most = state.points.reduce((best, point) => Math.max(best, point.tpr), 0) || 1;
  if (!state.corner) return { x: [0, Math.min(Math.ceil(20 * most + 0.5) / 20, 1)], y: [0, 1] };
  const none = !state.chosen.some((one) => one.reached);
  const chosen = new Set([state.shown, ...state.chosen.filter((one) => none || one.reached || one.kind === state.only).map((one) => one.row)]);
  const shown = state.points.filter((point) => chosen.has(point.row) || point.frontier !== null);
  const left = Math.min(0.9 * most, ...shown.map((point) => point.tpr - 0.01));
  const bottom = Math.min(state.line - 0.05, ...shown.map((point) => point.ratio - 0.01));
  return {
    x: [Math.max(0, Math.floor(100 * left) / 100), Math.min(1, 1.01 * most)],
    y: [Math.max(0, Math.floor(20 * bottom + 1e-9) / 20), 1],
  };
}

function drawChart(box, models, state, title) {
  const height = Math.round(Math.min(560, Math.max(320, box.clientWidth * 0.78)));
  box.replaceChildren();
  const ranges = rangesOf(state);
  const scene = { ranges, key: JSON.stringify(ranges) };
  scene.svg = drawing(box, height, `${title}: ${several(state.points.length, "model")}`, (svg, width) => {
    const { left, right, top, foot } = EDGES, [x0, x1] = ranges.x, [y0, y1] = ranges.y;
    const floor = height - foot, end = width - right;
    scene.x = (v) => left + ((Math.min(x1, Math.max(x0, v)) - x0) / (x1 - x0)) * (end - left);
    scene.y = (v) => floor - ((Math.min(y1, Math.max(y0, v)) - y0) / (y1 - y0)) * (floor - top);
    scene.ratioAt = (y) => y0 + ((floor - y) / (floor - top)) * (y1 - y0);
    scene.inside = (point) => point.tpr >= x0 && point.tpr <= x1 && point.ratio >= y0 && point.ratio <= y1;
    Object.assign(scene, { left, end, top, floor, width });
    drawAxes(svg, scene);
    drawMarks(svg, scene, models, state);
    const [without, needing] = models.views[state.view].frontiers[state.part];
    drawFrontier(svg, scene, state, without, "stairs");
    drawFrontier(svg, scene, state, needing, "stairs needing");
    scene.over = put(svg, "g", {});
  });
  return scene;
}

function drawAxes(svg, scene) {
  const { left, end, top, floor } = scene, [x0, x1] = scene.ranges.x, [y0, y1] = scene.ranges.y;
  for (const tick of ticksBetween(y0, y1, 5)) {
    put(svg, "line", { x1: left, x2: end, y1: scene.y(tick), y2: scene.y(tick), class: "axis" });
    put(svg, "text", { x: left - 6, y: scene.y(tick) + 4, class: "soft", "text-anchor": "end" }, String(+tick.toFixed(3)));
  }
  for (const tick of ticksBetween(x0, x1, scene.width > 480 ? 6 : 4)) {
    put(svg, "line", { x1: scene.x(tick), x2: scene.x(tick), y1: top, y2: floor, class: "axis" });
    put(svg, "text", { x: scene.x(tick), y: floor + 16, class: "soft", "text-anchor": "middle" }, String(+tick.toFixed(3)));
  }
  put(svg, "text", { x: (left + end) / 2, y: floor + 36, class: "soft", "text-anchor": "middle" }, "true-positive rate: how much a model finds →");
  put(svg, "text", { x: 0, y: 0, class: "soft", "text-anchor": "middle", transform: `translate(12 ${(top + floor) / 2}) rotate(-90)` }, "ratio: how alike it treats the groups →");
}

function drawMarks(svg, scene, models, state) {
  const paths = new Map();
  for (const point of state.points) {
    const kind = models.kind(point.row);
    if (!scene.inside(point) || (state.only !== null && state.only !== kind)) continue;
    const front = point.frontier !== null, alpha = models.alpha(point.row), key = `${front}|${kind}|${alpha}`;
    if (!paths.has(key)) paths.set(key, { front, kind, alpha, d: [] });
    paths.get(key).d.push(shapePath(models.looks[kind].shape, scene.x(point.tpr), scene.y(point.ratio), front ? LARGE : SMALL));
  }
  const ordered = [...paths.values()].sort((a, b) => a.front - b.front);
  for (const { front, kind, alpha, d } of ordered) {
    const look = models.looks[kind];
    const path = paint(put(svg, "path", { d: d.join(""), class: front ? "front" : "model" }), look, alpha, 1.8);
    if (front && !look.needs_group) Object.assign(path.style, { stroke: "var(--ink)", strokeWidth: "1px" });
    path.style.opacity = front ? 1 : look.colour === null ? 0.65 : 0.7;
  }
}

// The stairs that no model stands above: solid without the group at decision time, dotted with it.
function drawFrontier(svg, scene, state, rows, kind) {
  const ofKind = new Set(rows);
  const steps = state.points.filter((point) => ofKind.has(point.row)).sort((a, b) => a.tpr - b.tpr || b.ratio - a.ratio);
  if (!steps.length) return;
  let d = `M${scene.x(0)},${scene.y(steps[0].ratio)}`;
  for (const step of steps) d += `V${scene.y(step.ratio)}H${scene.x(step.tpr)}`;
  put(svg, "path", { d: `${d}V${scene.y(0)}`, class: kind });
}

// What moves: the line, the rings around the chosen, and the wider one around the model whose card is shown.
function drawOver(scene, models, state) {
  const { over, left, end } = scene, line = scene.y(state.line), taken = [];
  over.replaceChildren();
  put(over, "rect", { x: left, y: line, width: end - left, height: Math.max(0, scene.floor - line), class: "below-line" });
  put(over, "line", { x1: left, x2: end, y1: line, y2: line, class: "reference" });
  const places = new Map(state.points.map((point) => [point.row, point]));
  const seen = (row) => places.has(row) && scene.inside(places.get(row)) && (state.only === null || state.only === models.kind(row));
  for (const one of state.chosen.filter((other) => seen(other.row))) {
    const point = places.get(one.row), x = scene.x(point.tpr), y = scene.y(point.ratio), look = models.looks[one.kind];
    paint(put(over, "path", { d: shapePath(look.shape, x, y, point.frontier === null ? SMALL : LARGE) }), look, models.alpha(one.row), 1.8);
    put(over, "circle", { cx: x, cy: y, r: 10, class: one.reached ? "ring" : "ring missing" });
    ringLabel(over, scene, taken, x, y, look.name);
  }
  if (seen(state.shown)) {
    const point = places.get(state.shown);
    put(over, "circle", { cx: scene.x(point.tpr), cy: scene.y(point.ratio), r: 14, class: "shown" });
  }
  put(over, "text", { x: end - 4, y: line - 6, class: "bold halo line-text", "text-anchor": "end" }, lineText(state.line));
}

// The name beside a ring, unless another stands there.
function ringLabel(over, scene, taken, x, y, text) {
  const short = clipped(text, 24 * LETTER), wide = 7 * short.length, onLeft = x + 18 + wide > scene.width;
  const place = { x: onLeft ? x - 18 - wide : x + 18, y, wide };
  if (taken.some((other) => Math.abs(other.y - y) < 14 && place.x < other.x + other.wide && other.x < place.x + wide)) return;
  taken.push(place);
  put(over, "text", { x: onLeft ? x - 18 : x + 18, y: y + 4, class: "bold halo", "text-anchor": onLeft ? "end" : "start" }, short);
}
