// The parts that change with utility and alpha.

const TITLES = { linear: "Linear", difference: "Difference", "cobb-douglas": "Cobb-Douglas" };

const EXPLAINED = {
  linear: "Linear: the weighted sum of both values; a high value can make up for a low one.",
  difference: "Difference: the value for the target minus the value for the attribute, both weighted.",
  "cobb-douglas": "Cobb-Douglas: the product of both values, each raised to the power of its weight; a row needs both values to be high, since a value of 0 makes the utility 0.",
};
const ALPHA_IS = "alpha is the weight of performance, from 0 to 1. At 1 only v_y (the target) counts, at 0 only v_z (the attribute).";
const MOST = 0.5; // of the rows

function drawControls(state, change) {
  const box = document.getElementById("controls");
  box.replaceChildren();
  const kinds = el("div", { role: "group", "aria-label": "Utility" }, el("span", {}, "Utility"));
  for (const key of state.utilities) {
    const button = el("button", { type: "button", "aria-pressed": String(state.utility === key), "data-utility": key }, TITLES[key] || key);
    button.addEventListener("click", () => change({ utility: key }));
    kinds.append(button);
  }
  const slider = el("input", { type: "range", id: "alpha-slider", min: 0, max: 1, step: 0.05, "aria-label": "alpha" });
  slider.value = state.alpha;
  slider.addEventListener("input", () => change({ alpha: Number(slider.value) }));
  const steer = el("div", {}, el("span", {}, "alpha"), slider, el("output", { for: "alpha-slider" }, state.alpha.toFixed(2)));
  box.append(kinds, steer);
  if (state.summary.together) {
    const both = el("div", {});
    const button = el("button", { type: "button", "aria-pressed": String(state.together), "data-together": "" }, "all attributes together");
    button.addEventListener("click", () => change({ together: !state.together }));
    both.append(button);
    box.append(both);
  }
}

// Keep the slider itself, so that it can be dragged on: only its text changes.
function renewControls(state) {
  const box = document.getElementById("controls");
  for (const button of box.querySelectorAll("[data-utility]")) {
    button.setAttribute("aria-pressed", String(button.dataset.utility === state.utility));
  }
  for (const button of box.querySelectorAll("[data-together]")) button.setAttribute("aria-pressed", String(state.together));
  const slider = document.getElementById("alpha-slider");
  if (Number(slider.value) !== state.alpha) slider.value = state.alpha;
  box.querySelector("output").textContent = state.alpha.toFixed(2);
}

function formula(state, names) {
  const a = state.alpha.toFixed(2), rest = (1 - state.alpha) / names.length, b = rest.toFixed(names.length > 1 ? 3 : 2);
  const fair = names.map((z) => {
    const value = names.length > 1 ? `v_z(${z})` : "v_z";
    return state.utility === "cobb-douglas" ? `${value}^${b}` : `${b} ${value}`;
  });
  if (state.utility === "linear") return `U = ${a} v_y + ${fair.join(" + ")}`;
  if (state.utility === "difference") return `U = ${a} v_y − ${fair.join(" − ")}`;
  if (state.utility === "cobb-douglas") return `U = v_y^${a} · ${fair.join(" · ")}`;
  return `U: ${state.utility}, alpha ${a}`;
}

