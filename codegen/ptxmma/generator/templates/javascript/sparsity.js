/** Structured sparsity: rows compressed to values and metadata, and metadata read, as `ptxmma.matrices.sparse` does it. */

/** @typedef {import("./index.d.ts").SparsityPattern} SparsityPattern */
/** @typedef {import("./index.d.ts").CompressedRow} CompressedRow */

/**
 * A row with zeros where the pattern drops elements: each chunk keeps its units of the largest magnitude, of equal ones the earlier.
 * @param {number[]} row
 * @param {SparsityPattern} pattern
 * @returns {number[]}
 */
export function prunedRow(row, pattern) {
  const units = pattern.chunk / pattern.unit;
  return chunksOf(row, pattern.chunk).flatMap((chunk) => {
    const magnitudes = Array.from({ length: units }, (_, unit) =>
      chunk.slice(unit * pattern.unit, (unit + 1) * pattern.unit).reduce((sum, value) => sum + Math.abs(value), 0),
    );
    const order = magnitudes.map((_, unit) => unit).sort((one, other) => magnitudes[other] - magnitudes[one] || one - other);
    const kept = order.slice(0, pattern.kept / pattern.unit);
    return chunk.map((value, place) => (kept.includes(Math.floor(place / pattern.unit)) ? value : 0));
  });
}

/**
 * A row as values and fields of metadata, one for each chunk; `crowded` names the chunks with more units than the pattern keeps.
 * @param {number[]} row
 * @param {SparsityPattern} pattern
 * @returns {CompressedRow}
 */
export function compressedRow(row, pattern) {
  const units = pattern.chunk / pattern.unit;
  /** @type {CompressedRow} */
  const result = { values: [], fields: [], crowded: [] };
  chunksOf(row, pattern.chunk).forEach((chunk, number) => {
    let occupied = "";
    for (let unit = units - 1; unit >= 0; unit -= 1) {
      occupied += chunk.slice(unit * pattern.unit, (unit + 1) * pattern.unit).some((value) => value !== 0) ? "1" : "0";
    }
    const field = pattern.fields[`0b${occupied}`];
    if (field === undefined) {
      result.crowded.push(number);
      return;
    }
    result.fields.push(field);
    for (const unit of pattern.places[field]) result.values.push(...chunk.slice(unit * pattern.unit, (unit + 1) * pattern.unit));
  });
  return result;
}

/**
 * The columns of a chunk that a field keeps, in the order of the stored values; undefined of an illegal field.
 * @param {string} field in binary, `0b0100`
 * @param {SparsityPattern} pattern
 * @returns {number[] | undefined}
 */
export function keptColumns(field, pattern) {
  return pattern.places[field]?.flatMap((unit) => Array.from({ length: pattern.unit }, (_, place) => unit * pattern.unit + place));
}

/**
 * Bits of the field of one chunk.
 * @param {SparsityPattern} pattern
 * @returns {number}
 */
export function fieldBits(pattern) {
  return pattern.index_bits * pattern.indices;
}

/**
 * @param {number[]} row
 * @param {number} size
 * @returns {number[][]}
 */
function chunksOf(row, size) {
  return Array.from({ length: row.length / size }, (_, chunk) => row.slice(chunk * size, (chunk + 1) * size));
}
