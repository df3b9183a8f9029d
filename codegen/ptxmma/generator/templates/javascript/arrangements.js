/** The matrix of an operand in the registers of the threads, as `ptxmma.matrices.arrangements` has it. */

import { inverseMap, runsOf } from "./bit_maps.js";

/** @typedef {import("./index.d.ts").Arrangement} Arrangement */
/** @typedef {import("./index.d.ts").BitMap} BitMap */
/** @typedef {import("./index.d.ts").Instruction} Instruction */
/** @typedef {import("./index.d.ts").Operand} Operand */
/** @typedef {import("./index.d.ts").Place} Place */
/** @typedef {(values: Record<string, number>) => Record<string, number>} Evaluated */

/**
 * The matrices of an instruction that are spread over threads, by the names that users give them: `a`, `metadata`, `scale-a`.
 * @param {Instruction} instruction
 * @returns {Map<string, Arrangement>}
 */
export function arrangements(instruction) {
  /** @type {Map<string, Arrangement>} */
  const made = new Map();
  for (const form of instruction.forms) {
    for (const operand of form.operands) {
      if (!operand.layout) continue;
      const named = { metadata: "metadata", scale: `scale-${operand.of}` };
      const name = /** @type {Record<string, string>} */ (named)[operand.layout.kind] ?? operand.name;
      if (!made.has(name)) made.set(name, arrangementOf(name, operand, operand.layout));
    }
  }
  return made;
}

/**
 * @param {string} name
 * @param {Operand} operand
 * @param {import("./index.d.ts").Layout} layout
 * @returns {Arrangement}
 */
function arrangementOf(name, operand, layout) {
  const all = layout.coordinates.length > 1 ? layout.coordinates : ["", ...layout.coordinates];
  const [first, second] = all.slice(-2);
  const others = all.slice(0, -2);
  /** @type {[string, string]} */
  const axes = first === "col" ? [second, first] : [first, second];
  const back = inverseMap(layout.toAxes);
  const counter = Object.keys(back.outputs).find((output) => output !== "lane") ?? "";
  const elements = operand.elements || (counter ? 2 ** back.outputs[counter] : 1);
  /** @type {Record<string, number[]>} */
  const legal = {};
  for (const axis of [...others, ...layout.apart]) {
    legal[axis] = Array.from({ length: operand.sizes[axis] }, (_, index) => index * (layout.steps[axis] ?? 1));
  }
  const perRegister = elements / Math.max(operand.registers, 1);
  const width = operand.width || layout.steps.bit || operand.registerBits;
  const spacing = operand.bits || width;
  const toPlace = evaluated(back);
  const toAxes = evaluated(layout.toAxes);
  /** @type {(lane: number, element: number) => Place} */
  const place = (lane, element) => {
    const register = Math.floor(element / perRegister);
    return { lane, element, register, low: (element % perRegister) * spacing + operand.shift, width };
  };
  return {
    name,
    operand,
    layout,
    axes,
    rows: operand.sizes[axes[0]] ?? 1,
    cols: operand.sizes[axes[1]] ?? 1,
    threads: 2 ** back.outputs.lane,
    elements,
    perRegister,
    counter,
    legal,
    locate(row, col, chosen = {}) {
      /** @type {Record<string, number>} */
      const at = { [axes[0]]: row, [axes[1]]: col };
      within(at, operand.sizes);
      for (const [axis, values] of Object.entries(legal)) {
        at[axis] = values.indexOf(chosen[axis] ?? values[0]);
        if (at[axis] < 0) throw new RangeError(`${axis} must be one of ${values.join(", ")}, not ${chosen[axis]}`);
      }
      const point = toPlace(at);
      return place(point.lane, counter ? point[counter] : 0);
    },
    at(lane, element) {
      within({ lane, element }, { lane: 2 ** back.outputs.lane, element: elements });
      const point = toAxes({ lane, [counter]: element });
      /** @type {Record<string, number>} */
      const coordinates = {};
      for (const axis of axes) if (axis) coordinates[axis] = point[axis];
      for (const [axis, values] of Object.entries(legal)) coordinates[axis] = values[point[axis]];
      return coordinates;
    },
  };
}

/**
 * Raises a RangeError for a number outside an axis.
 * @param {Record<string, number>} point
 * @param {Record<string, number>} sizes
 */
export function within(point, sizes) {
  for (const [axis, size] of Object.entries(sizes)) {
    if (axis in point && !(Number.isInteger(point[axis]) && point[axis] >= 0 && point[axis] < size)) throw new RangeError(`${axis} = ${point[axis]} is out of range: 0..${size - 1}`);
  }
}

/**
 * A map as a function, with what each run of bits does worked out once.
 * @param {BitMap} map
 * @returns {Evaluated}
 */
function evaluated(map) {
  const outputs = Object.keys(map.outputs).map((output) => /** @type {const} */ ([output, runsOf(map, output)]));
  return (values) => {
    /** @type {Record<string, number>} */
    const results = {};
    for (const [output, runs] of outputs) {
      let result = 0;
      for (const { name, source, width, target } of runs) result |= ((values[name] >> source) & (2 ** width - 1)) << target;
      results[output] = result;
    }
    return results;
  };
}

/**
 * The bits of a place as PTX writes them: `31:16`, `0` for one alone.
 * @param {{low: number, width: number}} place
 * @returns {string}
 */
export function bitsOf(place) {
  return place.width > 1 ? `${place.low + place.width - 1}:${place.low}` : String(place.low);
}
