"""Write equations as MathML, which browsers show without scripts and without a network."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml


def mathml(latex: str, as_block: bool) -> str:
    """Convert an equation to MathML."""
    return str(latex2mathml.tex2mathml(re.sub(r"\s+", " ", latex).strip(), as_block=as_block))


def visit_math(writer: Any, node: Any) -> None:
    """Write an equation within a line."""
    writer.body.append(mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_display_math(writer: Any, node: Any) -> None:
    """Write an equation of its own."""
    writer.body.append(f'<div class="math">{mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_display_math, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
