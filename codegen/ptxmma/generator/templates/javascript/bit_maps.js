/** Permutations of bits: the layouts, as data.  The same code as `ptxmma.model.bitmap` and `ptxmma.catalog.expressions`. */

import { placesOf } from "./short_texts.js";

/** @typedef {import("./index.d.ts").BitMap} BitMap */
/** @typedef {{name: string, source: number, width: number, target: number}} Run */

/**
 * A map of the database: `{"lane": "col:1+2", "->": "row col"}`.  Without a list of its outputs, it leads from a lane to the axes, or to
 * what it mentions.
 * @param {Record<string, string>} texts
 * @param {string[]} axes
 * @returns {BitMap}
 */
export function parsedMap(texts, axes) {
  /** @type {BitMap} */
  const map = { inputs: {}, outputs: {}, bits: {} };
  const outputs = texts["->"]?.split(" ") ?? ("lane" in texts ? axes : []);
  for (const output of outputs) map.outputs[output] = 0;
  for (const [input, text] of Object.entries(texts)) {
    if (input === "->") continue;
    const places = placesOf(text);
    map.bits[input] = places;
    map.inputs[input] = places.length;
    for (const [output] of places) map.outputs[output] = (map.outputs[output] ?? 0) + 1;
  }
  return map;
}

/**
 * The map from outputs back to inputs.
 * @param {BitMap} map
 * @returns {BitMap}
 */
export function inverseMap(map) {
  /** @type {BitMap["bits"]} */
  const bits = {};
  for (const output of Object.keys(map.outputs)) bits[output] = [];
  for (const [input, places] of Object.entries(map.bits)) {
    places.forEach(([output, position], bit) => {
      bits[output][position] = [input, bit];
    });
  }
  return { inputs: { ...map.outputs }, outputs: { ...map.inputs }, bits };
}

/**
 * The outputs for the given inputs.
 * @param {BitMap} map
 * @param {Record<string, number>} values
 * @returns {Record<string, number>}
 */
export function applyMap(map, values) {
  /** @type {Record<string, number>} */
  const results = {};
  for (const output of Object.keys(map.outputs)) results[output] = 0;
  for (const [input, places] of Object.entries(map.bits)) {
    places.forEach(([output, position], bit) => {
      results[output] |= ((values[input] >> bit) & 1) << position;
    });
  }
  return results;
}

/**
 * The bits of one output grouped into runs of consecutive bits of one input, lowest first.
 * @param {BitMap} map
 * @param {string} output
 * @returns {Run[]}
 */
export function runsOf(map, output) {
  /** @type {Run[]} */
  const runs = [];
  let target = 0;
  for (const [name, bit] of inverseMap(map).bits[output]) {
    const last = runs[runs.length - 1];
    if (last && last.name === name && last.source + last.width === bit) last.width += 1;
    else runs.push({ name, source: bit, width: 1, target });
    target += 1;
  }
  return runs;
}

/**
 * The expression of one output over the inputs, e.g. `(lane >> 2) | ((i & 2) << 2)`: C, Python and JavaScript alike.
 * @param {BitMap} map
 * @param {string} output
 * @param {Record<string, number>} zeros how many bits lie below a field that the map leaves out since they are always 0
 * @returns {string}
 */
export function gathered(map, output, zeros = {}) {
  const terms = runsOf(map, output).reverse().map((run) => {
    const below = zeros[run.name] ?? 0;
    const moved = { ...run, source: run.source + below, target: run.target + (zeros[output] ?? 0) };
    return gatheredTerm(moved, map.inputs[run.name] + below);
  });
  if (!terms.length) return "0";
  return terms.length === 1 ? terms[0] : terms.map((term) => (term.includes(" ") ? `(${term})` : term)).join(" | ");
}

/**
 * @param {Run} run
 * @param {number} width
 * @returns {string}
 */
function gatheredTerm(run, width) {
  const mask = 2 ** run.width - 1;
  const down = run.source - run.target;
  const above = run.source + run.width < width;
  const below = run.source > 0;
  if (down >= 0) {
    const moved = down ? `${run.name} >> ${down}` : run.name;
    // Bits below the run fall off the end only if the run lands at bit 0.
    if (!above && !(below && run.target > 0)) return moved;
    return `${down ? `(${moved})` : moved} & ${mask * 2 ** run.target}`;
  }
  return above || below ? `(${run.name} & ${mask * 2 ** run.source}) << ${-down}` : `${run.name} << ${-down}`;
}
