// Pieces of pictures.

function svgEl(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

// Draw into a box at its own width, so that text keeps its size on any screen.
function drawing(box, height, label, draw) {
  const svg = svgEl("svg", { role: "img", "aria-label": label });
  box.append(svg);
  const width = Math.max(240, svg.getBoundingClientRect().width);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  draw(svg, width);
  return svg;
}

// Round steps that cut 0 to `most` into about `wanted` parts.
function ticks(most, wanted) {
  return ticksBetween(0, most, wanted);
}

// Round numbers that cut `least` to `most` into about `wanted` parts.
function ticksBetween(least, most, wanted) {
  const rough = (most - least) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const first = Math.ceil(least / step - 1e-9), last = Math.floor(most / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
}

function put(svg, tag, attributes, text) {
  const node = svgEl(tag, attributes, text);
  svg.append(node);
  return node;
}

const LETTER = 6.6; // the mean width of a letter

function clipped(text, width) {
  const most = Math.max(4, Math.floor(width / LETTER));
  const letters = Array.from(String(text));
  return letters.length <= most ? String(text) : `${letters.slice(0, most - 1).join("")}…`;
}

// Names of crossed groups begin alike: what is cut out of a long one is its middle.
function shortened(text, width) {
  const most = Math.max(4, Math.floor(width / LETTER));
  const letters = Array.from(String(text)), end = Math.floor((most - 1) / 2);
  return letters.length <= most ? String(text) : `${letters.slice(0, most - 1 - end).join("")}…${letters.slice(-end).join("")}`;
}

// How much room the names beside a picture take: what they need, within reason.
function nameRoom(names, least, most) {
  return Math.min(most, Math.max(least, 10 + LETTER * Math.max(0, ...names.map((one) => Array.from(String(one)).length))));
}

function label(svg, attributes, text, width) {
  const node = put(svg, "text", attributes, shortened(text, width));
  node.append(svgEl("title", {}, String(text)));
  return node;
}

function swatch(index) {
  const mark = el("i");
  mark.style.background = `var(--c${index % 12})`;
  return mark;
}

function legend(names) {
  return el("div", { class: "legend" }, names.map((one, index) => el("span", {}, swatch(index), name(one))));
}
