/** The matrices of an instruction, drawn as they multiply. */

import { shortName } from "../source_texts.js";
import { tensorOperands } from "../tensor_places.js";
import { Board } from "./board.js";
import { choice, fill, h, numberField, segments, worded } from "./dom.js";
import { elementDetails, elementSentence, laneDetails, observedNote } from "./inspector.js";
import { colourOf, hueOf } from "./palette.js";
import { lightsOf, sceneOf, WARP } from "./scene.js";
import { chosenOf, chosenText } from "./state.js";
import { zoomButtons } from "./zoom.js";

/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("./board.js").Spot} Spot */
/** @typedef {import("./table_drawing.js").Table} BoardTable */
/** @typedef {import("./scene.js").Focus} Focus */
/** @typedef {import("./scene.js").Panel} Panel */
/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Store} Store */

export class MatricesView {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Scene | null} */
    this.scene = null;
    /** @type {import("../index.d.ts").InstructionGroup | null} */
    this.group = null;
    /** @type {Focus | null} */
    this.hover = null;
    this.tools = h("div", { class: "tools" });
    this.notes = h("div", { class: "notes" });
    this.details = h("aside", { class: "details", "aria-label": "Details" });
    this.live = h("p", { class: "unseen", role: "status", "aria-live": "polite" });
    this.board = new Board("Matrices", {
      point: (spot) => this.#point(spot),
      pick: (spot) => {
        this.hover = null;
        this.store.set({ at: spot ? textOf(spot.table.id, spot.row, spot.col) : "" });
      },
    });
    this.element = h("section", { class: "view matrices" }, h("div", { class: "drawing" }, this.tools, this.notes, this.board.element), this.details, this.live);
  }

  /**
   * @param {Instruction} instruction
   * @param {State} state
   * @param {Set<keyof State>} changed
   */
  update(instruction, state, changed) {
    const again = ["i", "choose", "middle", "colour", "zoom", "v"].some((key) => changed.has(/** @type {keyof State} */ (key)));
    if (again || !this.scene) {
      this.scene = sceneOf(instruction, chosenOf(state.choose), state.middle);
      fill(this.tools, this.#toolbar(this.scene, state));
      const layouts = new Map(this.scene.panels.flatMap((panel) => (panel.table?.layout.observed ? [[panel.table.layout.observed, panel.table.layout]] : [])));
      fill(this.notes, [...layouts.values()].map(observedNote), !this.scene.panels.length && h("p", {}, "This instruction has no matrices in registers."), tensorOperands(instruction, null).size > 0 && h("button", { type: "button", onclick: () => this.store.set({ v: "tensor" }) }, "Show tensor memory"));
      this.details.hidden = !this.scene.panels.length;
      this.board.show(this.scene.panels.map((panel) => tableOf(panel, state.colour)), Number(state.zoom));
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
    const lanes = Math.max(WARP, ...scene.panels.map((panel) => panel.table?.threads ?? 0));
    const lane = state.at.startsWith("lane:") ? Number(state.at.slice(5)) : "";
    const colours = /** @type {[string, string][]} */ ([["lane", "Lane"], ["register", "Register"], ...(lanes > WARP ? [["warp", "Warp"]] : [])]);
    return [
      segments("Colour by", colours, state.colour, (colour) => this.store.set({ colour })),
      scene.accumulators.length > 1 && segments("Middle", scene.accumulators.map((name) => [name, name.toUpperCase()]), state.middle || scene.accumulators[0], (middle) => this.store.set({ middle })),
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

  /** @param {State} state */
  #shown(state) {
    const { scene } = this;
    if (!scene) return;
    const picked = focusOf(scene, state.at);
    const focus = this.hover ?? picked;
    const lights = focus && lightsOf(scene, focus);
    const byId = new Map(scene.panels.map((panel) => [panel.id, panel]));
    this.board.light(lights && ((table, row, col) => lights(/** @type {Panel} */ (byId.get(table.id)), row, col)));
    const panel = focus && "panel" in focus ? byId.get(focus.panel) : undefined;
    const follow = { lane: (/** @type {number} */ lane) => this.store.set({ at: `lane:${lane}` }), memory: () => this.store.set({ v: "memory" }) };
    if (focus && "lane" in focus) fill(this.details, laneDetails(scene, focus.lane, (to, row, col) => this.store.set({ at: textOf(to.id, row, col) })));
    else if (focus && panel) fill(this.details, elementDetails(scene, panel, focus.row, focus.col, follow));
    else fill(this.details, hints(scene));
    if (focus && !this.hover) this.live.textContent = "lane" in focus ? `Lane ${focus.lane}` : panel ? elementSentence(panel, focus.row, focus.col) : "";
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
 * The selection that a text of the URL names: `a:9,3`, `lane:5`; null where the instruction has no such thing.
 * @param {Scene} scene
 * @param {string} text
 * @returns {Focus | null}
 */
function focusOf(scene, text) {
  const [id, place = ""] = text.split(":");
  if (id === "lane" && place) return { lane: Number(place) };
  const panel = scene.panels.find((each) => each.id === id) ?? (scene.accumulators.includes(id) ? scene.panels.find((each) => each.side === "middle") : undefined);
  const [row, col] = place.split(",").map(Number);
  return panel && row < panel.rows && col < panel.cols ? { panel: panel.id, row, col } : null;
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