function drawAlpha(state, about, attribute) {
  const scene = state.scene, kind = scene.utilities[state.utility], setting = kind.settings[Math.round(state.alpha * 20)];
  const box = part("alpha");
  const scale = scaleOf(kind);
  const write = about.outcome ? writers[about.outcome.format] : null;
  box.append(el("p", { class: "formula" }, name(formula(state, scene.attributes))),
    el("p", { class: "lead" }, [ALPHA_IS, EXPLAINED[state.utility]].filter(Boolean).join(" ")), ...groupList(scene.left_out, scene.listed));

  const top = el("article", { class: "card" }, el("h3", {}, "Utility per group"));
  box.append(top);
  const gone = setting.dropped;
  ridgePlot(top, scene.groups.map((group, i) => ({
    name: group,
    note: `mean ${writerOf(scale)(setting.mean[i])}`,
    series: [
      { color: `--c${i % 12}`, shares: setting.histogram[i].map((n) => n / scene.rows[i]), mean: setting.mean[i] },
      ...(gone ? [{ color: `--c${i % 12}`, shares: gone.histogram[i].map((n) => n / scene.rows[i]), solid: true }] : []),
    ],
  })), scale, gone ? "utility (solid: rows that sampling would drop)" : "utility");

  const sampling = el("article", { class: "card below", "data-table": "sampling" }, el("h3", {}, "Utility-aware prevalence sampling"));
  const weights = el("article", { class: "card below", "data-table": "weights" }, el("h3", {}, "Utility-aware reweighing"));
  box.append(sampling, weights);

  const rows = scene.groups.map((group, i) => ({ group, i }));
  const groupName = { label: "group", text: true, of: (r) => name(r.group) };
  if (scene.sampling) {
    const s = scene.sampling;
    const [writeY, writeZ] = ["v_y", "v_z"].map((key) => writerOf(scaleOf(attribute.values, key)));
    sampling.append(el("p", { class: "small" }, `Every group with a positive rate below ${percent(s.target_rate)} loses negatives, lowest utility first, until it has that rate.`));
    const lost = s.dropped.reduce((sum, n) => sum + n, 0), share = lost / about.rows;
    sampling.append(el("div", { class: "big" }, el("span", { "data-number": "dropped" }, count(lost)),
      el("span", { class: "interval" }, `rows dropped, ${percent(share)} of all`)));
    if (share > MOST) sampling.append(el("p", { class: "warning" }, "This would drop most of the table."));
    sampling.append(table([
      groupName,
      { label: "rows", of: (r) => count(scene.rows[r.i]) },
      { label: "dropped", of: (r) => count(s.dropped[r.i]), strong: true },
      { label: "kept", of: (r) => count(s.kept[r.i]) },
      { label: "rate before", of: (r) => percent(s.rate_before[r.i]) },
      { label: "rate after", of: (r) => percent(s.rate_after[r.i]), strong: true },
      { label: "dropped: mean v_y", of: (r) => writeY(gone.mean_v_y[r.i]) },
      { label: "dropped: mean v_z", of: (r) => writeZ(gone.mean_v_z[r.i]) },
    ], rows));
  } else {
    sampling.append(el("p", { class: "note" }, about.target.kind === "continuous"
      ? "Sampling equalises positive rates, which a continuous target does not have."
      : "Sampling equalises positive rates. It needs a positive label and two groups that are large enough. Name the label with pos_label (or --positive)."));
  }

  const w = setting.weights;
  weights.append(el("div", { class: "big" }, el("span", { "data-number": "effective" }, count(w.effective_rows)),
    el("span", { class: "interval" }, `effective rows, ${percent(w.effective_share)} of all; largest weight ${digits(w.largest)}`)));
  if (w.effective_share < 1 - MOST) weights.append(el("p", { class: "warning" }, `At this alpha most rows would hardly count: the weights have an effective size of ${percent(w.effective_share)} of the rows.`));
  weights.append(el("p", { class: "small" }, "Weight of a row: its utility, scaled to start at 0, divided by the mean."));
  weights.append(table([
    groupName,
    { label: "share of rows", of: (r) => percent(scene.rows[r.i] / about.rows) },
    { label: "share of weight", of: (r) => percent(w.share_per_group[r.i]), strong: true },
    ...(write ? [
      { label: about.outcome.name, of: (r) => write(scene.outcome_before[r.i]) },
      { label: "weighted", of: (r) => write(w.outcome_per_group[r.i]), strong: true },
    ] : []),
  ], rows));
}

function drawSlices(state, about, attribute) {
  const scene = state.scene, box = part("slices");
  const kind = scene.utilities[state.utility], ranked = kind.settings[Math.round(state.alpha * 20)].slices;
  const score = { label: "mean utility", of: (s) => writerOf(scaleOf(kind))(s.score), strong: true };
  const chosen = (pairs) => pairs.map(([number, score]) => ({ ...scene.slices[number], score }));
  box.append(el("p", { class: "lead" }, `A slice is the rows that meet one to three conditions on columns. Slices here differ from the other rows beyond chance and have at least 1 % of the rows; p-values are corrected for the number of possible slices${about.rows_searched < about.rows ? `. They were searched in ${count(about.rows_searched)} rows drawn at random and counted in all rows` : ""}. The tables change with the slider.`));
  const parts = [
    ["highest", "Highest utility", "Highest mean utility first.", score],
    ["lowest", "Lowest utility", "Lowest mean utility first.", score],
  ];
  for (const [key, title, hint, column] of parts) {
    box.append(el("article", { class: "card below", "data-slices": key }, el("h3", {}, title), el("p", { class: "small" }, hint),
      sliceTable(chosen(ranked[key]), scene.groups, attribute, about, [column])));
  }
}
