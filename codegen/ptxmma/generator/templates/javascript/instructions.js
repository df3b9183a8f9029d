/** Every instruction of the database: forms are expanded to instructions as `ptxmma.catalog.variants` does. */

import { database } from "./database.js";
import { formulaOf } from "./formulas.js";
import { instructionSets, recased } from "./instruction_sets.js";
import { layout, layoutNames } from "./layout_records.js";
import { filled, numbersOf, recordsByColumn } from "./short_texts.js";

/** @typedef {import("./index.d.ts").Instruction} Instruction */
/** @typedef {import("./index.d.ts").InstructionGroup} InstructionGroup */
/** @typedef {import("./index.d.ts").InstructionSet} InstructionSet */
/** @typedef {import("./index.d.ts").FormEntry} FormEntry */
/** @typedef {import("./index.d.ts").Operand} Operand */
/** @typedef {Record<string, string>} Texts */
/** @typedef {Record<string, number>} Numbers */

/** The numbers that an instruction has for each of its groups. */
const SHARED = /** @type {const} */ (["calls", "accepted", "headers", "peers", "aliases", "patterns"]);
const operandRoles = recordsByColumn(database.roles);
const registerNames = ["", ...Object.keys(database.registers)];
const operandRecords = recordsByColumn(database.operands);
const operandSubjects = recordsByColumn(database.subjects);

/** @type {InstructionGroup[] | undefined} */
let expandedGroups;

/**
 * The instructions, those together that differ in nothing but an extent that ranges, as N of wgmma does.
 * @returns {InstructionGroup[]}
 */
export function instructionGroups() {
  expandedGroups ??= instructionSets.flatMap((entry) => {
    const columns = SHARED.filter((name) => entry[name] !== undefined).map((name) => /** @type {const} */ ([name, numbersOf(entry[name] ?? "")]));
    let row = 0;
    return entry.forms.flatMap((form) => {
      const range = rangeOf(form);
      return choicesOf(entry, form).map((templates) => {
        const shared = Object.fromEntries(columns.map(([name, numbers]) => [name, numbers[row] ?? numbers[0]]));
        row += 1;
        return madeGroup(entry, form, range, templates, shared);
      });
    });
  });
  return expandedGroups;
}

/**
 * Every instruction, in the order of the database.
 * @returns {Instruction[]}
 */
export function instructions() {
  return instructionGroups().flatMap((group) => group.numbers.map((number) => instructionOf(group, number)));
}

/**
 * Every combination of a form's values; the qualifiers that say sizes vary fastest.
 * @param {InstructionSet} entry
 * @param {FormEntry} form
 * @returns {Texts[]}
 */
function choicesOf(entry, form) {
  const given = Object.fromEntries(Object.entries(form.qualifiers).map(([name, text]) => [name, text.split(" ")]));
  const free = Object.keys(given).filter((name) => !given[name][0].startsWith("="));
  const order = [...free.filter((name) => !(name in (entry.extents ?? {}))), ...free.filter((name) => name in (entry.extents ?? {}))];
  /** @type {Texts[]} */
  let choices = [{}];
  for (const name of order) {
    const values = given[name];
    // Most have one value, which needs no copies.
    if (values.length === 1) for (const choice of choices) choice[name] = values[0];
    else choices = choices.flatMap((choice) => values.map((value) => ({ ...choice, [name]: value })));
  }
  return choices.map((choice) => {
    /** @type {Texts} */
    const templates = {};
    for (const [name, values] of Object.entries(given)) templates[name] = choice[values[0].startsWith("=") ? values[0].slice(1) : name];
    return templates;
  });
}

/**
 * The extent that ranges in a form, and its numbers; no name and 0 where none does.
 * @param {FormEntry} form
 * @returns {{extent: string, numbers: number[]}}
 */
