// The landscapes, drawn by Vega.

// The same as `select_points` in _points.py.
function selectPoints(points, which) {
  return points.rows
    .filter((row) => row[3 + which][0] !== null)
    .map((row) => ({
      ...points.settings[row[0]],
      model: points.models[row[1]],
      tpr: row[2],
      ratio: row[3 + which][0],
      frontier: row[3 + which][1] === 1,
    }))
    .sort((a, b) => a.frontier - b.frontier);
}

const EMBEDDING = {
  mode: "vega-lite",
  renderer: "canvas",
  ast: true, // expressions are interpreted: the page may not evaluate text as code
  defaultStyle: false, // the policy allows the page's own style alone
  forceActionsMenu: true, // or there would be no menu without that style
  tooltip: { disableDefaultStyle: true },
  actions: { export: true, source: false, compiled: false, editor: false },
};

function drawLandscapes(content) {
  const box = document.getElementById("landscapes");
  content.titles.forEach((title, which) => {
    const charts = content.charts.filter((chart) => chart.which === which).map(({ zoom, spec }) => {
      const place = el("div", { class: "chart", id: `chart-${which}-${zoom ? "zoom" : "full"}` });
      vegaEmbed(place, { ...spec, data: { values: selectPoints(content.points, which) } }, EMBEDDING);
      return place;
    });
    box.append(el("section", {}, el("h2", {}, title), el("div", { class: "charts" }, charts)));
  });
}
