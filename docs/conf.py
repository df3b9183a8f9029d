"""The Sphinx site: the generated reference below ``reference/`` and the hand-written pages around it.

Built by ``make docs``, or ``sphinx-build -n -W -b html docs docs/_build/html``.
"""

import ptxmma

project = "ptxmma"
author = "the ptxmma authors"
release = version = ptxmma.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!ptxmma\.).*"),  # names of other projects have no page here
    (r"py:.*", r"ptxmma\.(model\.(Database|MetadataLayout|Spec)|variants\.Variant|bitmap\.Run)"),  # not for users: signatures only
]
# PTX spells with dots and quotes as they are.
smartquotes = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"ptxmma {release}"
html_static_path = ["_static"]
html_css_files = ["ptxmma.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
# The index of all spellings is long: a page for each letter would not help, since nearly all start alike.
html_split_index = False
pygments_style = "friendly"
pygments_dark_style = "native"
