/** Two ways to draw: on a canvas, and as the text of an SVG. */

/**
 * @typedef {object} Pen
 * @property {(x: number, y: number, width: number, height: number, fill: string, strength?: number) => void} box
 * @property {(x: number, y: number, width: number, height: number, stroke: string, weight: number) => void} frame
 * @property {(x: number, y: number, text: string, size: number, fill: string, style?: {bold?: boolean, anchor?: "start" | "middle" | "end"}) => void} text
 */

const FONT = "system-ui, sans-serif";

/**
 * @param {CanvasRenderingContext2D} context
 * @returns {Pen}
 */
export function canvasPen(context) {
  const anchors = /** @type {const} */ ({ start: "left", middle: "center", end: "right" });
  return {
    box(x, y, width, height, fill, strength = 1) {
      context.globalAlpha = strength;
      context.fillStyle = fill;
      context.fillRect(x, y, width, height);
      context.globalAlpha = 1;
    },
    frame(x, y, width, height, stroke, weight) {
      context.strokeStyle = stroke;
      context.lineWidth = weight;
      context.strokeRect(x, y, width, height);
    },
    text(x, y, text, size, fill, { bold = false, anchor = "middle" } = {}) {
      context.font = `${bold ? "600 " : ""}${size}px ${FONT}`;
      context.textAlign = anchors[anchor];
      context.textBaseline = "middle";
      context.fillStyle = fill;
      context.fillText(text, x, y);
    },
  };
}

/**
 * A pen and the elements that it has drawn.
 * @returns {{pen: Pen, elements: string[]}}
 */
export function svgPen() {
  /** @type {string[]} */
  const elements = [];
  const shade = (/** @type {number} */ strength) => (strength < 1 ? ` opacity="${strength}"` : "");
  return {
    elements,
    pen: {
      box: (x, y, width, height, fill, strength = 1) => elements.push(`<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${fill}"${shade(strength)}/>`),
      frame: (x, y, width, height, stroke, weight) => elements.push(`<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="none" stroke="${stroke}" stroke-width="${weight}"/>`),
      text: (x, y, text, size, fill, { bold = false, anchor = "middle" } = {}) =>
        elements.push(`<text x="${x}" y="${y}" font-size="${size}" fill="${fill}" text-anchor="${anchor}" dominant-baseline="central"${bold ? ' font-weight="600"' : ""}>${escaped(text)}</text>`),
    },
  };
}

/**
 * @param {string[]} elements
 * @param {number} width
 * @param {number} height
 * @param {string} title
 * @returns {string}
 */
export function svgDocument(elements, width, height, title) {
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="${FONT}">`;
  return [head, `<title>${escaped(title)}</title>`, ...elements, "</svg>\n"].join("\n");
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
