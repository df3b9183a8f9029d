/** The cost of a warp's accesses to shared memory, as `ptxmma.matrices.shared.accesses` counts it. */

import { applyMap } from "./bit_maps.js";
import { database } from "./database.js";
import { memoryFacts } from "./descriptors.js";
import { layout, layoutNames } from "./layout_records.js";

/** @typedef {import("./index.d.ts").AccessPattern} AccessPattern */
/** @typedef {import("./index.d.ts").MemoryFacts} MemoryFacts */
/** @typedef {import("./images.js").MemoryImage} MemoryImage */
/** @typedef {(number | null)[]} Access */

/** Of the registers that hold several elements of a fragment. */
const REGISTER_BITS = 32;

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
  const single = Math.max(image.width / 8, 1);
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
  const fragment = layoutNames.map(layout).find((each) => each.kind === "fragment" && each.operands.includes("a") && each.threads === database.scopes.warp && each.bits === image.width && !each.apart.length);
  if (!fragment) return [];
  const each = image.byRow ? Math.max(Math.floor(REGISTER_BITS / image.width), 1) : 1;
  const width = Math.max((each * image.width) / 8, 1);
  /** @type {(x: number, k: number) => number | null} */
  const address = (x, k) => {
    if (x >= image.x || k >= image.k) return null;
    const [line, along] = image.byRow ? [x, k] : [k, x];
    const inside = Math.floor((((along % image.perUnit) * image.width) / 8) / width) * width;
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
