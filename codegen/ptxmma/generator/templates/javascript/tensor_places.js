/** The places of operands in tensor memory, as `ptxmma.catalog.operands.tensor_places` has them. */

import { within } from "./arrangements.js";
import { database } from "./database.js";
import { formulaOf } from "./formulas.js";
import { factsOf } from "./instructions.js";
import { holds, recordsByColumn } from "./short_texts.js";

/** @typedef {import("./index.d.ts").Instruction} Instruction */
/** @typedef {import("./index.d.ts").Operand} Operand */
/** @typedef {import("./index.d.ts").TensorMemory} TensorMemory */
/** @typedef {import("./index.d.ts").TensorLayout} TensorLayout */
/** @typedef {import("./index.d.ts").TensorPlace} TensorPlace */
/** @typedef {import("./index.d.ts").TensorProduct} TensorProduct */
/** @typedef {Record<string, number>} Numbers */

/** The tensor memories of the database. */
export const tensorMemories = (database.tensor ?? []).map((memory) => /** @type {TensorMemory} */ ({ ...memory, layouts: recordsByColumn(memory.layouts) }));

/** The layout of one operand of one instruction. */
export class TensorPlaces {
  /**
   * @param {string} name `d`, `scale-a`
   * @param {Operand} operand
   * @param {TensorMemory} memory that it lies in
   * @param {TensorLayout} layout
   * @param {Numbers} numbers what formulas read: extents, `bits`, `ratio`, `chunk_size`, `blocks`, `ctas`
   * @param {string} type of what lies there; empty for bytes and metadata
   */
  constructor(name, operand, memory, layout, numbers, type) {
    this.name = name;
    this.operand = operand;
    this.memory = memory;
    this.layout = layout;
    this.numbers = numbers;
    this.type = type;
    /** @type {Numbers} */
    this.sizes = Object.fromEntries(Object.entries(layout.axes).map(([axis, text]) => [axis, formulaOf(text)(numbers)]));
    /** The axes that number copies of the same data. */
    this.apart = layout.apart ?? [];
    /** The axes that name what lies there. */
    this.coordinates = Object.keys(this.sizes).filter((axis) => !this.apart.includes(axis));
    /** The legal values of the numbers of the instruction descriptor that select a part. */
    this.selections = Object.fromEntries((layout.selections ?? []).filter((each) => holds(each.when, numbers)).map((each) => [each.name, each.values]));
    /** Bits between neighbours. */
    this.unit = formulaOf(layout.unit ?? "bits")(numbers);
    /** Bits of what lies at a place: its container, or a cell of its own, may have more. */
    this.width = Math.min(this.unit, database.types[type]?.bits ?? this.unit);
    /** The lowest bit of an element in its container. */
    this.shift = (layout.unit ?? "bits") === "bits" ? numbers.shift ?? 0 : 0;
    this.ctas = layout.at.cta ? numbers.ctas : 1;
  }

  /** Columns that it takes, from its address on. */
  get columns() {
    const last = Object.fromEntries(Object.entries(this.sizes).map(([axis, size]) => [axis, size - 1]));
    return this.locate({ ...last, ...Object.fromEntries(Object.entries(this.selections).map(([name, values]) => [name, values[values.length - 1]])) }).column + 1;
  }

  /**
   * The place of something; axes and selections that are left out are 0.  Throws a RangeError for a number outside an axis.
   * @param {Numbers} point
   * @returns {TensorPlace}
   */
  locate(point) {
    /** @type {Numbers} */
    const values = { ...this.numbers };
    for (const name of [...this.apart, ...Object.keys(this.selections)]) values[name] = 0;
    within(point, this.sizes);
    Object.assign(values, point);
    const { cta = "0", lane = "0", column = "0", bit = "0" } = this.layout.at;
    return { cta: formulaOf(cta)(values), lane: formulaOf(lane)(values), column: formulaOf(column)(values), bit: formulaOf(bit)(values) + this.shift };
  }

