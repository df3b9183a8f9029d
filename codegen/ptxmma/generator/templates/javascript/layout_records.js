/** The layouts of the database with what follows from their maps. */

import { database } from "./database.js";
import { inverseMap, parsedMap } from "./bit_maps.js";

/** @typedef {import("./index.d.ts").Layout} Layout */

/** @type {Map<string, Layout>} */
const layoutRecords = new Map();

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
  const entry = database.layouts[name];
  const formula = database.formulas[entry.formula];
  const map = parsedMap(database.maps[entry.map]);
  const axes = Object.keys(entry.axes);
  const apart = formula.apart ?? [];
  const fromAxes = axes.every((axis) => axis in map.inputs);
  const coordinates = axes.filter((axis) => !apart.includes(axis));
  const kind = formula.kind ?? "fragment";
  /** @type {Record<string, number>} */
  const zeros = {};
  for (const [axis, step] of Object.entries(entry.steps ?? {})) zeros[axis] = Math.log2(step);
  return {
    name,
    kind,
    operands: formula.operands,
    axes: entry.axes,
    coordinates,
    apart,
    growing: entry.growing ?? [],
    summed: entry.summed ?? "",
    steps: entry.steps ?? {},
    zeros,
    threads: entry.threads ?? database.scopes.warp,
    bits: entry.bits ?? 0,
    map,
    fromAxes,
    toAxes: fromAxes ? inverseMap(map) : map,
    formula: { let: formula.let ?? {}, at: formula.at, text: formula.text ?? "" },
    observed: formula.observed ?? "",
    source: formula.source,
  };
}
