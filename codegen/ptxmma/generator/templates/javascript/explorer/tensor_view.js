/** Operands in tensor memory: which cell holds which element, which warp reaches it, and which register of a load takes it. */

import { arrangements } from "../arrangements.js";
import { instructionGroups, instructionOf } from "../instructions.js";
import { instructionMeant } from "../spellings.js";
import { fragmentOf, loadsOf, registerOf } from "../tensor_loads.js";
import { tensorOperands } from "../tensor_places.js";
import { tensorProduct } from "../tensor_products.js";
import { cTensorFunctions, pythonTensorFunctions, tensorCsv } from "../tensor_texts.js";
import { Board } from "./board.js";
import { choice, copyButton, fill, h, numberField, refill, saved, segments, worded } from "./dom.js";
import { colourOf, hueOf } from "./palette.js";
import { byName, byPlace, oneOf, upTo } from "./legal.js";
import { titleOf } from "./scene.js";
import { chosenOf, chosenText, textsOf } from "./state.js";
import { cellDetails, cellSentence, operandDetails } from "./tensor_details.js";
import { View } from "./view.js";
import { zoomButtons } from "./zoom.js";

/** @typedef {import("../index.d.ts").Arrangement} Arrangement */
/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("../index.d.ts").RegisterPlace} RegisterPlace */
/** @typedef {import("../index.d.ts").TensorPlace} TensorPlace */
/** @typedef {import("../index.d.ts").TensorProduct} TensorProduct */
/** @typedef {import("../tensor_places.js").TensorPlaces} TensorPlaces */
/** @typedef {import("./board.js").Spot} Spot */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Store} Store */
/** @typedef {import("./table_drawing.js").Table} BoardTable */

/**
 * The content of a place, counted from the operand's address, and the register that a load takes it to.
 * @typedef {{place: TensorPlace, point: Record<string, number>, register: RegisterPlace | null}} TensorCell
 */

/**
 * An operand as it is shown.
 * @typedef {object} TensorScene
 * @property {string} instruction
 * @property {TensorPlaces} places
 * @property {Record<string, number>} selected
 * @property {{lane: number, column: number}} base
 * @property {Instruction | undefined} load
 * @property {Arrangement | undefined} fragment of the load
 */

/** Cells are as high as two words need, and as wide as the numbers of a row and a column. */
const HEIGHT = "22";
const WIDE = 1.6;

export class TensorView extends View {
  /** @param {Store} store */
  constructor(store) {
    super(store);
    /** @type {TensorScene | null} */
    this.scene = null;
    /** @type {TensorCell | null} */
    this.hover = null;
    this.board = new Board("Tensor memory", {
      point: (spot) => this.#point(spot && this.#cellAt(spot)),
      pick: (spot) => {
        const cell = spot && this.#cellAt(spot);
        this.hover = null;
        this.store.set({ at: cell && this.scene ? `${this.scene.places.name}:${Object.keys(this.scene.places.sizes).map((axis) => cell.point[axis]).join(",")}` : "" });
      },
    });
    this.element = h("section", { class: "view tensor" }, h("div", { class: "drawing" }, this.tools, this.notes, this.board.element), this.details, this.live);
  }

  /**
   * @param {Instruction} instruction
   * @param {State} state
   * @param {Set<keyof State>} changed
   */
  update(instruction, state, changed) {
    const again = ["i", "product", "operand", "base", "load", "choose", "colour", "zoom", "v"].some((key) => changed.has(/** @type {keyof State} */ (key)));
    if (again) this.#draw(instruction, state);
    this.#shown(state);
    if (changed.has("at") || changed.has("v")) this.board.reveal();
  }

