// What the tests ask of the explorer in a browser.
const everyCell = (table, make) =>
  Array.from({ length: table.rows }, (_, row) => Array.from({ length: table.cols }, (_, col) => make(row, col)));

globalThis.probe = {
  /** The words and the colour in each cell of each table, for each of these instructions. */
  cells: (spellings) =>
    spellings.map((spelling) => {
      const { board, store } = explorer;
      store.set({ i: spelling, at: "", choose: "", middle: "" });
      const tables = new Map(board.tables.map((table) => [table.id, table]));
      if (document.querySelector("[aria-label=Middle]")) store.set({ middle: "c" });
      for (const table of board.tables) tables.set(table.id, table);
      const words = (table) => (row, col) => {
        const { top, label, fill } = table.cell(row, col);
        return `${top} ${label.trim()} ${fill}`;
      };
      return Object.fromEntries([...tables.values()].map((table) => [table.id, everyCell(table, words(table))]));
    }),

  /** The cells of each table of a board that are lit: `[row, col]`. */
  lit: (name) =>
    Object.fromEntries(
      explorer[name].tables.map((table) => [
        table.id,
        everyCell(table, (row, col) => (explorer[name].lights(table, row, col) ? [row, col] : null)).flat().filter(Boolean),
      ]),
    ),

  /** The words in the cells of the image in shared memory. */
  image: () => everyCell(explorer.memory.tables[0], (row, col) => explorer.memory.tables[0].cell(row, col).top),

  /** The words in the cells of each table of tensor memory. */
  tensor: (state) => {
    explorer.store.set({ v: "tensor", product: "", operand: "", base: "", load: "", choose: "", at: "", ...state });
    const words = (table) => everyCell(table, (row, col) => [table.cell(row, col).top, table.cell(row, col).label]);
    return Object.fromEntries(explorer.tensor.tables.map((table) => [table.id, words(table)]));
  },

  /** The words in the cells of both tables of a conversion. */
  conversion: (state) => {
    explorer.store.set({ v: "convert", operand: "", as: "ptx", into: "", turned: "", order: "", at: "", ...state });
    const words = (table) => everyCell(table, (row, col) => [table.cell(row, col).top, table.cell(row, col).label]);
    return Object.fromEntries(explorer.conversion.tables.map((table) => [table.id, words(table)]));
  },

  /** The words in the cells of any layout. */
  layout: () => {
    const [table] = explorer.layout.tables;
    return everyCell(table, (row, col) => [table.cell(row, col).top, table.cell(row, col).label]);
  },

  /** The middle of a cell in the window, after it was brought into sight. */
  middle: ([id, row, col]) => {
    const { board } = explorer;
    board.cursor = { table: board.tables.find((table) => table.id === id), row, col };
    board.reveal();
    return board.middleOf(id, row, col);
  },

  tensorMiddle: ([id, row, col]) => {
    const { tensor } = explorer;
    tensor.cursor = { table: tensor.tables.find((table) => table.id === id), row, col };
    tensor.reveal();
    return tensor.middleOf(id, row, col);
  },

  /** How many colours the first row of A has. */
  colours: () => {
    const a = explorer.board.tables.find((table) => table.id === "a");
    return new Set(Array.from({ length: a.cols }, (_, col) => a.cell(0, col).fill)).size;
  },

  /** What takes input and has no name. */
  nameless: () =>
    [...document.querySelectorAll("button, input, select, canvas")]
      .filter((element) => element.offsetParent && !element.ariaLabel && !element.textContent.trim() && !element.labels?.[0]?.textContent.trim())
      .map((element) => element.outerHTML),
};
