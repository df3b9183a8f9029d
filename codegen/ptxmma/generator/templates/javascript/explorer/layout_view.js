/** Any layout of threads and values, in the notation of CuTe or as Triton's bases, and the operands that have it. */

import { instructionMeant } from "../spellings.js";
import { toCute } from "../interop.js";
import { Board } from "./board.js";
import { spellingsOfLayouts } from "./conversion_view.js";
import { fill, h } from "./dom.js";
import { colourOf } from "./palette.js";
import { titleOf, WARP } from "./scene.js";
import { View } from "./view.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Store} Store */
/** @typedef {import("./table_drawing.js").Table} BoardTable */
/** @typedef {any} Nested a number, or a list of such */
/** @typedef {{top: string, label: string, paint: number}} Holder */

const EXAMPLE_OF_LAYOUT = "((4,8),(2,2)):((32,1),(16,8)) 16x8";

export class LayoutView extends View {
  /** @param {Store} store */
  constructor(store) {
    super(store);
    this.input = h("input", { class: "mono", "aria-label": "Layout", spellcheck: false, onchange: () => store.set({ layout: this.input.value.trim(), at: "" }) });
    this.live = h("p", { class: "said", role: "status" });
    this.board = new Board("Layout", {
      point: (spot) => this.#light(spot ?? this.#picked()),
      pick: (spot) => store.set({ at: spot ? `layout:${spot.row},${spot.col}` : "" }),
    });
    const hint = "CuTe's shape:stride, then the matrix (16x8) whose elements threads hold; or Triton's bases of registers, lanes and warps.";
    this.element = h("section", { class: "view" }, h("div", { class: "tools" }, this.input), h("p", { class: "said" }, hint), this.live, this.board.element, this.notes);
  }

  /**
   * @param {import("../index.d.ts").Instruction} _instruction
   * @param {State} state
   */
  update(_instruction, state) {
    const text = (this.input.value = state.layout || EXAMPLE_OF_LAYOUT);
    this.fault = "";
    /** @type {BoardTable[]} */
    let tables = [];
    try {
      tables = [text.startsWith("{") ? basesTable(text) : cuteTable(text)];
    } catch (error) {
      this.fault = `${text}: ${/** @type {Error} */ (error).message}`;
    }
    const owners = ownersOf(text);
    fill(this.notes, owners.length > 0 && h("p", {}, `This is ${owners[0]}${owners.length > 1 ? ` and ${owners.length - 1} more operands` : ""}.`));
    this.board.show(tables, state.zoom);
    const picked = this.#picked();
    if (state.at && tables.length && !picked) this.fault = `${state.at}: write layout:ROW,COL; the layout is ${tables[0].title}.`;
    this.#light(picked);
    this.headline = picked ? this.live.textContent : "";
  }

  /** The element that the URL names. */
  #picked() {
    const [, row, col] = (/^layout:(\d+),(\d+)$/.exec(this.store.state.at) ?? []).map(Number);
    const [table] = this.board.tables;
    return row < table?.rows && col < table.cols ? { table, row, col } : null;
  }

  /**
   * Lights an element, weaker the others of its thread, and says who holds it.
   * @param {import("./board.js").Spot | null} spot
   */
  #light(spot) {
    const chosen = spot && spot.table.cell(spot.row, spot.col);
    this.board.cursor = spot;
    this.board.light(chosen && ((table, row, col) => (row === spot.row && col === spot.col ? 2 : Number(table.cell(row, col).top === chosen.top))));
    this.live.textContent = chosen ? `[${spot.row}][${spot.col}]: ${chosen.top} ${chosen.label}` : "Point at an element.";
  }
}

/**
 * The operands that have a layout, in words.
 * @param {string} text
 */
function ownersOf(text) {
  const [own] = text.replace(/, +/g, ",").split(" ");
  return spellingsOfLayouts().flatMap((spelling) => {
    const operands = instructionMeant(spelling)?.forms.flatMap((form) => form.operands) ?? [];
    return operands.filter((operand, place) => toCute(operand)?.replaceAll(" ", "") === own && operands.findIndex(({ name }) => name === operand.name) === place).map(({ name }) => `${titleOf(name)} of ${spelling}`);
  });
}

