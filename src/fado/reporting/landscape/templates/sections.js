// The parts of the page that are text.

// Columns of text, as `table` takes them, from pairs of a key and a label.
function textColumns(pairs) {
  return pairs.map(([key, label]) => ({ label, text: true, of: (row) => name(row[key]) }));
}

function drawTexts(content) {
  const flattered = "; with no validation part, models are chosen on the rows that judge them, which flatters them";
  const texts = {
    ...content,
    statuses: content.statuses.join(", "),
    percent: Math.round(100 * content.rule),
    flattered: content.chosen_on === "test" ? flattered : "",
    least: content.attributes.length > 1 ? "Each protected attribute is judged for itself: a ratio is that of the attribute where it is least, unless one is chosen beside it." : "",
  };
  for (const place of document.querySelectorAll("[data-text]")) place.append(String(texts[place.dataset.text]));
}

// One card per ratio, which follows the choice of the attribute.
function drawCards(content, id, draw) {
  part(id).append(...content.titles.map((title, ratio) => {
    const body = el("div", {});
    followChoice(content, ratio, (which) => body.replaceChildren(...draw(content[id][which]).filter(Boolean)));
    const heading = el("div", { class: "heading" }, el("h3", {}, title), attributeSelect(content, ratio));
    return el("article", { class: "card below" }, heading, body);
  }));
}

function drawBest(content) {
  const attributes = content.attributes.slice(1);
  const columns = [
    ...textColumns([["intervention", "intervention"], ["settings", "settings"], ["tpr", "true-positive rate"], ["ratio", "ratio"]]),
    ...attributes.map((attribute, j) => ({ label: attribute, text: true, of: (row) => name(row.each[j]) })),
    ...textColumns([["model", "model"]]),
  ];
  drawCards(content, "best", ({ rows, closest, without }) => [
    rows.length ? table(columns, rows) : null,
    closest.length ? el("p", {}, rows.length ? "These have no model above the line; shown is the closest of each:" : "No model is above the line; shown is the closest of each intervention:") : null,
    closest.length ? table(columns, closest) : null,
    without.length ? el("p", {}, "No model that can be compared: ", name(without.join(", ")), ".") : null,
  ]);
}

function drawAreas(content) {
  const columns = textColumns([["intervention", "intervention"], ["area", "area"], ["interval", "interval"], ["models", "models"]]);
  drawCards(content, "areas", ({ rows }) => [table(columns, rows)]);
}

function drawGroups(content) {
  const parts = content.parts.flatMap((part) => [
    { label: `${part} rows`, text: true, of: (row) => name(row[part].rows) },
    { label: `${part} positive rate`, text: true, of: (row) => name(row[part].rate) },
  ]);
  const columns = [...textColumns([["group", "group"]]), ...parts];
  const n = content.left_out.length;
  const why = `with fewer than ${content.min_group_size} rows and less than 1 % of a part that judges models, ${n === 1 ? "counts" : "count"} in no ratio`;
  part("groups").append(el("article", { class: "card" },
    content.positive ? el("p", {}, "Positive is ", el("code", {}, name(content.positive)), ".") : null,
    table(columns, content.groups),
    n ? el("details", { class: "left-out" }, el("summary", {}, `${n} small ${n === 1 ? "group" : "groups"}, ${why}`), table(columns, content.left_out)) : null));
}

function drawErrors(content) {
  if (!content.errors.length) {
    document.getElementById("errors").remove();
    return;
  }
  const columns = textColumns([["intervention", "intervention"], ["models", "models"], ["status", "status"], ["error", "why"]]);
  part("errors").append(el("article", { class: "card" }, table(columns, content.errors)));
}

function drawSettings(content) {
  const columns = [
    { label: "setting", text: true, of: (row) => name(row.name) },
    { label: "value", text: true, of: (row) => el("code", {}, name(row.value)) },
  ];
  part("settings").append(el("article", { class: "card" }, table(columns, content.settings)));
}
