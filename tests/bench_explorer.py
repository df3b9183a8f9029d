"""The explorer in a browser: its weight, the time to the first picture, the time of a click."""

from __future__ import annotations

import importlib.util
import shutil
import statistics

from ptxmma import paths

_ROUNDS = 7
#: From the start of the navigation until the first frame with a picture.
_FIRST = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
#: A click on another element, until the frame after it.
_CLICK = """n => new Promise(done => {
  const start = performance.now();
  explorer.store.set({ at: `d:${n},${n}` });
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
})"""
#: The largest instruction, which has the most to draw.
_LARGEST = "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"


def main() -> None:
    """Measure and print."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    print(f"{'explorer.html':<58}{paths.EXPLORER.stat().st_size / 1000:>7.0f} KB  330 KB")
    if chromium is None or importlib.util.find_spec("playwright") is None:
        print("explorer in a browser: skipped, Chromium or Playwright is not installed")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        first, clicks = [], []
        for _ in range(_ROUNDS):
            page = browser.new_page()
            page.goto(f"{paths.EXPLORER.as_uri()}#i={_LARGEST}")
            first.append(page.evaluate(_FIRST))
            clicks += [page.evaluate(_CLICK, number) for number in range(_ROUNDS)]
            page.close()
        browser.close()
    print(f"{'explorer: first picture':<58}{statistics.median(first):>7.0f} ms  500 ms")
    print(f"{'explorer: a click':<58}{statistics.median(clicks):>7.0f} ms  50 ms")


if __name__ == "__main__":
    main()
