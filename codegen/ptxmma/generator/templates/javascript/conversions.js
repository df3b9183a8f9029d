/** A fragment as another operand takes it, as `ptxmma.catalog.conversion` says it: the bits of both places, matched. */

import { database } from "./database.js";

/** @typedef {import("./index.d.ts").Conversion} Conversion */
/** @typedef {import("./index.d.ts").ConversionSide} ConversionSide */
/** @typedef {import("./index.d.ts").Operand} Operand */
/** @typedef {[axis: string, by: number] | null} Stride null: any */

const PLANE = ["row", "col"];
const MATRIX_COPY = "copy";
const LANE_BITS = Math.log2(database.scopes.warp);
const QUAD_BITS = 2;
const GROUPS = ["cta", "warp"];

/**
 * The way that brings the elements of one operand's registers to the registers of another; undefined where one has no elements in registers.
 * @param {Operand} source
 * @param {Operand} target
 * @param {boolean} transpose the target holds the transposed matrix
 * @returns {Conversion | undefined}
 */
export function conversionOf(source, target, transpose = false) {
  if (source.layout?.kind !== "fragment" || target.layout?.kind !== "fragment") return undefined;
  const [from, to] = [stridesOf(source), stridesOf(target)];
  if (transpose) {
    for (const [place, stride] of from.places) if (stride && PLANE.includes(stride[0])) from.places.set(place, [PLANE[1 - PLANE.indexOf(stride[0])], stride[1]]);
  }
  const origin = matched(from, to);
  const kinds = Object.keys(database.conversions);
  const plain = { kind: kindOf(from, to, origin), source: from, target: to, origin, order: /** @type {number[]} */ ([]) };
  const along = alongOrder(to, origin);
  const changed = new Map([...origin, ...inOrder(along, along.map((place) => origin.get(place) ?? ""))]);
  const kind = kindOf(from, to, changed);
  if (kinds.indexOf(kind) >= kinds.indexOf(plain.kind)) return { ...plain, reordered: null };
  return { ...plain, reordered: { kind, source: from, target: to, origin: changed, order: orderOf(to, along, origin, changed), reordered: null } };
}

/**
 * The element at a place: its number on each axis.
 * @param {ConversionSide} side
 * @param {Record<string, number>} place
 * @returns {Record<string, number>}
 */
export function elementAt(side, place) {
  /** @type {Record<string, number>} */
  const axes = {};
  for (const [key, stride] of side.places) {
    if (!stride || stride[0] === MATRIX_COPY) continue;
    const [name, bit] = bitOf(key);
    axes[stride[0]] = (axes[stride[0]] ?? 0) + ((place[name] >> bit) & 1) * stride[1];
  }
  return axes;
}

/**
 * The bits of a part of a place: `i`, `lane`, `warp`.
 * @param {ConversionSide} side
 * @param {string} name
 */
export function widthOf(side, name) {
  return [...side.places.keys()].filter((key) => bitOf(key)[0] === name).length;
}

/**
 * @param {string} key
 * @returns {[name: string, bit: number]}
 */
function bitOf(key) {
  const name = key.replace(/\d+$/, "");
  return [name, Number(key.slice(name.length))];
}

/**
 * The strides of one tile of an operand.
 * @param {Operand} operand
 * @returns {ConversionSide}
 */
