/** People's words for instructions, as `ptxmma.catalog.instructions.words` understands them: `m16n8k8 tf32`, `wgmma n128 bf16`, `nvfp4`. */

import { database } from "./database.js";
import { instructionSets } from "./instruction_sets.js";
import { factsOf, instructionGroups, instructionOf, sizesIn } from "./instructions.js";
import { holds, recordsByColumn } from "./short_texts.js";
import { fixedTokens } from "./spellings.js";
import { OPERATION_OF_PRODUCTS, tensorProduct } from "./tensor_products.js";

/** @typedef {import("./index.d.ts").Instruction} Instruction */
/** @typedef {import("./index.d.ts").InstructionGroup} InstructionGroup */
/** @typedef {import("./index.d.ts").InstructionSet} InstructionSet */
/**
 * An instruction that has all words of a text: the rank of the meaning that fits, the places of its modifiers in its spelling, the words.
 * @typedef {{instruction: Instruction, rank: number, places: number[], words: string[]}} Match
 */

/** Signs of a whole statement of PTX, which is not made of words. */
const STATEMENT = /[\[\]{};%@]/;
/** More words than any instruction has, and more meanings than any text. */
const MOST_WORDS = 24;
/** So many letters begin a word. */
const BEGUN = 2;
const MATRICES = ["d", "a", "b", "c", "s"];
const preferences = recordsByColumn(database.preferences);
const knownMeanings = new Map(database.words.flatMap(([names, ...means]) => names.split(" ").map((name) => /** @type {const} */ ([name, means]))));

/**
 * The instructions that have every word of a text; where none has, those with modifiers that begin with the words. Of instructions that differ in a number alone there
 * is one: with the number of the text, if it has one. A letter alone names an operand.
 * @param {string} text
 * @returns {Match[]}
 */
export function matching(text) {
  const left = STATEMENT.test(text) ? [] : text.toLowerCase().replace(/\b([mnk]) ?= ?(?=\d)/g, "$1").split(/[\s.,?]+/).filter(Boolean);
  if (left.every(({ length }) => length < 2) || left.length > MOST_WORDS || text.startsWith(".")) return [];
  const words = joinedWords(left);
  const spelling = text.includes(".") && !/\s/.test(text) && !knownMeanings.has(words[0]);
  const meanings = meaningsOf(words);
  for (const begun of [false, true]) {
    /** @type {Map<InstructionGroup, Match>} */
    const found = new Map();
    meanings.forEach((meaning, rank) => {
      for (const entry of instructionSets) {
        if (!mayHave(entry, meaning, begun)) continue;
        for (const group of groupsOf(entry)) {
          if (found.has(group)) continue;
          const instruction = instructionOf(group, numberSaid(group, meaning));
          const places = placesIn(instruction, meaning, begun);
          if (places) found.set(group, { instruction, rank, places, words: meaning });
        }
      }
    });
    const matches = [...found.values()];
    if (spelling && matches.some(isMisspelt)) return [];
    const fitting = spelling ? matches.filter(isBegun) : matches;
    if (fitting.length) return fitting;
  }
  return [];
}

/**
 * The matches that no preference puts after another, and the preferences that decided.
 * @param {Match[]} matches
 * @returns {{left: Match[], reasons: string[]}}
 */
export function preferred(matches) {
  let left = matches;
  /** @type {string[]} */
  const reasons = [];
  const keep = (/** @type {(match: Match) => boolean} */ test) => {
    const some = left.filter(test);
    if (some.length) left = some;
  };
  const inputs = (/** @type {Match} */ { instruction, words }) => words.filter((word) => typesOf(instruction, ["a", "b"]).has(word)).length;
  keep(({ places }) => places.includes(0));
  keep(({ instruction, words }) => `${instruction.canonical.toLowerCase()}.`.startsWith(`${words.join(".")}.`));
  const rank = Math.min(...left.map((match) => match.rank));
  keep((match) => match.rank === rank);
  const most = Math.max(...left.map(inputs));
  keep((match) => inputs(match) === most);
  keep(isOrdered);
  for (const { text, fact, first = [], among = [] } of preferences) {
    const rankOf = (/** @type {Match} */ { instruction }) => {
      const value = factOf(instruction, fact);
      const place = first.indexOf(String(value));
      return first.length ? (place < 0 ? first.length : place) : Number(value);
    };
    const keyOf = (/** @type {Match} */ { instruction }) => among.map((name) => factOf(instruction, name)).join("|");
    /** @type {Map<string, number>} */
    const best = new Map();
    for (const match of left) best.set(keyOf(match), Math.min(best.get(keyOf(match)) ?? Infinity, rankOf(match)));
    const some = left.filter((match) => rankOf(match) === best.get(keyOf(match)));
    if (some.length < left.length && !reasons.includes(text)) reasons.push(text);
    left = some;
  }
  return { left, reasons };
}

