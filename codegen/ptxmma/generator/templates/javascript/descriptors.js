/** Matrix descriptors, as `ptxmma.matrices.descriptors` makes and reads them. */

import { database } from "./database.js";

/** @typedef {import("./index.d.ts").DescriptorFields} DescriptorFields */
/** @typedef {import("./index.d.ts").MemoryFacts} MemoryFacts */

/** What the database says of shared memory; undefined where it says nothing. */
export const memoryFacts = /** @type {MemoryFacts | undefined} */ (database.memory);

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
