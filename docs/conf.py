"""Configuration of the site: `make docs` builds it into docs/_build/html, without a network."""

import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))
os.environ.setdefault("MPLBACKEND", "agg")

import countinggrids  # noqa: E402

project = "countinggrids"
author = "The countinggrids developers"
project_copyright = "The countinggrids developers, MIT license"
version = release = countinggrids.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "command_reference",
    "live_maps",
    "guide_pictures",
]
exclude_patterns = ["_build", "_extensions", "gallery/**.ipynb", "gallery/**.py", "gallery/**.zip", "gallery/**.json"]
templates_path = ["_templates"]
default_role = "py:obj"
highlight_language = "python"
nitpicky = False

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"__init__\.py|conftest\.py",
    "within_subsection_order": "gallery_order.reading_order",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "parallel": 2,
    "doc_module": ("countinggrids",),
    "backreferences_dir": "gallery/backreferences",
    "exclude_implicit_doc": {r"countinggrids\.reproduce.*"},
    "inspect_global_variables": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "countinggrids"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_generated/extra"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "logo": {"text": "countinggrids"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "maps": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": False,
    "use_edit_page_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "maps": [], "faq": []}


def skip_inherited(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the methods that every scikit-learn estimator inherits, which its own site documents."""
    function = getattr(obj, "__func__", getattr(obj, "fget", obj))
    home = getattr(function, "__module__", None) or ""
    return True if callable(function) and not home.startswith("countinggrids") else None


def escape_marks(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape stars and final underscores, as in (*grid, n_features) and n_iter_, which would be markup."""
    for number, line in enumerate(lines):
        before, colon, after = line.partition(" : ")
        if line.lstrip().startswith((">>>", "...")):
            continue
        parts = re.split(r"(`+[^`]*`+)", after if colon else before)
        parts[::2] = [re.sub(r"(?<=\w)_(?=[\s,.)]|$)|\*", r"\\\g<0>", part) for part in parts[::2]]
        lines[number] = f"{before}{colon}{''.join(parts)}" if colon else "".join(parts)


def setup(app: Any) -> None:
    """Connect the hooks."""
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("autodoc-process-docstring", escape_marks, priority=400)
