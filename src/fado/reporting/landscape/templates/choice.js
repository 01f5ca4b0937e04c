// The protected attribute whose groups a ratio compares: one choice per ratio, which all that tells of it follows.

const choices = new Map();

function choiceOf(ratio) {
  if (!choices.has(ratio)) choices.set(ratio, { view: 0, selects: [], drawers: [] });
  return choices.get(ratio);
}

// The control, if there is anything to choose.
function attributeSelect(content, ratio) {
  if (content.attributes.length < 2) return null;
  const choice = choiceOf(ratio);
  const options = content.attributes.map((attribute, view) => el("option", { value: view }, attribute));
  const select = el("select", { autocomplete: "off" }, options);
  select.addEventListener("change", () => {
    choice.view = Number(select.value);
    for (const other of choice.selects) other.value = select.value;
    for (const draw of choice.drawers) draw();
  });
  choice.selects.push(select);
  return el("label", { class: "choice" }, "Groups of ", select);
}

// Draw now and whenever another attribute is chosen; `draw` is given the number of the view in `points`.
function followChoice(content, ratio, draw) {
  const choice = choiceOf(ratio);
  const drawer = () => draw(ratio * content.attributes.length + choice.view);
  choice.drawers.push(drawer);
  drawer();
}
