/** Sections of the manual, by their numbers in several releases, as `ptxmma.catalog.citations` has them. */

import { database } from "../database.js";

/**
 * A source in words; the section with which it begins has its numbers in other releases, too.
 * @param {string} source
 * @returns {string}
 */
export function cited(source) {
  const number = source.match(/^\d[\d.]+/)?.[0];
  if (!number) return source;
  const others = Object.entries(database.sections ?? {}).map(([release, beginnings]) => {
    const begin = Object.keys(beginnings).filter((each) => `${number}.`.startsWith(`${each}.`)).pop();
    return begin ? ` [${release}: ${beginnings[begin]}${number.slice(begin.length)}]` : "";
  });
  return `${database.document}, section ${number}${others.join("")}${source.slice(number.length)}`;
}
