/** Choosing an instruction by its parts: target, name, qualifiers, and N. */

import { database } from "../database.js";
import { instructionGroups, instructionOf } from "../instructions.js";
import { choice, h, refill, worded } from "./dom.js";
import { targetText } from "../target_names.js";

/** @typedef {import("../index.d.ts").Instruction} Instruction */
/** @typedef {import("../index.d.ts").InstructionGroup} InstructionGroup */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Store} Store */

export class Picker {
  /** @param {Store} store */
  constructor(store) {
    this.store = store;
    this.parts = h("div", { class: "picker", role: "group", "aria-label": "Instruction by its parts" });
    this.element = h("details", { class: "parts", open: matchMedia("(min-width: 901px)").matches }, h("summary", {}, "Choose by its parts"), this.parts);
  }

  /**
   * @param {Instruction} instruction
   * @param {State} state
   * @param {Set<keyof State>} changed
   */
  update(instruction, state, changed) {
    if (!changed.has("i") && !changed.has("target")) return;
    const sliding = document.activeElement instanceof HTMLInputElement && document.activeElement.type === "range" && this.element.contains(document.activeElement);
    if (sliding && changed.size === 1 && this.slider && instruction.group.numbers.length === Number(this.slider.max) + 1) {
      this.#said(instruction);
      return;
    }
    const allowed = instructionGroups().filter((group) => !(state.target in database.targets) || state.target in group.accepted);
    const members = allowed.filter((group) => group.entry === instruction.group.entry);
    const names = [...new Set(allowed.map((group) => group.entry.name))];
    refill(
      this.parts,
      choice("Target", [{ value: "", text: "any" }, ...Object.keys(database.targets).map((name) => ({ value: name, text: targetText(name) }))], state.target, (target) => this.#retarget(instruction, target)),
      choice("Instruction", names, instruction.name, (name) => this.#take(allowed.filter((group) => group.entry.name === name), instruction)),
      ...this.#parts(instruction, members),
    );
  }

  /**
   * The parts of every form side by side; parts of some forms are folded away if this one has none.
   * @param {Instruction} instruction
   * @param {InstructionGroup[]} members
   */
  #parts(instruction, members) {
    const { syntax } = instruction.group.entry;
    const optional = (/** @type {string} */ name) => !syntax.includes(`.{${name}}`);
    const names = [...new Set(members.flatMap((group) => Object.keys(group.templates)))];
    const modifiers = this.#facets(instruction, members, names.filter(optional));
    const used = names.filter(optional).map((name) => instruction.qualifiers[name]).filter(Boolean);
    const folded = modifiers.length && h("details", { class: "modifiers", open: this.parts.querySelector("details")?.open ?? false }, h("summary", {}, `Modifiers: ${used.length ? used.map((value) => `.${value}`).join(" ") : "none"}`), h("div", { class: "row" }, modifiers));
    const slider = instruction.group.numbers.length > 1 && this.#slider(instruction);
    return [this.#facets(instruction, members, names.filter((name) => !optional(name))), slider, folded].flat();
  }

  /**
   * A choice for each qualifier that has several values here.
   * @param {Instruction} instruction
   * @param {InstructionGroup[]} members
   * @param {string[]} names
   */
  #facets(instruction, members, names) {
    const { entry, templates } = instruction.group;
    const all = [...new Set(members.flatMap((group) => Object.keys(group.templates)))];
    return names.flatMap((name) => {
      const values = [...new Set(members.map((group) => group.templates[name] ?? ""))];
      if (values.length < 2) return [];
      const title = entry.qualifiers?.[name]?.title ?? name;
      const options = values.map((value) => {
        const text = value.replace(/\{(\w)\}/, (_, extent) => extent.toUpperCase()) || "–";
        const near = members.some((group) => (group.templates[name] ?? "") === value && all.every((other) => other === name || (group.templates[other] ?? "") === (templates[other] ?? "")));
        return { value, text: near ? text : `${text} *` };
      });
      return [choice(shortTitle(title), options, templates[name] ?? "", (value) => this.#take(members.filter((group) => (group.templates[name] ?? "") === value), instruction))];
    });
  }

  /** @param {Instruction} instruction */
  #slider(instruction) {
    const { numbers, extent } = instruction.group;
    const place = numbers.indexOf(instruction.number);
    this.slider = h("input", { type: "range", min: 0, max: numbers.length - 1, value: place, "aria-label": extent.toUpperCase(), oninput: () => this.store.set({ i: instructionOf(instruction.group, numbers[Number(this.slider?.value)]).canonical }) });
    this.output = h("output", {});
    this.#said(instruction);
    return h("label", { class: "field slider" }, h("span", {}, extent.toUpperCase()), h("span", { class: "row" }, this.slider, this.output));
  }

  /** @param {Instruction} instruction */
  #said(instruction) {
    if (this.output) this.output.textContent = String(instruction.number);
    this.slider?.setAttribute("aria-valuetext", `${instruction.group.extent.toUpperCase()} = ${instruction.number}`);
  }

  /**
   * The instruction that is most like the one before.
   * @param {InstructionGroup[]} candidates
   * @param {Instruction} before
   */
  #take(candidates, before) {
    const likeness = (/** @type {InstructionGroup} */ group) => Object.entries(before.group.templates).filter(([name, value]) => (group.templates[name] ?? "") === value).length + Number(group.form.documented ?? true) / 2;
    const best = candidates.reduce((one, other) => (likeness(other) > likeness(one) ? other : one), candidates[0]);
    if (best) this.store.set({ i: instructionOf(best, nearest(best.numbers, before.number)).canonical, at: "", choose: "", middle: "" });
  }

  /**
   * @param {Instruction} instruction
   * @param {string} target
   */
  #retarget(instruction, target) {
    this.store.set({ target });
    if (target && !(target in instruction.accepted)) {
      const accepted = instructionGroups().filter((group) => target in group.accepted);
      this.#take(accepted.some((group) => group.entry === instruction.group.entry) ? accepted.filter((group) => group.entry === instruction.group.entry) : accepted, instruction);
    }
  }

  /**
   * Another N, as many steps away.
   * @param {Instruction} instruction
   * @param {number} steps
   */
  step(instruction, steps) {
    const { numbers } = instruction.group;
    const number = numbers[Math.min(Math.max(numbers.indexOf(instruction.number) + steps, 0), numbers.length - 1)];
    this.store.set({ i: instructionOf(instruction.group, number).canonical });
  }
}

/**
 * @param {number[]} numbers
 * @param {number} wanted
 */
function nearest(numbers, wanted) {
  const aim = wanted || 64;
  return numbers.reduce((one, other) => (Math.abs(other - aim) < Math.abs(one - aim) ? other : one), numbers[0]);
}

/** @param {string} title */
function shortTitle(title) {
  return worded(title.replace(/^element type of (?:the )?/, "type of "));
}
