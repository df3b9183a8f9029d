// Long tables can be filtered by words and sorted by a column; without this script they are complete as they are.
"use strict";

(() => {
  const LONG = 20;
  /** The text of a cell; numbers without the commas between thousands. */
  const text = (row, column) => (row.cells[column]?.textContent.trim() ?? "").replace(/(\d),(?=\d{3}\b)/g, "$1");
  const order = new Intl.Collator("en", {numeric: true}).compare;

  function sortable(table, body) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sorts";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].sort((one, other) => order(text(one, column), text(other, column)));
        body.append(...(down ? rows.reverse() : rows));
      });
    });
  }

  function filterable(table, body) {
    const box = document.createElement("input");
    box.type = "search";
    box.className = "filters";
    box.placeholder = `Filter ${body.rows.length} rows`;
    box.setAttribute("aria-label", box.placeholder);
    box.addEventListener("input", () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of body.rows) {
        const said = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => said.includes(word));
      }
    });
    (table.closest(".table-wrapper") ?? table).before(box);
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const table of document.querySelectorAll("table.docutils")) {
      const body = table.tBodies[0];
      if (!table.tHead || body.rows.length <= LONG) continue;
      sortable(table, body);
      filterable(table, body);
    }
  });
})();
