// What rows do to the model. It stands only on pages of values that are effects, and follows the page's choice of an attribute.

document.getElementById("values").before(
  el("section", { id: "effects" }, el("h2", {}, "What rows do to the model"), el("div", { "data-part": "" })));

// Write numbers with their signs, and with as many decimals as the largest of them needs.
function signedLike(numbers) {
  const largest = Math.max(...numbers.filter(known).map(Math.abs), 0);
  const decimals = Math.min(8, largest > 0 ? Math.max(3, 2 - Math.floor(Math.log10(largest))) : 3);
  return (number) => {
    if (!known(number)) return "–";
    const text = Math.abs(number).toFixed(decimals);
    return Number(text) === 0 ? text : `${number < 0 ? "−" : "+"}${text}`;
  };
}

// The metrics that there are effects on.
function metricsOf(effects) {
  return [["ratio", effects.ratio], ["performance", effects.performance]].filter(([, title]) => title !== null);
}

// bars: [{name, number}], to both sides of 0
function sumPlot(box, bars, write, label_) {
  const row = 30, ends = [...bars.map((b) => b.number), 0];
  const least = Math.min(...ends), most = Math.max(...ends);
  drawing(box, bars.length * row + 6, label_, (svg, width) => {
    const left = nameRoom(bars.map((b) => b.name), Math.min(110, width * 0.3), width * 0.42), right = 72;
    const x = (v) => left + ((v - least) / (most - least || 1)) * (width - left - right);
    bars.forEach((bar, index) => {
      const y = index * row + 4;
      label(svg, { x: 0, y: y + 15 }, bar.name, left - 8);
      const rect = put(svg, "rect", { x: Math.min(x(0), x(bar.number)), y: y + 2, width: Math.max(1, Math.abs(x(bar.number) - x(0))), height: 18, rx: 2 });
      rect.style.fill = bar.number < 0 ? "var(--mark)" : "var(--bar)";
      if (bar.number < 0) rect.style.fillOpacity = 0.55;
      put(svg, "text", { x: width, y: y + 15, "text-anchor": "end", class: "bold" }, write(bar.number));
    });
    put(svg, "line", { x1: x(0), x2: x(0), y1: 0, y2: bars.length * row, class: "neutral" });
  });
}

// curve: [{share, number}]; dots: [{share, predicted, measured, low, high}]; limit: a change that nothing can pass
function curvePlot(box, curve, dots, limit, label_) {
  const ends = [...curve.map((p) => p.number), ...dots.flatMap((d) => [d.predicted, d.measured, d.low, d.high]), 0].filter(known);
  let low = Math.min(...ends), high = Math.max(...ends);
  const room = (high - low || 1) * 0.06;
  low -= low < 0 ? room : 0;
  high += room;
  const end = Math.max(...curve.map((p) => p.share));
  drawing(box, 240, label_, (svg, width) => {
    const left = 52, right = 12, top = 8, foot = 40, height = 240;
    const x = (share) => left + (share / end) * (width - left - right);
    const y = (v) => top + ((high - v) / (high - low)) * (height - top - foot);
    const step = ticks(high - low, 4)[1], places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9) + (String(step).includes("25") ? 1 : 0));
    for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) {
      put(svg, "line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: Math.abs(tick) < step / 2 ? "neutral" : "axis" });
      put(svg, "text", { x: left - 6, y: y(tick) + 4, class: "soft", "text-anchor": "end" }, Math.abs(tick) < step / 2 ? "0" : `${tick < 0 ? "−" : "+"}${Math.abs(tick).toFixed(places)}`);
    }
    for (const tick of ticks(end, 4)) {
      put(svg, "text", { x: x(tick), y: height - foot + 16, class: "soft", "text-anchor": tick === end ? "end" : "middle" }, `${+(100 * tick).toFixed(1)} %`);
    }
    put(svg, "text", { x: (left + width - right) / 2, y: height - 6, class: "soft", "text-anchor": "middle" }, "rows removed, most harmful first");
    if (known(limit) && limit < high) {
      put(svg, "line", { x1: left, x2: width - right, y1: y(limit), y2: y(limit), class: "reference" });
      put(svg, "text", { x: left + 6, y: y(limit) - 5, class: "soft" }, "a ratio of 1: no more to gain");
    }
    const line = put(svg, "path", { d: `M${curve.map((p) => `${x(p.share)},${y(p.number)}`).join("L")}`, fill: "none", "stroke-width": 2, "data-curve": "" });
    line.style.stroke = "var(--accent)";
    for (const dot of dots) {
      const at = x(dot.share);
      if (known(dot.low) && known(dot.high)) put(svg, "line", { x1: at, x2: at, y1: y(dot.low), y2: y(dot.high), class: "whisker" });
      for (const [number, solid] of [[dot.predicted, false], [dot.measured, true]]) {
        if (!known(number)) continue;
        const mark = put(svg, "circle", { cx: at, cy: y(number), r: 5, "stroke-width": 2 });
        mark.style.fill = solid ? "var(--c1)" : "var(--card)";
        mark.style.stroke = solid ? "var(--c1)" : "var(--accent)";
      }
    }
  });
}