  /**
   * @param {Instruction} instruction
   * @param {State} state
   */
  #draw(instruction, state) {
    // An N that has the column of a link.
    const n = 64 * Math.ceil((Number(state.at.split(",")[1]) + 1) / 64);
    const product = tensorProduct(instruction, { n, ...textsOf(state.product) });
    const operands = tensorOperands(instruction, product);
    const names = [...operands.keys()];
    const [named] = state.at.split(":");
    const name = [state.operand, named].flatMap((wanted) => names.find((each) => [each, operands.get(each)?.operand.name].includes(wanted)) ?? [])[0] ?? names[0];
    const places = operands.get(name) ?? null;
    this.legal = {
      product: byName(product ? product.legal : {}),
      operand: oneOf(names.flatMap((each) => [each, operands.get(each)?.operand.name ?? each])),
      ...(places && {
        choose: byName(places.selections),
        base: byPlace(upTo(places.memory.columns - places.columns), oneOf(places.layout.align ?? [0])),
        load: (/** @type {string} */ text, /** @type {string} */ label) => (loadsOf(places).some((each) => each === instructionMeant(text)) ? "" : oneOf(loadsOf(places).map(({ canonical }) => canonical))(text, label)),
      }),
    };
    this.scene = places && { instruction: instruction.canonical, ...this.#scene(places, state) };
    this.board.element.hidden = !this.scene;
    this.details.hidden = !names.length;
    refill(this.tools, names.length > 1 && segments("Operand", names.map((each) => [each, titleOf(each)]), name, (operand) => this.store.set({ operand, at: "" })), product && this.#choices(product), this.scene && this.#toolbar(this.scene, state));
    const missing = names.length ? `No source says where ${titleOf(name)} lies with ${Object.entries(product?.values ?? {}).map(([key, value]) => `${key} = ${value}`).join(", ")}.` : "";
    fill(this.notes, !names.length && this.#elsewhere(instruction), names.length > 0 && !places && h("p", {}, missing), product && product.targets.length > 0 && h("p", {}, `Only on ${product.targets.map((each) => each.join(", ")).join("; ")}, and targets that include one of them.`));
    if (this.scene) this.board.show(this.#tables(this.scene, state.colour), state.zoom || HEIGHT);
  }

  /**
   * @param {TensorPlaces} places
   * @param {State} state
   * @returns {Omit<TensorScene, "instruction">}
   */
  #scene(places, state) {
    const chosen = chosenOf(state.choose);
    const selected = Object.fromEntries(Object.entries(places.selections).map(([name, values]) => [name, values.includes(chosen[name]) ? chosen[name] : values[0]]));
    const [column = 0, lane = 0] = state.base.split(",").map((text) => Number(text) || 0);
    const base = { column: Math.min(Math.max(column, 0), places.memory.columns - places.columns), lane: (places.layout.align ?? [0]).includes(lane) ? lane : 0 };
    const load = state.load ? loadsOf(places).find((each) => each === instructionMeant(state.load)) : undefined;
    return { places, selected, base, load, fragment: load && fragmentOf(load) };
  }

  /**
   * The choices that the opcode does not state.
   * @param {TensorProduct} product
   */
  #choices({ values, legal }) {
    const titles = /** @type {Record<string, string>} */ ({ m: "M", n: "N", k: "K", dtype: "Type of D", atype: "Type of A", btype: "Type of B", stype: "Type of scales", sparsity_version: "Version of sparsity", scale_a_lanes: "Lanes of scales of A" });
    const order = ["m", "n", "k", "dtype", "atype", "btype", "stype", "sparsity_version", "scale_a_lanes"].filter((name) => (legal[name] ?? []).length > 1);
    return order.map((name) => choice(titles[name], legal[name].map(String), String(values[name]), (value) => this.store.set({ product: Object.entries({ ...values, [name]: value }).map((pair) => pair.join(":")).join(","), at: "" })));
  }

  /**
   * @param {TensorScene} scene
   * @param {State} state
   */
  #toolbar({ places, selected, base, load, fragment }, state) {
    const moved = (/** @type {Partial<typeof base>} */ to) => this.store.set({ base: [to.column ?? base.column, to.lane ?? base.lane].join(",").replace(/,0$/, "").replace(/^0$/, "") });
    const loads = loadsOf(places).map((each) => ({ value: each.canonical, text: each.canonical.replace(`${each.name}.sync.aligned.`, "") }));
    const colours = /** @type {[string, string][]} */ (fragment ? [["lane", "Thread"], ["register", "Register"], ["warp", "Warp"]] : [["lane", worded(places.coordinates[0])], ["register", worded(places.coordinates[1])], ["warp", "Warp"]]);
    const lanes = places.layout.align ?? [];
    return [
      numberField("Base column", base.column, (value) => moved({ column: value ?? 0 }), { min: 0, max: places.memory.columns - places.columns, class: "short" }),
      lanes.length > 1 && choice("Base lane", lanes.map(String), String(base.lane), (lane) => moved({ lane: Number(lane) })),
      ...Object.entries(places.selections).filter(([, values]) => values.length > 1).map(([name, values]) => choice(worded(name), values.map(String), String(selected[name]), (value) => this.store.set({ choose: chosenText({ ...selected, [name]: Number(value) }) }))),
      choice("Loaded by", [{ value: "", text: "no load" }, ...loads], load?.canonical ?? "", (value) => this.store.set({ load: value })),
      segments("Colour by", colours, state.colour, (colour) => this.store.set({ colour })),
      zoomButtons(this.store, this.board),
      h("div", { class: "field", role: "group", "aria-label": "Copy" }, h("span", {}, "Copy"), h("div", { class: "segments" }, copyButton("C", () => cTensorFunctions(places)), copyButton("Python", () => pythonTensorFunctions(places)), copyButton("CSV", () => tensorCsv(places, selected, base, fragment)), h("button", { title: "Download", onclick: () => saved(`${places.layout.name}.svg`, new Blob([this.board.svg(places.layout.title)], { type: "image/svg+xml" })) }, "SVG"))),
    ];
  }

