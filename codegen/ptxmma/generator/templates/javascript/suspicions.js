/** Probable mistakes in a matrix descriptor, as `ptxmma.matrices.descriptors` finds them. */

import { bitsOf } from "./arrangements.js";
import { decodedDescriptor, descriptorReach, explainedDescriptor, sharedMemoryOf, swizzled } from "./descriptors.js";
import { formulaOf } from "./formulas.js";
import { holds } from "./short_texts.js";

/** @typedef {import("./index.d.ts").DescriptorFormat} DescriptorFormat */
/** @typedef {import("./index.d.ts").FieldValue} FieldValue */
/** @typedef {import("./index.d.ts").MemoryFacts} MemoryFacts */
/** @typedef {import("./index.d.ts").Suspicion} Suspicion */

const STRIDE_FIELDS = /** @type {const} */ ({ lbo: "leading_byte_offset", sbo: "stride_byte_offset" });

/**
 * The probable mistakes in the 64 bits of a descriptor.  Without a majorness only what is suspicious for every majorness.  None for bits
 * that name no swizzle mode, and for a majorness that the mode does not have.
 * @param {bigint} bits
 * @param {string} [majorness]
 * @param {{element?: string, family?: string}} [matrix] the type of its elements, and the family that reads it: by default the first
 * @returns {Suspicion[]}
 */
export function suspicions(bits, majorness, { element, family } = {}) {
  const facts = sharedMemoryOf(family);
  const rows = facts ? explainedDescriptor(facts.format, "", bits) : [];
  const read = decodedDescriptor(bits, facts);
  const mode = facts?.swizzles.find((each) => each.name === read.swizzle);
  if (!facts || !mode) return [];
  const wrong = facts.format.spare === "zero" ? illegalBits(facts.format, rows, bits) : unusedBits(facts.format, bits);
  const unreadable = unreadableType(facts, mode.name, majorness, element);
  if (unreadable) return [...wrong, unreadable];
  const { pattern } = mode, start = Number(read.start_address);
  const stored = Object.fromEntries(rows.map((row) => [row.field.name, row.stored]));
  /** @type {Record<string, number>} */
  const numbers = {
    start_address: start, least_start: start, inside: start % pattern, base_offset: Number(read.base_offset), leading_mode: stored.leading_mode ?? 0,
    span: mode.bytes, pattern, alignment: facts.alignment, reach: descriptorReach(facts),
  };
  Object.assign(numbers, patternNumbers(facts, mode, numbers));
  if (majorness) numbers.along_k = Number(majorness === "K");
  const every = [...new Set(facts.reads.filter((each) => each.swizzles.includes(mode.name)).map((each) => each.majorness))];
  if (majorness && !facts.strides[majorness]?.[mode.name]) return [];
  const judged = (majorness ? [majorness] : every).map((each) => ofStrides(facts, mode.name, each, read, numbers));
  const shared = judged[0].filter((one) => judged.every((others) => others.some((other) => other.field === one.field && other.rule === one.rule)));
  return [...wrong, ...held(facts, "", numbers, {}), ...shared];
}

/**
 * The base offsets that patterns need, and whether the descriptor's own moves bytes otherwise.
 * @param {MemoryFacts} facts
 * @param {MemoryFacts["swizzles"][number]} mode
 * @param {Record<string, number>} numbers
 * @returns {Record<string, number>}
 */
function patternNumbers({ base_offset: formula, suspicions: { starts } }, mode, numbers) {
  const start = (/** @type {string} */ name) => (name in starts ? formulaOf(starts[name])(numbers) : 0);
  const needed = (/** @type {string} */ name) => formulaOf(formula)({ start: start(name), pattern: mode.pattern });
  const moved = (/** @type {number} */ base) => swizzled(mode, start("phase"), base);
  const phase = needed("phase");
  return { needed: needed("first"), phase_needed: phase, misplaced: Number(moved(numbers.base_offset) !== moved(phase)) };
}

/**
 * The rules that hold, of a stride by the name of its field, or of the other fields: those whose numbers are all known.
 * @param {MemoryFacts} facts
 * @param {string} stride
 * @param {Record<string, number>} numbers
 * @param {Record<string, string>} words
 * @returns {Suspicion[]}
 */
function held(facts, stride, numbers, words) {
  const own = facts.suspicions.rules.filter(({ field, names, when }) => !field === Boolean(stride) && names.split(" ").every((name) => name in numbers) && formulaOf(when)(numbers));
  const said = (/** @type {string} */ text) => text.replace(/\{([^}]+)\}/g, (_, part) => words[part] ?? String(formulaOf(part)(numbers)));
  return own.map(({ rule, field, severity, text }) => ({ field: field || stride, rule, text: said(text), severity }));
}

/**
 * @param {MemoryFacts} facts
 * @param {string} swizzle
 * @param {string} majorness
 * @param {Record<string, number | string>} read
 * @param {Record<string, number>} numbers
 * @returns {Suspicion[]}
 */