/**
 * The words, taken apart and put together as the spec has them: `tma load` is one word, and `sm90_tma_load_2d` one and the rest.
 * A namespace before one is replaced, too: `cutlass::half_t`.
 * @param {string[]} words
 * @returns {string[]}
 */
function joinedWords(words) {
  /** @type {string[]} */
  const joined = [];
  for (let rest = words.join(" "); rest; ) {
    rest = rest.replace(/^(\w+)::/, (all, name) => knownMeanings.get(name)?.[0] ?? all);
    const line = `${rest.replaceAll(" ", "_")}_`;
    const name = [...knownMeanings.keys()].reduce((one, each) => (each.length > one.length && line.startsWith(`${each}_`) ? each : one), "");
    joined.push(name || rest.replace(/ .*/, ""));
    rest = rest.slice(joined.at(-1)?.length).replace(/^_\S*/, (part) => part.replaceAll("_", " ")).trim();
  }
  return joined;
}

/**
 * The words with each that PTX does not have replaced by its meanings, the preferred first.
 * What the text says itself a meaning does not say again: `mxfp8 e5m2` has one e5m2 and no e4m3.
 * @param {string[]} words
 * @returns {string[][]}
 */
export function meaningsOf(words) {
  /** @type {string[][]} */
  let meanings = [[]];
  const said = (/** @type {string[]} */ parts) => parts.filter((part) => words.includes(part)).length;
  for (const word of words) {
    const means = knownMeanings.get(word)?.map((meaning) => meaning.toLowerCase().split(" ").filter(Boolean));
    const choices = means?.sort((one, other) => said(other) - said(one)).map((parts) => parts.filter((part) => !words.includes(part))) ?? [[word]];
    meanings = meanings.flatMap((before) => choices.map((chosen) => [...before, ...chosen]));
  }
  return meanings.slice(0, MOST_WORDS);
}

/**
 * The sizes of M, N and K in a word; `n` for any: `m64nNk16`, `n128`, CuTe's `64x128x16`, and `1688` of machine instructions.
 * @param {string} word
 * @returns {Record<string, string>}
 */
function wordSizes(word) {
  const crossed = /^(\d+)x(\d+)x(\d+)$/.exec(word) ?? /^(16|8)(8)(\d{1,3})$/.exec(word);
  if (crossed) return { m: crossed[1], n: crossed[2], k: crossed[3] };
  return /^(?:[mnk](?:\d+|n))+$/.test(word) ? Object.fromEntries([...word.matchAll(/([mnk])(\d+|n)/g)].map(([, name, size]) => [name, size])) : {};
}

/**
 * A modifier in small letters, and its last part unless it is a number: `kind::f16` and `f16`.
 * @param {string} token
 */
function textsOfToken(token) {
  const text = token.toLowerCase();
  const last = text.slice(text.lastIndexOf("::") + 2);
  return text.includes("::") && !/^\d+$/.test(last) ? [text, last] : [text];
}

/**
 * A function of an instruction, which makes each result once.
 * @template Result
 * @param {(instruction: Instruction) => Result} make
 * @returns {(instruction: Instruction) => Result}
 */
function kept(make) {
  /** @type {WeakMap<Instruction, Result>} */
  const made = new WeakMap();
  return (instruction) => {
    let result = made.get(instruction);
    if (result === undefined) made.set(instruction, (result = make(instruction)));
    return result;
  };
}

const tokensOf = kept(({ canonical }) => canonical.split(".").map(textsOfToken));
const besideOf = kept(wordsBeside);

/** @type {Map<InstructionSet, InstructionGroup[]>} */
const groupsByEntry = new Map();

/** @param {InstructionSet} entry */
function groupsOf(entry) {
  if (!groupsByEntry.size) for (const group of instructionGroups()) groupsByEntry.set(group.entry, [...(groupsByEntry.get(group.entry) ?? []), group]);
  return groupsByEntry.get(entry) ?? [];
}