/**
 * A layout of CuTe: offsets by its first mode and the others; with a matrix, the thread and the value of each of its elements, whose columns follow each other.
 * @param {string} text
 */
function cuteTable(text) {
  const [, layout, matrix] = /^([\s\d_(),:]+?)(?:\s+(\d+x\d+))?$/.exec(text) ?? [];
  const [shape, stride] = (layout ?? "").split(":").map(nestedIn);
  const [first, ...others] = Array.isArray(shape) && Array.isArray(stride) ? shape.map((size, place) => paired(size, stride[place])) : [paired(shape, stride)];
  const rest = others.flat();
  const [rows, cols] = [first, rest].map((pairs) => pairs.reduce((count, [size]) => count * size, 1));
  if (!matrix) return tableOfLayout(rows, cols, (row, col) => ({ top: String(offset(first, row) + offset(rest, col)), label: "", paint: offset(first, row) + offset(rest, col) }));
  const [high, wide] = matrix.split("x").map(Number);
  /** @type {Map<number, Holder>} */
  const held = new Map();
  for (let col = 0; col < cols; col += 1) for (let row = 0; row < rows; row += 1) held.set(offset(first, row) + offset(rest, col), { top: `T${row}`, label: `v${col}`, paint: row });
  return tableOfLayout(high, wide, (row, col) => held.get(row + high * col));
}

/**
 * @param {string} text
 * @returns {Nested}
 */
function nestedIn(text) {
  try {
    return JSON.parse(text.replace(/_/g, "").replaceAll("(", "[").replaceAll(")", "]"));
  } catch {
    throw new RangeError("write shape:stride, as (4,8):(8,1)");
  }
}

/**
 * Sizes and strides side by side.
 * @param {Nested} shape
 * @param {Nested} stride
 * @returns {[number, number][]}
 */
function paired(shape, stride) {
  if (!Array.isArray(shape) && !Array.isArray(stride) && stride !== undefined) return [[shape, stride]];
  if (!Array.isArray(shape) || !Array.isArray(stride) || shape.length !== stride.length) throw new RangeError("shape and stride must be nested alike");
  return shape.flatMap((size, place) => paired(size, stride[place]));
}

/**
 * @param {[number, number][]} pairs
 * @param {number} index
 */
function offset(pairs, index) {
  let [sum, left] = [0, index];
  for (const [size, stride] of pairs) {
    sum += (left % size) * stride;
    left = Math.floor(left / size);
  }
  return sum;
}

/**
 * A linear layout of Triton: the thread and the register of each element.
 * @param {string} text
 */
function basesTable(text) {
  const bases = /** @type {Record<string, number[][]>} */ (JSON.parse(text.replaceAll("'", '"')));
  const [register = [], lane = [], warp = []] = ["register", "lane", "warp"].map((name) => bases[name]);
  const every = [...register, ...lane, ...warp];
  const [rows, cols] = [0, 1].map((axis) => every.reduce((all, place) => all | place[axis], 0) + 1);
  /** @type {Map<string, Holder>} */
  const held = new Map();
  for (let point = 2 ** every.length - 1; point >= 0; point -= 1) {
    const place = every.reduce((sum, base, bit) => ((point >> bit) & 1 ? sum.map((part, axis) => part ^ base[axis]) : sum), [0, 0]);
    const number = point % 2 ** register.length;
    const thread = (point - number) / 2 ** register.length;
    held.set(place.join(), { top: `T${(thread % 2 ** lane.length) + WARP * Math.floor(thread / 2 ** lane.length)}`, label: `r${number}`, paint: thread });
  }
  return tableOfLayout(rows, cols, (row, col) => held.get(`${row},${col}`));
}

/**
 * @param {number} rows
 * @param {number} cols
 * @param {(row: number, col: number) => Holder | undefined} holder
 * @returns {BoardTable}
 */
function tableOfLayout(rows, cols, holder) {
  const cell = (/** @type {number} */ row, /** @type {number} */ col) => {
    const { top = "", label = "", paint = -1 } = holder(row, col) ?? {};
    return { fill: paint < 0 ? "" : colourOf(paint), top, label, key: "" };
  };
  return { id: "layout", title: `${rows} × ${cols}`, note: "", rows, cols, down: 0, across: 0, wide: 1, rowName: String, colName: String, cell };
}
