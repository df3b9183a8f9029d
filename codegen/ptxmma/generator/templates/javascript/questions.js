/** Questions in plain words, as `ptxmma` answers them without a verb: an element of an operand, a tile of shared memory, a message or a topic. */

import { bitsOf } from "./arrangements.js";
import { database } from "./database.js";
import { describedFamilies, descriptorFormats } from "./descriptors.js";
import { resolve } from "./lookup.js";
import { recordsByColumn } from "./short_texts.js";
import { meaningsOf } from "./words.js";

/** @typedef {import("./index.d.ts").Asked} Asked */
/** @typedef {import("./index.d.ts").Explained} Explained */
/** @typedef {import("./index.d.ts").Tile} Tile */

/** Names of operands, each list with what they mean. */
const partNames = database.parts.map(([means, ...names]) => /** @type {const} */ ([names, means]));
const PART_NAMES = partNames.flatMap(([names]) => names).join("|").replaceAll(" ", "[ _](?:of )?");
const OPERAND = `\\b(?<operand>[a-d]|scale-[ab]|${PART_NAMES})`;
const INDICES = "[\\s[(]+(?<row>\\d+)[\\s,\\][]+(?<col>\\d+)(?![\\w.])[\\])]?";
const ELEMENT = new RegExp(OPERAND + INDICES, "i");
const INDEXED = new RegExp(`${INDICES} (?:of )?${OPERAND}\\b`, "i");
const PART = new RegExp(`\\b(?<operand>${PART_NAMES})\\b`, "i");
const LANE = /\b(?:lane|thread) *(?<lane>\d+)\b/i;
/** Words of a question about an operand. */
const ABOUT = /\b(?:lane|thread|register|element|layout|fragment|(?:instruction )?descriptor|idesc)s?\b/gi;
const TILE_SIZES = /\b\d+x\d+\b(?!x)/;
const BOX_SIZES = /\b\d+(?:x\d+)+\b/;
const NAMED_MAJORNESS = /\b(k|mn?|n)[- _]?major/i;
const NAMED_SWIZZLE = /\b(?:swizzled? |sw(?:izzle)?_?)(none|\d+)b?\b|(?<![a-z\d])(\d+b(?:_atom_\d+b)?)\b/i;
/** Words of a question about shared memory; a box has its innermost dimension first. */
const IN_MEMORY = /\b(?:tile|bytes|smem|shared memory|bank|swizzle|sw\d+|descriptor|lbo|sbo)/i;
const OF_BOX = /\b(?:box|tma|expect)/i;

const topicRecords = database.topics ? recordsByColumn(database.topics) : [];
const messageRecords = recordsByColumn(database.messages);

/**
 * The operand that a name means: `scale-a` for `SFA` and `scale factors of A`; another name in small letters.
 * @param {string} name
 * @returns {string}
 */
export function partNamed(name) {
  const plain = name.toLowerCase().replaceAll("_", " ").replace(" of ", " ");
  return partNames.find(([names]) => names.includes(plain))?.[1] ?? name.toLowerCase();
}

/**
 * The parts of a question: the instructions that it names, and an operand, an element or a lane of them; a tile of shared memory; names that are explained.
 * @param {string} text
 * @returns {Asked}
 */
export function ask(text) {
  const plain = text.replace(/\brow (\d+),? (?:col(?:umn)?|block|chunk) (\d+)/i, "[$1][$2]");
  const element = ELEMENT.exec(plain) ?? INDEXED.exec(plain);
  const found = element ?? LANE.exec(plain) ?? (resolve(text).instructions.length ? null : PART.exec(plain));
  const { row, col, operand = "", lane } = found?.groups ?? {};
  const words = (found ? plain.replace(found[0], " ") : plain).replace(found || !resolve(text).instructions.length ? ABOUT : /$^/, " ").trim();
  return {
    words,
    operand: partNamed(operand),
    element: element ? [Number(row), Number(col)] : null,
    lane: lane ? Number(lane) : null,
    tile: tileIn(text),
    explanations: explanationsOf(text),
  };
}

/**
 * The tile of shared memory that a text describes; null for another text.
 * @param {string} text
 * @returns {Tile | null}
 */
function tileIn(text) {
  const box = OF_BOX.test(text);
  const [sizes] = (box ? BOX_SIZES : TILE_SIZES).exec(text) ?? [];
  if (!sizes || !(box || IN_MEMORY.test(text))) return null;
  const said = meaningsOf(text.toLowerCase().split(/[\s,?]+/)).flat();
  const type = said.find((word) => word in database.types);
  if (!type) return null;
  const [first, ...others] = sizes.split("x").map(Number);
  const second = others.reduce((product, size) => product * size);
  const [, named, short = "none"] = NAMED_SWIZZLE.exec(text) ?? [];
  const swizzle = named?.toLowerCase() ?? (short === "none" ? short : short.toUpperCase());
  return {
    type,
    family: describedFamilies().find((family) => said.includes(family)) ?? "",
    majorness: (NAMED_MAJORNESS.exec(text)?.[1] ?? "k").toLowerCase() === "k" ? "K" : "MN",
    swizzle: Number(swizzle) ? `${swizzle}B` : swizzle,
    rows: box ? second : first,
    cols: box ? first : second,
    bytes: (first * second * database.types[type].bits) / 8,
  };
}

/**
 * The names in a text that mean something else than an instruction: a message of ptxas, a field of descriptors, a topic.
 * @param {string} text
 * @returns {Explained[]}
 */
function explanationsOf(text) {
  const asked = new Set(text.toLowerCase().split(/[^a-z0-9.-]+|::/));
  const message = messageRecords.findIndex(({ code }) => asked.has(code.toLowerCase()));
  const fields = descriptorFormats.flatMap(({ title, fields: own }) => own.filter((field) => asked.has(/\((\w+)\)/.exec(field.title)?.[1].toLowerCase() ?? field.name)).map((field) => ({ name: field.title, text: `${title}, bits ${bitsOf(field)}` })));
  const length = (/** @type {string[]} */ names) => Math.max(0, ...names.map((name) => (name.split(" ").every((word) => asked.has(word)) ? name.length : 0)));
  const said = topicRecords.filter(({ names }) => length(names)).sort((one, other) => length(other.names) - length(one.names));
  return [
    ...(message < 0 ? [] : [{ name: messageRecords[message].code, text: messageRecords[message].text, ...(database.remedies?.[message] ?? {}) }]),
    ...fields,
    ...said.slice(0, 1).map(({ names, text: about }) => ({ name: names[0], text: about })),
  ];
}
