"""The Sphinx site: the generated reference below ``reference/`` and the hand-written pages around it.

Built by ``make docs``, or ``sphinx-build -n -W -b html docs docs/_build/html``.
"""

import sys
from pathlib import Path

from docutils import nodes
from docutils.writers.html5_polyglot import HTMLTranslator
from sphinx.application import Sphinx

import ptxmma
from ptxmma import paths
from ptxmma.generator import pipeline, write

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_pyproject = tomllib.loads((paths.CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))

project = "ptxmma"
author = "the ptxmma authors"
release = version = ptxmma.__version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
extensions = ["site_pages", "plain_text", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!ptxmma\.).*"),  # names of other projects have no page here
    # not for users: signatures only
    (
        r"py:.*",
        r"ptxmma\.(model\.\w+\.(Database|InstructionSet|MetadataLayout|ScaleLayout|Spec)|catalog\.variants\.Variant|model\.bitmap\.Run|check\.checker\.Stream|arguments\.(Shaped|Offered))",
    ),
]
# PTX spells with dots and quotes as they are.
smartquotes = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_use_ivar = True

html_theme = "furo"
if _repository := _pyproject["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]:
    html_theme_options = {"source_repository": _repository, "source_branch": "main", "source_directory": "docs/"}
html_title = f"ptxmma {release}"
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["ptxmma.css"]
html_js_files = ["find.js", "tables.js", "embed.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
# The index of all spellings is long: a page for each letter would not help, since nearly all start alike.
html_split_index = False
pygments_style = "default"  # its comments and numbers can be read on grey
pygments_dark_style = "native"


def _as_mathml(translator: HTMLTranslator, node: nodes.Node) -> None:
    """A formula as docutils writes it: MathML, which browsers show by themselves, without scripts from elsewhere."""
    translator.math_output, translator.math_options = "mathml", ""
    HTMLTranslator.visit_math(translator, node)


def _make_reference(_app: Sphinx) -> None:
    """Writes the pages of the reference from the spec, before Sphinx looks for pages; pages that did not change are left alone."""
    write.write(pipeline.changes(pipeline.read(paths.SPEC), paths.CHECKOUT, ["docs"]), paths.CHECKOUT)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("builder-inited", _make_reference)
    app.add_html_math_renderer("mathml", (_as_mathml, None), (_as_mathml, None))
