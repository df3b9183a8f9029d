/** The common parts of the page's views. */

import { h } from "./dom.js";

/** @typedef {import("./state.js").Store} Store */

export class View {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** Rules for the settings of a link here. @type {import("./legal.js").Legal} */
    this.legal = {};
    /** The fault of a selection that names nothing, and the answer about one that does. */
    this.fault = this.headline = "";
    this.tools = h("div", { class: "tools" });
    this.notes = h("div", { class: "notes" });
    this.details = h("aside", { class: "details", "aria-label": "Details" });
    this.live = h("p", { class: "unseen", role: "status" });
  }
}
