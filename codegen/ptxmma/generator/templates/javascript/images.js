/** Matrices in shared memory, as `ptxmma.matrices.shared.canonical` lays them out. */

import { database } from "./database.js";
import { descriptorReach, encodedDescriptor, sharedMemoryOf, swizzled } from "./descriptors.js";
import { formulaOf } from "./formulas.js";

/** @typedef {import("./index.d.ts").DescriptorFields} DescriptorFields */
/** @typedef {import("./index.d.ts").ImageOptions} ImageOptions */
/** @typedef {import("./index.d.ts").MemoryFacts} MemoryFacts */
/** @typedef {import("./index.d.ts").TensorMapBox} TensorMapBox */

/**
 * The types that the instructions of a family read with a majorness, and with a swizzle where one is given; by default the first family.
 * @param {string} majorness
 * @param {string} [swizzle]
 * @param {string} [family]
 * @param {boolean} [padded] those that they read with padding
 * @returns {string[]}
 */
export function readableTypes(majorness, swizzle, family, padded = false) {
  const facts = sharedMemoryOf(family);
  const rows = facts?.[padded ? "padded" : "reads"].filter((each) => each.majorness === majorness && (!swizzle || each.swizzles.includes(swizzle))) ?? [];
  return Object.keys(database.types).filter((name) => rows.some(({ elements }) => elements.includes(name)));
}

/**
 * Elements in the bytes that a swizzle moves together: as many as fill them, or fewer where they are padded.
 * @param {MemoryFacts} facts
 * @param {string} type
 * @param {boolean} padded
 * @returns {number}
 */
export function elementsTogether(facts, type, padded) {
  return (padded && facts.padded.find(({ elements }) => elements.includes(type))?.group) || (facts.alignment * 8) / database.types[type].bits;
}

/**
 * The place of a whole matrix in a canonical layout.  The dimension that the majorness names is contiguous; it is cut into panels as wide
 * as the swizzle, and the lines of a panel follow each other in groups.
 */
export class MemoryImage {
  /**
   * Throws a RangeError for extents that do not fill panels and groups, and for values without an encoding.
   * @param {ImageOptions} options
   */
  constructor({ type, majorness, swizzle, x, k, padded = false, family, start = 0, baseOffset = 0, lbo, sbo }) {
    const facts = sharedMemoryOf(family);
    if (!facts) throw new RangeError(`${family} reads no matrices from shared memory`);
    const mode = facts.swizzles.find((each) => each.name === swizzle);
    const canonical = facts.layouts.find((each) => each.majorness === majorness && each.swizzles.includes(swizzle));
    if (!mode || !canonical) throw new RangeError(`no canonical layout is ${majorness}-major with swizzle ${swizzle}`);
    const readable = readableTypes(majorness, swizzle, family, padded);
    if (!readable.includes(type)) throw new RangeError(`${type} cannot be read ${majorness}-major with swizzle ${swizzle}${padded ? " and padding" : ""}: ${readable.join(", ") || "no type"} can`);
    this.facts = facts;
    this.mode = mode;
    this.canonical = canonical;
    this.type = type;
    this.majorness = majorness;
    this.swizzle = swizzle;
    this.padded = padded;
    this.x = x;
    this.k = k;
    this.bits = database.types[type].bits;
    this.perUnit = elementsTogether(facts, type, padded);
    /** Bits between neighbouring elements, on the average. */
    this.width = (facts.alignment * 8) / this.perUnit;
    this.lines = canonical.lines;
    this.panel = (mode.bytes * 8) / this.width;
    this.start = start;
    this.baseOffset = baseOffset;
    const [inner, outer] = this.ordered;
    if (!(inner > 0) || inner % this.panel) throw new RangeError(`${this.byRow ? "k" : "x"} = ${inner} must be a multiple of ${this.panel}: panels of swizzle ${mode.name} have ${mode.bytes} bytes`);
    if (!(outer > 0) || outer % this.lines) throw new RangeError(`${this.byRow ? "x" : "k"} = ${outer} must be a multiple of ${this.lines}, the lines of an atom`);
    if (start % mode.bytes) throw new RangeError(`start = ${start} must be a multiple of ${mode.bytes} bytes`);
    const strides = this.#strides(lbo, sbo);
    this.lbo = strides.lbo;
    this.sbo = strides.sbo;
    encodedDescriptor(this.descriptor(), facts);
    const last = this.offset(x - 1, k - 1);
    this.size = (Math.floor(last / mode.bytes) + 1) * mode.bytes;
    const end = descriptorReach(facts);
    if (start + this.size > end) throw new RangeError(`the image would reach from ${start} to ${start + this.size}; descriptors reach the addresses below ${end}`);
  }

  /** True if rows of A, or columns of B, are contiguous along k. */
  get byRow() {
    return this.majorness === "K";
  }

  /** The extents of the contiguous dimension and of the other. */
  get ordered() {
    return this.byRow ? [this.k, this.x] : [this.x, this.k];
  }

