// What is chosen: the ratio, the groups it compares, the line, and how much of the landscape is shown.

function buttons(title, key, options, change, value = (index) => index) {
  const row = options.map((text, index) => {
    const button = el("button", { type: "button", [`data-${key}`]: index }, name(text));
    button.addEventListener("click", () => change({ [key]: value(index) }));
    return button;
  });
  return el("div", { role: "group", "aria-label": title }, el("span", {}, title), row);
}

function drawControls(content, state, change) {
  const box = document.getElementById("controls");
  const slider = el("input", { type: "range", id: "line-slider", min: 0, max: 1, step: STEP, "aria-label": "The line: the least ratio" });
  slider.addEventListener("input", () => change({ line: snapped(Number(slider.value)) }));
  box.append(
    ...[buttons("Ratio", "ratio", content.titles, change),
      content.attributes.length > 1 ? buttons("Groups of", "attribute", content.attributes, change) : null,
      el("div", {}, el("span", {}, "The line"), slider, el("output", { for: "line-slider" })),
      buttons("Show", "corner", ["all models", "the best corner"], change, (index) => index === 1)].filter(Boolean));
}

// Keep the slider under the hand that moves it: only what it says is renewed.
function renewControls(state) {
  const box = document.getElementById("controls");
  for (const key of ["ratio", "attribute", "corner"]) {
    for (const button of box.querySelectorAll(`[data-${key}]`)) {
      button.setAttribute("aria-pressed", String(Number(button.dataset[key]) === Number(state[key])));
    }
  }
  const slider = document.getElementById("line-slider");
  if (Number(slider.value) !== state.line) slider.value = state.line;
  box.querySelector("output").textContent = lineText(state.line);
}
