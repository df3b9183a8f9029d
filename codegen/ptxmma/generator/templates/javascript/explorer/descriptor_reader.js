/** The bits of any descriptor, by its family and kind. */

import { descriptorFormats, explainedDescriptor } from "../descriptors.js";
import { choice, fill, h } from "./dom.js";

/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Store} Store */

export class DescriptorReader {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.element = h("section", { class: "view" });
  }

  /**
   * @param {Instruction} _instruction
   * @param {State} state
   */
  update(_instruction, state) {
    const every = descriptorFormats.flatMap((format) => (format.kinds ?? [""]).map((kind) => ({ format, kind, id: `${format.name} ${kind}` })));
    const [name, kind, text = ""] = state.descriptor.split(",");
    const { format, ...chosen } = every.find((each) => each.format.name === name && each.kind === (kind ?? "")) ?? every[0];
    const bits = /^0x[0-9a-f]{1,16}$/i.test(text) && BigInt(text) < 1n << BigInt(format.bits) ? BigInt(text) : 0n;
    const show = (/** @type {string} */ id, /** @type {string} */ word) => this.store.set({ descriptor: `${id.replace(" ", ",")},${word}` });
    const input = h("input", { class: "mono", "aria-label": "Bits", spellcheck: false, value: text || "0x0", onchange: () => show(chosen.id, input.value.trim()) });
    const rows = explainedDescriptor(format, chosen.kind, bits).map(({ field, stored, value, legal }) => {
      const last = field.low + field.width - 1;
      const place = `${field.upper === undefined ? "" : `${field.upper}, `}${field.width > 1 ? `${last}:` : ""}${field.low}`;
      return h("tr", {}, h("th", { scope: "row", title: field.title }, field.name.replaceAll("_", " ")), h("td", {}, place), h("td", {}, String(stored)), h("td", { class: legal ? "" : "bad" }, legal ? `${value} ${field.unit ?? ""}` : "not legal"));
    });
    const head = h("tr", {}, ["Field", "Bits", "Holds", "Means"].map((title) => h("th", { scope: "col" }, title)));
    const wrong = text && !bits && !/^0x0+$/i.test(text) ? `${text} is not a number of ${format.bits} bits: write 0x and hexadecimal digits.` : "";
    fill(
      this.element,
      h("div", { class: "tools" }, choice("Descriptor", every.map(({ format: each, kind: own, id }) => ({ value: id, text: own ? `${each.family} ${own}` : each.title })), chosen.id, (id) => show(id, text)), input),
      h("p", { class: "error", role: "alert" }, wrong),
      h("div", { class: "fields" }, h("table", {}, h("thead", {}, head), h("tbody", {}, rows))),
    );
  }
}
