"""Pictures of the gallery: every Altair chart that a block of a script calls `chart...` is saved as PNG.

Colours are those of Okabe and Ito, and viridis for scales: colour-blind readers can distinguish them.
"""

from typing import Any

import altair as alt
from sphinx_gallery.scrapers import figure_rst

SCALE = 2.0
OKABE_ITO = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000"]
_seen: dict[str, set[int]] = {}


@alt.theme.register("fado_gallery", enable=True)
def _theme() -> alt.theme.ThemeConfig:
    ranges = {"category": OKABE_ITO, "heatmap": {"scheme": "viridis"}, "ramp": {"scheme": "viridis"}}
    return {
        "config": {
            "range": ranges,  # type: ignore[typeddict-item]
            "title": {"fontSize": 14, "anchor": "start", "offset": 12},
            "mark": {"color": OKABE_ITO[0]},
        }
    }


def scrape_charts(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the charts that are new since the block before, and give the text that shows them."""
    seen = _seen.setdefault(block_vars["src_file"], set())
    paths = []
    for name, value in block_vars["example_globals"].items():
        if name.startswith("chart") and isinstance(value, alt.TopLevelMixin) and id(value) not in seen:
            seen.add(id(value))
            path = next(block_vars["image_path_iterator"])
            value.save(path, scale_factor=SCALE)
            paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])
