/** A matrix in shared memory: its image, what accesses cost, its descriptor. */

import { accessPatterns, bankWords } from "../bank_accesses.js";
import { bitsIn, decodedDescriptor, describedFamilies, memoryFacts, sharedMemoryOf } from "../descriptors.js";
import { elementsTogether, MemoryImage, readableTypes } from "../images.js";
import { Board } from "./board.js";
import { DescriptorPart } from "./descriptor_part.js";
import { choice, fill, h, numberField, refill, segments } from "./dom.js";
import { byPlace, oneOf, upTo } from "./legal.js";
import { colourOf } from "./palette.js";
import { View } from "./view.js";

/** @typedef {import("../index.d.ts").AccessPattern} AccessPattern */
/** @typedef {import("../index.d.ts").ImageOptions} ImageOptions */
/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("../index.d.ts").MemoryFacts} MemoryFacts */
/** @typedef {import("./board.js").Spot} Spot */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Store} Store */

/** Bytes that one instruction reads along k. */
const DEPTH_BYTES = 32;

export class MemoryView extends View {
  /** @param {Store} store */
  constructor(store) {
    super(store);
    this.facts = /** @type {MemoryFacts} */ (memoryFacts);
    /** @type {MemoryImage | null} */
    this.image = null;
    /** @type {AccessPattern[]} */
    this.patterns = [];
    this.error = h("p", { class: "error", role: "alert" });
    this.costs = h("div", { class: "costs" });
    this.said = h("p", { class: "said", role: "status" });
    this.descriptor = new DescriptorPart(store);
    this.board = new Board("Image in shared memory", { point: (spot) => this.#point(spot), pick: (spot) => this.#point(spot) });
    this.element = h(
      "section",
      { class: "view memory" },
      h("div", { class: "drawing" }, this.tools, this.error, this.said, this.board.element),
      h("div", { class: "details wide" }, this.costs, this.descriptor.element),
    );
  }

  /**
   * @param {Instruction} instruction
   * @param {State} state
   * @param {Set<keyof State>} changed
   */
  update(instruction, state, changed) {
    this.facts = familyFacts(instruction, state);
    const image = imageRule(this.facts);
    const options = imageOptions(this.facts, instruction, image(state.image, "image") ? { ...state, image: "" } : state);
    if (["image", "family", "bits", "v", "i"].some((key) => changed.has(/** @type {keyof State} */ (key)))) this.#draw(options);
    if (this.image) this.#costs(state);
    const [which] = state.access.split(",");
    this.legal = { image, depth: upTo(Infinity, 1), access: byPlace(upTo(this.patterns.length - 1), upTo((this.patterns[Number(which)]?.accesses.length ?? 1) - 1)) };
    this.descriptor.update(this.image, this.facts, state, DEPTH_BYTES);
    this.headline = this.descriptor.headline;
  }

  /** @param {ImageOptions} options */
  #draw(options) {
    fill(this.tools, this.#toolbar(options));
    try {
      this.image = new MemoryImage(options);
      this.patterns = accessPatterns(this.image);
      this.error.textContent = "";
    } catch (error) {
      this.image = null;
      this.patterns = [];
      this.error.textContent = /** @type {Error} */ (error).message;
    }
    this.board.element.hidden = !this.image;
    this.costs.hidden = !this.image;
    if (this.image) this.board.show([imageTable(this.image, this.facts)], "26");
    this.#point(null);
  }

  /** @param {ImageOptions} options */
  #toolbar(options) {
    const { facts, store } = this;
    const changed = (/** @type {Partial<ImageOptions>} */ changes) => store.set({ image: imageText({ ...options, ...changes }), access: "0,0", bits: "" });
    const { type, majorness, padded, family } = options, families = describedFamilies();
    const majors = [...new Set(facts.layouts.map((each) => each.majorness))];
    const types = (/** @type {string} */ major) => imageTypes(major, family);
    const modes = facts.layouts.filter((each) => each.majorness === majorness).flatMap((each) => each.swizzles);
    // A type that cannot be read with the swizzle takes another one along.
    const typed = (/** @type {string} */ text, major = majorness) => {
      const own = typeOf(text), able = facts.swizzles.map(({ name }) => name).filter((name) => readableTypes(major, name, family, own.padded).includes(own.type));
      return changed({ ...own, majorness: major, swizzle: able.includes(options.swizzle) ? options.swizzle : able[able.length - 1], k: 0, x: major === majorness ? options.x : 0 });
    };
    const number = (/** @type {string} */ label, /** @type {keyof ImageOptions} */ key, /** @type {number} */ step, placeholder = "") =>
      numberField(label, /** @type {number | undefined} */ (options[key]) ?? "", (value) => changed({ [key]: value }), { min: 0, step, placeholder, class: "short" });
    return [
      families.length > 1 && segments("Read by", families.map((each) => [each, each]), facts.family, (chosen) => store.set({ family: chosen, image: "", access: "0,0", bits: "" })),
      choice("Type", types(majorness).map((text) => ({ value: text, text: text.replace("_", ", ") })), typeText(type, padded), (text) => typed(text)),
      segments("Majorness", majors.map((each) => [each, `${each}-major`]), majorness, (major) => typed(types(major).includes(typeText(type, padded)) ? typeText(type, padded) : types(major)[0], major)),
      segments("Swizzle", facts.swizzles.filter(({ name }) => modes.includes(name)).map(({ name }) => [name, name]), options.swizzle, (swizzle) => changed({ swizzle })),
      number("Rows (x)", "x", 8),
      number("Depth (k)", "k", 8),
      number("Start", "start", facts.alignment),
      number("LBO", "lbo", facts.alignment, "dense"),
      number("SBO", "sbo", facts.alignment, "dense"),
      number("Base offset", "baseOffset", 1),
    ];
  }

  /** @param {Spot | null} spot */
  #point(spot) {
    const { image, facts } = this;
    if (!image) return fill(this.said);
    const { canonical, mode } = image;
    const idle = `${image.size} bytes at ${image.start} · LBO ${image.lbo}, SBO ${image.sbo} · ${mode.cute} o ${canonical.cute}`;
    if (!spot) return fill(this.said, idle);
    const row = facts.banks.count * facts.banks.bytes;
    const address = (Math.floor(image.start / row) + spot.row) * row + spot.col * facts.alignment;
    const unit = unitsByAddress(image).get(address);
    const banks = `banks ${spot.col * (facts.alignment / facts.banks.bytes)}–${(spot.col + 1) * (facts.alignment / facts.banks.bytes) - 1}`;
    return fill(this.said, unit ? `Address ${address} (0x${address.toString(16)}), ${banks}: x = ${spanOf(image, unit, "x")}, k = ${spanOf(image, unit, "k")}` : `Address ${address}, ${banks}: nothing of the matrix`);
  }

