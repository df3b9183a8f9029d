/** The texts of the database that say much in few characters; `shortening.py` writes them. */

/**
 * Numbers in few words: `4*3` is 4, 4, 4 and `4+3` is 4, 5, 6.
 * @param {string} text
 * @returns {number[]}
 */
export function numbersOf(text) {
  if (!text) return [];
  return text.split(" ").flatMap((word) => {
    const [first, count = 1] = word.split(/[*+]/).map(Number);
    return Array.from({ length: count }, (_, place) => first + (word.includes("+") ? place : 0));
  });
}

/**
 * Bits of the outputs of a map: `col:1+2 row:0` is bits 1 and 2 of `col`, then bit 0 of `row`.
 * @param {string} text
 * @returns {[string, number][]}
 */
export function placesOf(text) {
  if (!text) return [];
  return text.split(" ").flatMap((word) => {
    const [output, bits] = word.split(":");
    return numbersOf(bits).map((bit) => /** @type {[string, number]} */ ([output, bit]));
  });
}

/**
 * The records of a table, without what is absent.
 * @template {object} Row
 * @param {import("./index.d.ts").Table<Row>} table
 * @returns {Row[]}
 */
export function recordsOf({ columns, rows }) {
  return rows.map((row) => /** @type {Row} */ (Object.fromEntries(columns.flatMap((name, place) => (row[place] === undefined || row[place] === null ? [] : [[name, row[place]]])))));
}

/**
 * The records of a table by column: texts of numbers, or lists.
 * @template {object} Row
 * @param {import("./index.d.ts").Columns<Row>} columns
 * @returns {Row[]}
 */
export function recordsByColumn(columns) {
  const lists = Object.entries(columns).map(([name, column]) => /** @type {const} */ ([name, typeof column === "string" ? numbersOf(column) : column]));
  return /** @type {unknown[]} */ (lists[0]?.[1] ?? []).map((_, place) => /** @type {Row} */ (Object.fromEntries(lists.flatMap(([name, list]) => (list[place] == null ? [] : [[name, list[place]]])))));
}

/**
 * Words, each of which begins as the one before: `0a_b16 2d_b16` is a_b16 and a_d16.
 * @param {string} text
 * @returns {string[]}
 */
export function continuedWords(text) {
  let last = "";
  return text.split(" ").filter(Boolean).map((word) => (last = last.slice(0, Number.parseInt(word[0], 36)) + word.slice(1)));
}

/** @typedef {[name: string, allowed: string[]][][]} Condition alternatives, each with the values that it allows for some facts */

/** @type {Map<string, Condition>} */
const readConditions = new Map();

/**
 * Return whether some facts meet a condition: `m=64|128 shape=x1; m=256` asks for m of 64 or 128 with the shape x1, or for m of 256.
 * @param {string | undefined} text without one there is nothing to meet
 * @param {Record<string, string | number>} facts
 * @returns {boolean}
 */
export function holds(text, facts) {
  if (!text) return true;
  let condition = readConditions.get(text);
  if (!condition) readConditions.set(text, (condition = readCondition(text)));
  return condition.some((each) => each.every(([name, allowed]) => allowed.includes(String(facts[name] ?? ""))));
}

/**
 * @param {string} text
 * @returns {Condition}
 */
function readCondition(text) {
  return text.split("; ").map((each) => each.split(" ").map((part) => {
    const [name, allowed] = part.split("=");
    return [name, allowed.split("|")];
  }));
}

/**
 * A text with the values of qualifiers: for `{atype}` as they are, for `{ATYPE}` in capitals; any other braces stay.
 * @param {string} text
 * @param {Record<string, string>} qualifiers
 * @returns {string}
 */
export function filled(text, qualifiers) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => qualifiers[name] ?? qualifiers[name.toLowerCase()]?.toUpperCase() ?? whole);
}
