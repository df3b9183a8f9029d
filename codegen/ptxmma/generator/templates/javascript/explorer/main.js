/** The explorer: a page without a server. */

import { database } from "../database.js";
import { arrangements } from "../arrangements.js";
import { resolve } from "../lookup.js";
import { instructionMeant } from "../spellings.js";
import { instructionGroups, instructionOf } from "../instructions.js";
import { tensorMemories, tensorOperands } from "../tensor_places.js";
import { bitsIn, describedFamilies, descriptorFormats, memoryFacts, sharedMemoryOf } from "../descriptors.js";
import { cited } from "./citations.js";
import { ConversionView } from "./conversion_view.js";
import { CopyView } from "./copy_view.js";
import { DescriptorReader } from "./descriptor_reader.js";
import { copyButton, fill, h } from "./dom.js";
import { helpDialog, keyboard } from "./keyboard.js";
import { LayoutView } from "./layout_view.js";
import { like, listed, oneOf } from "./legal.js";
import { MatricesView } from "./matrices_view.js";
import { MemoryView } from "./memory_view.js";
import { Picker } from "./picker.js";
import { SearchBox } from "./search_box.js";
import { SparsityView } from "./sparsity_view.js";
import { Store } from "./state.js";
import { TensorView } from "./tensor_view.js";

/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("./state.js").State} State */

/** The view where the URL names no instruction, if the database has it. */
const EXAMPLE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
const THEME = "ptxmma-theme";
/** The address of the reference, if this page is part of its site; the site says so in its copy. */
const reference = document.documentElement.dataset.reference;

const store = new Store();
const picker = new Picker(store);
const search = new SearchBox((set) => {
  const bits = bitsIn(set.bits ?? "");
  const described = bits === null ? {} : { image: "", family: "", i: describedBy(bits, current()) ? store.state.i : describedExample(bits) };
  store.set({ at: "", choose: "", middle: "", ...described, ...set, ...placeOf(set) });
});
const matrices = new MatricesView(store);
const memory = memoryFacts && new MemoryView(store);
const conversion = new ConversionView(store);
const layouts = new LayoutView(store);
const tensor = tensorMemories.length > 0 ? new TensorView(store) : undefined;
/** @typedef {import("./view.js").View & {element: HTMLElement, update: (instruction: Instruction, state: State, changed: Set<keyof State>) => void}} View */
/** @type {[string, string, View][]} */
const views = [
  ["matrices", "Matrices", matrices],
  ...(memory ? [/** @type {typeof views[number]} */ (["memory", "Shared memory", memory])] : []),
  ...(tensor ? [/** @type {typeof views[number]} */ (["tensor", "Tensor memory", tensor])] : []),
  ...(database.patterns.length ? [/** @type {typeof views[number]} */ (["sparsity", "Sparsity", new SparsityView(store)])] : []),
  ...(descriptorFormats.length ? [/** @type {typeof views[number]} */ (["descriptors", "Descriptors", new DescriptorReader(store)])] : []),
  ["copy", "Copy as", new CopyView(store, () => matrices.board)],
  ["convert", "Convert", conversion],
  ["layout", "Any layout", layouts],
];

const wrong = h("div", { class: "error", role: "alert" });
const out = h("a", { class: "caption", target: "_blank" }, "Open in the explorer");
const spelling = h("code", { class: "canonical" });
const facts = h("p", { class: "facts" });
const tabs = views.map(([name, title, view]) => {
  view.element.id = `view-${name}`;
  view.element.setAttribute("role", "tabpanel");
  return h("button", { role: "tab", id: `tab-${name}`, "aria-controls": `view-${name}`, onclick: () => store.set({ v: name }) }, title);
});
const help = helpDialog();

document.body.append(
  h(
    "header",
    {},
    h("h1", {}, "ptxmma ", h("span", {}, "explorer")),
    search.element,
    h("div", { class: "row" }, copyButton("Link", () => location.href), h("button", { "aria-label": "Light or dark", title: "Light or dark (t)", onclick: switchTheme }, "◐"), h("button", { "aria-label": "Keys", title: "Keys (?)", onclick: () => help.showModal() }, "?")),
  ),
  picker.element,
  h("div", { class: "headline" }, h("div", {}, spelling, facts)),
  h("nav", { role: "tablist", "aria-label": "Views" }, tabs),
  wrong,
  h("main", {}, views.map(([, , view]) => view.element), out),
  h("footer", {}, `ptxmma ${database.version} · ${database.document}`),
  help,
);

