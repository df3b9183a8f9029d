/** The instructions that a text names: by a spelling in PTX or inline asm, a function of the C++ headers, an atom of CuTe or a machine instruction. */

import { instructionSets } from "./instruction_sets.js";
import { instructionGroups, instructionOf } from "./instructions.js";
import { instructionMeant } from "./spellings.js";

/** @typedef {import("./index.d.ts").Instruction} Instruction */

/** A type of the typed front: `mma<shape<16, 8, 16>, f32, f16, f16, f32>`. */
const FRONT = /(\w+)\s*<\s*(?:ptxmma::)?shape\s*<\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*>([\w\s:,]*)>/g;

/** A machine instruction with at least one modifier, or a matrix instruction without. */
const MACHINE = /^(?:[A-Z]+MMA|[A-Z]+(?:\.[A-Z0-9x]+)+)$/;

/**
 * The instructions that a text names; several where an atom leaves something open.
 * @param {string} text
 * @returns {Instruction[]}
 */
export function mentioned(text) {
  // A string that goes on after its quotes is one text.
  const joined = text.replace(/"\s*"/g, "").replace(/\\[nrt]/g, " ").replace(FRONT, (_, name, m, n, k, tags) => `${name}_m${m}n${n}k${k}${tags.replace(/\w+::/g, "").replace(/[\s,]+/g, "_")} `);
  const spellings = joined.match(/[a-z_]+[a-z0-9_]*(?:::\w+)?(?:\.[\w:]+)+/gi) ?? [];
  const bySpelling = spellings.flatMap((spelling) => instructionMeant(spelling) ?? []);
  if (bySpelling.length) return bySpelling;
  for (const word of joined.match(/\w+/g) ?? []) {
    const instruction = byIdentifier(word);
    if (instruction) return [instruction];
  }
  const name = text.trim();
  const found = byAtom(joined);
  return found.length || !MACHINE.test(name) ? found : withName((each) => each.startsWith(`${name}.`));
}

/**
 * The instructions that became a machine instruction of exactly this name.
 * @param {string} name
 */
export function byMachineCode(name) {
  return MACHINE.test(name) ? withName((each) => each === name) : [];
}

/**
 * The instructions with a name elsewhere that passes a test.
 * @param {(name: string) => boolean} test
 * @returns {Instruction[]}
 */
function withName(test) {
  return instructionGroups().flatMap((group) => {
    const names = [...group.peers, ...group.aliases];
    const numbers = names.length ? group.numbers : [];
    return numbers.filter((number) => names.some((name) => test(name.replaceAll(`{${group.extent}}`, String(number))))).map((number) => instructionOf(group, number));
  });
}

/**
 * @param {string} word
 * @returns {Instruction | undefined}
 */
function byIdentifier(word) {
  const sets = instructionSets.filter((each) => word.startsWith(`${each.stem}_`) || word === each.stem);
  for (const group of sets.length ? instructionGroups() : []) {
    if (!sets.includes(group.entry)) continue;
    for (const number of group.numbers) if (instructionOf(group, number).identifier === word) return instructionOf(group, number);
  }
  return undefined;
}

/**
 * The instructions of the atoms that have all parts of a name, or of the name before the arguments of a template.
 * @param {string} text
 * @returns {Instruction[]}
 */
function byAtom(text) {
  for (const tokens of [atomTokens(text), atomTokens(text.split("<")[0])]) {
    if (tokens.size < 2 || ![...tokens].some((token) => /^sm\d+$/.test(token))) continue;
    const holds = (/** @type {string} */ name, exactly = false) => {
      const theirs = atomTokens(name);
      return [...tokens].every((token) => theirs.has(token)) && (!exactly || theirs.size === tokens.size);
    };
    const whole = withName((name) => holds(name, true));
    const found = whole.length ? whole : withName((name) => holds(name));
    if (found.length) return found;
  }
  return [];
}

/**
 * The parts of an atom's name; how its namespaces are spelled does not count.
 * @param {string} text
 * @returns {Set<string>}
 */
function atomTokens(text) {
  const ignored = ["cute", "gmma", "mma", "blockscaled", "sparse", "major", "k", "mn", ""];
  return new Set(text.split(/[^A-Za-z0-9]+/).map((token) => token.toLowerCase()).filter((token) => !ignored.includes(token)));
}
