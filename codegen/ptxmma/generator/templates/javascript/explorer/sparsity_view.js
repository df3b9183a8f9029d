/** Structured sparsity: a row compressed as it is typed, and a word of metadata read. */

import { arrangements } from "../arrangements.js";
import { instructionGroups, instructionOf, sparsityPattern } from "../instructions.js";
import { compressedRow, fieldBits, keptColumns, prunedRow } from "../sparsity.js";
import { choice, fill, h, numberField } from "./dom.js";
import { byName, like, upTo } from "./legal.js";
import { colourOf } from "./palette.js";
import { chosenOf, chosenText } from "./state.js";
import { View } from "./view.js";

/** @typedef {import("../index.d.ts").Arrangement} Arrangement */
/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("../index.d.ts").SparsityPattern} SparsityPattern */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Store} Store */

const CHUNKS = 4;
const HUE = 5;

export class SparsityView extends View {
  /** @param {Store} store */
  constructor(store) {
    super(store);
    this.input = h("input", { class: "mono", "aria-label": "Values of a row, with blanks between them", spellcheck: false, oninput: () => store.set({ row: this.input.value.trim() }) });
    this.row = h("div", { class: "chunks" });
    this.word = h("div", {});
    const random = () => Array.from({ length: CHUNKS * this.pattern.chunk }, () => Math.floor(Math.random() * 19) - 9);
    this.element = h(
      "section",
      { class: "view sparsity" },
      this.notes,
      h("h2", {}, "A row"),
      h("div", { class: "row" }, this.input, h("button", { onclick: () => store.set({ row: this.values().length ? prunedRow(this.values(), this.pattern).join(" ") : "" }) }, "Prune"), h("button", { onclick: () => store.set({ row: random().join(" ") }) }, "Random")),
      this.row,
      this.word,
    );
    /** @type {SparsityPattern} */
    this.pattern = sparsityPattern(0);
  }

