// The controls: the ratio, the groups, the rows that measure it, the line, and how much of the landscape is shown.

function buttons(title, key, options, change, value = (index) => index) {
  const row = options.map((text, index) => {
    const button = el("button", { type: "button", [`data-${key}`]: index }, name(text));
    button.addEventListener("click", () => change({ [key]: value(index) }));
    return button;
  });
  return el("div", { role: "group", "aria-label": title }, el("span", {}, title), row);
}

function drawControls(models, content, change) {
  const box = document.getElementById("controls");
  const slider = el("input", { type: "range", id: "line-slider", min: 0, max: 1, step: STEP, "aria-label": "The line: the least ratio" });
  slider.addEventListener("input", () => change({ line: snapped(Number(slider.value)) }));
  box.append(
    ...[buttons("Ratio", "ratio", content.titles, change),
      content.attributes.length > 1 ? buttons("Groups of", "attribute", content.attributes, change) : null,
      models.parts.length > 1 ? buttons("Measured on", "part", models.parts.map((part) => `${part} rows`), change, (index) => models.parts[index]) : null,
      el("div", {}, el("span", {}, "The line"), slider, el("output", { for: "line-slider" })),
      buttons("Show", "corner", ["all models", "the frontier"], change, (index) => index === 1)].filter(Boolean));
}

// Keep the slider while it is moved: only its text is updated.
function renewControls(models, state) {
  const box = document.getElementById("controls"), pressed = { ...state, part: models.parts.indexOf(state.part) };
  for (const key of ["ratio", "attribute", "part", "corner"]) {
    for (const button of box.querySelectorAll(`[data-${key}]`)) {
      button.setAttribute("aria-pressed", String(Number(button.dataset[key]) === Number(pressed[key])));
    }
  }
  for (const place of document.querySelectorAll("[data-rows]")) place.textContent = state.part;
  document.getElementById("voided").textContent = state.part === models.chosenOn ? "" : `This shows all models on test rows. Select models on ${models.chosenOn} rows: test rows that select a model no longer show how it does on new data.`;
  const slider = document.getElementById("line-slider");
  if (Number(slider.value) !== state.line) slider.value = state.line;
  box.querySelector("output").textContent = lineText(state.line);
}