function rangeOf(form) {
  const [extent, spans] = Object.entries(form.ranges ?? {})[0] ?? ["", []];
  const listed = spans.flatMap(([first, last, step]) => Array.from({ length: (last - first) / step + 1 }, (_, index) => first + index * step));
  return { extent, numbers: extent ? [...new Set(listed)].sort((one, other) => one - other) : [0] };
}

/**
 * @param {InstructionSet} entry
 * @param {FormEntry} form
 * @param {{extent: string, numbers: number[]}} range
 * @param {Texts} templates
 * @param {Numbers} row
 * @returns {InstructionGroup}
 */
function madeGroup(entry, form, range, templates, row) {
  return {
    entry,
    form,
    templates,
    ...range,
    forms: operandLists(row.calls),
    accepted: acceptedBy(row.accepted),
    get header() {
      return filled(database.headers[row.headers], templates);
    },
    get peers() {
      return database.peers[row.peers].map((peer) => filled(peer, templates));
    },
    get aliases() {
      return database.aliases[row.aliases].map((name) => filled(name, templates));
    },
    pattern: row.patterns === undefined ? null : sparsityPattern(row.patterns),
  };
}

/**
 * A function of the numbers of entries that many groups share: it makes each result once.
 * @template Result
 * @param {(number: number) => Result} make
 * @returns {(number: number) => Result}
 */
function once(make) {
  /** @type {Result[]} */
  const made = [];
  return (number) => (made[number] ??= make(number));
}

/** The numbers of an entry of `database.calls`: for each list of operands its own number, and its operands' numbers. */
const operandLists = once((number) => database.calls[number].split(";").filter(Boolean).map(numbersOf));

/** @type {[string, string][]} */
const targetVersions = Object.entries(database.targets);

/** The targets of an entry of `database.accepted`, each with the first version. */
const acceptedBy = once((number) => {
  const [since, targets, others = {}] = database.accepted[number];
  /** @type {Texts} */
  const accepted = {};
  for (const [name, known] of numbersOf(targets).map((place) => targetVersions[place])) accepted[name] = others[name] ?? later(since, known);
  return accepted;
});

/**
 * @param {string} version
 * @param {string} other
 * @returns {string}
 */
function later(version, other) {
  const [[major, minor], [otherMajor, otherMinor]] = [version, other].map((text) => text.split(".").map(Number));
  return major > otherMajor || (major === otherMajor && minor > otherMinor) ? version : other;
}

/** The pattern of an entry of `database.patterns`. */
export const sparsityPattern = once((number) => {
  const [granularity, fields, contributors] = database.patterns[number];
  const places = database.places[fields];
  /** @type {import("./index.d.ts").SparsityPattern} */
  const pattern = { ...database.granularities[granularity], places, legal: Object.keys(places), contributors };
  return pattern;
});

/** @type {Map<InstructionGroup, Map<number, Instruction>>} */
const madeInstructions = new Map();

/**
 * One instruction of a group: that with `number` for the extent that ranges.
 * @param {InstructionGroup} group
 * @param {number} number
 * @returns {Instruction}
 */
export function instructionOf(group, number) {
  let known = madeInstructions.get(group);
  if (!known) madeInstructions.set(group, (known = new Map()));
  let made = known.get(number);
  if (!made) known.set(number, (made = madeInstruction(group, number)));
  return made;
}

/**
 * @param {InstructionGroup} group
 * @param {number} number
 * @returns {Instruction}
 */
