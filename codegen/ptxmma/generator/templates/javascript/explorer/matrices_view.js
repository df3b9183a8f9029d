/** The matrices of an instruction, drawn as they multiply. */

import { arrangements } from "../arrangements.js";
import { shortName } from "../source_texts.js";
import { tensorOperands } from "../tensor_places.js";
import { Board } from "./board.js";
import { choice, fill, h, numberField, segments, worded } from "./dom.js";
import { briefName, elementAnswer, elementDetails, elementSentence, laneDetails, observedNote } from "./inspector.js";
import { colourOf, hueOf } from "./palette.js";
import { byName, oneOf } from "./legal.js";
import { focusOf, lightsOf, sceneOf, threadsOf, WARP } from "./scene.js";
import { chosenOf, chosenText } from "./state.js";
import { View } from "./view.js";
import { zoomButtons } from "./zoom.js";

/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("./board.js").Spot} Spot */
/** @typedef {import("./table_drawing.js").Table} BoardTable */
/** @typedef {import("./scene.js").Focus} Focus */
/** @typedef {import("./scene.js").Panel} Panel */
/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Store} Store */

export class MatricesView extends View {
  /** @param {Store} store */
  constructor(store) {
    super(store);
    /** @type {Scene | null} */
    this.scene = null;
    /** @type {import("../index.d.ts").InstructionGroup | null} */
    this.group = null;
    /** @type {Focus | null} */
    this.hover = null;
    /** The accumulator that is drawn, where it is not the result. */
    this.middle = "";
    this.caption = h("p", { class: "caption" });
    this.board = new Board("Matrices", {
      point: (spot) => this.#point(spot),
      pick: (spot) => {
        this.hover = null;
        this.store.set({ at: spot ? textOf(spot.table.id, spot.row, spot.col) : "" });
      },
    });
    this.element = h("section", { class: "view matrices" }, h("div", { class: "drawing" }, this.tools, this.notes, this.board.element, this.caption), this.details, this.live);
  }

  /**
   * @param {Instruction} instruction
   * @param {State} state
   * @param {Set<keyof State>} changed
   */
  update(instruction, state, changed) {
    const again = ["i", "choose", "middle", "colour", "zoom", "v"].some((key) => changed.has(/** @type {keyof State} */ (key)));
    const [named] = state.at.toLowerCase().split(":");
    const middle = [named, state.embed].find((name) => instruction.places[name] === "middle") ?? state.middle;
    if (again || middle !== this.middle || !this.scene) {
      this.middle = middle;
      this.scene = sceneOf(instruction, legalChoices(instruction, chosenOf(state.choose)), middle);
      const { choices, accumulators, panels: every } = this.scene;
      this.legal = { choose: byName(choices), middle: oneOf(accumulators), embed: oneOf(every.flatMap(({ name, table }) => [name, table?.operand.name ?? name])) };
      fill(this.tools, this.#toolbar(this.scene, state));
      const layouts = new Map(this.scene.panels.flatMap((panel) => (panel.table?.layout.observed ? [[panel.table.layout.observed, panel.table.layout]] : [])));
      fill(this.notes, [...layouts.values()].map(observedNote), !this.scene.panels.length && h("p", {}, "This instruction has no matrices in registers."), tensorOperands(instruction, null).size > 0 && h("button", { onclick: () => this.store.set({ v: "tensor" }) }, "Show tensor memory"));
      this.details.hidden = !this.scene.panels.length;
      const panels = this.scene.panels.filter(({ name, table }) => ["", name, table?.operand.name].includes(state.embed));
      const tables = panels.map((panel) => tableOf(panel, state.colour));
      this.board.show(tables, state.zoom, tables.map((table, place) => ({ ...table, ...besides(panels[place]) })));
    }
    this.#shown(state);
    if (this.group !== instruction.group) this.board.toCorner();
    this.group = instruction.group;
    if (changed.has("at") || changed.has("i")) this.board.reveal();
  }

  /**
   * @param {Scene} scene
   * @param {State} state
   */
  #toolbar(scene, state) {
    const chosen = chosenOf(state.choose);
    const lanes = threadsOf(scene);
    const lane = state.at.startsWith("lane:") ? Number(state.at.slice(5)) : "";
    const colours = /** @type {[string, string][]} */ ([["lane", "Lane"], ["register", "Register"], ...(lanes > WARP ? [["warp", "Warp"]] : [])]);
    return [
      segments("Colour by", colours, state.colour, (colour) => this.store.set({ colour })),
      scene.accumulators.length > 1 && segments("Middle", scene.accumulators.map((name) => [name, name.toUpperCase()]), state.middle || scene.accumulators[0], (middle) => this.store.set({ middle, at: "" })),
      ...Object.entries(scene.choices).map(([axis, values]) => choice(worded(axis), values.map(String), String(chosen[axis] ?? values[0]), (value) => this.store.set({ choose: chosenText({ ...chosen, [axis]: Number(value) }) }))),
      numberField("Lane", lane, (value) => this.store.set({ at: value === undefined ? "" : `lane:${Math.min(Math.max(value, 0), lanes - 1)}` }), { min: 0, max: lanes - 1, placeholder: "any", class: "short" }),
      zoomButtons(this.store, this.board),
    ];
  }

