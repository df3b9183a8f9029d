/** A matrix descriptor, editable both ways; steps along k, and the box of TMA. */

import { bitsIn, encodedDescriptor, explainedDescriptor } from "../descriptors.js";
import { suspicions } from "../suspicions.js";
import { fieldTable } from "./descriptor_reader.js";
import { choice, copyButton, fill, h, numberField } from "./dom.js";
import { hueOf } from "./palette.js";

/** @typedef {import("../images.js").MemoryImage} MemoryImage */
/** @typedef {import("../index.d.ts").FieldValue} FieldValue */
/** @typedef {import("../index.d.ts").MemoryFacts} MemoryFacts */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Store} Store */

const BITS = 64;

export class DescriptorPart {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.input = h("input", { class: "mono", "aria-label": "Descriptor", spellcheck: false, onchange: () => this.#typed() });
    this.error = h("p", { class: "error", role: "alert" });
    this.strip = h("div", { class: "bits", role: "group", "aria-label": "Bits of the descriptor" });
    this.fields = h("div", { class: "fields" });
    this.doubts = h("ul", { class: "doubts", "aria-label": "Suspicions" });
    this.steps = h("div", { class: "steps" });
    /** The meaning of the bits of a link. */
    this.headline = "";
    this.element = h("div", {}, h("h2", {}, "Descriptor"), h("div", { class: "row" }, this.input, copyButton("Copy", () => this.input.value)), this.error, this.strip, this.fields, this.doubts, this.steps);
  }

  /**
   * @param {MemoryImage | null} image
   * @param {MemoryFacts} facts of the family that reads it
   * @param {State} state
   * @param {number} depthBytes
   */
  update(image, facts, state, depthBytes) {
    const own = image ? encodedDescriptor(image.descriptor(), facts) : 0n;
    const bits = bitsIn(state.bits) ?? own;
    if (document.activeElement !== this.input) this.input.value = hex(bits);
    this.error.textContent = "";
    this.#strip(bits, facts);
    this.#fields(bits, facts, image && bits !== own ? image : null);
    fill(this.doubts, suspicions(bits, image?.majorness, { family: facts.family }).map(({ text }) => h("li", {}, text)));
    fill(this.steps, image && bits === own ? this.#steps(image, state, depthBytes) : []);
  }

  #typed() {
    const text = this.input.value.trim();
    if (bitsIn(text) !== null) this.store.set({ bits: text.toLowerCase() });
    else this.error.textContent = `${text || "Nothing"} is not a 64-bit number: write 0x and up to 16 hexadecimal digits.`;
  }

  /**
   * @param {bigint} bits
   * @param {MemoryFacts} facts
   */
  #strip(bits, { descriptor, format }) {
    const owner = (/** @type {number} */ bit) => descriptor.findIndex(({ low, width }) => bit >= low && bit < low + width);
    const buttons = Array.from({ length: BITS }, (_, place) => {
      const bit = BITS - 1 - place;
      const field = owner(bit);
      const set = (bits >> BigInt(bit)) & 1n;
      const name = field < 0 ? (format.spare === "zero" ? "0" : "ignored") : descriptor[field].name;
      return h("button", { class: field < 0 ? "unused" : "", style: field < 0 ? "" : `--hue: ${hueOf(field)}`, "aria-pressed": String(set === 1n), title: `bit ${bit}: ${name}`, "aria-label": `bit ${bit}, ${name}`, onclick: () => this.store.set({ bits: hex(bits ^ (1n << BigInt(bit))) }) }, String(set));
    });
    fill(this.strip, buttons);
  }

  /**
   * @param {bigint} bits
   * @param {MemoryFacts} facts
   * @param {MemoryImage | null} other the image, where its descriptor is another one
   */
  #fields(bits, facts, other) {
    const explained = explainedDescriptor(facts.format, "", bits);
    this.headline = this.store.state.bits && `${hex(bits)}, ${facts.family}: ${explained.flatMap(({ field, stored, value }) => (stored && !field.fixed ? `${field.name} ${value}` : [])).join(", ")}`;
    const values = Object.fromEntries(explained.map(({ field, value }) => [field.name, value]));
    const changed = (/** @type {string} */ name, /** @type {number | string | undefined} */ value) => {
      try {
        const known = facts.descriptor.reduce((mask, { low, width }) => mask | (((1n << BigInt(width)) - 1n) << BigInt(low)), 0n);
        this.store.set({ bits: hex(encodedDescriptor({ ...values, [name]: value ?? 0 }, facts) | (bits & ~known)) });
      } catch (error) {
        this.error.textContent = /** @type {Error} */ (error).message;
      }
    };
    const titles = Object.fromEntries(facts.swizzles.map((mode) => [mode.name, mode.title]));
    const editor = (/** @type {FieldValue} */ { field: { name, title, shift = 0, fixed, cases }, value }) => {
      const named = Object.keys(Object.assign({}, ...(cases ?? []).map((each) => each.values ?? {})));
      const made =
        fixed !== undefined
          ? h("span", {}, String(fixed))
          : named.length
            ? choice("", named.map((each) => ({ value: each, text: titles[each] ?? each })), String(value), (chosen) => changed(name, chosen))
            : numberField("", Number(value), (chosen) => changed(name, chosen), { min: 0, step: 2 ** shift, "aria-label": title });
      made.querySelector("select")?.setAttribute("aria-label", title);
      return made;
    };
    const back = h("button", { onclick: () => this.store.set({ bits: "" }) }, "The image's own");
    const distance = Number(values.start_address) - (other?.start ?? 0);
    const note = distance > 0 ? `It starts ${distance} bytes after the image, which begins where the swizzle pattern does.` : "The image has another one.";
    fill(this.fields, fieldTable(explained, editor), other && h("p", { class: "row" }, note, back));
  }

  /**
   * @param {MemoryImage} image
   * @param {State} state
   * @param {number} depthBytes
   */
  #steps(image, state, depthBytes) {
    const depth = Number(state.depth) || (depthBytes * 8) / image.width;
    const box = attempted(() => image.tma);
    const steps = attempted(() => image.steps(depth));
    return [
      h("h2", {}, "Steps along k"),
      numberField("Depth of a step", depth, (value) => this.store.set({ depth: value ? String(value) : "" }), { min: 1, class: "short" }),
      typeof steps === "string"
        ? h("p", { class: "error" }, steps)
        : h("table", { class: "mono" }, h("tbody", {}, steps.map((fields, step) => h("tr", {}, h("td", {}, `k = ${step * depth}`), h("td", {}, `+${Number(fields.start_address) - image.start} bytes`), h("td", {}, hex(encodedDescriptor(fields, image.facts))))))),
      h("h2", {}, "TMA"),
      h("p", {}, typeof box === "string" ? box : `${box.swizzle}, box of ${box.inner} × ${box.outer}${image.width < 8 ? " bytes" : ""}, ${box.boxes} ${box.boxes > 1 ? "boxes" : "box"}`),
    ];
  }
}

/**
 * A result, or why there is none.
 * @template Result
 * @param {() => Result} make
 * @returns {Result | string}
 */
function attempted(make) {
  try {
    return make();
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
}

/** @param {bigint} bits */
function hex(bits) {
  return `0x${bits.toString(16).padStart(16, "0")}`;
}
