// The picture as a file: the styles that it takes from the page are written into it.

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "font-family", "font-size", "font-weight", "paint-order"];

function savedPicture(svg) {
  const copy = svg.cloneNode(true);
  const theirs = [svg, ...svg.querySelectorAll("*")], ours = [copy, ...copy.querySelectorAll("*")];
  theirs.forEach((node, index) => {
    const style = getComputedStyle(node);
    ours[index].removeAttribute("style");
    for (const key of STYLES) ours[index].setAttribute(key, style.getPropertyValue(key));
  });
  copy.prepend(svgEl("rect", { width: "100%", height: "100%", fill: getComputedStyle(document.querySelector(".paper")).backgroundColor }));
  return new XMLSerializer().serializeToString(copy);
}

function drawSave(state) {
  const button = el("button", { type: "button", id: "save" }, "Save as SVG");
  button.addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([savedPicture(state.scene.svg)], { type: "image/svg+xml" }));
    el("a", { href: address, download: "landscape.svg" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
  document.getElementById("saving").append(button);
}
