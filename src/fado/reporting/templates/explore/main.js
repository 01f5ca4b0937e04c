// The state of the page, kept in the fragment of the address so that a view can be linked to; and drawing it.

const summary = JSON.parse(document.getElementById("data").textContent);
const about = summary.about;
const utilities = Object.keys(summary.attributes[0].alpha.utilities);
const state = { summary, utilities, attribute: 0, utility: utilities[0], alpha: 0.5, together: false, ratio: RATIOS[0] };

function readFragment() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const index = summary.attributes.findIndex((one) => one.name === wanted.get("attribute"));
  if (index >= 0) state.attribute = index;
  if (utilities.includes(wanted.get("utility"))) state.utility = wanted.get("utility");
  const alpha = Number(wanted.get("alpha"));
  if (wanted.has("alpha") && alpha >= 0 && alpha <= 1) state.alpha = Math.round(alpha * 20) / 20;
  if (RATIOS.includes(wanted.get("ratio"))) state.ratio = wanted.get("ratio");
  if (wanted.has("together")) state.together = wanted.get("together") === "1" && summary.together !== null;
}

function writeFragment() {
  if (location.protocol === "about:") return; // a frame of a notebook has no address
  const chosen = new URLSearchParams({
    attribute: summary.attributes[state.attribute].name, utility: state.utility, alpha: state.alpha.toFixed(2),
  });
  if (state.together) chosen.set("together", "1");
  if (state.ratio !== RATIOS[0]) chosen.set("ratio", state.ratio);
  history.replaceState(null, "", `#${chosen}`);
}

function drawSwitch() {
  const box = document.getElementById("switch");
  box.replaceChildren(el("span", {}, "Protected attribute"));
  summary.attributes.forEach((one, index) => {
    const button = el("button", { type: "button", "aria-pressed": String(index === state.attribute), "data-attribute": index }, name(one.name));
    button.addEventListener("click", () => { state.attribute = index; state.together = false; drawAll(); writeFragment(); });
    box.append(button);
  });
}

function drawSteered() {
  const attribute = summary.attributes[state.attribute];
  state.scene = state.together ? summary.together : attribute.alpha;
  renewControls(state);
  drawAlpha(state, about, attribute);
  drawSlices(state, about, attribute);
}

function change(what) {
  Object.assign(state, what);
  drawSteered();
  writeFragment();
}

function changeRatio(ratio) {
  state.ratio = ratio;
  drawAim(state, about, summary.attributes[state.attribute]);
  writeFragment();
}

function drawAbout() {
  const target = about.target, box = document.getElementById("about");
  if (about.sampled) box.before(el("p", { class: "sampled" }, name(about.sampled.sentence)));
  document.title = `Exploration: ${target.name} by ${summary.attributes.map((one) => one.name).join(", ")}`;
  box.append(`${count(about.rows)} rows, ${count(about.columns)} columns. Target `, name(target.name));
  if (target.kind === "continuous") box.append(" (continuous)");
  else if (target.positive !== null) box.append(" (positive: ", name(target.positive), ")");
  else box.append(` (${target.classes.length} classes)`);
  box.append(`. Values: ${about.algorithm}${about.bags ? `, ${about.bags} bags` : ""}.`);
  if (about.weights_given) box.append(" The models use the sample weights; this page counts rows.");
  if (about.rows_without_value) box.append(` ${count(about.rows_without_value)} rows without a value are left out.`);
  document.getElementById("footer").append(
    `Made by FADO ${about.version}. Intervals are 95 % intervals. The interval of the widest gap between several groups holds for all pairs of groups together. Groups with fewer than 10 rows are never named. This page contains counts and means; it loads nothing and sends nothing.`);
}

function drawAll() {
  const attribute = summary.attributes[state.attribute];
  drawSwitch();
  drawAnswers(attribute);
  drawBiases(attribute, about);
  drawValues(attribute, about);
  drawPlane(attribute, about);
  drawColumns(attribute, about);
  drawSuspicious(attribute, about);
  drawSteered();
  drawAim(state, about, attribute);
}

readFragment();
drawAbout();
drawStability(summary.stability, about);
drawControls(state, change);
drawRatios(changeRatio);
drawAll();
window.addEventListener("hashchange", () => { readFragment(); drawAll(); });
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === width) return; // a phone's address bar changes the height alone
  width = window.innerWidth;
  drawAll();
});
