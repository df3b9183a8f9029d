/** Matrix descriptors, as `ptxmma.matrices.descriptors` makes and reads them. */

import { database } from "./database.js";
import { formulaOf } from "./formulas.js";
import { holds, numbersOf, recordsByColumn } from "./short_texts.js";

/** @typedef {import("./index.d.ts").DescriptorFields} DescriptorFields */
/** @typedef {import("./index.d.ts").DescriptorFormat} DescriptorFormat */
/** @typedef {import("./index.d.ts").FieldValue} FieldValue */
/** @typedef {import("./index.d.ts").MemoryFacts} MemoryFacts */

const descriptorFields = database.fields ? recordsByColumn(database.fields) : [];
const fieldCases = database.cases ? recordsByColumn(database.cases) : [];

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

/** @type {Map<string, MemoryFacts>} */
const knownMemory = new Map();

/**
 * The facts about the matrices that the instructions of a family read from shared memory; by default the database's first family with
 * matrix descriptors.  Undefined where there are none.
 * @param {string} [family]
 * @returns {MemoryFacts | undefined}
 */
export function sharedMemoryOf(family) {
  const every = database.memory?.families ?? [];
  const own = family === undefined ? every[0] : every.find((each) => `${family}.`.startsWith(`${each.family}.`));
  const format = descriptorFormats.find((each) => each.name === own?.descriptor);
  if (!database.memory || !own || !format) return undefined;
  const known = knownMemory.get(own.family);
  if (known) return known;
  const { families, ...shared } = database.memory;
  const swizzles = shared.swizzles.filter(({ name }) => name in own.encodings).map((mode) => ({ formula: shared.swizzle_formula, ...mode, encoding: own.encodings[mode.name] }));
  const layouts = shared.layouts.map((each) => ({ ...each, swizzles: each.swizzles.filter((name) => name in own.encodings) })).filter((each) => each.swizzles.length);
  const facts = { ...shared, ...own, swizzles, layouts, format, descriptor: format.fields };
  knownMemory.set(own.family, facts);
  return facts;
}

/**
 * The families that read matrices through descriptors; only those whose descriptors hold what the bits always hold, where they mark one.
 * @param {bigint} [bits]
 * @returns {string[]}
 */
export function describedFamilies(bits) {
  const every = (database.memory?.families ?? []).map(({ family }) => family);
  const marked = every.filter((family) => {
    const marks = sharedMemoryOf(family)?.descriptor.filter(({ fixed }) => fixed) ?? [];
    return bits !== undefined && marks.length && marks.every(({ low, width, fixed }) => (bits >> BigInt(low)) % 2n ** BigInt(width) === BigInt(fixed ?? 0));
  });
  return marked.length ? marked : every;
}

/** The shared memory of the database as its first family reads it; undefined where there is none. */
export const memoryFacts = sharedMemoryOf();

/**
 * The bits of a descriptor that a text such as `0x4000` says; null for any other text, and for more bits than a descriptor has.
 * @param {string} text
 * @param {number} [width]
 * @returns {bigint | null}
 */
export function bitsIn(text, width = 64) {
  return /^0x[0-9a-f]{1,16}$/i.test(text) && BigInt(text) < 1n << BigInt(width) ? BigInt(text) : null;
}

/**
 * The address to which a swizzle mode moves a byte; applied twice, it leads back.
 * @param {MemoryFacts["swizzles"][number]} mode
 * @param {number} address
 * @param {number} baseOffset
 * @returns {number}
 */
export function swizzled({ formula, bytes }, address, baseOffset) {
  return formulaOf(formula)({ address, base_offset: baseOffset, span: bytes });
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
 * The 64 bits of a descriptor; throws a RangeError for a value without an encoding.  A field that is left out has its default.
 * @param {DescriptorFields} fields
 * @param {MemoryFacts | undefined} [facts]
 * @returns {bigint}
 */
export function encodedDescriptor(fields, facts = memoryFacts) {
  let bits = 0n;
  for (const { name, low, width, shift = 0, fixed, cases, default: usual } of facts?.descriptor ?? []) {
    const given = fields[name];
    const names = Object.assign({}, ...(cases ?? []).map(({ values }) => values ?? {}));
    const most = (2 ** width - 1) * 2 ** shift;
    const value = fixed ?? (given === undefined ? usual : cases?.some(({ values }) => values) ? names[given] : Number(given) / 2 ** shift);
    if (value === undefined || !(value >= 0 && value <= most / 2 ** shift) || value % 1) {
      throw new RangeError(`${name} = ${given} has no encoding; allowed: ${shift ? `multiples of ${2 ** shift} from 0 to ${most}` : `0..${most}`}`);
    }
    bits |= BigInt(value) << BigInt(low);
  }
  return bits;
}

/**
 * The fields of a descriptor; bits that belong to no field are ignored, as instructions do.
 * @param {bigint} bits
 * @param {MemoryFacts | undefined} [facts]
 * @returns {DescriptorFields}
 */
export function decodedDescriptor(bits, facts = memoryFacts) {
  const rows = facts ? explainedDescriptor(facts.format, "", bits) : [];
  return Object.fromEntries(rows.filter(({ field }) => field.fixed === undefined).map(({ field, value }) => [field.name, value]));
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
  const known = { [format.qualifier ?? ""]: kind };
  // A field whose cases test others comes after these.
  /** @type {(field: DescriptorFormat["fields"][number]) => number} */
  const depth = (field) => Math.max(0, ...format.fields.filter(({ name }) => (field.cases ?? []).some(({ when = "" }) => new RegExp(`\\b${name}=`).test(when))).map((each) => 1 + depth(each)));
  const rows = [...format.fields].sort((one, other) => depth(one) - depth(other)).map((field) => {
    const { name, low, width, upper, shift = 0, less = 0, fixed, cases } = field;
    const own = Number((bits >> BigInt(low)) & ((1n << BigInt(width)) - 1n));
    const stored = upper === undefined ? own : own + Number((bits >> BigInt(upper)) & 1n) * 2 ** width;
    const fitting = (cases ?? []).filter(({ when }) => holds(when, known));
    const named = fitting.flatMap(({ values = {} }) => Object.entries(values)).find(([, number]) => number === stored);
    const value = named ? (/^\d+$/.test(named[0]) ? Number(named[0]) : named[0]) : stored * 2 ** shift + less;
    known[name] = value;
    const legal = fixed !== undefined ? stored === fixed : !cases || Boolean(named) || fitting.some(({ values, below = Infinity }) => !values && Number(value) < below) || (!fitting.length && !stored);
    return { field, stored, value, legal };
  });
  return rows.sort((one, other) => one.field.low - other.field.low);
}
