/** The matrices of an instruction as they multiply: A on the left, B on top, D in the middle; metadata and scale factors beside them. */

import { arrangements, within } from "../arrangements.js";
import { database } from "../database.js";

/** @typedef {import("../index.d.ts").Arrangement} Arrangement */
/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("../index.d.ts").Place} Place */
/** @typedef {{panel: string, row: number, col: number} | {lane: number}} Focus */

/** Threads of a warp. */
export const WARP = database.scopes.warp;

/**
 * A matrix in the picture.
 * @typedef {object} Panel
 * @property {string} id `a`, `metadata`, `r/2`
 * @property {string} name of the matrix
 * @property {string} title
 * @property {string} side left, top, middle, or empty where nothing is multiplied
 * @property {Arrangement | null} table null for a matrix in shared memory
 * @property {Record<string, number>} chosen
 * @property {number} rows
 * @property {number} cols
 * @property {number} down place among the panels, from the top
 * @property {number} across place among the panels, from the left
 * @property {Place[]} places row by row; none for a matrix in shared memory
 */

/**
 * @typedef {object} Scene
 * @property {Instruction} instruction
 * @property {Panel[]} panels
 * @property {Record<string, number[]>} choices what must be chosen, with the values
 * @property {string[]} accumulators the matrices that share the place in the middle
 */

/**
 * The panels of an instruction.
 * @param {Instruction} instruction
 * @param {Record<string, number>} chosen
 * @param {string} middle the accumulator to draw; the result where it is empty
 * @returns {Scene}
 */
export function sceneOf(instruction, chosen, middle) {
  const tables = arrangements(instruction);
  return Object.keys(instruction.places).length ? productScene(instruction, tables, chosen, middle) : moveScene(instruction, tables, chosen);
}

/**
 * @param {Instruction} instruction
 * @param {Map<string, Arrangement>} tables
 * @param {Record<string, number>} chosen
 * @param {string} middle
 * @returns {Scene}
 */
function productScene(instruction, tables, chosen, middle) {
  const { places } = instruction;
  const accumulators = Object.keys(places).filter((name) => places[name] === "middle" && tables.has(name));
  const shown = accumulators.includes(middle) ? middle : accumulators[0];
  const result = /** @type {Arrangement} */ (tables.get(shown));
  const left = Object.keys(places).find((name) => places[name] === "left") ?? "";
  const depth = (tables.get(left)?.cols ?? 0) * ratioOf(instruction);
  /** @type {Panel[]} */
  const panels = [];
  for (const [name, side] of Object.entries(places)) {
    if (side === "middle" && name !== shown) continue;
    const table = tables.get(name) ?? null;
    const rows = table?.rows ?? (side === "top" ? depth : result.rows);
    const cols = table?.cols ?? (side === "top" ? result.cols : depth / ratioOf(instruction));
    const alike = accumulators.filter((other) => alikeAs(tables, other, name));
    const title = side === "middle" && alike.includes(name) ? alike.map(upper).join(", ") : upper(name);
    panels.push(madePanel({ id: name, name, title, side, table, rows, cols, chosen, down: side === "top" ? 1 : 2, across: side === "left" ? 2 : 3 }));
  }
  for (const [name, table] of tables) {
    if (panels.some((panel) => panel.name === name) || accumulators.includes(name)) continue;
    const side = places[table.operand.of] ?? "left";
    const beside = table.layout.kind === "metadata" ? 1 : 0;
    const place = side === "top" ? { down: 0, across: 3 } : { down: 2, across: beside };
    panels.push(madePanel({ id: name, name, title: titleOf(name), side, table, rows: table.rows, cols: table.cols, chosen, ...place }));
  }
  const distinct = accumulators.filter((name) => name === shown || !alikeAs(tables, name, shown));
  return { instruction, panels, choices: choicesIn(panels), accumulators: distinct };
}

/**
 * Return whether two matrices lie alike and have one type.
 * @param {Map<string, Arrangement>} tables
 * @param {string} one
 * @param {string} other
 */
function alikeAs(tables, one, other) {
  return tables.get(one)?.layout === tables.get(other)?.layout && tables.get(one)?.operand.type === tables.get(other)?.operand.type;
}

