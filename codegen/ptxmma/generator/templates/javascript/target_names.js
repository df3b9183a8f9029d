/** Targets by the names of products and architectures, as `ptxmma.catalog.instructions.user_names` understands them. */

import { database } from "./database.js";

/** Words that say nothing of the chip. */
const IDLE = ["nvidia", "pcie", "sxm", "nvl", "gpu"];
/** Names that are shown beside a target. */
const SHOWN = 3;

/**
 * A target with some of its products.
 * @param {string} target
 * @returns {string}
 */
export function targetText(target) {
  const names = database.gpus.filter((gpu) => gpu.target === target).flatMap((gpu) => gpu.names);
  return names.length ? `${target} · ${names.slice(0, SHOWN).join(", ")}${names.length > SHOWN ? " …" : ""}` : target;
}

/**
 * The targets that some words of a text may mean, and the other words.
 * @param {string} text
 * @returns {{targets: string[], rest: string}}
 */
export function targetsIn(text) {
  const words = text.trim().split(/\s+/).filter(Boolean);
  const plain = words.map((word) => word.toLowerCase().replace(/^(sm_?|compute_?)(?=\d)/, "sm_"));
  const number = plain.findIndex((word) => word in database.targets);
  if (number >= 0) return { targets: [plain[number]], rest: words.filter((_, place) => place !== number).join(" ") };
  const every = database.gpus.flatMap((gpu) => gpu.names.map((name) => ({ gpu, own: wordsOfName(name) })));
  const fits = (/** @type {string} */ word) => every.filter(({ gpu, own }) => [gpu.architecture.toLowerCase(), ...own].includes(word) || (word.length > 3 && own.join("").endsWith(word)));
  const said = plain.filter((word) => fits(word).length);
  if (!said.length) return { targets: [], rest: text };
  const meant = every.filter((each) => said.every((word) => fits(word).includes(each)));
  const rest = words.filter((_, place) => !said.includes(plain[place]) && !IDLE.includes(plain[place]));
  return { targets: [...new Set(meant.map(({ gpu }) => gpu.target))], rest: rest.join(" ") };
}

/** @param {string} name */
function wordsOfName(name) {
  return name.toLowerCase().split(/[\s_-]+/);
}
