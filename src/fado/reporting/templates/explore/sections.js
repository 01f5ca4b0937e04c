// The parts of the page that do not move with the slider.

const MOST_PER_SLICE = 4; // groups whose outcomes are listed one by one

function drawAnswers(attribute) {
  part("answers").append(el("div", { class: "card answers" }, attribute.answers.map((one) =>
    el("div", { class: "answer", "data-answer": one.id }, el("h3", {}, one.title), el("div", {}, el("p", {}, name(one.sentence)),
      one.command === null ? null : el("pre", { tabindex: 0, "aria-label": "Command to copy" }, el("code", {}, one.command)))))));
}

function drawBiases(attribute, about) {
  const box = part("biases");
  for (const bias of attribute.biases) {
    const write = bias.format === "percent" && bias.id === "prevalence" ? points : writers[bias.format];
    const card = el("article", { class: "card", "data-bias": bias.id }, el("h3", {}, bias.name));
    box.append(card);
    if (known(bias.number)) {
      card.append(el("div", { class: "big" }, write(bias.number),
        el("span", { class: "interval" }, `95 % interval ${write(bias.low)} to ${write(bias.high)}`)));
      card.append(el("p", { class: "measure" }, bias.measure));
    }
    card.append(el("p", {}, bias.sentence));
    if (bias.bars.length) {
      card.append(el("p", { class: "measure" }, bias.bars_are));
      barPlot(card, bias.bars, bias.bars_format, `${bias.name}: ${bias.bars_are} per group`);
      if (bias.references_are) card.append(el("p", { class: "small" }, `dashed: ${bias.references_are}`));
    }
    if (bias.labels) card.append(labelShares(bias));
  }
  document.getElementById("left-out").replaceChildren(...groupList(attribute.left_out, attribute.groups, about.outcome));
}

// For a target with several labels and no positive one: each group's share of each label.
function labelShares(bias) {
  return el("details", {}, el("summary", {}, "Share of every label per group"), el("div", { class: "wide" }, table([
    { label: "label", text: true, of: (l) => name(l.label) },
    { label: "all rows", of: (l) => percent(l.share) },
    ...bias.labels_per.map((group, i) => ({ label: group, of: (l) => percent(l.groups[i]) })),
  ], bias.labels)));
}

// The groups that are not compared, and all groups with their rows; for a sample also their rows in all files.
function groupList(sentence, groups = [], outcome) {  // of one attribute, the slider lists none again
  const inAll = groups.some((g) => known(g.in_all)), rates = groups.some((g) => known(g.rate_in_all));
  if (!sentence && !inAll) return [];
  return [sentence ? el("p", { class: "note" }, name(sentence)) : null,
    el("details", { class: "groups" }, el("summary", {}, "All groups and their rows"), el("div", { class: "card" }, table([
      { label: "group", text: true, of: (g) => name(g.name) },
      { label: inAll ? "rows in the sample" : "rows", of: (g) => count(g.rows) },
      ...(inAll ? [{ label: "in all files", of: (g) => count(g.in_all) }] : []),
      ...(rates ? [{ label: `${clipped(outcome.name, 190)}, in all files`, of: (g) => percent(g.rate_in_all) }] : []),
      { label: "compared", text: true, of: (g) => g.note || "yes" },
    ], groups)))].filter(Boolean);
}

function drawValues(attribute, about) {
  const box = part("values"), values = attribute.values;
  document.getElementById("lead").textContent = values.lead;
  for (const [key, of] of [["v_y", about.target.name], ["v_z", attribute.name]]) {
    const cells = values[key], scale = scaleOf(values, key), write = writerOf(scale);
    const card = el("article", { class: "card", "data-values": key }, el("h3", {}, `${key}: ${values.scales[key].title} `, name(of)));
    box.append(card);
    if (values.scales[key].sentence) card.append(el("p", { class: "small" }, name(values.scales[key].sentence)));
    card.append(el("div", { class: "small" }, "rows with ", name(about.target.name), ":"), legend(values.labels));
    const bands = values.groups.map((group) => {
      const mine = cells.filter((cell) => cell.group === group);
      return {
        name: group,
        note: `${count(mine.reduce((sum, cell) => sum + cell.rows, 0))} rows`,
        series: mine.map((cell) => ({
          color: `--c${values.labels.indexOf(cell.label) % 12}`,
          shares: cell.histogram.map((number) => number / cell.rows),
          mean: cell.mean,
        })),
      };
    });
    ridgePlot(card, bands, scale, `${key} (ticks: means)`);
    card.append(el("details", {}, el("summary", {}, "Numbers"), table([
      { label: "group", text: true, of: (c) => name(c.group) },
      { label: "label", text: true, of: (c) => name(c.label) },
      { label: "rows", of: (c) => count(c.rows) },
      { label: "mean", of: (c) => write(c.mean) },
      { label: "quartiles", of: (c) => c.quartiles.map(write).join(" · ") },
      { label: "std. error", of: (c) => write(c.standard_error) },
    ], cells)));
  }
}

