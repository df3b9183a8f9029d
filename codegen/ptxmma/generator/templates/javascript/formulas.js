/** The spec's formulas: integers, names, parentheses, and Python's operators but for `not`; what holds is 1, what does not is 0. */

/** @typedef {(values: Record<string, number>) => number} Formula */

/** @type {Record<string, [strength: number, result: (one: number, other: number) => number]>} */
const OPERATORS = {
  or: [1, (one, other) => Number(Boolean(one || other))],
  and: [2, (one, other) => Number(Boolean(one && other))],
  "==": [3, (one, other) => Number(one === other)],
  "!=": [3, (one, other) => Number(one !== other)],
  "<": [3, (one, other) => Number(one < other)],
  "<=": [3, (one, other) => Number(one <= other)],
  ">": [3, (one, other) => Number(one > other)],
  ">=": [3, (one, other) => Number(one >= other)],
  "|": [4, (one, other) => one | other],
  "^": [5, (one, other) => one ^ other],
  "&": [6, (one, other) => one & other],
  "<<": [7, (one, other) => one << other],
  ">>": [7, (one, other) => one >> other],
  "+": [8, (one, other) => one + other],
  "-": [8, (one, other) => one - other],
  "*": [9, (one, other) => one * other],
  "//": [9, (one, other) => Math.floor(one / other)],
  "%": [9, (one, other) => one - other * Math.floor(one / other)],
};

/** @type {Map<string, Formula>} */
const readFormulas = new Map();

/**
 * A formula as a function of the values of its names.
 * @param {string} text
 * @returns {Formula}
 */
export function formulaOf(text) {
  let formula = readFormulas.get(text);
  if (!formula) readFormulas.set(text, (formula = readFormula(text)));
  return formula;
}

/**
 * @param {string} text
 * @returns {Formula}
 */
function readFormula(text) {
  const tokens = text.match(/\w+|\/\/|<<|>>|[<>=!]=|[-+*%()|^&<>]/g) ?? [];
  let at = 0;
  /** @returns {Formula} */
  const operand = () => {
    const token = tokens[at++];
    if (token === "(") {
      const inner = expression(0);
      at += 1;
      return inner;
    }
    if (token === "-") {
      const value = operand();
      return (values) => -value(values);
    }
    const number = Number(token);
    return Number.isNaN(number) ? (values) => values[token] : () => number;
  };
  /** @type {(strength: number) => Formula} */
  const expression = (strength) => {
    let left = operand();
    while (OPERATORS[tokens[at]]?.[0] > strength) {
      const [own, result] = OPERATORS[tokens[at++]];
      const [one, other] = [left, expression(own)];
      left = (values) => result(one(values), other(values));
    }
    return left;
  };
  return expression(0);
}
