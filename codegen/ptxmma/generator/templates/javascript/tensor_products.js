/** The choices of an instruction descriptor for a product in tensor memory, as `ptxmma.catalog.products.product_rules` has them. */

import { database } from "./database.js";
import { factsOf } from "./instructions.js";
import { holds } from "./short_texts.js";

/** @typedef {import("./index.d.ts").Instruction} Instruction */
/** @typedef {import("./index.d.ts").TensorProduct} TensorProduct */
/** @typedef {Record<string, string | number>} Facts */

/** The operation of the instructions whose shape a descriptor says. */
export const OPERATION_OF_PRODUCTS = "tensor-multiply";
/** The choice of a product. */
const ARGUMENTS = ["dtype", "atype", "btype", "k", ...new Set((database.products?.options ?? []).map((row) => row.field)), "m", "n", "stype"];

/**
 * The product of an opcode that has the given values where they are legal, and the usual ones elsewhere; null where the opcode says all itself.
 * The values are chosen in this order: types of D, A and B, the depth K, further fields, M, N, the type of scale factors. What is legal depends on those before,
 * and on fields of the instruction descriptor that are given beside them, such as `b_majorness`.
 * @param {Instruction} instruction
 * @param {Record<string, string | number>} given
 * @returns {TensorProduct | null}
 */
export function tensorProduct(instruction, given = {}) {
  const rules = database.products;
  /** @type {Facts} */
  const facts = { ...given, ...factsOf(instruction) };
  for (const name of ARGUMENTS) delete facts[name];
  const fitting = (/** @type {{of: string}[] | undefined} */ rows) => (rows ?? []).filter((row) => holds(row.of, facts));
  let types = /** @type {NonNullable<typeof rules>["types"]} */ (fitting(rules?.types));
  if (!rules || !types.length || instruction.operation !== OPERATION_OF_PRODUCTS) return null;
  /** @type {TensorProduct} */
  const product = { values: {}, legal: {}, block: 0, targets: [] };
  const limits = () => /** @type {NonNullable<typeof rules.limits>} */ (fitting(rules.limits));
  const choose = (/** @type {string} */ name, /** @type {(string | number)[]} */ legal, /** @type {string | number} */ usual) => {
    product.legal[name] = legal;
    product.values[name] = facts[name] = legal.find((value) => String(value) === String(given[name] ?? "")) ?? usual;
  };
  for (const name of /** @type {const} */ (["dtype", "atype", "btype"])) {
    const legal = [...new Set(types.flatMap((row) => row[name]))].filter((type) => limits().every((row) => row.fields?.[name]?.includes(type) ?? true));
    choose(name, legal, legal.reduce((one, other) => (database.types[other].bits > database.types[one].bits ? other : one)));
    types = types.filter((row) => row[name].includes(String(facts[name])));
  }
  const depths = /** @type {typeof rules.depths} */ (fitting(rules.depths));
  choose("k", depths.map((row) => row.k), depths[0]?.k);
  const options = /** @type {NonNullable<typeof rules.options>} */ (fitting(rules.options));
  for (const field of new Set(options.map((row) => row.field))) {
    const values = options.filter((row) => row.field === field).map((row) => row.value);
    choose(field, values, values[0]);
  }
  const chosen = options.filter((row) => facts[row.field] === row.value);
  const shapes = /** @type {typeof rules.shapes} */ (fitting(rules.shapes));
  const sizes = [...new Set(shapes.flatMap((row) => row.m))].filter((m) => limits().every((row) => row.m?.includes(m) ?? true)).sort((one, other) => one - other);
  choose("m", sizes, nearestTo(sizes, 128));
  const own = numbersOfProducts(shapes.filter((row) => row.m.includes(Number(facts.m))));
  const columns = own.filter((n) => limits().every((row) => !row.n || numbersOfProducts([{ n: row.n }]).includes(n)));
  choose("n", columns, nearestTo(columns, 64));
  const scales = /** @type {NonNullable<typeof rules.scales>} */ (fitting(rules.scales));
  if (scales.length) choose("stype", [...new Set(scales.flatMap((row) => row.stype))], scales[0].stype[0]);
  const scale = scales.find((row) => row.stype.includes(String(facts.stype)));
  product.block = scale?.block ?? 0;
  product.sparsity = chosen.find((row) => row.sparsity)?.sparsity;
  const depth = depths.find((row) => row.k === facts.k);
  product.targets = [depth, ...chosen, scale].map((row) => row?.targets ?? []).filter((targets) => targets.length);
  return product;
}

/**
 * The values of N that some rules list, each once.
 * @param {{n: [first: number, last: number, step: number][]}[]} rows
 * @returns {number[]}
 */
function numbersOfProducts(rows) {
  const listed = rows.flatMap((row) => row.n.flatMap(([first, last, step]) => Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, index) => first + index * step)));
  return [...new Set(listed)].sort((one, other) => one - other);
}

/**
 * @param {number[]} numbers
 * @param {number} aim
 * @returns {number}
 */
function nearestTo(numbers, aim) {
  return numbers.reduce((one, other) => (Math.abs(other - aim) < Math.abs(one - aim) ? other : one), numbers[0]);
}
