/** Looks instructions up as people name them, as `ptxmma.catalog.lookup` does: by a spelling, by words, by the name of a function or an atom. */

import { mentioned } from "./mentions.js";
import { instructionMeant } from "./spellings.js";
import { matching, preferred } from "./words.js";

/** @typedef {import("./index.d.ts").Found} Found */

/**
 * The instructions that a text means: one, several where no preference decides, none where the text means none.
 * @param {string} text
 * @returns {Found}
 */
export function resolve(text) {
  const meant = instructionMeant(text);
  if (meant) return { instructions: [meant], others: [], reasons: [] };
  const matches = matching(text);
  const every = matches.length ? matches : mentioned(text).map((instruction) => ({ instruction, rank: 0, places: [], words: [] }));
  if (!every.length) return { instructions: [], others: [], reasons: [] };
  const { left, reasons } = preferred(every);
  return { instructions: left.map(({ instruction }) => instruction), others: every.filter((match) => !left.includes(match)).map(({ instruction }) => instruction), reasons };
}
