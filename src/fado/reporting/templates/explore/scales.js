// The scale that values or utilities lie on: what the summary says of it, or 0 to 1.

// owner: a part of the summary with low, high and maybe neutral and a cut; its scales[key] speaks for one variable alone.
function scaleOf(owner, key) {
  const said = (owner.scales && owner.scales[key]) || owner;
  const low = known(said.low) ? said.low : 0, high = known(said.high) ? said.high : 1;
  const inside = known(said.neutral) && low < said.neutral && said.neutral < high;
  return { low, high, width: high - low || 1, neutral: inside ? said.neutral : null, cut: known(said.cut) ? said.cut : null };
}

// How many more decimals a scale needs than one from 0 to 1.
function moreDecimals(scale) {
  return Math.max(0, -Math.floor(Math.log10(Math.abs(scale.width))));
}

function tickText(number, scale) {
  return String(+number.toFixed(2 + moreDecimals(scale)));
}

// Write numbers of a scale.
function writerOf(scale) {
  return (number) => digits(number, moreDecimals(scale));
}
