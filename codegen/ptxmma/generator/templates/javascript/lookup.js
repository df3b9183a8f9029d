/** Looks instructions up as people name them, as `ptxmma.catalog.lookup` does: by a spelling, by words, by the name of a function or an atom. */

import { byMachineCode, mentioned } from "./mentions.js";
import { instructionMeant } from "./spellings.js";
import { targetsIn } from "./target_names.js";
import { matching, preferred } from "./words.js";

/** @typedef {import("./index.d.ts").Found} Found */

/**
 * The instructions that a text means: one, several where no preference decides, none where the text means none. Words that name a target leave what it accepts.
 * @param {string} text
 * @returns {Found}
 */
export function resolve(text) {
  const meant = instructionMeant(text);
  if (meant) return { instructions: [meant], others: [], reasons: [], target: "" };
  const named = (/** @type {import("./index.d.ts").Instruction[]} */ found) => found.map((instruction) => ({ instruction, rank: 0, places: [], words: [] }));
  /** @type {import("./words.js").Match[]} */
  let every = named(byMachineCode(text.trim()));
  if (!every.length) every = matching(text);
  if (!every.length) every = named(mentioned(text));
  let target = "";
  if (!every.length) {
    const { targets, rest } = targetsIn(text);
    if (targets.length === 1 && rest) every = matching(rest).filter(({ instruction }) => targets[0] in instruction.accepted);
    if (every.length) target = targets[0];
  }
  const { left, reasons } = preferred(every);
  return { instructions: left.map(({ instruction }) => instruction), others: every.filter((match) => !left.includes(match)).map(({ instruction }) => instruction), reasons, target };
}
