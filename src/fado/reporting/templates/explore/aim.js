// The cost of reaching a line: the true-positive rate at each level of a ratio.

const RATIOS = ["fpr_ratio", "tpr_ratio", "fnr_ratio", "selection_rate_ratio"];
const RATIO_NAMES = { fpr_ratio: "False positives", tpr_ratio: "True positives", fnr_ratio: "False negatives", selection_rate_ratio: "Selections" };

function drawRatios(change) {
  document.getElementById("aim-controls").replaceChildren(el("span", {}, "Ratio of"), ...RATIOS.map((ratio) => {
    const button = el("button", { type: "button", "data-ratio": ratio }, RATIO_NAMES[ratio]);
    button.addEventListener("click", () => change(ratio));
    return button;
  }));
}

// curve: [{ratio, low, tpr, tpr_change_error}], the untouched point first; line: the least ratio that is accepted; marks: {untouched, answer, sure}, places on the curve
function tradeOffPlot(box, curve, line, marks, label_) {
  const height = 280, reach = (p) => 1.96 * p.tpr_change_error; // both decide the same rows: the interval is of the difference
  const marked = [...new Set([marks.answer, marks.sure])].filter((place) => place).map((place) => curve[place]);
  const ends = [...curve.map((p) => p.tpr), ...marked.flatMap((p) => [p.tpr - reach(p), p.tpr + reach(p)])];
  const room = Math.max((Math.max(...ends) - Math.min(...ends)) * 0.08, 0.005);
  const least = Math.max(0, Math.min(...ends) - room), most = Math.min(1, Math.max(...ends) + room);
  drawing(box, height, label_, (svg, width) => {
    const left = 48, right = 14, top = 20, foot = 40;
    const x = (v) => left + v * (width - left - right), y = (v) => top + ((most - v) / (most - least)) * (height - top - foot);
    const levels = ticksBetween(least, most, 4), places = Math.max(2, Math.ceil(-Math.log10(levels[1] - levels[0]) - 1e-9) + (String(levels[1] - levels[0]).includes("25") ? 1 : 0));
    for (const tick of levels) {
      put(svg, "line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "axis" });
      put(svg, "text", { x: left - 6, y: y(tick) + 4, class: "soft", "text-anchor": "end" }, tick.toFixed(Math.min(places, 5)));
    }
    for (const tick of ticks(1, 5)) {
      put(svg, "text", { x: x(tick), y: height - foot + 16, class: "soft", "text-anchor": tick ? tick > 0.99 ? "end" : "middle" : "start" }, tick.toFixed(1));
    }
    put(svg, "text", { x: (left + width - right) / 2, y: height - 6, class: "soft", "text-anchor": "middle" }, "ratio between groups: 1 is equal");
    put(svg, "line", { x1: x(line), x2: x(line), y1: top - 6, y2: height - foot, class: "reference" });
    put(svg, "text", { x: x(line), y: top - 9, class: "soft", "text-anchor": "middle" }, `line ${line}`);
    for (const [key, color, dash] of [["low", "--c1", "5 3"], ["ratio", "--accent", null]]) {
      const path = put(svg, "path", { d: `M${curve.map((p) => `${x(p[key])},${y(p.tpr)}`).join("L")}`, fill: "none", "stroke-width": 2, "data-curve": key });
      path.style.stroke = `var(${color})`;
      if (dash) path.setAttribute("stroke-dasharray", dash);
      for (const point of curve) put(svg, "circle", { cx: x(point[key]), cy: y(point.tpr), r: 2.5 }).style.fill = `var(${color})`;
    }
    for (const point of marked) {
      put(svg, "line", { x1: x(point.ratio), x2: x(point.ratio), y1: y(Math.min(most, point.tpr + reach(point))), y2: y(Math.max(least, point.tpr - reach(point))), class: "whisker" });
    }
    const named = [[marks.sure, "line reached with confidence", "--c1"], [marks.answer, "line reached", "--accent"], [marks.untouched, "untouched", "--card"]];
    for (const [place, text, color] of named) {
      if (!known(place)) continue;
      const point = curve[place], mark = put(svg, "circle", { cx: x(point.ratio), cy: y(point.tpr), r: 6, "stroke-width": 2, "data-mark": text });
      mark.style.fill = `var(${color})`;
      mark.style.stroke = "var(--accent)";
      mark.append(svgEl("title", {}, `${text}: ratio ${digits(point.ratio)}, lower bound ${digits(point.low)}, true-positive rate ${digits(point.tpr)}`));
    }
  });
  box.prepend(el("p", { class: "measure" }, "↑ true-positive rate"));
}

function aimKey(color, mark) {
  const key = el("i");
  key.style.background = `var(${color})`;
  if (mark) Object.assign(key.style, { borderRadius: "50%", boxSizing: "border-box", border: "2px solid var(--accent)" });
  return key;
}

function drawAim(state, about, attribute) {
  const aim = attribute.aim, box = part("aim"), controls = document.getElementById("aim-controls"), answer = document.getElementById("aim-answer");
  const target = about.target, compared = (attribute.groups || []).filter((g) => g.compared).length;
  document.getElementById("aim").hidden = !aim && !(target.kind === "classes" && target.classes.length === 2 && attribute.kind === "classes" && compared > 1);
  controls.hidden = !aim;
  answer.replaceChildren();
  if (!aim) {
    box.append(el("p", { class: "note" }, "This part needs probabilities of labels and groups, which the values do not contain: value the rows with ",
      el("code", {}, "OutOfBagEntropy(keep_probabilities=True)"), ", or let explore compute the values."));
    return;
  }
  for (const button of controls.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.ratio === state.ratio));
  const chosen = aim.ratios.find((one) => one.ratio === state.ratio), curve = chosen.points.filter((p) => known(p.ratio));
  const card = el("article", { class: "card", "data-aim": chosen.ratio });
  answer.append(...chosen.sentences.map((sentence) => el("p", {}, sentence)));
  box.append(card);
  if (curve.length) {
    const picture = el("div", {}), place = (at) => (known(at) ? curve.indexOf(chosen.points[at]) : null);
    const marks = { untouched: known(chosen.points[0].ratio) ? 0 : null, answer: place(chosen.answer), sure: place(chosen.sure) };
    card.append(el("div", { class: "legend" }, el("span", {}, aimKey("--accent"), chosen.title),
      el("span", {}, aimKey("--c1"), `its lower bound at ${+(100 * aim.confidence).toFixed(1)} % confidence (dashed)`),
      el("span", {}, aimKey("--card", true), "untouched"),
      marks.answer ? el("span", {}, aimKey("--accent", true), `estimate reaches ${aim.line}`) : null,
      marks.sure && marks.sure !== marks.answer ? el("span", {}, aimKey("--c1", true), `lower bound reaches ${aim.line}`) : null), picture);
    tradeOffPlot(picture, curve, aim.line, marks, `True-positive rate by ${chosen.title}. ${chosen.sentences.join(" ")}`);
    if (marks.answer || marks.sure) picture.append(el("p", { class: "small" }, "Vertical bars: 95 % interval of the difference from untouched, computed from the positives whose decision changes."));
  }
  card.append(el("p", { class: "small" }, name(aim.note)), el("p", { class: "small" }, "Next: ",
    el("code", {}, `AimedEstimator(estimator, ratio="${chosen.ratio}", at_least=${aim.line})`), " in Python, ",
    el("code", {}, `fado aim DATA --target COL --protected COL --ratio ${chosen.ratio}=${aim.line} --out DIR`), " on the command line."));
  card.append(el("details", {}, el("summary", {}, "Numbers"), el("div", { class: "wide" }, table([
    { label: chosen.title, of: (p) => digits(p.ratio), strong: true },
    { label: "lower bound", of: (p) => digits(p.low) },
    { label: "true-positive rate", of: (p) => digits(p.tpr), strong: true },
    { label: "95 % interval", of: (p) => `${digits(p.tpr_low)} to ${digits(p.tpr_high)}` },
    { label: "change (std. error)", of: (p) => `${points(p.tpr_change)} (${(100 * p.tpr_change_error).toFixed(2)})` },
    ...aim.groups.map((group, i) => ({ label: `${chosen.title.replace("-rate ratio", " rate")}: ${group}`, of: (p) => percent(p.rates[i]) })),
  ], chosen.points))));
}
