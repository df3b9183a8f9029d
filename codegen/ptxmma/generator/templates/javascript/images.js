/** Matrices in shared memory: images, accesses and descriptors, as `ptxmma.matrices.canonical`, `accesses` and `descriptors` have them. */

import { database } from "./database.js";
import { offsets, swizzle } from "./shared_memory.js";
import { layout, layoutNames } from "./layout_records.js";
import { applyMap } from "./bit_maps.js";

/** @typedef {import("./index.d.ts").AccessPattern} AccessPattern */
/** @typedef {import("./index.d.ts").DescriptorFields} DescriptorFields */
/** @typedef {import("./index.d.ts").ImageOptions} ImageOptions */
/** @typedef {import("./index.d.ts").Layout} Layout */
/** @typedef {import("./index.d.ts").MemoryFacts} MemoryFacts */
/** @typedef {import("./index.d.ts").TensorMapBox} TensorMapBox */
/** @typedef {(number | null)[]} Access */

/** Of the registers that hold several elements of a fragment. */
const REGISTER_BITS = 32;

/** What the database says of shared memory; undefined where it says nothing. */
export const memoryFacts = /** @type {MemoryFacts | undefined} */ (database.memory);

/**
 * The types that instructions read with a majorness.
 * @param {string} majorness
 * @returns {string[]}
 */
export function readableTypes(majorness) {
  return memoryFacts?.readable[majorness] ?? [];
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
    const facts = /** @type {MemoryFacts} */ (memoryFacts);
    const mode = facts.swizzles.find((each) => each.name === options.swizzle);
    const canonical = facts.layouts.find((each) => each.majorness === options.majorness && each.swizzles.includes(options.swizzle));
    if (!mode || !canonical) throw new RangeError(`no canonical layout is ${options.majorness}-major with swizzle ${options.swizzle}`);
    if (!readableTypes(options.majorness).includes(options.type)) {
      throw new RangeError(`${options.type} cannot be read ${options.majorness}-major: ${readableTypes(options.majorness).join(", ")} can`);
    }
    this.facts = facts;
    this.mode = mode;
    this.canonical = canonical;
    this.type = options.type;
    this.majorness = options.majorness;
    this.swizzle = options.swizzle;
    this.x = options.x;
    this.k = options.k;
    this.bits = database.types[options.type].bits;
    this.lines = this.byRow ? mode.atom_k[0] : mode.atom_mn[1];
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
    encodedDescriptor(this.descriptor());
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
    return this.#offsetWith(x, k, this.lbo, this.sbo);
  }

  /**
   * Absolute address of the byte in which an element starts.
   * @param {number} x
   * @param {number} k
   * @returns {number}
   */
  address(x, k) {
    return swizzle(this.start + this.offset(x, k), this.mode.bytes, this.baseOffset);
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
      encodedDescriptor(fields);
      return fields;
    });
  }

  /**
   * The swizzle and the largest box with which TMA writes this image; throws a RangeError where none does.
   * @returns {TensorMapBox}
   */
  get tma() {
    if (swizzle(0, this.mode.bytes, this.baseOffset)) throw new RangeError(`TMA swizzles by absolute addresses: no mode of it writes an image with base offset ${this.baseOffset}`);
    const { largest_box: largest, alignment } = this.facts.tensor_map;
    const [inner, outer] = this.ordered;
    const dense = outer === this.lines || this.offset(...this.place(0, this.lines)) === this.lines * this.mode.bytes;
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
    return { swizzle: this.mode.tma, inner: (this.mode.bytes * 8) / Math.max(this.bits, 8), outer: box, boxes };
  }

  /**
   * @param {number} x
   * @param {number} k
   * @param {number} lbo
   * @param {number} sbo
   * @returns {number}
   */
  #offsetWith(x, k, lbo, sbo) {
    return offsets[this.majorness][this.swizzle](x, k, this.bits, lbo, sbo);
  }

  /**
   * LBO and SBO: those that are given, dense ones for the others.
   * @param {number | undefined} lbo
   * @param {number | undefined} sbo
   * @returns {{lbo: number, sbo: number}}
   */
  #strides(lbo, sbo) {
    // The stride that counts at the first element of the second panel leads from panel to panel.
    const second = this.place(this.panel, 0);
    const leads = this.#offsetWith(...second, 1, 0) > this.#offsetWith(...second, 0, 0);
    const given = { lbo, sbo };
    const group = given[leads ? "sbo" : "lbo"] ?? this.lines * this.mode.bytes;
    const panel = given[leads ? "lbo" : "sbo"] ?? (this.ordered[1] / this.lines) * group;
    return leads ? { lbo: panel, sbo: group } : { lbo: group, sbo: panel };
  }
}

// --- descriptors ---------------------------------------------------------------------------------------------------------

/**
 * Descriptors start at addresses below this one, in bytes.
 * @param {MemoryFacts} facts
 * @returns {number}
 */
