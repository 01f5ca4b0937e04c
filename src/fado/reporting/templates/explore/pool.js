// Unlabelled rows next to the labelled ones, on pages that have some, for the attribute that is selected.

document.getElementById("plane").after(
  el("section", { id: "pool" }, el("h2", {}, "Unlabelled rows"), el("div", { "data-part": "" })));

const MOST_SHIFTS = 12; // columns in the picture; the table has more
const KINDS_OF_ROWS = ["labelled", "pool"];

function poolValues(box, part, attribute) {
  const grid = el("div", { class: "halves" });
  box.append(grid);
  for (const [key, of] of [["v_y", about.target.name], ["v_z", attribute.name]]) {
    const scale = scaleOf(attribute.values, key), write = writerOf(scale);
    const card = el("article", { class: "card", "data-pool": key }, el("h3", {}, `${key}: ${attribute.values.scales[key].title} `, name(of)));
    grid.append(card);
    ridgePlot(card, KINDS_OF_ROWS.map((kind, index) => ({
      name: kind,
      note: `mean ${write(part[key][kind].mean)}`,
      series: [{ color: `--c${index}`, shares: part[key][kind].shares, mean: part[key][kind].mean }],
    })), scale, `${key} (ticks: means)`);
    const told = KINDS_OF_ROWS.map((kind) => ({ kind, ...part[key][kind] }));
    card.append(el("details", {}, el("summary", {}, "Numbers"), table([
      { label: "rows", text: true, of: (r) => `${r.kind}: ${count(r.rows)}` },
      { label: "mean", of: (r) => write(r.mean) },
      { label: "quartiles", of: (r) => r.quartiles.map(write).join(" · ") },
      ...(told.some((r) => known(r.epistemic)) ? [{ label: "epistemic part", of: (r) => write(r.epistemic) }] : []),
    ], told)));
    if (known(part[key].pool.epistemic)) {
      card.append(el("p", { class: "small" }, `Epistemic part in the pool: ${write(part[key].pool.epistemic)} on average. This part of the uncertainty comes from models that disagree with each other; more labels could reduce it.`));
    }
  }
}

function poolPlanes(box, part, attribute) {
  const plane = attribute.plane, [ofTarget, ofAttribute] = ["v_y", "v_z"].map((key) => scaleOf(plane, key));
  const card = el("article", { class: "card below", "data-pool": "planes" }, el("h3", {}, "Both values together"), el("p", {}, part.sentence));
  const grid = el("div", { class: "halves" });
  card.append(grid);
  box.append(card);
  for (const [title, one] of [["labelled", plane], ["pool", part.plane]]) {
    const side = el("div", {}, el("p", { class: "measure" }, title));
    grid.append(side);
    planePlot(side, one.counts, one.corners, ofTarget, ofAttribute, `v_y: ${plane.titles[0]} ${about.target.name} →`, `v_z: ${plane.titles[1]} ${attribute.name} →`);
  }
  card.append(el("p", { class: "small" }, "Darker: more rows. Both charts use the cuts of the labelled rows."));
}

function poolShifts(box, shifts) {
  const card = el("article", { class: "card below", "data-pool": "shifts" }, el("h3", {}, "Columns that differ"), el("p", {}, name(shifts.sentence)));
  box.append(card);
  const clear = shifts.columns.filter((c) => c.is_clear).slice(0, MOST_SHIFTS);
  if (clear.length) {
    barPlot(card, clear.map((c) => ({ group: c.column, number: c.distance, reference: c.chance })), "number", "Distance between labelled and unlabelled rows per column");
    card.append(el("p", { class: "small" }, "Distance from 0 to 1: for numbers the Kolmogorov-Smirnov distance (the widest gap between the two distribution functions), for categories the total variation (the share of rows that would have to change). Dashed: the distance that chance alone does not exceed in any column, 95 times out of 100. Columns farthest above it come first."));
  }
  if (!shifts.columns.length) return;
  card.append(el("details", {}, el("summary", {}, "Numbers"), table([
    { label: "column", text: true, of: (c) => name(c.column) },
    { label: "distance", of: (c) => digits(c.distance), strong: true },
    { label: "chance", of: (c) => digits(c.chance) },
    { label: "widest gap where", text: true, of: (c) => c.where ? name(c.where) : "–" },
    { label: "labelled", of: (c) => c.where ? percent(c.labelled_share) : "–" },
    { label: "pool", of: (c) => c.where ? percent(c.pool_share) : "–" },
  ], shifts.columns), shifts.compared > shifts.columns.length ? el("p", { class: "small" }, `${count(shifts.compared - shifts.columns.length)} more columns differ less.`) : null));
}

function poolSlices(box, pool, part, attribute) {
  const { alpha, mean, slices } = part.utility, write = writerOf(scaleOf(attribute.alpha.utilities.linear));
  const [writeY, writeZ] = ["v_y", "v_z"].map((key) => writerOf(scaleOf(attribute.values, key)));
  const card = el("article", { class: "card below", "data-slices": "pool" }, el("h3", {}, "Where labels are worth most"),
    el("p", { class: "small" }, `Slices of the pool whose mean linear utility (alpha ${alpha.toFixed(2)}) is above the pool's mean of ${write(mean)} beyond chance, clearest first${pool.rows_searched < pool.rows ? `; searched in ${count(pool.rows_searched)} rows drawn at random, counted in all rows` : ""}. The slider does not change this table.`));
  box.append(card);
  if (!slices.length) {
    card.append(el("p", { class: "note" }, "No slice stands out beyond chance."));
    return;
  }
  card.append(table([
    { label: "rows where", text: true, of: (s) => s.conditions.map((c, i) => el("span", { class: "condition" }, i ? "and " : "", name(c))) },
    { label: "rows", of: (s) => [`${count(s.rows)} (${percent(s.share)})`, el("span", { class: "condition small" }, chance(s.p_value))] },
    { label: "mean utility", of: (s) => write(s.mean_utility), strong: true },
    { label: "mean v_y", of: (s) => writeY(s.mean_v_y) },
    { label: "mean v_z", of: (s) => writeZ(s.mean_v_z) },
  ], slices));
}

function drawPool() {
  const pool = summary.pool, attribute = summary.attributes[state.attribute], shown = pool.attributes[state.attribute], box = part("pool");
  box.append(el("p", { class: "lead" }, `A pool of ${count(pool.rows)} unlabelled rows, next to the ${count(about.rows)} labelled ones.${pool.rows_without_value ? ` ${count(pool.rows_without_value)} rows without a value are left out.` : ""}`));
  if (pool.caution) box.append(el("p", { class: "lead" }, name(pool.caution)));
  poolValues(box, shown, attribute);
  poolPlanes(box, shown, attribute);
  poolShifts(box, pool.shifts);
  poolSlices(box, pool, shown, attribute);
}

drawPool();
document.getElementById("switch").addEventListener("click", drawPool);
window.addEventListener("hashchange", drawPool);
let poolWidth = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === poolWidth) return;
  poolWidth = window.innerWidth;
  drawPool();
});