function drawStability(stability, about) {
  const box = document.getElementById("stability");
  if (!stability) return;
  box.hidden = false;
  box.append(el("h3", {}, "Would another run rank the rows the same way?"), el("p", {}, name(stability.sentence)));
  for (const [variation, change] of Object.entries(stability.changes)) box.append(el("p", { class: "small" }, `With other ${variation}: `, name(change), "."));
  for (const note of stability.notes) box.append(el("p", { class: "small" }, name(note)));
  if (!stability.rows.length) return;
  box.append(el("details", {}, el("summary", {}, "Numbers"), el("div", { class: "wide" }, table([
    { label: "values of", text: true, of: (r) => name(r.column === "y" ? about.target.name : r.column) },
    { label: "with other", text: true, of: (r) => r.variation },
    { label: "group", text: true, of: (r) => name(r.group) },
    { label: "rows", of: (r) => count(r.rows) },
    { label: "rank correlation", of: (r) => digits(r.rank_agreement), strong: true },
    { label: "overlap of the highest tenths", of: (r) => percent(r.top_overlap) },
  ], stability.rows))));
}

function drawPlane(attribute, about) {
  const box = part("plane"), plane = attribute.plane;
  const [ofTarget, ofAttribute] = ["v_y", "v_z"].map((key) => scaleOf(plane, key));
  const left = el("article", { class: "card" }), right = el("article", { class: "card" });
  box.append(left, right);
  planePlot(left, plane.counts, plane.corners, ofTarget, ofAttribute, `v_y: ${plane.titles[0]} ${about.target.name} →`, `v_z: ${plane.titles[1]} ${attribute.name} →`);
  left.append(el("p", { class: "small" }, "Darker: more rows. ", name(plane.cuts)));
  for (const corner of plane.corners) {
    const groups = plane.groups.flatMap((group, index) => known(corner.share_per_group[index])
      ? [index ? " · " : "", name(group), `: ${percent(corner.share_per_group[index])}`] : []);
    const facts = [`${count(corner.rows)} rows`];
    if (known(corner.positive_rate)) facts.push(`${about.outcome.name}: ${percent(corner.positive_rate)}`);
    right.append(el("div", { class: "corner" }, el("b", {}, percent(corner.share)),
      el("div", {}, el("h3", {}, corner.name), el("p", {}, corner.meaning),
        el("p", { class: "facts" }, facts.join("; ")), el("p", { class: "facts" }, "share of each group: ", groups))));
  }
}

function drawColumns(attribute, about) {
  const box = part("columns"), columns = attribute.columns;
  if (!columns.columns.length) {
    box.append(el("p", { class: "note" }, "The features are a matrix without column names."));
    return;
  }
  const every = columns.columns, drawn = columns.drawn.map((place) => every[place]), total = every.length + columns.not_shown;
  const remark = (c) => (c.is_target ? " (target)" : c.left_out ? " (hidden from these models)" : "");
  const card = el("article", { class: "card" }, el("p", {}, name(columns.sentence)));
  box.append(card);
  card.append(el("p", { class: "small" }, `Models were trained on two thirds of ${count(columns.rows)} rows in turn. In the other third one column at a time is shuffled: the figure is the share of the uncertainty that comes back, with 95 % intervals that hold for all columns together. A column that reveals the group is a proxy for it. If it also matters for the target, a model will use it, and with it the group. Of columns that repeat each other, each has less than both together.`));
  if (drawn.length) {
    card.append(el("p", { class: "small" }, "Drawn: columns whose share is clear of chance."), legend([`reveals ${attribute.name}`, `matters for ${about.target.name}`]));
    pairPlot(card, drawn.map((c) => ({ name: `${c.name}${remark(c)}`, numbers: [c.reveals, c.matters].map((figure) => (figure.clear ? figure.share : null)) })), "Columns by how much they reveal the attribute and matter for the target");
  }
  const write = (figure) => (figure.clear ? `${percent(figure.share)} ± ${percent(figure.margin)}` : known(figure.share) ? "not clear" : "–");
  card.append(el("details", {}, el("summary", {}, drawn.length < total ? `Show all ${count(total)} columns` : "Numbers"), table([
    { label: "column", text: true, of: (c) => [name(c.name), remark(c)] },
    { label: "reveals the attribute", of: (c) => write(c.reveals), strong: true },
    { label: "matters for the target", of: (c) => write(c.matters) },
  ], every), columns.not_shown ? el("p", { class: "small" }, `${count(columns.not_shown)} more columns have smaller shares.`) : null));
}