function madeInstruction(group, number) {
  const { entry, form, templates, extent } = group;
  /** @type {Texts} */
  const qualifiers = {};
  for (const [name, text] of Object.entries(templates)) qualifiers[name] = text.replace(`{${extent}}`, String(number));
  const canonical = spelledOut(entry.syntax, qualifiers, form.unspelled ?? []);
  const last = group.numbers[group.numbers.length - 1];
  const extents = extentsOf(entry, qualifiers);
  /** @type {import("./index.d.ts").OperandForm[] | undefined} */
  let forms;
  return {
    canonical,
    identifier: [entry.stem, ...tellingTokens(entry, qualifiers).map(([, token]) => token)].join("_"),
    name: entry.name,
    family: entry.family,
    title: entry.title,
    scope: entry.scope,
    operation: entry.operation,
    qualifiers,
    extents,
    documented: form.documented ?? true,
    source: form.source,
    accepted: group.accepted,
    header: group.header,
    peers: group.peers.map((peer) => peer.replaceAll(`{${extent}}`, String(number))),
    pattern: group.pattern,
    places: entry.places,
    page: pageOf(group, qualifiers),
    group,
    number,
    get forms() {
      return (forms ??= group.forms.map(([list, ...places]) => {
        const operands = places.map((operand) => madeOperand(entry, operandRecords[operand], qualifiers, extents, number, last, group.numbers.indexOf(number)));
        const names = operands.map((operand) => operand.name);
        return { name: database.lists[list].name ?? "", syntax: (database.lists[list].syntax ?? "").replace(/#/g, () => names.shift() ?? ""), operands };
      }));
    },
  };
}

/**
 * The facts against which conditions are tested.
 * @param {Instruction} instruction
 * @returns {Record<string, string | number>}
 */
export function factsOf({ extents, qualifiers, name, family }) {
  return { ...extents, ...qualifiers, name, family };
}

/**
 * The address of an instruction's page below the reference, as `ptxmma.catalog.links` makes it.
 * @param {InstructionGroup} group
 * @param {Texts} qualifiers
 * @returns {string}
 */
function pageOf({ entry, templates, extent }, qualifiers) {
  const shape = (templates[entry.shape] ?? "").replace(`{${extent}}`, extent.toUpperCase());
  const name = entry.name.startsWith(`${entry.family}.`) ? entry.name.slice(entry.family.length + 1) : entry.name;
  return `${entry.family}/${shape ? `${shape}-${qualifiers[entry.typed]}` : name.replaceAll("::", "_")}`;
}

/**
 * @param {InstructionSet} entry
 * @param {import("./index.d.ts").OperandRecord} known
 * @param {Texts} qualifiers
 * @param {Numbers} extents
 * @param {number} number of the extent that ranges
 * @param {number} last the largest such number, for which the contents are written
 * @param {number} place of the number among all of them
 * @returns {Operand}
 */
function madeOperand(entry, known, qualifiers, extents, number, last, place) {
  const role = { ...operandSubjects[operandRoles[known.role].subject], ...operandRoles[known.role] };
  const placed = known.layout ? layout(layoutNames[known.layout - 1]) : null;
  const grows = placed !== null && placed.growing.length > 0;
  const share = (/** @type {number} */ count) => (grows ? (count * number) / last : count);
  /** @type {Numbers} */
  const sizes = {};
  for (const [axis, size] of Object.entries(placed?.axes ?? {})) sizes[axis] = placed?.growing.includes(axis) ? share(size) : size;
  const register = registerNames[known.register];
  const type = filled(database.operand_types[known.type], qualifiers);
  // An operand that grows in steps has a count for each number, or a formula.
  const counted = typeof known.registers === "string" ? formulaOf(known.registers)(extents) : share(/** @type {number} */ (known.registers));
  const registers = Array.isArray(known.registers) ? known.registers[place] : counted;
  const elements = share(known.elements);
  return {
    name: role.name,
    kind: role.kind,
    title: entry.titles?.[role.name] ?? "",
    of: role.of ?? "",
    access: role.access ?? "read",
    type,
    width: type ? database.types[type].bits : 0,
    bits: known.bits,
    shift: known.shift,
    elements,
    registers,
    register,
    registerBits: register ? database.registers[register].bits : 0,
    cType: register ? database.registers[register].c_type : "",
    constraint: role.constraint ?? "",
    immediates: listedImmediates(role.immediates),
    meanings: role.meanings ?? {},
    default: known.default ?? null,
    immediateOnly: role.immediate_only ?? false,
    single: role.single ?? false,
    braced: role.braced ?? false,
    sparse: role.sparse ?? false,
    rowBytes: known.row_bytes,
    alignment: known.alignment,
    layout: placed,
    sizes,
    cpp: cppOperand(role.identifier ?? role.name.replace(/\W/g, "_").toLowerCase(), role.cpp),
  };
}

/**
 * @param {string} name
 * @param {number} number of an entry of `database.parameters`
 * @returns {import("./index.d.ts").CppOperand}
 */
function cppOperand(name, number) {
  const texts = Object.entries(database.parameters[number]).map(([key, text]) => [key, text.replaceAll("@", name)]);
  return { name, ...Object.fromEntries(texts) };
}

/**
 * @param {number[] | {first: number, last: number, step?: number} | undefined} legal
 * @returns {{first: number, last: number, step?: number, values: number[]} | null}
 */
function listedImmediates(legal) {
  if (!legal) return null;
  return Array.isArray(legal) ? { first: legal[0], last: legal[legal.length - 1], values: legal } : { ...legal, values: [] };
}

// --- names ---------------------------------------------------------------------------------------------------------------

/**
 * The syntax line as pairs: the literal text before a qualifier, and its name; the last pair has no name.
 * @param {string} syntax
 * @returns {[string, string][]}
 */
export function syntaxParts(syntax) {
  let pairs = knownParts.get(syntax);
  if (!pairs) {
    const parts = syntax.split(/\.?\{\.?(\w+)\}/);
    pairs = parts.flatMap((literal, place) => (place % 2 ? [] : [/** @type {[string, string]} */ ([literal, parts[place + 1] ?? ""])]));
    knownParts.set(syntax, pairs);
  }
  return pairs;
}

/** @type {Map<string, [string, string][]>} */
const knownParts = new Map();

/**
 * @param {string} syntax
 * @param {Texts} qualifiers
 * @param {string[]} unspelled
 * @returns {string}
 */
function spelledOut(syntax, qualifiers, unspelled) {
  const text = syntaxParts(syntax).map(([literal, name]) => literal + (qualifiers[name] && !unspelled.includes(name) ? `.${qualifiers[name]}` : ""));
  return text.join("");
}

/**
 * The sizes that the values of qualifiers say.
 * @param {InstructionSet} entry
 * @param {Texts} qualifiers
 * @returns {Numbers}
 */
function extentsOf(entry, qualifiers) {
  /** @type {Numbers} */
  const sizes = {};
  for (const [name, { pattern, values }] of Object.entries(entry.extents ?? {})) {
    const value = qualifiers[name];
    if (!value) continue;
    Object.assign(sizes, pattern ? sizesIn(pattern, value) : values?.[value]);
  }
  return sizes;
}

/**
 * The sizes that a value of a pattern says: `m16n8k16` of `m{m}n{n}k{k}`.
 * @param {string} pattern
 * @param {string} value
 * @returns {Numbers}
 */
export function sizesIn(pattern, value) {
  const names = [...pattern.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
  const match = new RegExp(`^${pattern.replace(/\{\w+\}/g, "([0-9]+)")}$`).exec(value);
  return match ? Object.fromEntries(names.map((name, place) => [name, Number(match[place + 1])])) : {};
}

/**
 * The parts of an identifier after its stem: usual values are left out; an ordered group leaves out all or none.
 * @param {InstructionSet} entry
 * @param {Texts} qualifiers
 * @returns {[string, string][]}
 */
function tellingTokens(entry, qualifiers) {
  const kinds = entry.qualifiers ?? {};
  const usual = new Set(Object.keys(kinds).filter((name) => kinds[name].usual && kinds[name].usual === qualifiers[name]));
  for (const group of entry.ordered ?? []) {
    const spelledUsually = group.filter((name) => kinds[name]?.usual);
    if (!spelledUsually.every((name) => usual.has(name))) group.forEach((name) => usual.delete(name));
  }
  return syntaxParts(entry.syntax)
    .filter(([, name]) => name && !usual.has(name) && qualifiers[name])
    .map(([, name]) => [name, recased(qualifiers[name])]);
}
