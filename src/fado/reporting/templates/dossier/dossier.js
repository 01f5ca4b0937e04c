// The dossier: a table of models first, then the picture, then each model's groups.

const content = JSON.parse(document.getElementById("data").textContent);
const level = `${100 * content.confidence}\u00a0%`;
const parts = Object.keys(content.parts).filter((part) => part !== "train");
const last = parts[parts.length - 1];
const ratios = Object.keys(content.lines);
const plain = (value) => (typeof value !== "number" ? value : Number.isInteger(value) ? count(value) : digits(value));
const two = (number) => (number === null ? "–" : number.toFixed(2));

function interval([value, low, high], write) {
  return el("span", {}, el("b", {}, write(value)), low === null ? null : el("span", { class: "small" }, ` (${write(low)} to ${write(high)})`));
}

function lead() {
  const rows = Object.entries(content.parts).map(([part, count_]) => `${count(count_)} ${part === "train" ? "training" : part} rows`).join(", ");
  return [
    `Required: ${content.asked}, on ${content.target}, at the budget: ${content.budget}.`,
    `${rows}. Models were selected on ${content.chosen_on} rows; all decide at the threshold that these rows set.` +
      (parts.length > 1 ? " Test rows were not used in training or selection." : ""),
    content.models.length > 1 ? "" : "No other model of the search is as close in true-positive rate and has a higher ratio.",
  ].filter(Boolean);
}

function summary() {
  const columns = [{ label: "model", text: true, of: (model) => name(model.title) }];
  for (const part of parts) {
    columns.push({ label: `true-positive rate, ${part}`, of: (model) => percent(model.parts[part].tpr) });
    columns.push({ label: `change, ${part}`, of: (model) => (model === content.models[0] ? "–" : `${points(model.parts[part].tpr_change)} ± ${points(1.96 * model.parts[part].tpr_change_error)}`) });
    columns.push({ label: `false-positive rate, ${part}`, of: (model) => percent(model.parts[part].fpr) });
    for (const ratio of ratios) {
      columns.push({ label: `${ratio}, ${part} (${level})`, of: (model) => interval(model.parts[part].ratios[ratio], two) });
    }
  }
  return table(columns, content.models);
}

function chart(box) {
  const shown = content.points, height = 320;
  const at = (model) => [model.parts[content.chosen_on].tpr, ratios.length === 1 ? model.parts[content.chosen_on].ratios[ratios[0]][0] : null];
  const marked = content.models.map(at);
  const every = [...shown, ...marked].filter(([, ratio]) => ratio !== null);
  const least = Math.min(...every.map(([rate]) => rate)), most = Math.max(...every.map(([rate]) => rate));
  const from = least - 0.05 * (most - least || 0.1), to = most + 0.05 * (most - least || 0.1);
  drawing(box, height, "True-positive rate and ratio of every model of the search", (svg, width) => {
    const left = 52, right = width - 12, top = 12, bottom = height - 40;
    const x = (ratio) => left + (right - left) * Math.min(ratio, 1.02) / 1.02, y = (rate) => bottom - (bottom - top) * (rate - from) / (to - from);
    for (const tick of ticksBetween(0, 1, 5)) {
      put(svg, "line", { class: "axis", x1: x(tick), x2: x(tick), y1: top, y2: bottom });
      put(svg, "text", { class: "soft", x: x(tick), y: bottom + 16, "text-anchor": "middle" }, tick.toFixed(1));
    }
    for (const tick of ticksBetween(from, to, 4)) {
      put(svg, "line", { class: "axis", x1: left, x2: right, y1: y(tick), y2: y(tick) });
      put(svg, "text", { class: "soft", x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, percent(tick));
    }
    if (ratios.length === 1) {
      const line = content.lines[ratios[0]];
      put(svg, "line", { class: "reference", x1: x(line), x2: x(line), y1: top, y2: bottom });
    }
    put(svg, "text", { class: "soft", x: right, y: bottom + 32, "text-anchor": "end" }, ratios.length === 1 ? ratios[0] : "lowest ratio over its line");
    shown.forEach(([rate, ratio]) => put(svg, "circle", { class: "point", cx: x(ratio), cy: y(rate), r: 3 }));
    marked.forEach(([rate, ratio], index) => {
      if (ratio !== null) put(svg, "circle", { class: index ? "alternative" : "used", cx: x(ratio), cy: y(rate), r: 6 });
    });
  });
}

function groups(model) {
  const rates = { selection_rate: "selection rate", tpr: "true-positive rate", fpr: "false-positive rate" };
  const rows = model.parts[last].groups;
  return table([
    { label: "group", text: true, of: (row) => name(row.group) },
    { label: "rows", of: (row) => count(row.rows) },
    { label: "positives", of: (row) => count(row.positives) },
    ...Object.entries(rates).map(([rate, title]) => ({ label: `${title} (${level})`, of: (row) => interval(row[rate], percent) })),
    ...(rows.some((row) => row.reason) ? [{ label: "not compared", text: true, of: (row) => name(row.reason) }] : []),
  ], rows);
}

function modelSection(model) {
  const about = Object.entries(model.about).map(([key, value]) => `${key} ${plain(value)}`).join(", ");
  return el("section", {}, el("h2", {}, name(model.title)), el("article", { class: "card scrolls" },
    el("p", { class: "small" }, `On ${last} rows, at the threshold ${digits(model.threshold)}.`, about ? el("span", {}, " Settings: ", name(about), ".") : null), groups(model)));
}

function list(id, texts) {
  document.getElementById(id).append(el("ul", {}, texts.filter(Boolean).map((text) => el("li", {}, name(text)))));
}

document.getElementById("lead").append(...lead().map((text) => el("p", {}, name(text))));
document.getElementById("summary").append(summary());
chart(document.getElementById("chart"));
document.getElementById("caption").append(`On ${content.chosen_on} rows. Red: the model in use. Blue: the alternatives. Grey: all other models that could be handed over.` + (ratios.length === 1 ? " Dashed: the line." : ""));
document.getElementById("models").append(...content.models.map(modelSection));
const searched = content.searched;
list("searched", [
  `${plain(searched.fits)} fits; ${count(searched.models)} models; ${count(searched.points)} models and changes of their decisions that could be handed over.`,
  `Interventions: ${searched.interventions.join(", ")}.`,
  ...Object.entries(searched.ranges).map(([key, [low, high]]) => `${key}: ${plain(low)} to ${plain(high)}`),
  ...Object.entries(searched.choices).map(([key, values]) => `${key}: ${values.map(plain).join(", ")}`),
  `Seed: ${searched.seed}.`,
]);
const further = content.further;
list("further", further === null ? ["Fewer than four models are close enough to the model in use to say."] : [
  `Among ${count(further.models)} models with at most ${points(further.within)} less true-positive rate, the second half raised the best ratio by ${two(further.gained)} of its line on average.`,
  `As many models again would raise it by at most ${two(further.at_most)} of its line in expectation, on ${content.chosen_on} rows.`,
  "This assumes that further models are drawn as these were: the expected best of more and more random draws rises ever more slowly. Other features, other data or other kinds of models are not covered.",
]);
list("limits", [
  "Figures on the rows that models were selected on are optimistic, because these rows selected them." + (parts.length > 1 ? " Figures on test rows are not." : ""),
  `Intervals have a confidence of ${level} each. If the interval of a ratio holds the line, these rows do not show on which side the truth is.`,
  "Whether an alternative is practicable, and whether a search was wide enough, is for people to decide.",
]);
