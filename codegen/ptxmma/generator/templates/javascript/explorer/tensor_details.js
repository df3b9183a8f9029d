/** The page's answer about a cell of tensor memory. */

import { h, worded } from "./dom.js";
import { fact, formulaBox } from "./inspector.js";
import { titleOf } from "./scene.js";

/** @typedef {import("./tensor_view.js").TensorCell} TensorCell */
/** @typedef {import("./tensor_view.js").TensorScene} TensorScene */

/**
 * @param {TensorScene} scene
 * @param {TensorCell} cell
 */
function nameOf({ places }, { point }) {
  return `${titleOf(places.name)}${places.coordinates.map((axis) => `[${point[axis]}]`).join("")}`;
}

/**
 * One sentence about a cell, for screen readers and titles.
 * @param {TensorScene} scene
 * @param {TensorCell} cell
 * @param {string} [of] the instruction
 */
export function cellSentence(scene, cell, of = "") {
  const { place, register } = cell;
  const where = `${nameOf(scene, cell)}${of}: lane ${scene.base.lane + place.lane}, column ${scene.base.column + place.column}, bit ${place.bit}`;
  return register ? `${where}; thread ${register.lane} of warp ${register.warp}, register ${register.register}` : where;
}

/**
 * All that is known of a cell.
 * @param {TensorScene} scene
 * @param {TensorCell} cell
 * @returns {HTMLElement}
 */
export function cellDetails(scene, cell) {
  const { places, base, load } = scene;
  const { memory } = places;
  const { place, point, register } = cell;
  const [lane, column] = [base.lane + place.lane, base.column + place.column];
  const address = lane * 2 ** memory.address.lane + column * 2 ** memory.address.column;
  const warp = Math.floor(lane / memory.partition);
  const lines = [
    places.ctas > 1 && fact("CTA", `${place.cta} of the pair`),
    fact("Lane", `${lane}`, ` · reached by warp ${warp} of a warpgroup`),
    fact("Column", `${column}`, base.column ? ` · ${place.column} from the operand's` : ""),
    fact("Bits", `${place.bit + places.width - 1}:${place.bit}`, places.type ? ` · ${places.type}` : ""),
    fact("Address", h("code", {}, hexOf(address))),
    ...places.apart.map((axis) => fact(worded(axis), `${point[axis]} of ${places.sizes[axis]}`)),
    ...(register && load
      ? [
          fact("Thread", `${register.lane} of warp ${register.warp}`),
          fact("Register", h("code", {}, `r${register.register}[${register.bit + places.width - 1}:${register.bit}]`)),
          fact("Load", h("code", {}, `${load.canonical} {r0, …}, [${hexOf(register.address)}]`)),
        ]
      : []),
  ];
  return h("div", {}, h("h2", {}, nameOf(scene, cell)), h("dl", {}, lines.flatMap((line) => line || [])), formulaPart(scene, { ...places.numbers, ...scene.selected, ...point, ...place }));
}

/**
 * The facts about the operand.
 * @param {TensorScene} scene
 * @returns {HTMLElement}
 */
export function operandDetails(scene) {
  const { places, base } = scene;
  const { memory } = places;
  const [first, last] = [base.column, base.column + places.columns - 1];
  const size = places.coordinates.map((axis) => `${places.sizes[axis]} ${axis}s`).join(" × ");
  return h(
    "div",
    {},
    h("h2", {}, `${titleOf(places.name)} in tensor memory`),
    h("p", {}, `${places.layout.title[0].toUpperCase()}${places.layout.title.slice(1)}.`),
    h("dl", {}, fact("Holds", `${size}${places.type ? ` of ${places.type}` : ""}`), fact("Columns", `${first === last ? first : `${first}–${last}`}`), fact("Address", h("code", {}, hexOf(base.lane * 2 ** memory.address.lane + base.column * 2 ** memory.address.column)))),
    h("p", { class: "hints" }, `Point at a cell, or tap it. A cell is one column of one lane and has ${memory.cell} bits; "3,1" is ${places.coordinates[0]} 3, ${places.coordinates[1]} 1. Choose a load to see which register of which thread takes each element.`),
    formulaPart(scene, {}),
  );
}

/**
 * The formulas both ways, with values where there are any.
 * @param {TensorScene} scene
 * @param {Record<string, number>} values
 */
function formulaPart({ places }, values) {
  const { layout } = places;
  const lines = (/** @type {Record<string, string>} */ formulas) => Object.entries(formulas).map(([name, text]) => `${name} = ${text}${name in values ? ` = ${values[name]}` : ""}`);
  const read = Object.entries(places.numbers).filter(([name]) => new RegExp(`\\b${name}\\b`).test(Object.values({ ...layout.at, ...layout.back }).join(" ")));
  return formulaBox(layout, { "Formula, counted from the operand's address": [...read.map(([name, value]) => `${name} = ${value}`), ...lines(layout.at)], "And back": lines(layout.back) });
}

/** @param {number} address */
function hexOf(address) {
  return `0x${address.toString(16).padStart(8, "0")}`;
}
