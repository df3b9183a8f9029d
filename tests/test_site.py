"""The site: it builds, it has every page, and its scripts work in a browser."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ptxmma import paths
from ptxmma.catalog.instructions import Catalog
from ptxmma.catalog.names import links
from ptxmma.generator import pipeline
from ptxmma.generator.emit import Output, docs
from ptxmma.generator.emit.docs import form_groups, rest
from ptxmma.matrices import descriptors, shared_memory

_MOST_OF_A_PAGE = 300_000


def build(source: Path, target: Path, builder: str) -> None:
    """Run ``sphinx-build -n -W`` as ``make docs`` does."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed: `make docs` builds the site")
    options = ["-n", "-W", "-q", "-b", builder, "-d", str(target / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    target = tmp_path_factory.mktemp("site")
    build(root / "docs", target, "html")
    return target


def test_the_site_has_the_explorer(site: Path) -> None:
    own, text = (path.read_text(encoding="utf-8") for path in (site / "explorer.html", paths.EXPLORER))
    assert own == text.replace('<html lang="en">', '<html data-reference="reference/" lang="en">')
    assert 'href="explorer.html"' in (site / "questions.html").read_text(encoding="utf-8")


_SEARCH = """
const {readFileSync} = require("node:fs");
const [find, pages, queries] = process.argv.slice(1);
const [entries, words] = new Function(`${readFileSync(pages, "utf8")}; return [PTXMMA_PAGES, PTXMMA_WORDS];`)();
console.log(JSON.stringify(JSON.parse(queries).map((query) => require(find).find(entries, query, words))));
"""


def found(site: Path, queries: Iterable[str]) -> dict[str, str]:
    """The address that the site's search puts first for each query."""
    node = shutil.which("node") or pytest.skip("node is not installed")
    static, asked = site / "_static", list(queries)
    command = [node, "-e", _SEARCH, "--", str(static / "find.js"), str(static / "pages.js"), json.dumps(asked)]
    answers = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {query: answer[0][1] if answer else "" for query, answer in zip(asked, answers, strict=True)}


def test_the_search_finds_the_page_first(root: Path, site: Path) -> None:
    lines = (root / "tests" / "search_queries.txt").read_text(encoding="utf-8").splitlines()[1:]
    queries = dict(line.split(" -> ") for line in lines)
    assert len(queries) >= 40
    first = found(site, queries)
    assert first == queries
    for address in first.values():
        path, _, anchor = address.partition("#")
        assert path == "explorer.html" or not anchor or f'id="{anchor}"' in (site / path).read_text(encoding="utf-8")


def test_the_search_answers_what_people_ask(root: Path, site: Path, catalog: Catalog) -> None:
    """The words that the command and the library take lead to the page of the same instruction, or of the target."""
    questions = yaml.safe_load((root / "tests" / "questions.yaml").read_text(encoding="utf-8"))
    pages = {path: group.path for group in form_groups.groups(catalog) for path in (group.path, *group.aliases)}
    asked = {words: f"reference/{pages[links.page(catalog.find(answer))]}.html" for words, answer in questions["instructions"].items()}
    asked |= {
        words: f"reference/targets.html#{rest.label('target', target.rstrip('af'))}" for words, target in questions["targets"].items()
    }
    asked |= dict.fromkeys(questions["products"], "reference/tcgen05.mma/tcgen05.mma.html")
    asked |= dict.fromkeys((name for name in questions["older"] if name[0].isalpha() and "_" not in name), "reference/targets.html")
    asked |= {words: f"ptxas_messages.html#{words.lower()}" for words in questions["commands"] if re.fullmatch(r"[Cc]\d+", words)}
    first = found(site, asked)
    assert {words: (first[words], page) for words, page in asked.items() if first[words] != page} == {}


def test_each_page_has_a_text_and_a_description(site: Path) -> None:
    listed = (site / "llms.txt").read_text(encoding="utf-8")
    texts = re.findall(r"\]\((\S+)\.txt\)", listed)
    assert len(texts) > 200
    for name in texts:
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        assert re.search(r'<meta name="description" content="[^"]{10,}">', page), name
        assert (site / f"{name}.txt").read_text(encoding="utf-8").startswith("# "), name
    text = (site / "reference/mma/m16n8k16-f16.txt").read_text(encoding="utf-8")
    assert "d[row][col] = c[row][col] + sum over k of a[row][k] * b[k][col]" in text


def test_a_card_has_the_whole_address_of_its_picture(root: Path, tmp_path: Path) -> None:
    """As ``make docs SITE=https://example.org/ptxmma/`` builds it."""
    extensions = root / "docs" / "_ext"
    conf = (
        f"import sys\nsys.path.insert(0, {str(extensions)!r})\nextensions = ['plain_text']\nhtml_baseurl = 'https://example.org/ptxmma/'\n"
    )
    (tmp_path / "conf.py").write_text(conf, encoding="utf-8")
    (tmp_path / "index.rst").write_text("Pages\n=====\n\nA sentence about them.\n", encoding="utf-8")
    build(tmp_path, tmp_path / "out", "html")
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    tags = dict(re.findall(r'<meta (?:property|name)="((?:og|twitter):\w+)" content="([^"]*)">', page))
    assert tags["og:image"] == "https://example.org/ptxmma/_static/card.png"
    assert (root / "docs" / "_static" / "card.png").is_file()
    assert (tags["twitter:card"], tags["og:description"]) == ("summary_large_image", "A sentence about them.")


def test_other_addresses_lead_to_a_page(site: Path, catalog: Catalog) -> None:
    for group in form_groups.groups(catalog):
        assert (site / "reference" / f"{group.path}.html").is_file()
        for alias in group.aliases:
            path = site / "reference" / f"{alias}.html"
            (target,) = re.findall(r'url=([^"]+)"', path.read_text(encoding="utf-8"))
            assert (path.parent / target).resolve() == (site / "reference" / f"{group.path}.html").resolve()


def test_pages_are_small(site: Path) -> None:
    """The explorer has a budget of its own, which ``make bench`` shows."""
    sizes = {path.relative_to(site).as_posix(): path.stat().st_size for path in site.rglob("*.html") if path.name != "explorer.html"}
    assert not {path: size for path, size in sizes.items() if size > _MOST_OF_A_PAGE}


def test_formulas_need_no_script_from_elsewhere(site: Path) -> None:
    """Every formula is MathML, and every page loads only what comes with the site."""
    formulas = 0
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        formulas += text.count("<math ")
        assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//[^"]*"', text), path.name
    assert formulas


def test_a_b200_author_finds_the_answers_in_two_clicks(catalog: Catalog, site: Path) -> None:
    """By the links in the texts: the bits of the descriptors, the cell and the register of D[37][200], the place of a scale factor."""
    product = catalog.find("tcgen05.mma.cta_group::1.kind::f16").resolved(m=128, n=256, dtype="f32", atype="bf16", btype="bf16")
    a = shared_memory.of(product, "a", "128B", k=64, start=0)
    scaled = catalog.find("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale").resolved(m=128, n=256, atype="e4m3", btype="e4m3")
    d, factors = product.operand("d-tmem"), scaled.operand("scale-A-tmem")
    place = factors.locate(row=77, block=0, scale_id=3)
    register = d.through(catalog.find("tcgen05.ld.sync.aligned.32x32b.x32.b32")).locate(37, 200, base=64)
    answers = [
        f"{a.steps(16)[0].encode():#018x}",
        f"{descriptors.of_product(product):#010x}",
        f"lane={d.locate(37, 200).lane}, column={d.locate(37, 200).column}",
        f"warp={register.warp}, lane={register.lane}, register={register.register}",
        f"lane={place.lane}, column={place.column}, bit={place.bit}",
    ]
    near = {site / "index.html"}
    for _ in range(2):
        near |= {path for page in list(near) for path in linked(page)}
    texts = [re.sub(r"<[^>]*>", "", article(page)) for page in near]
    assert [answer for answer in answers if not any(answer in text for text in texts)] == []


def article(page: Path) -> str:
    """The text of a page without what surrounds it, as HTML."""
    return page.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]


def linked(page: Path) -> set[Path]:
    """The pages that the text of a page links to."""
    paths = {(page.parent / href).resolve() for href in re.findall(r'href="([^"#:]+\.html)', article(page))}
    return {path for path in paths if path.is_file() and path.name != "explorer.html"}


def test_the_site_has_every_page(root: Path, site: Path) -> None:
    reference = root / "docs" / "reference"
    pages = [path.relative_to(reference) for path in reference.rglob("*.*")]
    assert Path("index.rst") in pages
    for path in pages:
        if path.suffix == ".rst":
            assert (site / "reference" / path).with_suffix(".html").is_file()
        elif path.suffix == ".svg":
            assert (site / "_images" / path.name).is_file()


# --- a site of another spec -----------------------------------------------------------------------------------------------------

_CONF = "exclude_patterns = ['_build']\n"
_INDEX = """
Toy
===

.. _reading-pictures:

Pictures
--------

.. _headers:

Headers
-------

.. _database:

Database
--------

.. toctree::

   reference/index
   reference/rules
"""


def write_site(outputs: Iterator[Output], folder: Path) -> None:
    """Write generated pages and as little else as they need."""
    for output in outputs:
        path = folder / output.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output.text, encoding="utf-8")
    (folder / "docs" / "conf.py").write_text(_CONF, encoding="utf-8")
    (folder / "docs" / "index.rst").write_text(_INDEX, encoding="utf-8")


