/** A fragment as another operand takes it: the same matrix twice, as the threads have it and as they need it. */

import { conversionOf, elementAt, widthOf } from "../conversions.js";
import { database } from "../database.js";
import { instructionGroups, instructionOf } from "../instructions.js";
import { instructionMeant } from "../spellings.js";
import { tensorOperands } from "../tensor_places.js";
import { Board } from "./board.js";
import { choice, copyButton, fill, h, refill, segments } from "./dom.js";
import { fact } from "./inspector.js";
import { oneOf } from "./legal.js";
import { colourOf, hueOf } from "./palette.js";
import { titleOf, WARP } from "./scene.js";
import { View } from "./view.js";
import { zoomButtons } from "./zoom.js";

/** @typedef {import("../index.d.ts").Conversion} Conversion */
/** @typedef {import("../index.d.ts").ConversionSide} ConversionSide */
/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("../index.d.ts").Operand} Operand */
/** @typedef {import("./board.js").Spot} Spot */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Store} Store */
/** @typedef {import("./table_drawing.js").Table} BoardTable */
/** @typedef {{thread: number, i: number}} Holder */

/** Tables of more columns, and all in a narrow window, lie below each other. */
const STACKED_FROM = 17;
const STACKED_BELOW = 900;
const SIDES = /** @type {const} */ (["source", "target"]);

export class ConversionView extends View {
  /** @param {Store} store */
  constructor(store) {
    super(store);
    /** @type {Conversion | undefined} */
    this.shown = undefined;
    /** @type {Spot | null} */
    this.hover = null;
    this.board = new Board("Conversion", {
      point: (spot) => {
        this.hover = spot;
        this.#light();
      },
      pick: (spot) => {
        this.hover = null;
        this.store.set({ at: spot ? `${spot.table.id}:${spot.row},${spot.col}` : "" });
      },
    });
    this.known = h("datalist", { id: "converted" });
    this.element = h("section", { class: "view conversion" }, h("div", { class: "drawing" }, this.tools, this.notes, this.board.element), this.details, this.live, this.known);
  }

  /**
   * @param {Instruction} instruction
   * @param {State} state
   * @param {Set<keyof State>} changed
   */
  update(instruction, state, changed) {
    if (["i", "v", "as", "operand", "into", "turned", "order", "colour", "zoom"].some((key) => changed.has(/** @type {keyof State} */ (key)))) this.#draw(instruction, state);
    this.#light();
  }

  /**
   * @param {Instruction} instruction
   * @param {State} state
   */
  #draw(instruction, state) {
    if (!this.known.children.length) fill(this.known, spellingsOfLayouts().map((value) => h("option", { value })));
    const next = instructionMeant(state.as) ?? instruction;
    const [sources, targets] = [fragmentsOf(instruction, "write"), fragmentsOf(next, "read")];
    const among = (/** @type {Operand[]} */ operands) => oneOf(operands.map(({ name }) => name));
    this.legal = { as: (/** @type {string} */ text) => (instructionMeant(text) ? "" : `No instruction is ${text}; this is ${next.canonical}.`), operand: among(sources), into: among(targets) };
    const source = sources.find((operand) => operand.name === state.operand) ?? sources[0];
    const target = targets.find((operand) => operand.name === state.into) ?? targets[0];
    const plain = source && target && conversionOf(source, target, Boolean(state.turned));
    this.shown = plain?.reordered && state.order ? plain.reordered : plain;
    const field = h("input", { type: "search", value: next.canonical, list: "converted", spellcheck: false, onchange: () => instructionMeant(field.value) && this.store.set({ as: field.value, into: "", at: "" }) });
    const named = (/** @type {Operand[]} */ operands) => operands.map(({ name, type }) => ({ value: name, text: `${titleOf(name)} · ${type}` }));
    refill(
      this.tools,
      sources.length > 0 && choice("From", named(sources), source.name, (operand) => this.store.set({ operand, at: "" })),
      targets.length > 0 && choice("To", named(targets), target.name, (into) => this.store.set({ into, at: "" })),
      h("label", { class: "field wide" }, h("span", {}, "of instruction"), field),
      segments("Target", [["", "Same way"], ["1", "Transposed"]], state.turned, (turned) => this.store.set({ turned, at: "" })),
      plain?.reordered && segments(plain.target.summed ? "Order of K" : "Order of columns", [["", "Kept"], ["1", "Changed"]], state.order, (order) => this.store.set({ order })),
      segments("Colour by", [["lane", "Lane"], ["register", "Register"]], state.colour, (colour) => this.store.set({ colour })),
      zoomButtons(this.store, this.board),
    );
    this.details.hidden = this.board.element.hidden = !this.shown;
    if (!this.shown) {
      const there = tensorOperands(instruction, null).size > 0 && " ptxmma layout --through takes operands in tensor memory.";
      fill(this.notes, h("p", {}, `${sources.length ? next.canonical : instruction.canonical} has no elements in registers.`, there));
      this.board.show([], "");
      return;
    }
    const command = ["ptxmma layout", instruction.canonical, "--operand", source.name, "--as", next.canonical, "--as-operand", target.name, state.turned && "--transpose"].filter(Boolean).join(" ");
    fill(this.notes, sentences(this.shown, Boolean(plain?.reordered) && !state.order), h("p", { class: "command" }, h("code", {}, command), copyButton("Copy", () => command)));
    this.board.show(conversionTables(this.shown, state.colour), state.zoom);
  }

  #light() {
    const { shown } = this;
    if (!shown) return;
    const [id, place = ""] = this.store.state.at.split(":");
    const [row, col] = place.split(",").map(Number);
    const table = this.board.tables.find((each) => each.id === id);
    const picked = table && row < table.rows && col < table.cols ? { table, row, col } : null;
    const spot = this.hover ?? picked;
    if (!this.hover) this.board.cursor = picked ?? this.board.cursor;
    const element = spot && elementOf(shown, spot.table.id, spot.row, spot.col);
    this.board.light(element ? (each, down, across) => (elementOf(shown, each.id, down, across) === element ? 2 : 0) : null);
    fill(this.details, element ? elementMoves(shown, element) : conversionHints());
    if (!this.hover) this.live.textContent = this.headline = picked ? this.details.innerText.replaceAll("\n", " ") : "";
  }
}