/** @type {Map<InstructionSet, Set<string>>} */
const vocabularies = new Map();

/**
 * The words that some instruction of an entry has.
 * @param {InstructionSet} entry
 */
function vocabularyOf(entry) {
  let known = vocabularies.get(entry);
  if (known) return known;
  const tokens = new Set([...fixedTokens(entry), ...entry.hints.map(({ value }) => value)]);
  const seen = new Set();
  for (const group of groupsOf(entry)) {
    for (const value of Object.values(group.templates)) for (const number of value.includes("{") ? group.numbers : [0]) tokens.add(value.replace(`{${group.extent}}`, String(number)));
    if (seen.has(group.form) && entry.operation !== OPERATION_OF_PRODUCTS) continue;
    seen.add(group.form);
    for (const type of typesOf(instructionOf(group, group.numbers[0]), MATRICES)) tokens.add(type);
  }
  known = new Set([...tokens].flatMap((token) => token.split(".").flatMap(textsOfToken)));
  vocabularies.set(entry, known);
  return known;
}

/**
 * @param {InstructionSet} entry
 * @param {string[]} words
 * @param {boolean} begun
 */
function mayHave(entry, words, begun) {
  const known = vocabularyOf(entry);
  const sized = (/** @type {string} */ word) => {
    const sizes = Object.keys(wordSizes(word));
    return sizes.length > 0 && (entry.operation === OPERATION_OF_PRODUCTS || sizes.every((name) => groupsOf(entry).some((group) => name in instructionOf(group, group.numbers[0]).extents)));
  };
  return words.every((word) => known.has(word) || sized(word) || (begun && [...known].some((text) => text.startsWith(word))));
}

/**
 * The number of the extent that ranges that words say, or a usual one.
 * @param {InstructionGroup} group
 * @param {string[]} words
 */
function numberSaid(group, words) {
  const { extent, numbers, templates } = group;
  if (numbers.length === 1) return numbers[0];
  const template = Object.values(templates).flatMap((value) => value.split(".")).find((part) => part.includes("{")) ?? "";
  const said = words.flatMap((word) => [Number(wordSizes(word)[extent]), sizesIn(template.toLowerCase(), word)[extent]]);
  return numbers.find((number) => said.includes(number)) ?? numbers[Math.floor(numbers.length / 4)];
}

/**
 * The places of words in an instruction's spelling, as far as they are modifiers; null where it lacks one of them.
 * @param {Instruction} instruction
 * @param {string[]} words
 * @param {boolean} begun
 * @returns {number[] | null}
 */
function placesIn(instruction, words, begun) {
  const tokens = tokensOf(instruction);
  /** @type {number[]} */
  const taken = [];
  const free = (/** @type {(text: string) => boolean} */ test) => {
    const fitting = tokens.flatMap((texts, place) => (texts.some(test) && (!taken.includes(place) || texts.length > 1) ? [place] : []));
    return fitting.find((place) => !taken.length || place >= taken[taken.length - 1]) ?? fitting[0];
  };
  for (const word of words) {
    let place = free((text) => text === word);
    if (place === undefined) {
      if (!tokens.some((texts) => texts.includes(word)) && (hasSizes(instruction, word) || besideOf(instruction).has(word))) continue;
      if (begun && word.length >= BEGUN && /^[a-z]/.test(word)) place = free((text) => text.startsWith(word));
      if (place === undefined) return null;
    }
    taken.push(place);
  }
  return taken;
}

/**
 * @param {Instruction} instruction
 * @param {string} word
 */
function hasSizes(instruction, word) {
  const every = wordSizes(word);
  const sizes = Object.entries(every).filter(([, size]) => size !== "n");
  if (!Object.keys(every).length) return false;
  const product = tensorProduct(instruction, Object.fromEntries(sizes));
  const own = product ? product.values : shapeSizes(instruction);
  return Object.keys(every).every((name) => name in own) && sizes.every(([name, size]) => String(own[name]) === size);
}

/**
 * The sizes that the shape says.
 * @param {Instruction} instruction
 * @returns {Record<string, number>}
 */
function shapeSizes({ group: { entry }, qualifiers, extents }) {
  return Object.fromEntries(["m", "n", "k"].filter((name) => qualifiers[entry.shape] && name in extents).map((name) => [name, extents[name]]));
}

