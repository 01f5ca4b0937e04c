// The parts of the page that are text and do not move with the line.

// Columns of text, as `table` takes them, from pairs of a key and a label.
function textColumns(pairs) {
  return pairs.map(([key, label]) => ({ label, text: true, of: (row) => name(row[key]) }));
}

function drawTexts(content) {
  const texts = {
    ...content,
    statuses: content.statuses.join(", "),
    notes: content.notes.join(" "),
    least: content.attributes.length > 1 ? "Each protected attribute is measured separately. Unless you select one, a ratio is the lowest of all attributes." : "",
    needing: content.looks.some((look) => look.needs_group) ? "Hollow marks need the group of a row for every decision, and have a separate, dotted frontier." : "",
    marks: content.marks ? `${content.marks}.` : "",
    alphas: content.points.settings.some((setting) => setting.alpha !== null) ? "The lighter the colour, the higher alpha, which shifts the weight from fairness to performance." : "",
    drawn: content.first_looks ? "Models that were trained only in part cannot be selected and are not drawn." : "",
    flattered: content.chosen_on === "test" ? "; without a validation part, models are selected on test rows, so their test figures are optimistic" : "",
  };
  for (const place of document.querySelectorAll("[data-text]")) place.append(String(texts[place.dataset.text]));
}

function drawAreas(content, view) {
  const { rows, ranked } = content.areas[view];
  const columns = textColumns([["intervention", "intervention"], ["area", "area"], ["interval", "interval"], ["models", "models"]]);
  part("areas").append(el("article", { class: "card" }, rows.length ? table(columns, rows) : el("p", {}, "No model can be compared in this ratio."),
    ranked ? null : el("p", { class: "note" }, "Not ranked: more models cover more, and these are not of equally many.")));
}

function drawGroups(content) {
  const parts = content.parts.flatMap((part) => [
    { label: `${part} rows`, text: true, of: (row) => name(row[part].rows) },
    { label: `${part} positive rate`, text: true, of: (row) => name(row[part].rate) },
  ]);
  const columns = [...textColumns([["group", "group"]]), ...parts];
  const n = content.left_out.length;
  const why = `unknown or with fewer than ${content.min_group_size} rows and less than 1 % of a part that models are measured on, ${n === 1 ? "counts" : "count"} in no ratio`;
  part("groups").append(el("article", { class: "card" },
    content.positive ? el("p", {}, "Positive is ", el("code", {}, name(content.positive)), ".") : null,
    table(columns, content.groups),
    n ? el("details", { class: "left-out" }, el("summary", {}, `${n} ${n === 1 ? "group" : "groups"}, ${why}`), table(columns, content.left_out)) : null));
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
