/** Matrices in shared memory, as `ptxmma.matrices.shared.canonical` lays them out. */

import { database } from "./database.js";
import { offsets, swizzles } from "./shared_memory.js";
import { descriptorReach, encodedDescriptor, sharedMemoryOf } from "./descriptors.js";

/** @typedef {import("./index.d.ts").DescriptorFields} DescriptorFields */
/** @typedef {import("./index.d.ts").ImageOptions} ImageOptions */
/** @typedef {import("./index.d.ts").TensorMapBox} TensorMapBox */

/**
 * The types that the instructions of a family read with a majorness, and with a swizzle where one is given; by default the first family.
 * @param {string} majorness
 * @param {string} [swizzle]
 * @param {string} [family]
 * @returns {string[]}
 */
export function readableTypes(majorness, swizzle, family) {
  const rows = sharedMemoryOf(family)?.reads.filter((each) => each.majorness === majorness && (!swizzle || each.swizzles.includes(swizzle))) ?? [];
  return Object.keys(database.types).filter((name) => rows.some(({ elements }) => elements.includes(name)));
}

/**
 * Where a whole matrix lies in a canonical layout.  The dimension that the majorness names is contiguous; it is cut into panels as wide
 * as the swizzle, and the lines of a panel follow each other in groups.
 */
export class MemoryImage {
  /**
   * Throws a RangeError for extents that do not fill panels and groups, and for values without an encoding.
   * @param {ImageOptions} options
   */
  constructor(options) {
    const facts = sharedMemoryOf(options.family);
    if (!facts) throw new RangeError(`${options.family} reads no matrices from shared memory`);
    const mode = facts.swizzles.find((each) => each.name === options.swizzle);
    const canonical = facts.layouts.find((each) => each.majorness === options.majorness && each.swizzles.includes(options.swizzle));
    if (!mode || !canonical) throw new RangeError(`no canonical layout is ${options.majorness}-major with swizzle ${options.swizzle}`);
    const readable = readableTypes(options.majorness, options.swizzle, options.family);
    if (!readable.includes(options.type)) throw new RangeError(`${options.type} cannot be read ${options.majorness}-major with swizzle ${options.swizzle}: ${readable.join(", ")} can`);
    this.facts = facts;
    this.mode = mode;
    this.canonical = canonical;
    this.type = options.type;
    this.majorness = options.majorness;
    this.swizzle = options.swizzle;
    this.x = options.x;
    this.k = options.k;
    this.bits = database.types[options.type].bits;
    this.lines = canonical.lines;
    this.panel = (mode.bytes * 8) / this.bits;
    this.perUnit = (facts.alignment * 8) / this.bits;
    this.start = options.start ?? 0;
    this.baseOffset = options.baseOffset ?? 0;
    const [inner, outer] = this.ordered;
    if (!(inner > 0) || inner % this.panel) throw new RangeError(`${this.byRow ? "k" : "x"} = ${inner} must be a multiple of ${this.panel}: panels of swizzle ${mode.name} have ${mode.bytes} bytes`);
    if (!(outer > 0) || outer % this.lines) throw new RangeError(`${this.byRow ? "x" : "k"} = ${outer} must be a multiple of ${this.lines}, the lines of an atom`);
    if (this.start % mode.bytes) throw new RangeError(`start = ${this.start} must be a multiple of ${mode.bytes} bytes`);
    const strides = this.#strides(options.lbo, options.sbo);
    this.lbo = strides.lbo;
    this.sbo = strides.sbo;
    encodedDescriptor(this.descriptor(), facts);
    const last = this.offset(this.x - 1, this.k - 1);
    this.size = (Math.floor(last / mode.bytes) + 1) * mode.bytes;
    const end = descriptorReach(facts);
    if (this.start + this.size > end) throw new RangeError(`the image would reach from ${this.start} to ${this.start + this.size}; descriptors reach the addresses below ${end}`);
  }

  /** Whether rows of A, or columns of B, are contiguous along k. */
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
    return offsets[this.majorness][this.swizzle](x, k, this.bits, this.lbo, this.sbo);
  }

  /**
   * Absolute address of the byte in which an element starts.
   * @param {number} x
   * @param {number} k
   * @returns {number}
   */
  address(x, k) {
    return swizzles[this.swizzle](this.start + this.offset(x, k), this.baseOffset);
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
      for (let x = 0; x < this.x; x += 1) {
        for (let k = 0; k < depth; k += 1) {
          if (this.offset(x, step * depth + k) !== first + this.offset(x, k)) {
            throw new RangeError(`the sub-tile ${depth} deep at k = ${step * depth} has no descriptor: panels are ${this.panel} elements wide`);
          }
        }
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
    if (swizzles[this.swizzle](0, this.baseOffset)) throw new RangeError(`TMA swizzles by absolute addresses: no mode of it writes an image with base offset ${this.baseOffset}`);
    const { largest_box: largest, alignment } = this.facts.tensor_map;
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
    return { swizzle: this.mode.tma, inner: (this.mode.bytes * 8) / Math.max(this.bits, 8), outer: box, boxes, transactionBytes: this.mode.bytes * box * boxes };
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
