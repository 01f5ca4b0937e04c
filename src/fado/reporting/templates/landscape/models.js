// What the table of models says, row by row. Metrics are in millionths, rounded down; rows come by falling
// true-positive rate on the part that models are chosen on.

const MILLION = 1e6;

function readModels(content) {
  const table = content.points;
  const places = new Map(content.looks.map((look, place) => [look.name, place]));
  const kinds = table.settings.map((setting) => places.get(setting.intervention));
  const barred = Object.fromEntries(Object.entries(table.barred).map(([part, rows]) => [part, new Set(rows)]));
  const millionths = (name, row) => {
    const column = table.metrics[name];
    return column ? column[row] : null;
  };
  const models = {
    looks: content.looks,
    chosenOn: content.chosen_on,
    parts: Object.keys(table.barred),
    views: table.views,
    rows: table.setting.map((_, row) => row),
    kind: (row) => kinds[table.setting[row]],
    look: (row) => content.looks[models.kind(row)],
    setting: (row) => table.settings[table.setting[row]].setting,
    alpha: (row) => table.settings[table.setting[row]].alpha,
    model: (row) => table.models[table.model[row]],
    count: (name, row) => (table.counts[name] ? table.counts[name][row] : null),
    millionths,
    figure: (name, row) => (known(millionths(name, row)) ? millionths(name, row) / MILLION : null),
    // The ratio of a view, null where the model may not be compared: as `Results.comparable_points` says.
    ratio: (part, view, row) => (barred[part].has(row) || millionths(`${part}_tpr`, row) === null
      ? null : millionths(`${part}_${table.views[view].ratio}`, row)),
  };
  return models;
}

// The points of a view as they are drawn, on one part; `frontier` is the number of theirs, or null.
function pointsOf(models, view, part) {
  const frontier = new Map();
  models.views[view].frontiers[part].forEach((rows, number) => rows.forEach((row) => frontier.set(row, number)));
  return models.rows
    .filter((row) => models.ratio(part, view, row) !== null)
    .map((row) => ({
      row,
      tpr: models.figure(`${part}_tpr`, row),
      ratio: models.ratio(part, view, row) / MILLION,
      frontier: frontier.has(row) ? frontier.get(row) : null,
    }));
}
