/** Source code and other texts that people copy, made of the names in the database. */

import { gathered, inverseMap } from "./bit_maps.js";
import { bitsOf } from "./arrangements.js";

/** @typedef {import("./index.d.ts").Arrangement} Arrangement */
/** @typedef {import("./index.d.ts").Instruction} Instruction */
/** @typedef {import("./index.d.ts").Layout} Layout */
/** @typedef {import("./index.d.ts").Operand} Operand */
/** @typedef {import("./index.d.ts").OperandForm} OperandForm */
/** @typedef {import("./index.d.ts").Place} Place */
/** @typedef {{name: string, parameters: string[], optional: string[], steps: [string, string][]}} IndexFunction */

/** Registers on a line of a long list. */
const LISTED = 16;

/**
 * The instruction with registers of its own: declarations, and the line itself.
 * @param {Instruction} instruction
 * @param {OperandForm} form
 * @returns {string}
 */
export function ptxText(instruction, form) {
  const declared = form.operands.filter((operand) => !asConstant(operand));
  const lines = declared.map((operand) => `.reg .${operand.register} %${operand.cpp.name}${isListed(operand) ? `<${operand.registers}>` : ""};`);
  const texts = form.operands.map((operand) => /** @type {const} */ ([operand.name, ptxOperand(operand)]));
  return [...lines, `${`${instruction.canonical} ${spelledOperands(form.syntax, new Map(texts))}`.trimEnd()};`].join("\n");
}

/**
 * @param {Operand} operand
 * @returns {string}
 */
function ptxOperand(operand) {
  if (asConstant(operand)) return String(constantOf(operand));
  if (!isListed(operand)) return `%${operand.cpp.name}`;
  const registers = Array.from({ length: operand.registers }, (_, number) => `%${operand.cpp.name}${number}`);
  return `{${registers.join(", ")}}`;
}

/**
 * An asm statement that does the same: inline assembly of CUDA C++.
 * @param {Instruction} instruction
 * @param {OperandForm} form
 * @returns {string}
 */
export function inlineAssembly(instruction, form) {
  /** @type {Map<string, string>} */
  const texts = new Map();
  /** @type {[string[], string[]]} */
  const lists = [[], []];
  let prologue = "";
  let epilogue = "";
  let first = 0;
  for (const reads of [0, 1]) {
    // asm numbers its outputs before its inputs.
    for (const operand of form.operands) {
      if (Number(operand.access === "read") !== reads) continue;
      if (asConstant(operand)) {
        texts.set(operand.name, String(constantOf(operand)));
        continue;
      }
      const { value = "", text = "{}", prologue: before = "", epilogue: after = "" } = operand.cpp;
      const count = isListed(operand) || operand.registers > 1 ? operand.registers : 1;
      const from = first;
      const numbers = Array.from({ length: count }, (_, place) => `%${from + place}`).join(", ");
      texts.set(operand.name, text.replace("{{{}}}", `{${numbers}}`).replace("{}", numbers));
      prologue += before.replace("{}", numbers);
      epilogue += after.replace("{}", numbers);
      for (let place = 0; place < count; place += 1) lists[reads].push(value.replace("#", String(place)));
      first += count;
    }
  }
  const line = `${instruction.canonical} ${spelledOperands(form.syntax, texts)}`.trimEnd();
  const body = prologue ? `{${prologue}${line};${epilogue}}` : `${line};`;
  const operands = [wrappedList(lists[0]), wrappedList(lists[1]), instruction.group.entry.memory ? '"memory"' : ""];
  while (operands.length && !operands[operands.length - 1]) operands.pop();
  const tail = operands.map((values) => (values ? `\n    : ${values}` : " :")).join("");
  return `asm volatile("${brokenLine(body)}"${tail});`;
}

/**
 * A call of the C++ wrapper, with its include and the registers that it takes.
 * @param {Instruction} instruction
 * @param {OperandForm} form
 * @returns {string}
 */
export function wrapperCall(instruction, form) {
  const parameters = form.operands.filter((operand) => operand.cpp.parameter);
  const declarations = parameters.map((operand) => `${declarationOf(operand)};`);
  const constants = form.operands.filter((operand) => operand.cpp.template);
  while (constants.length && constants[constants.length - 1].default !== null) constants.pop();
  const template = constants.length ? `<${constants.map((operand) => constantOf(operand)).join(", ")}>` : "";
  const call = `ptxmma::${instruction.identifier}${template}(${parameters.map((operand) => operand.cpp.name).join(", ")});`;
  return [`#include <ptxmma/${instruction.header}>`, "", ...declarations, call].join("\n");
}

/**
 * The parameter of a function as a variable: `float d[4]` for `float (&d)[#]`.
 * @param {Operand} operand
 * @returns {string}
 */
