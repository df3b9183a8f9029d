/** Everything that people copy: code, notations, pictures, tables. */

import { arrangements } from "../arrangements.js";
import { toCute, toTriton } from "../interop.js";
import { cFunctions, csvText, inlineAssembly, ptxText, pythonFunctions, wrapperCall } from "../source_texts.js";
import { choice, copyButton, fill, h, saved, segments } from "./dom.js";
import { byName, oneOf } from "./legal.js";
import { titleOf } from "./scene.js";
import { chosenOf } from "./state.js";
import { View } from "./view.js";

/** @typedef {import("../index.d.ts").Arrangement} Arrangement */
/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("../index.d.ts").OperandForm} OperandForm */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Store} Store */

/** @type {[string, string][]} */
const OF_INSTRUCTIONS = [["ptx", "PTX"], ["asm", "Inline asm"], ["cpp", "C++ wrapper"]];
/** @type {[string, string][]} */
const OF_OPERANDS = [["c", "C functions"], ["python", "Python functions"], ["cute", "CuTe layout"], ["triton", "Triton bases"], ["csv", "CSV"], ["svg", "SVG"], ["png", "PNG"]];

export class CopyView extends View {
  /**
   * @param {Store} store
   * @param {() => import("./board.js").Board} board of the matrices
   */
  constructor(store, board) {
    super(store);
    this.board = board;
    this.code = h("pre", { class: "copied", tabIndex: 0, "aria-label": "Text to copy" });
    this.picture = h("div", { class: "picture" });
    this.element = h("section", { class: "view copy" }, this.tools, this.code, this.picture);
  }

  /**
   * @param {Instruction} instruction
   * @param {State} state
   */
  update(instruction, state) {
    const tables = arrangements(instruction);
    const table = tables.get(state.operand) ?? [...tables.values()][0];
    const formats = table ? [...OF_INSTRUCTIONS, ...OF_OPERANDS] : OF_INSTRUCTIONS;
    this.legal = { as: oneOf(formats.map(([key]) => key)), operand: oneOf([...tables.keys()]), choose: byName(table?.legal ?? {}) };
    const format = formats.some(([key]) => key === state.as) ? state.as : "ptx";
    const ofOperand = OF_OPERANDS.some(([key]) => key === format);
    const text = table && ofOperand ? operandText(format, table, chosenOf(state.choose)) : instruction.forms.map((form) => instructionText(format, instruction, form)).join("\n\n");
    const drawn = format === "svg" || format === "png";
    const svg = table && drawn ? this.board().svg(`${titleOf(table.name)} of ${instruction.canonical}`, (each) => each.id === table.name || each.id.startsWith(`${table.name}/`)) : "";
    const name = `${instruction.identifier}${table && ofOperand ? `_${table.name}` : ""}`;
    const endings = /** @type {Record<string, string>} */ ({ ptx: "ptx", asm: "cuh", cpp: "cu", c: "h", python: "py", cute: "txt", triton: "json", csv: "csv" });
    fill(
      this.tools,
      segments("Copy as", formats, format, (as) => this.store.set({ as })),
      table && ofOperand && choice("Operand", [...tables.keys()].map((value) => ({ value, text: titleOf(value) })), table.name, (operand) => this.store.set({ operand })),
      h("div", { class: "field" }, h("span", {}, "\u00a0"), h("div", { class: "row" }, [
        format !== "png" && copyButton("Copy", () => svg || text),
        format === "svg" && h("button", { onclick: () => saved(`${name}.svg`, new Blob([svg], { type: "image/svg+xml" })) }, "Download"),
        format === "png" && h("button", { onclick: () => savedPicture(svg, name) }, "Download"),
        !drawn && h("button", { onclick: () => saved(`${name}.${endings[format]}`, new Blob([text], { type: "text/plain" })) }, "Download"),
      ])),
    );
    this.code.hidden = drawn;
    this.picture.hidden = !drawn;
    fill(this.code, text);
    this.picture.innerHTML = svg;
  }
}

/**
 * @param {string} format
 * @param {Instruction} instruction
 * @param {OperandForm} form
 */
function instructionText(format, instruction, form) {
  const make = { ptx: ptxText, asm: inlineAssembly, cpp: wrapperCall }[format] ?? ptxText;
  return make(instruction, form);
}

/**
 * @param {string} format
 * @param {Arrangement} table
 * @param {Record<string, number>} chosen
 * @returns {string}
 */
function operandText(format, table, chosen) {
  const { layout, operand } = table;
  if (format === "c") return cFunctions(layout);
  if (format === "python") return pythonFunctions(layout);
  if (format === "cute") return toCute(operand) ?? "Addresses have no layout of elements.";
  if (format === "triton") {
    const bases = toTriton(operand);
    if (!bases) return layout.kind === "address" ? "Addresses have no layout of elements." : `${operand.sizes.col} columns are no power of two: linear layouts have no other sizes.`;
    const lines = Object.entries(bases).map(([name, rows]) => `  "${name}": ${JSON.stringify(rows).replaceAll(",", ", ")}`);
    return `{\n${lines.join(",\n")}\n}`;
  }
  return csvText(table, chosen);
}

/**
 * Saves an SVG as a PNG, twice as large.
 * @param {string} svg
 * @param {string} name
 */
async function savedPicture(svg, name) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const scale = Math.min(2, 8192 / image.width);
  const canvas = h("canvas", { width: image.width * scale, height: image.height * scale });
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => blob && saved(`${name}.png`, blob));
}