  /** @param {State} state */
  #costs(state) {
    const { patterns, facts } = this;
    const [which, index] = state.access.split(",").map((text) => Number(text) || 0);
    const pattern = patterns[which] ?? patterns[0];
    const at = Math.min(index, pattern.accesses.length - 1);
    const access = pattern.accesses[at];
    const rows = patterns.map((each, place) =>
      h("tr", { "aria-selected": String(each === pattern), onclick: () => this.store.set({ access: `${place},0` }) }, [
        h("td", {}, h("button", { class: "link" }, each.name)),
        h("td", {}, String(each.count)),
        h("td", { class: each.wavefronts > each.least ? "bad" : "good" }, `${each.wavefronts}`),
        h("td", {}, String(each.least)),
      ]),
    );
    const slider = h("input", { type: "range", min: 0, max: pattern.accesses.length - 1, value: at, "aria-label": "Which access", oninput: () => this.store.set({ access: `${which},${slider.value}` }) });
    refill(
      this.costs,
      h("h2", {}, "Bank conflicts"),
      h("table", {}, h("thead", {}, h("tr", {}, ["Access of a warp", "Accesses", "Wavefronts", "Minimum"].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, rows)),
      h("label", { class: "field" }, h("span", {}, "Access"), slider, h("output", {}, `${at} of ${pattern.accesses.length}: ${pattern.costs[at]} wavefronts`)),
      bankBars(access, pattern.width, facts),
    );
    const touched = new Set(access.filter((address) => address !== null).map((address) => Math.floor(address / facts.alignment)));
    const row = (facts.banks.count * facts.banks.bytes) / facts.alignment;
    const first = Math.floor((this.image?.start ?? 0) / facts.alignment / row) * row;
    this.board.light((_, line, col) => (touched.has(first + line * row + col) ? 2 : 0));
  }
}

