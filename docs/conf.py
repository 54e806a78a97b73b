"""Sphinx: python -m sphinx -W -b html docs build/docs (extra docs)."""

import os
import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("MPLBACKEND", "agg")

project = "attnlag"
author = "The attnlag developers"
version = release = installed("attnlag")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "directives"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["examples"]
autodoc_member_order = "bysource"
html_theme = "furo"
html_title = "attnlag"
html_static_path = ["static"]
html_css_files = ["docs.css"]
