/** Colours of cells: eight hues in four strengths, as the pictures of the reference have them. */

import { database } from "../database.js";

const STRENGTHS = 4;

/**
 * The colour of a thread, or of any other number: the four threads of a quad have strengths of one hue.
 * @param {number} number
 * @returns {string}
 */
export function colourOf(number) {
  return database.colours[number % database.colours.length];
}

/**
 * A colour in which neighbouring numbers are easy to tell apart: a hue each.
 * @param {number} number
 * @returns {string}
 */
export function hueOf(number) {
  const hues = database.colours.length / STRENGTHS;
  return colourOf((number % hues) * STRENGTHS + 1 + (Math.floor(number / hues) % (STRENGTHS - 1)));
}
