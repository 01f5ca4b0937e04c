// The effects of rows on the model, for the attribute that is selected on the page.

const REACH = 1.96; // errors to either side: a 95 % interval

document.getElementById("values").before(
  el("section", { id: "effects" }, el("h2", {}, "Effects of rows on the model"), el("div", { "data-part": "" })));

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

function measurable(change, error) {
  return known(change) && known(error) && Math.abs(change) > REACH * error;
}

// Write a measured change with its interval.
function changed(change, error) {
  const write = (number) => { const text = Math.abs(number).toFixed(3); return Number(text) === 0 ? text : `${number < 0 ? "−" : "+"}${text}`; };
  return known(change) ? `${write(change)}${known(error) ? ` ± ${(REACH * error).toFixed(3)}` : ""}` : "–";
}

function changeCell(measured, key) {
  const change = measured[`${key}_change`], error = measured[`${key}_error`];
  if (!known(change)) return "–";
  return measurable(change, error)
    ? el("b", { class: change < 0 ? "nowrap lower" : "nowrap" }, changed(change, error))
    : el("span", { class: "unmeasurable" }, el("span", { class: "nowrap" }, `${changed(change, error)},`), " no measurable change");
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

// points: [{share, change, error}], measured, with bars of 1.96 errors to either side
function pointPlot(box, points, label_) {
  const ends = [...points.flatMap((p) => [p.change - REACH * p.error, p.change + REACH * p.error]), 0];
  const room = (Math.max(...ends) - Math.min(...ends) || 1) * 0.06, low = Math.min(...ends) - room, high = Math.max(...ends) + room;
  drawing(box, 220, label_, (svg, width) => {
    const left = 58, right = 12, top = 8, foot = 40, height = 220;
    const x = (place) => left + ((place + 0.5) / points.length) * (width - left - right);
    const y = (v) => top + ((high - v) / (high - low)) * (height - top - foot);
    const steps = ticksBetween(low, high, 4), step = steps[1] - steps[0];
    const places = Math.max(2, Math.ceil(-Math.log10(step) - 1e-9) + (step.toPrecision(3).includes("25") ? 1 : 0));
    for (const tick of steps) {
      const zero = Math.abs(tick) < 1e-12;
      put(svg, "line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: zero ? "neutral" : "axis" });
      put(svg, "text", { x: left - 6, y: y(tick) + 4, class: "soft", "text-anchor": "end" }, zero ? "0" : `${tick < 0 ? "−" : "+"}${Math.abs(tick).toFixed(places)}`);
    }
    points.forEach((point, place) => {
      put(svg, "line", { x1: x(place), x2: x(place), y1: y(point.change - REACH * point.error), y2: y(point.change + REACH * point.error), class: "whisker" });
      const mark = put(svg, "circle", { cx: x(place), cy: y(point.change), r: 5, "data-point": point.share });
      mark.style.fill = !measurable(point.change, point.error) ? "var(--soft)" : point.change < 0 ? "var(--mark)" : "var(--accent)";
      mark.append(svgEl("title", {}, changed(point.change, point.error)));
      put(svg, "text", { x: x(place), y: height - foot + 16, class: "soft", "text-anchor": "middle" }, `${+(100 * point.share).toFixed(1)} %`);
    });
    put(svg, "text", { x: (left + width - right) / 2, y: height - 6, class: "soft", "text-anchor": "middle" }, "rows removed, most harmful first");
  });
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

function drawCells(box, effects, about) {
  const card = el("article", { class: "card below", "data-effects": "cells" }, el("h3", {}, "Effect per group and label"),
    el("p", { class: "small" }, `Sums of the effects of all rows of a group and label. Red: below 0. ${count(effects.harmful)} rows (${percent(effects.harmful / about.rows)}) have a negative effect on the ratio.`));
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

function drawRemoval(box, effects) {
  const points = effects.curve.filter((p) => p.measured !== null);
  if (!points.length) return;
  const card = el("article", { class: "card below", "data-effects": "curve" }, el("h3", {}, "Removing the most harmful rows"),
    el("p", { class: "small" }, "Measured changes. Bars are 95 % intervals; red points lower the metric, and at a grey point there is no measurable change."));
  box.append(card);
  const panels = sideBySide(card);
  for (const [key, title] of metricsOf(effects)) {
    const measured = points.map((p) => ({ share: p.share, change: p.measured[`${key}_change`], error: p.measured[`${key}_error`] })).filter((p) => known(p.change) && known(p.error));
    if (measured.length) pointPlot(panel(panels, `change of the ${title}`), measured, `Change of the ${title} by the share of rows removed`);
  }
  card.append(el("details", {}, el("summary", {}, "Numbers"), table([
    { label: "removed", text: true, of: (p) => [`${count(p.rows)} rows (${percent(p.share)})`, ...cellLines(p.cells)] },
    ...metricsOf(effects).map(([key, title], index) => ({ label: `change of ${title}`, of: (p) => changeCell(p.measured, key), strong: index === 0 })),
  ], points)));
}

// How many rows of each group and label; fewer than ten are not listed.
function cellLines(cells) {
  return cells.map((c) => el("span", { class: "condition small" }, `${count(c.rows)} of `, name(c.group), " labelled ", name(c.label)));
}

function drawEffectSlices(box, effects, about) {
  const measured = effects.measured !== null;
  const card = el("article", { class: "card below", "data-effects": "slices" }, el("h3", {}, measured ? `What removing a slice changes` : "Slices to look at"),
    el("p", { class: "small" }, `Conditions on one or two columns, the target included${about.rows_searched < about.rows ? `, searched in ${count(about.rows_searched)} rows drawn at random` : ""}.${measured ? " Changes of the model's metrics are measured on validation data, which was not used to compute effects, with 95 % intervals; what lowers a metric is red. Influence proposed these slices: some lower the ratio when they are removed." : " The effect of removing them was not measured."} Look at the rows of a slice before you delete any.`));
  box.append(card);
  if (!effects.slices.length) {
    card.append(el("p", { class: "note" }, "No slice stands out beyond chance."));
    return;
  }
  card.append(table([
    { label: "rows where", text: true, of: (s) => s.conditions.map((c, i) => el("span", { class: "condition" }, i ? "and " : "", name(c))) },
    { label: "rows", of: (s) => [`${count(s.rows)} (${percent(s.share)})`, known(s.p_value) ? el("span", { class: "condition small" }, chance(s.p_value)) : null] },
    ...(measured ? metricsOf(effects).map(([key, title]) => ({ label: `change of ${title}`, of: (s) => (s.measured ? changeCell(s.measured, key) : "not tried") })) : []),
  ], effects.slices));
}

function drawHarmful(box, effects, about) {
  if (!effects.rows.length) return;
  const write = signedLike(effects.rows.map((r) => r.ratio_effect));
  const card = el("article", { class: "card below", "data-effects": "rows" }, el("h3", {}, "Rows with a negative effect on the ratio"),
    table([
      { label: "group", text: true, of: (c) => name(c.group) },
      { label: "label", text: true, of: (c) => name(c.label) },
      { label: "rows", of: (c) => `${count(c.rows)} (${percent(c.rows / effects.harmful)})` },
    ], effects.harmful_rows),
    el("details", {}, el("summary", {}, `Numbers of the ${effects.rows.length} rows with the lowest effect`),
      el("p", { class: "small" }, `Row numbers (the first row is 0) and their effect on the ${effects.ratio}.`),
      el("div", { class: "rows" }, effects.rows.map((row) => el("span", {}, `${row.row} `, el("span", { class: "small" }, write(row.ratio_effect)))))));
  for (const row of effects.rows.filter((one) => one.features)) {
    card.append(el("details", {}, el("summary", {}, `Row ${row.row}`), el("p", { class: "facts" },
      name(about.target.name), ": ", name(row.label), row.features.flatMap(([column, value]) => [" · ", name(column), ": ", name(value)]))));
  }
  box.append(card);
}

function drawMeasured(box, effects) {
  const measured = effects.measured;
  if (measured === null) {
    box.append(el("p", { class: "note", "data-effects": "reason" }, name(effects.reason)));
    return;
  }
  const before = metricsOf(effects).filter(([key]) => known(measured.before[key])).map(([key, title]) => `${title} ${digits(measured.before[key])}${measured.before[`${key}_error`] > 0 ? ` ± ${digits(REACH * measured.before[`${key}_error`])}` : ""}`);
  box.append(el("p", { class: "lead", "data-effects": "measured" }, name(`Slices were found on one half of the rows (${count(measured.search_rows)}) and measured on the other half (${count(measured.validation_rows)}), with ${count(measured.fits)} fits.${before.length ? ` Before any change: ${before.join(", ")}.` : ""}${measured.note ? ` ${measured.note}` : ""}`)));
}

function drawEffects() {
  const effects = summary.attributes[state.attribute].effects, box = part("effects");
  document.getElementById("effects").hidden = !effects;
  if (!effects) return;
  if (effects.lead) box.append(el("p", { class: "lead" }, name(effects.lead)));
  drawMeasured(box, effects);
  drawEffectSlices(box, effects, about);
  drawRemoval(box, effects);
  if (effects.cells.length) drawCells(box, effects, about);
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