def test_a_new_family_gets_its_page(root: Path, tmp_path: Path) -> None:
    catalog = pipeline.read(root / "tests" / "toy")
    write_site(docs.emit(catalog), tmp_path)
    families = {entry.family for entry in catalog.database.spec.instructions}
    assert families <= {path.stem for path in (tmp_path / "docs/reference").iterdir()}
    build(tmp_path / "docs", tmp_path / "out", "dummy")


# --- in a browser ------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """A page of a browser."""
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("Playwright is not installed")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        opened = browser.new_page()
        opened.set_default_timeout(10_000)
        yield opened
        browser.close()


def test_the_search_box_suggests_pages(page: Any, site: Path) -> None:
    page.goto((site / "reference/mma/m16n8k16-f16.html").as_uri())
    page.get_by_placeholder("Search").fill("wgmma m64n256k16")
    page.locator(".sidebar-container .finder a, .finder a").first.click()
    assert page.url.endswith("/reference/wgmma/m64nNk16-f16.html")


def test_the_search_page_begins_with_the_best_matches(page: Any, site: Path) -> None:
    page.goto(f"{(site / 'search.html').as_uri()}?q=RTX+5090")
    assert page.locator(".content .finder a, .finder a").first.get_attribute("href").endswith("reference/targets.html#target-sm-120")


