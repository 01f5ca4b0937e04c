// The audit: ratios first, then every attribute with its pictures and tables.

const content = JSON.parse(document.getElementById("data").textContent);
const about = content.about;
const level = `${100 * about.confidence}\u00a0%`;
const RATES = {
  selection_rate: ["Selection rate", "of all rows of a group, those that are selected"],
  tpr: ["True-positive rate", "of its positives, those that are selected"],
  fpr: ["False-positive rate", "of its negatives, those that are selected"],
  fnr: ["False-negative rate", "of its positives, those that are not selected"],
  precision: ["Precision", "of those selected, the positives"],
};
const BUDGETS = { fpr: "share of negatives selected", selection_rate: "share of rows selected", top_k: "number of rows selected", threshold: "threshold" };
const shownRates = Object.keys(RATES).filter((rate) => content.groups.some((row) => row[rate] !== null));

function between(low, high, write) {
  return low === null ? "–" : `${write(low)} to ${write(high)}`;
}

function lead() {
  const labels = about.positives === null ? "no labels" : `${count(about.positives)} positives (label ${about.positive_label})`;
  const how = about.decided_by === "decisions" ? "The decisions were given as such." :
    `Scores are selected from ${digits(about.threshold)} on; that threshold was ${about.threshold_from === "given" ? "given" : `set on these rows by the budget (${BUDGETS[about.threshold_from.split(" ")[0]]}: at most ${about.threshold_from.split(" ")[1]})`}.`;
  const weighed = about.weighted ? " Rates are shares of the rows' weights; counts are rows." : "";
  return [`${count(about.rows)} rows, ${labels}, ${count(about.selected)} selected. ${how}${weighed}`,
    `Intervals have a confidence of ${level} each${about.decided_by === "scores" ? ", at this threshold" : ""}.`];
}

function ratioTable() {
  const rows = content.ratios.filter((row) => shownRates.includes(row.ratio.replace(/_ratio$/, "")));
  return el("article", { class: "card scrolls" }, table([
    { label: "attribute", text: true, of: (row) => name(row.attribute) },
    { label: "rate", text: true, of: (row) => RATES[row.ratio.replace(/_ratio$/, "")][0] },
    { label: "lowest over highest", strong: true, of: (row) => (row.value === null ? "–" : row.value.toFixed(2)) },
    { label: `${level} interval`, of: (row) => between(row.low, row.high, (own) => own.toFixed(2)) },
    { label: "lowest in", text: true, of: (row) => name(row.lowest || row.reason) },
    { label: "highest in", text: true, of: (row) => name(row.highest) },
  ], rows));
}

function chart(box, rate, groups) {
  const shown = groups.filter((row) => row[rate] !== null);
  if (!shown.length) return;
  const most = Math.max(1e-9, ...shown.map((row) => Math.min(1, Math.max(row[rate] * 1.6, Math.min(row[`${rate}_high`], row[rate] * 2.5)))));
  const height = 26 * shown.length + 34;
  box.append(el("h3", {}, RATES[rate][0]), el("p", { class: "small" }, RATES[rate][1]));
  drawing(box, height, `${RATES[rate][0]} of each group, with intervals`, (svg, width) => {
    const left = nameRoom(shown.map((row) => row.group), 60, width * 0.42), right = width - 52;
    const x = (share) => left + (right - left) * Math.min(share / most, 1);
    for (const tick of ticks(most, 4)) {
      put(svg, "line", { class: "axis", x1: x(tick), x2: x(tick), y1: 4, y2: height - 24 });
      put(svg, "text", { class: "soft", x: x(tick), y: height - 8, "text-anchor": "middle" }, percent(tick));
    }
    shown.forEach((row, index) => {
      const y = 18 + 26 * index, out = row.compared ? "" : " left-out";
      label(svg, { x: left - 8, y: y + 4, "text-anchor": "end", class: `name${out}` }, row.group, left - 8);
      put(svg, "rect", { class: `bar${out}`, x: left, y: y - 8, width: Math.max(0, x(row[rate]) - left), height: 16 });
      put(svg, "line", { class: `whisker${out}`, x1: x(row[`${rate}_low`]), x2: x(row[`${rate}_high`]), y1: y, y2: y });
      put(svg, "circle", { class: `dot${out}`, cx: x(row[rate]), cy: y, r: 4 });
      put(svg, "text", { x: right + 6, y: y + 4, class: out.trim() }, percent(row[rate]));
    });
  });
}

