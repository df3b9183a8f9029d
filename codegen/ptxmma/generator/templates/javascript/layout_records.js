/** The layouts of the database with what follows from their maps. */

import { database } from "./database.js";
import { inverseMap, parsedMap } from "./bit_maps.js";
import { recordsOf } from "./short_texts.js";

/** @typedef {import("./index.d.ts").Layout} Layout */

/** @type {Map<string, Layout>} */
const layoutRecords = new Map();

const layoutFormulas = recordsOf(database.formulas);

/** The names of all layouts, in the order of the database. */
export const layoutNames = Object.keys(database.layouts);

/**
 * A layout by its name.
 * @param {string} name
 * @returns {Layout}
 */
export function layout(name) {
  let record = layoutRecords.get(name);
  if (!record) {
    record = madeLayout(name);
    layoutRecords.set(name, record);
  }
  return record;
}

/**
 * @param {string} name
 * @returns {Layout}
 */
function madeLayout(name) {
  const [entry, mapping, extents, bits = 0, summed = "", growing = [], threads = database.scopes.warp, steps = {}] = database.layouts[name];
  const formula = layoutFormulas[entry];
  const sizes = database.axes[extents];
  const axes = Object.keys(sizes);
  const map = parsedMap(database.maps[mapping], axes);
  const apart = formula.apart ?? [];
  const fromAxes = axes.every((axis) => axis in map.inputs);
  const coordinates = axes.filter((axis) => !apart.includes(axis));
  const kind = formula.kind ?? "fragment";
  /** @type {Record<string, number>} */
  const zeros = {};
  for (const [axis, step] of Object.entries(steps)) zeros[axis] = Math.log2(step);
  return {
    name,
    kind,
    operands: formula.operands,
    axes: sizes,
    coordinates,
    apart,
    growing,
    summed,
    steps,
    zeros,
    threads,
    bits,
    map,
    fromAxes,
    toAxes: fromAxes ? inverseMap(map) : map,
    formula: { let: formula.let ?? {}, at: formula.at, text: formula.text ?? "" },
    observed: formula.observed ?? "",
    source: formula.source,
  };
}
