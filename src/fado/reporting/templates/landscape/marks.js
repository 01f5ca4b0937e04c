// What a model looks like: the shape and the colour of its kind, or of its alpha.

// Viridis, of lightness that grows evenly, as the colour-blind see it too: its dark part for white paper, its light part for dark.
const ON_LIGHT = ["#440154", "#404387", "#29788e", "#22a784"], ON_DARK = ["#29788e", "#22a784", "#79d151", "#fde725"];

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

function mixed(from, to, share) {
  const [a, b] = [from, to].map((colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));
  return `#${a.map((one, i) => Math.round(one + (b[i] - one) * share).toString(16).padStart(2, "0")).join("")}`;
}

function alphaColour(scale, alpha) {
  const at = (scale.length - 1) * Math.min(1, Math.max(0, alpha)), step = Math.min(scale.length - 2, Math.floor(at));
  return mixed(scale[step], scale[step + 1], at - step);
}

// A mark's colours on light and on dark paper; without an alpha to give them, that of text.
function coloursOf(look, alpha) {
  if (look.colour === null) return known(alpha) ? [ON_LIGHT, ON_DARK].map((scale) => alphaColour(scale, alpha)) : ["var(--soft)", "var(--soft)"];
  return [look.colour, /^#[0-9a-f]{6}$/i.test(look.colour) ? mixed(look.colour, "#ffffff", 0.5) : look.colour];
}

// Paint a path of marks: hollow if decisions need the group.
function paint(path, look, alpha, width) {
  ["--on-light", "--on-dark"].forEach((key, place) => path.style.setProperty(key, coloursOf(look, alpha)[place]));
  path.classList.add("painted");
  path.style.fill = look.needs_group ? "none" : "var(--paint)";
  if (look.needs_group) path.style.stroke = "var(--paint)";
  path.style.strokeWidth = look.needs_group ? `${width}px` : "0";
  return path;
}

// A mark beside text.
function markOf(look, alpha) {
  const svg = svgEl("svg", { class: "mark", viewBox: "0 0 16 16", "aria-hidden": "true" });
  paint(put(svg, "path", { d: shapePath(look.shape, 8, 8, 5) }), look, alpha, 2);
  return svg;
}
