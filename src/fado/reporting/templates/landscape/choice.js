// Of every kind of intervention the best model above the line, or the closest to it: Python tells the models that
// are either at some line.

// Per kind that has a model to compare: its row, whether it reaches the line, and how many it was chosen from.
// They come by what they do on a part.
function chooseModels(models, view, line, part) {
  const wanted = Math.round(line * MILLION), ratioOf = (row) => models.ratio(models.chosenOn, view, row);
  const chosen = models.views[view].choices.map(({ steps, compared }) => {
    const [row, place] = steps.find(([candidate]) => ratioOf(candidate) >= wanted) ?? steps.at(-1);
    return { kind: models.kind(row), row, place, reached: ratioOf(row) >= wanted, most: ratioOf(row), compared };
  });
  const falling = (name) => (a, b) => order(models.millionths(name, b.row)) - order(models.millionths(name, a.row));
  return [
    ...chosen.filter((one) => one.reached).sort(before).sort(falling(`${part}_tpr`)),
    ...chosen.filter((one) => !one.reached).sort(before).sort(falling(`${part}_${models.views[view].ratio}`)),
  ];
}

// The best of all kinds above the line, by the same rule; the closest if none is; null if there is none.
function bestOfAll(models, chosen) {
  const [best] = handedOver(models, chosen).sort(before);
  return best ? best.row : null;
}

// Of those that reach the line, or all if none does: those that decide alone, if there are any.
function handedOver(models, chosen) {
  const reached = chosen.filter((one) => one.reached), among = reached.length ? reached : chosen;
  const alone = among.filter((one) => models.looks[one.kind].alone);
  return alone.length ? alone : [...among];
}

// What is missing comes last.
function order(number) {
  return number === null ? -1 : number;
}

function before(a, b) {
  if (a.reached !== b.reached) return a.reached ? -1 : 1;
  return a.reached ? a.place - b.place : b.most - a.most || a.place - b.place;
}
