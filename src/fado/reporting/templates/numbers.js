// Numbers as text.

const known = (number) => typeof number === "number" && Number.isFinite(number);

function count(number) {
  return known(number) ? Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, ",") : "–";
}

function digits(number, moreDecimals = 0) {
  if (!known(number)) return "–";
  if (Math.abs(number) >= 1000) return count(number);
  return Math.abs(number) >= 100 ? number.toFixed(0) : Math.abs(number) >= 10 ? number.toFixed(1) : number.toFixed(3 + moreDecimals);
}

function percent(share) {
  if (!known(share)) return "–";
  const hundred = 100 * share;
  return `${hundred.toFixed(Math.abs(hundred) < 1 && hundred !== 0 ? 2 : 1)}\u00a0%`;
}

function points(gap) {
  return known(gap) ? `${(100 * gap).toFixed(1)}\u00a0p.p.` : "–";
}

function times(ratio) {
  return known(ratio) ? `${ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(2)}\u00a0×` : "–";
}

function chance(p) {
  if (!known(p)) return "–";
  return p < 0.001 ? "p < 0.001" : `p = ${p.toFixed(3)}`;
}

const writers = { percent, number: (number) => digits(number), times };
