/** The state of the page, all of it in the URL: a link to the page shows the same. */

/**
 * @typedef {object} State
 * @property {string} i canonical spelling of the instruction
 * @property {string} v view: matrices, memory, tensor, sparsity, descriptors, copy, convert, layout
 * @property {string} target only instructions that it accepts; empty: any
 * @property {string} at what is selected: `a:9,3`, or `lane:5`
 * @property {string} colour lane, register, warp
 * @property {string} zoom pixels of a cell; `fit`: as many as fit both ways; empty: the same, but readable
 * @property {string} choose what must be chosen: `selector:1,matrix:2`
 * @property {string} middle which accumulator is drawn: empty for the result
 * @property {string} image options of the image in shared memory: `bf16,K,128B,64,64,start,lbo,sbo,base`; `e2m1_padded` for a padded type
 * @property {string} family that reads it: empty for the instruction's, or the first that can
 * @property {string} access pattern of accesses, and which of them: `0,3`
 * @property {string} depth of a step along K
 * @property {string} bits of a descriptor: `0x…`
 * @property {string} descriptor format, kind and bits: `tcgen05_instruction,kind::f16,0x8400490`
 * @property {string} row of values to compress, with blanks between
 * @property {string} word of metadata: `0x…`
 * @property {string} lane whose word that is
 * @property {string} operand to copy or to convert, or in tensor memory
 * @property {string} product what a descriptor chooses: `m:128,n:64,dtype:f32,atype:bf16,btype:bf16`
 * @property {string} base of an operand in tensor memory: its column, and its lane where that is not 0: `64,16`
 * @property {string} load of it: canonical spelling
 * @property {string} layout in the notation of CuTe, or bases of Triton
 * @property {string} embed the only matrix that is shown, without the rest of the page
 * @property {string} as format to copy, or the instruction whose operand a conversion makes
 * @property {string} into that operand
 * @property {string} turned whether it is transposed: `1`
 * @property {string} order whether it has another order of K or of columns: `1`
 */

/** @type {State} */
const EMPTY = {
  i: "", v: "matrices", target: "", at: "", colour: "lane", zoom: "", choose: "", middle: "", image: "", family: "", access: "0,0", depth: "", bits: "", descriptor: "", row: "", word: "", lane: "0", operand: "", as: "ptx", into: "", turned: "", order: "", product: "", base: "", load: "", layout: "", embed: "",
};

/** Changes of these are steps that the browser's back button undoes. */
const STEPS = ["i", "v"];

export class Store {
  constructor() {
    /** @type {State} */
    this.state = { ...EMPTY };
    /** Names in the URL that no part of the state has. @type {string[]} */
    this.unknown = [];
    /** @type {((state: State, changed: Set<keyof State>) => void)[]} */
    this.listeners = [];
    this.#read();
    window.addEventListener("popstate", () => this.#again());
    window.addEventListener("hashchange", () => this.#again());
  }

  /**
   * Changes what is shown.
   * @param {Partial<State>} changes
   */
  set(changes) {
    const changed = /** @type {(keyof State)[]} */ (Object.keys(changes)).filter((key) => changes[key] !== undefined && changes[key] !== this.state[key]);
    if (!changed.length) return;
    Object.assign(this.state, changes);
    this.unknown = [];
    const url = this.hash();
    if (changed.some((key) => STEPS.includes(key))) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
    this.#tell(new Set(changed));
  }

  /**
   * Calls a function with every change, and once now.
   * @param {(state: State, changed: Set<keyof State>) => void} listener
   */
  follow(listener) {
    this.listeners.push(listener);
    listener(this.state, new Set(/** @type {(keyof State)[]} */ (Object.keys(EMPTY))));
  }

  /**
   * Says in the URL what is shown by default.
   * @param {Partial<State>} state
   */
  settle(state) {
    Object.assign(this.state, state);
    history.replaceState(null, "", this.hash());
  }

  /**
   * Gives up settings.
   * @param {(keyof State)[]} keys
   */
  drop(keys) {
    this.set(Object.fromEntries(keys.map((key) => [key, EMPTY[key]])));
  }

  /**
   * Return whether a setting is as it is by default.
   * @param {keyof State} key
   */
  unsaid(key) {
    return this.state[key] === EMPTY[key];
  }

  /** The state as the end of a URL: what is not as it is by default. */
  hash() {
    const pairs = /** @type {(keyof State)[]} */ (Object.keys(EMPTY)).filter((key) => !this.unsaid(key));
    const text = pairs.map((key) => `${key}=${encodeURIComponent(this.state[key]).replace(/%(3A|2C|20|2F)/g, (code) => ({ "%3A": ":", "%2C": ",", "%20": "+", "%2F": "/" })[code] ?? code)}`);
    return `#${text.join("&")}`;
  }

  #again() {
    this.#read();
    this.#tell(new Set(/** @type {(keyof State)[]} */ (Object.keys(EMPTY))));
  }

  #read() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const key of /** @type {(keyof State)[]} */ (Object.keys(EMPTY))) this.state[key] = given.get(key) ?? EMPTY[key];
    this.unknown = [...given.keys()].filter((key) => !(key in EMPTY));
  }

  /** @param {Set<keyof State>} changed */
  #tell(changed) {
    for (const listener of this.listeners) listener(this.state, changed);
  }
}

/**
 * `m:128,dtype:f32` as texts by name.
 * @param {string} text
 * @returns {Record<string, string>}
 */
export function textsOf(text) {
  return Object.fromEntries(text.split(",").filter(Boolean).map((part) => [part.split(":")[0], part.split(":")[1] ?? ""]));
}

/**
 * `selector:1,matrix:2` as numbers by name.
 * @param {string} text
 * @returns {Record<string, number>}
 */
export function chosenOf(text) {
  return Object.fromEntries(Object.entries(textsOf(text)).map(([name, value]) => [name, Number(value)]));
}

/**
 * @param {Record<string, number>} chosen
 * @returns {string}
 */
export function chosenText(chosen) {
  return Object.entries(chosen).map(([name, value]) => `${name}:${value}`).join(",");
}
