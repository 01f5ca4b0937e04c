// What the marks stand for. A click on a kind shows it alone: it can be told apart without its colour.

function drawLegend(box, models, state, change) {
  const there = new Set(state.points.map((point) => models.kind(point.row)));
  const entries = models.looks.flatMap((look, kind) => {
    if (!there.has(kind)) return [];
    const button = el("button", { type: "button", class: "kind", "data-kind": kind, "aria-pressed": String(state.only === kind) },
      markOf(look, 0), name(look.name), look.needs_group ? " (hollow: needs the group)" : "");
    button.addEventListener("click", () => change({ only: state.only === kind ? null : kind }));
    return [button];
  });
  const steered = models.looks.find((look, kind) => there.has(kind) && look.colour === null);
  const scale = steered ? el("span", { class: "alphas" }, "alpha 0 ", [0, 0.25, 0.5, 0.75, 1].map((alpha) => markOf(steered, alpha)), " 1") : null;
  box.replaceChildren(el("div", { class: "kinds", role: "group", "aria-label": "Show one kind alone" }, entries, scale));
}