/**
 * The facts of the family that is chosen, of the instruction's, or of the first that has the swizzle.
 * @param {Instruction} instruction
 * @param {State} state
 * @returns {MemoryFacts}
 */
function familyFacts(instruction, state) {
  const swizzle = state.image.split(",")[2];
  const able = describedFamilies().map(sharedMemoryOf).find((each) => each?.swizzles.some(({ name }) => name === swizzle));
  return sharedMemoryOf(state.family || instruction.family) ?? able ?? /** @type {MemoryFacts} */ (memoryFacts);
}

/**
 * The types that can be read, as the URL has them.
 * @param {string} majorness
 * @param {string | undefined} family
 */
function imageTypes(majorness, family) {
  return [false, true].flatMap((padded) => readableTypes(majorness, undefined, family, padded).map((name) => typeText(name, padded)));
}

/**
 * The legal parts of an image in the URL.
 * @param {MemoryFacts} facts
 */
function imageRule({ family, layouts, swizzles }) {
  const majors = [...new Set(layouts.map(({ majorness }) => majorness))];
  const number = upTo(Infinity);
  return byPlace(oneOf([...new Set(majors.flatMap((major) => imageTypes(major, family)))]), oneOf(majors), oneOf(swizzles.map(({ name }) => name)), number, number, number, number, number, number);
}

/**
 * The image and its descriptor as the URL says them, or as they suit the instruction.  The image of a descriptor that starts inside of a
 * swizzle pattern, as the descriptors of steps along k do, begins where the pattern does.
 * @param {MemoryFacts} facts
 * @param {Instruction} instruction
 * @param {State} state
 * @returns {ImageOptions}
 */
function imageOptions(facts, instruction, state) {
  const [named, majorness, swizzle, x, k, start, lbo, sbo, base] = state.image.split(",");
  const given = (/** @type {string | undefined} */ text) => (text ? Number(text) : undefined);
  const operands = instruction.forms.flatMap((form) => form.operands);
  const { family } = facts;
  const major = majorness || facts.layouts[0].majorness;
  const bits = bitsIn(state.bits), fields = bits === null ? null : decodedDescriptor(bits, facts);
  const wanted = fields ? String(fields.swizzle) : swizzle;
  const usual = facts.reads.find((each) => each.majorness === major)?.swizzles ?? [];
  const canonical = facts.layouts.some((each) => each.majorness === major && each.swizzles.includes(wanted));
  const mode = facts.swizzles.find((each) => each.name === (canonical ? wanted : usual[usual.length - 1])) ?? facts.swizzles[0];
  const readable = readableTypes(major, mode.name, family);
  const left = operands.find((operand) => instruction.places[operand.name] === "left" && readable.includes(operand.type));
  const { type, padded } = typeOf(named || left?.type || readable[1] || readable[0]);
  const perByte = elementsTogether(facts, type, padded) / facts.alignment;
  const panel = mode.bytes * perByte;
  const wide = major === facts.layouts[0].majorness;
  // A descriptor need not lead from one panel to the next: an instruction reads so much along k.
  const least = fields ? DEPTH_BYTES * perByte : 64;
  const size = { type, padded, family, majorness: major, x: given(x) || (wide ? 64 : Math.max(64, panel)), k: given(k) || (wide ? Math.max(least, panel) : 64) };
  if (!fields) return { ...size, swizzle: mode.name, start: given(start) ?? 0, lbo: given(lbo), sbo: given(sbo), baseOffset: given(base) ?? 0 };
  const [at, leading, strided, offset] = ["start_address", "leading_byte_offset", "stride_byte_offset", "base_offset"].map((name) => Number(fields[name]));
  return { ...size, swizzle: wanted, start: at - (at % mode.bytes), lbo: leading, sbo: strided, baseOffset: offset };
}

