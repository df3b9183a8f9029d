/** Probable mistakes in a matrix descriptor, as `ptxmma.matrices.descriptors` finds them. */

import { base_offset_of, swizzle } from "./shared_memory.js";
import { decodedDescriptor, descriptorReach, memoryFacts } from "./descriptors.js";

/** @typedef {import("./index.d.ts").DescriptorFields} DescriptorFields */
/** @typedef {import("./index.d.ts").MemoryFacts} MemoryFacts */
/** @typedef {import("./index.d.ts").Suspicion} Suspicion */
/** @typedef {MemoryFacts["swizzles"][number]} Mode */
/** @typedef {MemoryFacts["strides"][string][string]} Strides */

const STRIDE_FIELDS = /** @type {const} */ ({ lbo: "leading_byte_offset", sbo: "stride_byte_offset" });
const STRIDE_NAMES = /** @type {("lbo" | "sbo")[]} */ (Object.keys(STRIDE_FIELDS));
/** A stride that skips more groups of lines than this is taken for bytes. */
const MOST_GROUPS = 64;
const DESCRIPTOR_BITS = 64;

/**
 * The probable mistakes in the 64 bits of a descriptor.  Without a majorness only what is suspicious for every majorness.
 * @param {bigint} bits
 * @param {string} [majorness]
 * @returns {Suspicion[]}
 */
export function suspicions(bits, majorness) {
  const facts = memoryFacts;
  const read = decodedDescriptor(bits);
  const mode = facts?.swizzles.find((each) => each.name === read.swizzle);
  if (!facts || !mode) return [];
  const every = facts.layouts.filter((each) => each.swizzles.includes(mode.name)).map((each) => each.majorness);
  const judged = (majorness ? [majorness] : every).map((each) => {
    const lines = each === "K" ? mode.atom_k[0] : mode.atom_mn[1];
    const used = facts.strides[each][mode.name];
    return [...ofStrides(facts, read, mode, lines, used), ...inBytes(facts, read, mode, lines, used)];
  });
  const shared = judged[0].filter((one) => judged.every((others) => others.some((other) => other.field === one.field && other.rule === one.rule)));
  return [...unusedBits(facts, bits), ...ofPattern(facts, read, mode), ...shared];
}

/**
 * @param {MemoryFacts} facts
 * @param {bigint} bits
 * @returns {Suspicion[]}
 */
function unusedBits(facts, bits) {
  const ordered = [...facts.descriptor].sort((one, other) => one.low - other.low);
  return ordered.flatMap(({ name, low: first, width, shift = 0 }, place) => {
    const low = first + width, end = ordered[place + 1]?.low ?? DESCRIPTOR_BITS;
    if (end === low || !((bits >> BigInt(low)) & ((1n << BigInt(end - low)) - 1n))) return [];
    const said = end - low === 1 ? `bit ${low} is not 0; it is` : `bits ${end - 1}:${low} are not 0; they are`;
    const most = (2 ** width - 1) * 2 ** shift;
    return [{ field: "", rule: "unused", text: `${said} ignored; was ${name} larger than the ${most} that its field holds?` }];
  });
}

/**
 * @param {MemoryFacts} facts
 * @param {DescriptorFields} read
 * @param {Mode} mode
 * @returns {Suspicion[]}
 */
function ofPattern(facts, read, mode) {
  const base = Number(read.base_offset), start = Number(read.start_address);
  if (mode.bytes === facts.alignment) {
    return base ? [{ field: "base_offset", rule: "base", text: `a base offset of ${base}, but nothing is swizzled: it has no effect` }] : [];
  }
  const first = start - (start % mode.bytes);
  const needed = base_offset_of(first, mode.pattern);
  if (swizzle(first, mode.bytes, base) === swizzle(first, mode.bytes, needed)) return [];
  if (base) {
    return [{ field: "base_offset", rule: "pattern", text: `a base offset of ${base}, but a pattern that starts at ${first} needs ${needed}` }];
  }
  const text = `${start} is not in the first line of a pattern, which repeats every ${mode.pattern} bytes: right where the matrix is swizzled by absolute addresses, as TMA does; a pattern that starts at ${first} needs base offset ${needed}`;
  return [{ field: "start_address", rule: "pattern", text }];
}

/**
 * @param {MemoryFacts} facts
 * @param {DescriptorFields} read
 * @param {Mode} mode
 * @param {number} lines
 * @param {Strides} used
 * @returns {Suspicion[]}
 */
function ofStrides(facts, read, mode, lines, used) {
  const group = lines * mode.bytes, start = Number(read.start_address), end = descriptorReach(facts);
  /** @type {Suspicion[]} */
  const made = [];
  for (const stride of STRIDE_NAMES) {
    const field = STRIDE_FIELDS[stride], name = stride.toUpperCase(), value = Number(read[field]);
    const all = used.all.includes(stride);
    if (!all && (!used.users[stride] || value <= bytesCounted(facts, field))) continue;
    const only = all ? "" : `; only ${used.users[stride].join(" and ")} can use ${name} here`;
    const add = (/** @type {string} */ rule, /** @type {string} */ text) => made.push({ field, rule, text: text + only });
    if (value === 0) add("zero", `${name} is 0: all groups of ${lines} lines start at one address`);
    else if (value < group) add("overlap", `${name} is ${value} bytes, but a group of ${lines} lines takes ${group}: they overlap`);
    else if (value % mode.pattern) add("phase", `${name} = ${value} is not a multiple of ${mode.pattern}, the bytes of a pattern: groups differ in their swizzle phase`);
    if (start + value >= end) add("reach", `${name} leads from ${start} to ${start + value}; descriptors reach below ${end}`);
  }
  return made;
}

/**
 * @param {MemoryFacts} facts
 * @param {DescriptorFields} read
 * @param {Mode} mode
 * @param {number} lines
 * @param {Strides} used
 * @returns {Suspicion[]}
 */
function inBytes(facts, read, mode, lines, used) {
  const group = lines * mode.bytes;
  const strides = STRIDE_NAMES.filter((stride) => used.users[stride]);
  const values = strides.map((stride) => Number(read[STRIDE_FIELDS[stride]]));
  return strides.flatMap((stride, place) => {
    const field = STRIDE_FIELDS[stride], value = values[place], units = bytesCounted(facts, field), raw = value / units;
    const others = values.filter((_, other) => other !== place);
    const large = value > MOST_GROUPS * Math.max(group, ...others);
    if (!raw || raw % group || !(large || (raw === group && !values.includes(group)))) return [];
    const text = `${stride.toUpperCase()} holds ${raw}, which means ${value} bytes, since the field counts units of ${units}: are ${raw} bytes meant? They are ${Math.floor(raw / units)} in the field`;
    return [{ field, rule: "bytes", text }];
  });
}

/**
 * The bytes that a field counts in.
 * @param {MemoryFacts} facts
 * @param {string} name
 */
function bytesCounted(facts, name) {
  return 2 ** (facts.descriptor.find((field) => field.name === name)?.shift ?? 0);
}
