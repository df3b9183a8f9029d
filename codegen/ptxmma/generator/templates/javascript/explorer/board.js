/** A board of tables: only what is in sight is drawn, so that the largest matrices stay fast. */

import { h } from "./dom.js";
import { canvasPen, svgDocument, svgPen } from "./pens.js";
import { drawTable, laidOut } from "./table_drawing.js";

/** @typedef {import("./table_drawing.js").Colours} Colours */
/** @typedef {import("./table_drawing.js").Table} Table */
/** @typedef {{table: Table, row: number, col: number}} Spot */

const LARGEST = 44;
/** Cells are wider than high where there is room: two words stand in each. */
const WIDEST = 1.5;
/** Cells of this height can be read: fitting does not go below it for the sake of height. */
const READABLE = 22;
const LEAST = 12;
/** Cells of the size that is asked for by this word are as large as fits both ways, readable or not. */
const FIT = "fit";
const SMALLEST = 3;
/** The part of the window from its top where D begins if what is on top of it does not fit. */
const CORNER = 0.4;
/** Pixels of height that a board has at least. */
const LOWEST = 300;
/** In a narrow window the page is scrolled instead of the board, and the details stay at the window's end: so much of it is the board's. */
const NARROW = 900;
const SHARE = 0.9;
const CLEAR = 0.6;
/** Pixels between a cell that was brought into sight and the edge of the window. */
const MARGIN = 40;

export class Board {
  /**
   * @param {string} label
   * @param {{point: (spot: Spot | null) => void, pick: (spot: Spot | null) => void}} listeners
   */
  constructor(label, listeners) {
    /** @type {Table[]} */
    this.tables = [];
    /** @type {{tables: Table[], zoom: string, beside: Table[]}} */
    this.asked = { tables: [], zoom: "", beside: [] };
    /** @type {(table: Table, row: number, col: number) => number} */
    this.lights = () => 0;
    this.anyLit = false;
    this.size = 20;
    this.across = 20;
    /** @type {Spot | null} */
    this.cursor = null;
    this.canvas = h("canvas", { tabIndex: 0, role: "application", "aria-label": `${label}; arrow keys move between elements` });
    this.spacer = h("div", { class: "spacer" }, this.canvas);
    this.element = h("div", { class: "board", role: "region", "aria-label": label }, this.spacer);
    this.listeners = listeners;
    this.pending = 0;
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    this.canvas.addEventListener("pointermove", (event) => event.pointerType === "mouse" && listeners.point(this.#spotAt(event)));
    this.canvas.addEventListener("pointerleave", () => listeners.point(null));
    this.canvas.addEventListener("click", (event) => {
      this.cursor = this.#spotAt(event);
      listeners.pick(this.cursor);
    });
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.draw()).observe(this.element);
    window.addEventListener("resize", () => this.element.offsetParent && this.#place());
  }

  /** @returns {Colours} */
  get colours() {
    const style = getComputedStyle(this.element);
    const value = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    return { ink: value("--ink"), faint: value("--faint"), blank: value("--blank"), accent: value("--accent"), paper: value("--paper") };
  }

  /**
   * Shows tables in cells of a size: pixels, `fit`, or empty for the largest that fits and can be read.
   * @param {Table[]} tables
   * @param {string} zoom
   * @param {Table[]} beside the same tables in a row, for low windows
   */
  show(tables, zoom, beside = tables) {
    this.asked = { tables, zoom, beside };
    this.#place();
  }

  #place() {
    this.#fit(this.asked);
    const { width, height } = laidOut(this.tables, this.size, this.across);
    this.spacer.style.width = `${width}px`;
    this.spacer.style.height = `${height}px`;
    this.element.style.height = `${height + 18}px`;
    this.element.style.maxHeight = `${this.#room()}px`;
    this.draw();
  }

  /**
   * Chooses the size of cells, and the tables in a row where the others cannot be read at a glance.
   * @param {{tables: Table[], zoom: string, beside: Table[]}} asked
   */
  #fit({ tables, zoom, beside }) {
    const room = (this.element.clientWidth || 800) - 4;
    const high = this.#room() - 18;
    const least = zoom === FIT ? SMALLEST : LEAST;
    const fits = (/** @type {Table[]} */ some, /** @type {number} */ size, /** @type {number} */ across, /** @type {number} */ most) => {
      const { width, height } = laidOut(some, size, across);
      return width <= room && height <= most;
    };
    const largest = (/** @type {Table[]} */ some, /** @type {number} */ from, /** @type {number} */ most) => {
      let size = from;
      while (size >= least && !fits(some, size, size, most)) size -= 1;
      return size < least ? 0 : size;
    };
    const whole = [tables, beside].map((some) => largest(some, LARGEST, high));
    const wide = [tables, beside].map((some) => largest(some, READABLE, Infinity));
    const inRow = whole[0] < READABLE && (whole[1] || wide[1]) > whole[0];
    this.tables = inRow ? beside : tables;
    const own = Number(inRow);
    this.size = Number(zoom) || whole[own] || wide[own] || least;
    let across = this.size * WIDEST;
    while (across > this.size && !fits(this.tables, this.size, across, Infinity)) across -= 1;
    this.across = Math.max(Math.floor(across), this.size);
  }