function descriptorReach(facts) {
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

// --- accesses ------------------------------------------------------------------------------------------------------------

/**
 * The words that an access asks of each bank, part by part: wide accesses are served in parts.
 * @param {Access} access
 * @param {number} width bytes of each lane
 * @returns {Map<number, Set<number>>[]}
 */
export function bankWords(access, width) {
  const { count, bytes } = /** @type {MemoryFacts} */ (memoryFacts).banks;
  const together = (count * bytes) / Math.max(width, bytes);
  /** @type {Map<number, Set<number>>[]} */
  const parts = [];
  for (let first = 0; first < access.length; first += together) {
    /** @type {Map<number, Set<number>>} */
    const banks = new Map();
    for (const address of access.slice(first, first + together)) {
      if (address === null) continue;
      for (let word = Math.floor(address / bytes); word < Math.ceil((address + width) / bytes); word += 1) {
        const bank = word % count;
        if (!banks.has(bank)) banks.set(bank, new Set());
        banks.get(bank)?.add(word);
      }
    }
    parts.push(banks);
  }
  return parts;
}

/**
 * Wavefronts that an access of a warp needs.
 * @param {Access} access
 * @param {number} width
 * @returns {number}
 */
export function wavefronts(access, width) {
  return bankWords(access, width).reduce((sum, banks) => sum + Math.max(0, ...[...banks.values()].map((words) => words.size)), 0);
}

/**
 * The usual accesses of a warp to an image, with what the worst of each kind costs.
 * @param {MemoryImage} image
 * @returns {AccessPattern[]}
 */
export function accessPatterns(image) {
  const units = image.units();
  const warp = database.scopes.warp;
  const { alignment: unit, banks } = image.facts;
  const single = Math.max(image.bits / 8, 1);
  const flat = units.flat();
  /** @type {number[][]} */
  const columns = [];
  for (let first = 0; first < units.length; first += warp) {
    const group = units.slice(first, first + warp);
    for (let place = 0; place < units[0].length; place += 1) columns.push(group.map((line) => line[place]));
  }
  /** @type {number[][]} */
  const elements = [];
  // Elements of one word cost the same: one of them is enough.
  for (const column of columns) for (let byte = 0; byte < unit; byte += Math.max(single, banks.bytes)) elements.push(column.map((address) => address + byte));
  /** @type {number[][]} */
  const whole = [];
  for (let first = 0; first < flat.length; first += warp) whole.push(flat.slice(first, first + warp));
  const lines = `each of ${Math.min(units.length, warp)} lines`;
  return [
    patternOf(`${unit} bytes of ${lines}, as ldmatrix and stmatrix`, columns, unit, banks),
    { ...patternOf(`one element of ${lines}`, elements, single, banks), count: columns.length * image.perUnit },
    patternOf(`whole lines, ${unit} bytes in each lane`, whole, unit, banks),
    ...fragmentPatterns(image, units),
  ];
}

/**
 * @param {string} name
 * @param {Access[]} accesses
 * @param {number} width
 * @param {{count: number, bytes: number}} banks
 * @returns {AccessPattern}
 */
function patternOf(name, accesses, width, banks) {
  const costs = accesses.map((access) => wavefronts(access, width));
  const worst = Math.max(...costs);
  const lanes = accesses[costs.indexOf(worst)].filter((address) => address !== null).length;
  return { name, width, lanes, count: accesses.length, wavefronts: worst, least: Math.ceil((lanes * width) / (banks.count * banks.bytes)), accesses, costs };
}

/**
 * The registers of a fragment of A, one store of each lane for each.
 * @param {MemoryImage} image
 * @param {number[][]} units
 * @returns {AccessPattern[]}
 */
function fragmentPatterns(image, units) {
  const fragment = layoutNames.map(layout).find((each) => each.kind === "fragment" && each.operands.includes("a") && each.threads === database.scopes.warp && each.bits === image.bits && !each.apart.length);
  if (!fragment) return [];
  const each = image.byRow ? Math.max(Math.floor(REGISTER_BITS / image.bits), 1) : 1;
  const width = Math.max((each * image.bits) / 8, 1);
  /** @type {(x: number, k: number) => number | null} */
  const address = (x, k) => {
    if (x >= image.x || k >= image.k) return null;
    const [line, along] = image.byRow ? [x, k] : [k, x];
    const inside = Math.floor((((along % image.perUnit) * image.bits) / 8) / width) * width;
    return units[line][Math.floor(along / image.perUnit)] + inside;
  };
  /** @type {Access[]} */
  const accesses = [];
  for (let x = 0; x < image.x; x += fragment.axes.row) {
    for (let k = 0; k < image.k; k += fragment.axes.col) {
      for (let element = 0; element < 2 ** fragment.map.inputs.i; element += each) {
        accesses.push(
          Array.from({ length: fragment.threads }, (_, lane) => {
            const { row, col } = applyMap(fragment.map, { lane, i: element });
            return address(x + row, k + col);
          }),
        );
      }
    }
  }
  return [patternOf(`${image.byRow ? "a register" : "an element"} of a fragment of A`, accesses, width, image.facts.banks)];
}
