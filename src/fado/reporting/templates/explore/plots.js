// Pictures. Each takes a box in the page and plain data.

// bars: [{group, rows, number, low, high, reference}]
function barPlot(box, bars, format, label_) {
  const write = format === "percent" ? percent : digits;
  const ends = bars.flatMap((b) => [b.number, b.high, b.low, b.reference]).filter(known);
  const most = Math.max(...ends, 0), least = Math.min(...ends, 0);
  const row = 30;
  drawing(box, bars.length * row + 6, label_, (svg, width) => {
    const left = nameRoom(bars.map((b) => b.group), Math.min(150, width * 0.34), width * 0.46), right = 66;
    const x = (v) => left + ((v - least) / (most - least || 1)) * (width - left - right);
    bars.forEach((bar, index) => {
      const y = index * row + 4;
      label(svg, { x: 0, y: y + 15 }, bar.group, left - 8);
      if (!known(bar.number)) {
        put(svg, "text", { x: left + 4, y: y + 15, class: "soft" }, "too few rows");
        return;
      }
      put(svg, "rect", { x: Math.min(x(0), x(bar.number)), y: y + 2, width: Math.max(1, Math.abs(x(bar.number) - x(0))), height: 18, rx: 2 }).style.fill = "var(--bar)";
      if (known(bar.low) && known(bar.high)) {
        put(svg, "line", { x1: x(bar.low), x2: x(bar.high), y1: y + 11, y2: y + 11, class: "whisker" });
      }
      if (known(bar.reference)) {
        put(svg, "line", { x1: x(bar.reference), x2: x(bar.reference), y1: y - 1, y2: y + 23, class: "reference" });
      }
      put(svg, "text", { x: width, y: y + 15, "text-anchor": "end", class: "bold" }, write(bar.number));
    });
    put(svg, "line", { x1: x(0), x2: x(0), y1: 0, y2: bars.length * row, class: "axis" });
  });
}

// bands: [{name, note, series: [{color, shares: [...], mean, error, solid}]}]
function ridgePlot(box, bands, scale, axis) {
  const height = 54, foot = 34;
  const most = Math.max(...bands.flatMap((b) => b.series.flatMap((s) => s.shares)), 1e-9);
  drawing(box, bands.length * height + foot, axis, (svg, width) => {
    const left = nameRoom(bands.map((b) => b.name), Math.min(130, width * 0.3), width * 0.42), right = 8;
    const { low, high, neutral } = scale;
    const x = (v) => left + ((v - low) / scale.width) * (width - left - right);
    bands.forEach((band, index) => {
      const base = (index + 1) * height - 6;
      label(svg, { x: 0, y: base - 22 }, band.name, left - 8);
      label(svg, { x: 0, y: base - 7, class: "soft" }, band.note, left - 8);
      put(svg, "line", { x1: left, x2: width - right, y1: base, y2: base, class: "axis" });
      for (const one of band.series) {
        const step = scale.width / one.shares.length;
        let path = `M${x(low)},${base}`;
        one.shares.forEach((share, bin) => {
          const top = base - (share / most) * (height - 12);
          path += `L${x(low + bin * step)},${top}L${x(low + (bin + 1) * step)},${top}`;
        });
        const area = put(svg, "path", { d: `${path}L${x(high)},${base}Z`, "stroke-width": 1.4 });
        area.style.fill = `var(${one.color})`;
        area.style.fillOpacity = one.solid ? 0.75 : 0.22;
        area.style.stroke = `var(${one.color})`;
        if (known(one.mean)) {
          const tick = put(svg, "line", { x1: x(one.mean), x2: x(one.mean), y1: base, y2: base + 6, "stroke-width": 2.5 });
          tick.style.stroke = `var(${one.color})`;
        }
      }
    });
    if (neutral !== null) put(svg, "line", { x1: x(neutral), x2: x(neutral), y1: 0, y2: bands.length * height, class: "neutral" });
    const floor = bands.length * height + 8;
    const ticks = width < 420 ? 2 : 4;
    for (let tick = 0; tick <= ticks; tick++) {
      const value = low + (scale.width * tick) / ticks;
      put(svg, "text", { x: x(value), y: floor + 6, class: "soft", "text-anchor": tick === 0 ? "start" : tick === ticks ? "end" : "middle" }, tickText(value, scale));
    }
    put(svg, "text", { x: (left + width - right) / 2, y: floor + 22, class: "soft", "text-anchor": "middle" }, clipped(axis, width - left));
  });
}

