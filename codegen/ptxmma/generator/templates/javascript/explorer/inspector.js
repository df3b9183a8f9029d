/** The page's answer about an element, or a thread. */

import { bitsOf } from "../arrangements.js";
import { gathered, inverseMap } from "../bit_maps.js";
import { shortName } from "../source_texts.js";
import { cited } from "./citations.js";
import { h } from "./dom.js";
import { titleOf, WARP } from "./scene.js";

/** @typedef {import("../index.d.ts").Arrangement} Arrangement */
/** @typedef {import("../index.d.ts").Layout} Layout */
/** @typedef {import("../index.d.ts").Place} Place */
/** @typedef {import("./scene.js").Panel} Panel */
/** @typedef {import("./scene.js").Scene} Scene */

/**
 * The element of a panel: `A[9][3]`.
 * @param {Panel} panel
 * @param {number} row
 * @param {number} col
 */
function elementName(panel, row, col) {
  return `${titleOf(panel.name)}[${row}][${col}]`;
}

/**
 * The register and its bits: `a1[31:16]`; an operand of one register has no number.
 * @param {Arrangement} table
 * @param {Place} place
 */
function registerName(table, place) {
  const name = table.layout.kind === "fragment" ? `${table.name}${place.register}` : table.operand.name;
  return `${name}[${bitsOf(place)}]`;
}

/**
 * One sentence about an element, for screen readers.
 * @param {Panel} panel
 * @param {number} row
 * @param {number} col
 */
export function elementSentence(panel, row, col) {
  const place = panel.places[row * panel.cols + col];
  if (!panel.table || !place) return `${elementName(panel, row, col)}: in shared memory`;
  if (panel.table.layout.kind === "address") return `lane ${place.lane} gives the address of ${panel.table.axes.filter(Boolean).map((axis, side) => `${axis} ${side ? col : row}`).join(", ")}`;
  return `${elementName(panel, row, col)}: lane ${place.lane}, register ${registerName(panel.table, place)}, element ${place.element}`;
}

/**
 * An instruction in few words: its name, its shape and the type of A.
 * @param {import("../index.d.ts").Instruction} instruction
 */
export function briefName({ canonical, name, qualifiers, group: { entry } }) {
  const words = [entry.shape, entry.typed].map((qualifier) => qualifiers[qualifier]).filter(Boolean);
  return words.length ? [name, ...words].join(" ") : canonical;
}

/**
 * The answer about an element in few words, for the title of the page.
 * @param {Scene} scene
 * @param {Panel} panel
 * @param {number} row
 * @param {number} col
 */
export function elementAnswer({ instruction }, panel, row, col) {
  const { table } = panel;
  const place = panel.places[row * panel.cols + col];
  if (table?.layout.kind === "address") return elementSentence(panel, row, col);
  const where = !table || !place ? "in shared memory" : `lane ${place.lane}, ${table.layout.kind === "fragment" ? shortName(place, table) : registerName(table, place)}`;
  return `${elementName(panel, row, col)} of ${briefName(instruction)}: ${where}`;
}

/**
 * All that is known of an element.
 * @param {Scene} scene
 * @param {Panel} panel
 * @param {number} row
 * @param {number} col
 * @param {{lane: (lane: number) => void, memory: () => void}} follow
 * @returns {HTMLElement}
 */
export function elementDetails(scene, panel, row, col, follow) {
  const { table } = panel;
  const place = panel.places[row * panel.cols + col];
  if (!table || !place) {
    return h(
      "div",
      {},
      h("h2", {}, elementName(panel, row, col)),
      h("p", {}, "Lies in shared memory: a descriptor says where."),
      h("button", { onclick: follow.memory }, "Show shared memory"),
    );
  }
  const { layout, operand } = table;
  const counted = { fragment: "Element", metadata: "Field", scale: "Byte", address: "" }[layout.kind] ?? "Element";
  const warp = layout.threads > WARP ? ` · warp ${Math.floor(place.lane / WARP)}, lane ${place.lane % WARP} in it` : "";
  const facts = [
    fact("Lane", h("button", { class: "link", title: "All that this thread holds", onclick: () => follow.lane(place.lane) }, String(place.lane)), warp),
    layout.kind === "address" ? fact("Gives", `the address of ${addressed(table, row, col)}`) : fact("Register", h("code", {}, registerName(table, place)), ` · ${operand.register}`),
    counted && fact(counted, `${place.element}`, operand.type ? ` · ${operand.type}` : ""),
    ...chosenFacts(panel),
    ...sparseFacts(scene, panel, row, col),
  ];
  return h(
    "div",
    {},
    h("h2", {}, layout.kind === "address" ? `Address p of lane ${place.lane}` : elementName(panel, row, col)),
    layout.observed && observedNote(layout),
    h("dl", {}, facts.flat()),
    formulas(layout, table, panel, place, row, col),
  );
}

/**
 * @param {string} term
 * @param {...(Node | string)} texts
 * @returns {HTMLElement[]}
 */
export function fact(term, ...texts) {
  return [h("dt", {}, term), h("dd", {}, ...texts)];
}

/**
 * @param {Arrangement} table
 * @param {number} row
 * @param {number} col
 */
