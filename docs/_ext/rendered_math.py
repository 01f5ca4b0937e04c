"""Formulas as SVG, drawn when the site is built: they need no script, no font and no network to be read."""

import re
from functools import cache
from html import escape
from typing import Any

import ziamath
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

ziamath.config.svg2 = False  # whole outlines, no shared symbols: several drawings stand on one page
EM = 16.0


@cache
def draw(formula: str, *, inline: bool) -> str:
    """Draw a formula in the colour and size of the text around it; who cannot see it hears its TeX."""
    drawn = ziamath.Latex(formula, size=EM, color="currentColor", inline=inline)
    svg = re.sub(
        r'width="([\d.]+)" height="([\d.]+)"',
        lambda size: f'width="{float(size[1]) / EM:.3f}em" height="{float(size[2]) / EM:.3f}em"',
        re.sub(r'"black"', '"currentColor"', drawn.svg()),  # bars over letters do not take the colour given
        count=1,
    )
    below = f"vertical-align: {drawn.getyofst() / EM:.3f}em"
    label = escape(" ".join(formula.split()))
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" style="{below}" ', 1)


def _draw_inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(draw(node.astext(), inline=True))
    raise nodes.SkipNode


def _draw_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{draw(node.astext(), inline=False)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer under the name "svg"."""
    app.add_html_math_renderer("svg", (_draw_inline, None), (_draw_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
