"""Sphinx's configuration. Nothing here names a host: what a page needs lies beside it."""

from importlib.metadata import distribution
from pathlib import Path

from terms import Terms

HERE = Path(__file__).parent
# One file holds MathJax with its fonts, which it draws as SVG.
MATHJAX = distribution("sphinx-mathjax-offline").locate_file(
    "sphinx-mathjax-offline/static/mathjax/tex-svg.js"
)

project = html_title = "MiniPaddle"
extensions = ["myst_nb", "sphinx.ext.mathjax"]
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # the default names other hosts
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
mathjax_path = Path(MATHJAX).name
mathjax3_config = {"options": {"enableMenu": False}}  # its menu would load more files

html_theme = "sphinx_book_theme"
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "home_page_in_toc": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},  # it has its parts to the left
    "navbar_persistent": [],  # one field to search in is enough
    "footer_content_items": ["extra-footer.html"],
    "logo": {"text": "MiniPaddle"},
    "search_bar_text": "Search the book …",
    "extra_footer": "MiniPaddle, Apache 2.0. The formulas are drawn by MathJax, Apache 2.0.",
}
html_context = {"default_mode": "auto"}
html_static_path = ["look.css", "offline.js", "frames.js", str(MATHJAX)]
html_css_files = ["look.css"]
html_js_files = ["offline.js", "frames.js"]
html_favicon = html_logo = "icon.svg"
html_copy_source = html_show_sourcelink = html_show_copyright = False
html_domain_indices = html_use_index = False  # `terms` is the index


def setup(app):
    app.add_transform(Terms)
    return {"parallel_read_safe": False}  # the first use of a term is found in reading order
