/** One box that understands opcodes, PTX lines, asm strings, names of wrappers, CuTe atoms, targets, and words. */

import { database } from "../database.js";
import { instructionGroups, instructionOf } from "../instructions.js";
import { resolve } from "../lookup.js";
import { targetText, targetsIn } from "../target_names.js";

/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("./state.js").State} State */
/** @typedef {{text: string, note: string, set: Partial<State>}} Answer */

const MOST = 12;
/** Names of operands, each list with what they mean. */
const parts = database.parts.map(([means, ...names]) => /** @type {const} */ ([names, means]));
const PART_NAMES = parts.flatMap(([names]) => names).join("|").replaceAll(" ", " (?:of )?");
const OPERAND = `\\b(?<operand>[a-d]|scale-[ab]|${PART_NAMES})`;
const INDICES = "[\\s[(]+(?<row>\\d+)[\\s,\\][]+(?<col>\\d+)(?![\\w.])[\\])]?";
const ELEMENT = new RegExp(OPERAND + INDICES, "i");
const INDEXED = new RegExp(`${INDICES} (?:of )?${OPERAND}\\b`, "i");
const PART = new RegExp(`\\b(?<operand>${PART_NAMES})\\b`, "i");
const LANE = /\b(?:lane|thread) *(?<number>\d+)\b/i;
/** Words of a question about an element. */
const AXES = /\b(?:lane|thread|register|element|layout|fragment)s?\b/gi;

/**
 * The possible meanings of a text, the likeliest first.
 * @param {string} given
 * @returns {Answer[]}
 */
export function answersTo(given) {
  const text = given.trim();
  if (!text) return [];
  const bits = /^0x[0-9a-f]{9,16}$/i.exec(text);
  if (bits) return [{ text: `Descriptor ${text}`, note: "matrix descriptor", set: { v: "memory", bits: text.toLowerCase() } }];
  const { words, set } = selectionIn(text);
  const { targets, rest } = targetsIn(words);
  const found = resolve(targets.length && !rest ? "" : words);
  const every = [...found.instructions, ...found.others].slice(0, MOST);
  const accepting = found.target && { target: found.target };
  if (every.length) return every.map((instruction, place) => answer(instruction, { ...set, ...accepting }, place ? [] : found.reasons));
  if (targets.length > 1 || (targets.length && !rest)) return targets.map((target) => ({ text: targetText(target), note: "only what this target accepts", set: { target } }));
  const [target = ""] = targets;
  return byWords(rest, target).slice(0, MOST).map((each) => answer(each, { ...set, ...(target && { target }) }));
}

/**
 * @param {Instruction} instruction
 * @param {Partial<State>} set
 * @param {string[]} [reasons] why it is the first
 * @returns {Answer}
 */
function answer(instruction, set, reasons = []) {
  const { group } = instruction;
  const many = group.numbers.length > 1 ? ` · ${group.extent.toUpperCase()} = ${group.numbers[0]}…${group.numbers[group.numbers.length - 1]}` : "";
  const [first] = Object.keys(instruction.accepted);
  return { text: instruction.canonical, note: `${first ?? "no target"}${Object.keys(instruction.accepted).length > 1 ? " and others" : ""}${many}${reasons.map((reason) => ` · ${reason}`).join("")}`, set: { i: instruction.canonical, ...set } };
}

/**
 * The element, the lane or the operand that a text names beside the instruction: `A[9][3]`, `row 9 col 3 of A`, `SFA 3 0`, `lane 5`, `metadata`.
 * @param {string} text
 * @returns {{words: string, set: Partial<State>}}
 */
function selectionIn(text) {
  const plain = text.replace(/\brow (\d+),? col(?:umn)? (\d+)/i, "[$1][$2]");
  const element = ELEMENT.exec(plain) ?? INDEXED.exec(plain);
  const lane = !element && LANE.exec(plain);
  const found = element || lane || (!resolve(text).instructions.length && PART.exec(plain));
  if (!found) return { words: text, set: {} };
  const words = plain.replace(found[0], " ").replace(AXES, " ").trim();
  const { row, col, operand = "", number } = found.groups ?? {};
  const [, name] = parts.find(([names]) => names.includes(operand.toLowerCase().replace(" of ", " "))) ?? [[], operand.toLowerCase()];
  return { words, set: { v: "matrices", ...(element && name ? { at: `${name}:${row},${col}` } : lane ? { at: `lane:${number}` } : {}) } };
}

/**
 * The instructions in whose names and titles all words stand.
 * @param {string} text
 * @param {string} target
 * @returns {Instruction[]}
 */
function byWords(text, target) {
  const words = text.toLowerCase().split(/[\s,]+/).filter(Boolean);
  const accepted = instructionGroups().filter((group) => !target || target in group.accepted).map((group) => instructionOf(group, group.numbers[0]));
  return accepted.filter(({ title, canonical, identifier, qualifiers }) => {
    const types = Object.values(qualifiers).map((value) => database.types[value]?.title);
    const all = [title, canonical, identifier, ...types].join(" ").toLowerCase();
    return words.length && words.every((word) => all.includes(word));
  });
}
