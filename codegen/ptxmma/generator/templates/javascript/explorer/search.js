/** One box that understands opcodes, PTX lines, asm strings, names of wrappers, CuTe atoms, targets, and words. */

import { database } from "../database.js";
import { instructionGroups, instructionOf } from "../instructions.js";
import { resolve } from "../lookup.js";
import { targetText, targetsIn } from "./target_names.js";

/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("../index.d.ts").InstructionGroup} InstructionGroup */
/** @typedef {import("./state.js").State} State */
/** @typedef {{text: string, note: string, set: Partial<State>}} Answer */
/** @typedef {{group: InstructionGroup, words: string}} Entry */

const MOST = 12;

/** @type {Entry[] | undefined} */
let searchEntries;

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
  const every = targets.length && !rest ? [] : meanings(words);
  if (every.length) return every.map((instruction) => answer(instruction, set));
  if (targets.length > 1 || (targets.length && !rest)) return targets.map((target) => ({ text: targetText(target), note: "only what this target accepts", set: { target } }));
  const [target = ""] = targets;
  const accepted = meanings(rest).filter((instruction) => !target || target in instruction.accepted);
  return (accepted.length ? accepted : byWords(rest, target)).slice(0, MOST).map((each) => answer(each, { ...set, ...(target ? { target } : {}) }));
}

/**
 * The instructions that a text means, the preferred first.
 * @param {string} text
 */
function meanings(text) {
  const { instructions, others } = resolve(text);
  return [...instructions, ...others].slice(0, MOST);
}

/**
 * @param {Instruction} instruction
 * @param {Partial<State>} set
 * @returns {Answer}
 */
function answer(instruction, set) {
  const { group } = instruction;
  const many = group.numbers.length > 1 ? ` · ${group.extent.toUpperCase()} = ${group.numbers[0]}…${group.numbers[group.numbers.length - 1]}` : "";
  const [first] = Object.keys(instruction.accepted);
  return { text: instruction.canonical, note: `${first ?? "no target"}${Object.keys(instruction.accepted).length > 1 ? " and others" : ""}${many}`, set: { i: instruction.canonical, ...set } };
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
 * The instructions in whose names and descriptions all words stand.
 * @param {string} text
 * @param {string} target
 * @returns {Instruction[]}
 */
function byWords(text, target) {
  const words = text.toLowerCase().split(/[\s,]+/).filter(Boolean);
  /** @type {{instruction: Instruction, score: number}[]} */
  const scored = [];
  for (const { group, words: known } of entries()) {
    if (target && !(target in group.accepted)) continue;
    const number = words.map((word) => numberIn(group, word)).find((each) => each !== undefined);
    const instruction = instructionOf(group, number ?? group.numbers[Math.floor(group.numbers.length / 4)]);
    const all = `${known} ${instruction.canonical} ${instruction.identifier}`.toLowerCase();
    if (!words.every((word) => all.includes(word))) continue;
    const tokens = instruction.canonical.split(".");
    const exact = words.filter((word) => tokens.includes(word)).length;
    scored.push({ instruction, score: exact * 10 + Number(instruction.documented) * 5 - tokens.length });
  }
  return scored.sort((one, other) => other.score - one.score).map(({ instruction }) => instruction);
}

/**
 * The number of the extent that ranges, where a word is the shape with such a number.
 * @param {InstructionGroup} group
 * @param {string} word
 * @returns {number | undefined}
 */
function numberIn(group, word) {
  if (!group.extent) return undefined;
  return group.numbers.find((number) => Object.values(group.templates).some((template) => template.includes("{") && template.replace(`{${group.extent}}`, String(number)) === word));
}

/** @returns {Entry[]} */
function entries() {
  searchEntries ??= instructionGroups().map((group) => {
    const types = Object.values(group.templates).flatMap((value) => (database.types[value] ? [database.types[value].title] : []));
    const sparse = group.pattern ? `sparse ${group.pattern.name}` : "dense";
    return { group, words: [group.entry.title, group.entry.family, group.entry.scope, sparse, ...types].join(" ") };
  });
  return searchEntries;
}
