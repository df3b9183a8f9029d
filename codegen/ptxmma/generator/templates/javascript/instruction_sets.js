/** The entries of instructions, with what the database writes once for all of them. */

import { database } from "./database.js";
import { numbersOf, recordsByColumn } from "./short_texts.js";

/** @typedef {import("./index.d.ts").FormEntry} FormEntry */
/** @typedef {import("./index.d.ts").InstructionSet} InstructionSet */

const qualifierEntries = recordsByColumn(database.qualifiers);
const hintValues = recordsByColumn(database.hints);
const formRemarks = recordsByColumn(database.remarks);

/**
 * A token of PTX as part of an identifier: `scale_vec_1x` for `scale_vec::1X`.
 * @param {string} token
 * @returns {string}
 */
export function recased(token) {
  return token.replace(/::|[:.]/g, "_").toLowerCase();
}

/** @type {InstructionSet[]} */
export const instructionSets = recordsByColumn(database.instructions).map((entry) => ({
  opcode: entry.name,
  stem: recased(entry.name),
  shape: "",
  typed: "",
  places: {},
  ...entry,
  qualifiers: Object.fromEntries(numbersOf(entry.qualifiers).map((number) => [qualifierEntries[number].name, qualifierEntries[number]])),
  hints: numbersOf(entry.hints ?? "").map((number) => hintValues[number]),
  forms: expandedForms(entry.forms.map(numbersOf)),
}));

/**
 * The forms of an entry, from columns: the remark that each is about, the names of its qualifiers, and the values of each qualifier that a form has.
 * @param {number[][]} columns
 * @returns {FormEntry[]}
 */
function expandedForms([remarks, names, ...columns]) {
  return remarks.map((remark, row) => {
    const given = database.names[names[row]].split(" ").filter(Boolean);
    return { ...formRemarks[remark], qualifiers: Object.fromEntries(given.map((name, place) => [name, database.values[Number(columns[place].shift())]])) };
  });
}
