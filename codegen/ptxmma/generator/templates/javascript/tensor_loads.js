/** Operands in tensor memory in the registers of a load, as `ptxmma.catalog.operands.tensor_fragment` says it. */

import { arrangements } from "./arrangements.js";
import { factsOf, instructionGroups, instructionOf } from "./instructions.js";
import { memoryOf } from "./tensor_places.js";

/** @typedef {import("./index.d.ts").Arrangement} Arrangement */
/** @typedef {import("./index.d.ts").Instruction} Instruction */
/** @typedef {import("./index.d.ts").RegisterPlace} RegisterPlace */
/** @typedef {import("./index.d.ts").TensorPlace} TensorPlace */
/** @typedef {import("./tensor_places.js").TensorPlaces} TensorPlaces */

const OPERATION_OF_LOADS = "tensor-load";

/**
 * The loads of an operand's memory whose registers take its whole elements, and no columns after it.
 * @param {TensorPlaces} places
 * @returns {Instruction[]}
 */
export function loadsOf(places) {
  const groups = instructionGroups().filter((group) => group.entry.operation === OPERATION_OF_LOADS);
  return groups.flatMap((group) => group.numbers.map((number) => instructionOf(group, number))).filter((load) => {
    const table = memoryOf(factsOf(load)) === places.memory && fragmentOf(load);
    return table && table.cols <= places.columns && (table.operand.bits >= places.memory.cell || (!places.layout.at.bit && table.operand.bits >= places.width));
  });
}

/**
 * The registers of a load as a table of lanes and columns; undefined for a load in several accesses.
 * @param {Instruction} load
 * @returns {Arrangement | undefined}
 */
export function fragmentOf(load) {
  const table = [...arrangements(load).values()].find((each) => each.operand.kind === "fragment");
  return table && !Object.keys(table.legal).length ? table : undefined;
}

/**
 * The register that takes what lies at a place.
 * @param {Arrangement} table
 * @param {TensorPlaces} places
 * @param {TensorPlace} place from the operand's address on
 * @param {{lane: number, column: number}} base that address
 * @returns {RegisterPlace}
 */
export function registerOf(table, places, place, base) {
  const { partition, address } = places.memory;
  const [lane, column] = [base.lane + place.lane, base.column + place.column];
  const [row, col] = [lane % table.rows, place.column % table.cols];
  const thread = table.locate(row, col);
  return { cta: place.cta, warp: Math.floor(lane / partition), lane: thread.lane, register: thread.register, bit: thread.low + place.bit, address: (lane - row) * 2 ** address.lane + (column - col) * 2 ** address.column };
}
