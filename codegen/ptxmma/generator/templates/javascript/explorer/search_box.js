/** The box with its list of answers, by keyboard and by pointer. */

import { fill, h } from "./dom.js";
import { answersTo } from "./search.js";

/** @typedef {import("./search.js").Answer} Answer */
/** @typedef {import("./state.js").State} State */

export class SearchBox {
  /** @param {(set: Partial<State>) => void} chosen */
  constructor(chosen) {
    this.chosen = chosen;
    /** @type {Answer[]} */
    this.answers = [];
    this.active = 0;
    this.closing = 0;
    this.list = h("ul", { id: "answers", role: "listbox", hidden: true, "aria-label": "Answers" });
    this.input = h("input", {
      type: "search",
      placeholder: "m16n8k16 f16, a PTX line, asm, a wrapper, a CuTe atom, 0x4000…",
      role: "combobox",
      "aria-label": "Find an instruction",
      "aria-controls": "answers",
      "aria-expanded": "false",
      "aria-autocomplete": "list",
      autocomplete: "off",
      spellcheck: false,
      oninput: () => this.#ask(),
      onfocus: () => {
        clearTimeout(this.closing);
        this.input.select();
        this.#ask();
      },
      onblur: () => (this.closing = setTimeout(() => this.#close(), 150)),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
    });
    this.element = h("div", { class: "search", role: "search" }, this.input, this.list);
  }

  #ask() {
    this.answers = answersTo(this.input.value);
    this.active = 0;
    this.#show();
  }

  #show() {
    const nothing = this.input.value.trim() && !this.answers.length;
    fill(
      this.list,
      nothing && h("li", { class: "none" }, "Nothing has all of these words. Try a shape, a type, or part of an opcode."),
      this.answers.map((answer, place) =>
        h(
          "li",
          { id: `answer-${place}`, role: "option", "aria-selected": String(place === this.active), onpointerdown: (/** @type {Event} */ event) => event.preventDefault(), onclick: () => this.#take(answer) },
          h("span", { class: "spelling" }, answer.text),
          h("span", { class: "note" }, answer.note),
        ),
      ),
    );
    this.list.hidden = !nothing && !this.answers.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.input.setAttribute("aria-activedescendant", this.answers.length ? `answer-${this.active}` : "");
    this.list.children[this.active]?.scrollIntoView({ block: "nearest" });
  }

  #close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  /** @param {Answer} answer */
  #take(answer) {
    if (answer.href) location.href = answer.href;
    else this.chosen(answer.set);
    this.#close();
    this.input.blur();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.answers.length) {
      this.active = (this.active + step + this.answers.length) % this.answers.length;
      this.#show();
      event.preventDefault();
    } else if (event.key === "Enter" && this.answers.length) this.#take(this.answers[this.active]);
    else if (event.key === "Escape") this.input.blur();
  }
}
