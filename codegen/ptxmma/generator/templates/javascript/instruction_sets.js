/** The entries of instructions, with what the database writes once for all of them. */

import { database } from "./database.js";
import { numbersOf, recordsOf } from "./short_texts.js";

/** @typedef {import("./index.d.ts").FormEntry} FormEntry */
/** @typedef {import("./index.d.ts").InstructionSet} InstructionSet */

const qualifierEntries = recordsOf(database.qualifiers);
const hintValues = recordsOf(database.hints);
const formRemarks = recordsOf(database.remarks);

/** @type {InstructionSet[]} */
export const instructionSets = recordsOf(database.instructions).map((entry) => ({
  ...entry,
  stem: entry.stem ?? entry.name.replace(/\W+/g, "_"),
  qualifiers: Object.fromEntries(numbersOf(entry.qualifiers).map((number) => [qualifierEntries[number].name, qualifierEntries[number]])),
  hints: numbersOf(entry.hints ?? "").map((number) => hintValues[number]),
  forms: entry.forms.map(expandedForm),
}));

/**
 * A form: what it says of itself, the names of its qualifiers, and the values of each.
 * @param {string} text
 * @returns {FormEntry}
 */
function expandedForm(text) {
  const [remark, names, ...values] = numbersOf(text);
  const given = database.names[names].split(" ").filter(Boolean);
  return { ...formRemarks[remark], qualifiers: Object.fromEntries(given.map((name, place) => [name, database.values[values[place]]])) };
}
