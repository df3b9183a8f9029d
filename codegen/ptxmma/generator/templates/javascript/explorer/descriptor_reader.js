/** The bits of any descriptor, by its family and kind. */

import { bitsOf } from "../arrangements.js";
import { bitsIn, descriptorFormats, explainedDescriptor } from "../descriptors.js";
import { choice, fill, h } from "./dom.js";
import { byPlace, oneOf } from "./legal.js";
import { hueOf } from "./palette.js";
import { View } from "./view.js";

/** @typedef {import("../index.d.ts").FieldValue} FieldValue */
/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Store} Store */

export class DescriptorReader extends View {
  /** @param {Store} store */
  constructor(store) {
    super(store);
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
    const bits = bitsIn(text, format.bits);
    const named = every.filter((each) => each.format.name === name);
    this.legal = { descriptor: byPlace(oneOf(descriptorFormats.map((each) => each.name)), oneOf((named.length ? named : every).map((each) => each.kind)), (word) => (bits === null ? `${word} is not a number of ${format.bits} bits: write 0x and hexadecimal digits.` : "")) };
    const show = (/** @type {string} */ id, /** @type {string} */ word) => this.store.set({ descriptor: `${id.replace(" ", ",")},${word}` });
    const input = h("input", { class: "mono", "aria-label": "Bits", spellcheck: false, value: text || "0x0", onchange: () => show(chosen.id, input.value.trim()) });
    fill(
      this.element,
      h("div", { class: "tools" }, choice("Descriptor", every.map(({ format: each, kind: own, id }) => ({ value: id, text: own ? `${each.family} ${own}` : each.title })), chosen.id, (id) => show(id, text)), input),
      h("div", { class: "fields" }, fieldTable(explainedDescriptor(format, chosen.kind, bits ?? 0n), ({ value, legal }) => (legal ? String(value) : ""))),
    );
  }
}

/**
 * The fields of a descriptor: the bits of each, what they hold and what that means.
 * @param {FieldValue[]} explained
 * @param {(field: FieldValue) => Node | string} meaning of what a field holds
 */
export function fieldTable(explained, meaning) {
  const rows = explained.map((each, place) => {
    const { field: { name, title, upper, unit }, stored, legal } = each;
    const bits = `${upper === undefined ? "" : `${upper}, `}${bitsOf(each.field)}`;
    return h("tr", {}, h("th", { scope: "row", style: `--hue: ${hueOf(place)}`, title }, name.replaceAll("_", " ")), h("td", {}, bits), h("td", {}, `0x${stored.toString(16)}`), h("td", { class: legal ? "" : "bad" }, h("span", { class: "row" }, meaning(each), h("span", {}, legal ? unit ?? "" : "not legal"))));
  });
  return h("table", {}, h("thead", {}, h("tr", {}, ["Field", "Bits", "Holds", "Means"].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows));
}
