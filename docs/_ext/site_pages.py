"""What the site has beside Sphinx's pages: the entries of its search, and files that lead from other addresses of a page to it."""

from __future__ import annotations

import functools
import html
import json
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.environment import BuildEnvironment
from sphinx.environment.adapters.toctree import global_toctree_for_doc

from ptxmma import paths
from ptxmma.catalog.instructions import catalog

#: A file at another address of a page.
_REDIRECT = """<!DOCTYPE html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={0}">
<link rel="canonical" href="{0}">
<a href="{0}">{0}</a>
"""
#: Marks of every word of a literal, of blanks in listings, and of every other row of a table; the general class of a literal; the ends of
#: cells and of their last paragraphs, which HTML implies.
_NEEDLESS = re.compile(
    r'<span class="(?:pre|w)">([^<]*)</span>| class="row-(?:even|odd)"|(?<=<code class=")docutils (?=literal)|(?:</p>)?\s*</t[dh]>'
)
_WORD = re.compile(r"[a-z0-9]+")
#: Pages without a place of their own come after those of forms.
_LAST = 1 << 20
#: Pages whose sections have the same titles everywhere have words of their own; other pages are found by their sections, too.
_WORDS, _ALSO, _ALIASES, _SPELLING, _LACKING, _ORDER = "words", "also", "aliases", "spelling", "lacking", "order"
#: Words of the text of each section; so many different ones say what it is about.
_TEXTS, _ENOUGH = "texts", 50


def _entries(env: BuildEnvironment) -> Iterator[tuple[str, ...]]:
    """The title, address, further words and words of the text of every page and section, of forms also a spelling, and what targets lack.

    Labels are words of the section that they name.
    """
    labels: dict[tuple[str, str], list[str]] = {}
    for name, (document, anchor, title) in env.domaindata["std"]["labels"].items():
        labels.setdefault((document, title), []).append(anchor or name)
    for document, title in sorted(env.titles.items(), key=lambda page: (int(env.metadata[page[0]].get(_ORDER, _LAST)), page[0])):
        words = env.metadata[document].get(_WORDS, "")
        first, *sections = _sections(env.tocs[document]) or [(title.astext(), "")]
        own_words = f"{words} {env.metadata[document].get(_ALSO, '')} {' '.join(labels.get((document, first[0]), ()))}"
        spelling = env.metadata[document].get(_SPELLING)
        title_of_page = f"Python API: {first[0]}" if document.startswith("api/") else first[0]
        texts = env.metadata[document][_TEXTS]
        yield (
            title_of_page,
            f"{document}.html",
            own_words,
            texts.get("", ""),
            *([spelling, env.metadata[document][_LACKING]] if spelling else []),
        )
        for title_of_section, anchor in () if words else sections:
            own = labels.get((document, title_of_section), [anchor])
            further = f"{title_of_page} {' '.join(own)} {' '.join(_joined(own))}"
            yield title_of_section, f"{document}.html#{own[0]}", further, texts.get(anchor, "")
    for name, (document, anchor) in env.domaindata["std"]["anonlabels"].items():
        if name.startswith("erratum-"):
            yield name.replace("-", " ", 1).capitalize(), f"{document}.html#{anchor}", "errata", ""


def _keep_texts(app: Sphinx, document: nodes.document) -> None:
    """Called by Sphinx for each page that was read: the words of its sections' own paragraphs."""
    sections = list(document.findall(nodes.section))
    app.env.metadata[app.env.docname][_TEXTS] = {
        section["ids"][0] if place else "": " ".join(_text_words(section)) for place, section in enumerate(sections)
    }


def _text_words(section: nodes.section) -> list[str]:
    """The first different words of a section without its subsections and tables."""
    own = (child for child in section if not isinstance(child, (nodes.section, nodes.table)))
    words = (word for child in own for each in child.findall(nodes.paragraph) for word in _words(each.astext()) if len(word) > 2)
    return list(dict.fromkeys(words))[:_ENOUGH]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("c++", "cpp"))


def _joined(labels: Iterable[str]) -> Iterator[str]:
    """The names of GPUs and targets as people run them together: ``rtx4090``, ``sm90a``, ``compute90a``."""
    for label in labels:
        kind, *parts = label.split("-")
        if kind in ("gpu", "target"):
            yield from ("".join(parts[first:last]) for first in range(len(parts)) for last in range(first + 2, len(parts) + 1))
        if kind == "target":
            yield "compute"


