// What is chosen, where it is kept (the address' fragment, so that a view can be linked to), and drawing it.

const content = JSON.parse(document.getElementById("data").textContent);
const models = readModels(content);
const state = { ratio: 0, attribute: 0, line: content.rule, corner: true, only: null, picked: null, dragging: false, view: null, part: content.chosen_on };
const chartBox = document.getElementById("chart"), tip = document.getElementById("tip");
const ratios = content.titles.map((_, ratio) => models.views[ratio * content.attributes.length].ratio);

function readFragment() {
  const wanted = new URLSearchParams(location.hash.slice(1)), line = Number(wanted.get("line"));
  if (ratios.includes(wanted.get("ratio"))) state.ratio = ratios.indexOf(wanted.get("ratio"));
  if (content.attributes.includes(wanted.get("groups"))) state.attribute = content.attributes.indexOf(wanted.get("groups"));
  state.part = wanted.get("rows") === "test" ? "test" : content.chosen_on;
  if (wanted.has("line") && line >= 0 && line <= 1) state.line = snapped(line);
}

let writing; // browsers refuse hundreds of addresses in a few seconds: a hand that moves the line comes to rest first

function writeFragment() {
  clearTimeout(writing);
  writing = setTimeout(writeFragmentNow, 150);
}

function writeFragmentNow() {
  if (location.protocol === "about:") return; // a frame of a notebook has no address
  const chosen = new URLSearchParams({ ratio: ratios[state.ratio], line: lineText(state.line) });
  if (state.attribute) chosen.set("groups", content.attributes[state.attribute]);
  if (state.part !== content.chosen_on) chosen.set("rows", state.part);
  history.replaceState(null, "", `#${chosen}`);
}

// Draw what follows from the state; `afresh` also what only another view or another width changes.
function refresh(afresh) {
  const view = state.ratio * content.attributes.length + state.attribute;
  if (view !== state.view) drawAreas(content, view);
  if (view !== state.view || afresh) Object.assign(state, { view, points: pointsOf(models, view, state.part) });
  state.chosen = chooseModels(models, view, state.line, state.part);
  state.best = bestOfAll(models, state.chosen);
  state.shown = state.picked === null ? state.best : state.picked;
  const moved = !state.scene || (!state.dragging && state.scene.key !== JSON.stringify(rangesOf(state)));
  if (afresh || moved) drawScene();
  drawOver(state.scene, models, state);
  state.scene.moveHandle();
  renewControls(models, state);
  drawVerdict(models, content, state);
  drawWinners(models, content, state, change);
  drawCard(models, content, state);
}

function drawScene() {
  state.scene = drawChart(chartBox, models, state, content.titles[state.ratio]);
  listen(state.scene, models, state, change, tip);
  showTip(tip, state.scene, models, state, null);
  drawLegend(document.getElementById("legend"), models, state, change);
}

function change(what) {
  const afresh = ["ratio", "attribute", "part", "corner", "only"].some((key) => key in what && what[key] !== state[key]);
  const focused = document.activeElement && document.activeElement.dataset.row;
  Object.assign(state, what);
  refresh(afresh);
  if (focused !== undefined) document.querySelector(`[data-row="${focused}"]`)?.focus(); // it was drawn anew
  writeFragment();
}

readFragment();
drawTexts(content);
drawGroups(content);
drawErrors(content);
drawSettings(content);
drawControls(models, content, change);
drawSave(state);
listenToKeys(chartBox, state, change);
refresh(true);
window.addEventListener("hashchange", () => { readFragment(); refresh(true); });
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === width) return; // a phone's address bar changes the height alone
  width = window.innerWidth;
  refresh(true);
});