/**
 * Loads, stores and transpositions: the matrices beside each other, and who gives which address.
 * @param {Instruction} instruction
 * @param {Map<string, Arrangement>} tables
 * @param {Record<string, number>} chosen
 * @returns {Scene}
 */
function moveScene(instruction, tables, chosen) {
  /** @type {Panel[]} */
  const panels = [];
  let down = 0;
  for (const [name, table] of tables) {
    const several = table.layout.coordinates.filter((axis) => axis in table.legal);
    const numbers = several.length ? table.legal[several[0]] : [0];
    numbers.forEach((number, across) => {
      const fixed = several.length ? { ...chosen, [several[0]]: number } : chosen;
      const title = several.length && numbers.length > 1 ? `${titleOf(name)}, ${several[0]} ${number}` : titleOf(name);
      panels.push(madePanel({ id: several.length ? `${name}/${number}` : name, name, title, side: "", table, rows: table.rows, cols: table.cols, chosen: fixed, down, across }));
    });
    down += 1;
  }
  return { instruction, panels, choices: choicesIn(panels), accumulators: [] };
}

/**
 * @param {Omit<Panel, "places">} about
 * @returns {Panel}
 */
function madePanel(about) {
  /** @type {Place[]} */
  const places = [];
  if (about.table) for (let row = 0; row < about.rows; row += 1) for (let col = 0; col < about.cols; col += 1) places.push(about.table.locate(row, col, about.chosen));
  return { ...about, places };
}

/**
 * The choices of a reader: copies, products, selectors and ids; several matrices are all drawn.
 * @param {Panel[]} panels
 * @returns {Record<string, number[]>}
 */
function choicesIn(panels) {
  /** @type {Record<string, number[]>} */
  const choices = {};
  for (const { table, id } of panels) {
    for (const [axis, values] of Object.entries(table?.legal ?? {})) if (values.length > 1 && !(id.includes("/") && table?.layout.coordinates.includes(axis))) choices[axis] = values;
  }
  return choices;
}

/**
 * Columns of the full A for each of the packed one.
 * @param {Instruction} instruction
 * @returns {number}
 */
function ratioOf(instruction) {
  return instruction.pattern ? instruction.pattern.chunk / instruction.pattern.kept : 1;
}

/**
 * The selection that a text of the URL names: `a:9,3`, `e:3,1` for metadata, `lane:5`.
 *
 * Throws a RangeError for what the instruction does not have.
 * @param {Scene} scene
 * @param {string} text
 * @returns {Focus | null} null where the text is empty
 */
export function focusOf(scene, text) {
  if (!text) return null;
  const [id, place = ""] = text.toLowerCase().split(":");
  const [row, col] = place.split(",").map((number) => (/^\d+$/.test(number) ? Number(number) : NaN));
  if (id === "lane") {
    within({ lane: row }, { lane: threadsOf(scene) });
    return { lane: row };
  }
  const panel = scene.panels.find(({ id: own, table }) => own === id || table?.operand.name === id);
  if (!panel) throw new RangeError(`${scene.instruction.name} has no matrix ${id}: there are ${scene.panels.map((each) => each.id).join(", ")}`);
  if (col === undefined) throw new RangeError(`write ${id}:ROW,COL`);
  within({ row, col }, { row: panel.rows, col: panel.cols });
  return { panel: panel.id, row, col };
}

/** @param {Scene} scene */
export function threadsOf(scene) {
  return Math.max(WARP, ...scene.panels.map(({ table }) => table?.threads ?? 0));
}

/** @param {string} name */
function upper(name) {
  return name.length === 1 ? name.toUpperCase() : name;
}

/** @param {string} name */
export function titleOf(name) {
  return name.replace(/^scale-(\w)$/, (_, matrix) => `Scale ${matrix.toUpperCase()}`).replace(/^metadata$/, "Metadata").replace(/^copy$/, "Copy").replace(/^p$/, "Addresses p").replace(/^([a-d])$/, (letter) => letter.toUpperCase());
}

/**
 * The strength with which a cell is lit: 2 where the reader points, 1 where it is related, 0 elsewhere.
 * @param {Scene} scene
 * @param {Focus} focus
 * @returns {(panel: Panel, row: number, col: number) => number}
 */
