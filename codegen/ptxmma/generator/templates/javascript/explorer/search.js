/** One box that understands opcodes, PTX lines, asm strings, names of wrappers, CuTe atoms, targets, and words. */

import { database } from "../database.js";
import { descriptorFormats, explainedDescriptor } from "../descriptors.js";
import { instructionGroups, instructionOf } from "../instructions.js";
import { resolve } from "../lookup.js";
import { ask } from "../questions.js";
import { targetText, targetsIn } from "../target_names.js";

/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("./state.js").State} State */
/** @typedef {{text: string, note: string, set: Partial<State>, href?: string}} Answer an answer with an address is a link */

const MOST = 12;
/**
 * The possible meanings of a text, the likeliest first.
 * @param {string} given
 * @returns {Answer[]}
 */
export function answersTo(given) {
  const text = given.trim();
  if (!text) return [];
  const [bits] = /0x[0-9a-f]{1,16}$/i.exec(text) ?? [];
  const short = bits && bits.length < 11 && descriptorFormats.flatMap((format) => (format.bits === 32 ? format.kinds ?? [] : []).map((kind) => ({ format, kind }))).find(({ format, kind }) => explainedDescriptor(format, kind, BigInt(bits)).every(({ legal }) => legal));
  if (short) return [{ text: `Descriptor ${bits}`, note: `${short.format.title}, ${short.kind}`, set: { v: "descriptors", descriptor: [short.format.name, short.kind, bits].join() } }];
  if (bits) return [{ text: `Descriptor ${bits}`, note: "matrix descriptor", set: { v: "memory", bits: bits.toLowerCase() } }];
  const { words, operand, element, lane, tile, explanations } = ask(text);
  /** @type {Partial<State>} */
  const set = operand || lane !== null ? { v: "matrices", ...(element ? { at: `${operand}:${element}` } : lane === null ? {} : { at: `lane:${lane}` }) } : {};
  const { targets, rest } = targetsIn(words);
  const found = resolve(targets.length && !rest ? "" : words);
  const every = [...found.instructions, ...found.others].slice(0, MOST);
  const accepting = found.target && { target: found.target };
  const site = document.documentElement.dataset.reference;
  const href = site && `${site}../search.html?q=${encodeURIComponent(text)}`;
  const more = [
    ...(tile ? [{ text: `${tile.rows} × ${tile.cols} ${tile.type}, ${tile.majorness}-major`, note: `${tile.bytes} bytes to expect`, set: { v: "memory", family: tile.family, image: [tile.type, tile.majorness, tile.swizzle, tile.rows, tile.cols].join() } }] : []),
    ...explanations.map((each) => ({ text: each.name, note: each.text, set: {}, href })),
  ];
  if (every.length) return [...every.map((instruction, place) => answer(instruction, { ...set, ...accepting }, place ? [] : found.reasons)), ...more];
  if (targets.length > 1 || (targets.length && !rest)) return targets.map((target) => ({ text: targetText(target), note: "only what this target accepts", set: { target } }));
  const [target = ""] = targets;
  const named = byWords(rest, target).slice(0, MOST).map((each) => answer(each, { ...set, ...(target && { target }) }));
  return [...more, ...named, ...(href ? [{ text, note: "search the reference", set: {}, href }] : [])];
}

/**
 * @param {Instruction} instruction
 * @param {Partial<State>} set
 * @param {string[]} [reasons] why it is the first
 * @returns {Answer}
 */
function answer(instruction, set, reasons = []) {
  const { group } = instruction;
  const many = group.numbers.length > 1 ? ` · ${group.extent.toUpperCase()} = ${group.numbers[0]}…${group.numbers[group.numbers.length - 1]}` : "";
  const [first] = Object.keys(instruction.accepted);
  return { text: instruction.canonical, note: `${first ?? "no target"}${Object.keys(instruction.accepted).length > 1 ? " and others" : ""}${many}${reasons.map((reason) => ` · ${reason}`).join("")}`, set: { i: instruction.canonical, ...set } };
}

/**
 * The instructions in whose names and titles all words stand.
 * @param {string} text
 * @param {string} target
 * @returns {Instruction[]}
 */
function byWords(text, target) {
  const words = text.toLowerCase().split(/[\s,]+/).filter(Boolean);
  const accepted = instructionGroups().filter((group) => !target || target in group.accepted).map((group) => instructionOf(group, group.numbers[0]));
  return accepted.filter(({ title, canonical, identifier, qualifiers }) => {
    const types = Object.values(qualifiers).map((value) => database.types[value]?.title);
    const all = [title, canonical, identifier, ...types].join(" ").toLowerCase();
    return words.length && words.every((word) => all.includes(word));
  });
}