function stridesOf(operand) {
  const layout = /** @type {import("./index.d.ts").Layout} */ (operand.layout);
  const plane = ["", ...layout.coordinates].slice(-2);
  const called = (/** @type {string} */ axis) => PLANE[plane.indexOf(axis)] ?? axis;
  const inside = Math.log2(operand.elements / Math.max(operand.registers, 1));
  const bits = layout.toAxes.bits;
  const [growing = ""] = layout.growing;
  let step = 2 ** (layout.toAxes.outputs[growing] ?? 0);
  // The highest bits of i repeat the first columns up to N.
  for (const [axis, bit] of [...bits.i].reverse()) {
    if (axis !== growing || 2 ** bit !== step / 2) break;
    step /= 2;
  }
  /** @type {Map<string, Stride>} */
  const places = new Map();
  bits.i.forEach(([axis, number], bit) => {
    if (bit < inside || axis !== growing || 2 ** number < step) places.set(`i${bit}`, [called(axis), 2 ** number]);
  });
  const elements = places.size;
  bits.lane.forEach(([axis, number], bit) => places.set(bit < LANE_BITS ? `lane${bit}` : `warp${bit - LANE_BITS}`, [called(axis), 2 ** number]));
  const stored = operand.kind === "fragment" && operand.access === "read" ? plane[1] : "";
  const ordered = operand.sparse ? "" : layout.summed || stored;
  return { operand, inside, elements, places, axes: Object.keys(layout.axes).map(called), ordered: ordered && called(ordered), summed: Boolean(layout.summed) };
}

/**
 * For each bit of a target place the bit of the source place with the same elements; both sides get the bits that they lack.
 * @param {ConversionSide} source
 * @param {ConversionSide} target
 * @returns {Map<string, string>}
 */
function matched(source, target) {
  const both = /** @type {const} */ ([[source, target], [target, source]]);
  for (const [one, other] of both) for (const key of other.places.keys()) if (GROUPS.includes(bitOf(key)[0]) && !one.places.has(key)) one.places.set(key, null);
  /** @type {Map<string, string>} */
  const origin = new Map();
  const text = (/** @type {Stride} */ stride) => (stride ? stride.join(" ") : "");
  const copied = (/** @type {Stride | undefined} */ stride) => stride?.[0] === MATRIX_COPY;
  for (const [key, stride] of target.places) if (copied(stride) && copied(source.places.get(key))) origin.set(key, key);
  const left = (/** @type {ConversionSide} */ one, /** @type {boolean} */ loose) => {
    const { axes } = one === source ? target : source;
    const used = one === source ? [...origin.values()] : [...origin.keys()];
    return [...one.places].filter(([key, stride]) => !used.includes(key) && !copied(stride) && loose === (!stride || !axes.includes(stride[0]))).map(([key]) => key);
  };
  const add = (/** @type {[string, string][]} */ found) => found.forEach(([key, old]) => origin.set(key, old));
  const named = new Map([...source.places].filter(([, stride]) => stride && !copied(stride)).map(([key, stride]) => [text(stride), key]));
  for (const [key, stride] of target.places) if (stride && named.has(text(stride))) origin.set(key, named.get(text(stride)) ?? "");
  add(pairs(left(target, true), left(source, false)));
  add(pairs(left(target, true), left(source, true)));
  add(pairs(left(target, false), left(source, true)));
  for (const [key, old] of origin) {
    const own = target.places.get(key) ?? null;
    const stride = own && source.axes.includes(own[0]) ? own : (source.places.get(old) ?? null);
    source.places.set(old, stride);
    target.places.set(key, stride);
  }
  for (const [one, other] of both) {
    for (const [key, stride] of tiled([...left(other, false), ...left(other, true)], other)) {
      const made = `i${widthOf(one, "i")}`;
      other.places.set(key, stride);
      one.places.set(made, stride);
      origin.set(one === target ? made : key, one === target ? key : made);
    }
  }
  return origin;
}

/**
 * Places with their strides in the order in which they number further tiles: as they are in `i`, but along each axis upwards.
 * @param {string[]} keys
 * @param {ConversionSide} side
 * @returns {[string, [string, number]][]}
 */
function tiled(keys, side) {
  const places = keys.map((key) => {
    const [name, bit] = bitOf(key);
    return { key, name, bit, stride: side.places.get(key) ?? /** @type {[string, number]} */ ([name, 2 ** bit]) };
  });
  const before = (/** @type {string} */ one, /** @type {string} */ other) => (one < other ? -1 : Number(one > other));
  places.sort((one, other) => before(one.name, other.name) || one.bit - other.bit);
  const upwards = [...places].sort((one, other) => before(one.stride[0], other.stride[0]) || one.stride[1] - other.stride[1]);
  return places.map((first) => {
    const [next] = upwards.splice(upwards.findIndex((place) => place.stride[0] === first.stride[0]), 1);
    return [next.key, next.stride];
  });
}