  /** Pixels of height that the board may have: in a wide window those from its top to the end of the window. */
  #room() {
    if (window.innerWidth <= NARROW) return Math.max(LOWEST, window.innerHeight * SHARE);
    return Math.max(LOWEST, window.innerHeight - this.element.getBoundingClientRect().top - window.scrollY - 12);
  }

  /** Scrolls to where the lowest tables begin: what is on top of D may be tall. */
  toCorner() {
    const first = Math.max(0, ...laidOut(this.tables, this.size, this.across).placed.map(({ y }) => y));
    const { clientHeight, scrollHeight } = this.element;
    this.element.scrollTo(0, scrollHeight > clientHeight + MARGIN ? first - clientHeight * CORNER : 0);
  }

  /**
   * Lights cells.
   * @param {((table: Table, row: number, col: number) => number) | null} lights
   */
  light(lights) {
    this.lights = lights ?? (() => 0);
    this.anyLit = lights !== null;
    this.draw();
  }

  /** Draws what is in sight, in the next frame. */
  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.#drawNow();
    });
  }

  #drawNow() {
    const { clientWidth: width, clientHeight: height, scrollLeft: left, scrollTop: top } = this.element;
    const ratio = window.devicePixelRatio || 1;
    if (!width || !height) return;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.setTransform(ratio, 0, 0, ratio, -left * ratio, -top * ratio);
    const pen = canvasPen(context);
    const sight = { left, top, right: left + width, bottom: top + height };
    const colours = this.colours;
    for (const placed of laidOut(this.tables, this.size, this.across).placed) drawTable(pen, placed, this.size, this.across, colours, this.lights, this.anyLit, sight);
  }

  /**
   * Some tables as the text of an SVG, all of them.
   * @param {string} title
   * @param {(table: Table) => boolean} wanted
   * @returns {string}
   */
  svg(title, wanted = () => true) {
    const { pen, elements } = svgPen();
    const size = Math.max(this.size, READABLE);
    const across = size * WIDEST;
    const tables = this.tables.filter(wanted);
    const { placed, width, height } = laidOut(tables, size, across);
    const colours = { ink: "#14171a", faint: "#57606a", blank: "#e9ebee", accent: "#0b5cad", paper: "#ffffff" };
    pen.box(0, 0, width + 16, height + 16, colours.paper);
    const sight = { left: 0, top: 0, right: width, bottom: height };
    for (const each of placed) drawTable(pen, { ...each, x: each.x + 8, y: each.y + 8 }, size, across, colours, () => 0, false, { ...sight, right: width + 16, bottom: height + 16 });
    return svgDocument(elements, width + 16, height + 16, title);
  }

  /**
   * The place of a cell in the window: for tests, and to bring it into sight.
   * @param {string} id
   * @param {number} row
   * @param {number} col
   * @returns {{x: number, y: number} | null}
   */
  middleOf(id, row, col) {
    const placed = laidOut(this.tables, this.size, this.across).placed.find((each) => each.table.id === id);
    if (!placed) return null;
    const { left, top } = this.canvas.getBoundingClientRect();
    return { x: left + placed.x + (col + 0.5) * this.across * placed.table.wide - this.element.scrollLeft, y: top + placed.y + (row + 0.5) * this.size - this.element.scrollTop };
  }

  /**
   * @param {MouseEvent} event
   * @returns {Spot | null}
   */
  #spotAt(event) {
    const x = event.offsetX + this.element.scrollLeft;
    const y = event.offsetY + this.element.scrollTop;
    for (const placed of laidOut(this.tables, this.size, this.across).placed) {
      const col = Math.floor((x - placed.x) / (this.across * placed.table.wide));
      const row = Math.floor((y - placed.y) / this.size);
      if (row >= 0 && col >= 0 && row < placed.table.rows && col < placed.table.cols) return { table: placed.table, row, col };
    }
    return null;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const steps = /** @type {Record<string, [number, number]>} */ ({ ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] });
    const step = steps[event.key];
    if (!this.tables.length || event.metaKey || event.ctrlKey || event.altKey || (!step && !["Tab", "Home"].includes(event.key))) return;
    const current = this.cursor && this.tables.find((table) => table.id === this.cursor?.table.id);
    if (event.key === "Tab") {
      // From table to table, and out of the board after the last.
      const next = this.tables.indexOf(current ?? this.tables[0]) + (event.shiftKey ? -1 : 1);
      if (!current || !this.tables[next]) return;
      this.cursor = { table: this.tables[next], row: 0, col: 0 };
    } else if (!current || !step) this.cursor = { table: current ?? this.tables[0], row: 0, col: 0 };
    else {
      const far = event.shiftKey ? 8 : 1;
      const row = Math.min(Math.max((this.cursor?.row ?? 0) + step[0] * far, 0), current.rows - 1);
      const col = Math.min(Math.max((this.cursor?.col ?? 0) + step[1] * far, 0), current.cols - 1);
      this.cursor = { table: current, row, col };
    }
    event.preventDefault();
    this.reveal();
    this.listeners.pick(this.cursor);
  }

  /** Scrolls so that the cursor is in sight. */
  reveal() {
    if (!this.cursor) return;
    const placed = laidOut(this.tables, this.size, this.across).placed.find((each) => each.table.id === this.cursor?.table.id);
    if (!placed) return;
    const wide = this.across * placed.table.wide;
    const [x, y] = [placed.x + this.cursor.col * wide, placed.y + this.cursor.row * this.size];
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.element;
    if (x < scrollLeft || x + wide > scrollLeft + clientWidth) this.element.scrollLeft = x - clientWidth / 2;
    if (y < scrollTop || y + this.size > scrollTop + clientHeight) this.element.scrollTop = y - clientHeight / 2;
    const place = this.middleOf(placed.table.id, this.cursor.row, this.cursor.col);
    const end = window.innerHeight * (window.innerWidth <= NARROW ? CLEAR : 1);
    if (place && place.y > end - MARGIN) window.scrollBy({ top: place.y - end + 2 * MARGIN });
    else if (place && place.y < 0) window.scrollBy({ top: place.y - 2 * MARGIN });
  }
}
