"""A plain-text page beside each page of the site, and ``llms.txt``, which lists them: for programs that read pages without a browser."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

#: The longest description of a page, in characters.
_MOST = 200
#: The parts of the list, by the folders of their pages.
_PARTS = {"": "Guides", "reference": "Reference", "api": "Python library"}


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-resolved", _write_page)
    app.connect("html-page-context", _describe)
    app.connect("build-finished", _write_list)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def description(document: nodes.document) -> str:
    """The first sentences of a page, as far as they fit into what a search engine shows."""
    paragraphs = list(document.findall(nodes.paragraph))
    paragraph = next((each for each in paragraphs if isinstance(each.parent, nodes.section)), next(iter(paragraphs), None))
    text = _line(paragraph) if paragraph is not None else ""
    return text if len(text) <= _MOST else text[:_MOST].rpartition(". " if ". " in text[:_MOST] else " ")[0] + " …"


def _write_page(app: Sphinx, document: nodes.document, name: str) -> None:
    """Called by Sphinx for each page."""
    if app.builder.format == "html":
        path = Path(app.outdir) / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(_blocks(document)) + "\n", encoding="utf-8")


def _describe(app: Sphinx, page: str, _template: str, context: dict[str, object], document: nodes.document | None) -> None:
    """Called by Sphinx for each page: its description, its card where others link to it, and the address of its text."""
    if document is None:
        return
    title = " · ".join(dict.fromkeys((app.env.titles[page].astext(), app.config.project)))
    said = {"og:title": title, "og:type": "article", "twitter:card": "summary"}
    if about := description(document):
        said |= {"description": about, "og:description": about}
    if site := app.config.html_baseurl:  # a card takes the whole address of its picture
        said |= {"og:image": f"{site.rstrip('/')}/_static/card.png", "twitter:card": "summary_large_image"}
    tags = [f'<meta {"property" if ":" in name else "name"}="{name}" content="{html.escape(text)}">' for name, text in said.items()]
    tags.append(f'<link rel="alternate" type="text/plain" href="{html.escape(page.rpartition("/")[2])}.txt">')
    context["metatags"] = "\n".join([str(context.get("metatags", "")), *tags])


def _write_list(app: Sphinx, error: Exception | None) -> None:
    """Called by Sphinx when the site is built."""
    if error is None and app.builder.format == "html":
        lines = [f"# {app.config.project}", "", f"> {description(app.env.get_doctree(app.config.root_doc))}", ""]
        (Path(app.outdir) / "llms.txt").write_text("\n".join([*lines, *_list(app.env)]) + "\n", encoding="utf-8")


def _list(env: BuildEnvironment) -> Iterator[str]:
    """Every page with the address of its text."""
    for folder, title in _PARTS.items():
        yield f"## {title}\n"
        for name in sorted(env.titles):
            if name.partition("/")[0] == folder or (not folder and "/" not in name):
                yield f"- [{env.titles[name].astext()}]({name}.txt)"
        yield ""


# --- text -------------------------------------------------------------------------------------------------------------------


def _blocks(node: nodes.Node, depth: int = 0) -> Iterator[str]:
    """The paragraphs, tables, lists and listings of a page or a part of one, each as Markdown writes it."""
    for child in node.children:
        if isinstance(child, nodes.section):
            yield from _blocks(child, depth + 1)
        elif isinstance(child, nodes.title):
            yield f"{'#' * max(depth, 1)} {_line(child)}"
        elif isinstance(child, nodes.literal_block | nodes.doctest_block):
            yield f"```\n{child.astext()}\n```"
        elif isinstance(child, nodes.table):
            yield "\n".join(" | ".join(map(_line, row.children)) for row in child.findall(nodes.row))
        elif isinstance(child, nodes.bullet_list | nodes.enumerated_list):
            yield "\n".join(f"- {' '.join(_blocks(item))}" for item in child.children)
        elif isinstance(child, nodes.image):
            yield f"[{child.get('alt', 'picture')}]"
        elif isinstance(child, nodes.math_block | nodes.paragraph | nodes.term | nodes.caption | addnodes.desc_signature):
            yield _line(child)
        elif not isinstance(child, nodes.Invisible | nodes.raw | nodes.Text | addnodes.toctree):
            yield from _blocks(child, depth)


def _line(node: nodes.Node) -> str:
    """The text of a node in one line, with ^ before what is raised."""
    if any(node.findall(nodes.superscript)):
        node = node.deepcopy()
        for raised in node.findall(nodes.superscript):
            raised.insert(0, nodes.Text("^"))
    return re.sub(r"\s+", " ", node.astext()).strip()
