// The card: fields that people fill, the verdict, and sections of texts, points and tables.

const content = JSON.parse(document.getElementById("data").textContent);

function section({ title, texts, points, header, rows }) {
  const columns = header.map((label, j) => ({ label, text: true, of: (row) => name(row[j]) }));
  return el("section", {}, el("h2", {}, title), el("article", { class: "card" },
    texts.map((text) => el("p", {}, name(text))),
    points.length ? el("ul", {}, points.map((point) => el("li", {}, name(point)))) : null,
    rows.length ? table(columns, rows) : null));
}

document.getElementById("title").append(name(content.title));
document.getElementById("fields").append(...content.fields.map(([label, text]) =>
  el("div", {}, el("dt", {}, label), el("dd", {}, name(text)))));
const lead = document.getElementById("lead");
lead.classList.add(content.verdict.colour);
lead.append(...content.lead.map((text) => el("p", {}, name(text))));
document.getElementById("sections").append(...content.sections.map(section));
document.getElementById("footer").append(name(content.footer));