function keyMark(solid) {
  const mark = el("i");
  mark.style.borderRadius = "50%";
  mark.style.boxSizing = "border-box";
  mark.style.border = `2px solid var(${solid ? "--c1" : "--accent"})`;
  if (solid) mark.style.background = "var(--c1)";
  return mark;
}

function sideBySide(card) {
  const panels = el("div", { class: "halves" });
  card.append(panels);
  return panels;
}

function panel(panels, title) {
  const box = el("div", {}, el("p", { class: "measure" }, title));
  panels.append(box);
  return box;
}

function drawCells(box, effects) {
  const card = el("article", { class: "card", "data-effects": "cells" }, el("h3", {}, "Effect per group and label"),
    el("p", { class: "small" }, "Sums over all rows of a cell. Red: removing such rows would raise the metric."));
  box.append(card);
  const panels = sideBySide(card);
  for (const [key, title] of metricsOf(effects)) {
    const write = signedLike(effects.cells.map((c) => c[`${key}_effect`]));
    sumPlot(panel(panels, `on the ${title}`), effects.cells.map((c) => ({ name: `${c.group}, ${c.label}`, number: c[`${key}_effect`] })), write, `Effect on the ${title} per group and label`);
  }
  card.append(el("details", {}, el("summary", {}, "Numbers"), table([
    { label: "group", text: true, of: (c) => name(c.group) },
    { label: "label", text: true, of: (c) => name(c.label) },
    { label: "rows", of: (c) => count(c.rows) },
    ...metricsOf(effects).map(([key, title]) => {
      const write = signedLike(effects.cells.map((c) => c[`${key}_effect`]));
      return { label: `on the ${title}`, of: (c) => write(c[`${key}_effect`]) };
    }),
  ], effects.cells)));
}

function drawRemoval(box, effects, about) {
  const measured = effects.measured, points = measured ? measured.points : [];
  const card = el("article", { class: "card below", "data-effects": "curve" }, el("h3", {}, "If the most harmful rows went"));
  box.append(card);
  card.append(el("p", { class: "small" }, `${count(effects.harmful)} rows (${percent(effects.harmful / about.rows)}) have a negative effect on the ratio. Lines: the change that all values predict.`));
  const panels = sideBySide(card);
  for (const [key, title] of metricsOf(effects)) {
    curvePlot(panel(panels, `change of the ${title}`), effects.curve.map((p) => ({ share: p.share, number: p[`${key}_change`] })),
      points.map((p) => ({ share: p.share, predicted: p[`predicted_${key}_change`], measured: p[`measured_${key}_change`], low: p[`lowest_${key}_change`], high: p[`highest_${key}_change`] })),
      key === "ratio" && effects.now ? 1 - effects.now.ratio : null, `Change of the ${title} by the share of rows removed`);
  }
  if (!measured) {
    card.append(el("p", { class: "small" }, "Not measured. With TreeInfluence's values, explore(…, retrain=True) trains the model again without these rows, and shows how far to trust the lines."));
    return;
  }
  card.append(el("div", { class: "legend" }, el("span", {}, keyMark(false), "predicted for the trial"), el("span", {}, keyMark(true), "measured")),
    el("p", { class: "small" }, `The trial: ${count(measured.train_rows)} rows were valued without the other ${count(measured.judged_rows)}, which judged the model before (${effects.ratio} ${digits(measured.before.ratio)}, ${effects.performance} ${digits(measured.before.performance)}) and after. One retraining is noisy: points are means of ${measured.repeats}, each without another ${+(100 * measured.left_out).toFixed(1)} % of the rows; bars reach from the lowest to the highest.`));
  card.append(el("details", {}, el("summary", {}, "Numbers"), table([
    { label: "removed", text: true, of: (p) => `${count(p.rows)} (${percent(p.share)})` },
    ...metricsOf(effects).flatMap(([key, title]) => {
      const write = signedLike(points.flatMap((p) => [p[`predicted_${key}_change`], p[`measured_${key}_change`]]));
      return [
        { label: `${title}: predicted`, of: (p) => write(p[`predicted_${key}_change`]) },
        { label: "measured", of: (p) => write(p[`measured_${key}_change`]), strong: true },
      ];
    }),
  ], points)));
}