/** @type {Map<string, Instruction | undefined>} */
const namedByText = new Map();

/**
 * The instruction that a link names, in a spelling or in words: the first where no preference decides, of those that its target accepts where some are.
 * @param {State} state
 */
function namedBy({ i, target }) {
  const text = `${i} ${target}`.trim();
  if (!namedByText.has(text)) namedByText.set(text, instructionMeant(i) ?? [text, i].flatMap((each) => resolve(each).instructions)[0]);
  return namedByText.get(text);
}

/** The instruction that is shown: the one in the URL, or an example. */
function current() {
  const named = (store.state.i && namedBy(store.state)) || instructionMeant(EXAMPLE);
  if (named) return named;
  const [group] = instructionGroups();
  return instructionOf(group, group.numbers[0]);
}

const flag = oneOf(["1"]);
/** Rules for the settings of every view. */
const legal = /** @type {import("./legal.js").Legal} */ ({
  v: oneOf(views.map(([name]) => name)),
  colour: oneOf(["lane", "register", "warp"]),
  family: oneOf(describedFamilies()),
  zoom: like(/^(?:fit|[6-9]|[1-5]\d|60)$/, "fit, or 6 to 60 pixels"),
  turned: flag,
  order: flag,
});

/**
 * The faults of the settings, in sentences by their names; the selection is for the view to judge.
 * @param {State} state
 * @param {View} view
 * @returns {[keyof State, string][]}
 */
function faultsOf(state, view) {
  const rules = /** @type {[keyof State, import("./legal.js").Rule][]} */ (Object.entries({ ...legal, ...view.legal }));
  return [...rules.map(([key, rule]) => /** @type {[keyof State, string]} */ ([key, store.unsaid(key) ? "" : rule(state[key], key === "v" ? "view" : key)])), /** @type {[keyof State, string]} */ (["at", view.fault])];
}

/**
 * The faults of a link beside its settings, in sentences.
 * @param {State} state
 * @param {Instruction} instruction
 */
function linkFaults({ i, target, bits }, instruction) {
  const accepting = Object.keys(instruction.accepted);
  return [
    ...store.unknown.map((name) => `A link has no ${name}: write i=m16n8k16&at=a:9,3.`),
    !namedBy(store.state) && `No instruction is ${i}; this is ${instruction.canonical}.`,
    target && !(target in database.targets) && `No target is ${target}; instructions of every target are shown.`,
    target in database.targets && !accepting.includes(target) && `${target} does not accept this instruction: ${listed(accepting) || "none"} ${accepting.length > 1 ? "do" : "does"}.`,
    bits && bitsIn(bits) === null && `${bits} is not a descriptor of 64 bits: write 0x and up to 16 hexadecimal digits.`,
  ];
}

/**
 * The view that shows an answer: matrices in tensor memory, others in registers; the element that it names has its operand.
 * @param {Partial<State>} set
 * @returns {Partial<State>}
 */
function placeOf({ i, v, at }) {
  const [answer, view] = [i && instructionMeant(i), v ?? store.state.v];
  if (!answer || !["matrices", "tensor"].includes(view)) return {};
  return { v: tensorOperands(answer, null).size ? "tensor" : "matrices", ...(at ? { operand: "" } : {}) };
}

/**
 * Return whether an instruction may read a matrix through a descriptor.
 * @param {bigint} bits
 * @param {Instruction} instruction
 */
function describedBy(bits, instruction) {
  const read = sharedMemoryOf(instruction.family)?.family === describedFamilies(bits)[0];
  return read && instruction.forms.some((form) => form.operands.some(({ kind }) => kind === "descriptor" || kind === "shared-descriptor"));
}

/**
 * An instruction for a descriptor that is shown without one.
 * @param {bigint} bits
 */