function groupTable(groups) {
  const short = (share) => percent(share).replace(/\u00a0%$/, "");
  const columns = [
    { label: "group", text: true, of: (row) => el("span", {}, name(row.group), row.reason ? el("span", { class: "condition small" }, "not compared: ", name(row.reason)) : null) },
    { label: "rows", of: (row) => count(row.rows) },
    ...(about.positives === null ? [] : [{ label: "positives", of: (row) => count(row.positives) }]),
    { label: "selected", of: (row) => count(row.selected) },
    ...shownRates.map((rate) => ({
      label: RATES[rate][0].toLowerCase(),
      of: (row) => el("span", {}, el("b", {}, percent(row[rate])), el("br"), el("span", { class: "small" }, between(row[`${rate}_low`], row[`${rate}_high`], short))),
    })),
    { label: "impact ratio", of: (row) => el("span", {}, el("b", {}, row.impact_ratio === null ? "–" : row.impact_ratio.toFixed(2)), el("br"),
      el("span", { class: "small" }, between(row.impact_ratio_low, row.impact_ratio_high, (own) => own.toFixed(2)))) },
  ];
  return el("article", { class: "card scrolls" }, table(columns, groups));
}

function pairTable(pairs) {
  return table([
    { label: "rate", text: true, of: (row) => RATES[row.rate][0] },
    { label: "group", text: true, of: (row) => name(row.group) },
    { label: "beside", text: true, of: (row) => name(row.other) },
    { label: "ratio", of: (row) => (row.ratio === null ? "–" : row.ratio.toFixed(2)) },
    { label: `${level} interval`, of: (row) => between(row.ratio_low, row.ratio_high === null ? Infinity : row.ratio_high, (own) => (own === Infinity ? "∞" : own.toFixed(2))) },
    { label: "difference", of: (row) => points(row.difference) },
    { label: `${level} interval`, of: (row) => between(row.difference_low, row.difference_high, points) },
  ], pairs);
}

function calibrationTable(rows) {
  return table([
    { label: "group", text: true, of: (row) => name(row.group) },
    { label: "fifth of scores", of: (row) => count(row.bin) },
    { label: "rows", of: (row) => count(row.rows) },
    { label: "mean score", of: (row) => percent(row.mean_score) },
    { label: "positives", of: (row) => percent(row.positives) },
    { label: `${level} interval`, of: (row) => between(row.positives_low, row.positives_high, percent) },
  ], rows);
}

function folded(title, node) {
  return el("details", {}, el("summary", {}, title), el("div", { class: "scrolls" }, node));
}

function attribute(title) {
  const of = (rows) => (rows || []).filter((row) => row.attribute === title);
  const groups = of(content.groups), charts = el("div", { class: "charts" });
  const section = el("section", {}, el("h2", {}, name(title)), charts, groupTable(groups));
  document.getElementById("attributes").append(section);
  const boxes = shownRates.filter((one) => one !== "fnr").map((rate) => [rate, el("article", { class: "card" })]);
  charts.append(...boxes.map(([, box]) => box)); // all of them first: a picture takes the width that it has then
  boxes.forEach(([rate, box]) => chart(box, rate, groups));
  if (of(content.pairs).length) section.append(folded("Every two groups beside each other", pairTable(of(content.pairs))));
  if (of(content.calibration).length) section.append(folded("Are scores right? Mean score beside the share of positives", calibrationTable(of(content.calibration))));
}

function law() {
  const rows = content.local_law_144, scored = rows.some((row) => "scoring_rate" in row);
  const texts = scored ? ["The scoring rate is the share of scores above the median score of all rows."] : [];
  return el("article", { class: "card scrolls" }, texts.map((text) => el("p", { class: "small" }, text)), table([
    { label: "attribute", text: true, of: (row) => name(row.attribute) },
    { label: "category", text: true, of: (row) => name(row.category) },
    { label: "applicants", of: (row) => count(row.applicants) },
    { label: scored ? "above the median" : "selected", of: (row) => count(row.selected) },
    { label: scored ? "scoring rate" : "selection rate", of: (row) => percent(row.scoring_rate ?? row.selection_rate) },
    { label: "impact ratio", strong: true, of: (row) => (row.impact_ratio === null ? "–" : row.impact_ratio.toFixed(2)) },
    { label: "note", text: true, of: (row) => name(row.note) },
  ], rows));
}

function reading() {
  const left = about.least_share === null ?
    `Groups of fewer than ${count(about.min_group_size)} rows that are also less than 1\u00a0% are shown but not compared.` :
    `Groups of less than ${100 * about.least_share}\u00a0% of the rows whose group is known are shown but not compared.`;
  return [
    "The impact ratio is a group's selection rate over the highest selection rate of a compared group.",
    `An interval holds the true figure with a confidence of ${level}. If the interval of a ratio holds 1, these rows do not show a difference.`,
    left,
    ...(about.least_shown ? [`Of groups of fewer than ${count(about.least_shown)} rows only their number is shown, since rates of a few rows tell about single people.`] : []),
    "Rows whose group is unknown have a line of their own and are compared with nobody.",
  ];
}

document.getElementById("lead").append(...lead().map((text) => el("p", {}, text)));
document.getElementById("ratios").append(ratioTable());
[...new Set(content.groups.map((row) => row.attribute))].forEach(attribute);
document.getElementById("law").append(law());
document.getElementById("reading").append(el("ul", {}, reading().map((text) => el("li", {}, text))));