/**
 * The words beside the modifiers: types of matrices, and hints.
 * @param {Instruction} instruction
 */
function wordsBeside(instruction) {
  const facts = factsOf(instruction);
  const hints = instruction.group.entry.hints.filter(({ of, when }) => holds(of, facts) && holds(when, facts));
  return new Set([...typesOf(instruction, MATRICES), ...hints.flatMap(({ value }) => textsOfToken(value))]);
}

/**
 * The element types of some matrices, stated or chosen by a descriptor.
 * @param {Instruction} instruction
 * @param {string[]} matrices
 * @returns {Set<string>}
 */
function typesOf(instruction, matrices) {
  const { qualifiers } = instruction;
  if (instruction.operation === OPERATION_OF_PRODUCTS) {
    const facts = factsOf(instruction);
    const rows = [...(database.products?.types ?? []), ...(database.products?.scales ?? [])].filter((row) => holds(row.of, facts));
    return new Set(rows.flatMap((row) => matrices.flatMap((name) => /** @type {Record<string, string[]>} */ (/** @type {unknown} */ (row))[`${name}type`] ?? [])));
  }
  const stated = matrices.map((name) => qualifiers[`${name}type`]);
  const held = stated.every(Boolean) ? [] : instruction.forms.flatMap(({ operands }) => operands).filter(({ name }) => matrices.includes(name)).map(({ type }) => type);
  return new Set([...stated, ...held].filter(Boolean));
}

/** @param {Match} match */
function isOrdered({ places }) {
  return places.every((place, index) => !index || place >= places[index - 1]);
}

/**
 * Return whether a spelling begins with the opcode or a shape, and has its modifiers in order, without a letter for a size. Between the opcode and `sync` nothing is
 * left out: `mma.sync` is not a sparse instruction.
 * @param {Match} match
 */
function isBegun(match) {
  const { instruction, places, words } = match;
  const literals = literalsOf(instruction);
  const first = Math.max(0, words.findIndex((word) => literals.includes(word)));
  const begins = words[0] === instruction.canonical.split(".")[0] || Object.keys(wordSizes(words[0])).length > 0;
  const whole = !(first > 0 && first <= instruction.name.split(".").length) || places[first] === first;
  return begins && whole && isOrdered(match) && !words.some((word) => Object.values(wordSizes(word)).includes("n"));
}

/**
 * Return whether a spelling has every qualifier of an instruction, and only some of the other modifiers.
 * @param {Match} match
 */
function isMisspelt({ instruction, words }) {
  if (instruction.canonical.toLowerCase().startsWith(words.join("."))) return false;
  const literals = literalsOf(instruction);
  const unspelled = instruction.group.form.unspelled ?? [];
  const complete = Object.entries(instruction.qualifiers).every(([name, value]) => !value || unspelled.includes(name) || words.includes(value.toLowerCase()));
  const there = literals.filter((token) => words.includes(token)).length;
  return complete && there > 0 && there < literals.length;
}

/**
 * The modifiers that every instruction of an entry has beyond its opcode.
 * @param {Instruction} instruction
 */
function literalsOf({ name, group: { entry } }) {
  return fixedTokens(entry).filter((token) => !name.split(".").includes(token));
}

/**
 * The value of a qualifier, or of another fact that preferences test.
 * @param {Instruction} instruction
 * @param {string} name
 * @returns {string | number}
 */
function factOf(instruction, name) {
  const { canonical, group: { entry, pattern }, qualifiers } = instruction;
  const facts = /** @type {Record<string, () => string | number>} */ ({
    sparse: () => (pattern ? "yes" : "no"),
    chosen: () => (instruction.operation === OPERATION_OF_PRODUCTS ? "yes" : "no"),
    documented: () => (instruction.documented ? "yes" : "no"),
    opcode: () => entry.opcode.split(".").length,
    modifiers: () => canonical.split(".").length,
    shape: () => qualifiers[entry.shape] ?? "",
    depth: () => -(shapeSizes(instruction).k ?? 0),
    types: () => new Set(["a", "b"].map((matrix) => [...typesOf(instruction, [matrix])].join())).size,
  });
  return name in facts ? facts[name]() : name === "name" ? instruction.name : qualifiers[name] ?? "";
}