def test_long_tables_are_filtered_and_sorted(page: Any, site: Path) -> None:
    page.goto((site / "reference/database.html").as_uri())
    table = page.locator("table", has=page.get_by_role("columnheader", name="A row is"))
    box = page.get_by_placeholder("Filter").first
    box.fill("erratum")
    shown = [row.inner_text() for row in table.locator("tbody tr").all() if row.is_visible()]
    assert shown
    assert all("erratum" in text.lower() for text in shown)
    box.fill("")
    rows = table.get_by_role("columnheader", name="Rows").get_by_role("button")
    rows.click()
    counts = [int(text.replace(",", "")) for text in table.locator("tbody tr td:nth-child(3)").all_inner_texts()]
    rows.click()
    turned = [int(text.replace(",", "")) for text in table.locator("tbody tr td:nth-child(3)").all_inner_texts()]
    assert counts[0] == min(counts)
    assert turned[0] == max(counts)


def test_the_explorer_leads_to_the_reference(page: Any, site: Path) -> None:
    page.goto(f"{(site / 'explorer.html').as_uri()}#i=mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    page.get_by_role("link", name="reference page").click()
    page.wait_for_url("**/reference/mma/m16n8k16-f16.html")


def test_the_explorer_hands_other_questions_to_the_search(page: Any, site: Path) -> None:
    page.goto((site / "explorer.html").as_uri())
    page.get_by_role("combobox", name="Find an instruction").fill("tensor memory")
    page.get_by_role("option", name="search the reference").click()
    page.wait_for_url("**/search.html?q=tensor%20memory")


def test_a_picture_becomes_the_drawing_of_its_matrix(page: Any, site: Path) -> None:
    page.goto((site / "reference/mma/m16n8k16-f16.html").as_uri())
    page.get_by_role("img", name="Layout of a").first.click()
    frame = page.frame_locator("iframe.embedded")
    frame.get_by_role("link", name="Open in the explorer").wait_for()
    assert page.frames[-1].evaluate("() => explorer.board.tables.map((table) => table.id)") == ["a"]


@pytest.mark.parametrize("name", ["mma/m16n8k16-f16", "wmma/m8n32k16-s8", "wgmma/m64nNk16-f16", "tcgen05.mma/tcgen05.mma"])
def test_pictures_keep_their_size_and_names_stay_on_the_screen(page: Any, site: Path, name: str) -> None:
    """The smallest label of a picture has 9 pixels."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto((site / f"reference/{name}.html").as_uri())
    page.evaluate("() => document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    sizes = page.locator("figure.picture img").evaluate_all("all => all.map((img) => [parseInt(img.style.width), img.offsetWidth])")
    assert sizes
    assert [(natural, shown) for natural, shown in sizes if shown < natural] == []
    wide = page.locator("table.names").evaluate_all("all => all.map(({parentElement: box}) => box.scrollWidth - box.clientWidth)")
    assert wide
    assert max(wide) <= 1


@pytest.mark.parametrize("name", ["mma/m16n8k32-e4m3", "mma.sp/m16n8k64-e4m3", "targets", "types", "tensor_maps", "swizzles"])
def test_wide_tables_fit_into_a_window(page: Any, site: Path, name: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto((site / f"reference/{name}.html").as_uri())
    wide = page.locator(".table-wrapper").evaluate_all("all => all.map((box) => box.scrollWidth - box.clientWidth)")
    assert wide
    assert max(wide) <= 1


def test_answers_fold_away(page: Any, site: Path) -> None:
    page.goto((site / "reference/errata.html").as_uri())
    first = page.locator("details").first
    assert not first.locator("pre").is_visible()
    first.locator("summary").click()
    assert first.locator("pre").is_visible()


def test_the_tree_of_pages_is_open_at_the_page(page: Any, site: Path) -> None:
    page.goto((site / "reference/mma/m16n8k16-f16.html").as_uri())
    tree = page.locator(".sidebar-tree")
    assert tree.locator(".current-page > a").inner_text() == "mma m16n8k16: f16, bf16"
    assert tree.locator("input:checked").count() == 2
    assert tree.get_by_role("link", name="mma m16n8k8: tf32", exact=True).is_visible()
    assert not tree.get_by_role("link", name="ldmatrix m8n8: b16", exact=True).is_visible()
    addresses = tree.locator("a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert len(addresses) > 100
    assert all((site / "reference/mma" / address).is_file() for address in addresses)