export function lightsOf(scene, focus) {
  if ("lane" in focus) return (panel, row, col) => (panel.places[row * panel.cols + col]?.lane === focus.lane ? 2 : 0);
  const pointed = scene.panels.find((panel) => panel.id === focus.panel);
  if (!pointed) return () => 0;
  const spans = pointed.side ? productSpans(scene, pointed, focus.row, focus.col) : null;
  return (panel, row, col) => {
    if (panel === pointed) return row === focus.row && col === focus.col ? 2 : 0;
    if (!spans) return Number(movedTogether(pointed, focus, panel, row, col));
    const span = spans(panel);
    return Number(inside(span.rows, row) && inside(span.cols, col));
  };
}

/** @typedef {[first: number, last: number] | null} Span null: none of them */

/**
 * @param {Span} span
 * @param {number} place
 */
function inside(span, place) {
  return span !== null && place >= span[0] && place <= span[1];
}

/**
 * The parts that belong to an element of a product, as a row of D, a column of D and a part of the depth.
 * @param {Scene} scene
 * @param {Panel} pointed
 * @param {number} row
 * @param {number} col
 * @returns {(panel: Panel) => {rows: Span, cols: Span}}
 */
function productSpans(scene, pointed, row, col) {
  const { pattern } = scene.instruction;
  const result = scene.panels.find((panel) => panel.side === "middle");
  const depth = scene.panels.find((panel) => panel.side === "top" && !isScale(panel))?.rows ?? 0;
  const [chunk, kept] = pattern ? [pattern.chunk, pattern.kept] : [1, 1];
  /** @type {[number, number]} */
  const all = [0, Math.max(depth, result?.cols ?? 0, result?.rows ?? 0)];
  /** @type {(panel: Panel, place: number) => [number, number]} the depth that a place along k of a panel stands for */
  const depthOf = (panel, place) => {
    const size = isScale(panel) ? depth / (panel.side === "top" ? panel.rows : panel.cols) : panel.table?.layout.kind === "metadata" ? chunk : panel.side === "left" ? chunk : 1;
    const first = panel.side === "left" && !isScale(panel) && panel.table?.layout.kind !== "metadata" ? Math.floor(place / kept) * chunk : place * size;
    return [first, first + size - 1];
  };
  const rows = pointed.side === "top" ? all : /** @type {[number, number]} */ ([row, row]);
  const cols = pointed.side === "left" ? all : /** @type {[number, number]} */ ([col, col]);
  const along = pointed.side === "left" ? depthOf(pointed, col) : pointed.side === "top" ? depthOf(pointed, row) : all;
  return (panel) => {
    const overlapping = (/** @type {number} */ count) => {
      const hit = Array.from({ length: count }, (_, place) => place).filter((place) => {
        const [first, last] = depthOf(panel, place);
        return first <= along[1] && last >= along[0];
      });
      return /** @type {Span} */ (hit.length ? [hit[0], hit[hit.length - 1]] : null);
    };
    if (panel.side === "middle") return { rows, cols };
    return panel.side === "left" ? { rows, cols: overlapping(panel.cols) } : { rows: overlapping(panel.rows), cols };
  };
}

/** @param {Panel} panel */
function isScale(panel) {
  return panel.table?.layout.kind === "scale";
}

/**
 * Return whether an address and an element belong together: the row of a matrix that begins at the address.
 * @param {Panel} pointed
 * @param {{row: number, col: number}} at
 * @param {Panel} panel
 * @param {number} row
 * @param {number} col
 */
function movedTogether(pointed, at, panel, row, col) {
  const matrix = (/** @type {Panel} */ each) => Object.entries(each.chosen).find(([axis]) => each.table?.layout.coordinates.includes(axis))?.[1] ?? 0;
  const addresses = (/** @type {Panel} */ each) => each.table?.layout.kind === "address";
  if (addresses(panel) && !addresses(pointed)) return row === matrix(pointed) && col === at.row;
  if (addresses(pointed) && !addresses(panel)) return matrix(panel) === at.row && row === at.col;
  return false;
}
