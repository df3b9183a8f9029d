/** One box that understands opcodes, PTX lines, asm strings, names of wrappers, CuTe atoms, targets, and words. */

import { database } from "../database.js";
import { instructionGroups, instructionOf } from "../instructions.js";
import { resolve } from "../lookup.js";
import { targetText, targetsIn } from "../target_names.js";

/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("./state.js").State} State */
/** @typedef {{text: string, note: string, set: Partial<State>}} Answer */

const MOST = 12;

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
 * The element or the lane that a text names beside the instruction: `A[9][3]`, `lane 5`.
 * @param {string} text
 * @returns {{words: string, set: Partial<State>}}
 */
function selectionIn(text) {
  const element = /\b([a-d]|metadata|scale-[ab])\s*\[(\d+)\]\s*\[(\d+)\]/i.exec(text);
  if (element) return { words: text.replace(element[0], " ").trim(), set: { v: "matrices", at: `${element[1].toLowerCase()}:${element[2]},${element[3]}` } };
  const lane = /\blane\s*(\d+)\b/i.exec(text);
  if (lane) return { words: text.replace(lane[0], " ").trim(), set: { v: "matrices", at: `lane:${lane[1]}` } };
  return { words: text, set: {} };
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
