// The rule: of every kind of intervention the best model above the line, or the closest to it. It is that of
// `Results.best`, `closest` and `winners`.

// Per kind that has a model to compare: its row, whether it reaches the line, and how many it was chosen from.
function chooseModels(models, view, line) {
  const wanted = Math.round(line * 1000) * 1000; // in millionths, as ratios are
  const found = new Map();
  for (const row of models.rows) {
    const ratio = models.ratio(models.chosenOn, view, row);
    if (ratio === null) continue;
    const kind = models.kind(row);
    if (!found.has(kind)) found.set(kind, { kind, row, reached: false, most: -1, compared: 0 });
    const one = found.get(kind);
    one.compared += 1;
    if (one.reached) continue; // rows come best first
    if (ratio >= wanted || ratio > one.most) Object.assign(one, { row, most: ratio, reached: ratio >= wanted });
  }
  const chosen = [...found.values()];
  const falling = (name) => (a, b) => order(models.millionths(name, b.row)) - order(models.millionths(name, a.row));
  return [
    ...chosen.filter((one) => one.reached).sort(before(models)).sort(falling("test_tpr")),
    ...chosen.filter((one) => !one.reached).sort(before(models)).sort(falling(`test_${models.views[view].ratio}`)),
  ];
}

// The best of all kinds above the line, by the same rule; the closest if none is; null if there is none.
function bestOfAll(chosen) {
  const reached = chosen.filter((one) => one.reached).map((one) => one.row); // rows come best first
  if (reached.length || !chosen.length) return reached.length ? Math.min(...reached) : null;
  return chosen.reduce((best, other) => (other.most > best.most || (other.most === best.most && other.row < best.row) ? other : best)).row;
}

// What is missing comes last.
function order(number) {
  return number === null ? -1 : number;
}

function before(models) {
  return (a, b) => (a.reached ? a.row - b.row : b.most - a.most || a.row - b.row);
}
