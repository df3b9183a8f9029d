/** Layouts in the notations of CuTe and Triton, as `ptxmma.catalog.interop` writes them. */

/** @typedef {import("./index.d.ts").Operand} Operand */
/** @typedef {import("./index.d.ts").BitMap} BitMap */
/** @typedef {import("./index.d.ts").Layout} Layout */
/** @typedef {{size: number, dimension: string, weight: number}} Mode */
/** @typedef {{extents: Record<string, number>, threads: Mode[], values: Mode[]}} View */

const COPY = "copy";
const WARP_BITS = 5;

/**
 * CuTe's text of an operand's layout: `((4,8),(2,2)):((32,1),(16,8))`; undefined of an operand without one.
 * @param {Operand} operand
 * @returns {string | undefined}
 */
export function toCute(operand) {
  const view = viewOf(operand);
  if (!view) return undefined;
  /** @type {Record<string, number>} */
  const strides = { "": 0 };
  let stride = 1;
  for (const [name, size] of Object.entries(view.extents)) {
    strides[name] = stride;
    stride *= size;
  }
  const modes = [view.threads, view.values].map((part) => coalesced(part.map((mode) => [mode.size, strides[mode.dimension] * mode.weight])));
  const nested = (/** @type {0 | 1} */ side) => `(${modes.map((flat) => (flat.length > 1 ? `(${flat.map((mode) => mode[side]).join(",")})` : flat[0][side])).join(",")})`;
  return `${nested(0)}:${nested(1)}`;
}

/**
 * Triton's bases of an operand's layout: what each bit of register, lane and warp adds to the coordinates; undefined of an operand
 * without a layout, or with a number of columns that is no power of two.
 * @param {Operand} operand
 * @returns {{register: number[][], lane: number[][], warp: number[][]} | undefined}
 */
export function toTriton(operand) {
  const view = viewOf(operand);
  if (!view || !operand.layout || view.values.some((mode) => mode.size & (mode.size - 1))) return undefined;
  const names = Object.keys(view.extents);
  const order = operand.layout.kind === "fragment" ? [...leadingAxes(operand.layout), ...planeOf(operand.layout).filter(Boolean)] : names;
  const bases = (/** @type {Mode[]} */ modes) =>
    modes.flatMap((mode) =>
      Array.from({ length: Math.log2(mode.size) }, (_, bit) => order.map((name) => (name === mode.dimension ? mode.weight * 2 ** bit : 0))),
    );
  const threads = bases(view.threads);
  return { register: bases(view.values), lane: threads.slice(0, WARP_BITS), warp: threads.slice(WARP_BITS) };
}

/**
 * A layout as a function of the thread and of the number of what it holds, the fastest modes first.
 * @param {Operand} operand
 * @returns {View | undefined}
 */
function viewOf(operand) {
  const { layout } = operand;
  if (!layout || layout.kind === "address") return undefined;
  const back = layout.toAxes;
  if (layout.kind !== "fragment") {
    const counter = Object.keys(back.inputs).find((name) => name !== "lane") ?? "";
    return { extents: sizesOf(back), threads: modesOf(back, "lane"), values: modesOf(back, counter) };
  }
  const sizes = sizesOf(back);
  const values = modesOf(back, "i");
  const [row, col] = planeOf(layout);
  let step = sizes[col];
  if (layout.growing.length) {
    // The highest bits of i repeat the first columns up to N.
    while (values.length && values[values.length - 1].dimension === col && values[values.length - 1].weight === step / 2) {
      step = /** @type {Mode} */ (values.pop()).weight;
    }
    sizes[col] = operand.sizes[col];
  }
  // CuTe's B is (N, K).
  const matrix = (layout.summed === row ? [col, row] : [row, col]).filter(Boolean);
  const extents = Object.fromEntries([...matrix, ...leadingAxes(layout)].map((name) => [name, sizes[name]]));
  return { extents, threads: modesOf(back, "lane"), values: [...values, { size: sizes[col] / step, dimension: col, weight: step }] };
}

/**
 * @param {BitMap} map
 * @returns {Record<string, number>}
 */
function sizesOf(map) {
  return Object.fromEntries(Object.entries(map.outputs).map(([name, width]) => [name, 2 ** width]));
}

/**
 * The bits of one input as modes.
 * @param {BitMap} map
 * @param {string} input
 * @returns {Mode[]}
 */
function modesOf(map, input) {
  return map.bits[input].map(([output, bit]) => ({ size: 2, dimension: output === COPY ? "" : output, weight: 2 ** bit }));
}

/**
 * The axes that are the rows and columns of a fragment: its last two; "" of the rows where it has one.
 * @param {Layout} layout
 * @returns {string[]}
 */
function planeOf(layout) {
  return ["", ...layout.coordinates].slice(-2);
}

/**
 * The axes that tell the matrices of a fragment apart.
 * @param {Layout} layout
 * @returns {string[]}
 */
function leadingAxes(layout) {
  return Object.keys(layout.axes).filter((axis) => ![...planeOf(layout), COPY].includes(axis));
}

/**
 * The same function in the fewest modes.
 * @param {[number, number][]} flat
 * @returns {[number, number][]}
 */
function coalesced(flat) {
  /** @type {[number, number][]} */
  const modes = [];
  for (const [size, stride] of flat) {
    const last = modes[modes.length - 1];
    if (size === 1) continue;
    if (last && stride === last[0] * last[1]) last[0] *= size;
    else modes.push([size, stride]);
  }
  return modes.length ? modes : [[1, 0]];
}