function ofStrides(facts, swizzle, majorness, read, numbers) {
  const users = facts.strides[majorness][swizzle];
  const lines = facts.layouts.find((each) => each.majorness === majorness && each.swizzles.includes(swizzle))?.lines ?? 0;
  const used = /** @type {("lbo" | "sbo")[]} */ (Object.keys(STRIDE_FIELDS)).filter((stride) => users[stride]);
  // With leading_mode 1 the leading dimension is an address.
  const values = Object.fromEntries(used.filter((stride) => stride !== "lbo" || !numbers.leading_mode).map((stride) => [stride, Number(read[STRIDE_FIELDS[stride]])]));
  return Object.entries(values).flatMap(([stride, value]) => {
    const field = STRIDE_FIELDS[/** @type {"lbo" | "sbo"} */ (stride)], other = used.find((each) => each !== stride), byAll = !users[stride].length;
    const units = 2 ** (facts.descriptor.find(({ name }) => name === field)?.shift ?? 0);
    /** @type {Record<string, number>} */
    const own = { ...numbers, lines, value, units, by_all: Number(byAll) };
    if (!other || other in values) own.other = other ? values[other] : 0;
    const name = stride.toUpperCase(), only = byAll ? "" : `; only ${users[stride].join(" and ")} can use ${name} here`;
    return held(facts, field, own, { name, only });
  });
}

/**
 * The runs of bits that belong to no field, lowest first, as the lowest bit and the number of bits.
 * @param {DescriptorFormat} format
 * @returns {[low: number, width: number][]}
 */
function spareBits(format) {
  const used = new Set(format.fields.flatMap(({ low, width, upper }) => [...Array.from({ length: width }, (_, bit) => low + bit), ...(upper === undefined ? [] : [upper])]));
  /** @type {[number, number][]} */
  const runs = [];
  for (let bit = 0; bit < (format.bits ?? 64); bit += 1) {
    const last = runs[runs.length - 1];
    if (used.has(bit)) continue;
    if (last && last[0] + last[1] === bit) last[1] += 1;
    else runs.push([bit, 1]);
  }
  return runs;
}

/**
 * @param {number} low
 * @param {number} width
 */
function bitsText(low, width) {
  return `${width > 1 ? "bits" : "bit"} ${bitsOf({ low, width })}`;
}

/**
 * The number that the bits of a run hold.
 * @param {bigint} bits
 * @param {number} low
 * @param {number} width
 */
function taken(bits, low, width) {
  return (bits >> BigInt(low)) & ((1n << BigInt(width)) - 1n);
}

/**
 * @param {DescriptorFormat} format
 * @param {bigint} bits
 * @returns {Suspicion[]}
 */
function unusedBits(format, bits) {
  return spareBits(format).filter(([low, width]) => taken(bits, low, width)).map(([low, width]) => {
    const below = format.fields.filter((field) => field.low < low).reduce((one, other) => (other.low > one.low ? other : one));
    const said = `${bitsText(low, width)} ${width === 1 ? "is not 0; it is" : "are not 0; they are"}`;
    const most = (2 ** below.width - 1) * 2 ** (below.shift ?? 0);
    return { field: "", rule: "unused", text: `${said} ignored; was ${below.name} larger than the ${most} that its field holds?`, severity: "warning" };
  });
}

/**
 * @param {DescriptorFormat} format
 * @param {FieldValue[]} rows
 * @param {bigint} bits
 * @returns {Suspicion[]}
 */
function illegalBits(format, rows, bits) {
  const known = Object.fromEntries(rows.map(({ field, value }) => [field.name, value]));
  const fields = rows.filter(({ legal }) => !legal).map(({ field: { name, fixed, cases = [] }, stored }) => {
    if (fixed !== undefined) return { field: name, text: `${name} is ${stored}; it is always ${fixed}` };
    const legal = cases.filter(({ when }) => holds(when, known)).flatMap(({ values = {} }) => Object.entries(values));
    const said = legal.sort(([, one], [, other]) => one - other).map(([value, held]) => (String(held) === value ? value : `${held} (${value})`));
    return { field: name, text: `${name} holds ${stored}; allowed: ${said.join(", ") || "0"}` };
  });
  const spare = spareBits(format).filter(([low, width]) => taken(bits, low, width)).map(([low, width]) => ({ field: "", text: `${bitsText(low, width)} must be 0` }));
  return [...fields, ...spare].map((each) => ({ ...each, rule: "illegal", severity: "warning" }));
}

/**
 * The suspicion that no instruction reads a type so; undefined where one does, or where the type is none that instructions read.
 * @param {MemoryFacts} facts
 * @param {string} swizzle
 * @param {string | undefined} majorness
 * @param {string | undefined} element
 * @returns {Suspicion | undefined}
 */
function unreadableType(facts, swizzle, majorness, element) {
  const reading = [...facts.reads, ...facts.padded].filter(({ elements }) => element && elements.includes(element));
  const wanted = reading.filter((each) => !majorness || each.majorness === majorness);
  if (!reading.length || wanted.some(({ swizzles }) => swizzles.includes(swizzle))) return undefined;
  const how = majorness ? ` ${majorness}-major` : "";
  const swizzles = new Set(wanted.flatMap((each) => each.swizzles));
  const text = wanted.length ? `${element} cannot be read${how} with swizzle ${swizzle}, only with ${[...swizzles].join(" or ")}` : `${element} cannot be read${how}, only ${reading.map((each) => each.majorness).join(" or ")}-major`;
  return { field: "swizzle", rule: "type", text, severity: "warning" };
}