function addressed(table, row, col) {
  const parts = table.axes.map((axis, side) => [axis, side ? col : row]).filter(([axis]) => axis);
  return `${parts.reverse().map(([axis, number]) => `${axis} ${number}`).join(" of ")} (${table.operand.rowBytes} bytes, a multiple of ${table.operand.alignment})`;
}

/** @param {Panel} panel */
function chosenFacts(panel) {
  const axes = Object.entries(panel.table?.legal ?? {}).filter(([, values]) => values.length > 1);
  return axes.map(([axis, values]) => fact(axis.replace("_", " "), String(panel.chosen[axis] ?? values[0])));
}

/**
 * The origin of an element of a packed matrix, and the metadata that says so.
 * @param {Scene} scene
 * @param {Panel} panel
 * @param {number} row
 * @param {number} col
 */
function sparseFacts(scene, panel, row, col) {
  const { pattern } = scene.instruction;
  if (!pattern || !panel.table) return [];
  const metadata = scene.panels.find((each) => each.table?.layout.kind === "metadata");
  const chunk = panel.table.layout.kind === "metadata" ? col : panel.table.operand.sparse ? Math.floor(col / pattern.kept) : -1;
  if (chunk < 0) return [];
  const first = chunk * pattern.chunk;
  const from = fact("Columns", `${first}–${first + pattern.chunk - 1} of the full matrix: ${pattern.name}`);
  if (panel === metadata || !metadata?.table) return [from];
  const field = metadata.places[row * metadata.cols + chunk];
  return [from, fact("Metadata", `lane ${field.lane}, `, h("code", {}, registerName(metadata.table, field)))];
}

/** @param {Layout} layout */
export function observedNote(layout) {
  return h("p", { class: "observed" }, `Observed on ${layout.observed}. The manual leaves this layout open.`);
}

/**
 * The formulas both ways with their values, and the formula as the manual has it.
 * @param {Layout} layout
 * @param {Arrangement} table
 * @param {Panel} panel
 * @param {Place} place
 * @param {number} row
 * @param {number} col
 */
function formulas(layout, table, panel, place, row, col) {
  const back = inverseMap(layout.map);
  /** @type {Record<string, number>} */
  const values = { lane: place.lane, [table.axes[0]]: row, [table.axes[1]]: col, ...Object.fromEntries(Object.entries(table.legal).map(([axis, legal]) => [axis, panel.chosen[axis] ?? legal[0]])) };
  if (table.counter) values[table.counter] = place.element * (layout.steps[table.counter] ?? 1);
  const lines = [layout.map, back].flatMap((map) => Object.keys(map.outputs).map((output) => [output, gathered(map, output, layout.zeros)]));
  const plain = Object.entries(layout.formula.at).flatMap(([axis, cases]) => cases.map((each) => `${axis} = ${each}`));
  const helpers = Object.entries(layout.formula.let).map(([name, text]) => `${name} = ${text}`);
  return formulaBox(layout, { Formula: [...helpers, ...plain], "As bits": lines.map(([output, text]) => `${output} = ${text}${output in values ? ` = ${values[output]}` : ""}`) });
}

/**
 * Formulas under their headings, and the source of their layout.
 * @param {{name: string, source: string}} layout
 * @param {Record<string, string[]>} parts
 */
export function formulaBox({ name, source }, parts) {
  const texts = Object.entries(parts).flatMap(([title, lines]) => [h("h3", {}, title), h("pre", {}, lines.join("\n"))]);
  return h("div", { class: "formulas" }, texts, h("p", { class: "source" }, `${name} · ${cited(source)}`));
}

/**
 * Everything that a thread holds.
 * @param {Scene} scene
 * @param {number} lane
 * @param {(panel: Panel, row: number, col: number) => void} follow
 * @returns {HTMLElement}
 */
export function laneDetails(scene, lane, follow) {
  const parts = scene.panels.filter((panel) => panel.table && panel.places.length).map((panel) => lanePart(panel, lane, follow));
  return h("div", {}, h("h2", {}, `Lane ${lane}`), lane >= WARP && h("p", {}, `Warp ${Math.floor(lane / WARP)}, lane ${lane % WARP} in it.`), parts);
}

/**
 * @param {Panel} panel
 * @param {number} lane
 * @param {(panel: Panel, row: number, col: number) => void} follow
 */
function lanePart(panel, lane, follow) {
  const table = /** @type {Arrangement} */ (panel.table);
  /** @type {Map<number, [Place, number, number][]>} */
  const registers = new Map();
  panel.places.forEach((place, index) => {
    if (place.lane !== lane) return;
    const elements = registers.get(place.register) ?? [];
    elements.push([place, Math.floor(index / panel.cols), index % panel.cols]);
    registers.set(place.register, elements);
  });
  const rows = [...registers].sort(([one], [other]) => one - other).map(([register, elements]) => {
    elements.sort(([one], [other]) => one.low - other.low);
    const buttons = elements.map(([place, row, col]) => h("button", { class: "link", title: `bits ${bitsOf(place)}`, onclick: () => follow(panel, row, col) }, `[${row}][${col}]`));
    const name = table.layout.kind === "fragment" ? `${table.name}${register}` : table.operand.name;
    return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, buttons));
  });
  return h("section", {}, h("h3", {}, panel.title), rows.length ? h("table", { class: "register-contents" }, h("tbody", {}, rows)) : h("p", {}, "Nothing."));
}
