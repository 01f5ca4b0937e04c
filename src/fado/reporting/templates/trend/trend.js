// A ratio from check to check, with its interval and its line, and a table per month.

const content = JSON.parse(document.getElementById("data").textContent);
const KINDS = { held: "held", missed: "missed" };
const day = (text) => Date.parse(`${text}T00:00:00Z`) / 864e5;
const level = (row) => `${+(100 * row.level).toFixed(2)}\u00a0%`;

function chart(box, ratio) {
  const height = 240, left = 34, right = 12, top = 12, bottom = 26;
  const days = ratio.days.filter((row) => known(row.value));
  const label = `${ratio.title} of ${ratio.days.length} checks, with intervals, and the line of ${ratio.days.at(-1).line}`;
  drawing(box, height, label, (svg, width) => {
    const first = day(ratio.days[0].period), last = Math.max(day(ratio.days.at(-1).period), first + 1);
    const x = (row) => left + (ratio.days.length > 1 ? (day(row.period) - first) / (last - first) : 0.5) * (width - left - right);
    const y = (number) => height - bottom - number * (height - top - bottom);
    for (const tick of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
      put(svg, "line", { class: "axis", x1: left, x2: width - right, y1: y(tick), y2: y(tick) });
      put(svg, "text", { class: "soft", x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, tick.toFixed(1));
    }
    const ends = ratio.days.length > 1 ? [ratio.days[0], ratio.days.at(-1)] : [ratio.days[0]];
    ends.forEach((row, index) => put(svg, "text", {
      class: "soft", x: x(row), y: height - 6, "text-anchor": ends.length < 2 ? "middle" : index ? "end" : "start",
    }, row.period));
    put(svg, "path", { class: "path", d: days.map((row, index) => `${index ? "L" : "M"}${x(row)} ${y(row.value)}`).join("") || "M0 0" });
    ratio.days.forEach((row, index) => {
      const until = index + 1 < ratio.days.length ? x(ratio.days[index + 1]) : width - right;
      put(svg, "line", { class: "reference", x1: index ? x(row) : left, x2: until, y1: y(row.line), y2: y(row.line) });
    });
    for (const row of days) {
      if (known(row.low)) put(svg, "line", { class: "whisker", x1: x(row), x2: x(row), y1: y(row.low), y2: y(row.high) });
      const mark = put(svg, "circle", { class: KINDS[row.verdict] || "open", cx: x(row), cy: y(row.value), r: 4 });
      mark.append(svgEl("title", {}, `${row.period}: ${digits(row.value)}, ${row.verdict}`));
    }
  });
}

function trendTable(rows, period) {
  const interval = (row) => known(row.low) ? `${digits(row.low)} to ${digits(row.high)}` : known(row.high) ? `at most ${digits(row.high)}` : "none";
  return table([
    { label: period, of: (row) => row.period },
    { label: "ratio", strong: true, of: (row) => (known(row.value) ? digits(row.value) : "undefined") },
    { label: "interval", of: (row) => `${interval(row)} (${level(row)})` },
    { label: "line", of: (row) => String(row.line) },
    { label: "verdict", text: true, strong: true, of: (row) => row.verdict },
    { label: "checks", of: (row) => count(row.checks) },
    { label: "rows", of: (row) => count(row.rows) },
    { label: "budget used", of: (row) => el("span", { class: row.budget_used > 1 ? "over" : null }, percent(row.budget_used)) },
    { label: "drifted columns", text: true, of: (row) => (row.drifted.length ? name(row.drifted.join(", ")) : "none") },
  ], rows);
}

function ratioSection(ratio) {
  const box = el("div");
  const legend = el("p", { class: "small" }, "Filled marks: the whole interval is on one side of the line (dashed). Open marks: too few rows to decide.");
  const every = el("details", {}, el("summary", {}, `All ${count(ratio.days.length)} checks`), trendTable(ratio.days.toReversed(), "day"));
  const section = el("section", {}, el("h2", {}, ratio.title),
    el("article", { class: "card" }, box, legend, el("h3", {}, "By month"), trendTable(ratio.months.toReversed(), "month"), every));
  document.getElementById("ratios").append(section);
  chart(box, ratio);
}

document.getElementById("last").append(name(`${content.last.date}: ${content.last.sentence}`));
const models = content.models > 1 ? ` Thresholds changed: these are ${content.models} models.` : "";
document.getElementById("about").append(`${count(content.checks)} checks. The budget: ${content.budget}.${models}`);
content.ratios.forEach(ratioSection);
if (content.last.notes.length) {
  document.getElementById("notes").append(el("h2", {}, "Notes of the last check"),
    el("article", { class: "card" }, el("ul", {}, content.last.notes.map((text) => el("li", {}, name(text))))));
}
