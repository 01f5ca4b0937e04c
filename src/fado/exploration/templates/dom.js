"use strict";

// Text from the data only ever becomes a text node or an attribute's value: nothing is parsed as markup.

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

function svgEl(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function name(text) {
  return el("bdi", {}, String(text));
}

const known = (number) => typeof number === "number" && Number.isFinite(number);

function count(number) {
  return known(number) ? Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, ",") : "–";
}

function digits(number) {
  if (!known(number)) return "–";
  if (Math.abs(number) >= 1000) return count(number);
  return Math.abs(number) >= 100 ? number.toFixed(0) : Math.abs(number) >= 10 ? number.toFixed(1) : number.toFixed(3);
}

function percent(share) {
  if (!known(share)) return "–";
  const hundred = 100 * share;
  return `${hundred.toFixed(Math.abs(hundred) < 1 && hundred !== 0 ? 2 : 1)}\u00a0%`;
}

function points(gap) {
  return known(gap) ? `${(100 * gap).toFixed(1)}\u00a0p.p.` : "–";
}

function times(ratio) {
  return known(ratio) ? `${ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(2)}\u00a0×` : "–";
}

function chance(p) {
  if (!known(p)) return "–";
  return p < 0.001 ? "p < 0.001" : `p = ${p.toFixed(3)}`;
}

const writers = { percent, number: digits, times };

function swatch(index) {
  const mark = el("i");
  mark.style.background = `var(--c${index % 12})`;
  return mark;
}

function legend(names) {
  return el("div", { class: "legend" }, names.map((one, index) => el("span", {}, swatch(index), name(one))));
}

// columns: [{label, text, of: row => node or text, strong}], rows: anything
function table(columns, rows) {
  const head = el("tr", {}, columns.map((c) => el("th", { class: c.text ? "text" : null, scope: "col" }, c.label)));
  const body = rows.map((row) =>
    el("tr", {}, columns.map((c) => {
      const cell = el("td", { "data-label": c.label, class: [c.text && "text", c.strong && "strong"].filter(Boolean).join(" ") || null });
      cell.append(el("div", {}, c.of(row)));
      return cell;
    })));
  return el("table", {}, el("thead", {}, head), el("tbody", {}, body));
}

function part(id) {
  const node = document.querySelector(`#${id} [data-part]`);
  node.replaceChildren();
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
  const rough = most / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, index) => index * step);
}

function put(svg, tag, attributes, text) {
  const node = svgEl(tag, attributes, text);
  svg.append(node);
  return node;
}

function clipped(text, width) {
  const most = Math.max(4, Math.floor(width / 6.6));
  const letters = Array.from(String(text));
  return letters.length <= most ? String(text) : `${letters.slice(0, most - 1).join("")}…`;
}

function label(svg, attributes, text, width) {
  const node = put(svg, "text", attributes, clipped(text, width));
  node.append(svgEl("title", {}, String(text)));
  return node;
}
