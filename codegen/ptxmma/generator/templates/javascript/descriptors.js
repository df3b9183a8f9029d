/** Matrix descriptors, as `ptxmma.matrices.descriptors` makes and reads them. */

import { database } from "./database.js";
import { holds, numbersOf, recordsOf } from "./short_texts.js";

/** @typedef {import("./index.d.ts").DescriptorFields} DescriptorFields */
/** @typedef {import("./index.d.ts").DescriptorFormat} DescriptorFormat */
/** @typedef {import("./index.d.ts").FieldValue} FieldValue */
/** @typedef {import("./index.d.ts").MemoryFacts} MemoryFacts */

const descriptorFields = database.fields ? recordsOf(database.fields) : [];
const fieldCases = database.cases ? recordsOf(database.cases) : [];

/** The formats of all descriptors. */
export const descriptorFormats = (database.descriptors ?? []).map((format) => ({ ...format, fields: numbersOf(format.fields).map(expandedField) }));

/**
 * @param {number} number of an entry of `database.fields`
 * @returns {DescriptorFormat["fields"][number]}
 */
function expandedField(number) {
  const { cases, ...field } = descriptorFields[number];
  return cases === undefined ? field : { ...field, cases: numbersOf(cases).map((place) => fieldCases[place]) };
}

/** What the database says of shared memory; undefined where it says nothing. */
export const memoryFacts = database.memory && expandedMemory(database.memory);

/**
 * @param {NonNullable<typeof database.memory>} memory
 * @returns {MemoryFacts}
 */
function expandedMemory(memory) {
  return { ...memory, descriptor: descriptorFormats.find((format) => format.name === memory.descriptor)?.fields ?? [] };
}

/**
 * Descriptors start at addresses below this one, in bytes.
 * @param {MemoryFacts} facts
 * @returns {number}
 */
export function descriptorReach(facts) {
  const field = facts.descriptor.find((each) => each.name === "start_address");
  return field ? 2 ** (field.width + (field.shift ?? 0)) : 0;
}

/**
 * The 64 bits of a descriptor; throws a RangeError for a value without an encoding.
 * @param {DescriptorFields} fields
 * @returns {bigint}
 */
export function encodedDescriptor(fields) {
  let bits = 0n;
  for (const { name, low, width, shift = 0 } of memoryFacts?.descriptor ?? []) {
    const given = fields[name];
    const value = name === "swizzle" ? memoryFacts?.swizzles.find((mode) => mode.name === given)?.encoding : Number(given);
    const most = (2 ** width - 1) * 2 ** shift;
    if (value === undefined || !(value >= 0 && value <= most) || value % 2 ** shift) {
      throw new RangeError(`${name} = ${given} has no encoding; allowed: ${shift ? `multiples of ${2 ** shift} from 0 to ${most}` : `0..${most}`}`);
    }
    bits |= BigInt(value / 2 ** shift) << BigInt(low);
  }
  return bits;
}

/**
 * The fields of a descriptor; bits that belong to no field are ignored, as instructions do.
 * @param {bigint} bits
 * @returns {DescriptorFields}
 */
export function decodedDescriptor(bits) {
  /** @type {DescriptorFields} */
  const fields = {};
  for (const { name, low, width, shift = 0 } of memoryFacts?.descriptor ?? []) {
    const value = Number((bits >> BigInt(low)) & ((1n << BigInt(width)) - 1n)) * 2 ** shift;
    fields[name] = name === "swizzle" ? (memoryFacts?.swizzles.find((mode) => mode.encoding === value)?.name ?? value) : value;
  }
  return fields;
}

/**
 * Every field of the bits of a descriptor, lowest first: what it holds, what that means, and whether it is legal for the kind on some target.
 * @param {DescriptorFormat} format
 * @param {string} kind
 * @param {bigint} bits
 * @returns {FieldValue[]}
 */
export function explainedDescriptor(format, kind, bits) {
  /** @type {Record<string, number | string>} */
  const known = { kind };
  // A field whose cases test others comes after these.
  const depth = (/** @type {DescriptorFormat["fields"][number]} */ field) => /** @type {number} */ (Math.max(0, ...format.fields.filter(({ name }) => (field.cases ?? []).some(({ when = "" }) => new RegExp(`\\b${name}=`).test(when))).map((each) => 1 + depth(each))));
  const rows = [...format.fields].sort((one, other) => depth(one) - depth(other)).map((field) => {
    const { name, low, width, upper, shift = 0, less = 0, fixed, cases } = field;
    const own = Number((bits >> BigInt(low)) & ((1n << BigInt(width)) - 1n));
    const stored = upper === undefined ? own : own + Number((bits >> BigInt(upper)) & 1n) * 2 ** width;
    const fitting = (cases ?? []).filter(({ when }) => holds(when, known));
    const named = fitting.flatMap(({ values = {} }) => Object.entries(values)).find(([, number]) => number === stored);
    const value = named ? (/^\d+$/.test(named[0]) ? Number(named[0]) : named[0]) : stored * 2 ** shift + less;
    known[name] = value;
    const legal = fixed !== undefined ? stored === fixed : !cases || Boolean(named) || fitting.some(({ values }) => !values) || (!fitting.length && !stored);
    return { field, stored, value, legal };
  });
  return rows.sort((one, other) => one.field.low - other.field.low);
}
