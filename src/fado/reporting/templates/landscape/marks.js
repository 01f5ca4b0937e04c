// What a model looks like: the shape and the colour of its kind, or of its alpha.

const GREEN_TO_RED = [[26, 152, 80], [217, 195, 28], [215, 48, 39]];

const SHAPES = {
  circle: (x, y, r) => `M${x - r},${y}a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
  square: (x, y, r) => corners(x, y, 0.9 * r, [[-1, -1], [1, -1], [1, 1], [-1, 1]]),
  diamond: (x, y, r) => corners(x, y, 1.25 * r, [[0, -1], [1, 0], [0, 1], [-1, 0]]),
  "triangle-up": (x, y, r) => corners(x, y, 1.15 * r, [[0, -1], [1, 0.8], [-1, 0.8]]),
  "triangle-down": (x, y, r) => corners(x, y, 1.15 * r, [[0, 1], [1, -0.8], [-1, -0.8]]),
  "triangle-left": (x, y, r) => corners(x, y, 1.15 * r, [[-1, 0], [0.8, 1], [0.8, -1]]),
  "triangle-right": (x, y, r) => corners(x, y, 1.15 * r, [[1, 0], [-0.8, 1], [-0.8, -1]]),
  cross: (x, y, r) => corners(x, y, r / 3, [[-1, -3], [1, -3], [1, -1], [3, -1], [3, 1], [1, 1], [1, 3], [-1, 3], [-1, 1], [-3, 1], [-3, -1], [-1, -1]]),
};

function corners(x, y, size, places) {
  return `M${places.map(([dx, dy]) => `${(x + size * dx).toFixed(1)},${(y + size * dy).toFixed(1)}`).join("L")}Z`;
}

function shapePath(shape, x, y, r) {
  const known_ = Object.hasOwn(SHAPES, shape) ? shape : "circle";
  return SHAPES[known_](+x.toFixed(1), +y.toFixed(1), r);
}

function alphaColour(alpha) {
  const at = 2 * Math.min(1, Math.max(0, alpha)), step = Math.min(1, Math.floor(at));
  const [from, to] = [GREEN_TO_RED[step], GREEN_TO_RED[step + 1]];
  return `rgb(${from.map((one, i) => Math.round(one + (to[i] - one) * (at - step))).join(", ")})`;
}

function colourOf(look, alpha) {
  return look.colour === null ? alphaColour(known(alpha) ? alpha : 0.5) : look.colour;
}

// Paint a path of marks: hollow if decisions need the group.
function paint(path, look, alpha, width) {
  path.style.fill = look.needs_group ? "none" : colourOf(look, alpha);
  if (look.needs_group) path.style.stroke = colourOf(look, alpha);
  path.style.strokeWidth = look.needs_group ? `${width}px` : "0";
  return path;
}

// A mark beside text.
function markOf(look, alpha) {
  const svg = svgEl("svg", { class: "mark", viewBox: "0 0 16 16", "aria-hidden": "true" });
  paint(put(svg, "path", { d: shapePath(look.shape, 8, 8, 5) }), look, alpha, 2);
  return svg;
}
