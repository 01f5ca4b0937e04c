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
  content.titles.forEach((title, ratio) => {
    const charts = [true, false].map((zoom) => {
      const place = el("div", { class: "chart", id: `chart-${ratio}-${zoom ? "zoom" : "full"}` });
      followChoice(content, ratio, (which) => {
        const { spec } = content.charts.find((chart) => chart.which === which && chart.zoom === zoom);
        vegaEmbed(place, { ...spec, data: { values: selectPoints(content.points, which) } }, EMBEDDING);
      });
      return place;
    });
    const heading = el("div", { class: "heading" }, el("h2", {}, title), attributeSelect(content, ratio));
    box.append(el("section", {}, heading, el("div", { class: "charts" }, charts)));
  });
}
