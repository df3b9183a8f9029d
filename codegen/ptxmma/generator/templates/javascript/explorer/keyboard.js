/** Keys of the whole page; the board has keys of its own. */

import { h } from "./dom.js";
import { zoom } from "./zoom.js";

/** @typedef {import("./state.js").Store} Store */
/** @typedef {import("./board.js").Board} Board */

/** @type {[string, string][]} */
const KEYS = [
  ["/", "find an instruction"],
  ["1 2 3 4 5 6 7 8", "the views, from the left"],
  ["← ↑ → ↓", "from element to element; with Shift by eight"],
  ["Tab", "to the next matrix"],
  ["c", "colour by lane, register or warp"],
  ["[ ]", "smaller or larger N"],
  ["+ −", "larger or smaller cells; 0: as large as fits"],
  ["l", "all that the thread of the selected element holds"],
  ["Esc", "select nothing"],
  ["t", "light or dark"],
  ["?", "these keys"],
];

/** @returns {HTMLDialogElement} */
export function helpDialog() {
  const rows = KEYS.map(([keys, text]) => h("tr", {}, h("th", { scope: "row" }, keys.split(" ").map((key) => h("kbd", {}, key))), h("td", {}, text)));
  const dialog = h("dialog", { "aria-label": "Keys", onclick: (/** @type {Event} */ event) => event.target === dialog && dialog.close() }, h("div", {}, h("h2", {}, "Keys"), h("table", {}, h("tbody", {}, rows)), h("form", { method: "dialog" }, h("button", {}, "Close"))));
  return dialog;
}

/**
 * @param {{store: Store, search: HTMLInputElement, views: string[], step: (steps: number) => void, theme: () => void, help: HTMLDialogElement, board: () => Board}} page
 */
export function keyboard({ store, search, views, step, theme, help, board }) {
  const colours = ["lane", "register", "warp"];
  /** @type {Record<string, () => void>} */
  const actions = {
    "/": () => search.focus(),
    "?": () => help.showModal(),
    c: () => store.set({ colour: colours[(colours.indexOf(store.state.colour) + 1) % colours.length] }),
    "[": () => step(-1),
    "]": () => step(1),
    "+": () => zoom(store, board(), 1),
    "=": () => zoom(store, board(), 1),
    "-": () => zoom(store, board(), -1),
    0: () => store.set({ zoom: "fit" }),
    l: () => {
      const lane = document.querySelector(".details dd button.link")?.textContent;
      if (lane && !store.state.at.startsWith("lane:")) store.set({ at: `lane:${lane}` });
    },
    t: theme,
    Escape: () => store.set({ at: "" }),
  };
  views.forEach((view, place) => (actions[place + 1] = () => store.set({ v: view })));
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    const writing = target instanceof HTMLElement && (["TEXTAREA", "SELECT"].includes(target.tagName) || (target instanceof HTMLInputElement && target.type !== "range"));
    if (writing || help.open || event.metaKey || event.ctrlKey || event.altKey) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
