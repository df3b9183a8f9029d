/** The values that a setting of the page may have, as rules: each says in a sentence what is wrong with a text; empty where nothing is. */

import { textsOf } from "./state.js";

/** @typedef {(text: string, name: string) => string} Rule */
/** @typedef {Partial<Record<keyof import("./state.js").State, Rule>>} Legal */

/** So many values are listed; of more, the first and the last. */
const MOST_LISTED = 12;

/** @param {(string | number)[]} values */
export function listed(values) {
  return (values.length > MOST_LISTED ? [...values.slice(0, 3), "…", values[values.length - 1]] : values).join(", ");
}

/**
 * @param {(string | number)[]} values
 * @returns {Rule}
 */
export function oneOf(values) {
  const texts = [...new Set(values.map(String))];
  return (text, name) => (texts.includes(text) ? "" : `No ${name} is ${text}: there ${texts.length > 1 ? "are" : "is"} ${listed(texts) || "none"}.`);
}

/**
 * @param {RegExp} pattern
 * @param {string} wanted
 * @returns {Rule}
 */
export function like(pattern, wanted) {
  return (text, name) => (pattern.test(text) ? "" : `${name} = ${text}: write ${wanted}.`);
}

/**
 * Whole numbers up to one.
 * @param {number} last
 * @param {number} [first]
 * @returns {Rule}
 */
export function upTo(last, first = 0) {
  return (text, name) => (/^\d+$/.test(text) && Number(text) >= first && Number(text) <= last ? "" : `${name} = ${text}: write ${last < Infinity ? `${first} to ${last}` : "a whole number"}.`);
}

/**
 * Parts with commas between them, a rule for each; a part may be empty.
 * @param {...Rule} rules
 * @returns {Rule}
 */
export function byPlace(...rules) {
  return (text, name) => text.split(",").map((part, place) => part && (rules[place] ?? oneOf([]))(part, name)).find(Boolean) ?? "";
}

/**
 * Parts such as `m:128`, a rule for each name.
 * @param {Record<string, (string | number)[]>} legal
 * @returns {Rule}
 */
export function byName(legal) {
  return (text, name) => Object.entries(textsOf(text)).map(([each, value]) => oneOf(Object.keys(legal))(each, name) || oneOf(legal[each])(value, each)).find(Boolean) ?? "";
}
