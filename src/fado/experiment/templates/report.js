"use strict";
(() => {
  const { table, charts } = JSON.parse(document.getElementById("data").textContent);

  // The same as `points_of` in _charts.py.
  const points = (which) =>
    table.rows
      .filter((row) => row[3 + which][0] !== null)
      .map((row) => ({
        ...table.settings[row[0]],
        model: table.models[row[1]],
        tpr: row[2],
        ratio: row[3 + which][0],
        frontier: row[3 + which][1] === 1,
      }))
      .sort((a, b) => a.frontier - b.frontier);

  const options = {
    mode: "vega-lite",
    renderer: "canvas",
    ast: true, // expressions are interpreted: the page may not evaluate text as code
    actions: { export: true, source: false, compiled: false, editor: false },
  };

  for (const { which, zoom, spec } of charts) {
    const place = document.getElementById(`chart-${which}-${zoom ? "zoom" : "full"}`);
    const title = zoom ? "the best corner" : "all models";
    vegaEmbed(place, { ...spec, title, data: { values: points(which) } }, options);
  }
})();
