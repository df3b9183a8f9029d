"""The scripts of the site in a browser: the search box, long tables, the way from the explorer to the reference."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="Playwright is not installed"),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed: `make docs` builds the site")
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-d", str(target / "doctrees"), str(root / "docs"), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
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