  /**
   * @param {Instruction} instruction
   * @param {State} state
   */
  update(instruction, state) {
    this.pattern = instruction.pattern ?? sparsityPattern(0);
    const { pattern } = this;
    fill(this.notes, instruction.pattern ? h("p", {}, `${pattern.name}: ${pattern.text}`) : [h("p", {}, `${instruction.name} is dense. This is the pattern ${pattern.name} of another instruction: ${pattern.text}`), this.#sparser(instruction)]);
    const shown = state.row || prunedRow(Array.from({ length: CHUNKS * pattern.chunk }, (_, place) => ((place * 7) % 10) - 4), pattern).join(" ");
    if (document.activeElement !== this.input) this.input.value = shown;
    this.#row();
    const table = arrangements(instruction).get("metadata");
    this.legal = {
      row: like(/^-?[\d.]+([\s,]+-?[\d.]+)*$/, "numbers with blanks between them"),
      ...(table && { lane: upTo(table.threads - 1), word: like(/^0x[0-9a-f]{1,8}$/i, "0x and up to 8 hexadecimal digits"), choose: byName(table.legal) }),
    };
    fill(this.word, table ? this.#word(table, state) : []);
  }

  /** The values in the box, filled up to whole chunks with zeros. */
  values() {
    const values = this.input.value.split(/[\s,]+/).filter(Boolean).map(Number);
    while (values.length % this.pattern.chunk) values.push(0);
    return values.map((value) => (Number.isFinite(value) ? value : 0));
  }

  /** @param {Instruction} instruction */
  #sparser(instruction) {
    const likeness = (/** @type {Record<string, string>} */ templates) => Object.entries(instruction.group.templates).filter(([name, value]) => templates[name] === value).length;
    const [scope, sparse] = [instruction.scope, instructionGroups().filter((group) => group.pattern)];
    const near = sparse.filter((group) => group.entry.scope === scope);
    const best = (near.length ? near : sparse).reduce((one, other) => (likeness(other.templates) > likeness(one.templates) ? other : one));
    const nearest = instructionOf(best, best.numbers[Math.floor(best.numbers.length / 4)]);
    return h("button", { onclick: () => this.store.set({ i: nearest.canonical, at: "", choose: "" }) }, `Show ${nearest.canonical}`);
  }

  #row() {
    const { pattern } = this;
    const values = this.values();
    const { fields, values: stored, crowded } = compressedRow(values, pattern);
    let legal = 0;
    const chunks = Array.from({ length: values.length / pattern.chunk }, (_, number) => {
      const chunk = values.slice(number * pattern.chunk, (number + 1) * pattern.chunk);
      const bad = crowded.includes(number);
      const field = bad ? "" : fields[legal++];
      const kept = keptColumns(field, pattern) ?? [];
      const cells = chunk.map((value, place) => h("span", { class: kept.includes(place) ? "kept" : "dropped", style: kept.includes(place) ? `background:${colourOf(HUE + number * 4)}` : "" }, String(value)));
      return h("div", { class: bad ? "chunk bad" : "chunk" }, h("small", {}, `chunk ${number}`), h("div", { class: "cells" }, cells), h("code", {}, bad ? `${chunk.filter(Boolean).length} are not zero` : field));
    });
    const parts = crowded.length
      ? [h("p", { class: "error" }, `Chunk ${crowded.join(", ")}: more than ${pattern.kept} of ${pattern.chunk} are not zero. Prune drops the smallest.`)]
      : [h("dl", {}, h("dt", {}, "Values"), h("dd", {}, h("code", {}, stored.join(" "))), h("dt", {}, "Metadata"), h("dd", {}, h("code", {}, metadataText(fields, pattern))))];
    fill(this.row, h("div", { class: "row" }, chunks), parts);
  }

  /**
   * A word of metadata as the instruction reads it.
   * @param {Arrangement} table
   * @param {State} state
   */
  #word(table, state) {
    const { pattern } = this;
    const lane = Math.min(Number(state.lane) || 0, table.threads - 1);
    const chosen = chosenOf(state.choose);
    const selectors = table.legal.selector ?? [0];
    const selector = chosen.selector ?? selectors[0];
    const width = fieldBits(pattern);
    const usual = Array.from({ length: table.elements }, () => pattern.legal[0].slice(2)).join("");
    const word = /^0x[0-9a-f]{1,8}$/i.test(state.word) ? BigInt(state.word) : BigInt(`0b${usual}`);
    const input = h("input", { class: "mono", value: `0x${word.toString(16).padStart(8, "0")}`, "aria-label": "Word of metadata", onchange: () => this.store.set({ word: input.value.trim().toLowerCase() }) });
    const rows = Array.from({ length: table.elements }, (_, element) => {
      const at = table.at(lane, element);
      const field = `0b${((word >> BigInt(element * width)) & ((1n << BigInt(width)) - 1n)).toString(2).padStart(width, "0")}`;
      const read = (at.selector ?? selector) === selector;
      const kept = keptColumns(field, pattern);
      const first = at.chunk * pattern.chunk;
      const meaning = !read ? "ignored with this selector" : kept ? `keeps columns ${kept.map((col) => first + col).join(", ")}` : "illegal";
      return h("tr", { class: read ? (kept ? "" : "bad") : "ignored" }, h("td", {}, `${(element + 1) * width - 1}:${element * width}`), h("td", {}, h("code", {}, field)), h("td", {}, `row ${at.row}, chunk ${at.chunk}`), h("td", {}, meaning));
    });
    return [
      h("h2", {}, "A word of metadata"),
      h("p", {}, `Selector ${selectors.join(" or ")}: ${pattern.contributors}.`),
      h("div", { class: "tools" }, numberField("Lane", lane, (value) => this.store.set({ lane: String(value ?? 0) }), { min: 0, max: table.threads - 1, class: "short" }), selectors.length > 1 && choice("Selector", selectors.map(String), String(selector), (value) => this.store.set({ choose: chosenText({ ...chosen, selector: Number(value) }) })), h("label", { class: "field" }, h("span", {}, "Word"), input)),
      h("table", { class: "fields" }, h("thead", {}, h("tr", {}, ["Bits", "Field", "Describes", "Means"].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows)),
    ];
  }
}

/**
 * Fields as a number, the first chunk in the lowest bits.
 * @param {string[]} fields
 * @param {SparsityPattern} pattern
 */
function metadataText(fields, pattern) {
  const bits = [...fields].reverse().map((field) => field.slice(2)).join("");
  const digits = Math.ceil((fields.length * fieldBits(pattern)) / 4);
  return bits ? `0x${BigInt(`0b${bits}`).toString(16).padStart(digits, "0")}` : "";
}