/**
 * Bits of both sides in pairs: the same place where both have it, then elements of a thread, then the others as they come.
 * @param {string[]} targets
 * @param {string[]} sources
 * @returns {[string, string][]}
 */
function pairs(targets, sources) {
  /** @type {[string, string][]} */
  const found = targets.filter((key) => sources.includes(key)).map((key) => [key, key]);
  for (const names of [["i"], ["i", "lane"]]) {
    const free = (/** @type {string[]} */ keys, /** @type {0 | 1} */ at) => keys.filter((key) => names.includes(bitOf(key)[0]) && !found.some((pair) => pair[at] === key));
    const [left, right] = [free(targets, 0), free(sources, 1)];
    left.slice(0, right.length).forEach((key, place) => found.push([key, right[place]]));
  }
  return found;
}

/**
 * Bits of both sides in pairs: the elements of a thread in their order, then the others.
 * @param {string[]} targets
 * @param {string[]} sources
 * @returns {[string, string][]}
 */
function inOrder(targets, sources) {
  const elements = (/** @type {string[]} */ keys) => keys.filter((key) => bitOf(key)[0] === "i").sort((one, other) => bitOf(one)[1] - bitOf(other)[1]);
  const [left, right] = [elements(targets), elements(sources)];
  /** @type {[string, string][]} */
  const kept = left.slice(0, right.length).map((key, place) => [key, right[place]]);
  const rest = (/** @type {string[]} */ keys, /** @type {0 | 1} */ at) => keys.filter((key) => !kept.some((pair) => pair[at] === key));
  return [...kept, ...pairs(rest(targets, 0), rest(sources, 1))];
}

/**
 * The bits of a target place that count along the axis whose order may change; none where they leave numbers out.
 * @param {ConversionSide} target
 * @param {Map<string, string>} origin
 */
function alongOrder(target, origin) {
  const along = [...origin.keys()].filter((key) => target.places.get(key)?.[0] === target.ordered);
  const steps = along.map((key) => target.places.get(key)?.[1] ?? 0).sort((one, other) => one - other);
  return steps.every((step, bit) => step === 2 ** bit) ? along : [];
}

/**
 * The number along the axis of the source for each number along it in the target.
 * @param {ConversionSide} target
 * @param {string[]} along
 * @param {Map<string, string>} origin
 * @param {Map<string, string>} changed
 */
function orderOf(target, along, origin, changed) {
  const by = (/** @type {string | undefined} */ key) => target.places.get(key ?? "")?.[1] ?? 0;
  const steps = new Map(along.map((key) => [origin.get(key), by(key)]));
  const moved = along.map((key) => [by(key), steps.get(changed.get(key)) ?? 0]);
  return Array.from({ length: 2 ** along.length }, (_, number) => moved.reduce((sum, [own, old]) => sum + (number & own ? old : 0), 0));
}

/**
 * The cost, a key of the database's `conversions`.
 * @param {ConversionSide} source
 * @param {ConversionSide} target
 * @param {Map<string, string>} origin
 */
function kindOf(source, target, origin) {
  const moved = [...origin].filter(([key, old]) => key !== old).flat().map(bitOf);
  if (moved.some(([name]) => GROUPS.includes(name))) return "memory";
  const lanes = moved.filter(([name]) => name === "lane").map(([, bit]) => bit);
  if (lanes.length) return Math.max(...lanes) < QUAD_BITS ? "quad" : "warp";
  const free = source.operand.bits !== target.operand.bits;
  const bits = Array.from({ length: widthOf(target, "i") }, (_, bit) => origin.get(`i${bit}`));
  const kept = (/** @type {(string | undefined)[]} */ some) => some.every((key, bit) => key === `i${bit}`);
  if (kept(bits) && (free || source.inside === target.inside)) return "same";
  return free || (source.inside === target.inside && kept(bits.slice(0, target.inside))) ? "registers" : "prmt";
}
