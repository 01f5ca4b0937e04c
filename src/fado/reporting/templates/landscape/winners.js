// The models to choose from, in a sentence and in tables: each kind's best above the line, or its closest.

function drawVerdict(models, content, state) {
  const box = document.getElementById("verdict");
  box.replaceChildren(...verdict(models, content, state));
  box.style.minHeight = `${box.offsetHeight}px`; // a shorter sentence must not move the line while it is dragged
}

function verdict(models, content, state) {
  const line = lineText(state.line), part = models.chosenOn;
  const reached = state.chosen.filter((one) => one.reached), ratio = models.views[state.view].ratio;
  if (!state.chosen.length) {
    return [`No model can be compared in this ratio: ${content.statuses.join(", ")}.`];
  }
  if (reached.length) {
    const row = state.best, onTest = models.figure(`test_${ratio}`, row);
    return [
      `${count(reached.length)} of ${several(content.looks.length, "intervention")} reach${reached.length === 1 ? "es" : ""} ${line} on the ${part} part. ${leader(models, state.chosen, reached, "The model")} that finds most there is `,
      ...shortName(models, row), `: ${figuresText(models, part, ratio, row)}.`, part === "test" ? "" : ` On test rows, which did not select it: ${figuresText(models, "test", ratio, row)}.`,
      part !== "test" && known(onTest) && onTest < state.line ? " There its ratio falls short of the line." : ""];
  }
  const all = state.chosen.reduce((sum, one) => sum + one.compared, 0);
  const { best: row } = state, one = state.chosen.find((other) => other.row === row);
  const [low, high] = ["_low", "_high"].map((end) => models.figure(`${part}_${ratio}${end}`, one.row));
  return [
    `Nothing reaches ${line} on the ${part} part, of ${several(all, "model")} that can be compared. ${leader(models, state.chosen, state.chosen, "The closest")} is `,
    ...shortName(models, one.row), `, at ${ratioText(one.most / MILLION, state.line)}.`,
    known(high) && low <= state.line && state.line <= high ? ` Its interval there, ${digits(low)} to ${digits(high)}, contains the line: these rows are too few to decide whether it is reached.` : "",
    known(high) && high < state.line ? ` Its whole interval there, ${digits(low)} to ${digits(high)}, lies below.` : ""];
}

function figuresText(models, part, ratio, row) {
  return `true-positive rate ${withInterval(models, `${part}_tpr`, row)}, ratio ${withInterval(models, `${part}_${ratio}`, row)}`;
}

function leader(models, chosen, among, title) {
  return handedOver(models, chosen).length < among.length ? `Of those that decide without the group, ${title.toLowerCase()}` : title;
}

function drawWinners(models, content, state, change) {
  const box = part("best"), ratio = models.views[state.view].ratio;
  const reached = state.chosen.filter((one) => one.reached), missed = state.chosen.filter((one) => !one.reached);
  const attributes = content.attributes.slice(1), base = ratio.split("[")[0];
  if (reached.length) {
    box.append(el("article", { class: "card", "data-table": "best" }, table([
      { label: "intervention", text: true, of: (one) => pickButton(models, one, state, change) },
      { label: "settings", text: true, of: (one) => name(models.setting(one.row)) },
      { label: "true-positive rate", text: true, of: (one) => figureCell(models, `${state.part}_tpr`, one.row) },
      { label: "ratio", text: true, of: (one) => figureCell(models, `${state.part}_${ratio}`, one.row) },
      ...attributes.map((attribute) => ({ label: `ratio, ${attribute}`, text: true, of: (one) => figureCell(models, `${state.part}_${base}[${attribute}]`, one.row) })),
      ...(models.chosenOn === state.part ? [] : [{
        label: `selected on ${models.chosenOn} by`, text: true,
        of: (one) => `${digits(models.figure(`${models.chosenOn}_tpr`, one.row))}, ratio ${digits(models.figure(`${models.chosenOn}_${ratio}`, one.row))}`,
      }]),
      { label: "model", text: true, of: (one) => name(models.model(one.row)) },
      { label: "best of", of: (one) => several(one.compared, "model") },
    ], reached), el("p", { class: "note" }, triesNote(models))));
  }
  if (missed.length) box.append(el("ul", { class: "missed card below" }, missed.map((one) => missedItem(models, content, state, one, change))));
  const kinds = new Set(state.chosen.map((one) => one.kind));
  const without = models.looks.flatMap((look, kind) => (kinds.has(kind) ? [] : [{ look, kind }]));
  box.append(...without.map(({ look, kind }) => el("p", { class: "without" }, name(look.name), ": no model that can be compared. ", name(leftOutText(models, content, kind, 0)))));
}

function pickButton(models, one, state, change) {
  const look = models.look(one.row);
  const button = el("button", { type: "button", class: "kind", "data-row": one.row, "aria-pressed": String(state.shown === one.row) },
    markOf(look, models.alpha(one.row)), name(look.name));
  button.addEventListener("click", () => change({ picked: one.row }));
  return [button, look.needs_group ? el("div", { class: "small" }, "needs the group") : null].filter(Boolean);
}

function missedItem(models, content, state, one, change) {
  const ratio = models.views[state.view].ratio, left = leftOutText(models, content, one.kind, one.compared);
  return el("li", { "data-missed": one.kind }, ...pickButton(models, one, state, change),
    ` Nothing of this kind reaches ${lineText(state.line)}; the closest is `,
    el("span", { "data-model": "" }, ...modelName(models, one.row)),
    `, at ${ratioText(one.most / MILLION, state.line)} on the ${models.chosenOn} part, of ${several(one.compared, "model")} compared`,
    left ? [" (left out: ", name(left), ")"] : "",
    `. On ${state.part} rows: true-positive rate `, el("span", { "data-tpr": "" }, withInterval(models, `${state.part}_tpr`, one.row)),
    ", ratio ", el("span", { "data-ratio": "" }, withInterval(models, `${state.part}_${ratio}`, one.row)), ".");
}

function triesNote(models) {
  return models.chosenOn === "test"
    ? "Every model here is the best of several, as its row says, and was selected on the test part itself. Its figures are optimistic, more so the more models were tried."
    : `Every model here is the best of several, as its row says. Its ${models.chosenOn} figures are optimistic, more so the more models were tried. The test figures of the selected model are not: see above, and its card.`;
}