function drawRemovalSlices(box, effects, about) {
  const card = el("article", { class: "card below", "data-effects": "slices" }, el("h3", {}, `Slices whose removal would raise the ${effects.ratio} most`),
    el("p", { class: "small" }, `Conditions on one or two columns, the target included; at least 1 % and at most 20 % of the rows${about.rows_searched < about.rows ? `, searched in ${count(about.rows_searched)} rows drawn at random, counted in all` : ""}. Predicted, not measured: a slice is a place to look at, not one to delete.`));
  box.append(card);
  if (!effects.slices.length) {
    card.append(el("p", { class: "note" }, "No slice stands out beyond chance."));
    return;
  }
  card.append(table([
    { label: "rows where", text: true, of: (s) => s.conditions.map((c, i) => el("span", { class: "condition" }, i ? "and " : "", name(c))) },
    { label: "rows", of: (s) => [`${count(s.rows)} (${percent(s.share)})`, el("span", { class: "condition small" }, chance(s.p_value))] },
    ...metricsOf(effects).flatMap(([key, title], index) => {
      const write = signedLike(effects.slices.map((s) => s[`${key}_change`]));
      return [
        { label: `change of ${title}`, of: (s) => write(s[`${key}_change`]), strong: index === 0 },
        ...(effects.now ? [{ label: `${title} then`, of: (s) => digits(s[key]) }] : []),
      ];
    }),
  ], effects.slices));
}

function drawHarmful(box, effects, about) {
  if (!effects.rows.length) return;
  const write = signedLike(effects.rows.map((r) => r.ratio_effect));
  const card = el("article", { class: "card below", "data-effects": "rows" }, el("h3", {}, "Most harmful rows"),
    el("p", { class: "small" }, `Row numbers, counted from 0, with the effect on the ${effects.ratio}.`),
    el("div", { class: "rows" }, effects.rows.map((row) => el("span", {}, `${row.row} `, el("span", { class: "small" }, write(row.ratio_effect))))));
  for (const row of effects.rows.filter((one) => one.features)) {
    card.append(el("details", {}, el("summary", {}, `Row ${row.row}`), el("p", { class: "facts" },
      name(about.target.name), ": ", name(row.label), row.features.flatMap(([column, value]) => [" · ", name(column), ": ", name(value)]))));
  }
  box.append(card);
}

function drawEffects() {
  const effects = summary.attributes[state.attribute].effects, box = part("effects");
  document.getElementById("effects").hidden = !effects;
  if (!effects) return;
  box.append(el("p", { class: "lead" }, name(effects.lead)));
  if (effects.now) {
    box.append(el("p", { class: "lead" }, `On rows that they had not seen, the models behind these values have a ${effects.ratio} of ${digits(effects.now.ratio)}${effects.performance ? ` and a ${effects.performance} of ${digits(effects.now.performance)}` : ""}.`));
  }
  drawCells(box, effects);
  drawRemoval(box, effects, about);
  drawRemovalSlices(box, effects, about);
  drawHarmful(box, effects, about);
}

drawEffects();
document.getElementById("switch").addEventListener("click", drawEffects);
window.addEventListener("hashchange", drawEffects);
let drawnWidth = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === drawnWidth) return;
  drawnWidth = window.innerWidth;
  drawEffects();
});