function describedExample(bits) {
  return instructionGroups().map((group) => instructionOf(group, group.numbers[group.numbers.length - 1])).find((each) => describedBy(bits, each))?.canonical;
}

store.follow((state, changed) => {
  const bits = bitsIn(state.bits);
  if (!state.i || (namedBy(state) && !instructionMeant(state.i))) {
    store.settle({ i: (!state.i && bits !== null && describedExample(bits)) || current().canonical });
    changed.add("i");
  }
  // A link to bits alone shows them; an action that changes the view does not change them.
  if (bits !== null && changed.has("bits") && store.unsaid("v")) store.settle({ v: "memory" });
  const instruction = current();
  if (state.at && state.v === "matrices" && !arrangements(instruction).size && tensorOperands(instruction, null).size) store.settle({ v: "tensor" });
  const view = views.find(([name]) => name === state.v) ?? views[0];
  if (changed.has("i")) {
    spelling.textContent = instruction.canonical;
    fill(facts, headline(instruction));
  }
  document.body.classList.toggle("embed", Boolean(state.embed));
  out.href = location.href.replace(/&embed=[^&]*/, "");
  picker.update(instruction, state, changed);
  tabs.forEach((tab, place) => {
    const shown = views[place] === view;
    tab.setAttribute("aria-selected", String(shown));
    tab.tabIndex = shown ? 0 : -1;
    views[place][2].element.hidden = !shown;
    if (shown && changed.has("v")) tab.scrollIntoView({ block: "nearest", inline: "center" });
  });
  // The picture to copy shows the matrices.
  if (view[0] === "copy") matrices.update(instruction, state, changed);
  view[2].update(instruction, state, changed);
  const faults = faultsOf(state, view[2]).filter(([, fault]) => fault);
  if (changed.has("at") && state.at && !view[2].headline && !view[2].fault) faults.push(["at", `${state.at} is not in this view.`]);
  // Settings that an action outdates are given up; faults of the link or of the action itself are shown.
  const outdated = faults.flatMap(([key]) => (changed.has(key) ? [] : [key]));
  if (outdated.length) return store.drop(outdated);
  document.title = `${view[2].headline || instruction.canonical} · ptxmma explorer`;
  fill(wrong, [...linkFaults(state, instruction), ...faults.map(([, fault]) => fault)].filter(Boolean).map((fault) => h("p", {}, fault)));
});

/** For the console of the browser, and for tests: the drawing and what is shown. */
/** @type {any} */ (globalThis).explorer = { board: matrices.board, memory: memory?.board, tensor: tensor?.board, conversion: conversion.board, layout: layouts.board, store };

keyboard({
  store,
  search: search.input,
  views: views.map(([name]) => name),
  step: (steps) => picker.step(current(), steps),
  theme: switchTheme,
  help,
  board: () => (store.state.v === "tensor" && tensor ? tensor : store.state.v === "convert" ? conversion : matrices).board,
});

/**
 * The targets and versions that accept an instruction, and the section of the manual.
 * @param {Instruction} instruction
 */
function headline(instruction) {
  const accepted = Object.keys(database.targets).filter((name) => name in instruction.accepted);
  const [first, ...others] = accepted.map((name) => `${name} from PTX ISA ${instruction.accepted[name]}`);
  return [
    h("span", {}, instruction.title),
    h("span", {}, cited(instruction.source)),
    reference && h("a", { href: `${reference}${instruction.page}.html` }, "reference page"),
    !instruction.documented && h("span", { class: "observed" }, "not in the manual: assemblers accept it"),
    first && h("span", {}, first, others.length > 0 && h("abbr", { title: others.join("\n") }, ` and ${others.length} more targets`)),
  ];
}

function redraw() {
  for (const view of [matrices, memory, tensor, conversion, layouts]) if (view) view.board.draw();
}

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem(THEME, root.dataset.theme);
  } catch {
    // Pages from file:// may have no storage: the choice then lasts as long as the page.
  }
  redraw();
}

try {
  const known = localStorage.getItem(THEME);
  if (known) document.documentElement.dataset.theme = known;
} catch {
  // As above.
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
