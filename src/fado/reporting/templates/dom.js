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

function name(text) {
  return el("bdi", {}, String(text));
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
