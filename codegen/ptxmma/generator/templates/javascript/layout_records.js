/** The layouts of the database with what follows from their maps. */

import { database } from "./database.js";
import { inverseMap, parsedMap } from "./bit_maps.js";
import { recordsByColumn, continuedWords } from "./short_texts.js";

/** @typedef {import("./index.d.ts").Layout} Layout */

/** @type {Map<string, Layout>} */
const layoutRecords = new Map();

const layoutFormulas = recordsByColumn(database.formulas);
const { names, ...columns } = database.layouts;
const layoutColumns = recordsByColumn(columns);

/** The names of all layouts, in the order of the database. */
export const layoutNames = continuedWords(names);

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
  const { bits, threads, summed = "", growing = [], steps = {}, ...numbers } = layoutColumns[layoutNames.indexOf(name)];
  const formula = layoutFormulas[numbers.formula];
  const sizes = database.axes[numbers.axes];
  const axes = Object.keys(sizes);
  const map = parsedMap(database.maps[numbers.map], axes);
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
