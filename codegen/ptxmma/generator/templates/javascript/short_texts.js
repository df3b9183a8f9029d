/** The texts of the database that say much in few characters; `shortening.py` writes them. */

/** Signs of the lengths of runs from 2 on: for each length one for equal numbers and one for rising ones. */
const LENGTHS = "!#%&'()*+,-./<=>?@[]^{|}";

/**
 * Numbers in few characters: `4!1` is 4, 4, 1 and `4&` is 4, 5, 6. The last digit of a number is of base 36, in capitals; those before it are small letters, of base 26.
 * @param {string} text
 * @returns {number[]}
 */
export function numbersOf(text) {
  return [...text.matchAll(/([a-z]*)(\w)([^\w]?)/g)].flatMap(([, front, last, sign]) => {
    const first = [...front].reduce((number, letter) => number * 26 + parseInt(letter, 36) - 10, 0) * 36 + parseInt(last, 36);
    const length = LENGTHS.indexOf(sign || " ");
    return Array.from({ length: (length >> 1) + 2 }, (_, place) => first + (length % 2) * place);
  });
}

/**
 * Bits of the outputs of a map: `col:1# row:0` is bits 1 and 2 of `col`, then bit 0 of `row`.
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
 * The records of a table by column: texts of numbers, or lists.
 * @template {object} Row
 * @param {import("./index.d.ts").Columns<Row>} columns
 * @returns {Row[]}
 */
export function recordsByColumn(columns) {
  const lists = Object.entries(columns).map(([name, column]) => /** @type {const} */ ([name, typeof column === "string" ? numbersOf(column) : column]));
  const length = Math.max(0, ...lists.map(([, list]) => list.length));
  return Array.from({ length }, (_, place) => /** @type {Row} */ (Object.fromEntries(lists.flatMap(([name, list]) => (list[place] == null ? [] : [[name, list[place]]])))));
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
