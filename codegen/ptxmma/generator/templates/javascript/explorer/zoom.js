/** The size of the cells of a board. */

import { h } from "./dom.js";

/** @typedef {import("./board.js").Board} Board */
/** @typedef {import("./state.js").Store} Store */

const STEP = 1.25;
const SIZES = { least: 6, most: 60 };

/**
 * Cells that are larger by some steps, or smaller.
 * @param {Store} store
 * @param {Board} board
 * @param {number} steps
 */
export function zoom(store, board, steps) {
  store.set({ zoom: String(Math.min(SIZES.most, Math.max(SIZES.least, Math.round(board.size * STEP ** steps)))) });
}

/**
 * @param {Store} store
 * @param {Board} board
 */
export function zoomButtons(store, board) {
  return h(
    "div",
    { class: "field", role: "group", "aria-label": "Zoom" },
    h("span", {}, "Zoom"),
    h("div", { class: "segments" }, [
      h("button", { "aria-label": "Smaller", onclick: () => zoom(store, board, -1) }, "−"),
      h("button", { onclick: () => store.set({ zoom: "fit" }) }, "Fit"),
      h("button", { "aria-label": "Larger", onclick: () => zoom(store, board, 1) }, "+"),
    ]),
  );
}
