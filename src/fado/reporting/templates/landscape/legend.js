// The legend. A click on an intervention shows it alone, so that nobody needs to distinguish colours.

function drawLegend(box, models, state, change) {
  const there = new Set(state.points.map((point) => models.kind(point.row)));
  const entries = models.looks.flatMap((look, kind) => {
    if (!there.has(kind)) return [];
    const button = el("button", { type: "button", class: "kind", "data-kind": kind, "aria-pressed": String(state.only === kind) },
      markOf(look, null), name(look.name), look.needs_group ? " (hollow: needs the group)" : "");
    button.addEventListener("click", () => change({ only: state.only === kind ? null : kind }));
    return [button];
  });
  const steered = models.looks.find((look, kind) => there.has(kind) && look.colour === null), seen = alphasOf(models, state);
  const [least, most] = [seen[0], seen[seen.length - 1]];
  const shown = seen.length <= 11 ? seen : [0, 0.25, 0.5, 0.75, 1].map((share) => least + share * (most - least));
  const scale = shown.length ? el("span", { class: "alphas" }, `alpha ${+least.toFixed(3)} `, shown.map((alpha) => markOf(steered, alpha)), most > least ? ` ${+most.toFixed(3)}` : "") : null;
  box.replaceChildren(el("div", { class: "kinds", role: "group", "aria-label": "Show one kind alone" }, entries, scale));
}

// The alphas that colour a mark of the view, from low to high.
function alphasOf(models, state) {
  const steered = state.points.filter((point) => models.look(point.row).colour === null);
  return [...new Set(steered.map((point) => models.alpha(point.row)).filter(known))].sort((a, b) => a - b);
}
