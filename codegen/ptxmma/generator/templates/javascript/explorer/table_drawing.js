/** Tables of cells: where they lie beside each other, and how each is drawn. */

/** @typedef {import("./pens.js").Pen} Pen */

/**
 * A table of cells on a board.
 * @typedef {object} Table
 * @property {string} id
 * @property {string} title
 * @property {string} note beside the title
 * @property {number} rows
 * @property {number} cols
 * @property {number} down place among the tables, from the top
 * @property {number} across place among the tables, from the left
 * @property {boolean} [hanging] whether it begins at the top of its place, where others end at the bottom
 * @property {number} wide width of a cell, in cells of the board
 * @property {(row: number, col: number) => Cell} cell
 * @property {(row: number) => string} rowName
 * @property {(col: number) => string} colName
 */

/**
 * @typedef {object} Cell
 * @property {string} fill empty: nothing is there
 * @property {string} top
 * @property {string} label
 * @property {string} key cells with one key that are neighbours are drawn without a line between them
 */

/** @typedef {{ink: string, faint: string, blank: string, accent: string, paper: string}} Colours */
/** @typedef {{table: Table, x: number, y: number, width: number, height: number}} Placed */

const TITLE = 24;
const EDGE = 16;
const GAP = 22;
const NUMBERS = 14;
const TINY = 10;
const LABELS = 22;
/** Strength of a colour outside of a selection: words on it can be read, on light and on dark. */
const DIMMED = 0.16;

/**
 * Pixels that the names of rows need.
 * @param {Table} table
 */
function sideOf(table) {
  return Math.max(22, table.rowName(table.rows - 1).length * 7 + 8);
}

/**
 * The place of each table, for cells of a height and a width.
 * @param {Table[]} tables
 * @param {number} size
 * @param {number} across
 * @returns {{placed: Placed[], width: number, height: number, side: number}}
 */
export function laidOut(tables, size, across) {
  const side = Math.max(...tables.map(sideOf));
  /** @type {Map<number, number>} */
  const widths = new Map();
  /** @type {Map<number, number>} */
  const heights = new Map();
  const grow = (/** @type {Map<number, number>} */ map, /** @type {number} */ key, /** @type {number} */ value) => map.set(key, Math.max(map.get(key) ?? 0, value));
  for (const table of tables) {
    grow(widths, table.across, Math.max(side + table.cols * across * table.wide, table.title.length * 8 + side));
    grow(heights, table.down, TITLE + EDGE + table.rows * size);
  }
  const starts = (/** @type {Map<number, number>} */ map) => {
    let from = 0;
    return new Map([...map.keys()].sort((one, other) => one - other).map((key) => {
      const start = from;
      from += (map.get(key) ?? 0) + GAP;
      return [key, start];
    }));
  };
  const lefts = starts(widths);
  const tops = starts(heights);
  const placed = tables.map((table) => {
    const top = tops.get(table.down) ?? 0;
    const y = top + (table.hanging ? TITLE + EDGE : (heights.get(table.down) ?? 0) - table.rows * size);
    return { table, x: (lefts.get(table.across) ?? 0) + side, y, width: table.cols * across * table.wide, height: table.rows * size };
  });
  const total = (/** @type {Map<number, number>} */ map) => [...map.values()].reduce((sum, value) => sum + value + GAP, -GAP);
  return { placed, width: total(widths) + 4, height: total(heights) + 4, side };
}

/**
 * @param {Pen} pen
 * @param {Placed} placed
 * @param {number} size
 * @param {number} across
 * @param {Colours} colours
 * @param {(table: Table, row: number, col: number) => number} lights
 * @param {boolean} anyLit
 * @param {{left: number, top: number, right: number, bottom: number}} sight
 */