  /** @param {Spot | null} spot */
  #point(spot) {
    this.hover = spot ? { panel: spot.table.id, row: spot.row, col: spot.col } : null;
    this.#shown(this.store.state);
  }

  /**
   * The selection; what is wrong with it is a fault of the link.
   * @param {Scene} scene
   * @param {string} at
   */
  #picked(scene, at) {
    try {
      this.fault = "";
      return focusOf(scene, at);
    } catch (error) {
      this.fault = `${at}: ${/** @type {Error} */ (error).message}.`;
      return null;
    }
  }

  /** @param {State} state */
  #shown(state) {
    const { scene } = this;
    if (!scene) return;
    const picked = this.#picked(scene, state.at);
    const focus = this.hover ?? picked;
    const lights = focus && lightsOf(scene, focus);
    const byId = new Map(scene.panels.map((panel) => [panel.id, panel]));
    this.board.light(lights && ((table, row, col) => lights(/** @type {Panel} */ (byId.get(table.id)), row, col)));
    const panel = focus && "panel" in focus ? byId.get(focus.panel) : undefined;
    const follow = { lane: (/** @type {number} */ lane) => this.store.set({ at: `lane:${lane}` }), memory: () => this.store.set({ v: "memory" }) };
    if (focus && "lane" in focus) fill(this.details, laneDetails(scene, focus.lane, (to, row, col) => this.store.set({ at: textOf(to.id, row, col) })));
    else if (focus && panel) fill(this.details, elementDetails(scene, panel, focus.row, focus.col, follow));
    else fill(this.details, hints(scene));
    const said = focus ? ("lane" in focus ? `Lane ${focus.lane}` : panel ? elementSentence(panel, focus.row, focus.col) : "") : "";
    this.caption.textContent = said || "Point at an element.";
    if (!this.hover) {
      this.live.textContent = said;
      this.headline = said && panel ? elementAnswer(scene, panel, /** @type {any} */ (focus).row, /** @type {any} */ (focus).col) : said && `${said} of ${briefName(scene.instruction)}`;
    }
    const drawn = picked && "panel" in picked ? this.board.tables.find((table) => table.id === picked.panel) : undefined;
    if (drawn && picked && "panel" in picked) this.board.cursor = { table: drawn, row: picked.row, col: picked.col };
  }
}

/**
 * @param {string} panel
 * @param {number} row
 * @param {number} col
 */
function textOf(panel, row, col) {
  return `${panel}:${row},${col}`;
}

/**
 * The choices that an instruction has; the others belong to another instruction.
 * @param {Instruction} instruction
 * @param {Record<string, number>} chosen
 */
function legalChoices(instruction, chosen) {
  const tables = [...arrangements(instruction).values()];
  return Object.fromEntries(Object.entries(chosen).filter(([axis, value]) => tables.every(({ legal }) => !legal[axis] || legal[axis].includes(value))));
}

/**
 * The place of a panel in a row of all: A, B, D, each with what belongs to it.
 * @param {Panel} panel
 */
function besides({ side, name, across, down }) {
  const after = Number(side === "top" && name.length > 1);
  return side ? { down: 2, across: across + after + 3 * Number(side === "middle"), hanging: true } : { down, across };
}

/**
 * A panel as a table of the board.
 * @param {Panel} panel
 * @param {string} colour
 * @returns {BoardTable}
 */
function tableOf(panel, colour) {
  const { table } = panel;
  const size = `${panel.rows} × ${panel.cols}`;
  const type = table?.operand.type ? ` ${table.operand.type}` : "";
  return {
    id: panel.id,
    title: panel.title,
    note: table ? `${size}${type}${table.operand.sparse ? ", packed" : ""}` : `${size}, in shared memory`,
    rows: panel.rows,
    cols: panel.cols,
    down: panel.down,
    across: panel.across,
    wide: table?.layout.kind === "metadata" ? 1.5 : 1,
    rowName: String,
    colName: String,
    cell(row, col) {
      const place = panel.places[row * panel.cols + col];
      if (!table || !place) return { fill: "", top: "", label: "", key: "" };
      const fills = { lane: () => colourOf(place.lane), register: () => hueOf(place.register), warp: () => hueOf(Math.floor(place.lane / WARP)) };
      const paint = /** @type {Record<string, () => string>} */ (fills)[colour] ?? fills.lane;
      const label = table.layout.kind === "address" ? "" : shortName(place, table);
      return { fill: paint(), top: `T${place.lane}`, label: label || " ", key: table.perRegister > 1 ? `${place.lane}.${place.register}` : "" };
    },
  };
}

/** @param {Scene} scene */
function hints(scene) {
  const product = scene.panels.some((panel) => panel.side === "middle");
  return h(
    "div",
    { class: "hints" },
    h("h2", {}, "Point at an element"),
    h("p", {}, "You see its lane, its register and bits, and the formulas that lead to it. Click to keep it, then use the arrow keys."),
    product && h("p", {}, "An element of D lights up all that feeds it."),
    h("p", {}, "T5 is thread 5; r1 a3 is element 3 of A, in the second register. Cells without a line between them share a register."),
  );
}