function drawSuspicious(attribute, about) {
  const box = part("suspicious"), suspicious = attribute.suspicious;
  if (!suspicious) {
    box.append(el("p", { class: "note" }, "This part needs the models' agreement with the labels, which the values do not contain."));
    return;
  }
  const what = about.target.kind === "classes" ? "label" : "number";
  box.append(el("p", { class: "lead" }, name(suspicious.rule), ` Some of them are errors in the data, others are rare but correct: check them before you change anything. If one group has more of them, check its ${what}s first.`));
  const grid = el("div", { class: "halves" });
  box.append(grid);
  const left = el("article", { class: "card" }, el("h3", {}, `Contradicted ${what}s per group`), el("p", {}, suspicious.sentence));
  grid.append(left);
  barPlot(left, suspicious.groups.map((g) => ({ group: g.group, number: g.share, low: g.low, high: g.high, reference: g.expected })), "percent", `Contradicted ${what}s per group`);
  if (suspicious.groups.some((g) => known(g.expected))) left.append(el("p", { class: "small" }, "dashed: the share that the models' own probabilities predict"));
  left.append(el("details", {}, el("summary", {}, `By group and ${what}`), table([
    { label: "group", text: true, of: (c) => name(c.group) },
    { label: what, text: true, of: (c) => name(c.label) },
    { label: "rows", of: (c) => count(c.rows) },
    { label: "contradicted", of: (c) => percent(c.share) },
    { label: "95 % interval", of: (c) => `${percent(c.low)} to ${percent(c.high)}` },
  ], suspicious.labels)));
  const right = el("article", { class: "card", "data-rows": "" }, el("h3", {}, "Most contradicted rows"),
    el("p", { class: "small" }, `Row numbers (the first row is 0) and the models' agreement with the ${what}.`));
  grid.append(right);
  for (const group of suspicious.rows) {
    if (!group.rows.length) continue;
    right.append(el("h3", {}, name(group.group)));
    const list = el("div", { class: "rows" }, group.rows.map((row) => el("span", {}, `${row.row} `, el("span", { class: "small" }, digits(row.agreement)))));
    right.append(list);
    for (const row of group.rows.filter((one) => one.features)) {
      right.append(el("details", {}, el("summary", {}, `Row ${row.row}`), el("p", { class: "facts" },
        name(about.target.name), ": ", name(row.label), row.features.flatMap(([column, value]) => [" · ", name(column), ": ", name(value)]))));
    }
  }
  const predicted = about.target.kind === "classes" && about.target.classes.length === 2;
  const [title, hint] = predicted
    ? ["Where models agree less with labels than they predict", "Agreement is lower than the models' own probabilities predict. Wrong labels are most likely here. Clearest first."]
    : [`Where models agree least with the ${what}s`, `These ${what}s are noisy, or the rows are hard to predict. Clearest first.`];
  box.append(el("article", { class: "card below", "data-slices": "suspicious" }, el("h3", {}, title), el("p", { class: "small" }, hint),
    sliceTable(suspicious.slices, attribute.shown, attribute, about, [
      { label: "agreement", of: (s) => digits(s.mean_agreement), strong: true },
      ...(predicted ? [{ label: "predicted", of: (s) => digits(s.expected_agreement) }] : []),
      { label: "contradicted", of: (s) => percent(s.contradicted_share) },
    ])));
}

// A slice's outcome group by group; of many groups only where it is highest and lowest.
function perGroup(outcomes, write) {
  const line = (one, word) => el("span", { class: "condition small" }, word, name(one.group), ": ", el("span", { class: "nowrap" }, write(one.number)));
  if (outcomes.length <= MOST_PER_SLICE) return outcomes.map((one) => line(one, ""));
  const sorted = [...outcomes].sort((a, b) => b.number - a.number);
  return [line(sorted[0], "highest in "), line(sorted[outcomes.length - 1], "lowest in ")];
}

function sliceTable(slices, groups, attribute, about, extra) {
  if (!slices.length) return el("p", { class: "note" }, "No slice stands out beyond chance.");
  const [writeY, writeZ] = ["v_y", "v_z"].map((key) => writerOf(scaleOf(attribute.values, key)));
  const columns = [
    { label: "rows where", text: true, of: (s) => s.conditions.map((c, i) => el("span", { class: "condition" }, i ? "and " : "", name(c))) },
    { label: "rows", of: (s) => [`${count(s.rows)} (${percent(s.share)})`, "p_value" in s ? el("span", { class: "condition small" }, chance(s.p_value)) : null] },
    ...extra,
    { label: "mean v_y", of: (s) => writeY(s.mean_v_y) },
    { label: "mean v_z", of: (s) => writeZ(s.mean_v_z) },
  ];
  if (about.outcome) {
    const write = writers[about.outcome.format];
    columns.push({ label: clipped(about.outcome.name, 190), of: (s) => write(s.outcome) });
    columns.push({
      label: "per group", text: true,
      of: (s) => perGroup(groups.map((group, i) => ({ group, number: s.outcome_per_group[i] })).filter((one) => known(one.number)), write),
    });
  }
  return table(columns, slices);
}
