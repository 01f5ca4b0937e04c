// One model in full.

function drawCard(models, content, state) {
  const box = document.getElementById("card"), row = state.shown;
  if (row === null) {
    box.replaceChildren(el("p", { class: "note" }, "Click a mark or a row for its model."));
    return;
  }
  const look = models.look(row), setting = models.setting(row), rows = models.count("training_rows", row), fits = models.count("fits", row);
  const chosen = state.chosen.find((one) => one.row === row);
  const columns = [
    { label: "metric", text: true, of: (figure) => (figure.name === models.views[state.view].ratio ? el("b", {}, name(figure.title)) : name(figure.title)) },
    ...models.parts.filter((part) => part === models.chosenOn || part === state.part || row === state.best).map((validated) => ({ label: validated, text: true, of: (figure) => figureCell(models, `${validated}_${figure.name}`, row) })),
  ];
  box.replaceChildren(
    el("h2", {}, markOf(look, models.alpha(row)), name(look.name)),
    facts([
      ["Settings", setting || "none"],
      ["Model", models.model(row)],
      ["Training rows", known(rows) ? count(rows) : null],
      ["Fits", known(fits) ? `${count(fits)}, to find its settings` : null],
      ["Tries", chosen ? triesText(models, chosen) : `One of ${triedText(models, models.kind(row), comparedOf(models, state.view, models.kind(row)))}.`],
      ["Decisions", look.needs_group ? "need the group of a row, every time." : "need no group."],
    ]),
    table(columns, content.figures),
    el("p", { class: "small" }, "With 95 % intervals where the configuration asks for them and there are enough events."));
}

function facts(pairs) {
  return el("dl", {}, pairs.filter(([, text]) => text !== null).flatMap(([title, text]) => [el("dt", {}, title), el("dd", {}, name(text))]));
}

function comparedOf(models, view, kind) {
  return models.rows.filter((row) => models.kind(row) === kind && models.ratio(models.chosenOn, view, row) !== null).length;
}