/**
 * The operands with elements in registers, what the instruction does with them first: `write` or `read`.
 * @param {Instruction} instruction
 * @param {string} access
 */
function fragmentsOf(instruction, access) {
  const found = new Map(instruction.forms.flatMap((form) => form.operands).filter((operand) => operand.layout?.kind === "fragment").map((operand) => [operand.name, operand]));
  return [...found.values()].sort((one, other) => Number(other.access === access) - Number(one.access === access));
}

/** An instruction for each set of layouts, to choose from. */
export function spellingsOfLayouts() {
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const group of instructionGroups()) {
    const instruction = instructionOf(group, group.numbers[0]);
    const key = fragmentsOf(instruction, "read").map((operand) => operand.layout?.name).join(" ");
    if (key && !found.has(key)) found.set(key, instruction.canonical);
  }
  return [...found.values()];
}

/** @type {WeakMap<ConversionSide, Map<string, Holder>>} */
const holders = new WeakMap();

/**
 * The first holder of each element of a side, by the text of its numbers.
 * @param {ConversionSide} side
 */
function holdersOf(side) {
  const held = holders.get(side) ?? new Map();
  if (held.size) return held;
  const threads = WARP * 2 ** widthOf(side, "warp");
  for (let thread = 0; thread < threads; thread += 1) {
    for (let i = 0; i < 2 ** widthOf(side, "i"); i += 1) {
      const key = keyOf(elementAt(side, { lane: thread % WARP, warp: Math.floor(thread / WARP), i }));
      if (!held.has(key)) held.set(key, { thread, i });
    }
  }
  holders.set(side, held);
  return held;
}

/**
 * The text of an element: the axes besides rows and columns, then `row,col`.
 * @param {Record<string, number>} element
 */
function keyOf({ row = 0, col = 0, ...others }) {
  const names = Object.keys(others).sort();
  return `${names.map((name) => `${name} ${others[name]}`).join(", ")}:${row},${col}`;
}

/**
 * The element of the source at a cell of a table, whose name is `source/matrix 1`.
 * @param {Conversion} shown
 * @param {string} id
 * @param {number} row
 * @param {number} col
 */
function elementOf(shown, id, row, col) {
  const [side, others = ""] = id.split("/");
  const moved = (/** @type {string} */ axis, /** @type {number} */ number) => (side === "target" && shown.order.length && shown.target.ordered === axis ? shown.order[number] : number);
  return `${others}:${moved("row", row)},${moved("col", col)}`;
}

/**
 * The holder of an element of the source in a side.
 * @param {Conversion} shown
 * @param {"source" | "target"} name
 * @param {string} element
 */
function holderOf(shown, name, element) {
  const [others, place] = element.split(":");
  const [row, col] = place.split(",").map(Number);
  const back = (/** @type {string} */ axis, /** @type {number} */ number) => (name === "target" && shown.order.length && shown.target.ordered === axis ? shown.order.indexOf(number) : number);
  return /** @type {Holder} */ (holdersOf(shown[name]).get(`${others}:${back("row", row)},${back("col", col)}`));
}

