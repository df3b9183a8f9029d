/** Layouts of tensor memory as texts to copy: functions in C and Python, and tables. */

import { registerOf } from "./tensor_loads.js";

/** @typedef {import("./index.d.ts").Arrangement} Arrangement */
/** @typedef {import("./tensor_places.js").TensorPlaces} TensorPlaces */
/** @typedef {{name: string, parameters: string[], optional: string[], results: Record<string, string>}} TensorFunction */

/**
 * The place of something, and the content of a place.
 * @param {TensorPlaces} places
 * @returns {TensorFunction[]}
 */
function tensorFunctions({ layout, coordinates, apart, selections }) {
  const selected = Object.keys(selections);
  const read = (/** @type {Record<string, string>} */ results, /** @type {string[]} */ known) => [...new Set(Object.values(results).join(" ").match(/[a-z_]\w*/g))].filter((name) => !known.includes(name));
  const there = [...coordinates, ...apart];
  const back = Object.keys(layout.at);
  const results = Object.fromEntries(there.map((axis) => [axis, layout.back[axis]]));
  return [
    { name: layout.name, parameters: [...coordinates, ...read(layout.at, [...there, ...selected]), ...apart, ...selected], optional: [...apart, ...selected], results: layout.at },
    { name: `${layout.name}_inverse`, parameters: [...back, ...read(results, [...back, ...selected]), ...selected], optional: selected, results },
  ];
}

/**
 * The functions of a layout in C, or CUDA C++: one for each result, counted from the operand's address.
 * @param {TensorPlaces} places
 * @returns {string}
 */
export function cTensorFunctions(places) {
  const [there, back] = tensorFunctions(places);
  const texts = [there, back].flatMap(({ parameters, results }) =>
    Object.entries(results).map(([name, formula]) => {
      const typed = parameters.map((parameter) => `uint32_t ${parameter}`).join(", ");
      return `static inline uint32_t ${there.name}_${name}(${typed}) {\n  return ${formula.replaceAll("//", "/")};\n}\n`;
    }),
  );
  return texts.join("\n");
}

/**
 * The functions of a layout in Python: they take integers and arrays, and count from the operand's address.
 * @param {TensorPlaces} places
 * @returns {string}
 */
export function pythonTensorFunctions(places) {
  const texts = tensorFunctions(places).map(({ name, parameters, optional, results }) => {
    const given = parameters.map((parameter) => (optional.includes(parameter) ? `${parameter}=0` : parameter)).join(", ");
    return `def ${name}(${given}):\n    return ${Object.values(results).join(", ")}\n`;
  });
  return texts.join("\n\n");
}

/**
 * Every element with its place in tensor memory, and with its register where there is a load.
 * @param {TensorPlaces} places
 * @param {Record<string, number>} selected
 * @param {{lane: number, column: number}} base
 * @param {Arrangement} [load]
 * @returns {string}
 */
export function tensorCsv(places, selected, base, load) {
  /** @type {Record<string, number>[]} */
  let points = [{}];
  for (const axis of [...places.coordinates, ...places.apart]) points = points.flatMap((point) => Array.from({ length: places.sizes[axis] }, (_, value) => ({ ...point, [axis]: value })));
  const rows = points.map((point) => {
    const place = places.locate({ ...point, ...selected });
    const { warp, lane, register, bit, address } = load ? registerOf(load, places, place, base) : { warp: 0, lane: 0, register: 0, bit: 0, address: 0 };
    return [...Object.values(point), place.cta, base.lane + place.lane, base.column + place.column, place.bit, ...(load ? [warp, lane, register, bit, address] : [])].join(",");
  });
  const head = [...Object.keys(points[0]), "cta", "lane", "column", "bit", ...(load ? ["warp", "thread", "register", "register_bit", "taddr"] : [])];
  return `${[head.join(","), ...rows].join("\n")}\n`;
}
