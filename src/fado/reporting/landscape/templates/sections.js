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
  };
  for (const place of document.querySelectorAll("[data-text]")) place.append(String(texts[place.dataset.text]));
}

function drawBest(content) {
  const columns = textColumns([["intervention", "intervention"], ["alpha", "alpha"], ["tpr", "true-positive rate"], ["ratio", "ratio"], ["model", "model"]]);
  part("best").append(...content.best.map(({ title, rows, without }) =>
    el("article", { class: "card below" }, el("h3", {}, title), table(columns, rows),
      without.length ? el("p", {}, "No model above the line: ", name(without.join(", ")), ".") : null)));
}

function drawAreas(content) {
  const columns = textColumns([["intervention", "intervention"], ["area", "area"], ["interval", "interval"], ["models", "models"]]);
  part("areas").append(...content.areas.map(({ title, rows }) =>
    el("article", { class: "card below" }, el("h3", {}, title), table(columns, rows))));
}

function drawGroups(content) {
  const columns = textColumns([["part", "part"], ["group", "group"], ["rows", "rows"], ["rate", "positive rate"]]);
  part("groups").append(el("article", { class: "card" },
    content.positive ? el("p", {}, "Positive is ", el("code", {}, name(content.positive)), ".") : null,
    table(columns, content.groups)));
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
