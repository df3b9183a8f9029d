"""What the site has beside Sphinx's pages: the entries of its search, and files that lead from other addresses of a page to it."""

from __future__ import annotations

import functools
import html
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from ptxmma import paths

#: A file at another address of a page.
_REDIRECT = """<!DOCTYPE html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={0}">
<link rel="canonical" href="{0}">
<a href="{0}">{0}</a>
"""
_WORD = re.compile(r"[a-z0-9]+")
#: Pages whose sections have the same titles everywhere have words of their own; those of other pages are found by their sections.
_WORDS, _ALIASES = "words", "aliases"


def _entries(env: BuildEnvironment) -> Iterator[tuple[str, str, str]]:
    """The title, address and further words of every page and section; labels are words of the section that they name."""
    labels: dict[tuple[str, str], list[str]] = {}
    for name, (document, anchor, title) in env.domaindata["std"]["labels"].items():
        labels.setdefault((document, title), []).append(anchor or name)
    for document, title in sorted(env.titles.items()):
        words = env.metadata[document].get(_WORDS, "")
        first, *sections = _sections(env.tocs[document]) or [(title.astext(), "")]
        yield first[0], f"{document}.html", f"{words} {' '.join(labels.get((document, first[0]), ()))}"
        for text, anchor in () if words else sections:
            own = labels.get((document, text), [anchor])
            yield text, f"{document}.html#{own[0]}", f"{first[0]} {' '.join(own)}"
    for name, (document, anchor) in env.domaindata["std"]["anonlabels"].items():
        if name.startswith("erratum-"):
            yield name.replace("-", " ", 1).capitalize(), f"{document}.html#{anchor}", "errata"


def _sections(toc: nodes.bullet_list) -> list[tuple[str, str]]:
    """The titles and anchors of a page and its sections; of functions and classes their whole names."""
    entries = [(each.astext(), each["anchorname"].removeprefix("#")) for each in toc.findall(nodes.reference) if "anchorname" in each]
    return [(anchor if anchor.startswith("ptxmma.") else title, anchor) for title, anchor in entries]


def _write(app: Sphinx, error: Exception | None) -> None:
    """Called by Sphinx when the site is built."""
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    entries = [(title, address, " ".join(dict.fromkeys(_WORD.findall(words.lower())))) for title, address, words in _entries(app.env)]
    (out / "_static" / "pages.js").write_text(f"var PTXMMA_PAGES = {json.dumps(entries, separators=(',', ':'))};\n", encoding="utf-8")
    explorer = out / "explorer.html"
    text = paths.EXPLORER.read_text(encoding="utf-8")
    explorer.write_text(text.replace("<html ", '<html data-reference="reference/" ', 1), encoding="utf-8")
    for document, fields in app.env.metadata.items():
        for alias in str(fields.get(_ALIASES, "")).split():
            path = out / "reference" / f"{alias}.html"
            to = posixpath.relpath(f"{document}.html", f"reference/{posixpath.dirname(alias)}")
            path.write_text(_REDIRECT.format(html.escape(to)), encoding="utf-8")


def _navigate_by_titles(app: Sphinx, _page: str, _template: str, context: dict[str, Any], _document: nodes.document | None) -> None:
    """Called by Sphinx for each page, before the theme: the tree of all pages is made without their sections, which it does not show.

    Sphinx copies the sections of all pages and then drops them, for every page: half of the time that writing a page takes.
    """
    whole, env = context["toctree"], app.env

    def titles_alone(**options: Any) -> str:
        sections = env.tocs
        env.tocs = _titles(env)
        try:
            tree: str = whole(**options)
        finally:
            env.tocs = sections
        return tree

    context["toctree"] = titles_alone


@functools.lru_cache(maxsize=1)
def _titles(env: BuildEnvironment) -> dict[str, nodes.bullet_list]:
    """The contents of every page without its sections, but with the lists of other pages in them."""
    titles = {}
    for document, contents in env.tocs.items():
        titles[document] = short = contents.deepcopy()
        for entry in short.children:
            for sections in entry.children[1:]:
                sections.children = list(sections.findall(addnodes.toctree))
            entry.children = [part for part in entry.children if part.children]
    return titles


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("build-finished", _write)
    app.connect("html-page-context", _navigate_by_titles, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