/**
 * The element of a thread as code names it: `d3`, or `a1.0` in a register of several.
 * @param {ConversionSide} side
 * @param {number} i
 */
function registerText({ operand, inside }, i) {
  return `${operand.name}${i >> inside}${inside ? `.${i % 2 ** inside}` : ""}`;
}

/**
 * Both sides as tables, one for each matrix.
 * @param {Conversion} shown
 * @param {string} colour
 * @returns {BoardTable[]}
 */
function conversionTables(shown, colour) {
  return SIDES.flatMap((name, place) => {
    const side = shown[name];
    const keys = [...holdersOf(side).keys()].map((key) => key.split(":"));
    const largest = (/** @type {number} */ axis) => keys.reduce((most, [, at]) => Math.max(most, Number(at.split(",")[axis])), 0);
    const [rows, cols] = [largest(0) + 1, largest(1) + 1];
    const stacked = cols >= STACKED_FROM || window.innerWidth <= STACKED_BELOW;
    const paints = /** @type {Record<string, (holder: Holder) => string>} */ ({ register: ({ i }) => hueOf(i >> side.inside) });
    return [...new Set(keys.map(([others]) => others))].map((others, down) => ({
      id: others ? `${name}/${others}` : name,
      title: place ? "After" : "Before",
      note: [`${titleOf(side.operand.name)} · ${side.operand.type}`, others].filter(Boolean).join(", "),
      rows,
      cols,
      down: stacked ? 2 * down + place : down,
      across: stacked ? 0 : place,
      wide: 1,
      rowName: String,
      colName: String,
      cell(/** @type {number} */ row, /** @type {number} */ col) {
        const holder = holdersOf(side).get(`${others}:${row},${col}`);
        if (!holder) return { fill: "", top: "", label: "", key: "" };
        const fill = (paints[colour] ?? (({ thread }) => colourOf(thread)))(holder);
        return { fill, top: `T${holder.thread}`, label: registerText(side, holder.i), key: side.inside ? `${holder.thread}.${holder.i >> side.inside}` : "" };
      },
    }));
  });
}

/**
 * The answer in words.
 * @param {Conversion} shown
 * @param {boolean} cheaper whether another order is cheaper
 */
function sentences(shown, cheaper) {
  const { kind, source, target, order, reordered } = shown;
  const tiles = [source, target].map((side) => ({ side, count: 2 ** (widthOf(side, "i") - side.elements) })).filter(({ count }) => count > 1);
  const along = target.summed ? "K" : "the columns";
  return [
    h("p", {}, h("strong", { class: ["same", "registers"].includes(kind) ? "good" : "" }, upperFirst(database.conversions[kind])), "."),
    tiles.length > 0 && h("p", {}, tiles.map(({ side, count }) => `${count} tiles of ${titleOf(side.operand.name)}, one after another.`).join(" ")),
    order.length > 0 && h("p", {}, `Along ${along} the target holds what the source has at ${order.slice(0, 16).join(", ")}${order.length > 16 ? " …" : ""}: ${target.summed ? "the other factor" : "what reads it"} has to follow.`),
    cheaper && reordered && h("p", {}, `With another order of ${along}: ${database.conversions[reordered.kind]}.`),
  ];
}

/** @param {string} text */
function upperFirst(text) {
  return text.replace(/^./, (letter) => letter.toUpperCase());
}

/**
 * The way of one element.
 * @param {Conversion} shown
 * @param {string} element
 */
function elementMoves(shown, element) {
  const [from, to] = SIDES.map((name) => holderOf(shown, name, element));
  const [others, place] = element.split(":");
  const where = (/** @type {Holder} */ { thread, i }, /** @type {ConversionSide} */ side) => [`thread ${thread}, `, h("code", {}, registerText(side, i))];
  const way = from.thread === to.thread ? "it stays in its thread" : Math.floor(from.thread / WARP) === Math.floor(to.thread / WARP) ? "another thread of the warp" : "another warp";
  return h(
    "div",
    {},
    h("h2", {}, `[${place.replace(",", "][")}]${others && `, ${others}`}`),
    h("dl", {}, fact("Is in", ...where(from, shown.source)), fact("Goes to", ...where(to, shown.target)), fact("Way", way)),
  );
}

function conversionHints() {
  return h("div", { class: "hints" }, h("h2", {}, "Point at an element"), h("p", {}, "Both places of it light up. T5 is thread 5; a1.0 is the lowest element of the second register."));
}