  /**
   * A table for the lanes of each warp, of each CTA.
   * @param {TensorScene} scene
   * @param {string} colour
   * @returns {BoardTable[]}
   */
  #tables(scene, colour) {
    const { places, base } = scene;
    const { lanes, partition, cell } = places.memory;
    const each = Math.max(1, cell / places.unit);
    const warps = Array.from({ length: lanes / partition }, (_, warp) => warp);
    return Array.from({ length: places.ctas }, (_, cta) => cta).flatMap((cta) =>
      warps.map((warp) => {
        /** @type {(TensorCell | null)[]} */
        const cells = [];
        const cols = places.columns * each;
        return {
          id: `${cta}/${warp}`,
          title: `${places.ctas > 1 ? `CTA ${cta}, ` : ""}warp ${warp}`,
          note: `lanes ${warp * partition}–${(warp + 1) * partition - 1}`,
          rows: partition,
          cols,
          down: warp,
          across: cta,
          wide: WIDE,
          rowName: (row) => String(warp * partition + row),
          colName: (col) => (col % each ? "" : String(base.column + col / each)),
          cell: (row, col) => {
            const place = { cta, lane: warp * partition + row - base.lane, column: Math.floor(col / each), bit: (col % each) * places.unit };
            const cell = (cells[row * cols + col] ??= this.#cell(scene, place));
            if (!cell) return { fill: "", top: "", label: "", key: "" };
            const [first, second] = places.coordinates.map((axis) => cell.point[axis]);
            const { register } = cell;
            const fills = { lane: () => colourOf(register ? register.lane : first), register: () => hueOf(register ? register.register : second), warp: () => hueOf(warp) };
            const paint = /** @type {Record<string, () => string>} */ (fills)[colour] ?? fills.lane;
            return { fill: paint(), top: `${first},${second}`, label: register ? `T${register.lane} r${register.register}` : "", key: each > 1 ? `${row}.${place.column}` : "" };
          },
        };
      }),
    );
  }

