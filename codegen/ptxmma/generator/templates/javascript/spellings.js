/** Finds the instruction of any spelling that assemblers accept, as `ptxmma.catalog.variants.Spellings` does. */

import { instructionSets } from "./instruction_sets.js";
import { factsOf, instructionGroups, instructionOf, syntaxParts } from "./instructions.js";
import { holds } from "./short_texts.js";

/** @typedef {import("./index.d.ts").Instruction} Instruction */
/** @typedef {import("./index.d.ts").InstructionSet} InstructionSet */
/** @typedef {{ordered: Map<string, number>, instructions: Map<string, Instruction>, values: Map<string, Set<string>>}} SpellingIndex */

/** @type {Map<InstructionSet, SpellingIndex>} */
const spellingIndices = new Map();

/**
 * The instruction that a spelling means; undefined where it means none.
 * @param {string} spelling
 * @returns {Instruction | undefined}
 */
export function instructionMeant(spelling) {
  const text = spelling.trim();
  for (const entry of instructionSets) {
    const { opcode } = entry;
    const tokens = text.split(".");
    // A value of the first qualifier may go on with a colon: async, async::generic.
    const follows = text.charAt(opcode.length);
    if (!text.startsWith(opcode) || !["", ".", ":"].includes(follows) || !fixedTokens(entry).every((token) => tokens.includes(token))) continue;
    const instruction = meantBy(entry, tokens);
    if (instruction) return instruction;
  }
  return undefined;
}

/**
 * The modifiers that every instruction of an entry has.
 * @param {InstructionSet} entry
 * @returns {string[]}
 */
export function fixedTokens(entry) {
  return syntaxParts(entry.syntax).flatMap(([literal]) => literal.split(".").filter(Boolean));
}

/**
 * @param {InstructionSet} entry
 * @param {string[]} given
 * @returns {Instruction | undefined}
 */
function meantBy(entry, given) {
  const hints = entry.hints.filter(({ value }) => given.includes(value));
  const instruction = meantWithoutHints(entry, given.filter((token) => !hints.some(({ value }) => value === token)));
  if (!instruction || new Set(hints.map(({ name }) => name)).size < hints.length) return undefined;
  return hints.every(({ of, when }) => holds(of, factsOf(instruction)) && holds(when, factsOf(instruction))) ? instruction : undefined;
}

/**
 * @param {InstructionSet} entry
 * @param {string[]} given
 * @returns {Instruction | undefined}
 */
function meantWithoutHints(entry, given) {
  const index = indexOf(entry);
  const tokens = given.filter((token, place) => !(entry.repeatable ?? []).includes(token) || given.indexOf(token) === place);
  const instruction = index.instructions.get(spellingKey(entry, index, tokens));
  if (instruction) return instruction;
  for (const [name, { default: defaults }] of Object.entries(entry.qualifiers ?? {})) {
    if (!defaults || tokens.some((token) => index.values.get(name)?.has(token))) continue;
    for (const { value, when } of defaults) {
      const fuller = index.instructions.get(spellingKey(entry, index, [...tokens, value]));
      if (fuller && holds(when, factsOf(fuller))) return fuller;
    }
  }
  return undefined;
}

/**
 * @param {InstructionSet} entry
 * @returns {SpellingIndex}
 */
function indexOf(entry) {
  let index = spellingIndices.get(entry);
  if (index) return index;
  const members = instructionGroups().filter((group) => group.entry === entry).flatMap((group) => group.numbers.map((number) => instructionOf(group, number)));
  /** @type {Map<string, Set<string>>} */
  const values = new Map(Object.keys(entry.qualifiers ?? {}).map((name) => [name, new Set()]));
  for (const member of members) for (const [name, value] of Object.entries(member.qualifiers)) if (value) values.get(name)?.add(value);
  /** @type {Map<string, number>} */
  const ordered = new Map();
  (entry.ordered ?? []).forEach((names, group) => {
    for (const name of names) for (const token of values.get(name) ?? [name]) ordered.set(token, group);
  });
  index = { ordered, instructions: new Map(), values };
  for (const member of members) index.instructions.set(spellingKey(entry, index, member.canonical.split(".")), member);
  spellingIndices.set(entry, index);
  return index;
}

/**
 * A spelling without what assemblers ignore: its unordered tokens, sorted, and the tokens of each ordered group as they come.
 * @param {InstructionSet} entry
 * @param {SpellingIndex} index
 * @param {string[]} tokens
 * @returns {string}
 */
function spellingKey(entry, index, tokens) {
  const loose = tokens.filter((token) => !index.ordered.has(token)).sort();
  const groups = (entry.ordered ?? []).map((_, group) => tokens.filter((token) => index.ordered.get(token) === group).join("."));
  return [loose.join("."), ...groups].join("|");
}