  /**
   * Bytes from the start to an element, before the swizzle.
   * @param {number} x
   * @param {number} k
   * @returns {number}
   */
  offset(x, k) {
    const along = this.byRow ? k : x, place = along % this.perUnit;
    const byte = Math.floor(along / this.perUnit) * this.facts.alignment + Math.floor((place * this.bits) / 8);
    const { lbo, sbo } = this;
    return formulaOf(this.canonical.offset)({ x, k, [this.byRow ? "k" : "x"]: byte, lbo, sbo, span: this.mode.bytes });
  }

  /**
   * Absolute address of the byte in which an element starts.
   * @param {number} x
   * @param {number} k
   * @returns {number}
   */
  address(x, k) {
    return swizzled(this.mode, this.start + this.offset(x, k), this.baseOffset);
  }

  /**
   * A position by dimensions in memory as [x, k].
   * @param {number} contiguous
   * @param {number} other
   * @returns {[number, number]}
   */
  place(contiguous, other) {
    return this.byRow ? [other, contiguous] : [contiguous, other];
  }

  /**
   * Addresses of each 16 bytes of each line; a line is a row, of an MN-major matrix a column.  Throws a RangeError for strides with
   * which elements overlap.
   * @returns {number[][]}
   */
  units() {
    const [inner, outer] = this.ordered;
    const seen = new Set();
    return Array.from({ length: outer }, (_, line) =>
      Array.from({ length: inner / this.perUnit }, (_, unit) => {
        const address = this.address(...this.place(unit * this.perUnit, line));
        if (seen.has(address)) throw new RangeError(`lbo = ${this.lbo}, sbo = ${this.sbo}: two elements would lie at address ${address}`);
        seen.add(address);
        return address;
      }),
    );
  }

  /**
   * The fields of the descriptor of the sub-tile whose first element is (x, k).
   * @param {number} x
   * @param {number} k
   * @returns {DescriptorFields}
   */
  descriptor(x = 0, k = 0) {
    return {
      start_address: this.start + (x || k ? this.offset(x, k) : 0),
      leading_byte_offset: this.lbo,
      stride_byte_offset: this.sbo,
      base_offset: this.baseOffset,
      swizzle: this.swizzle,
    };
  }

  /**
   * The descriptors of the sub-tiles that follow each other along k; throws a RangeError where one has none.
   * @param {number} depth
   * @returns {DescriptorFields[]}
   */
  steps(depth) {
    if (!(depth > 0) || this.k % depth) throw new RangeError(`k = ${this.k} is not a multiple of ${depth}`);
    return Array.from({ length: this.k / depth }, (_, step) => {
      const first = this.offset(0, step * depth);
      // Offsets are sums of digits of x and of k: what holds for one row holds for all.
      for (let k = 0; k < depth; k += 1) {
        if (this.offset(0, step * depth + k) !== first + this.offset(0, k)) throw new RangeError(`the sub-tile ${depth} deep at k = ${step * depth} has no descriptor: panels are ${this.panel} elements wide`);
      }
      const fields = this.descriptor(0, step * depth);
      encodedDescriptor(fields, this.facts);
      return fields;
    });
  }

  /**
   * The swizzle and the largest box with which TMA writes this image; throws a RangeError where none does.
   * @returns {TensorMapBox}
   */
  get tma() {
    const { largest_box: largest, alignment, padded_box: paddedBox } = this.facts.tensor_map;
    if (this.padded && this.panel !== paddedBox) throw new RangeError(`TMA writes padded elements in boxes of ${paddedBox}; swizzle ${this.swizzle} has panels of ${this.panel}`);
    if (swizzled(this.mode, 0, this.baseOffset)) throw new RangeError(`TMA swizzles by absolute addresses: no mode of it writes an image with base offset ${this.baseOffset}`);
    const [inner, outer] = this.ordered;
    const dense = outer === this.lines || this[this.canonical.groups] === this.lines * this.mode.bytes;
    const together = dense ? outer : this.lines;
    let box = 0;
    for (let size = this.lines; size <= Math.min(together, largest); size += this.lines) if (together % size === 0) box = size;
    let boxes = 0;
    for (let line = 0; line < outer; line += box) {
      for (let along = 0; along < inner; along += this.panel) {
        const first = this.start + this.offset(...this.place(along, line));
        if (first % alignment) throw new RangeError(`TMA writes boxes to multiples of ${alignment} bytes; one of this image would start at ${first}`);
        boxes += 1;
      }
    }
    // Padding does not count.
    const transactionBytes = (this.mode.bytes * box * boxes * this.bits) / this.width;
    return { swizzle: this.mode.tma, inner: (this.mode.bytes * 8) / Math.max(this.width, 8), outer: box, boxes, transactionBytes };
  }

  /**
   * LBO and SBO: those that are given, dense ones for the others.
   * @param {number | undefined} lbo
   * @param {number | undefined} sbo
   * @returns {{lbo: number, sbo: number}}
   */
  #strides(lbo, sbo) {
    const { panels, groups } = this.canonical;
    /** @type {Record<string, number | undefined>} */
    const given = { lbo, sbo };
    const group = given[groups] ?? this.lines * this.mode.bytes;
    const panel = given[panels] ?? (this.ordered[1] / this.lines) * group;
    return panels === "lbo" ? { lbo: panel, sbo: group } : { lbo: group, sbo: panel };
  }
}