def _vocabulary() -> dict[str, object]:
    """People's names with their meanings in words of PTX, the operands whose names have several words, and the element types."""
    spec = catalog().database.spec
    operands = {name for instruction in spec.instructions for name in instruction.operand_kinds if "-" in name}
    names = {name.replace("-", "_").lower(): [f"operand{name.replace('-', '').lower()}"] for name in sorted(operands)}
    names |= {name: list(word.means) for word in spec.words for name in word.names}
    return {"names": names, "types": [element.name for element in spec.types.elements]}


def _sections(toc: nodes.bullet_list) -> list[tuple[str, str]]:
    """The titles and anchors of a page and its sections; of functions and classes their whole names."""
    entries = [(each.astext(), each["anchorname"].removeprefix("#")) for each in toc.findall(nodes.reference) if "anchorname" in each]
    return [(anchor if anchor.startswith("ptxmma.") else title, anchor) for title, anchor in entries]


def _search_data(env: BuildEnvironment) -> str:
    """The script that find.js loads."""
    entries = [(title, address, " ".join(dict.fromkeys(_words(words))), *more) for title, address, words, *more in _entries(env)]
    data = {"PTXMMA_PAGES": entries, "PTXMMA_WORDS": _vocabulary()}
    return "".join(f"var {name} = {json.dumps(value, separators=(',', ':'))};\n" for name, value in data.items())


def _write(app: Sphinx, error: Exception | None) -> None:
    """Called by Sphinx when the site is built."""
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    (out / "_static" / "pages.js").write_text(_search_data(app.env), encoding="utf-8")
    explorer = out / "explorer.html"
    text = paths.EXPLORER.read_text(encoding="utf-8")
    explorer.write_text(text.replace("<html ", '<html data-reference="reference/" ', 1), encoding="utf-8")
    for document, fields in app.env.metadata.items():
        for alias in str(fields.get(_ALIASES, "")).split():
            path = out / "reference" / f"{alias}.html"
            to = posixpath.relpath(f"{document}.html", f"reference/{posixpath.dirname(alias)}")
            path.write_text(_REDIRECT.format(html.escape(to)), encoding="utf-8")


def _share_tree(app: Sphinx, _page: str, _template: str, context: dict[str, Any], _document: nodes.document | None) -> None:
    """Called by Sphinx for each page, before the theme: the theme gets the same tree for every page, so that it makes its own once."""
    context["toctree"] = lambda **options: _tree(app.builder, **options)


@functools.cache
def _tree(builder: StandaloneHTMLBuilder, **options: Any) -> str:
    """The tree of all pages, with links from the root.  To make one for every page takes longer than all else in writing it."""
    tree = global_toctree_for_doc(builder.env, builder.config.root_doc, builder, tags=builder.tags, **options)
    return str(builder.render_partial(tree)["fragment"])


def _open_tree(app: Sphinx, page: str, _template: str, context: dict[str, Any], _document: nodes.document | None) -> None:
    """Called by Sphinx for each page, after the theme: the tree is open at this page, and its links start there."""
    tree = _opened(str(context["furo_navigation_tree"]), app.builder.get_target_uri(page), "current current-page")
    parent = _parent(app, page)
    while parent:
        tree = _opened(tree, app.builder.get_target_uri(parent), "current")
        parent = _parent(app, parent)
    context["furo_navigation_tree"] = re.sub(r'(?<= href=")(?!#)', "../" * page.count("/"), tree)


def _parent(app: Sphinx, page: str) -> str | None:
    """The page whose contents list a page; none of the first page, and of those that Sphinx adds."""
    parent: str | None = app.builder.relations.get(page, [None])[0]
    return parent


def _opened(tree: str, address: str, classes: str) -> str:
    """The tree with more classes for the entry of an address, and with its own entries shown."""
    entry = re.compile(rf'(<li class="[^"]*)("><a [^>]*href="{re.escape(address)}">.*?</a>)(<input)?')
    return entry.sub(lambda match: f"{match[1]} {classes}{match[2]}" + ('<input checked=""' if match[3] else ""), tree)


def _lighten(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _document: nodes.document | None) -> None:
    """Called by Sphinx for each page: what no style needs is left out, a fifth of the text of long tables."""
    if "body" in context:
        context["body"] = _NEEDLESS.sub(r"\1", context["body"])


def setup(app: Sphinx) -> dict[str, int]:
    """Called by Sphinx."""
    app.connect("doctree-read", _keep_texts)
    app.connect("build-finished", _write)
    app.connect("html-page-context", _lighten)
    app.connect("html-page-context", _share_tree, priority=400)
    app.connect("html-page-context", _open_tree, priority=600)
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
