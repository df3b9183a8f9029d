/** Elements of the page. */

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, unknown>} Properties */

/**
 * An element with properties and children: `on…` are listeners, what an element has no property for is an attribute.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Properties} properties
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (name === "class") element.className = String(value);
    else if (name in element && !name.startsWith("aria") && name !== "list") /** @type {any} */ (element)[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  fill(element, ...children);
  return element;
}

/**
 * Gives an element new children.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  const nodes = children.flat().filter((child) => child !== null && child !== undefined && child !== false);
  element.replaceChildren(...nodes.map((child) => (child instanceof Node ? child : String(child))));
}

/**
 * Gives an element new children; the control of the same name keeps the focus.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function refill(element, ...children) {
  const controls = () => /** @type {HTMLElement[]} */ ([...element.querySelectorAll("button, input, select")]);
  const nameOf = (/** @type {HTMLElement} */ control) => `${control.tagName} ${control.closest(".field")?.firstChild?.textContent} ${control.tagName === "BUTTON" ? control.textContent : ""}`;
  const focused = controls().find((control) => control === document.activeElement);
  const name = focused && nameOf(focused);
  fill(element, ...children);
  if (name) controls().find((control) => nameOf(control) === name)?.focus();
}

/**
 * The name of an axis or of a number, as a label.
 * @param {string} name
 */
export function worded(name) {
  return name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());
}

/**
 * A labelled choice.
 * @param {string} label
 * @param {(string | {value: string, text: string, disabled?: boolean})[]} options
 * @param {string} value
 * @param {(value: string) => void} chosen
 * @returns {HTMLLabelElement}
 */
export function choice(label, options, value, chosen) {
  const entries = options.map((option) => (typeof option === "string" ? { value: option, text: option || "(none)" } : option));
  const select = h(
    "select",
    { "aria-label": label || undefined, onchange: () => chosen(select.value) },
    entries.map((option) => h("option", { value: option.value, selected: option.value === value, disabled: "disabled" in option && option.disabled }, option.text)),
  );
  return h("label", { class: "field", title: label }, h("span", {}, label), select);
}

/**
 * A labelled number.
 * @param {string} label
 * @param {number | ""} value
 * @param {(value: number | undefined) => void} chosen
 * @param {Properties} more
 * @returns {HTMLLabelElement}
 */
export function numberField(label, value, chosen, more = {}) {
  const input = h("input", { type: "number", value, "aria-label": label || undefined, ...more, onchange: () => chosen(input.value === "" ? undefined : Number(input.value)) });
  return h("label", { class: "field" }, h("span", {}, label), input);
}

/**
 * Buttons of which one is pressed.
 * @param {string} label
 * @param {[value: string, text: string][]} options
 * @param {string} value
 * @param {(value: string) => void} chosen
 * @returns {HTMLElement}
 */
export function segments(label, options, value, chosen) {
  const buttons = options.map(([key, text]) => h("button", { "aria-pressed": String(key === value), onclick: () => chosen(key) }, text));
  return h("div", { class: "field", role: "group", "aria-label": label }, h("span", {}, label), h("div", { class: "segments" }, buttons));
}

/**
 * Saves a file.
 * @param {string} name
 * @param {Blob} blob
 */
export function saved(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/**
 * A button that copies a text and says so.
 * @param {string} caption
 * @param {() => string} text
 * @returns {HTMLButtonElement}
 */
export function copyButton(caption, text) {
  const button = h("button", { onclick: () => copied(text()).then((done) => said(done ? "Copied" : "Select and copy by hand")) }, caption);
  const said = (/** @type {string} */ word) => {
    button.textContent = word;
    setTimeout(() => (button.textContent = caption), 1200);
  };
  return button;
}

/**
 * Puts a text on the clipboard; pages from `file://` may lack the newer way.
 * @param {string} text
 * @returns {Promise<boolean>}
 */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { value: text, class: "unseen" });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