  /**
   * @param {TensorScene} scene
   * @param {TensorPlace} place
   * @returns {TensorCell | null}
   */
  #cell({ places, selected, base, fragment }, place) {
    const point = places.at(place, selected);
    if (!point) return null;
    const there = places.locate({ ...selected, ...point });
    return { place: there, point, register: fragment ? registerOf(fragment, places, there, base) : null };
  }

  /**
   * @param {Spot} spot
   * @returns {TensorCell | null}
   */
  #cellAt({ table, row, col }) {
    return this.scene && this.#cell(this.scene, this.#placeAt(this.scene, table, row, col));
  }

  /**
   * @param {TensorScene} scene
   * @param {BoardTable} table
   * @param {number} row
   * @param {number} col
   * @returns {TensorPlace}
   */
  #placeAt({ places, base }, table, row, col) {
    const each = Math.max(1, places.memory.cell / places.unit);
    return { cta: table.across, lane: table.down * places.memory.partition + row - base.lane, column: Math.floor(col / each), bit: (col % each) * places.unit };
  }

  /** @param {TensorCell | null} cell */
  #point(cell) {
    this.hover = cell;
    this.#shown(this.store.state);
  }

  /** @param {State} state */
  #shown(state) {
    const { scene } = this;
    if (!scene) return this.board.light(null);
    const picked = pickedIn(scene, state.at);
    const { name, sizes } = scene.places;
    const ranges = Object.entries(sizes).map(([axis, size]) => `${axis} 0 to ${size - 1}`);
    this.fault = state.at.startsWith(`${name}:`) && !picked ? `${state.at}: ${titleOf(name)} has ${ranges.join(", ")}.` : "";
    const kept = picked && this.#cell(scene, picked);
    const focus = this.hover ?? kept;
    this.board.light(focus && ((table, row, col) => this.#light(scene, focus, this.#placeAt(scene, table, row, col))));
    fill(this.details, focus ? cellDetails(scene, focus) : operandDetails(scene));
    this.live.textContent = kept && !this.hover ? cellSentence(scene, kept) : "";
    if (!this.hover) this.headline = kept ? cellSentence(scene, kept, ` of ${scene.instruction}`) : "";
    const { partition, cell } = scene.places.memory;
    const each = Math.max(1, cell / scene.places.unit);
    const drawn = picked && this.board.tables.find((table) => table.id === `${picked.cta}/${Math.floor((picked.lane + scene.base.lane) / partition)}`);
    if (drawn && picked) this.board.cursor = { table: drawn, row: (picked.lane + scene.base.lane) % partition, col: picked.column * each + (each > 1 ? Math.floor(picked.bit / scene.places.unit) : 0) };
  }

  /**
   * The place itself, then other copies of what lies there, and what the same load gives to the same thread.
   * @param {TensorScene} scene
   * @param {TensorCell} focus
   * @param {TensorPlace} place
   * @returns {number}
   */
  #light(scene, focus, place) {
    const cell = this.#cell(scene, place);
    if (!cell) return 0;
    if (["cta", "lane", "column", "bit"].every((name) => cell.place[/** @type {keyof TensorPlace} */ (name)] === focus.place[/** @type {keyof TensorPlace} */ (name)])) return 2;
    const [one, other] = [cell.register, focus.register];
    if (one && other && one.cta === other.cta && one.warp === other.warp && one.lane === other.lane && one.address === other.address) return 1;
    return Number(scene.places.coordinates.every((axis) => cell.point[axis] === focus.point[axis]));
  }

  /**
   * The instruction to which one without operands in tensor memory leads: a product, loaded by it where it is a load.
   * @param {Instruction} instruction
   */
  #elsewhere(instruction) {
    const group = instructionGroups().find((each) => tensorProduct(instructionOf(each, each.numbers[0])));
    const load = [...arrangements(instruction).keys()].length && instruction.operation === "tensor-load" ? instruction.canonical : "";
    const product = group && instructionOf(group, group.numbers[0]);
    return [h("p", {}, `${instruction.canonical} has no operand whose layout in tensor memory is known.`), product && h("button", { onclick: () => this.store.set({ i: product.canonical, load, at: "", product: "" }) }, `Show ${product.canonical}`)];
  }
}

/**
 * The place of the element that a text of the URL names: `d:37,200`, `scale-a:77,3,1` for the second copy.
 * @param {TensorScene} scene
 * @param {string} text
 * @returns {TensorPlace | null}
 */
function pickedIn({ places, selected }, text) {
  const [name, numbers = ""] = text.split(":");
  const values = numbers.split(",").map(Number);
  const axes = Object.keys(places.sizes);
  if (name !== places.name || values.length < places.coordinates.length) return null;
  const point = Object.fromEntries(axes.map((axis, index) => [axis, values[index] ?? 0]));
  return axes.every((axis) => Number.isInteger(point[axis]) && point[axis] >= 0 && point[axis] < places.sizes[axis]) ? places.locate({ ...point, ...selected }) : null;
}