/** @param {ImageOptions} options */
function imageText({ type, padded, majorness, swizzle, x, k, start, lbo, sbo, baseOffset }) {
  return [typeText(type, padded), majorness, swizzle, x || "", k || "", start || "", lbo ?? "", sbo ?? "", baseOffset || ""].join(",").replace(/,+$/, "");
}

/**
 * A type with its padding, as the URL has it.
 * @param {string} type
 * @param {boolean} [padded]
 */
function typeText(type, padded) {
  return padded ? `${type}_padded` : type;
}

/** @param {string} text */
function typeOf(text) {
  const type = text.replace("_padded", "");
  return { type, padded: type !== text };
}

/**
 * The line and the 16 bytes of it that lie at an address.
 * @param {MemoryImage} image
 * @returns {Map<number, {line: number, unit: number}>}
 */
function unitsByAddress(image) {
  return new Map(image.units().flatMap((units, line) => units.map((address, unit) => /** @type {const} */ ([address, { line, unit }]))));
}

/**
 * The elements of a unit along x or k.
 * @param {MemoryImage} image
 * @param {{line: number, unit: number}} place
 * @param {"x" | "k"} axis
 */
function spanOf(image, { line, unit }, axis) {
  const contiguous = image.byRow ? "k" : "x";
  return axis === contiguous ? `${unit * image.perUnit}–${(unit + 1) * image.perUnit - 1}` : String(line);
}

/**
 * The image as a table: a row for each turn through the banks, a cell for each 16 bytes.
 * @param {MemoryImage} image
 * @param {MemoryFacts} facts
 * @returns {import("./table_drawing.js").Table}
 */
function imageTable(image, facts) {
  const row = facts.banks.count * facts.banks.bytes;
  const first = Math.floor(image.start / row);
  const cols = row / facts.alignment;
  const banks = facts.alignment / facts.banks.bytes;
  const known = unitsByAddress(image);
  return {
    id: "image",
    title: "Image",
    note: `${image.x} × ${image.k} ${image.type}, a cell for each ${facts.alignment} bytes`,
    rows: Math.ceil((image.start + image.size) / row) - first,
    cols,
    down: 0,
    across: 0,
    wide: 2.6,
    rowName: (line) => String((first + line) * row),
    colName: (col) => `${col * banks}–${(col + 1) * banks - 1}`,
    cell(line, col) {
      const unit = known.get((first + line) * row + col * facts.alignment);
      if (!unit) return { fill: "", top: "", label: "", key: "" };
      return { fill: colourOf(unit.line), top: `${spanOf(image, unit, "x")}, ${spanOf(image, unit, "k")}`, label: "", key: "" };
    },
  };
}

/**
 * Words that an access asks of each bank.
 * @param {(number | null)[]} access
 * @param {number} width
 * @param {MemoryFacts} facts
 */
function bankBars(access, width, facts) {
  const parts = bankWords(access, width);
  const counts = Array.from({ length: facts.banks.count }, (_, bank) => parts.reduce((sum, part) => sum + (part.get(bank)?.size ?? 0), 0));
  const most = Math.max(1, ...counts);
  const bars = counts.map((count, bank) => h("i", { style: `height:${(count / most) * 100}%`, title: `bank ${bank}: ${count} words` }));
  return h("figure", { class: "banks", role: "img", "aria-label": `Words of each bank: ${counts.join(" ")}` }, h("div", {}, bars), h("figcaption", {}, `words of each of ${facts.banks.count} banks, ${most} at most`));
}