// counts[z bin][y bin], corners with shares
function planePlot(box, counts, corners, xScale, yScale, xAxis, yAxis) {
  const size = Math.min(460, Math.max(240, box.clientWidth - 36)) - 30;
  const most = Math.max(...counts.flat(), 1);
  drawing(box, size + 44, "Density of rows by both values", (svg, width) => {
    const left = 26, bins = counts.length, cell = Math.floor(Math.min(size, width - left - 4) / bins), side = cell * bins;
    counts.forEach((row, zBin) => row.forEach((number, yBin) => {
      if (!number) return;
      const square = put(svg, "rect", { x: left + yBin * cell, y: 4 + (bins - 1 - zBin) * cell, width: cell, height: cell, "shape-rendering": "crispEdges" });
      square.style.fill = "var(--accent)";
      square.style.fillOpacity = 0.06 + 0.94 * Math.sqrt(number / most);
    }));
    put(svg, "rect", { x: left, y: 4, width: side, height: side, fill: "none", class: "axis" });
    const share = (scale) => Math.min(1, Math.max(0, (scale.cut - scale.low) / scale.width));
    const column = left + side * share(xScale), line = 4 + side * (1 - share(yScale));
    put(svg, "line", { x1: column, x2: column, y1: 4, y2: 4 + side, class: "reference" });
    put(svg, "line", { x1: left, x2: left + side, y1: line, y2: line, class: "reference" });
    for (const corner of corners) {
      const x = corner.unsure_of_target ? left + side - 8 : left + 8;
      const y = corner.unsure_of_attribute ? 24 : side - 8;
      put(svg, "text", { x, y, class: "bold halo", "text-anchor": corner.unsure_of_target ? "end" : "start" }, percent(corner.share));
    }
    const foot = 4 + side;
    for (const [at, anchor] of [[0, "start"], [share(xScale), "middle"], [1, "end"]]) {
      if (anchor === "middle" && Math.abs(at - 0.5) > 0.35) continue; // it would touch the end's
      put(svg, "text", { x: left + at * side, y: foot + 14, class: "soft", "text-anchor": anchor }, tickText(xScale.low + at * xScale.width, xScale));
    }
    label(svg, { x: left + side / 2, y: foot + 30, "text-anchor": "middle" }, xAxis, side);
    label(svg, { x: 0, y: 0, "text-anchor": "middle", transform: `translate(14 ${4 + side / 2}) rotate(-90)` }, yAxis, side);
  });
}

// rows: [{name, numbers: [first, second]}], two bars per row in the colours of a legend
function pairPlot(box, rows, label_) {
  const row = 36, most = Math.max(...rows.flatMap((r) => r.numbers).filter(known), 1e-6);
  drawing(box, rows.length * row + 4, label_, (svg, width) => {
    const left = nameRoom(rows.map((r) => r.name), Math.min(130, width * 0.3), width * 0.46), right = 58;
    const long = (number) => Math.max(1, (number / most) * (width - left - right));
    rows.forEach((one, index) => {
      const y = index * row + 4;
      label(svg, { x: 0, y: y + 18 }, one.name, left - 8);
      one.numbers.forEach((number, second) => {
        if (!known(number)) return;
        put(svg, "rect", { x: left, y: y + 14 * second, width: long(number), height: 12, rx: 2 }).style.fill = `var(--c${second})`;
        put(svg, "text", { x: left + long(number) + 6, y: y + 10 + 14 * second, class: "soft" }, percent(number));
      });
    });
    put(svg, "line", { x1: left, x2: left, y1: 0, y2: rows.length * row, class: "axis" });
  });
}