  /**
   * The content of a place, a number for each axis; null where nothing lies there. All bits of a container lead to its element.
   * @param {TensorPlace} place
   * @param {Numbers} selected
   * @returns {Numbers | null}
   */
  at(place, selected = {}) {
    /** @type {Numbers} */
    const values = { ...this.numbers };
    for (const name of Object.keys(this.selections)) values[name] = 0;
    const bit = place.bit - (place.bit % this.unit);
    Object.assign(values, selected, place, { bit });
    /** @type {Numbers} */
    const point = {};
    for (const [axis, text] of Object.entries(this.layout.back)) {
      point[axis] = formulaOf(text)(values);
      if (!(point[axis] >= 0 && point[axis] < this.sizes[axis])) return null;
    }
    const there = this.locate({ ...selected, ...point });
    return there.cta === place.cta && there.lane === place.lane && there.column === place.column && there.bit === bit + this.shift ? point : null;
  }
}

/**
 * The operands of an instruction in tensor memory, by the names that users give them; null for one that no source describes.
 * @param {Instruction} instruction
 * @param {TensorProduct | null} product what its descriptor chooses
 * @returns {Map<string, TensorPlaces | null>}
 */
export function tensorOperands(instruction, product) {
  /** @type {Map<string, TensorPlaces | null>} */
  const made = new Map();
  const kinds = new Set(tensorMemories.flatMap((memory) => memory.layouts).map((layout) => layout.operand));
  for (const form of instruction.forms) {
    for (const operand of form.operands) {
      if (!kinds.has(operand.kind)) continue;
      const named = { "tensor-scales": `scale-${operand.of}`, "tensor-metadata": "metadata", "tensor-copy": "copy" };
      const name = /** @type {Record<string, string>} */ (named)[operand.kind] ?? operand.of;
      if (!made.has(name)) made.set(name, operandPlaces(name, operand, instruction, product));
    }
  }
  return made;
}

/**
 * The memory that an instruction with these facts reaches.
 * @param {Record<string, string | number>} facts
 * @returns {TensorMemory | undefined}
 */
export function memoryOf(facts) {
  return tensorMemories.find((each) => each.of && holds(each.of, facts)) ?? tensorMemories.find((each) => !each.of);
}

/**
 * @param {string} name
 * @param {Operand} operand
 * @param {Instruction} instruction
 * @param {TensorProduct | null} product
 * @returns {TensorPlaces | null}
 */
function operandPlaces(name, operand, instruction, product) {
  const pattern = product?.sparsity ?? instruction.pattern;
  const values = product?.values ?? {};
  const facts = { ...factsOf(instruction), ...values };
  /** @type {Numbers} */
  const numbers = { ctas: 1, ratio: 1, ...instruction.extents };
  for (const size of ["m", "n", "k"]) if (size in values) numbers[size] = Number(values[size]);
  const element = String(values[`${operand.of}type`] ?? "");
  if (element) Object.assign(numbers, containerOf(element, facts));
  if (pattern) Object.assign(numbers, { ratio: pattern.chunk / pattern.kept, chunk_size: pattern.chunk });
  if (product?.block) numbers.blocks = numbers.k / numbers.ratio / product.block;
  const memory = memoryOf(facts);
  const layout = memory?.layouts.find((each) => each.operand === operand.kind && (!each.matrix || each.matrix === operand.of) && holds(each.of, { ...facts, ...numbers }));
  const type = { "tensor-scales": String(values.stype ?? ""), "tensor-metadata": "", "tensor-copy": "" }[operand.kind] ?? element;
  return memory && layout ? new TensorPlaces(name, operand, memory, layout, numbers, type) : null;
}

/**
 * Bits between neighbouring elements of a type, its own or its container's, and the lowest bit of an element in these.
 * @param {string} element
 * @param {Record<string, string | number>} facts
 * @returns {{bits: number, shift: number}}
 */
function containerOf(element, facts) {
  const container = (database.containers ?? []).find((each) => each.elements.includes(element) && holds(each.when, facts));
  const { bits, shift = 0 } = container ?? { bits: database.types[element].bits };
  return { bits, shift };
}