function declarationOf(operand) {
  const text = (operand.cpp.parameter ?? "").replace(/\(&(\w+)\)\[#\]/, `$1[${operand.registers}]`).replace("&", "");
  return text.endsWith("]") ? text.replace(/^const /, "") : text;
}

/**
 * Return whether an operand is written as a number.
 * @param {Operand} operand
 * @returns {boolean}
 */
function asConstant(operand) {
  return operand.immediateOnly || Boolean(operand.cpp.template);
}

/**
 * The constant of an operand that takes no register; the name of a result that is dropped.
 * @param {Operand} operand
 * @returns {number | string}
 */
function constantOf(operand) {
  return operand.default ?? operand.immediates?.first ?? (operand.name === "_" ? "_" : 0);
}

/**
 * Return whether PTX has an operand as a list of registers in braces.
 * @param {Operand} operand
 * @returns {boolean}
 */
function isListed(operand) {
  return (operand.elements > 0 || operand.registers > 1 || operand.braced) && !operand.single;
}

/**
 * The operands of a form, each by its text.
 * @param {string} syntax
 * @param {Map<string, string>} texts
 * @returns {string}
 */
function spelledOperands(syntax, texts) {
  return syntax.replace(/[\w-]+/g, (name) => texts.get(name) ?? name);
}

/**
 * @param {string[]} values
 * @returns {string}
 */
function wrappedList(values) {
  /** @type {string[]} */
  const rows = [];
  for (let first = 0; first < values.length; first += LISTED / 2) rows.push(values.slice(first, first + LISTED / 2).join(", "));
  return rows.join(",\n      ");
}

/**
 * A long list of registers on several lines, as one string literal after another.
 * @param {string} text
 * @returns {string}
 */
function brokenLine(text) {
  return text.replace(/\{(%\d+(?:, %\d+)*)\}/g, (_, list) => {
    const numbers = list.split(", ");
    /** @type {string[]} */
    const rows = [];
    for (let first = 0; first < numbers.length; first += LISTED) rows.push(numbers.slice(first, first + LISTED).join(", "));
    return `{${rows.join(', "\n      "')}}`;
  });
}

// --- functions of layouts ------------------------------------------------------------------------------------------------

/**
 * The functions of a layout: the way of its formula, and the inverse.
 * @param {Layout} layout
 * @returns {IndexFunction[]}
 */
function indexFunctions(layout) {
  const outputs = Object.keys(layout.map.outputs);
  const inputs = layout.fromAxes ? Object.keys(layout.axes) : ["lane", "i"];
  const steps = (/** @type {import("./index.d.ts").BitMap} */ map, /** @type {string[]} */ names, /** @type {string} */ first) =>
    names.map((name) => /** @type {[string, string]} */ ([name, map.outputs[name] ? gathered(map, name, layout.zeros) : `${first} & 0`]));
  return [
    { name: layout.name, parameters: inputs, optional: layout.fromAxes ? layout.apart : [], steps: steps(layout.map, outputs, inputs[0]) },
    { name: `${layout.name}_inverse`, parameters: outputs, optional: [], steps: steps(inverseMap(layout.map), inputs, outputs[0]) },
  ];
}

/**
 * The functions of a layout in C, or CUDA C++: one for each result.
 * @param {Layout} layout
 * @returns {string}
 */
export function cFunctions(layout) {
  const texts = indexFunctions(layout).flatMap(({ parameters, steps }) =>
    steps.map(([name, expression]) => {
      const typed = parameters.map((parameter) => `uint32_t ${parameter}`).join(", ");
      return `static inline uint32_t ${wordsOf(layout.name)}_${name}(${typed}) {\n  return ${expression};\n}\n`;
    }),
  );
  return texts.join("\n");
}

/**
 * The functions of a layout in Python: they take integers, NumPy arrays and torch tensors.
 * @param {Layout} layout
 * @returns {string}
 */
export function pythonFunctions(layout) {
  const texts = indexFunctions(layout).map(({ name, parameters, optional, steps }) => {
    const given = parameters.map((parameter) => (optional.includes(parameter) ? `${parameter}=0` : parameter)).join(", ");
    const body = steps.map(([result, expression]) => `    ${result} = ${expression}\n`).join("");
    return `def ${wordsOf(name)}(${given}):\n${body}    return ${steps.map(([result]) => result).join(", ")}\n`;
  });
  return texts.join("\n\n");
}

/**
 * A name of the database as an identifier.
 * @param {string} name
 * @returns {string}
 */
function wordsOf(name) {
  return name.replace(/\W/g, "_");
}

// --- tables --------------------------------------------------------------------------------------------------------------

/**
 * The text of a cell beside the lane: `r1 a3`; an element that fills its register needs no second name.
 * @param {Place} place
 * @param {Arrangement} table
 * @returns {string}
 */
export function shortName(place, table) {
  const { kind } = table.layout;
  if (kind === "metadata") return `[${bitsOf(place)}]`;
  if (kind === "scale") return `byte ${place.element}`;
  if (kind === "address") return table.name;
  // "r3" would read like a register.
  const element = `${table.name === "r" ? "i" : table.name}${place.element}`;
  return table.perRegister === 1 ? element : `r${place.register} ${element}`;
}

/**
 * The table of an operand as comma-separated values, as `ptxmma layout --format csv` prints it.
 * @param {Arrangement} table
 * @param {Record<string, number>} chosen
 * @returns {string}
 */
export function csvText(table, chosen = {}) {
  const cols = Array.from({ length: table.cols }, (_, col) => col);
  const head = [table.axes.filter(Boolean).join(" \\ "), ...cols].join(",");
  const rows = Array.from({ length: table.rows }, (_, row) => {
    const cells = cols.map((col) => {
      const place = table.locate(row, col, chosen);
      return `${place.lane}:${shortName(place, table)}`;
    });
    return [row, ...cells].join(",");
  });
  return `${[head, ...rows].join("\n")}\n`;
}
