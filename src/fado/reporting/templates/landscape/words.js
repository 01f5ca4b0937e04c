// Sentences about models.

// A metric on a part, with its interval if there is one.
function withInterval(models, name, row) {
  const [number, low, high] = ["", "_low", "_high"].map((end) => models.figure(`${name}${end}`, row));
  if (!known(number)) return "–";
  return known(low) && known(high) ? `${digits(number)} (${digits(low)} to ${digits(high)})` : digits(number);
}

// The same for a table: the interval below.
function figureCell(models, name, row) {
  const [number, interval] = withInterval(models, name, row).split(" (");
  return interval ? [el("span", {}, `${number} `), el("span", { class: "small nowrap" }, `(${interval}`)] : number;
}

// The line, and a ratio below it with as many decimals as tell the two apart.
function lineText(line) {
  return String(+line.toFixed(6));
}

function ratioText(ratio, line) {
  return ratio < line && Number(ratio.toFixed(3)) >= line ? ratio.toFixed(6) : digits(ratio);
}

function several(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}

// A model in a few words: its kind, its settings, its number and parameters.
function modelName(models, row) {
  const setting = models.setting(row);
  return [name(models.look(row).name), setting ? [" (", name(setting), ")"] : "", ", model ", name(models.model(row))].flat();
}

// The same without its parameters.
function shortName(models, row) {
  const setting = models.setting(row);
  return [name(models.look(row).name), setting ? [" (", name(setting), ")"] : "", `, model ${models.model(row).split(":")[0]}`].flat();
}

// How many models of an intervention were tried, and how many of them can be compared.
function triedText(models, kind, compared) {
  const ofKind = models.rows.filter((row) => models.kind(row) === kind), tried = `tried with ${models.looks[kind].name}`;
  const fits = ofKind.reduce((sum, row) => sum + (models.count("fits", row) || 0), 0);
  const cost = fits ? ` (${several(fits, "fit")} in all)` : "";
  return compared === ofKind.length
    ? `${several(compared, "model")} ${tried}${cost}`
    : `${several(compared, "model")} that can be compared, of ${count(ofKind.length)} ${tried}${cost}`;
}

// How many models the selected one was selected from, and what that means for its figures.
function triesText(models, one) {
  const tried = `${one.reached ? "Best" : "Closest"} of ${triedText(models, one.kind, one.compared)}`;
  if (one.compared === 1) return `${tried}: there were no others.`;
  return models.chosenOn === "test"
    ? `${tried}, selected on the test part itself: its test figures are optimistic.`
    : `${tried}. Its ${models.chosenOn} figures are optimistic, its test figures are not.`;
}

// Which models of a kind were left out of the comparison, as far as is known.
function leftOutText(models, content, kind, compared) {
  const look = models.looks[kind], done = models.rows.filter((row) => models.kind(row) === kind).length;
  const parts = look.statuses.filter((status) => !status.endsWith(" done"));
  if (done > compared) parts.unshift(`${count(done - compared)} over the budget or undefined on the ${models.chosenOn} part${content.first_looks ? ", or trained in part only" : ""}`);
  const why = content.errors.find((row) => row.intervention === look.name);
  return parts.length ? `${parts.join(", ")}${why ? ` (${why.error.replace(/\.$/, "")})` : ""}` : "";
}