export function drawTable(pen, { table, x, y }, size, across, colours, lights, anyLit, sight) {
  const wide = across * table.wide;
  const first = { row: Math.max(0, Math.floor((sight.top - y) / size)), col: Math.max(0, Math.floor((sight.left - x) / wide)) };
  const last = { row: Math.min(table.rows, Math.ceil((sight.bottom - y) / size)), col: Math.min(table.cols, Math.ceil((sight.right - x) / wide)) };
  const side = sideOf(table);
  // Titles and names stay in sight where the table is scrolled.
  const [left, above] = [Math.max(x, sight.left + side), Math.max(y, sight.top + EDGE)];
  pen.text(left, y - EDGE - 10, table.title, 13, colours.ink, { bold: true, anchor: "start" });
  const room = x + table.cols * wide - left - table.title.length * 8 - 10;
  if (table.note && table.note.length * 6 <= room) pen.text(left + table.title.length * 8 + 10, y - EDGE - 10, table.note, 11, colours.faint, { anchor: "start" });
  const nameSize = Math.min(11, Math.max(8, size * 0.55));
  const everyRow = Math.max(1, Math.ceil(11 / size));
  const longest = table.colName(table.cols - 1).length;
  const everyCol = Math.max(1, 2 ** Math.ceil(Math.log2((longest * 6 + 3) / wide)));
  /** @type {[number, number][]} */
  const pointed = [];
  /** @type {(() => void)[]} labels over several cells, which are drawn first */
  const shared = [];
  const line = size >= 10 ? 1 : 0;
  for (let row = first.row; row < last.row; row += 1) {
    for (let col = first.col; col < last.col; col += 1) {
      const cell = table.cell(row, col);
      const lit = lights(table, row, col);
      const dim = anyLit && !lit;
      const strength = dim ? DIMMED : 1;
      const right = line && !(col + 1 < table.cols && table.cell(row, col + 1).key === cell.key && cell.key) ? 1 : 0;
      const below = line && !(row + 1 < table.rows && table.cell(row + 1, col).key === cell.key && cell.key) ? 1 : 0;
      const bare = lit ? colours.accent : colours.blank;
      pen.box(x + col * wide, y + row * size, wide - right, size - below, cell.fill || bare, cell.fill || !lit ? strength : 0.55);
      const [middle, centre] = [x + (col + 0.5) * wide - right / 2, y + (row + 0.5) * size];
      const ink = cell.fill && !dim ? "#14171a" : colours.faint;
      if (size >= LABELS && cell.label) {
        pen.text(middle, centre - size * 0.2, cell.top, Math.min(12, size * 0.4), ink, { bold: true });
        // A narrow cell names its element alone: the register is among the details.
        const label = cell.label.length * 6 > wide ? cell.label.replace(/.* /, "") : cell.label;
        pen.text(middle, centre + size * 0.22, label, Math.min(10, size * 0.38, (wide * 1.75) / label.length), ink);
      } else if (Math.min(size, wide) >= NUMBERS && cell.top) pen.text(middle, centre, cell.top, Math.min(11, size * 0.5, (wide * 1.35) / cell.top.length), ink);
      else if (cell.top && size >= TINY && (col === first.col || !cell.key || table.cell(row, col - 1).key !== cell.key)) {
        // Small cells of one register have one label together, where it fits.
        let count = 1;
        while (cell.key && col + count < last.col && table.cell(row, col + count).key === cell.key) count += 1;
        const label = () => pen.text(x + (col + count / 2) * wide, centre, cell.top, size * 0.75, ink);
        if (count > 1 && count * wide >= cell.top.length * 6) shared.push(label);
        else if (count === 1) pen.text(middle, centre, cell.top.replace(/^T/, ""), Math.min(size * 0.65, (wide * 1.3) / cell.top.length), ink);
      }
      if (lit === 2) pointed.push([row, col]);
    }
  }
  for (const label of shared) label();
  if (left > x) pen.box(sight.left, above, side, Math.max(0, y + table.rows * size - above), colours.paper);
  if (above > y && y + table.rows * size > above) pen.box(left - side, sight.top, x + table.cols * wide - left + side, EDGE, colours.paper);
  for (let row = first.row; row < last.row; row += 1) if (row % everyRow === 0 && y + row * size >= above) pen.text(left - 5, y + (row + 0.5) * size, table.rowName(row), nameSize, colours.faint, { anchor: "end" });
  if (y + table.rows * size > above) for (let col = first.col; col < last.col; col += 1) if (col % everyCol === 0 && x + col * wide >= left) pen.text(x + (col + 0.5) * wide, above - 8, table.colName(col), nameSize, colours.faint);
  for (const [row, col] of pointed) pen.frame(x + col * wide + 0.5, y + row * size + 0.5, wide - 2, size - 2, colours.accent, size >= 14 ? 2 : 1);
}
