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
        put(svg, "text", { x: left + 4, y: y + 15, class: "soft" }, "too few rows to tell");
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
  drawing(box, size + 44, "Density of rows over the plane of both values", (svg, width) => {
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

// dots: [{name, x, y, hollow, square}]
function scatterPlot(box, dots, xAxis, yAxis) {
  const height = Math.min(440, Math.max(300, box.clientWidth * 0.45));
  const mostX = Math.max(...dots.map((d) => d.x), 1e-6) * 1.06, mostY = Math.max(...dots.map((d) => d.y), 1e-6) * 1.06;
  drawing(box, height, "Columns by what they say of the target and of the attribute", (svg, width) => {
    const left = 44, foot = 40, right = 10, top = 10;
    const x = (v) => left + (v / mostX) * (width - left - right), y = (v) => height - foot - (v / mostY) * (height - foot - top);
    for (const tick of ticks(mostY, 4)) {
      put(svg, "line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "axis" });
      put(svg, "text", { x: left - 6, y: y(tick) + 4, class: "soft", "text-anchor": "end" }, `${+(100 * tick).toFixed(2)} %`);
    }
    for (const tick of ticks(mostX, width > 480 ? 5 : 3)) {
      put(svg, "text", { x: x(tick), y: height - foot + 16, class: "soft", "text-anchor": tick ? "middle" : "start" }, `${+(100 * tick).toFixed(2)} %`);
    }
    label(svg, { x: (left + width) / 2, y: height - 6, class: "soft", "text-anchor": "middle" }, xAxis, width - left);
    const taken = [];
    const ordered = [...dots].sort((a, b) => Math.max(b.y / mostY, b.x / mostX) - Math.max(a.y / mostY, a.x / mostX));
    for (const dot of ordered) {
      const shape = dot.square
        ? put(svg, "rect", { x: x(dot.x) - 5, y: y(dot.y) - 5, width: 10, height: 10 })
        : put(svg, "circle", { cx: x(dot.x), cy: y(dot.y), r: 5 });
      shape.style.fill = dot.hollow ? "none" : dot.square ? "var(--c1)" : "var(--accent)";
      shape.style.stroke = dot.square ? "var(--c1)" : "var(--accent)";
      shape.style.strokeWidth = "1.5px";
      shape.append(svgEl("title", {}, `${dot.name}: ${percent(dot.x)} for the target, ${percent(dot.y)} for the attribute`));
      const text = clipped(dot.name, Math.min(190, width / 3)), wide = text.length * 6.6;
      const onLeft = x(dot.x) + 9 + wide > width;
      const box_ = { x: onLeft ? x(dot.x) - 9 - wide : x(dot.x) + 9, y: y(dot.y) - 8, w: wide, h: 15 };
      const free = taken.every((t) => box_.x > t.x + t.w || t.x > box_.x + box_.w || box_.y > t.y + t.h || t.y > box_.y + box_.h);
      if (!free || box_.x < left) continue;
      taken.push(box_);
      put(svg, "text", { x: onLeft ? x(dot.x) - 9 : x(dot.x) + 9, y: y(dot.y) + 4, class: "halo", "text-anchor": onLeft ? "end" : "start" }, text);
    }
  });
  box.prepend(el("p", { class: "measure" }, "↑ ", yAxis));
}
